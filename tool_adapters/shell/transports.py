"""One exchange for any kind of request: the seam that a runner calls.

Decides only by the request's type. Thread-safe; one per process.
"""

from __future__ import annotations

from collections.abc import Callable

from ..contract import Evidence, HttpRequest, Request
from .function_transport import FunctionTransport, Lookup
from .http_transport import HttpTransport


class Transports:
    """All transports of a process behind one `exchange`."""

    def __init__(self, lookup: Lookup, http: HttpTransport | None = None) -> None:
        self.http = http or HttpTransport()
        self.functions = FunctionTransport(lookup)

    def close(self) -> None:
        """Close connections and end idle threads."""
        self.http.close()
        self.functions.close()

    def exchange(
        self,
        request: Request,
        *,
        send_by_boottime: float | None,
        limit_seconds: float,
        response_limit_bytes: int,
        on_late: Callable[[Evidence], None] = lambda evidence: None,
    ) -> Evidence:
        """Perform the request at most once. `on_late` only ever follows an OverLimit."""
        if isinstance(request, HttpRequest):
            return self.http.exchange(
                request,
                send_by_boottime=send_by_boottime,
                limit_seconds=limit_seconds,
                response_limit_bytes=response_limit_bytes,
            )
        return self.functions.exchange(
            request,
            send_by_boottime=send_by_boottime,
            limit_seconds=limit_seconds,
            on_late=on_late,
        )
