"""Scripts to the moments that single guards are there for, where no shipped trace leads to them.

With every guard in place none of them breaks a rule. May import `mutants_planted`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from ..tool_adapters.contract import HttpRequest
from .mutants_planted import changed_calls
from .world import World

Event = dict[str, Any]


def _event(do: str, **fields: Any) -> Event:
    return {"do": do, **fields}


PUT = _event("put", step="s", tool="t", args={"title": "x"})
CLAIM = _event("claim", who="w1", step="s")
ARRIVED = _event("run", who="w1", until="arrived")
SENT = _event("run", who="w1", until="sent")
CUT = _event("cut", who="w1")
LOSE = _event("lose", who="w1")
RUN = _event("run", who="w1")
QUIET = _event("wait", seconds=120)
LOOK = _event("start", role="reconcile")
RESEND = _event("run", who="r1")
RECONCILE = _event("pass", role="reconcile")
REAP = _event("pass", role="reap")
HOLD = _event("pass", role="hold")
TURNED_AWAY = _event("run", who="w1", fate="too_many_requests")
BROKEN = _event("break", tool="t", command="Encode")
SETTLE = _event("settle")
OTHER = {"title": "y"}


def _script(name: str, tool: Event, *events: Event, **world: Any) -> str:
    tools: Event = {"t": tool}
    if tool.get("undo"):
        tools["u"] = {"service": "t", "undoes": "ref"}
    document = {
        "ackbox_trace": 1, "name": name, "about": name.replace("_", " "),
        "world": {"tools": tools, "workers": ["w1", "w2"], "reconcilers": ["r1"], **world},
        "events": list(events),
    }  # fmt: skip
    return json.dumps(document, indent=1)


_KEYED = {"key": "idempotent"}
_UNKNOWN = (PUT, CLAIM, ARRIVED, CUT, RUN, QUIET)

SCRIPTS: dict[str, str] = {
    name: _script(name, tool, *events, **world)
    for name, tool, events, world in (
        ("sends_used_up_by_clears", {"probe": "strong", "max_sends": 1},
         (PUT, CLAIM, SENT, LOSE, RUN, QUIET, RECONCILE, SETTLE), {}),
        ("adopter_undone_by_hand", {},
         (PUT, SETTLE, _event("supersede", step="s"), SETTLE, _event("undo_by_hand", step="s"),
          _event("undo_by_hand", step="s", generation=0),
          _event("says", step="s", what="undone"), SETTLE), {}),
        ("window_ends_between_look_and_resend", {**_KEYED, "key_window_seconds": 600},
         (*_UNKNOWN, LOOK, _event("wait", seconds=520), RESEND, SETTLE), {}),
        ("request_changed", _KEYED, (*_UNKNOWN, RECONCILE, SETTLE), {}),
        ("called_off_between_look_and_resend", _KEYED,
         (*_UNKNOWN, LOOK, _event("cancel", step="s"), RESEND, SETTLE), {}),
        ("released_unknowingly", {},
         (PUT, SETTLE, _event("supersede", step="s", args=OTHER), SETTLE,
          _event("says", step="s", what="release"), SETTLE), {}),
        ("served_by_another", {},
         (PUT, _event("crash", who="w2"), _event("wait", seconds=30), CLAIM, RUN, CLAIM,
          _event("wait", seconds=3600), _event("restart", who="w2"), RUN, SETTLE),
         {"unserved": {"w1": ["t"]}}),
        ("wanted_and_queued", {}, (PUT, REAP), {}),
        ("claimed_by_a_living_one", {}, (PUT, CLAIM, REAP), {}),
        ("claimed_again_at_once", {"key": "idempotent"}, (PUT, CLAIM, TURNED_AWAY, CLAIM), {}),
        ("suspect_beside_another", {},
         (PUT, _event("put", step="s2", tool="t", args={"title": "x"}), CLAIM,
          _event("crash", who="w1"), _event("wait", seconds=100), REAP,
          _event("wait", seconds=100), _event("claim", who="w2", step="s2"),
          _event("claim", who="w2", step="s")), {}),
        ("late_word_of_a_frozen_one", _KEYED,
         (PUT, CLAIM, SENT, _event("freeze", who="w1"), QUIET, REAP, QUIET, LOOK,
          _event("run", who="r1", until="sent"), _event("thaw", who="w1"), RUN), {}),
        ("refused_after_an_open_send", _KEYED,
         (PUT, CLAIM, ARRIVED, CUT, RUN, QUIET, LOOK, _event("run", who="r1", fate="refused"),
          SETTLE), {}),
        ("never_encoded", {}, (PUT, BROKEN, CLAIM, RUN), {}),
        ("not_encoded_again", {}, (PUT, CLAIM, TURNED_AWAY, QUIET, BROKEN, CLAIM, RUN), {}),
        ("undo_on_its_way", {"undo": "u"},
         (PUT, SETTLE, _event("wait", seconds=100), _event("compensate", step="s"), HOLD), {}),
        ("adopter_of_a_standing_one", {},
         (PUT, SETTLE, _event("supersede", step="s"), SETTLE, HOLD), {}),
        ("undone_after_the_bind", {"undo": "u"},
         (PUT, SETTLE, _event("wait", seconds=100), _event("compensate", step="s"), SETTLE), {}),
    )
}  # fmt: skip


def rebuilt_differently(world: World) -> None:
    """Have an adapter that builds another body for every send but the first."""

    def change(request: HttpRequest, sends: int) -> HttpRequest:
        if sends == 0:
            return request
        return replace(request, body=request.body.replace(b'"x"', b'"in other words"'))

    changed_calls(change)(world)
