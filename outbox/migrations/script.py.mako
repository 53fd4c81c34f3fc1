"""${message}: one sentence on what it adds. Expand first, contract one release later."""

from collections.abc import Callable

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None
# "contract" where a process of the release before cannot go on with the result; such a revision
# also names the oldest one that can: works_from = "NNNN".
kind = "expand"


def upgrade(run_sql: Callable[[str], None]) -> None:
    """Run the SQL file of this revision."""
    run_sql("${up_revision}_name.sql")
