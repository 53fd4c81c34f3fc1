"""Bugs planted one at a time, and the rule that has to catch each: a check of the checks.

A bug is a changed part of one world: of its store, of a tool's adapter, of a procedure, or of the
table of edges. It is tried on a script or in a small world until the named rule breaks. May import
`mutants_planted`, `mutants_trial`, `guards_off` and the worlds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import mutants_planted as planted
from .explore import Plant, SmallWorld, plant_nothing
from .explore_offers import Faults
from .explore_worlds import CANCEL, OTHER, PUT, SAME, UNDO, spec_of
from .guards_off import leave_out
from .mutants_trial import Tried, try_script, try_world
from .shipped import shipped

MAX_STATES = 4000
"""The budget of a small world: states that may be found before the bug counts as survived."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted bug. It is tried on a shipped trace, or in a small world."""

    name: str
    about: str
    rule: str
    plant: Plant
    trace: str = ""
    world: SmallWorld | None = None
    roles: Mapping[str, Any] = field(default_factory=dict)

    def run(self) -> Tried:
        """Plant the bug and look for the rule that breaks."""
        if self.world is None:
            return try_script(shipped(self.trace), self.plant, self.roles)
        return try_world(self.world, self.plant, dict(self.roles), MAX_STATES)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one planted bug."""

    name: str
    rule: str
    caught: bool
    where: str
    cost: int

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict with stable keys."""
        return {
            "name": self.name, "rule": self.rule, "caught": self.caught, "where": self.where,
            "cost": self.cost,
        }  # fmt: skip


def _small(name: str, kind: str, *plan: Any, says: Iterable[Any] = (), **faults: Any) -> SmallWorld:
    spec = spec_of(kind, faults.pop("workers", 2))
    return SmallWorld(name, name, spec, plan, Faults(**faults), tuple(says))


def _together(*plants: Plant) -> Plant:
    def plant(world: Any) -> None:
        for one in plants:
            one(world)

    return plant


_CUT_KEYED = _small("a keyed tool, a cut", "keyed", PUT, cuts=1)
_CUT_KEYLESS = _small("a keyless tool, a cut", "keyless", PUT, cuts=1)
_TWO_CLAIMS = _small("a keyless tool, a redelivery", "keyless", PUT, redeliveries=1)

