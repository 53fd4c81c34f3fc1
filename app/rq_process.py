"""One worker process of a pool: our RQ worker class over the queues that the settings name.

`python -m ackbox.app.rq_process` is what pools start. Everything comes from `ACKBOX_*`, since the
process inherits nothing else. Part of the composition root.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..outbox.errors import AckboxError, ConfigError
from .environment import running_services
from .logging import configure_logging
from .settings import PREFIX, Settings, load_settings

if TYPE_CHECKING:
    from ..workers.shell.rq_worker import AckboxWorker

ENVIRONMENT_EXIT = 7
COMMAND = (sys.executable, "-m", "ackbox.app.rq_process")


def child_environ(settings: Settings) -> dict[str, str]:
    """Return the environment under which a child reads exactly these settings."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith(PREFIX) or _is_kept(k)}
    for name, value in _written(settings).items():
        environ[PREFIX + name.upper()] = value
    environ.setdefault("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    environ["ACKBOX_TERM_GRACE_SECONDS"] = str(_grace_seconds(settings))
    return environ


def _is_kept(name: str) -> bool:
    return name in ("ACKBOX_FAULT_PLAN", "ACKBOX_DRAINER", "ACKBOX_TERM_GRACE_SECONDS")


def _grace_seconds(settings: Settings) -> float:
    from .stores import checked_limits

    return checked_limits(settings).term_grace_seconds


def _written(settings: Settings) -> Mapping[str, str]:
    values = {name: shown for name, shown, _ in settings.in_force() if shown}
    for name in ("database_url", "database_direct_url", "redis_url"):
        secret = getattr(settings, name)
        if secret is not None:
            values[name] = secret.reveal()
    return values


def build_worker(settings: Settings) -> AckboxWorker:
    """Return the RQ worker of these settings. Raises ConfigError without a Redis URL."""
    from redis import Redis

    from ..outbox.shell.redis_bus import queue_name
    from ..workers.shell.rq_worker import AckboxWorker
    from .parts import build_parts
    from .worker_process import worker_lanes

    if settings.redis_url is None:
        raise ConfigError(
            "a worker needs Redis and none is configured",
            next_step="set ACKBOX_REDIS_URL, or start ackbox up in this folder",
        )
    queues = [queue_name(lane, settings.outbox) for lane in worker_lanes(build_parts(settings))]
    return AckboxWorker(queues, connection=Redis.from_url(settings.redis_url.reveal()))


def main() -> int:
    """Run until told to stop; 7 where the environment does not allow it."""
    try:
        settings = running_services(load_settings())
        configure_logging(settings.log_level, settings.log_format)
        build_worker(settings).work(logging_level=settings.log_level.upper())
    except AckboxError as error:
        sys.stderr.write(f"{error}\n")
        return ENVIRONMENT_EXIT
    return 0


if __name__ == "__main__":
    sys.exit(main())
