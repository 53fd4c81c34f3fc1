"""The schema's history in Alembic's form, run out of the installed package (`shell.migrate`).

There is no `env.py`: an environment is a module-wide state of Alembic, and an application that
migrates us from its own migration already has one.
"""
