"""Performs one HTTP exchange and says how far it came, whatever goes wrong on the way.

Decides nothing about outcomes. One `HttpTransport` per process, shared by all threads.
It sends exactly once: no retries, no redirects, no cookies, nothing from the environment. Idle
connections are kept for a short time only: one that the server closes as we write on it turns a
harmless race into an unknown outcome.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Any

import httpcore2
import httpx2

from ..contract import Evidence, HttpEvidence, HttpRequest, NotWritten, Phase
from .timed_stream import (
    CallLimitPassed,
    SendDeadlinePassed,
    TimedBackend,
    Timing,
    begin,
)

KEEPALIVE_SECONDS = 2.0
_NO_BODY_STATUSES = frozenset({204, 304})
_NETWORK_TROUBLE = (
    httpcore2.NetworkError,
    httpcore2.TimeoutException,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.UnsupportedProtocol,
    httpcore2.ConnectionNotAvailable,
    httpx2.InvalidURL,
    CallLimitPassed,
    OSError,
    ValueError,
    TypeError,
)
"""What ends an exchange early. The last two come from headers that cannot be encoded."""


class _Progress:
    """What the client's trace has proved so far of one exchange."""

    def __init__(self, has_body: bool) -> None:
        self.phase = Phase.NOT_SENT
        self.status: int | None = None
        self.headers: tuple[tuple[str, str], ...] = ()
        self._last_write = "send_request_body" if has_body else "send_request_headers"

    def trace(self, event: str, info: dict[str, Any]) -> None:
        """Follow the client's events of one request; unknown ones change nothing."""
        if event == "http11.send_request_headers.started":
            self.phase = Phase.SENDING
        elif event == f"http11.{self._last_write}.complete":
            self.phase = Phase.SENT
        elif event == "http11.receive_response_headers.complete":
            _, status, _, headers = info["return_value"]
            self.phase = Phase.STATUS
            self.status = status
            self.headers = tuple(
                (name.decode("ascii"), value.decode("iso-8859-1")) for name, value in headers
            )


class HttpTransport:
    """The process's one HTTP client. Thread-safe: one exchange per calling thread at a time."""

    def __init__(self, verify: ssl.SSLContext | None = None) -> None:
        """Open nothing yet. `verify` replaces the default certificate check (own authorities)."""
        context = verify or httpx2.create_ssl_context(trust_env=False)
        self._pool = httpcore2.ConnectionPool(
            ssl_context=context,
            max_connections=None,
            max_keepalive_connections=100,
            keepalive_expiry=KEEPALIVE_SECONDS,
            http1=True,
            http2=False,
            retries=0,
            network_backend=TimedBackend(),
        )

    def close(self) -> None:
        """Close all connections; calls in flight end as network trouble."""
        self._pool.close()

    def exchange(
        self,
        request: HttpRequest,
        *,
        send_by_boottime: float | None,
        limit_seconds: float,
        response_limit_bytes: int,
    ) -> Evidence:
        """Send the request at most once and return what is known of it; never raise for network.

        `send_by_boottime`: from `boottime_seconds()`; from then on no first byte is written and
        the answer is NotWritten. None for a harmless request. `limit_seconds`: total, from the
        first byte written to the last byte read; then the socket is closed.
        """
        progress = _Progress(has_body=bool(request.body))
        timing = Timing(send_by_boottime, limit_seconds)
        begin(timing)
        body = _Body(response_limit_bytes)
        error: str | None = None
        try:
            self._perform(request, progress, body)
        except SendDeadlinePassed:
            return NotWritten()
        except _NETWORK_TROUBLE as trouble:
            error = _described(trouble)
        # The trace says "started" before the first write; a connect that failed never got there.
        phase = Phase.NOT_SENT if not timing.started else progress.phase
        return _evidence(phase, progress, body, error)

    def _perform(self, request: HttpRequest, progress: _Progress, body: _Body) -> None:
        with self._pool.stream(
            request.method,
            _url(request.url),
            headers=_headers(request),
            content=request.body or None,
            extensions={"trace": progress.trace},
        ) as response:
            body.read(response.iter_stream(), _has_body(request, response.status))


class _Body:
    """The answer's bytes, up to a limit."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.pieces: list[bytes] = []
        self.size = 0
        self.ended = False
        self.over_limit = False
        self.expected = True

    def read(self, pieces: Iterator[bytes], expected: bool) -> None:
        """Read to the end or to the limit; leaving early closes the connection."""
        self.expected = expected
        for piece in pieces:
            self.size += len(piece)
            if self.size > self.limit_bytes:
                self.over_limit = True
                return
            self.pieces.append(piece)
        self.ended = True


def _described(trouble: Exception) -> str:
    """Name the trouble; only a socket's own words are safe to repeat (no header, no answer)."""
    name = type(trouble).__name__
    if isinstance(trouble, httpcore2.NetworkError | httpcore2.TimeoutException):
        return f"{name}: {trouble}"
    return name


def _url(text: str) -> httpcore2.URL:
    url = httpx2.URL(text)
    return httpcore2.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
    )


def _headers(request: HttpRequest) -> list[tuple[str, str]]:
    """Add what HTTP itself needs. Answers are asked for unpacked, so that limits count."""
    given = [*request.headers, *request.credentials]
    names = {name.lower() for name, _ in given}
    own = [("Host", httpx2.URL(request.url).netloc.decode("ascii"))]
    own += [("Accept", "application/json"), ("Accept-Encoding", "identity")]
    if request.body or request.method not in ("GET", "HEAD", "DELETE"):
        own.append(("Content-Length", str(len(request.body))))
    return [pair for pair in own if pair[0].lower() not in names] + given


def _has_body(request: HttpRequest, status: int) -> bool:
    return request.method != "HEAD" and status not in _NO_BODY_STATUSES


def _evidence(phase: Phase, progress: _Progress, body: _Body, error: str | None) -> HttpEvidence:
    if progress.status is None:
        return HttpEvidence(phase, error=error)
    return HttpEvidence(
        Phase.COMPLETE if body.ended else phase,
        progress.status,
        progress.headers,
        None if body.over_limit else b"".join(body.pieces),
        error,
        body.ended and _is_framed(progress, body),
        body.over_limit,
    )


def _is_framed(progress: _Progress, body: _Body) -> bool:
    """Return whether length or chunks prove the end; an end by closing proves nothing."""
    names = {name.lower() for name, _ in progress.headers}
    return not body.expected or bool(names & {"content-length", "transfer-encoding"})
