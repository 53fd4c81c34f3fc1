"""The first schema."""

from alembic import context

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run the SQL file of this revision."""
    context.config.attributes["run_sql"]("0001_first.sql")
