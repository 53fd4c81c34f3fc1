"""The style rules that a machine can judge, each a function from one source file to findings.

Imports the standard library only. A rule reports where it was broken and leaves it to the tests to
say which files it holds for.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

LINE_LIMIT = 400
BROAD = {"Exception", "BaseException"}
VAGUE = {"manager", "helper", "helpers", "util", "utils"}
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, order=True)
class Finding:
    """One broken rule at one line; `where` names the enclosing definitions for allow-lists."""

    path: str
    line: int
    rule: str
    text: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


@dataclass(frozen=True)
class Source:
    """One file: its path from the root of the repository, its text and its syntax tree."""

    path: str
    text: str
    tree: ast.Module = field(repr=False)

    @classmethod
    def parse(cls, path: str, text: str) -> "Source":
        """Build a source from text; a file that is not Python gets an empty tree."""
        return cls(path, text, ast.parse(text if path.endswith(".py") else ""))

    @classmethod
    def read(cls, root: Path, path: Path) -> "Source":
        """Read a file below the root."""
        return cls.parse(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))

    @property
    def is_test(self) -> bool:
        """Say whether the file stands under tests/."""
        return self.path.startswith("tests/")


Rule = Callable[[Source], Iterator[Finding]]


def scoped(node: ast.AST, scope: tuple[str, ...] = ()) -> Iterator[tuple[ast.AST, str]]:
    """Walk a tree, each node with the dotted name of the definitions around it."""
    for child in ast.iter_child_nodes(node):
        yield child, ".".join(scope)
        inner = (*scope, child.name) if isinstance(child, Definition) else scope
        yield from scoped(child, inner)


def file_length(source: Source) -> Iterator[Finding]:
    """No file is longer than 400 lines."""
    count = len(source.text.splitlines())
    if count > LINE_LIMIT:
        yield Finding(source.path, count, "file-length", f"{count} lines, at most {LINE_LIMIT}")


def aliases_of(tree: ast.Module, module: str, attribute: str) -> set[str]:
    """Return every expression by which a file may call `module.attribute`."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias for alias in node.names if alias.name == module]
            found |= {f"{alias.asname or module}.{attribute}" for alias in names}
        if isinstance(node, ast.ImportFrom) and node.module == module:
            names = [alias for alias in node.names if alias.name == attribute]
            found |= {alias.asname or attribute for alias in names}
    return found


def sleeping(source: Source) -> Iterator[Finding]:
    """Nothing waits for time alone: `time.sleep` is neither called nor handed on."""
    spelled = aliases_of(source.tree, "time", "sleep")
    for node, where in scoped(source.tree):
        if isinstance(node, ast.Attribute | ast.Name) and ast.unparse(node) in spelled:
            text = "wait on a condition, or on an event with a time-out"
            yield Finding(source.path, node.lineno, "sleep", text, where)


def broad_names(caught: ast.expr | None) -> list[str]:
    """Return the names in an `except` (or `suppress`) clause that catch nearly everything."""
    if caught is None:
        return ["everything"]
    parts = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return [name for name in map(ast.unparse, parts) if name.rpartition(".")[2] in BROAD]


def raises_again(handler: ast.ExceptHandler) -> bool:
    """Say whether a handler ends by raising what it caught, so that it swallows nothing."""
    last = handler.body[-1]
    if not isinstance(last, ast.Raise):
        return False
    return last.exc is None or (handler.name is not None and ast.unparse(last.exc) == handler.name)


def broad_except(source: Source) -> Iterator[Finding]:
    """No handler swallows every exception: RQ's job time-out is an ordinary Exception."""
    for node, where in scoped(source.tree):
        names: list[str] = []
        if isinstance(node, ast.ExceptHandler) and not raises_again(node):
            names = broad_names(node.type)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            names = [name for argument in node.args for name in broad_names(argument)]
        for name in names:
            assert isinstance(node, ast.ExceptHandler | ast.Call)
            text = f"catches {name}; name the exceptions that are expected"
            yield Finding(source.path, node.lineno, "broad-except", text, where)


def is_overload(node: Definition) -> bool:
    """Say whether a definition only declares a signature, or repeats one under the same name."""
    names = {ast.unparse(decorator) for decorator in node.decorator_list}
    return any(name.endswith(("overload", ".setter", ".deleter", "override")) for name in names)


def public_definitions(body: list[ast.stmt]) -> Iterator[Definition]:
    """Yield the public functions and classes of a module, and the public methods in them."""
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            yield from public_definitions(node.body + node.orelse)
        elif isinstance(node, Definition) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public_definitions(node.body)


def docstrings(source: Source) -> Iterator[Finding]:
    """Every module says what it decides; every public definition and every test says its part."""
    if source.path.endswith(".py") and not ast.get_docstring(source.tree):
        yield Finding(source.path, 1, "docstring", "the module has none")
    for node in public_definitions(source.tree.body):
        if source.is_test and not node.name.startswith("test_"):
            continue
        if not is_overload(node) and not ast.get_docstring(node):
            yield Finding(source.path, node.lineno, "docstring", f"{node.name} has none", node.name)


def absolute_import(source: Source) -> Iterator[Finding]:
    """Packages import each other relatively: one class never has two module names."""
    for node in [] if source.is_test else ast.walk(source.tree):
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            modules = [node.module or ""]
        for module in modules:
            if module.partition(".")[0] == "ackbox":
                assert isinstance(node, ast.Import | ast.ImportFrom)
                yield Finding(source.path, node.lineno, "absolute-import", f"{module}, not ..")


def vague_name(source: Source) -> Iterator[Finding]:
    """No file and no definition is called manager, helper or util."""
    if VAGUE & set(Path(source.path).stem.split("_")):
        yield Finding(source.path, 1, "vague-name", "the file says nothing of what it decides")
    for node, where in scoped(source.tree):
        if isinstance(node, Definition):
            spaced = "".join(f"_{c.lower()}" if c.isupper() else c for c in node.name)
            if VAGUE & set(spaced.split("_")):
                yield Finding(source.path, node.lineno, "vague-name", node.name, where)


RULES: tuple[Rule, ...] = (
    file_length,
    sleeping,
    broad_except,
    docstrings,
    absolute_import,
    vague_name,
)


def findings(sources: list[Source], rules: tuple[Rule, ...] = RULES) -> list[Finding]:
    """Apply rules to sources and return what they found, in the order of the files."""
    return sorted({found for source in sources for rule in rules for found in rule(source)})
