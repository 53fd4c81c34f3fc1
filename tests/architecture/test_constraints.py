"""Every version that an installation of ackbox can bring is pinned, by name and version alone."""

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.+!]+")
# The Pythons and systems that are promised; markers decide on these, not on the machine at hand.
TARGETS = [("3.11.0", "Linux"), ("3.15.0", "Linux"), ("3.11.0", "Darwin"), ("3.15.0", "Darwin")]


def environment(python: str, system: str, extra: str) -> dict[str, str]:
    """Return the marker environment of one target."""
    return {
        "python_version": python.rpartition(".")[0],
        "python_full_version": python,
        "platform_system": system,
        "sys_platform": system.lower(),
        "extra": extra,
    }


def wanted(name: str, extras: frozenset[str]) -> Iterator[Requirement]:
    """Yield what a distribution requires on any target; nothing where it is not installed here."""
    try:
        declared = requires(name) or []
    except PackageNotFoundError:
        return
    for requirement in map(Requirement, declared):
        marker = requirement.marker
        if marker is None or any(
            marker.evaluate(environment(python, system, extra))
            for python, system in TARGETS
            for extra in (extras or {""})
        ):
            yield requirement


def closure(name: str, extras: frozenset[str]) -> set[str]:
    """Return the names of everything that an installation brings, the distribution itself aside."""
    found: set[str] = set()
    open_ends = [(name, extras)]
    visited = set()
    while open_ends:
        end = open_ends.pop()
        if end in visited:
            continue
        visited.add(end)
        for requirement in wanted(*end):
            found.add(canonicalize_name(requirement.name))
            open_ends.append((requirement.name, frozenset(requirement.extras)))
    return found


def unpinned(text: str, names: set[str]) -> set[str]:
    """Return the names for which a constraints file has no line."""
    return names - {canonicalize_name(line.partition("==")[0]) for line in text.splitlines()}


def malformed(text: str) -> list[str]:
    """Return the lines that are anything but a name and a version."""
    return [line for line in text.splitlines() if not PIN.fullmatch(line)]


def test_everything_that_is_installed_is_pinned(repository_root: Path) -> None:
    """The file covers the full closure of the package and of its development extra."""
    text = (repository_root / "constraints.txt").read_text(encoding="utf-8")
    names = closure("ackbox", frozenset({"dev"}))
    assert {"sqlalchemy", "greenlet", "rq", "croniter", "pytest", "iniconfig"} <= names
    assert not unpinned(text, names)


def test_pins_name_no_place(repository_root: Path) -> None:
    """No line holds an address, an option, a path or a range."""
    assert malformed((repository_root / "constraints.txt").read_text(encoding="utf-8")) == []


def test_a_missing_pin_and_a_foreign_line_are_noticed() -> None:
    """Both checks above can fail."""
    assert unpinned("rq==3.0.0\n", {"rq", "redis"}) == {"redis"}
    for line in ("--index-url x", "rq>=3", "rq @ file:///rq", "rq==3.0.0 ; extra", "# rq"):
        assert malformed(f"redis==8.1.0\n{line}\n") == [line]
