"""What must hold in every world after every step, each rule under its own name.

The rules compare rows with the truth of the tools and with what people and planners really did;
they do not use the guards they check. A mistaken statement or a knowing release is allowed one more
effect of its step, and violates nothing else. May import the pure core and `world`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..outbox.model import SETTLED_STATES, Row, State
from ..outbox.outcome import Answer
from ..outbox.telling import tell
from .send_rules import SEND_RULES, SENDS_INTO, releases_quote, stale_fences_move_nothing
from .tool_specs import MARKER
from .world import Choice, World
from .world_values import Flight

S = State
_NOTHING_HAPPENED = frozenset({S.FAILED, S.CANCELLED})
_NOT_SENT = frozenset({S.HELD, S.QUEUED, S.EXECUTING})
_UNDER_WAY = frozenset({S.QUEUED, S.EXECUTING, S.AWAITING_ACK})
_SAYS_NOTHING = frozenset({"failed", "cancelled", "superseded"})


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: its name, what was seen, and after which step of the world."""

    rule: str
    text: str
    step: int

    def as_dict(self) -> dict[str, Any]:
        """Return the violation with stable keys."""
        return {"rule": self.rule, "text": self.text, "step": self.step}


Finding = Iterator[str]
RowRule = Callable[[World, Row | None, Row], Finding]


# -- rules on one changed row ----------------------------------------------------------------------


def failed_means_nothing(world: World, before: Row | None, after: Row) -> Finding:
    """A row is called failed or cancelled only where nothing of it happened, or still can."""
    if after.state in _NOTHING_HAPPENED and not _is_excused(world, after):
        if world.tools.standing.get(after.seq):
            yield f"row {after.seq} is {after.state.value} and its effect stands"
        if any(f.claim.seq == after.seq and not f.answer for f in world.flights.values()):
            yield f"row {after.seq} is {after.state.value} and a request of it is on its way"


def committed_means_effect(world: World, before: Row | None, after: Row) -> Finding:
    """A row is committed only where its effect, or the one it adopted, happened."""
    if after.state is not S.COMMITTED or _is_excused(world, after):
        return
    if world.store.tables.intents[after.seq].compensates is not None:
        return
    owner = after.adopted_from or after.seq
    if not any(effect.seq == owner for effect in world.tools.effects.values()):
        yield f"row {after.seq} is committed and nothing happened"


def compensated_means_undone(world: World, before: Row | None, after: Row) -> Finding:
    """A compensated row has no standing effect."""
    stands = world.tools.standing.get(after.adopted_from or after.seq)
    if after.state is S.COMPENSATED and stands and not _is_excused(world, after):
        yield f"row {after.seq} is compensated and its effect stands"


def only_wanted_rows_move_on(world: World, before: Row | None, after: Row) -> Finding:
    """A row that was called off enters neither queued, executing nor awaiting_ack."""
    if before is None or after.state not in _UNDER_WAY or before.state is after.state:
        return
    if before.state is S.INDETERMINATE and after.state is S.AWAITING_ACK:
        return
    late = after.deadline is not None and after.deadline <= world.clock.now
    if not before.wanted or not before.live or late:
        yield f"row {after.seq} became {after.state.value} although it was called off"


def no_send_while_diverged(world: World, before: Row | None, after: Row) -> Finding:
    """Nothing is sent while a divergence is open."""
    if _is_marked(before, after) and before is not None and before.diverged_at is not None:
        yield f"row {after.seq} was sent with an open divergence"


def no_send_after_proof(world: World, before: Row | None, after: Row) -> Finding:
    """Nothing is sent once an effect of the row is on record, unless a person knows better."""
    if not _is_marked(before, after) or _is_excused(world, after):
        return
    kept = world.store.tables.observations.get(after.seq, ())
    if any(one.outcome in ("applied", "accepted") for one in kept):
        yield f"row {after.seq} was sent although its effect is on record"


