"""The HTTP transport's promises in time and size: send deadline, total call limit, answer limit."""

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ackbox.tool_adapters.contract import HttpEvidence, NotWritten, Phase
from ackbox.tool_adapters.shell.boottime import boottime_seconds
from ackbox.tool_adapters.shell.http_transport import HttpTransport

from .raw_server import RawServer, raw_server, read_request
from .sending import answer_ok, exchanged, send


@pytest.fixture
def transport() -> Iterator[HttpTransport]:
    client = HttpTransport()
    yield client
    client.close()


FAR_SECONDS = 60.0
"""When the server would answer, were it not for a limit; nothing that a busy machine adds."""


def keep_silent(connection: socket.socket, over: threading.Event) -> None:
    read_request(connection)
    over.wait(FAR_SECONDS)


def dripping(interval: float, answer: bytes, at_once: int) -> Any:
    def drip(connection: socket.socket, over: threading.Event) -> None:
        read_request(connection)
        connection.sendall(answer[:at_once])
        for position in range(at_once, len(answer)):
            connection.sendall(answer[position : position + 1])
            if over.wait(interval):
                return

    return drip


HEAD = b"HTTP/1.1 201 Created\r\nContent-Length: 3000\r\n\r\n"
LONG = HEAD + b"x" * 3000


@pytest.mark.parametrize(
    ("at_once", "phase"), [(0, Phase.SENT), (len(HEAD), Phase.STATUS)], ids=["head", "body"]
)
def test_a_dripped_answer_ends_at_the_limit(
    transport: HttpTransport, at_once: int, phase: Phase
) -> None:
    """Bytes come all the time, for minutes; the call ends at the limit."""
    with raw_server(dripping(0.05, LONG, at_once)) as server:
        began = time.monotonic()
        evidence = exchanged(send(transport, server.url, limit_seconds=1.0))
        took = time.monotonic() - began
    assert evidence.phase is phase
    assert 0.9 < took < FAR_SECONDS / 2


def test_silence_ends_at_the_limit(transport: HttpTransport) -> None:
    """The limit counts from the first byte written."""
    with raw_server(keep_silent) as server:
        began = time.monotonic()
        evidence = exchanged(send(transport, server.url, limit_seconds=0.5))
    assert evidence.phase is Phase.SENT
    assert 0.4 < time.monotonic() - began < FAR_SECONDS / 2


def test_past_the_send_deadline_no_byte_is_written(transport: HttpTransport) -> None:
    """Neither on a fresh connection nor on an idle one."""
    with raw_server(answer_ok) as server:
        for _ in range(2):
            late = send(transport, server.url, send_by_boottime=boottime_seconds() - 0.001)
            assert late == NotWritten()
            assert exchanged(send(transport, server.url)).status == 201


def test_a_slow_connect_cannot_carry_the_first_byte_past_the_deadline(
    transport: HttpTransport,
) -> None:
    """A full backlog: connecting ends at the deadline, and nothing was sent."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        began = time.monotonic()
        url = f"http://127.0.0.1:{full.getsockname()[1]}/"
        evidence = send(transport, url, send_by_boottime=boottime_seconds() + 0.4)
        for one in waiting:
            one.close()
    assert time.monotonic() - began < FAR_SECONDS / 2
    assert isinstance(evidence, NotWritten) or exchanged(evidence).phase is Phase.NOT_SENT


def test_an_answer_over_the_limit_is_not_read_further(transport: HttpTransport) -> None:
    """The status stays known, the body is dropped, the connection is closed."""
    endless = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"

    def pour(connection: socket.socket, over: threading.Event) -> None:
        read_request(connection)
        connection.sendall(endless)
        while not over.is_set():
            connection.sendall(b"1000\r\n" + b"y" * 0x1000 + b"\r\n")

    with raw_server(pour) as server:
        evidence = exchanged(send(transport, server.url, response_limit_bytes=10_000))
    assert (evidence.status, evidence.over_limit, evidence.body) == (201, True, None)
    assert not evidence.framing_complete


def test_an_answer_of_exactly_the_limit_is_read(transport: HttpTransport) -> None:
    """The limit is the last size that fits."""
    with raw_server(answer_ok) as server:
        assert exchanged(send(transport, server.url, response_limit_bytes=9)).body == b'{"id": 1}'
        assert exchanged(send(transport, server.url, response_limit_bytes=8)).over_limit


def test_one_slow_call_does_not_shorten_or_delay_another(transport: HttpTransport) -> None:
    """Many threads, one client: each call has its own deadlines."""

    def ask(server: RawServer, limit_seconds: float) -> tuple[HttpEvidence, float]:
        began = time.monotonic()
        evidence = exchanged(send(transport, server.url, limit_seconds=limit_seconds))
        return evidence, time.monotonic() - began

    with (
        raw_server(keep_silent) as slow,
        raw_server(answer_ok) as quick,
        ThreadPoolExecutor(40) as pool,
    ):
        stuck = [pool.submit(ask, slow, 0.5 + 0.02 * number) for number in range(20)]
        passed = [pool.submit(ask, quick, FAR_SECONDS) for _ in range(20)]
        assert all(one.result()[0].status == 201 for one in passed)
        for number, one in enumerate(stuck):
            evidence, took = one.result()
            assert evidence.phase is Phase.SENT
            assert 0.4 + 0.02 * number < took < FAR_SECONDS / 2
