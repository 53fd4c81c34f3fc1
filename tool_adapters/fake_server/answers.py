"""How the fake provider handles one request: a script of steps that its shell plays.

Decides when the effect happens, what the key store says and what goes over the wire. Pure: time
is passed in, and waiting is a step. A script is a generator, so that two requests with one key
meet each other in the middle, as they do at real providers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .faults import Fault, FaultList, FaultRule
from .ledger import KeyEntry, Ledger
from .steps import Drop, Incoming, Later, Reply, Script, Step, Switches, Wait, default_switches


@dataclass(slots=True)
class Provider:
    """The whole fake: its knowledge, its switches and its faults."""

    ledger: Ledger = field(default_factory=Ledger)
    switches: dict[str, Switches] = field(default_factory=default_switches)
    faults: FaultList = field(default_factory=FaultList)

    def handle(self, request: Incoming, now: float) -> Script:
        """Return the script of one request to an endpoint."""
        self.ledger.requests[f"{request.method} {request.endpoint}"] += 1
        if request.endpoint not in self.switches:
            return _answer(Reply(404, {"code": "not_found"}))
        if request.method == "POST" and request.identity is None:
            try:
                return self._create(request, request.fields(), now)
            except ValueError:
                return _answer(Reply(400, {"code": "not_json"}))
        if request.method == "DELETE":
            return self._delete(request, now)
        if request.method == "GET":
            return _answer(self._read(request, now))
        return _answer(Reply(405, {"code": "method_not_allowed"}))

    def _create(self, request: Incoming, fields: dict[str, Any], now: float) -> Script:
        rule = self.faults.next_for(request.endpoint, request.wire_key)
        fault = None if rule is None else rule.fault
        early = _before_keys(fault, rule)
        if early is not None:
            yield early
            return
        known = self._known(request, now)
        if known is not None:
            yield known
            return
        entry = self._open_key(request, now)
        if fault in (Fault.STORED_ERROR, Fault.STORED_REFUSAL):
            status = 500 if fault is Fault.STORED_ERROR else 422
            yield self._keep(entry, Reply(status, {"code": "stored"}))
            return
        seconds = 0.0 if rule is None else rule.seconds
        if fault is Fault.LATE_COMMIT:
            now = yield Later(seconds)
        elif fault is Fault.DELAY_BEFORE_EFFECT:
            now = yield Wait(seconds)
        reply = self._keep(entry, self._perform(request, fields, now))
        if fault is Fault.DELAY_AFTER_EFFECT:
            yield Wait(seconds)
        yield _spoiled(fault, seconds, reply)

    def _known(self, request: Incoming, now: float) -> Reply | None:
        """Return what the key store says, or None for a key that is new (or forgotten)."""
        switches = self.switches[request.endpoint]
        entry = self.ledger.keys.get((request.endpoint, request.wire_key))
        if not switches.honours_key or entry is None:
            return None
        window = switches.key_window_seconds
        if window is not None and now - entry.first_seen_at > window:
            return None
        if entry.body != request.body:
            return Reply(422, {"code": "idempotency_key_reused"})
        if entry.status is None:
            return Reply(409, {"code": "idempotency_key_in_use"})
        return Reply(entry.status, entry.answer, {"Idempotent-Replayed": "true"})

    def _open_key(self, request: Incoming, now: float) -> KeyEntry:
        entry = KeyEntry(request.body, now)
        if self.switches[request.endpoint].honours_key and request.wire_key:
            self.ledger.keys[request.endpoint, request.wire_key] = entry
        return entry

    def _keep(self, entry: KeyEntry, reply: Reply) -> Reply:
        entry.status = reply.status
        entry.answer = reply.document if isinstance(reply.document, dict) else {}
        return reply

    def _perform(self, request: Incoming, fields: dict[str, Any], now: float) -> Reply:
        switches = self.switches[request.endpoint]
        if not switches.keeps_marker:
            fields = {name: value for name, value in fields.items() if name != "marker"}
        created = self.ledger.create(request.endpoint, request.wire_key, fields, now)
        document = created.document()
        if switches.echo == "body":
            document["idempotency_key"] = request.wire_key
        headers = {"Idempotency-Key": request.wire_key} if switches.echo == "header" else {}
        return Reply(202 if switches.accepts else 201, document, headers)

    def _delete(self, request: Incoming, now: float) -> Script:
        """Delete by id, or everything with exactly one marker (`?marker=`)."""
        rule = self.faults.next_for(f"{request.endpoint}.delete", request.wire_key)
        fault = None if rule is None else rule.fault
        early = _before_keys(fault, rule)
        if early is not None:
            yield early
            return
        if rule is not None and fault is Fault.DELAY_BEFORE_EFFECT:
            now = yield Wait(rule.seconds)
        yield _spoiled(fault, 0.0 if rule is None else rule.seconds, self._undo(request, now))

    def _undo(self, request: Incoming, now: float) -> Reply:
        marker = request.query.get("marker")
        if request.identity is not None:
            one = self.ledger.by_id(request.endpoint, request.identity)
            found = [] if one is None else [one]
        elif marker:
            found = self.ledger.find(request.endpoint, marker, now)
        else:
            return Reply(400, {"code": "name_an_object"})
        for one in found:
            self.ledger.delete(one, request.wire_key)
        if request.identity is not None and not found:
            return Reply(404, {"code": "not_found"})
        return Reply(200, {"deleted": len(found)})

    def _read(self, request: Incoming, now: float) -> Reply:
        switches = self.switches[request.endpoint]
        if request.identity is not None:
            one = self.ledger.by_id(request.endpoint, request.identity)
            return Reply(404, {"code": "not_found"}) if one is None else Reply(200, one.document())
        if not switches.has_probe:
            return Reply(404, {"code": "no_such_read"})
        seen = now - switches.index_lag_seconds
        found = self.ledger.find(request.endpoint, request.query.get("marker", ""), seen)
        return Reply(200, {"items": [one.document() for one in found]})


def _answer(reply: Reply) -> Script:
    yield reply


def _before_keys(fault: Fault | None, rule: FaultRule | None) -> Step | None:
    """Return the answer of faults that stand before the key layer: no effect, no memory."""
    if fault is Fault.DROP_BEFORE_EFFECT:
        return Drop()
    if fault is Fault.TOO_MANY_REQUESTS and rule is not None:
        return Reply(429, {"code": "slow_down"}, {"Retry-After": f"{rule.seconds:g}"})
    if fault is Fault.REFUSED:
        return Reply(422, {"code": "invalid"})
    if fault is Fault.ERROR_BEFORE_EFFECT:
        return Reply(503, {"code": "unavailable"}, {"Retry-After": "1"})
    if fault is Fault.REDIRECT:
        return Reply(307, None, {"Location": "/elsewhere"})
    return None


def _spoiled(fault: Fault | None, seconds: float, reply: Reply) -> Step:
    """Return what goes out after the effect."""
    if fault in (Fault.DROP_AFTER_EFFECT, Fault.LATE_COMMIT):
        return Drop()
    if fault is Fault.ERROR_AFTER_EFFECT:
        return Reply(500, {"code": "internal"})
    if fault is Fault.EMPTY_SUCCESS:
        return Reply(reply.status, None)
    return Reply(
        reply.status,
        reply.document,
        reply.headers,
        drip_seconds=seconds if fault is Fault.DRIP else 0.0,
        cut=fault is Fault.CUT_SUCCESS,
        garbage=fault is Fault.GARBAGE,
    )
