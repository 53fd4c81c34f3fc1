"""Every guard of the protocol left out once: the rule that breaks, or why no world shows it.

A guard is left out of the whole table; a script leads to the moment that it is there for. Scripts
that ship as traces are named, the others stand in `guards_scripts`. May import `mutants_trial`,
`guards_off` and `guards_scripts`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..outbox.guards import GUARDS
from .explore import Plant
from .guards_off import leave_out
from .guards_scripts import SCRIPTS, rebuilt_differently
from .mutants_trial import try_script
from .shipped import shipped
from .trace import read_trace

_ASKED = "{} asks the same under the row's lock before it names the move; on Postgres the WHERE \
decides for rows that changed in between, and here nothing comes in between"


@dataclass(frozen=True, slots=True)
class Shown:
    """The script on which a guard's absence shows, and the rule that breaks."""

    script: str
    rule: str
    beside: Plant | None = None
    """What has to be changed beside the guard, so that its question comes up."""


SHOWN: dict[str, Shown] = {
    "wanted": Shown("deadline_before_the_mark", "only_wanted_rows_move_on"),
    "live": Shown("a_b_a", "binds_live_rows_once"),
    "undiverged": Shown("divergence_of_an_undo", "binds_live_rows_once"),
    "unpaused": Shown("paused_tool", "send_has_leave"),
    "read_set_holds": Shown("stale_read_set", "send_has_leave"),
    "resends_left": Shown("clears_are_bounded", "counts_have_limits"),
    "sends_left": Shown("sends_used_up_by_clears", "counts_have_limits"),
    "spent_or_unwanted": Shown("clears_are_bounded", "failed_means_nothing"),
    "no_undo": Shown("undo_locks_its_target", "undone_rows_rest"),
    "no_adoption": Shown("adopter_undone_by_hand", "adopters_follow"),
    "quiet": Shown("statement_waits_for_quiet", "no_effect_behind_the_back"),
    "key_trusted": Shown("miss_between_look_and_resend", "resend_is_safe"),
    "strong_probe": Shown("lagging_index", "unknown_ends_by_proof"),
    "in_key_window": Shown("window_ends_between_look_and_resend", "one_effect_per_step"),
    "same_request": Shown("request_changed", "args_are_the_stored_ones", rebuilt_differently),
    "wanted_or_successor": Shown("called_off_between_look_and_resend", "send_has_leave"),
    "gate_passed": Shown("gate_clock_waits", "send_has_leave"),
    "earlier_called_off": Shown("a_b_a", "one_effect_per_step"),
    "person_may_release": Shown("released_unknowingly", "one_effect_per_step"),
    "divergence_quoted": Shown("release_must_quote", "releases_quote"),
    "adopts_owner": Shown("successor_waits_for_the_same", "committed_means_effect"),
    "tool_unserved": Shown("served_by_another", "nobody_acts_early"),
    "poisonous": Shown("killed_before_the_mark", "nobody_acts_early"),
    "unbound": Shown("undone_after_the_bind", "binds_live_rows_once"),
    "bindable": Shown("undone_is_not_bound", "binds_live_rows_once"),
}
UNNEEDED: dict[str, str] = {
    "not_wanted": _ASKED.format("reap.moves_for"),
    "own_fence": _ASKED.format("record.decide")
    + "; a mark is kept from a stranger by own_claim too",
    "own_claim": "own_fence refuses every attempt but the latest; the owner matters where two "
    "processes hold one fence after a lost COMMIT, and there the re-read asks for it by name",
    "diverged": _ASKED.format("hold_pass finds diverged rows alone, and"),
    "ready": _ASKED.format("the scan of a claim"),
    "alone_if_suspect": _ASKED.format("the scan of a claim"),
    "owner_alive": "until the reaper has taken the row nobody else can hold it, and after that "
    "the fence refuses the mark; it saves a send that would be reaped at once",
    "overdue": _ASKED.format("reap.moves_for"),
    "has_sent": _ASKED.format("record.decide"),
    "beyond_own_claim": _ASKED.format("record.decide"),
    "resolved": _ASKED.format("record.decide"),
    "transient": _ASKED.format("record.decide"),
    "refusable": _ASKED.format("record.decide"),
    "servable": "it saves claims that would be given back at once; a row that is claimed without "
    "its tool is never sent",
    "unready_too_long": _ASKED.format("give_back.moves_for"),
    "person_may_clear": "it makes a person say that the effect may happen twice; whoever queues "
    "a row again that did land is mistaken, and is allowed one more effect with or without it",
    "undo_committed": _ASKED.format("the end of a compensation"),
    "adopter_of_undone": _ASKED.format("the end of a compensation"),
}


@dataclass(frozen=True, slots=True)
class GuardTried:
    """What came of leaving one guard out. `reason` is set where nothing can be seen."""

    name: str
    caught: bool
    rule: str = ""
    script: str = ""
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it with stable keys."""
        return {
            "name": self.name, "caught": self.caught, "rule": self.rule, "script": self.script,
            "reason": self.reason,
        }  # fmt: skip


def run_guards(progress: Callable[[str], None] | None = None) -> list[GuardTried]:
    """Leave out every guard in turn."""
    tried = []
    for name in GUARDS:
        tried.append(_try(name))
        if progress is not None:
            progress(name)
    return tried


def _try(name: str) -> GuardTried:
    shown = SHOWN.get(name)
    if shown is None:
        return GuardTried(name, caught=False, reason=UNNEEDED.get(name, ""))
    left_out, beside = leave_out(name), shown.beside

    def plant(world: Any) -> None:
        left_out(world)
        if beside is not None:
            beside(world)

    rules = try_script(script(shown.script), plant).rules
    return GuardTried(name, shown.rule in rules, shown.rule, shown.script)


def script(name: str) -> Any:
    """Return a script by name, as a trace."""
    return read_trace(SCRIPTS[name]) if name in SCRIPTS else shipped(name)
