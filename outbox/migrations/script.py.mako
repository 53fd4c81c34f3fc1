"""${message}: one sentence on what it adds. Expand first, contract one release later."""

from alembic import context

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run the SQL file of this revision."""
    context.config.attributes["run_sql"]("${up_revision}_name.sql")
