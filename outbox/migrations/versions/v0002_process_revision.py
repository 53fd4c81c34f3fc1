"""Heartbeat rows say which ackbox their process runs."""

from collections.abc import Callable

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade(run_sql: Callable[[str], None]) -> None:
    """Run the SQL file of this revision."""
    run_sql("0002_process_revision.sql")
