"""The registry: one adapter per tool and version, from code, modules and entry points."""

import sys
from collections.abc import Iterable
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.errors import ConfigError
from ackbox.tool_adapters.fake_tools import fake_mail, fake_ticket, fake_tools
from ackbox.tool_adapters.function import tool
from ackbox.tool_adapters.registry import ENTRY_POINT_GROUP, Tools

BASE = "http://tool.test"


@pytest.fixture
def tools_module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("planted_tools")
    module.first = tool("a")(lambda call: None)  # type: ignore[attr-defined]
    module.again = module.first  # type: ignore[attr-defined]
    module.second = fake_mail(BASE)  # type: ignore[attr-defined]
    module.several = [fake_ticket(BASE)]  # type: ignore[attr-defined]
    module.make = lambda: fake_tools(BASE)  # type: ignore[attr-defined]
    module.needs = lambda base: fake_tools(base)  # type: ignore[attr-defined]
    module.nothing = 7  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "planted_tools", module)
    return module


def names(registry: Tools) -> list[str]:
    return [contract.tool for contract in registry.contracts()]


def test_the_same_adapter_twice_is_one_and_another_is_refused() -> None:
    """A module that imports a tool offers it a second time; two tools of a name are a mistake."""
    one = tool("a")(lambda call: None)
    registry = Tools(one, one)
    assert registry.lookup("a", 1) is one
    with pytest.raises(ConfigError, match="a version 1"):
        registry.register(tool("a")(lambda call: None))
    newer = tool("a", version=2)(lambda call: None)
    registry.register(newer)
    assert registry.latest("a") is newer
    assert registry.lookup("a", 3) is None
    assert registry.latest("b") is None


@pytest.mark.usefixtures("tools_module")
@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("planted_tools", ["a", "mails.send"]),
        ("planted_tools:first", ["a"]),
        ("planted_tools:several", ["tickets.create"]),
        (
            "planted_tools:make",
            ["charges.create", "mails.send", "tickets.create", "tickets.delete"],
        ),
    ],
)
def test_tools_are_loaded_by_place(place: str, expected: list[str]) -> None:
    """A whole module, one tool, a list, or a factory."""
    registry = Tools()
    registry.load(place)
    assert names(registry) == expected


@pytest.mark.usefixtures("tools_module")
@pytest.mark.parametrize(
    "place",
    ["", "no_such_module", "planted_tools:absent", "planted_tools:nothing", "planted_tools:needs"],
)
def test_a_place_without_tools_is_refused(place: str) -> None:
    """With the place named, and nothing registered."""
    registry = Tools()
    with pytest.raises(ConfigError, match="No tools can be loaded"):
        registry.load(place)
    assert registry.contracts() == []


@pytest.mark.usefixtures("tools_module")
def test_entry_points_of_our_group_are_loaded() -> None:
    """Installed distributions add their tools without any setting."""

    def find(**wanted: Any) -> Iterable[EntryPoint]:
        assert wanted == {"group": ENTRY_POINT_GROUP}
        return [
            EntryPoint("b", "planted_tools:second", ENTRY_POINT_GROUP),
            EntryPoint("a", "planted_tools:several", ENTRY_POINT_GROUP),
        ]

    registry = Tools()
    registry.load_entry_points(find)
    assert names(registry) == ["mails.send", "tickets.create"]
    assert registry.lanes() == ["mails", "tickets"]


def test_contradictions_are_named() -> None:
    """An ensure-absent undo needs a strong probe; retention must cover the key window."""
    bad = tool("a", compensation=lambda target: None, ensure_absent=True)(lambda call: None)  # type: ignore[arg-type, return-value]
    registry = Tools(bad)
    assert registry.problems() == ["a: an ensure-absent compensation needs a strong probe"]
    assert Tools(*fake_tools(BASE)).problems(replace(DEFAULTS, retention_seconds=1)) == []