def resend_is_safe(world: World, before: Row | None, after: Row) -> Finding:
    """A resend needs a tool with a key, no miss on record, a quiet row and no open undo."""
    if before is None or before.state is not S.INDETERMINATE or after.state is not S.AWAITING_ACK:
        return
    spec = world.tools.specs[world.store.tables.intents[after.seq].tool]
    if spec.key == "none":
        yield f"row {after.seq} was sent again to a tool without keys"
    kept = world.store.tables.observations.get(after.seq, ())
    if any(one.document.get("answer") == Answer.COMPLETE for one in kept):
        yield f"row {after.seq} was sent again after a protocol miss"
    if before.undo is not None:
        yield f"row {after.seq} was sent again while it is undone"
    if before.quiet_at is not None and before.quiet_at > world.clock.now:
        yield f"row {after.seq} was sent again before it was quiet"


def unknown_ends_by_proof(world: World, before: Row | None, after: Row) -> Finding:
    """Nothing leaves indeterminate by time: some word, statement, resend or undo moves it."""
    if before is None or before.state is not S.INDETERMINATE or after.state is S.INDETERMINATE:
        return
    if after.state is S.AWAITING_ACK:
        return
    kept = world.store.tables.observations.get(after.seq, ())
    if not any(one.kind in ("probe", "statement", "order") or _says(one) for one in kept):
        yield f"row {after.seq} left indeterminate for {after.state.value} without proof"
    stands = world.tools.standing.get(after.seq)
    if after.state is S.QUEUED and stands and not _is_excused(world, after):
        yield f"row {after.seq} was queued again although its effect stands"


def _says(kept: Any) -> bool:
    return bool(kept.outcome != "unknown")


def binds_live_rows_once(world: World, before: Row | None, after: Row) -> Finding:
    """Only the settled state of the live generation is bound, once, and with nothing open."""
    if before is None or after.bound_at is None or before.bound_at == after.bound_at:
        return
    if before.bound_at is not None:
        yield f"row {after.seq} was bound twice"
    if not after.live:
        yield f"row {after.seq} was bound although a later generation is live"
    if after.state not in SETTLED_STATES or after.diverged_at is not None:
        yield f"row {after.seq} was bound as {after.state.value}, before it is settled"
    if after.undo is not None and after.state is S.COMMITTED:
        yield f"row {after.seq} was bound while it is undone"


def final_stays_final(world: World, before: Row | None, after: Row) -> Finding:
    """A settled row changes no more; a committed one may still be compensated."""
    if before is None or before.state not in SETTLED_STATES or before.state is after.state:
        return
    if (before.state, after.state) != (S.COMMITTED, S.COMPENSATED):
        yield f"row {after.seq} went from {before.state.value} to {after.state.value}"


def unknown_has_a_next_look(world: World, before: Row | None, after: Row) -> Finding:
    """An unknown row is looked at again, or stands in front of a person."""
    if after.state is S.INDETERMINATE and after.probe_at is None and after.parked_at is None:
        yield f"row {after.seq} is unknown and nobody will look at it"


def fences_only_rise(world: World, before: Row | None, after: Row) -> Finding:
    """No write lowers a fence or a count of sends."""
    if before is not None and (after.fence < before.fence or after.sends < before.sends):
        yield f"row {after.seq}: a fence or a count went back"


def log_is_complete(world: World, before: Row | None, after: Row) -> Finding:
    """Every change of state stands in the event log, in an unbroken chain."""
    state = None if before is None else before.state
    if state is after.state:
        return
    for event in world.store.tables.recent:
        if event.seq == after.seq and event.from_state is not event.to_state:
            if event.from_state is not state:
                yield f"row {after.seq}: the log jumps to {event.name}"
            state = event.to_state
    if state is not after.state:
        yield f"row {after.seq} became {after.state.value} without an event"


def one_live_generation(world: World, before: Row | None, after: Row) -> Finding:
    """A step has one live generation."""
    if before is not None and before.live is after.live:
        return
    live = sum(row.live for row in world.store.tables.step_of(after.seq))
    if live != 1:
        yield f"the step of row {after.seq} has {live} live generations"


