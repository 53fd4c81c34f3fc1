"""The HTTP transport against sockets that misbehave: phases, and one send only.

These are also the contract test of the pinned client's trace events: another event set in a new
version of it fails here.
"""

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ackbox.tool_adapters.contract import HttpRequest, Phase
from ackbox.tool_adapters.shell.http_transport import HttpTransport

from .raw_server import raw_server, read_head, read_request, reset
from .sending import BIG, OK, answer_ok, exchanged, send


@pytest.fixture
def transport() -> Iterator[HttpTransport]:
    client = HttpTransport()
    yield client
    client.close()


# Phases


def test_a_failed_connect_never_began_to_send(transport: HttpTransport) -> None:
    """Refused: no byte left, and no event of sending was traced."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        evidence = exchanged(send(transport, url))
    assert evidence.phase is Phase.NOT_SENT
    assert (evidence.error or "").startswith("ConnectError")


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://host.invalid/", "ConnectError"),
        ("ftp://127.0.0.1/", "UnsupportedProtocol"),
        ("http://a:b/", "InvalidURL"),
    ],
)
def test_what_cannot_be_reached_was_not_sent(
    transport: HttpTransport, url: str, error: str
) -> None:
    """Names that do not resolve, other protocols and malformed URLs are evidence, not errors."""
    evidence = exchanged(send(transport, url))
    assert evidence.phase is Phase.NOT_SENT
    assert (evidence.error or "").split(":")[0] == error


@pytest.mark.parametrize("value", ["a\r\nb", "ä", "\x00"])
def test_a_header_that_cannot_be_sent_is_evidence_and_is_not_repeated(
    transport: HttpTransport, value: str
) -> None:
    """A secret with a line break in it must not reach a log through the error's text."""
    secret = f"s3cret{value}"
    with raw_server(answer_ok) as server:
        request = HttpRequest("POST", server.url, (), b"{}", (("Authorization", secret),))
        evidence = exchanged(
            transport.exchange(
                request, send_by_boottime=None, limit_seconds=5, response_limit_bytes=100
            )
        )
    assert evidence.phase is Phase.NOT_SENT
    assert "s3cret" not in f"{evidence!r}"


def test_tls_that_fails_was_not_sent(transport: HttpTransport) -> None:
    """A server that speaks no TLS gets a handshake and no byte of the request."""

    def no_tls(connection: socket.socket, over: threading.Event) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with raw_server(no_tls) as server:
        evidence = exchanged(send(transport, server.url.replace("http:", "https:")))
    assert evidence.phase is Phase.NOT_SENT


@pytest.mark.parametrize("end", [reset, socket.socket.close])
def test_a_body_that_did_not_leave_whole_is_told_apart(transport: HttpTransport, end: Any) -> None:
    """The server goes away in the middle of a fixed-length body, whichever exception surfaces."""

    def leave(connection: socket.socket, over: threading.Event) -> None:
        read_head(connection)
        end(connection)

    with raw_server(leave, receive_buffer=8192) as server:
        evidence = exchanged(send(transport, server.url, BIG))
    assert (evidence.phase, evidence.status) == (Phase.SENDING, None)


def test_a_receiver_that_stalls_ends_at_the_limit_with_the_body_incomplete(
    transport: HttpTransport,
) -> None:
    """Nobody reads: the write ends at the call limit, and the body never left whole."""

    def stall(connection: socket.socket, over: threading.Event) -> None:
        over.wait(60)

    with raw_server(stall, receive_buffer=8192) as server:
        began = time.monotonic()
        evidence = exchanged(send(transport, server.url, BIG, limit_seconds=0.5))
    assert evidence.phase is Phase.SENDING
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("body", [b"", b"{}"])
@pytest.mark.parametrize("end", [reset, socket.socket.close])
def test_a_whole_request_without_an_answer_is_sent(
    transport: HttpTransport, body: bytes, end: Any
) -> None:
    """Reset or FIN after everything arrived, with a body and without one."""

    def leave(connection: socket.socket, over: threading.Event) -> None:
        read_request(connection)
        end(connection)

    with raw_server(leave) as server:
        evidence = exchanged(send(transport, server.url, body))
    assert (evidence.phase, evidence.status) == (Phase.SENT, None)


