"""The virtual tools: servers that do what they are told and count every effect.

The one place where the truth of a world stands: what really happened, under which key, and whether
it was undone. Nothing of ackbox ever looks in here but through a request. May import `outbox`,
`tool_adapters` and `tool_specs`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ..outbox.contract import KeyKind
from ..tool_adapters.contract import Adapter, HttpEvidence, HttpRequest, Phase
from ..tool_adapters.registry import Tools
from .clock import VirtualClock
from .tool_specs import DUPLICATE, MARKER, ToolSpec, adapter_of

HAPPENS = "ok"
EARLY = {
    "too_many_requests": (429, {"code": "slow_down"}),
    "refused": (422, {"code": "invalid"}),
    "error_before_effect": (503, {"code": "unavailable"}),
}
"""Answers before the key layer: no effect, nothing remembered."""
STORED = {
    "stored_error": (500, {"code": "internal"}),
    "stored_refusal": (402, {"code": "card_declined"}),
}
"""Answers without an effect that the key store keeps and replays."""
SPOILED = ("error_after_effect", "empty_success", "cut_success", "no_echo", "accepted", "garbage")
"""The effect happens; what goes out afterwards says so badly."""
FATES: tuple[str, ...] = (HAPPENS, *EARLY, *STORED, *SPOILED)
"""What may become of a request that arrives."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing that happened at a tool; `key` is the wire key that asked for it."""

    number: int
    shelf: str
    tool: str
    key: str
    seq: int
    """The row whose attempt asked for it: what really happened, whatever the key says."""
    at: datetime
    undone: bool = False

    @property
    def ref(self) -> str:
        """The tool's own id of it."""
        return f"{self.shelf}-{self.number}"


@dataclass(frozen=True, slots=True)
class _Remembered:
    """What a key store keeps of the first request under a key."""

    body: bytes
    at: datetime
    status: int
    document: tuple[tuple[str, Any], ...]


