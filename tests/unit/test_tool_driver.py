"""What the worker's log says of an adapter whose code raises: enough to find it, and no value."""

from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from ackbox.outbox.commands import Claimed
from ackbox.outbox.defaults import DEFAULTS
from ackbox.tool_adapters.function import tool
from ackbox.tool_adapters.registry import Tools
from ackbox.workers.commands import Build, Raised
from ackbox.workers.shell.tool_driver import ToolDriver

SECRET = "hunter2"


@tool("typed")
def typed(call: Any, *, number: int) -> None:
    """Take one argument."""


@tool("upgraded", version=2, upgrade=lambda args, from_version: args[SECRET])
def upgraded(call: Any, *, number: int) -> None:
    """Have an upgrade that raises an error which quotes what it looked for."""


@pytest.fixture
def driver() -> Iterator[ToolDriver]:
    """Give a driver that knows both tools."""
    made = ToolDriver(Tools(typed, upgraded), DEFAULTS)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("name", "args", "error", "where"),
    [
        ("typed", {"number": SECRET}, "InvalidIntent", "number"),
        ("upgraded", {}, "KeyError", "test_tool_driver.py:"),
    ],
)
def test_an_adapter_that_raises_is_named_in_the_log(
    driver: ToolDriver, name: str, args: dict[str, Any], error: str, where: str
) -> None:
    """Tool, intent, method, type, and the path of the argument or the place of the raise."""
    claim = Claimed(1, "default", "r:s", 0, 1, name, 1, "default", args)
    with capture_logs() as logs:
        answer = driver.answer(Build(claim), driver.timing(), lambda evidence: None)
    assert isinstance(answer, Raised)
    (said,) = logs
    assert (said["event"], said["tool"], said["method"]) == ("adapter_raised", name, "build")
    assert (said["intent_id"], said["error"]) == ("r:s", error)
    assert where in said["where"]
    assert SECRET not in str(logs)
