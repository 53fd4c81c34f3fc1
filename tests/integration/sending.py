"""How the transport's tests send: one request with limits of a test's own."""

import socket
import threading
from typing import Any

from ackbox.tool_adapters.contract import Evidence, HttpEvidence, HttpRequest
from ackbox.tool_adapters.shell.boottime import boottime_seconds
from ackbox.tool_adapters.shell.http_transport import HttpTransport

from .raw_server import read_request

OK = b'HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n{"id": 1}'
BIG = b"x" * 8_000_000


def send(
    transport: HttpTransport, url: str, body: bytes = b"{}", method: str = "POST", **limits: Any
) -> Evidence:
    """Send one request; a minute for everything that the test does not set."""
    settings = {"limit_seconds": 60.0, "response_limit_bytes": 65_536, **limits}
    settings.setdefault("send_by_boottime", boottime_seconds() + 60)
    return transport.exchange(HttpRequest(method, url, (), body), **settings)


def exchanged(evidence: Evidence) -> HttpEvidence:
    """Return evidence of an exchange that did begin."""
    assert isinstance(evidence, HttpEvidence)
    return evidence


def answer_ok(connection: socket.socket, over: threading.Event) -> None:
    """Answer every request of a connection."""
    while read_request(connection):
        connection.sendall(OK)
