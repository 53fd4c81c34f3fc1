"""What to do after a refusal of the planner's API: one sentence and one next step for each code.

Pure; may import `outbox`.
"""

from __future__ import annotations

from ..outbox.errors import Refused
from ..outbox.model import Refusal

_SAID: dict[str, tuple[str, str]] = {
    "args_conflict": (
        "the id is stored with another tool or other arguments",
        "planner.get(...) for what is stored; supersede for other arguments; if_exists='keep'",
    ),
    "not_visible": ("the id is taken by a row that cannot be read yet", "put again"),
    "not_found": ("nothing is stored under this id", "put it first"),
    "not_committed": (
        "the transaction that put the intent is still open in this process",
        "commit it, then wait",
    ),
    "stale_generation": (
        "another generation of the step is live",
        "planner.get(...) by (run_id, step) tells the live one",
    ),
    "use_compensate": ("the effect has happened; it cannot be called off", "planner.compensate"),
    "is_compensation": (
        "the intent is a compensation, which only people and the outbox move",
        "ackbox show",
    ),
}
_EFFECTS = {"use_compensate": "The effect exists."}


def refused(refusal: Refusal, intent_id: str) -> Refused:
    """Return the exception for a refusal; the caller raises it."""
    what, next_step = _SAID.get(
        refusal.code, (refusal.detail or f"refused ({refusal.code})", f"ackbox show {intent_id}")
    )
    return Refused(
        refusal.code,
        next_step,
        what=f"{intent_id}: {what}",
        effect_may_exist=_EFFECTS.get(refusal.code),
    )
