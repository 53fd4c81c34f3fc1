"""The schema's history, run by Alembic out of the installed package (see `shell.migrate`)."""
