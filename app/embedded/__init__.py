"""Real PostgreSQL and Valkey without an installation, for the demo, `up` and tests.

This package decides where the servers' files stand, under which account they run, who stops
them, and when a running server is believed. Nothing here is used where the settings name
servers of one's own. The servers' wheels exist for Linux and macOS.
"""

from .postgres import PostgresServer
from .services import DEFAULT_DATA_DIR, EmbeddedServices
from .valkey import ValkeyServer

__all__ = ["DEFAULT_DATA_DIR", "EmbeddedServices", "PostgresServer", "ValkeyServer"]
