"""Builds the result consumer that RQ workers of the results queue run.

Part of the composition root; `planner.shell.consumer` finds `build_consumer` by its dotted name.
"""

from __future__ import annotations

import importlib

from ..outbox.errors import ConfigError
from ..planner.plan import Plan
from ..planner.shell.consumer import ResultConsumer
from .environment import running_services
from .logging import configure_logging
from .parts import build_parts
from .settings import load_settings


def load_plan(place: str | None) -> Plan:
    """Return the plan at `module:attribute`; an empty one for None. Raises ConfigError."""
    if place is None:
        return Plan()
    module_name, _, attribute = place.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), attribute or "plan")
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"no plan can be loaded from {place!r} ({type(error).__name__})",
            next_step="name it as package.module:attribute",
        ) from error
    if not isinstance(found, Plan):
        raise ConfigError(f"{place!r} is no Plan", next_step="name an ackbox.Plan instance")
    return found


def build_consumer() -> ResultConsumer:
    """Build this process's consumer from its settings. Raises AckboxError where it cannot."""
    settings = running_services(load_settings())
    configure_logging(settings.log_level, settings.log_format)
    parts = build_parts(settings, name="ackbox consumer")
    return ResultConsumer(parts.database, load_plan(settings.plan), limits=parts.limits)
