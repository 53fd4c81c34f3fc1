"""Connection URLs as settings: checked, normalised, and never shown with their password.

May import SQLAlchemy and redis for their own idea of a URL, where one is named: both are slow to
import. Opens no connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

DRIVER = "postgresql+psycopg"
_POSTGRES_SCHEMES = {"postgres", "postgresql", DRIVER}
_REDIS_SCHEMES = {"redis", "rediss", "unix"}
_HIDDEN = "***"


class SecretUrl:
    """A connection URL whose text forms hide the password; `reveal` gives the real one."""

    __slots__ = ("_shown", "_url")

    def __init__(self, url: str, shown: str) -> None:
        self._url = url
        self._shown = shown

    def reveal(self) -> str:
        """Return the URL with its password, for a driver only."""
        return self._url

    def __str__(self) -> str:
        """Return the URL without its password."""
        return self._shown

    def __repr__(self) -> str:
        """Return the URL without its password."""
        return f"SecretUrl({self._shown!r})"

    def __eq__(self, other: object) -> bool:
        """Compare what is revealed."""
        return isinstance(other, SecretUrl) and other._url == self._url

    def __hash__(self) -> int:
        """Hash what is revealed."""
        return hash(self._url)


def database_url(text: str | SecretUrl) -> SecretUrl:
    """Check a PostgreSQL URL and name the driver that ackbox uses; ValueError says what is wrong.

    No message repeats any part of the URL but its scheme.
    """
    if isinstance(text, SecretUrl):
        return text
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise ValueError("not a URL like postgresql://user@host:5432/database") from None
    if url.drivername not in _POSTGRES_SCHEMES:
        raise ValueError(f"scheme {url.drivername!r} is not postgresql (or {DRIVER})")
    if not url.database:
        raise ValueError("the URL names no database: postgresql://user@host:5432/database")
    return _secret(url.set(drivername=DRIVER))


def redis_url(text: str | SecretUrl) -> SecretUrl:
    """Check a Redis or Valkey URL; ValueError says what is wrong and repeats its scheme only."""
    if isinstance(text, SecretUrl):
        return text
    scheme = text.partition("://")[0] if "://" in text else ""
    if scheme not in _REDIS_SCHEMES:
        raise ValueError("not a URL like redis://host:6379/0 (or rediss://, unix://)")
    try:
        _check_redis(text)
        shown = _without_password(text)
    except ValueError:
        raise ValueError("not a URL like redis://host:6379/0: port or database number") from None
    return SecretUrl(text, shown)


def _check_redis(text: str) -> None:
    """Raise ValueError for what the client could not take; only its options ask the client."""
    parts = urlsplit(text)
    if parts.scheme != "unix":
        _ = parts.port
        int(parts.path.strip("/") or 0)
    if parts.query:
        from redis.connection import parse_url

        parse_url(text)  # type: ignore[no-untyped-call]


def _secret(url: URL) -> SecretUrl:
    # Some drivers take the password as a query argument as well.
    shown = url.update_query_dict({"password": _HIDDEN}) if "password" in url.query else url
    return SecretUrl(url.render_as_string(hide_password=False), shown.render_as_string())


def _without_password(text: str) -> str:
    parts = urlsplit(text)
    account, at, host = parts.netloc.rpartition("@")
    user, colon, _ = account.partition(":")
    netloc = f"{user}{colon}{_HIDDEN if colon else ''}{at}{host}"
    query = f"?{_HIDDEN}" if parts.query else ""
    return f"{parts.scheme}://{netloc}{parts.path}{query}"


def revealed(url: SecretUrl | None) -> str:
    """Return a URL with its password, for a run that has all its URLs before anything starts."""
    assert url is not None, "services have been started"
    return url.reveal()
