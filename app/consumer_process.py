"""Loads a plan, and builds the result consumer that RQ workers of the results queue run.

Part of the composition root; `planner.shell.consumer` finds `build_consumer` by its dotted name.
"""

from __future__ import annotations

import importlib
from types import ModuleType

import structlog
from sqlalchemy.exc import SQLAlchemyError

from ..outbox.errors import AckboxError, ConfigError
from ..outbox.shell.fault_points import FaultPoints
from ..planner.plan import Plan
from ..planner.shell.consumer import ResultConsumer
from .environment import running_services
from .logging import configure_logging
from .parts import Parts, build_parts
from .settings import load_settings

_log = structlog.get_logger(__name__)
_STEP = "name it as package.module:attribute"


def load_plan(place: str | None) -> Plan:
    """Return the plan at `module:attribute`; an empty one for None.

    Raises ConfigError where there is no such module, attribute or Plan. What the module itself
    raises passes: `loading` tells it with its place.
    """
    if place is None:
        return Plan()
    module_name, _, attribute = place.partition(":")
    module = _module(module_name, place)
    found = getattr(module, attribute or "plan", None)
    if isinstance(found, Plan):
        return found
    plans = [name for name, value in vars(module).items() if isinstance(value, Plan)]
    what = "is no ackbox.Plan" if found is not None else "does not exist"
    step = f"name one of its plans: {', '.join(sorted(plans))}" if plans else _STEP
    raise ConfigError(f"the plan {place!r} {what}", next_step=step)


def _module(name: str, place: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise ConfigError(
            f"the plan {place!r} cannot be loaded: there is no module {error.name!r}",
            next_step="start it in the folder of the module, or install the package",
        ) from error


def warn_of_unknown_tools(parts: Parts, plan: Plan) -> None:
    """Log which tools of a plan no worker has ever had: a slip of the pen, or not deployed yet.

    Nothing waits for the answer: where the database is silent, nothing is said.
    """
    if not plan.callbacks.tools:
        return
    statement, limits = parts.statements.named("declared_tools")
    try:
        rows = parts.database.run(
            lambda c: c.execute(statement, {**limits, "tool": None}).mappings().all(), attempts=1
        )
    except (AckboxError, SQLAlchemyError):
        return
    known = {row["tool"] for row in rows} | {one.tool for one in parts.registry.contracts()}
    if unknown := sorted(plan.callbacks.tools - known):
        _log.warning("plan_names_unknown_tools", tools=unknown)


def build_consumer() -> ResultConsumer:
    """Build this process's consumer from its settings. Raises AckboxError where it cannot."""
    settings = running_services(load_settings())
    configure_logging(settings.log_level, settings.log_format)
    parts = build_parts(settings, name="ackbox consumer")
    plan = load_plan(settings.plan)
    warn_of_unknown_tools(parts, plan)
    faults = FaultPoints.from_environment()
    return ResultConsumer(parts.database, plan, limits=parts.limits, faults=faults)
