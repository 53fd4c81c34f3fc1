"""The work list of on_told callbacks, written by triggers on the event log."""

from collections.abc import Callable

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade(run_sql: Callable[[str], None]) -> None:
    """Run the SQL file of this revision."""
    run_sql("0003_to_tell.sql")