class VirtualTools:
    """Every tool of one world."""

    def __init__(self, specs: Iterable[ToolSpec], clock: VirtualClock) -> None:
        self.specs = {spec.name: spec for spec in specs}
        self._clock = clock
        adapters: dict[str, Adapter] = {
            name: adapter_of(spec, self.specs) for name, spec in self.specs.items()
        }
        self.adapters = adapters
        self.registry = Tools(*adapters.values())
        self.effects: dict[int, Effect] = {}
        self.standing: dict[int, int] = {}
        """Number of effects that stand, by the row that asked for them."""
        self.requests = 0
        self.happened = 0
        """Effects in all, those too that were undone."""
        self.undone = 0
        self._keys: dict[tuple[str, str], _Remembered] = {}

    def snapshot(self) -> tuple[Any, ...]:
        """Return a value for `restore`."""
        counts = (self.requests, self.happened, self.undone)
        return dict(self.effects), dict(self.standing), counts, dict(self._keys)

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Go back to a snapshot."""
        effects, standing, counts, keys = snapshot
        self.requests, self.happened, self.undone = counts
        self.effects, self.standing, self._keys = dict(effects), dict(standing), dict(keys)

    def key(self) -> Any:
        """Return what tells this state of the tools from others."""
        now = self._clock.now
        return (
            tuple([(e.seq, e.key, e.undone, self._is_seen(e, now)) for e in self.effects.values()]),
            tuple([(k, kept.status, self._is_forgotten(k)) for k, kept in self._keys.items()]),
        )

    def forgetting(self) -> Iterator[tuple[tuple[str, str], datetime]]:
        """Yield when each remembered key is forgotten, where it ever is."""
        for place in self._keys:
            moment = self._forgets_at(place)
            if moment is not None:
                yield place, moment

    # -- requests --------------------------------------------------------------------------------

    def arrive(
        self, tool: str, seq: int, request: HttpRequest, fate: str = HAPPENS
    ) -> HttpEvidence:
        """Let an effect request be processed; returns the answer as the wire will carry it.

        `seq` is the row that asks, for the books of the world alone: the tool does not look at it.
        """
        self.requests += 1
        if fate in EARLY:
            return _answer(*EARLY[fate])
        spec = self.specs[tool]
        known = self._known(spec, request)
        if known is not None:
            return known
        if fate in STORED:
            status, document = STORED[fate]
            self._remember(spec, request, status, document)
            return _answer(status, document)
        if request.method == "DELETE":
            return _spoiled(fate, spec, request, *self._delete(spec, request))
        return _spoiled(fate, spec, request, *self._create(spec, seq, request))

    def read(self, tool: str, request: HttpRequest) -> HttpEvidence:
        """Answer a harmless read: the objects with exactly one marker."""
        spec, wanted = self.specs[tool], _query(request.url).get(MARKER, "")
        now = self._clock.now
        items = [
            {"id": one.ref, MARKER: one.key}
            for one in self.effects.values()
            if one.shelf == spec.shelf and one.key == wanted
            and not one.undone and spec.keeps_marker and self._is_seen(one, now)
        ]  # fmt: skip
        return _answer(200, {"items": items})

    def _is_seen(self, effect: Effect, now: datetime) -> bool:
        lag = self.specs[effect.tool].lag_seconds
        return effect.at + timedelta(seconds=lag) <= now

    # -- effects ---------------------------------------------------------------------------------

    def _create(self, spec: ToolSpec, seq: int, request: HttpRequest) -> tuple[int, dict[str, Any]]:
        key, number = wire_key_of(request), self.happened + 1
        effect = Effect(number, spec.shelf, spec.name, key, seq, self._clock.now)
        self.effects[number] = effect
        self.standing[seq] = self.standing.get(seq, 0) + 1
        self.happened = number
        document = {"id": effect.ref}
        self._remember(spec, request, 201, document)
        return 201, document

    def _delete(self, spec: ToolSpec, request: HttpRequest) -> tuple[int, dict[str, Any]]:
        marker = _query(request.url).get(MARKER)
        identity = urlsplit(request.url).path.rsplit("/", 1)[-1]
        found = [
            one
            for one in self.effects.values()
            if one.shelf == spec.shelf and not one.undone
            and (one.ref == identity if marker is None else one.key == marker)
        ]  # fmt: skip
        for one in found:
            self.undo(one.number)
        if marker is None and not found:
            return 404, {"code": "not_found"}
        document = {"deleted": len(found)}
        self._remember(spec, request, 200, document)
        return 200, document

    def undo(self, number: int) -> None:
        """Undo one effect, whoever asks for it."""
        effect = self.effects[number]
        if effect.undone:
            return
        self.effects[number] = replace(effect, undone=True)
        self.standing[effect.seq] -= 1
        self.undone += 1
        if self.specs[effect.tool].key == KeyKind.CLIENT_ID.value:
            # The identity is free again once its object is gone.
            self._keys.pop((effect.shelf, effect.key), None)

    # -- keys ------------------------------------------------------------------------------------

    def _known(self, spec: ToolSpec, request: HttpRequest) -> HttpEvidence | None:
        """Answer a key that was used before; None where it is new, ignored or forgotten."""
        place = (spec.shelf, wire_key_of(request))
        entry = self._keys.get(place)
        if not _has_key(spec) or not spec.honours_key or entry is None or not place[1]:
            return None
        if self._is_forgotten(place):
            del self._keys[place]
            return None
        if entry.body != request.body:
            return _answer(422, {"code": "idempotency_key_reused"})
        if spec.key == KeyKind.CLIENT_ID.value:
            return _answer(409, {"code": DUPLICATE})
        headers = {"Idempotent-Replayed": "true"} if spec.replays else {}
        if spec.echoes:
            headers["Idempotency-Key"] = place[1]
        return _answer(entry.status, dict(entry.document), headers)

    def _remember(
        self, spec: ToolSpec, request: HttpRequest, status: int, document: Mapping[str, Any]
    ) -> None:
        # Where our key is the object's identity, only an object makes it known.
        is_known = spec.key != KeyKind.CLIENT_ID.value or status == 201
        if _has_key(spec) and spec.honours_key and is_known:
            place = (spec.shelf, wire_key_of(request))
            kept = tuple(document.items())
            self._keys[place] = _Remembered(request.body, self._clock.now, status, kept)

    def _is_forgotten(self, place: tuple[str, str]) -> bool:
        moment = self._forgets_at(place)
        return moment is not None and moment <= self._clock.now

    def _forgets_at(self, place: tuple[str, str]) -> datetime | None:
        window = next(
            (
                one.forgets_after_seconds or one.key_window_seconds
                for one in self.specs.values()
                if one.shelf == place[0] and _has_key(one)
            ),
            None,
        )
        return None if window is None else self._keys[place].at + timedelta(seconds=window)


def _has_key(spec: ToolSpec) -> bool:
    return spec.key != KeyKind.NONE.value


def wire_key_of(request: HttpRequest) -> str:
    """Return the wire key that a request carries, "" where it carries none."""
    return next((v for name, v in request.headers if name.lower() == "idempotency-key"), "")


def _query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def _answer(
    status: int, document: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> HttpEvidence:
    body = _encode(document).encode()
    return HttpEvidence(
        Phase.COMPLETE, status, tuple((headers or {}).items()), body, framing_complete=True
    )


def _spoiled(
    fate: str, spec: ToolSpec, request: HttpRequest, status: int, document: Mapping[str, Any]
) -> HttpEvidence:
    """Return what goes out after the effect."""
    echoes = spec.echoes and fate != "no_echo"
    headers = {"Idempotency-Key": wire_key_of(request)} if echoes else {}
    if fate == "error_after_effect":
        return _answer(500, {"code": "internal"})
    if fate == "accepted":
        return _answer(202, document, headers)
    whole = _answer(status, document, headers)
    if fate == "empty_success":
        return replace(whole, body=b"", headers=())
    if fate == "garbage":
        return replace(whole, body=b"<html>", headers=())
    if fate == "cut_success":
        return HttpEvidence(Phase.STATUS, status, whole.headers, b"{", error="ReadError: cut")
    return whole


NO_ANSWER = HttpEvidence(Phase.SENT, error="ReadTimeout: no answer")
"""What a caller is left with when the connection broke after the request had left."""
UNREACHABLE = HttpEvidence(Phase.NOT_SENT, error="ConnectError: refused")
"""No byte of the request left."""
