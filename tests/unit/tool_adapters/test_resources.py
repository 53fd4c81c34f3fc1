"""Lifespans: opened once per process before the first call, found by type, closed at its end."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.errors import ConfigError
from ackbox.tool_adapters.contract import Call, Evidence, RaisedError, Returned
from ackbox.tool_adapters.function import FunctionTool, tool
from ackbox.tool_adapters.registry import Lifespan, Tools
from ackbox.tool_adapters.shell.event_loop import ToolLoop
from ackbox.tool_adapters.shell.function_transport import FunctionTransport
from ackbox.tool_adapters.shell.resources import Resources, by_type
from ackbox.tool_adapters.tool_call import ToolCall
from ackbox.workers.shell.tool_driver import ToolDriver

from ...support.waiting import wait_until

WAIT_SECONDS = 60.0
pytestmark = pytest.mark.filterwarnings("error")


class Client:
    """Something to be shared, which knows whether and where it is open."""

    def __init__(self) -> None:
        self.open = False
        self.loop: Any = None
        self.task: Any = None

    def __enter__(self) -> "Client":
        self.open = True
        return self

    def __exit__(self, *_error: object) -> None:
        self.open = False


class AsyncClient(Client):
    """The same, for one loop."""

    async def __aenter__(self) -> "AsyncClient":
        self.open, self.loop = True, asyncio.get_running_loop()
        self.task = asyncio.current_task()
        return self

    async def __aexit__(self, *_error: object) -> None:
        assert asyncio.current_task() is self.task
        self.open = False


made: list[Client] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    made.clear()


def _new(kind: type[Client]) -> Any:
    made.append(kind())
    return made[-1]


def generator() -> Iterator[Client]:
    with _new(Client) as client:
        yield client


async def async_generator() -> AsyncIterator[AsyncClient]:
    async with _new(AsyncClient) as client:
        yield client


@tool("t")
def plain(call: ToolCall) -> str:
    """Say what it found."""
    found = call.resource(Client)
    return f"{type(found).__name__} open={found.open}"


@tool("a")
async def awaited(call: ToolCall) -> bool:
    """Say whether the client belongs to the loop that it runs on."""
    client = call.resource(AsyncClient)
    return client.open and client.loop is asyncio.get_running_loop()


def run(adapter: FunctionTool, tools: Tools, resources: Resources, loop: ToolLoop) -> Evidence:
    """Call a tool once."""
    transport = FunctionTransport(tools.lookup, loop, resources.finder)
    call = Call("ns", "i", 0, adapter.contract.tool, 1, "i", {}, sends=1)
    return transport.exchange(adapter.encode(call, None), send_by_boottime=None, limit_seconds=20)


@pytest.fixture
def loop() -> Iterator[ToolLoop]:
    loop = ToolLoop()
    yield loop
    loop.close()


@pytest.mark.parametrize(
    ("lifespan", "kind"),
    [
        (generator, "Client"),
        (contextmanager(generator), "Client"),
        (lambda: _new(Client), "Client"),
        (async_generator, "AsyncClient"),
        (asynccontextmanager(async_generator), "AsyncClient"),
        (lambda: _new(AsyncClient), "AsyncClient"),
    ],
)
def test_every_kind_of_lifespan_opens_once_and_closes(
    lifespan: Lifespan, kind: str, loop: ToolLoop
) -> None:
    """Sync or async, generator or context manager; a base class finds it too."""
    tools = Tools(plain, lifespan=lifespan)
    resources = Resources(tools, loop)
    for _ in range(2):
        assert run(plain, tools, resources, loop) == Returned(f"{kind} open=True")
    resources.close()
    assert [client.open for client in made] == [False]


def test_an_async_resource_lives_on_the_loop_of_the_tools(loop: ToolLoop) -> None:
    """And is closed by the task that opened it, as cancel scopes ask for."""
    tools = Tools(awaited, lifespan=async_generator)
    resources = Resources(tools, loop)
    assert run(awaited, tools, resources, loop) == Returned(True)
    resources.close()
    assert made[0].open is False


def test_what_a_lifespan_yields_is_found_by_type() -> None:
    """One object, several, or a mapping that names the types itself."""
    client, other = Client(), AsyncClient()
    assert by_type(None) == {}
    assert by_type(client) == {Client: client}
    assert by_type([client, other]) == {Client: client, AsyncClient: other}
    assert by_type({Client: other}) == {Client: other}
    assert by_type({"name": client}) == {dict: {"name": client}}
    with pytest.raises(TypeError, match="two objects of one type"):
        by_type([client, Client()])


def test_each_set_of_tools_has_its_own(loop: ToolLoop) -> None:
    """A process with several sets opens each lifespan, and no tool sees another set's."""

    @tool("other")
    def stranger(call: ToolCall) -> Any:
        return call.resource(Client)

    first, second = Tools(plain, lifespan=generator), Tools(stranger, lifespan=lambda: _new(Client))
    everything = Tools()
    everything.include(first)
    everything.include(second)
    everything.include(first)
    resources = Resources(everything, loop)
    assert len(made) == 2
    assert run(stranger, everything, resources, loop) == Returned(made[1])
    resources.close()
    without = Resources(Tools(plain), loop)
    evidence = run(plain, Tools(plain), without, loop)
    assert isinstance(evidence, RaisedError)
    assert evidence.error_type == "ConfigError"


