"""Migrate an outbox from an application's own migrations, in their transaction.

`upgrade(op.get_bind())` in a revision of the application's Alembic does what `ackbox migrate` does.
"""

from .outbox.shell.migrate import Step, head
from .outbox.shell.migrate import plan_in as plan
from .outbox.shell.migrate import upgrade_in as upgrade

__all__ = ["Step", "head", "plan", "upgrade"]
