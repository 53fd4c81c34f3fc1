"""Test an application of ackbox: a bus in memory, what a transaction has put, fixtures.

Importing it starts nothing. The fixtures are opt-in: `pytest_plugins =
["ackbox.testing.pytest_plugin"]` in a conftest.
"""

from ..app.testing.answers import HttpAnswer
from ..app.testing.bus import MemoryBus
from ..app.testing.ledger import Effect
from ..app.testing.people import People
from ..app.testing.puts import Put, puts

__all__ = ["Effect", "HttpAnswer", "MemoryBus", "People", "Put", "puts"]
