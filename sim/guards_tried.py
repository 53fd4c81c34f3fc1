"""Every guard of the protocol left out once: the rule that breaks, or why no world shows it.

A guard is left out of the whole table; a script leads to the moment that it is there for. Scripts
that ship as traces are named, the others stand in `guards_scripts`. Where the code asks the same
before it names the move, a part that does not ask is put beside (`guards_beside`). What nothing
shows is searched for in small worlds (`guards_unneeded`). May import `mutants_trial`, `guards_off`
and these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..outbox.guards import GUARDS
from . import guards_beside as beside
from .explore import Plant
from .guards_off import leave_out
from .guards_scripts import SCRIPTS, rebuilt_differently
from .guards_unneeded import UNNEEDED, search_without
from .mutants_trial import try_script
from .shipped import shipped
from .trace import read_trace


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
    "not_wanted": Shown("wanted_and_queued", "nobody_acts_early", beside.withdraws_blindly),
    "own_fence": Shown(
        "late_word_of_a_frozen_one", "stale_fences_move_nothing", beside.decides_fence_blind
    ),
    "ready": Shown("claimed_again_at_once", "nobody_acts_early", beside.claims_early),
    "alone_if_suspect": Shown(
        "suspect_beside_another", "suspects_run_alone", beside.claims_unsuspecting
    ),
    "overdue": Shown("claimed_by_a_living_one", "nobody_acts_early", beside.reaps_blindly),
    "has_sent": Shown("never_encoded", "committed_means_effect", beside.dreams_of_unsent_rows),
    "beyond_own_claim": Shown(
        "not_encoded_again", "committed_means_effect", beside.dreams_of_its_own_claim
    ),
    "resolved": Shown(
        "refused_after_an_open_send", "failed_means_nothing", beside.decides_resolutely
    ),
    "unready_too_long": Shown("never_encoded", "nobody_acts_early", beside.gives_up_at_once),
    "undo_committed": Shown(
        "undo_on_its_way", "compensated_means_undone", beside.undone_when_ordered
    ),
    "adopter_of_undone": Shown(
        "adopter_of_a_standing_one", "adopters_follow", beside.adopters_undone_alone
    ),
    "unbound": Shown("undone_after_the_bind", "binds_live_rows_once"),
    "bindable": Shown("undone_is_not_bound", "binds_live_rows_once"),
}


@dataclass(frozen=True, slots=True)
class GuardTried:
    """What came of leaving one guard out. `reason` is set where nothing can be seen."""

    name: str
    caught: bool
    rule: str = ""
    script: str = ""
    reason: str = ""
    searched: tuple[dict[str, Any], ...] = ()
    """Worlds that were explored to the end without it."""

    @property
    def unneeded(self) -> bool:
        """Whether there is a reason, and no search speaks against it."""
        return bool(self.reason) and not any(one["violations"] for one in self.searched)

    def as_dict(self) -> dict[str, Any]:
        """Return it with stable keys."""
        return {
            "name": self.name, "caught": self.caught, "rule": self.rule, "script": self.script,
            "reason": self.reason, "searched": list(self.searched),
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
        if name not in UNNEEDED:
            return GuardTried(name, caught=False)
        searched = tuple(search_without(name))
        return GuardTried(name, caught=False, reason=UNNEEDED[name].reason, searched=searched)
    left_out, beside_it = leave_out(name), shown.beside

    def plant(world: Any) -> None:
        left_out(world)
        if beside_it is not None:
            beside_it(world)

    rules = try_script(script(shown.script), plant).rules
    return GuardTried(name, shown.rule in rules, shown.rule, shown.script)


def script(name: str) -> Any:
    """Return a script by name, as a trace."""
    return read_trace(SCRIPTS[name]) if name in SCRIPTS else shipped(name)