MUTANTS: tuple[Mutant, ...] = (
    Mutant("fresh_id_on_timeout", "a planner mints a new id when it times out",
           "one_effect_per_step", plant_nothing, "essay_bad"),
    Mutant("fence_ignored", "a report counts whatever fence it quotes",
           "stale_fences_move_nothing",
           _together(planted.fence_ignored, leave_out("own_fence")),
           world=_small("a keyed tool, refusals", "keyed", PUT, cuts=1, redeliveries=1,
                        fates=("too_many_requests",))),
    Mutant("generation_ignored_at_bind", "binding does not ask whether the generation is live",
           "binds_live_rows_once", leave_out("live", "bind"), "a_b_a"),
    Mutant("key_dropped_on_the_wire", "the request leaves without its idempotency key",
           "one_effect_per_step", planted.key_dropped, world=_CUT_KEYED),
    Mutant("retry_on_unknown", "no answer is taken for proof that nothing happened",
           "no_effect_behind_the_back", planted.retry_on_unknown, world=_CUT_KEYLESS),
    Mutant("recorded_before_the_answer", "success is recorded before the tool was asked",
           "committed_means_effect", plant_nothing, world=_CUT_KEYLESS,
           roles={"attempt": planted.records_before_the_answer}),
    Mutant("sent_without_the_mark", "an attempt goes on although its mark was refused",
           "no_send_without_mark", plant_nothing,
           world=_small("a keyless tool, a cancel", "keyless", PUT, CANCEL),
           roles={"attempt": planted.sends_without_mark}),
    Mutant("lapse_of_a_sent_row", "the reaper queues a row again whose request is on its way",
           "no_effect_behind_the_back", planted.lapse_of_a_sent_row, world=_TWO_CLAIMS),
    Mutant("resent_outside_the_window", "a resend does not ask for the key window",
           "one_effect_per_step",
           _together(planted.resends_eagerly, leave_out("in_key_window", "resend")),
           world=_small("a key window", "windowed", PUT, cuts=1)),
    Mutant("resent_without_a_key", "a resend does not ask whether the tool has keys",
           "resend_is_safe",
           _together(planted.resends_eagerly, leave_out("in_key_window", "resend")),
           world=_CUT_KEYLESS),
    Mutant("refused_while_unresolved", "the refusal of a resend speaks for the first send",
           "failed_means_nothing", planted.refuse_while_unresolved,
           world=_small("a keyed tool, a refusal", "keyed", PUT, cuts=1, fates=("refused",))),
    Mutant("cleared_on_a_weak_miss", "an index that lags is believed",
           "unknown_ends_by_proof", leave_out("strong_probe"), "lagging_index"),
    Mutant("undone_before_quiet", "an undo does not wait for the target's request",
           "compensated_means_undone", planted.undo_before_quiet,
           world=_small("an undo while a request travels", "undoable", PUT, UNDO, workers=1,
                        cuts=1)),
    Mutant("args_of_the_message", "the arguments come with the message",
           "args_are_the_stored_ones", planted.args_of_the_message, world=_CUT_KEYLESS),
    Mutant("statement_before_quiet", "a person may speak while a request travels",
           "failed_means_nothing", leave_out("quiet", "refuse.person"),
           "statement_waits_for_quiet"),
    Mutant("sent_although_called_off", "the mark does not ask whether the row is wanted",
           "only_wanted_rows_move_on", leave_out("wanted", "send"), "deadline_before_the_mark"),
    Mutant("lost_commit_read_by_fence", "after a lost COMMIT the row is read by its fence alone",
           "no_send_without_mark", planted.resends_eagerly, "lost_commit_of_a_resend"),
    Mutant("miss_forgotten", "a protocol miss does not end the trust in a key",
           "resend_is_safe", planted.miss_forgotten,
           world=_small("answers without an echo", "keyed", PUT, fates=("no_echo",))),
    Mutant("nobody_reaps", "the reaper finds nothing", "every_intent_ends",
           planted.nobody_reaps, world=_small("a crash", "keyless", PUT, crashes=1)),
    Mutant("cleared_while_undone", "an effect that is being undone is not locked",
           "undone_rows_rest", leave_out("no_undo"),
           world=_small("an undo of what was lost", "undoable", PUT, UNDO, workers=1, losses=1)),
    Mutant("released_over_an_earlier_one", "a generation does not wait for the one before",
           "one_effect_per_step", leave_out("earlier_called_off"),
           world=_small("other arguments", "keyless", PUT, OTHER)),
    Mutant("adopted_what_is_not_there", "a generation adopts without asking whose effect",
           "committed_means_effect", leave_out("adopts_owner"),
           world=_small("same arguments", "keyless", PUT, SAME)),
    Mutant("state_without_an_event", "an expiry leaves no line in the log",
           "log_is_complete", planted.silent_expiry,
           world=_small("a crash", "keyless", PUT, crashes=1)),
)  # fmt: skip


def run_mutants(
    mutants: Iterable[Mutant] = MUTANTS, progress: Callable[[str], None] | None = None
) -> list[Verdict]:
    """Plant every bug in turn and return what caught it."""
    verdicts = []
    for mutant in mutants:
        tried = mutant.run()
        where = mutant.trace or (mutant.world.name if mutant.world else "")
        caught = mutant.rule in tried.rules
        verdicts.append(Verdict(mutant.name, mutant.rule, caught, where, tried.cost))
        if progress is not None:
            progress(mutant.name)
    return verdicts
