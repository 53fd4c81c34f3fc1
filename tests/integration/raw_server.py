"""A TCP server whose every byte and close a test decides, for what no HTTP server would do."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator

Script = Callable[[socket.socket, threading.Event], None]
"""Plays one connection. The event is set when the test is over."""


def read_head(connection: socket.socket) -> bytes:
    """Read up to the end of the request's headers (and what came along with them)."""
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(65536)
        if not piece:
            return received
        received += piece
    return received


def read_request(connection: socket.socket) -> bytes:
    """Read one whole request with a Content-Length."""
    received = read_head(connection)
    if not received:
        return b""
    head, _, body = received.partition(b"\r\n\r\n")
    lengths = [
        line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-l")
    ]
    while lengths and len(body) < int(lengths[0]):
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def reset(connection: socket.socket) -> None:
    """Close with RST in place of FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class RawServer:
    """Plays one script per connection, in order of connecting; the last one again and again."""

    def __init__(self, *scripts: Script, receive_buffer: int | None = None) -> None:
        self.scripts = list(scripts)
        self.connections = 0
        self.over = threading.Event()
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen(64)
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/things"
        self.threads: list[threading.Thread] = []
        self.open: list[socket.socket] = []

    def accept(self) -> None:
        """Serve until the listening socket is closed."""
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                if self.over.is_set():
                    connection.close()
                    return
                script = self.scripts[min(self.connections, len(self.scripts) - 1)]
                self.connections += 1
                self.open.append(connection)
                thread = threading.Thread(target=self.play, args=(script, connection), daemon=True)
                self.threads.append(thread)
                thread.start()

    def play(self, script: Script, connection: socket.socket) -> None:
        """Play one connection; the client may go at any time."""
        with contextlib.suppress(OSError), connection:
            script(connection, self.over)


@contextlib.contextmanager
def raw_server(*scripts: Script, receive_buffer: int | None = None) -> Iterator[RawServer]:
    """Run a raw server for a test and end its threads."""
    server = RawServer(*scripts, receive_buffer=receive_buffer)
    accepting = threading.Thread(target=server.accept, daemon=True)
    accepting.start()
    try:
        yield server
    finally:
        server.over.set()
        with contextlib.suppress(OSError):
            socket.create_connection(server.socket.getsockname(), timeout=60).close()
        accepting.join(60)
        server.socket.close()
        for connection in server.open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in server.threads:
            thread.join(60)
