"""Where each public name is defined, followed through re-exports, without importing anything.

Decides what is public: the names in `__all__` of a public module. May import the standard library
only.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec, resolve_name
from pathlib import Path

PUBLIC_MODULES = (
    "ackbox",
    "ackbox.migrations",
    "ackbox.testing",
    "ackbox.testing.pytest_plugin",
)
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True, slots=True)
class Public:
    """One public name: the definition, and the documentation that stands with it."""

    name: str
    node: Definition
    documentation: str
    overloads: tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...] = ()


@cache
def source_of(module: str) -> tuple[ast.Module, bool]:
    """Return a module's parsed source, and whether it is a package. Raises ImportError."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ImportError(f"{module} has no source")
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    return tree, spec.submodule_search_locations is not None


def names_of(module: str) -> list[str]:
    """Return the names that a module declares public, in their order there."""
    tree, _ = source_of(module)
    for node in tree.body:
        if isinstance(node, ast.Assign) and _targets(node) == ["__all__"]:
            return [str(name) for name in ast.literal_eval(node.value)]
    raise ImportError(f"{module} declares no __all__")


def find(module: str, name: str) -> Public:
    """Return the definition of a name, wherever the module has it from. Raises ImportError."""
    tree, is_package = source_of(module)
    for place, node in enumerate(tree.body):
        if name in _defined(node):
            return _public(name, tree.body, place)
    for statement in ast.walk(tree):
        if isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    found = find(_target(module, is_package, statement), alias.name)
                    return _renamed(found, name)
    raise ImportError(f"{module} defines no {name}")


def _renamed(found: Public, name: str) -> Public:
    """Return it under the name that it is exported by."""
    node = copy.copy(found.node)
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        node.name = name
    return replace(found, name=name, node=node)


def _target(module: str, is_package: bool, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return str(node.module)
    package = module if is_package else module.rpartition(".")[0]
    return resolve_name("." * node.level + (node.module or ""), package)


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    return _targets(node) if isinstance(node, ast.Assign | ast.AnnAssign) else []


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _public(name: str, body: list[ast.stmt], place: int) -> Public:
    """Return what stands at a place, with the overloads that stand at and behind it."""
    node = body[place]
    assert isinstance(node, Definition)
    overloads: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
    while isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is(node, "overload"):
        overloads.append(node)
        place += 1
        following = body[place] if place < len(body) else None
        if not isinstance(following, ast.FunctionDef | ast.AsyncFunctionDef):
            break
        if following.name != name:
            break
        node = following
    return Public(name, node, _documentation(node, body, place), tuple(overloads))


def _documentation(node: Definition, body: list[ast.stmt], place: int) -> str:
    """Return a docstring, or for an assignment the text that stands below it."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return ast.get_docstring(node) or ""
    following = body[place + 1] if place + 1 < len(body) else None
    if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
        return str(following.value.value)
    return ""


def _is(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, decorator: str) -> bool:
    return decorator in decorators(node)


def decorators(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> set[str]:
    """Return the last word of each decorator's name."""
    called = [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]
    return {ast.unparse(one).rpartition(".")[2] for one in called}


def members(node: ast.ClassDef) -> Iterator[Public]:
    """Yield the public attributes, properties and methods of a class's own body."""
    seen: set[str] = set()
    for place, statement in enumerate(node.body):
        for name in _defined(statement):
            if not name.startswith("_") and name not in seen:
                seen.add(name)
                yield _public(name, node.body, place)


def initializer(node: ast.ClassDef) -> ast.FunctionDef | None:
    """Return a class's own `__init__`."""
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            return statement
    return None
