"""Months of the event log: a partition for this month and for two ahead; the rest has a DEFAULT.

May import SQLAlchemy. The reaper calls it in its pass; it may run in any number of places at once.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Connection, text

from .connection import quoted

MONTHS_AHEAD = 2


def ensure_event_partitions(connection: Connection, schema: str, now: datetime) -> list[str]:
    """Create the partitions that are missing; return their names, empty where nothing was to do.

    A month whose events already lie in the DEFAULT partition stays there: moving them would lock
    the log. Creating is one short lock on the (empty) DEFAULT partition, never on the log itself.
    """
    months = [_month(now, ahead) for ahead in range(MONTHS_AHEAD + 1)]
    if not _missing(connection, schema, months):
        return []
    connection.execute(
        text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"),
        {"name": f"ackbox partitions {schema}"},
    )
    # Asked again under the lock: the other one may have made them meanwhile.
    missing = _missing(connection, schema, months)
    return [name for start in missing if (name := _create(connection, schema, start))]


def _month(now: datetime, ahead: int) -> datetime:
    """Return the first moment (UTC) of the month that lies `ahead` months after `now`'s."""
    utc = now.astimezone(UTC)
    number = utc.year * 12 + utc.month - 1 + ahead
    return datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)


def _name(start: datetime) -> str:
    return f"event_{start:%Y_%m}"


def _missing(connection: Connection, schema: str, months: list[datetime]) -> list[datetime]:
    found = connection.scalars(
        text(
            "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = :schema AND c.relname = ANY (:names)"
        ),
        {"schema": schema, "names": [_name(start) for start in months]},
    )
    present = set(found)
    return [start for start in months if _name(start) not in present]


def _create(connection: Connection, schema: str, start: datetime) -> str | None:
    """Attach one month, unless the DEFAULT partition holds events of it."""
    space, end = quoted(schema), _month(start, 1)
    bounds = f"FROM ('{start.isoformat()}') TO ('{end.isoformat()}')"
    # Taken before the look at it, so that no event of the month slips in between.
    _script(connection, f"LOCK TABLE {space}.event_rest IN ACCESS EXCLUSIVE MODE")
    in_rest = _script(
        connection,
        f"SELECT 1 FROM {space}.event_rest WHERE at >= '{start.isoformat()}'"
        f" AND at < '{end.isoformat()}' LIMIT 1",
    )
    if in_rest:
        return None
    name = _name(start)
    # LIKE and ATTACH instead of PARTITION OF, which would lock the whole log.
    _script(
        connection,
        f"CREATE TABLE {space}.{name} (LIKE {space}.event INCLUDING CONSTRAINTS)",
    )
    _script(
        connection,
        f"ALTER TABLE {space}.event ATTACH PARTITION {space}.{name} FOR VALUES {bounds}",
    )
    return name


def _script(connection: Connection, statement: str) -> bool:
    """Run a statement whose names are quoted already; return whether it gave a row."""
    result = connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
    return result.returns_rows and result.first() is not None