def never_told_failed_with_effect(world: World, before: Row | None, after: Row) -> Finding:
    """A step is not told failed, cancelled or superseded while an effect of it stands unsaid."""
    if before is not None and before.state is after.state and before.live == after.live:
        return
    standing = world.tools.standing
    if not any(standing.get(row.seq) for row in world.store.tables.step_of(after.seq)):
        return
    name = world.store.tables.intents[after.seq].name
    generations, now = world.store.planner.steps([name])[name]
    for one in generations:
        telling = tell(generations, one.row.generation, now)
        if telling is None or telling.told.word not in _SAYS_NOTHING:
            continue
        said = {other.generation for other in telling.told.also_happened}
        for other in generations:
            unsaid = other.row.generation <= one.row.generation
            unsaid = unsaid and other.row.generation not in said
            stands = standing.get(other.row.seq, 0) > 0
            if unsaid and stands and not _is_excused(world, other.row):
                word = telling.told.word
                yield f"row {one.row.seq} is told {word} and row {other.row.seq} stands"


def _is_marked(before: Row | None, after: Row) -> bool:
    if before is None or after.state is not S.AWAITING_ACK:
        return False
    return before.state is not S.AWAITING_ACK


def _is_excused(world: World, row: Row) -> bool:
    """Return whether somebody has said something false, or knowingly risky, about the step."""
    return world.allowed[world.plan_step(row.seq)] > 0


# -- rules on what left and what arrived -----------------------------------------------------------


def one_effect_per_step(world: World, flight: Flight) -> Finding:
    """A step of the plan has one standing effect, and one more per knowing or mistaken act."""
    step = world.plan_step(flight.claim.seq)
    rows = [seq for _, seq in world.rows_by_step() if world.plan_step(seq) == step]
    standing = sum(world.tools.standing.get(seq, 0) for seq in rows)
    if standing > 1 + world.allowed[step]:
        names = {world.store.tables.intents[seq].intent_id for seq in rows}
        cause = ": an id was minted on a time-out" if len(names) > 1 else ""
        yield f"step {step} has {standing} effects{cause}"


def no_effect_behind_the_back(world: World, flight: Flight) -> Finding:
    """No request lands for a row that is called settled without effect, or not sent."""
    row = world.store.tables.rows[flight.claim.seq]
    lands = row.state in _NOTHING_HAPPENED or row.state in _NOT_SENT
    lands = lands or row.state is S.COMPENSATED
    if lands and world.tools.standing.get(row.seq) and not _is_excused(world, row):
        yield f"a request of row {row.seq} took effect while it is {row.state.value}"


def no_send_without_mark(world: World, flight: Flight, owner: Any) -> Finding:
    """Nothing leaves without a claim and the durable mark of that process under that fence."""
    claim = flight.claim
    events = world.store.tables.events.get(claim.seq, ())
    marks = [e for e in events if e.name in ("send", "resend") and e.fence == claim.fence]
    if not marks:
        yield f"row {claim.seq} was sent without a mark under fence {claim.fence}"
    row = world.store.tables.rows[claim.seq]
    if row.fence == claim.fence and row.owner != owner:
        yield f"row {claim.seq} was sent by a process that does not hold it"


def args_are_the_stored_ones(world: World, flight: Flight) -> Finding:
    """What is sent are the arguments of the row, never those of a message."""
    if not flight.request.body:
        return
    sent = json.loads(flight.request.body)
    sent.pop(MARKER, None)
    if sent != world.store.tables.intents[flight.claim.seq].args:
        yield f"row {flight.claim.seq} was sent with other arguments"