def test_garbage_in_place_of_a_status_is_sent(transport: HttpTransport) -> None:
    """No status line was understood, and the garbage is not repeated in the error."""

    def babble(connection: socket.socket, over: threading.Event) -> None:
        read_request(connection)
        connection.sendall(b"password=hunter2\r\n\r\n")

    with raw_server(babble) as server:
        evidence = exchanged(send(transport, server.url))
    assert (evidence.phase, evidence.error) == (Phase.SENT, "RemoteProtocolError")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 201 Created\r\nContent-Length: 99\r\n\r\n{",
        b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{",
    ],
)
def test_a_truncated_answer_still_shows_its_status(transport: HttpTransport, answer: bytes) -> None:
    """The status came, the body did not end."""

    def truncate(connection: socket.socket, over: threading.Event) -> None:
        read_request(connection)
        connection.sendall(answer)

    with raw_server(truncate) as server:
        evidence = exchanged(send(transport, server.url))
    assert (evidence.phase, evidence.status) == (Phase.STATUS, 201)
    assert not evidence.framing_complete


def test_an_answer_that_ends_by_closing_is_not_proven_whole(transport: HttpTransport) -> None:
    """Without length or chunks nobody can tell a short answer from a cut-off one."""

    def close(connection: socket.socket, over: threading.Event) -> None:
        read_request(connection)
        connection.sendall(b'HTTP/1.1 201 Created\r\n\r\n{"id": 1}')

    with raw_server(close) as server:
        evidence = exchanged(send(transport, server.url))
    assert (evidence.phase, evidence.body) == (Phase.COMPLETE, b'{"id": 1}')
    assert not evidence.framing_complete


@pytest.mark.parametrize("head", [b"204 No Content", b"304 Not Modified"])
def test_a_status_without_body_is_whole(transport: HttpTransport, head: bytes) -> None:
    """HTTP itself says that nothing follows."""

    def empty(connection: socket.socket, over: threading.Event) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 " + head + b"\r\n\r\n")

    with raw_server(empty) as server:
        assert exchanged(send(transport, server.url)).framing_complete


def test_an_early_refusal_is_delivered_while_the_body_is_incomplete(
    transport: HttpTransport,
) -> None:
    """413 before the body was read: its status is known although the body never left whole."""

    def refuse(connection: socket.socket, over: threading.Event) -> None:
        read_head(connection)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        connection.close()  # With bytes unread: the client's write ends in a reset.

    with raw_server(refuse, receive_buffer=8192) as server:
        evidence = exchanged(send(transport, server.url, BIG))
    assert (evidence.phase, evidence.status) == (Phase.COMPLETE, 413)


# One send


@pytest.mark.parametrize("end", [reset, socket.socket.close])
def test_nothing_is_sent_twice(transport: HttpTransport, end: Any) -> None:
    """One connection, whatever went wrong on it."""

    def leave(connection: socket.socket, over: threading.Event) -> None:
        read_request(connection)
        end(connection)

    with raw_server(leave) as server:
        send(transport, server.url)
        assert server.connections == 1


def test_redirects_and_cookies_are_not_followed(transport: HttpTransport) -> None:
    """The answer is the evidence; the next request carries no cookie of the last one."""
    heads: list[bytes] = []

    def redirect(connection: socket.socket, over: threading.Event) -> None:
        while head := read_request(connection):
            heads.append(head)
            connection.sendall(
                b"HTTP/1.1 307 Elsewhere\r\nLocation: /x\r\nSet-Cookie: a=b\r\n"
                b"Content-Length: 0\r\n\r\n"
            )

    with raw_server(redirect) as server:
        for _ in range(2):
            assert exchanged(send(transport, server.url)).status == 307
    assert len(heads) == 2
    assert b"cookie" not in heads[1].lower()


def test_the_environment_gives_neither_proxy_nor_password(
    transport: HttpTransport, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """A proxy or netrc of the worker's shell would change who gets the request."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login u password p\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    heads: list[bytes] = []

    def listen(connection: socket.socket, over: threading.Event) -> None:
        heads.append(read_request(connection))
        connection.sendall(OK)

    with raw_server(listen) as server:
        client = HttpTransport()
        assert exchanged(send(client, server.url)).status == 201
        client.close()
    assert b"authorization" not in heads[0].lower()


def test_idle_connections_are_used_again(transport: HttpTransport) -> None:
    """Two calls in a row share one connection."""
    with raw_server(answer_ok) as server:
        for _ in range(3):
            evidence = exchanged(send(transport, server.url))
            assert (evidence.status, evidence.body) == (201, b'{"id": 1}')
            assert evidence.framing_complete
        assert server.connections == 1
