"""The words for a transaction-mode pooler in front of PostgreSQL: declared, and not declared.

Such a pooler lends a server's session for one transaction. What a session is told or prepares is
then somebody else's at the next statement. Pure.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from .errors import ConfigError

Pooler: TypeAlias = Literal["transaction"]
TRANSACTION: Pooler = "transaction"
POOLER_VARIABLE = "ACKBOX_DATABASE_POOLER"
_DIRECT_NAME = "ACKBOX_DATABASE_DIRECT_URL"
DECLARE_STEP = (
    f"set {POOLER_VARIABLE}={TRANSACTION}, and {_DIRECT_NAME} to a URL past the pooler; "
    "in code, pooler=True"
)
DIRECT_STEP = f"set {_DIRECT_NAME} to a URL of the same database past the pooler"


class UndeclaredPooler(ConfigError):
    """A transaction-mode pooler stands in between, and no setting says so."""

    default_code = "undeclared_pooler"

    @classmethod
    def noticed(cls, how: str) -> UndeclaredPooler:
        """Return the error; `how` says by what the pooler was noticed."""
        what = f"a transaction-mode pooler stands in between and is not declared ({how})"
        return cls(what, next_step=DECLARE_STEP)


def no_session() -> ConfigError:
    """Return the error for what needs a session where the only URL known leads to a pooler."""
    return ConfigError(
        "LISTEN and migrations need a session of their own, and the only URL leads to a pooler",
        next_step=DIRECT_STEP,
    )