MOVE_RULES: tuple[RowRule, ...] = (
    failed_means_nothing, committed_means_effect, compensated_means_undone,
    only_wanted_rows_move_on, no_send_while_diverged, no_send_after_proof, resend_is_safe,
    unknown_ends_by_proof, final_stays_final, log_is_complete, *SEND_RULES,
)  # fmt: skip
"""Checked where a row's state has changed."""
ROW_RULES: tuple[RowRule, ...] = (
    binds_live_rows_once, unknown_has_a_next_look, fences_only_rise, one_live_generation,
    never_told_failed_with_effect,
)  # fmt: skip
"""Checked on every row that was written."""
_INTO: dict[RowRule, frozenset[State]] = {
    failed_means_nothing: _NOTHING_HAPPENED,
    committed_means_effect: frozenset({S.COMMITTED}),
    compensated_means_undone: frozenset({S.COMPENSATED}),
    only_wanted_rows_move_on: _UNDER_WAY,
    no_send_while_diverged: frozenset({S.AWAITING_ACK}),
    no_send_after_proof: frozenset({S.AWAITING_ACK}),
    resend_is_safe: frozenset({S.AWAITING_ACK}),
    **SENDS_INTO,
}
"""The states that a rule on moves looks at, where it does not look at all of them."""
ALL_RULES: dict[State, tuple[RowRule, ...]] = {
    state: tuple(
        rule for rule in (*MOVE_RULES, *ROW_RULES) if state in _INTO.get(rule, frozenset(State))
    )
    for state in State
}
"""What is checked where a row has come to a state."""
FACT_RULES: dict[str, tuple[Callable[..., Finding], ...]] = {
    "arrived": (one_effect_per_step, no_effect_behind_the_back),
    "recorded": (stale_fences_move_nothing,),
    "said": (releases_quote,),
}
"""Checked on what a choice has caused, by the kind of fact."""
STUCK = "every_intent_ends"
"""Checked by whoever lets a world run until it is quiet: each row is final or a person's turn."""
ONCE = "one_send_per_fence"
RULES: tuple[str, ...] = (
    *(rule.__name__ for rule in (*MOVE_RULES, *ROW_RULES)),
    one_effect_per_step.__name__, no_effect_behind_the_back.__name__,
    no_send_without_mark.__name__, args_are_the_stored_ones.__name__,
    stale_fences_move_nothing.__name__, releases_quote.__name__, ONCE, STUCK,
)  # fmt: skip


class Monitors:
    """Watches a world. `violations` holds what was broken, in order; it is not part of a fork."""

    def __init__(self, world: World) -> None:
        self.violations: list[Violation] = []
        world.observers.append(self.look)

    def look(self, world: World, choice: Choice) -> None:
        """Check every rule against what the last choice has changed."""
        if not world.store.tables.dirty and not world.journal:
            return
        rows = world.store.tables.rows
        for seq, before in world.store.tables.dirty.items():
            after = rows[seq]
            moved = before is None or before.state is not after.state
            for rule in ALL_RULES[after.state] if moved else ROW_RULES:
                for text in rule(world, before, after):
                    self._report(world, rule.__name__, text)
        for fact in world.journal:
            self._look_at_fact(world, fact)

    def _look_at_fact(self, world: World, fact: tuple[Any, ...]) -> None:
        if fact[0] == "left":
            self._look_at_departure(world, *fact[1:])
        for rule in FACT_RULES.get(fact[0], ()):
            for text in rule(world, *fact[1:]):
                self._report(world, rule.__name__, text)

    def _look_at_departure(self, world: World, flight: Flight, owner: Any, again: bool) -> None:
        for text in no_send_without_mark(world, flight, owner):
            self._report(world, no_send_without_mark.__name__, text)
        for text in args_are_the_stored_ones(world, flight):
            self._report(world, args_are_the_stored_ones.__name__, text)
        if again:
            self._report(world, ONCE, f"row {flight.claim.seq} was sent twice under one fence")

    def _report(self, world: World, rule: str, text: str) -> None:
        self.violations.append(Violation(rule, text, world.tally["steps"]))

    def stuck(self, world: World, text: str) -> None:
        """Report that a world came to rest with a row that nobody will move."""
        self._report(world, STUCK, text)
