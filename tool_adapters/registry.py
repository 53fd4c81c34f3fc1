"""Which tools a process knows: by code, by module string and by installed entry points.

Decides that one name and version has one adapter. Pure; importing the modules that users name is
all it does besides. A registry is an object: a process may hold several.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

from ..outbox.contract import ToolContract, contradictions
from ..outbox.defaults import DEFAULTS, Limits
from ..outbox.errors import ConfigError
from .contract import Adapter

ENTRY_POINT_GROUP = "ackbox.tool_adapters"


class Registry:
    """Adapters by tool and version."""

    def __init__(self, adapters: Iterable[Adapter] = ()) -> None:
        self._adapters: dict[tuple[str, int], Adapter] = {}
        for adapter in adapters:
            self.register(adapter)

    def register(self, adapter: Adapter) -> None:
        """Add an adapter; the same object twice is one. Raises ConfigError for a second one."""
        contract = adapter.contract
        known = self._adapters.setdefault((contract.tool, contract.version), adapter)
        if known is not adapter:
            raise ConfigError(
                f"Two adapters are registered for {contract.tool} version {contract.version}.",
                next_step="give one of them another name or a higher version",
            )

    def load(self, place: str) -> None:
        """Register what stands at "pkg.mod" (every adapter in it) or "pkg.mod:attribute".

        Raises ConfigError where nothing can be imported or nothing there is an adapter.
        """
        module_name, _, attribute = place.partition(":")
        try:
            found: Any = importlib.import_module(module_name)
            for name in filter(None, attribute.split(".")):
                found = getattr(found, name)
        except (ImportError, AttributeError, SyntaxError, ValueError) as error:
            raise _unusable(place, f"{type(error).__name__}: {error}") from error
        self._take(place, found if attribute else list(vars(found).values()))

    def load_entry_points(self, find: Callable[..., Iterable[EntryPoint]] = entry_points) -> None:
        """Register what installed distributions offer in the group `ackbox.tool_adapters`."""
        for point in sorted(find(group=ENTRY_POINT_GROUP), key=lambda one: one.name):
            self.load(f"{point.module}:{point.attr}" if point.attr else point.module)

    def _take(self, place: str, found: Any) -> None:
        try:
            adapters = list(_adapters_in(found))
        except TypeError as error:
            raise _unusable(place, f"calling it without arguments failed ({error})") from error
        if not adapters:
            raise _unusable(place, "it holds no tool")
        for adapter in adapters:
            self.register(adapter)

    def lookup(self, tool: str, version: int) -> Adapter | None:
        """Return the adapter of that tool in that version, or None."""
        return self._adapters.get((tool, version))

    def latest(self, tool: str) -> Adapter | None:
        """Return the tool's adapter of the highest version, or None."""
        versions = [version for name, version in self._adapters if name == tool]
        return self._adapters[tool, max(versions)] if versions else None

    def contracts(self) -> list[ToolContract]:
        """Return every declaration, in order of tool and version."""
        return [self._adapters[key].contract for key in sorted(self._adapters)]

    def lanes(self) -> list[str]:
        """Return the lanes that the tools name, sorted."""
        return sorted({contract.lane for contract in self.contracts()})

    def problems(self, limits: Limits = DEFAULTS) -> list[str]:
        """Return what contradicts itself, the limits, or names a tool that is not there."""
        found: list[str] = []
        for contract in self.contracts():
            found += contradictions(contract, limits)
        return found


def is_adapter(value: Any) -> bool:
    """Return whether the value is an adapter instance (its class is none)."""
    if isinstance(value, type) or not isinstance(value, Adapter):
        return False
    return isinstance(value.contract, ToolContract)


def _adapters_in(found: Any) -> Iterable[Adapter]:
    """Yield the adapters of an adapter, a list, a module, a registry or a factory of these."""
    if is_adapter(found):
        return [found]
    if isinstance(found, Registry):
        return list(found._adapters.values())
    if isinstance(found, list | tuple):
        return [item for item in found if is_adapter(item)]
    if isinstance(found, ModuleType):
        return _adapters_in(list(vars(found).values()))
    if not callable(found):
        return []
    made = found()
    return [] if callable(made) and not is_adapter(made) else _adapters_in(made)


def _unusable(place: str, problem: str) -> ConfigError:
    return ConfigError(
        f"No tools can be loaded from {place!r}: {problem}.",
        next_step="name a module with tools as package.module or package.module:attribute",
    )
