"""The first schema."""

from collections.abc import Callable

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None
kind = "expand"


def upgrade(run_sql: Callable[[str], None]) -> None:
    """Run the SQL file of this revision."""
    run_sql("0001_first.sql")
