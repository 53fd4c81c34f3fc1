"""Sockets that keep two promises of one exchange: the send deadline and the total call limit.

A client's time-outs count per read, so an answer that drips one byte at a time outlives them.
Here every read and write gets only the time that is left of the whole call, and the first byte
of a request is written only while the send deadline has not passed, checked right before it.
The exchange of the running thread is found in a thread-local: the synchronous client reads and
writes on its caller's thread. When time is up the client closes the socket itself.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterable
from typing import Any

import httpcore2

from .boottime import boottime_seconds

SOCKET_OPTION = (
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
)
_WRITE_PIECE_BYTES = 16 * 1024
"""Each piece gets a fresh share of the time left: one send never waits longer than that."""


class SendDeadlinePassed(Exception):
    """Raised before the first byte of a request: nothing was written."""


class CallLimitPassed(Exception):
    """Raised by a read or write that began after the call's time limit."""


class Timing:
    """The two deadlines of one exchange, in boot-time seconds.

    A harmless request has no send deadline: its limit counts from the start, connecting
    included. For the effect the limit counts from the first byte, connecting from the deadline.
    """

    def __init__(self, send_by: float | None, limit_seconds: float) -> None:
        self.started = False
        """The first byte may have been written."""
        self._send_by = send_by
        self._limit_seconds = limit_seconds
        self._end = boottime_seconds() + limit_seconds if send_by is None else send_by

    def before_write(self) -> None:
        """Let the first byte pass only before the send deadline. Raises SendDeadlinePassed."""
        if self.started:
            return
        if self._send_by is not None:
            now = boottime_seconds()
            if now >= self._send_by:
                raise SendDeadlinePassed
            self._end = now + self._limit_seconds
        self.started = True

    def remaining_seconds(self) -> float:
        """Return the time left: to the send deadline before the first byte, then to the limit.

        Raises SendDeadlinePassed or CallLimitPassed where none is left.
        """
        remaining = self._end - boottime_seconds()
        if remaining > 0:
            return remaining
        if self.started or self._send_by is None:
            raise CallLimitPassed("the call time limit passed")
        raise SendDeadlinePassed


_running = threading.local()


def begin(timing: Timing) -> None:
    """Make this the exchange of the calling thread."""
    _running.timing = timing


def _timing() -> Timing:
    timing: Timing = _running.timing
    return timing


class TimedStream(httpcore2.NetworkStream):
    """A connection whose reads and writes obey the running exchange's deadlines."""

    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read within what is left of the call."""
        return self._stream.read(max_bytes, _timing().remaining_seconds())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write within what is left; the first byte only before the send deadline."""
        view = memoryview(buffer)
        while view:
            timing = _timing()
            timing.before_write()
            piece = bytes(view[:_WRITE_PIECE_BYTES])
            self._stream.write(piece, timing.remaining_seconds())
            view = view[_WRITE_PIECE_BYTES:]

    def close(self) -> None:
        """Close the connection; may run on another thread than the exchange."""
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        """Begin TLS; its handshake carries no byte of the request."""
        remaining = _timing().remaining_seconds()
        return TimedStream(self._stream.start_tls(ssl_context, server_hostname, remaining))

    def get_extra_info(self, info: str) -> Any:
        """Pass on what the client asks about the socket."""
        return self._stream.get_extra_info(info)


class TimedBackend(httpcore2.NetworkBackend):
    """Opens connections that obey the deadlines, connecting included."""

    def __init__(self) -> None:
        self._backend = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        """Connect within what is left before the send deadline."""
        remaining = _timing().remaining_seconds()
        stream = self._backend.connect_tcp(host, port, remaining, local_address, socket_options)
        return TimedStream(stream)
