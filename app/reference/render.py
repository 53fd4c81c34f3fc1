"""How a public name is shown: a heading, its signature as written, its documentation.

Decides also what is missing for a reader: a docstring, or a type. May import `public` and the
standard library only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from . import public
from .public import Public

WIDTH = 92
HEAD = """\
# Public names

This page is generated from the source: `python -m ackbox.app.reference`.
What is not named here may change without notice.
"""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def page(modules: Iterable[str] = public.PUBLIC_MODULES) -> str:
    """Return the whole page as Markdown."""
    return "\n".join([HEAD, *(line for module in modules for line in _module(module))])


def _module(module: str) -> Iterator[str]:
    yield from (f"## {module}", "")
    tree, _ = public.source_of(module)
    yield from (ast.get_docstring(tree) or "", "")
    for name in sorted(public.names_of(module), key=str.lower):
        yield from _entry(public.find(module, name))


def _entry(found: Public) -> Iterator[str]:
    yield from (f"### {found.name}", "")
    yield from ("```python", *_signatures(found), "```", "")
    if found.documentation:
        yield from (found.documentation, "")
    if isinstance(found.node, ast.ClassDef):
        yield from _class(found.node)


def _class(node: ast.ClassDef) -> Iterator[str]:
    """Show fields in one block, then each documented attribute, property and method."""
    plain = [one for one in public.members(node) if not one.documentation]
    if plain:
        yield "```python"
        for one in plain:
            yield from _signatures(one)
        yield from ("```", "")
    for one in public.members(node):
        if one.documentation:
            yield from (f"#### {node.name}.{one.name}", "")
            yield from ("```python", *_signatures(one), "```", "", one.documentation, "")


def _signatures(found: Public) -> Iterator[str]:
    for node in found.overloads or (found.node,):
        yield from _signature(node)


def _signature(node: public.Definition) -> Iterator[str]:
    if isinstance(node, ast.ClassDef):
        yield from _class_signature(node)
    elif isinstance(node, Function):
        yield from _function_signature(node)
    elif isinstance(node, ast.AnnAssign):
        yield _attribute(node)
    else:
        yield ast.unparse(node)


def _attribute(node: ast.AnnAssign) -> str:
    """Return an attribute with its default; of a dataclass's `field(...)` its default alone."""
    value = node.value
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
        value = next((one.value for one in value.keywords if one.arg == "default"), None)
    shown = f" = {ast.unparse(value)}" if value is not None else ""
    return f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)}{shown}"


def _class_signature(node: ast.ClassDef) -> Iterator[str]:
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    made_by = public.initializer(node)
    yield f"class {node.name}({bases})" if bases else f"class {node.name}"
    if made_by is not None:
        yield from _called(node.name, _parameters(made_by)[1:], "")


def _function_signature(node: Function) -> Iterator[str]:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    if "property" in public.decorators(node):
        yield f"{node.name}: {returns.removeprefix(' -> ')}"
        return
    start = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    if "classmethod" in public.decorators(node):
        yield "@classmethod"
    yield from _called(f"{start} {node.name}", _shown_parameters(node), returns)


def _shown_parameters(node: Function) -> list[str]:
    """Return the parameters that a caller gives: neither self nor cls."""
    parameters = _parameters(node)
    if parameters[:1] in (["self"], ["cls"]):
        parameters = parameters[1:]
        return parameters[1:] if parameters[:1] == ["/"] else parameters
    return parameters


def _called(start: str, parameters: list[str], end: str) -> Iterator[str]:
    line = f"{start}({', '.join(parameters)}){end}"
    if len(line) <= WIDTH:
        yield line
        return
    yield f"{start}("
    yield from (f"    {parameter}," for parameter in parameters)
    yield f"){end}"


def _parameters(node: Function) -> list[str]:
    """Return the parameters as written, markers included."""
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    unset: list[ast.expr | None] = [None] * (len(positional) - len(args.defaults))
    shown = [
        _parameter(arg, default)
        for arg, default in zip(positional, [*unset, *args.defaults], strict=True)
    ]
    if args.posonlyargs:
        shown.insert(len(args.posonlyargs), "/")
    if args.vararg:
        shown.append(f"*{_parameter(args.vararg, None)}")
    elif args.kwonlyargs:
        shown.append("*")
    shown += [_parameter(a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    return [*shown, f"**{_parameter(args.kwarg, None)}"] if args.kwarg else shown


def _parameter(arg: ast.arg, default: ast.expr | None) -> str:
    typed = f"{arg.arg}: {ast.unparse(arg.annotation)}" if arg.annotation else arg.arg
    if default is None:
        return typed
    return (
        f"{typed} = {ast.unparse(default)}" if arg.annotation else f"{typed}={ast.unparse(default)}"
    )


def missing(modules: Iterable[str] = public.PUBLIC_MODULES) -> list[str]:
    """Return what a reader would miss: names and methods without a docstring or a type."""
    found: list[str] = []
    for module in modules:
        for name in public.names_of(module):
            found += missing_of(f"{module}.{name}", public.find(module, name))
    return found


def missing_of(place: str, found: Public) -> list[str]:
    """Return what is missing of one name and of its members."""
    node = found.node
    lacks = [] if found.documentation else [f"{place}: no docstring"]
    if isinstance(node, Function):
        return lacks + [f"{place}: {what}" for what in _untyped(node)]
    if not isinstance(node, ast.ClassDef):
        return lacks
    made_by = public.initializer(node)
    lacks += [f"{place}: {what}" for what in _untyped(made_by)] if made_by else []
    for member in public.members(node):
        if isinstance(member.node, Function | ast.ClassDef):
            lacks += missing_of(f"{place}.{member.name}", member)
    return lacks


def _untyped(node: Function) -> list[str]:
    """Return the parameters without a type, and a missing type of what is returned."""
    args = node.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    names = [one.arg for one in every if one is not None and one.annotation is None]
    lacks = [f"no type of {name}" for name in names if name not in ("self", "cls")]
    return lacks if node.returns is not None else [*lacks, "no type of what it returns"]
