"""A tool that speaks plain JSON over HTTP, described by a declaration instead of code.

Decides how arguments become one request; what the answer proves stands in `classify_http`, how
the effect is found in `http_probe`. Pure apart from one thing: a credential is read from the
environment when a request is built, so that no row, digest or log line ever holds it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from ..outbox.contract import Echo, Key, KeyKind, ProbeStrength, ToolContract
from ..outbox.defaults import DEFAULTS
from ..outbox.errors import ConfigError, InvalidIntent
from ..outbox.outcome import Outcome
from .classify_http import HttpRules, classify_http
from .contract import (
    BaseAdapter,
    Call,
    CompensationPlan,
    CompensationTarget,
    Evidence,
    Headers,
    HttpRequest,
    NoHandle,
    ProbeAnswer,
    Request,
)
from .http_answer import EchoPlace, EchoRef
from .http_probe import HttpProbe, read_pages

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_WITHOUT_BODY = frozenset({"GET", "HEAD", "DELETE"})


@dataclass(frozen=True, slots=True)
class Credential:
    """A secret header: its value stands in an environment variable of the worker."""

    variable: str
    header: str = "Authorization"
    prefix: str = "Bearer "

    def read(self, environment: Mapping[str, str]) -> tuple[str, str]:
        """Return header and secret. Raises ConfigError where the variable is not set."""
        value = environment.get(self.variable)
        if not value:
            raise ConfigError(
                f"The environment variable {self.variable} is not set.",
                next_step=f"set {self.variable} for the worker and start it again",
            )
        return self.header, self.prefix + value


@dataclass(frozen=True, slots=True)
class HttpCompensation:
    """Which tool undoes an effect of this one, and under which argument names it is told what."""

    tool: str
    ref_argument: str | None = "ref"
    marker_argument: str | None = None
    """Set where the undo finds by exact marker; then it needs no reference."""
    ensure_absent: bool = False

    def plan(self, target: CompensationTarget) -> CompensationPlan | NoHandle:
        """Return the undo of the target, or NoHandle where neither name can be filled."""
        args: dict[str, Any] = {}
        if self.marker_argument is not None:
            args[self.marker_argument] = target.wire_key
        if self.ref_argument is not None and target.ref is not None:
            args[self.ref_argument] = target.ref
        return CompensationPlan(self.tool, args, self.ensure_absent) if args else NoHandle()


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpJsonTool(BaseAdapter):
    """One HTTP endpoint as a tool. `{name}` in the URL is filled from the argument `name`.

    What is not declared is not there: without `key` a resend is a second effect, without
    `echo` every 2xx counts as Applied, without `probe` an unknown goes to a person.
    """

    tool: str
    url: str
    method: str = "POST"
    version: int = 1
    lane: str = "default"
    key: Key = field(default_factory=Key)
    key_header: str = "Idempotency-Key"
    marker_field: str | None = None
    """Name of the body's member that carries the wire key, for the probe to find."""
    echo: EchoPlace | None = None
    replay_header: str | None = "Idempotent-Replayed"
    ref_pointer: str | None = "/id"
    accepted_statuses: frozenset[int] = frozenset({202})
    done_statuses: frozenset[int] = frozenset()
    duplicate_codes: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    """Names of arguments that must be there."""
    headers: Headers = ()
    credential: Credential | None = None
    probe_by: HttpProbe | None = None
    undo: HttpCompensation | None = None
    settle_seconds: float = DEFAULTS.settle_seconds
    call_limit_seconds: float = DEFAULTS.call_limit_seconds
    send_deadline_seconds: float = DEFAULTS.send_deadline_seconds
    max_sends: int = DEFAULTS.max_sends
    max_resends: int = DEFAULTS.max_resends
    max_probes: int = DEFAULTS.max_probes
    park_after_seconds: float = DEFAULTS.park_after_seconds
    environment: Mapping[str, str] = field(
        default_factory=lambda: os.environ, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        """Refuse a URL that cannot be one, or whose host an argument would choose."""
        parts = urlsplit(self.url)
        usable = parts.scheme in ("http", "https") and parts.hostname and not parts.username
        if not usable or _PLACEHOLDER.search(parts.netloc):
            raise ConfigError(
                f"The tool {self.tool} has no usable http(s) URL without user and password.",
                next_step="write the URL as https://host/path and name a credential instead",
            )

    @property
    def contract(self) -> ToolContract:
        """Return the declaration that the claim stamps on the row."""
        return ToolContract(
            tool=self.tool,
            version=self.version,
            lane=self.lane,
            key=self.key,
            probe=ProbeStrength.NONE if self.probe_by is None else self.probe_by.strength,
            echo=self._echo_kind(),
            settle_seconds=self.settle_seconds,
            send_deadline_seconds=self.send_deadline_seconds,
            call_limit_seconds=self.call_limit_seconds,
            max_sends=self.max_sends,
            max_resends=self.max_resends,
            max_probes=self.max_probes,
            park_after_seconds=self.park_after_seconds,
            ensure_absent=self.undo is not None and self.undo.ensure_absent,
            compensates=self.undo is not None,
        )

    def _echo_kind(self) -> Echo:
        if self.echo is None:
            return Echo.NONE
        return Echo.REF if isinstance(self.echo, EchoRef) else Echo.KEY

    def build(self, call: Call) -> None:
        """Check that every needed argument and the credential are there."""
        in_url = set(_PLACEHOLDER.findall(self.url))
        missing = sorted((self.required | in_url) - set(call.args))
        unfit = sorted(name for name in in_url - set(missing) if not _fits_url(call.args[name]))
        if missing or unfit:
            raise InvalidIntent(
                f"{self.tool} has missing arguments {missing} or unfit ones for a URL {unfit}.",
                next_step="supersede the intent with other arguments",
            )
        self._credentials()

    def encode(self, call: Call, handle: Any) -> HttpRequest:
        """Return the effect request: JSON body with sorted names, wire key in its header."""
        method = self.method.upper()
        body = b"" if method in _WITHOUT_BODY else self._body(call)
        headers = [*self.headers, (self.key_header, call.wire_key), *_trace(call)]
        if body:
            headers.append(("Content-Type", "application/json"))
        url = _fill(self.url, call.args)
        return HttpRequest(method, url, tuple(headers), body, self._credentials())

    def _body(self, call: Call) -> bytes:
        document = dict(call.args)
        if self.marker_field is not None:
            document[self.marker_field] = call.wire_key
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return text.encode()

    def _credentials(self) -> Headers:
        return () if self.credential is None else (self.credential.read(self.environment),)

    def classify(
        self, call: Call, evidence: Evidence, follow_ups: tuple[Evidence, ...]
    ) -> Outcome | Request:
        """Return what the evidence proves, by the declared rules."""
        return classify_http(self._rules(), call.wire_key, evidence)

    def _rules(self) -> HttpRules:
        return HttpRules(
            key_kind=self.key.kind,
            echo=self.echo,
            replay_header=None if self.key.kind is KeyKind.NONE else self.replay_header,
            ref_pointer=self.ref_pointer,
            accepted_statuses=self.accepted_statuses,
            done_statuses=self.done_statuses,
            duplicate_codes=self.duplicate_codes,
        )

    def probe(self, call: Call, answers: tuple[Evidence, ...]) -> Request | ProbeAnswer:
        """Return the next page to read, or what the pages say about the marker."""
        if self.probe_by is None:
            return BaseAdapter.probe(self, call, answers)
        step = read_pages(self.probe_by, call.wire_key, answers)
        if not isinstance(step, str):
            return step
        headers = (*self.headers, *_trace(call))
        return HttpRequest("GET", step, headers, b"", self._credentials())

    def compensation(self, target: CompensationTarget) -> CompensationPlan | NoHandle:
        """Return the declared undo of the target."""
        return NoHandle() if self.undo is None else self.undo.plan(target)


def _fits_url(value: Any) -> bool:
    """Return whether the value names one path segment: an empty one would name its parent."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return False
    return str(value) not in ("", ".", "..")


def _fill(url: str, args: Mapping[str, Any]) -> str:
    def value(match: re.Match[str]) -> str:
        return quote(str(args[match.group(1)]), safe="")

    return _PLACEHOLDER.sub(value, url)


def _trace(call: Call) -> Headers:
    return () if call.traceparent is None else (("traceparent", call.traceparent),)
