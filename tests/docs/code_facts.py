"""What the code can say to a caller, read off its source: refusal, error and outcome codes, events.

Read with `ast`, so that a code in a branch that no test reaches is found as well. A code given by
name is followed to the constant, in its own module or in the one that it is imported from.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("outbox", "planner", "workers", "tool_adapters", "app")
REFUSALS = {"Refusal", "Denied", "Refused"}
"""Calls whose first argument is a refusal's code."""
ERRORS = {"InvalidIntent", "ConfigError", "StoreUnavailable", "ProtocolViolation", "AckboxError"}
_CODE = re.compile(r"[a-z][a-z_0-9]*")
_INSERT = re.compile(
    r"INSERT INTO \{schema\}\.event\s*\((?P<columns>[^)]*)\)\s*SELECT(?P<values>.*?)FROM", re.DOTALL
)
_NAMED_BY = {"Note": 1, "note": 2, "alert": 1}
"""Calls that write an event, and the place of its name among their arguments."""
DECISIONS = ("approved", "rejected")


@cache
def sources() -> tuple[ast.Module, ...]:
    """Return the parsed modules of every package, read once in a run."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return tuple(ast.parse(path.read_text(encoding="utf-8")) for path in paths)


def refusal_codes(modules: Iterable[ast.Module]) -> set[str]:
    """Return every code that a refusal made in these modules may carry, guards not included."""
    modules = list(modules)
    constants = _constants(modules)
    calls = [call for module in modules for call in _calls(module, REFUSALS)]
    return {code for call in calls if call.args for code in _text(call.args[0], constants)}


def error_codes(modules: Iterable[ast.Module]) -> set[str]:
    """Return the codes of exceptions: a class's own, and those given where it is raised."""
    modules = list(modules)
    constants = _constants(modules)
    found = set(_class_codes(modules))
    for module in modules:
        for call in _calls(module, ERRORS):
            found |= _keyword_code(call, constants)
    return found


def outcome_codes(modules: Iterable[ast.Module]) -> set[str]:
    """Return the codes of NotApplied and Unknown that our own code concludes."""
    modules = list(modules)
    constants = _constants(modules)
    found: set[str] = set()
    for module in modules:
        for call in _calls(module, {"NotApplied", "Unknown"}):
            found |= _keyword_code(call, constants)
            found |= {code for one in call.args[1:2] for code in _text(one, constants)}
    return found


def event_names(modules: Iterable[ast.Module], statements: Iterable[str]) -> set[str]:
    """Return the names of events that move no state: those of SQL statements and of notes."""
    modules = list(modules)
    constants = _constants(modules)
    found: set[str] = set()
    for text in statements:
        for inserted in _INSERT.finditer(text):
            found |= _inserted_names(inserted["columns"], inserted["values"])
    for module in modules:
        for call in _calls(module, set(_NAMED_BY)):
            given = call.args[_NAMED_BY[_name(call)] :][:1]
            found |= {name for one in given for name in _text(one, constants)}
    return found


def _inserted_names(columns: str, values: str) -> set[str]:
    """Return what may stand in the column `name` of an inserted event."""
    place = [column.strip() for column in columns.split(",")].index("name")
    shallow = re.sub(r"\([^()]*\)", lambda call: call[0].replace(",", " "), values)
    value = shallow.split(",")[place]
    # In `CASE x WHEN 'a' THEN 'b'` the names are what THEN and ELSE give.
    chosen = re.findall(r"(?:THEN|ELSE) '([a-z_.]+)'", value) or re.findall(r"'([a-z_.]+)'", value)
    return {f"{name}{d}" if "||" in value else name for name in chosen for d in DECISIONS}


def _calls(module: ast.Module, names: set[str]) -> Iterator[ast.Call]:
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and _name(node) in names:
            yield node


def _name(call: ast.Call) -> str:
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _keyword_code(call: ast.Call, constants: dict[str, str]) -> set[str]:
    given = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
    return {code for value in given for code in _text(value, constants)}


def _class_codes(modules: list[ast.Module]) -> Iterator[str]:
    for module in modules:
        for node in ast.walk(module):
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, ast.AnnAssign):
                targets = [node.target]
            if any(isinstance(t, ast.Name) and t.id == "default_code" for t in targets):
                value = getattr(node, "value", None)
                if isinstance(value, ast.Constant):
                    yield str(value.value)


def _constants(modules: list[ast.Module]) -> dict[str, str]:
    """Map NAME = "text" of every module; two modules never give one name two texts here."""
    found: dict[str, str] = {}
    for module in modules:
        for node in module.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                for target in node.targets:
                    if isinstance(target, ast.Name) and isinstance(node.value.value, str):
                        found[target.id] = node.value.value
    return found


def _text(node: ast.expr, constants: dict[str, str]) -> set[str]:
    texts: set[str] = set()
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        texts = {node.value}
    elif isinstance(node, ast.Name) and node.id in constants:
        texts = {constants[node.id]}
    elif isinstance(node, ast.Attribute) and node.attr in constants:
        texts = {constants[node.attr]}
    elif isinstance(node, ast.IfExp):
        texts = _text(node.body, constants) | _text(node.orelse, constants)
    return {text for text in texts if _CODE.fullmatch(text)}


def finding_checks(paths: Iterable[Path]) -> set[str]:
    """Return the stable names of doctor's findings that are written out in these modules."""
    found: set[str] = set()
    for path in paths:
        for call in _calls(ast.parse(path.read_text(encoding="utf-8")), {"Finding"}):
            found |= {name for one in call.args[1:2] for name in _text(one, {})}
    return found


def variables() -> set[str]:
    """Return the environment variables that the code names in a constant `..._VARIABLE`."""
    found = _constants(list(sources()))
    return {text for name, text in found.items() if name.endswith("_VARIABLE") and "ACKBOX" in text}
