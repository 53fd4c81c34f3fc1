"""Which servers a command works on: those that settings name, else the embedded ones.

A library call never starts a server. Commands beside a running `ackbox up` of the same data
directory attach to its servers; only `up` and `demo` start them. What they need is imported where
they are looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .settings import Settings, load_settings
from .urls import SecretUrl, database_url, redis_url

if TYPE_CHECKING:
    from .embedded import EmbeddedServices


def needs_embedded(settings: Settings) -> bool:
    """Return whether the settings leave it to us to find or start a database.

    Named PostgreSQL without Redis is left as it is: planners and polls need none.
    """
    return settings.database_url is None


def running_services(settings: Settings) -> Settings:
    """Return the settings with the URLs of running embedded servers where theirs are unset.

    Where nothing runs they stay unset: whoever needs them says so.
    """
    if not needs_embedded(settings):
        return settings
    from .embedded import EmbeddedServices

    services = EmbeddedServices.attach(settings.data_dir)
    return settings if services is None else _with_urls(settings, services)


def running_database_url() -> str | None:
    """Return the URL of the embedded database that runs for this folder's data directory.

    What a planner without a URL attaches to; found by its dotted name. Never starts a server.
    """
    from .embedded import EmbeddedServices

    services = EmbeddedServices.attach(load_settings().data_dir)
    return None if services is None else services.database_url


@contextmanager
def borrowed_services(settings: Settings) -> Iterator[Settings]:
    """Yield the settings with the URLs of the data directory's embedded servers.

    Servers that stand there and do not run are started for the length of the block only, so that
    what a demo or an earlier `up` has left can be asked about. Nothing is ever created: where no
    server was started before, the URLs stay unset.
    """
    found = running_services(settings)
    if not needs_embedded(found):
        yield found
        return
    from .embedded import EmbeddedServices

    if not EmbeddedServices.exist(settings.data_dir):
        yield found
        return
    with EmbeddedServices.start_or_attach(settings.data_dir) as services:
        yield _with_urls(settings, services)


@contextmanager
def started_services(settings: Settings) -> Iterator[tuple[Settings, EmbeddedServices | None]]:
    """Start (or attach to) embedded servers for what the settings leave unset; stop them after.

    Yields the settings with every URL set. Raises ConfigError where a server cannot be started.
    """
    if not needs_embedded(settings):
        yield settings, None
        return
    from .embedded import EmbeddedServices

    with EmbeddedServices.start_or_attach(settings.data_dir) as services:
        yield _with_urls(settings, services), services


def _with_urls(settings: Settings, services: EmbeddedServices) -> Settings:
    update: dict[str, SecretUrl | None] = {}
    if settings.database_url is None:
        # No pooler stands before a server of our own, whatever is declared for others.
        update |= {"database_url": database_url(services.database_url), "database_pooler": None}
    if settings.redis_url is None:
        update["redis_url"] = redis_url(services.redis_url)
    return settings.model_copy(update=update)
