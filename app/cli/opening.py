"""Opens the outbox that a command works on, and refuses one that it does not fit.

Decides that only `up` and `demo` keep servers running (others borrow those that stand there), and
that a database is asked for its schema first. Heavy imports stand inside the functions.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ...outbox.errors import ConfigError, StoreUnavailable
from .command import QuietCommand
from .options import given_settings

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping

    from ...outbox.defaults import Limits
    from ...outbox.shell.database import Database
    from ...outbox.shell.statements import Statements
    from ...planner.shell.planner import Planner
    from ..settings import Settings

T = TypeVar("T")
FIRST_TRIES = 2
DEFAULT = "default"
"""The source of a setting that nobody gave; spelt out, since the settings are slow to import."""


@dataclass(frozen=True)
class Opened:
    """One outbox, ready to be asked."""

    settings: Settings
    limits: Limits
    statements: Statements
    database: Database

    def run(self, work: Callable[[Connection], T]) -> T:
        """Run work in one transaction."""
        return self.database.run(work)

    def rows(self, name: str, values: Mapping[str, Any] | None = None) -> list[RowMapping]:
        """Run one named statement."""
        statement, limits = self.statements.named(name)
        return self.run(
            lambda c: list(c.execute(statement, {**limits, **(values or {})}).mappings())
        )

    @contextmanager
    def planner(self, namespace: str) -> Iterator[Planner]:
        """Give a planner of this outbox, which rings through Redis where there is one."""
        from ...outbox.shell.redis_bus import TokenBus
        from ...planner.shell.planner import Planner

        url = self.settings.redis_url
        bus = TokenBus(url.reveal(), self.settings.outbox) if url else None
        with Planner(self.database, limits=self.limits, namespace=namespace, bus=bus) as planner:
            yield planner


def importable_here() -> None:
    """Let tools be named by modules of this folder: a console script looks beside itself only.

    Behind everything else, so that a file here hides no library.
    """
    with suppress(FileNotFoundError):
        here = os.getcwd()
        if here not in sys.path:
            sys.path.append(here)


def settings_of(params: Mapping[str, Any], *, attach: bool = True) -> Settings:
    """Read the settings of a command; with the URLs of a running `ackbox up` where unset."""
    from ..environment import running_services
    from ..settings import load_settings

    importable_here()
    settings = load_settings(given_settings(params), params.get("config_file"))
    _log_as(settings)
    return running_services(settings) if attach else settings


def _log_as(settings: Settings) -> None:
    """Log as the settings say; a person who asks once wants the answer, unless they say so."""
    asked = settings.source_of("log_level") != DEFAULT
    context = click.get_current_context(silent=True)
    if not asked and isinstance(context and context.command, QuietCommand):
        logging.getLogger().handlers[:] = [logging.NullHandler()]
        return
    from ..logging import configure_logging

    configure_logging(settings.log_level if asked else "warning", settings.log_format)


@contextmanager
def opened(params: Mapping[str, Any]) -> Iterator[Opened]:
    """Open the outbox of a command's settings. Raises AckboxError where that cannot be."""
    from ...outbox.shell.statements import Statements
    from ..environment import borrowed_services
    from ..stores import checked_limits, own_database

    with borrowed_services(settings_of(params, attach=False)) as settings:
        limits = checked_limits(settings)
        database = own_database(settings, "ackbox cli", 2)
        try:
            require_schema(settings, limits, database)
            yield Opened(settings, limits, Statements(settings.schema_name, limits), database)
        finally:
            database.dispose()


def require_schema(settings: Settings, limits: Limits, database: Database) -> None:
    """Raise ConfigError unless the schema is this version's and this outbox's.

    Raises StoreUnavailable, naming the setting, where the database does not answer.
    """
    from ...outbox.shell.migrate import check
    from ...outbox.shell.statements import Statements

    statement, _ = Statements(settings.schema_name, limits).named("outbox_name")

    def look(connection: Connection) -> str | None:
        check(connection, settings.schema_name)
        found: str | None = connection.scalar(statement)
        return found

    with reached(settings):
        owner = database.run(look, attempts=FIRST_TRIES)
    if owner != settings.outbox:
        raise ConfigError(
            f"schema {settings.schema_name!r} belongs to the outbox {owner!r}, "
            f"not to {settings.outbox!r}",
            next_step="set ACKBOX_OUTBOX or ACKBOX_SCHEMA, then: ackbox config",
            code="other_outbox",
        )


@contextmanager
def reached(settings: Settings) -> Iterator[None]:
    """Say of a database that does not answer which it is, and where its URL came from."""
    try:
        yield
    except StoreUnavailable as error:
        source = settings.source_of("database_url")
        found = "the running ackbox up" if source == DEFAULT else source
        raise StoreUnavailable(
            f"{error.what}; database {settings.database_url} (from {found})",
            effect_may_exist="Nothing was changed; what is stored stays as it is.",
            next_step="start that server or correct database_url, then: ackbox doctor",
        ) from error