def _fails() -> Iterator[Client]:
    raise OSError("password in here")
    yield Client()


async def _fails_async() -> AsyncIterator[Client]:
    raise OSError("password in here")
    yield Client()


async def _times_out() -> AsyncIterator[Client]:
    raise TimeoutError
    yield Client()


@pytest.mark.parametrize(
    ("lifespan", "error"),
    [
        (_fails, "OSError at test_resources.py:"),
        (_fails_async, "OSError at test_resources.py:"),
        (_times_out, "TimeoutError"),
        (lambda: 7, "TypeError at resources.py:"),
    ],
)
def test_one_that_cannot_be_opened_is_named(lifespan: Lifespan, error: str, loop: ToolLoop) -> None:
    """With the place and without the message; what was opened before is closed again."""
    tools = Tools(plain, lifespan=generator)
    tools.include(Tools(awaited, lifespan=lifespan))
    with pytest.raises(ConfigError, match=r"the lifespan .*test_resources\..*") as raised:
        Resources(tools, loop)
    assert raised.value.code == "lifespan_failed"
    assert error in raised.value.what
    assert "password" not in str(raised.value)
    assert made[0].open is False


def test_a_failing_end_is_logged_and_stops_no_other(loop: ToolLoop) -> None:
    """The last one opened is closed first."""

    def bad_end() -> Iterator[Client]:
        yield Client()
        raise OSError("secret")

    tools = Tools(plain, lifespan=generator)
    tools.include(Tools(awaited, lifespan=bad_end))
    resources = Resources(tools, loop)
    with capture_logs() as logs:
        resources.close()
    assert made[0].open is False
    assert [one["event"] for one in logs] == ["lifespan_not_closed"]
    assert "secret" not in repr(logs)


def test_a_lifespan_that_ends_by_itself_is_told(loop: ToolLoop) -> None:
    """A background task of it that fails takes it along: its objects are dead."""
    fail = threading.Event()

    async def with_background() -> AsyncIterator[Client]:
        async def work() -> None:
            while not fail.is_set():
                await asyncio.sleep(0.01)
            raise OSError("secret")

        async with asyncio.TaskGroup() as group:
            group.create_task(work())
            yield Client()

    resources = Resources(Tools(plain, lifespan=with_background), loop)
    with capture_logs() as logs:
        fail.set()
        wait_until(lambda: [one for one in logs if one["event"] == "lifespan_ended"], WAIT_SECONDS)
    resources.close()
    assert "secret" not in repr(logs)


def test_a_lifespan_that_somebody_cancels_is_told(loop: ToolLoop) -> None:
    """A tool may cancel all tasks of its loop, as recipes for ending do; its objects are dead."""
    resources = Resources(Tools(awaited, lifespan=async_generator), loop)

    async def cancel_all() -> None:
        for task in asyncio.all_tasks():
            if task is not asyncio.current_task():
                task.cancel()

    with capture_logs() as logs:
        loop.start(cancel_all()).result(WAIT_SECONDS)
        wait_until(lambda: [one for one in logs if one["event"] == "lifespan_ended"], WAIT_SECONDS)
        resources.close()
    assert made[0].open is False


def test_the_driver_opens_at_its_start_and_closes_at_its_end() -> None:
    """Workers and reconcilers have nothing to remember."""
    driver = ToolDriver(Tools(awaited, lifespan=async_generator), DEFAULTS)
    assert made[0].open is True
    driver.close()
    assert made[0].open is False
