"""Alembic's entry: joins the transaction that `shell.migrate` has opened and holds a lock in.

May import Alembic only; everything it needs comes through the configuration's attributes.
"""

from alembic import context

_given = context.config.attributes

context.configure(
    connection=_given["connection"],
    version_table=_given["version_table"],
    version_table_schema=_given["schema"],
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
