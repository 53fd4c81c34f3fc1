"""A TCP proxy in front of Postgres that cuts a connection at its COMMIT, before or after."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from sqlalchemy.engine import make_url

Cut = Literal["before", "after"]
_CHUNK_BYTES = 65_536


class CommitCutter:
    """Passes everything on, until `cut_next` arms it for the next COMMIT that it sees."""

    def __init__(self, url: str) -> None:
        self._target = make_url(url)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._armed: list[Cut] = []
        self._sockets: list[socket.socket] = []
        self.cuts: list[Cut] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def url(self) -> str:
        """The URL of the same database through the proxy."""
        port = self._listener.getsockname()[1]
        return self._target.set(host="127.0.0.1", port=port).render_as_string(False)

    def cut_next(self, *cuts: Cut) -> None:
        """Cut the next COMMITs: before the server gets it, or after the server has answered it."""
        self._armed.extend(cuts)

    def close(self) -> None:
        """Stop listening and cut every connection."""
        _shut(self._listener)
        for one in self._sockets:
            _shut(one)
        self._accepting.join(5)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection((self._target.host, self._target.port))
                self._sockets += [client, server]
                swallow = threading.Event()
                for pump in (self._upstream, self._downstream):
                    threading.Thread(
                        target=pump, args=(client, server, swallow), daemon=True
                    ).start()

    def _upstream(
        self, client: socket.socket, server: socket.socket, swallow: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := client.recv(_CHUNK_BYTES):
                if self._armed and b"COMMIT\x00" in data:
                    cut = self._armed.pop(0)
                    self.cuts.append(cut)
                    if cut == "before":
                        break
                    swallow.set()
                server.sendall(data)
        _shut(client)
        _shut(server)

    def _downstream(
        self, client: socket.socket, server: socket.socket, swallow: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := server.recv(_CHUNK_BYTES):
                if swallow.is_set():
                    break
                client.sendall(data)
        _shut(client)
        _shut(server)


def _shut(one: socket.socket) -> None:
    # A close alone would not wake a thread that is reading from the socket.
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


@contextmanager
def commit_cutter(url: str) -> Iterator[CommitCutter]:
    """Run a proxy in front of the URL's server."""
    proxy = CommitCutter(url)
    try:
        yield proxy
    finally:
        proxy.close()
