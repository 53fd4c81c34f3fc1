"""The fixtures of ackbox for pytest, opt-in: `pytest_plugins = ["ackbox.testing.pytest_plugin"]`.

Servers start with the first test that asks for one. Every fixture's name begins with `ackbox_`.
"""

from ..app.testing.fixtures import (
    MakeBus,
    ackbox_bus,
    ackbox_database_url,
    ackbox_memory_bus,
    ackbox_redis_url,
    ackbox_server_url,
    ackbox_services,
)
from ..app.testing.real_bus import EmbeddedBus

__all__ = [
    "EmbeddedBus",
    "MakeBus",
    "ackbox_bus",
    "ackbox_database_url",
    "ackbox_memory_bus",
    "ackbox_redis_url",
    "ackbox_server_url",
    "ackbox_services",
]
