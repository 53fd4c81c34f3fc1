"""The fake provider's sockets: one asyncio loop that plays scripts, in this process or its own.

Decides nothing. Control paths: `GET /_ledger`, `GET /_health`, `POST /_faults` (a rule, a list of
rules, or `{"clear": true}`), `POST /_switches` (`{"tickets": {"honours_key": false}}`).
A script goes on although its client has gone, as a real provider's work does.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
import threading
from dataclasses import replace
from email.utils import formatdate
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from ..fake_server.answers import Provider
from ..fake_server.faults import rule_from_document
from ..fake_server.steps import Drop, Incoming, Later, Reply, Script

BODY_LIMIT_BYTES = 4 * 1024 * 1024
_GONE = (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError)
"""The client left, or sent what is no HTTP."""


async def _read_request(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str], bytes]:
    """Return method, target, lower-cased headers and body of the next request."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("iso-8859-1")
    request_line, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = request_line.split(" ", 2)
    pairs = (line.split(":", 1) for line in lines)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    length = int(headers.get("content-length", "0"))
    if length > BODY_LIMIT_BYTES:
        raise ValueError("body too large")
    return method, target, headers, await reader.readexactly(length)


def _incoming(method: str, target: str, headers: dict[str, str], body: bytes) -> Incoming:
    parts = urlsplit(target)
    endpoint, _, identity = parts.path.strip("/").partition("/")
    query = dict(parse_qsl(parts.query))
    key = headers.get("idempotency-key", "")
    return Incoming(method, endpoint, unquote(identity) or None, query, key, body)


def _encode(reply: Reply) -> tuple[bytes, bytes]:
    """Return head and body of the answer."""
    body = b"" if reply.document is None else json.dumps(reply.document).encode()
    lines = [f"HTTP/1.1 {reply.status} Fake", f"Content-Length: {len(body)}"]
    lines += ["Content-Type: application/json", f"Date: {formatdate(usegmt=True)}"]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode(), body


class FakeServer:
    """The fake provider on a port of its own, run by a thread; a context manager.

    For a provider that outlives SIGKILLed workers run the module in its own process instead.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self.provider = Provider()
        self.host = host
        self.port = port
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Base URL without a trailing slash."""
        return f"http://{self.host}:{self.port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=asyncio.run, args=(self.serve(),), daemon=True)
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the fake server did not start listening")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._loop is not None and self._stopped is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join(10)

    async def serve(self, *, print_port: bool = False, until_stdin_ends: bool = False) -> None:
        """Listen and answer until stopped."""
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connection, self.host, self.port, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        if print_port:
            sys.stdout.write(json.dumps({"port": self.port, "url": self.url}) + "\n")
            sys.stdout.flush()
        if until_stdin_ends:
            self._loop.add_reader(sys.stdin.fileno(), self._stop_at_end)
        self._ready.set()
        await self._stopped.wait()
        server.close()

    def _stop_at_end(self) -> None:
        if not os.read(sys.stdin.fileno(), 4096) and self._stopped is not None:
            self._stopped.set()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(*_GONE, asyncio.CancelledError):
            while await self._one_request(reader, writer):
                pass
        writer.close()

    async def _one_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request; return whether the connection stays open."""
        method, target, headers, body = await _read_request(reader)
        if target.startswith("/_"):
            return await self._send(writer, self._control(method, target, body))
        request = _incoming(method, target, headers, body)
        return await self._play(self.provider.handle(request, self._now()), writer)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _play(self, script: Script, writer: asyncio.StreamWriter) -> bool:
        step = next(script)
        while not isinstance(step, Reply):
            if isinstance(step, Drop | Later):
                writer.transport.abort()
            if isinstance(step, Drop):
                return False
            await asyncio.sleep(step.seconds)
            step = script.send(self._now())
        return await self._send(writer, step)

    async def _send(self, writer: asyncio.StreamWriter, reply: Reply) -> bool:
        head, body = _encode(reply)
        if reply.garbage:
            head, body = b"\x00\x01 this is no HTTP\r\n\r\n", b""
        writer.write(head)
        if reply.drip_seconds and body:
            for position in range(len(body)):
                writer.write(body[position : position + 1])
                await writer.drain()
                await asyncio.sleep(reply.drip_seconds / len(body))
        else:
            writer.write(body[: len(body) // 2] if reply.cut else body)
        await writer.drain()
        return not reply.cut and not reply.garbage

    def _control(self, method: str, target: str, body: bytes) -> Reply:
        try:
            return self._controlled(method, target, json.loads(body or b"{}"))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            return Reply(400, {"code": "bad_control", "error": str(error)})

    def _controlled(self, method: str, target: str, document: Any) -> Reply:
        if target == "/_ledger":
            return Reply(200, self.provider.ledger.document())
        if target == "/_health":
            return Reply(200, {"ok": True})
        if target == "/_faults":
            return self._change_faults(method, document)
        if target == "/_switches" and method == "POST":
            for endpoint, changes in document.items():
                present = self.provider.switches[endpoint]
                self.provider.switches[endpoint] = replace(present, **changes)
            return Reply(200, {"ok": True})
        return Reply(404, {"code": "no_such_control"})

    def _change_faults(self, method: str, document: Any) -> Reply:
        faults = self.provider.faults
        if method == "POST" and isinstance(document, dict) and document.get("clear"):
            faults.rules.clear()
        elif method == "POST":
            rules = document if isinstance(document, list) else [document]
            faults.rules += [rule_from_document(rule) for rule in rules]
        return Reply(200, {"rules": faults.document()})


def main() -> None:
    """Run the fake server in the foreground."""
    parser = argparse.ArgumentParser(description="A fake provider that counts effects.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--print-port", action="store_true", help="one JSON line when listening")
    parser.add_argument(
        "--until-stdin-ends", action="store_true", help="stop when the starter's pipe closes"
    )
    options = parser.parse_args()
    server = FakeServer(options.host, options.port)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(
            server.serve(print_port=options.print_port, until_stdin_ends=options.until_stdin_ends)
        )


if __name__ == "__main__":
    main()
