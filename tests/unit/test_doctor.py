"""What doctor concludes from a server's settings, fact by fact."""

from typing import Any

import pytest

from ackbox.app.doctor import FAIL, OK, WARN
from ackbox.app.doctor.postgres import judge
from ackbox.outbox.defaults import DEFAULTS

SAFE: dict[str, Any] = {
    "version_number": 170_004,
    "version": "17.4 (Debian)",
    "role": "app",
    "in_recovery": False,
    "read_only": "off",
    "synchronous_commit": "on",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_standby_names": "",
    "standbys": 0,
    "statement_timeout": "10s",
    "lock_timeout": "500ms",
    "idle_in_transaction": "10s",
    "idle_session": "0",
    "transaction_limit": "0",
}


def levels(off_seconds: float = 0.01, **changed: Any) -> dict[str, tuple[str, str]]:
    """Return level and next step by check."""
    found = judge({**SAFE, **changed}, off_seconds, DEFAULTS)
    return {one.check: (one.level, one.next_step) for one in found}


def test_a_safe_server_has_nothing_to_mend() -> None:
    """Every line is ok, and none asks for anything."""
    assert {level for level, _ in levels().values()} == {OK}
    assert {step for _, step in levels().values()} == {""}


@pytest.mark.parametrize(
    ("changed", "check", "level", "step"),
    [
        ({"version_number": 130_009}, "postgres_version", FAIL, "use PostgreSQL 14 or newer"),
        ({"in_recovery": True}, "writable", FAIL, "point database_url at the primary"),
        ({"read_only": "on"}, "writable", FAIL, "ALTER ROLE app SET default_transaction_read_only"),
        ({"synchronous_commit": "off"}, "synchronous_commit", FAIL,
         "ALTER ROLE app SET synchronous_commit = on"),
        ({"fsync": "off"}, "fsync", FAIL, "ALTER SYSTEM SET fsync = on"),
        ({"full_page_writes": "off"}, "full_page_writes", FAIL, "ALTER SYSTEM SET full_page"),
        ({"standbys": 2}, "standbys", WARN, "ALTER SYSTEM SET synchronous_standby_names"),
        ({"standbys": 2, "synchronous_standby_names": "*", "synchronous_commit": "local"},
         "standbys", WARN, "ALTER ROLE app SET synchronous_commit = on"),
        ({"standbys": 2, "synchronous_standby_names": "*"}, "standbys", OK, ""),
        ({"statement_timeout": "0"}, "session_limits", FAIL, 'ALTER ROLE "app" SET statement_'),
        ({"idle_session": "5min"}, "idle_session_timeout", WARN,
         "ALTER ROLE app SET idle_session_timeout = 0"),
        ({"transaction_limit": "1s"}, "transaction_timeout", WARN, "ALTER ROLE app SET trans"),
        ({"synchronous_commit": "off", "role": "Odd Name"}, "synchronous_commit", FAIL,
         'ALTER ROLE "Odd Name" SET'),
    ],
)  # fmt: skip
def test_what_is_off_is_named_with_what_to_type(
    changed: dict[str, Any], check: str, level: str, step: str
) -> None:
    """Each protection that is off has its own line."""
    found = levels(**changed)
    assert found[check][0] == level
    assert found[check][1].startswith(step)


def test_clocks_that_disagree_are_a_warning() -> None:
    """The database's clock decides, so that a gap only confuses logs."""
    assert levels(off_seconds=300)["clock"][0] == WARN
    assert levels(off_seconds=4)["clock"][0] == OK


def test_nothing_is_called_durable_while_something_is_off() -> None:
    """The line of praise is left out together with its reason."""
    for name in ("fsync", "full_page_writes", "synchronous_commit"):
        changed: dict[str, Any] = {name: "off"}
        assert "durable" not in levels(**changed)
