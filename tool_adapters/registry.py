"""Which tools a process knows: by code, by module string and by installed entry points.

Decides that one name and version has one adapter, and which adapter serves rows of an older
version. Pure; importing the modules that users name is all it does besides. `Tools` is an object:
a process may hold several.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, TypeAlias

from ..outbox.contract import ToolContract, contradictions
from ..outbox.defaults import DEFAULTS, Limits
from ..outbox.errors import ConfigError
from .contract import Adapter

ENTRY_POINT_GROUP = "ackbox.tool_adapters"
Lifespan: TypeAlias = Callable[[], Any]
"""Called without arguments once per process: a sync or async generator, or a context manager."""


class Tools:
    """Adapters by tool and version, with the resources that they share within one process.

    `Tools(refund, send_mail, lifespan=resources)` in the module that `--tools` names: `lifespan`
    opens once per process, before the first call, and closes at its end. What it yields (one
    object, a mapping from type to object, or a list of objects) is what `call.resource(Type)`
    returns to these tools.
    """

    def __init__(self, *adapters: Adapter, lifespan: Lifespan | None = None) -> None:
        self.lifespan = lifespan
        self._adapters: dict[tuple[str, int], Adapter] = {}
        self._included: list[Tools] = []
        for adapter in adapters:
            self.register(adapter)

    def register(self, adapter: Adapter) -> None:
        """Add an adapter; the same object twice is one. Raises ConfigError for a second one."""
        if not is_adapter(adapter):
            raise ConfigError(
                f"A {type(adapter).__name__} is no tool.",
                next_step="give functions decorated with @tool, or adapters",
            )
        contract = adapter.contract
        known = self._adapters.setdefault((contract.tool, contract.version), adapter)
        if known is not adapter:
            raise ConfigError(
                f"Two adapters are registered for {contract.tool} version {contract.version}.",
                next_step="give one of them another name or a higher version",
            )

    def include(self, other: Tools) -> None:
        """Add the adapters of another set; its lifespan stays that of its own tools alone."""
        for adapter in other._adapters.values():
            self.register(adapter)
        if other is not self and other not in self._included:
            self._included.append(other)

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
            offers = list(_offers_in(found))
        except TypeError as error:
            raise _unusable(place, f"calling it without arguments failed ({error})") from error
        if not any(is_adapter(one) or one._adapters for one in offers):
            raise _unusable(place, "it holds no tool")
        for one in offers:
            if isinstance(one, Tools):
                self.include(one)
            else:
                self.register(one)

    def lookup(self, tool: str, version: int) -> Adapter | None:
        """Return the adapter that serves a row of that tool in that version, or None.

        That version's own adapter, else the nearest newer one that upgrades its arguments.
        """
        exact = self._adapters.get((tool, version))
        return exact if exact is not None else self._upgrading(tool, version)

    def _upgrading(self, tool: str, version: int) -> Adapter | None:
        newer = sorted(known for name, known in self._adapters if name == tool and known > version)
        for known in newer:
            adapter = self._adapters[tool, known]
            if _oldest_version(adapter) <= version:
                return adapter
        return None

    def latest(self, tool: str) -> Adapter | None:
        """Return the tool's adapter of the highest version, or None."""
        versions = [version for name, version in self._adapters if name == tool]
        return self._adapters[tool, max(versions)] if versions else None

    def contracts(self) -> list[ToolContract]:
        """Return every declaration, in order of tool and version."""
        return [self._adapters[key].contract for key in sorted(self._adapters)]

    def served(self) -> Mapping[tuple[str, int], ToolContract]:
        """Return each tool and version whose rows can be run here, and the declaration in force.

        Versions that are upgraded stand beside those that have an adapter of their own.
        """
        served: dict[tuple[str, int], ToolContract] = {}
        for tool, newest in sorted(self._adapters):
            oldest = _oldest_version(self._adapters[tool, newest])
            for version in range(oldest, newest + 1):
                served.setdefault((tool, version), self._adapters[tool, newest].contract)
        own = {key: adapter.contract for key, adapter in self._adapters.items()}
        return dict(sorted((served | own).items()))

    def with_lifespans(self) -> list[Tools]:
        """Return every set, this one first, that has a lifespan to be opened."""
        found = [self] if self.lifespan is not None else []
        for other in self._included:
            found += [one for one in other.with_lifespans() if one not in found]
        return found

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


def _oldest_version(adapter: Adapter) -> int:
    """Return the oldest version whose rows the adapter serves; most serve their own alone."""
    return int(getattr(adapter, "oldest_version", adapter.contract.version))


def upgraded_args(adapter: Adapter, args: Mapping[str, Any], version: int) -> Mapping[str, Any]:
    """Return stored arguments as the adapter's own version takes them. Raises what it raises."""
    upgrade: Callable[..., Mapping[str, Any]] | None = getattr(adapter, "upgraded", None)
    return args if upgrade is None else upgrade(args, version)


def _offers_in(found: Any) -> Iterable[Any]:
    """Yield the adapters and sets in an adapter, a list, a module, a set or a factory of these."""
    if is_adapter(found) or isinstance(found, Tools):
        return [found]
    if isinstance(found, list | tuple):
        return [item for item in found if is_adapter(item) or isinstance(item, Tools)]
    if isinstance(found, ModuleType):
        return _offers_in(list(vars(found).values()))
    if not callable(found):
        return []
    made = found()
    return [] if callable(made) and not is_adapter(made) else _offers_in(made)


def _unusable(place: str, problem: str) -> ConfigError:
    return ConfigError(
        f"No tools can be loaded from {place!r}: {problem}.",
        next_step="name a module with tools as package.module or package.module:attribute",
    )
