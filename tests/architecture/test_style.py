"""The style rules hold on every source file, and each rule finds a violation that is planted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .style_rules import (
    Rule,
    Source,
    absolute_import,
    broad_except,
    docstrings,
    file_length,
    findings,
    sleeping,
    vague_name,
)

# A handler may catch everything only where code that is not ours is called and whatever it raises
# has a meaning of its own. "path::definition": the reason. An entry that is not needed fails.
CATCH_ALL_BOUNDARIES: dict[str, str] = {
    "tool_adapters/shell/function_run.py::_call": "a tool's code: what it raises is Unknown",
    "tool_adapters/shell/function_run.py::_await": "a tool's code, and its cancellation",
    "tool_adapters/shell/event_loop.py::ToolLoop._tell_late": "the next ones come on its thread",
    "tool_adapters/shell/resources.py::Resources._open": "a user's code: told as ConfigError",
    "tool_adapters/shell/resources.py::_end": "a user's code; others are still to be closed",
    "tool_adapters/bounded.py::_bounded_result": "a tool's own object: no digest is no doubt",
    "tool_adapters/results.py::Results.stored": "a tool's own object: whatever it raises",
    "tool_adapters/results.py::Results.read": "a tool's own class: whatever it raises",
    "tool_adapters/storable.py::storable": "a tool's own object: whatever it raises",
    "tool_adapters/storable.py::storable_text": "a tool's own object: whatever it raises",
    "tool_adapters/compensating.py::plan_compensation": "an adapter's code: raising is an answer",
    "planner/shell/waiting.py::Waiters._look": "all waits of the process hear of it; else none",
    "planner/shell/callbacks.py::call": "a plan's code: whatever it raises undoes the bind",
    "planner/shell/callbacks.py::call_async": "a plan's code: whatever it raises undoes the bind",
    "workers/shell/tool_driver.py::ToolDriver._ask": "an adapter's code: raising is an answer",
    "workers/shell/reconciler.py::Reconciler._look": "else its thread would swallow it unseen",
    "workers/shell/runner.py::Runner._serve": "one broken attempt must not end the others",
    "workers/shell/coalescer.py::Coalescer._replies": "every attempt depends on this thread",
}


def source_files(root: Path, package_folders: list[Path]) -> Iterator[Path]:
    """Yield every Python and SQL file of the packages and of the tests."""
    for folder in [*package_folders, root / "tests"]:
        for pattern in ("*.py", "*.sql"):
            yield from sorted(folder.rglob(pattern))
    yield root / "src" / "ackbox" / "__init__.py"


@pytest.fixture(scope="module")
def sources(repository_root: Path, package_folders: list[Path]) -> list[Source]:
    """Return every source file, parsed."""
    paths = source_files(repository_root, package_folders)
    return [Source.read(repository_root, path) for path in paths]


@pytest.mark.parametrize("rule", [file_length, sleeping, docstrings, absolute_import, vague_name])
def test_rule_holds_on_every_source_file(rule: Rule, sources: list[Source]) -> None:
    """The tree has no finding under the rule."""
    found = findings(sources, (rule,))
    assert not found, "\n" + "\n".join(map(str, found))


def test_only_named_boundaries_catch_everything(sources: list[Source]) -> None:
    """A broad handler stands only where the list above names it, and the list names no other."""
    found = {f"{one.path}::{one.where}": one for one in findings(sources, (broad_except,))}
    unnamed = [str(one) for place, one in found.items() if place not in CATCH_ALL_BOUNDARIES]
    assert not unnamed, "\n" + "\n".join(unnamed)
    assert not CATCH_ALL_BOUNDARIES.keys() - found.keys(), "the boundary is gone: drop its entry"


def test_every_package_is_read(sources: list[Source], package_folders: list[Path]) -> None:
    """The rules are applied to each package and to the tests, so green is never an empty set."""
    read = {source.path.partition("/")[0] for source in sources}
    assert read == {folder.name for folder in package_folders} | {"tests", "src"}


DOCUMENTED = '"""Decide."""\n'
VIOLATIONS: list[tuple[Rule, str, str, int]] = [
    (file_length, "outbox/x.py", "a = 1\n" * 401, 401),
    (file_length, "outbox/sql/x.sql", "select 1;\n" * 401, 401),
    (sleeping, "tests/unit/x.py", "import time\ntime.sleep(1)\n", 2),
    (sleeping, "outbox/x.py", "import time as t\n\nt.sleep(1)\n", 3),
    (sleeping, "outbox/x.py", "from time import sleep as nap\nnap(1)\n", 2),
    (sleeping, "outbox/x.py", "import time\npoll(wait=time.sleep)\n", 2),
    (broad_except, "outbox/x.py", "try:\n    f()\nexcept:\n    pass\n", 3),
    (broad_except, "outbox/x.py", "try:\n    f()\nexcept Exception as e:\n    log(e)\n", 3),
    (broad_except, "outbox/x.py", "try:\n    f()\nexcept (OSError, Exception):\n    pass\n", 3),
    (broad_except, "outbox/x.py", "try:\n    f()\nexcept BaseException:\n    raise E\n", 3),
    (broad_except, "outbox/x.py", "with contextlib.suppress(Exception):\n    f()\n", 1),
    (docstrings, "outbox/x.py", "a = 1\n", 1),
    (docstrings, "outbox/x.py", DOCUMENTED + "def f(): ...\n", 2),
    (docstrings, "outbox/x.py", DOCUMENTED + "class A: ...\n", 2),
    (docstrings, "outbox/x.py", DOCUMENTED + 'class A:\n    """A."""\n    def f(self): ...\n', 4),
    (docstrings, "outbox/x.py", DOCUMENTED + "if a:\n    async def f(): ...\n", 3),
    (docstrings, "tests/unit/x.py", DOCUMENTED + "def test_a(): ...\n", 2),
    (docstrings, "tests/unit/x.py", DOCUMENTED + "class TestA:\n    def test_a(self): ...\n", 3),
    (absolute_import, "planner/x.py", "from ackbox.outbox import model\n", 1),
    (absolute_import, "planner/x.py", "import ackbox.outbox\n", 1),
    (vague_name, "outbox/store_utils.py", DOCUMENTED, 1),
    (vague_name, "outbox/x.py", "class LeaseManager: ...\n", 1),
    (vague_name, "outbox/x.py", "def claim_helper(): ...\n", 1),
]


@pytest.mark.parametrize(("rule", "path", "text", "line"), VIOLATIONS)
def test_planted_violation_is_found_at_its_line(
    rule: Rule, path: str, text: str, line: int
) -> None:
    """Each rule reports a planted violation with file and line."""
    (found,) = findings([Source.parse(path, text)], (rule,))
    assert str(found).startswith(f"{path}:{line}: ")


ALLOWED: list[tuple[Rule, str, str]] = [
    (file_length, "outbox/x.py", "a = 1\n" * 400),
    (sleeping, "outbox/x.py", "import time\nstopped.wait(1)\nsleep(time.monotonic())\n"),
    (broad_except, "outbox/x.py", "try:\n    f()\nexcept BaseException:\n    g()\n    raise\n"),
    (broad_except, "outbox/x.py", "try:\n    f()\nexcept (OSError, ValueError):\n    pass\n"),
    (docstrings, "outbox/x.py", DOCUMENTED + "def _f(): ...\n"),
    (docstrings, "outbox/x.py", DOCUMENTED + "@overload\ndef f(a: int): ...\n"),
    (docstrings, "tests/unit/x.py", DOCUMENTED + "def world(): ...\n"),
    (absolute_import, "tests/unit/x.py", "from ackbox.outbox import model\n"),
    (absolute_import, "planner/x.py", "from ..outbox import model\n"),
    (vague_name, "outbox/x.py", "from contextlib import AbstractContextManager\n"),
]


@pytest.mark.parametrize(("rule", "path", "text"), ALLOWED)
def test_allowed_code_is_left_alone(rule: Rule, path: str, text: str) -> None:
    """No rule complains about what the style allows."""
    assert findings([Source.parse(path, text)], (rule,)) == []
