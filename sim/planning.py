"""What planners and people do in a virtual world, the mistakes of both included.

A planner's and a person's acts are transactions on the store, decided by the shipped rules. Beside
that this file keeps what the monitors compare with: which step of the plan an intent stands for,
and how many effects of a step somebody has knowingly or mistakenly allowed. May import the pure
core and `tool_adapters`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ..outbox.compensate import OrderedCompensation
from ..outbox.errors import InvalidIntent
from ..outbox.identity import DEFAULT_NAMESPACE
from ..outbox.intent import Address, Content, Terms, content_of, draft_of
from ..outbox.model import WITHDRAWABLE_STATES, Actor, GateDecision, Refusal
from ..outbox.outcome import Answer, Applied, NotApplied, Outcome, Unknown
from ..outbox.people import Denied, Said, Verdict
from .delivery import plan_undo
from .driver import step as take_step
from .records import Frozen
from .store_attempts import claimed_row
from .world_values import Impossible

if TYPE_CHECKING:
    from .world import World

RETRY = "-retry"
"""What a planner with the time-out bug appends to the id that it mints anew."""


# -- planners ------------------------------------------------------------------------------------


def put(
    world: World,
    step: str,
    tool: str,
    args: Frozen | None = None,
    held_for: str | None = None,
    deadline_seconds: float | None = None,
    not_before_seconds: float | None = None,
    read_set: Frozen | None = None,
) -> None:
    """Store an intent in a lane of its own, and ring for it."""
    if tool not in world.tools.adapters:
        raise Impossible(f"there is no tool {tool!r}", "tool")
    terms = Terms(
        read_set=None if read_set is None else dict(read_set),
        not_before=_moment(world, not_before_seconds),
        deadline=_moment(world, deadline_seconds),
        held_for=held_for,
    )
    _put(world, step, tool, args or Frozen(), terms)
    world.plan.setdefault(step, step)


def _moment(world: World, seconds: float | None) -> Any:
    return None if seconds is None else world.clock.now + timedelta(seconds=seconds)


def lane_of(step: str) -> str:
    """Return the lane that a world gives a step, so that a token speaks of one step."""
    return step.replace(".", "_").replace(":", "_").replace("~", "_")[:64]


def _put(world: World, step: str, tool: str, args: Frozen, terms: Terms) -> None:
    version = world.tools.adapters[tool].contract.version
    content = _content(world, tool, version, lane_of(step), args)
    try:
        draft = draft_of(content, terms, intent_id=step)
    except InvalidIntent as invalid:
        raise Impossible(str(invalid), "step") from invalid
    (answer,) = world.store.planner.put([draft])
    if isinstance(answer, Refusal):
        raise Impossible(f"put is refused: {answer.code}", "step")
    world.tokens = (*world.tokens, answer.lane)


def _content(world: World, tool: str, version: int, lane: str, args: Frozen) -> Content:
    try:
        return content_of(tool, version, lane, args, limits=world.spec.limits)
    except InvalidIntent as invalid:
        raise Impossible(str(invalid), "args") from invalid


def ask_again(world: World, step: str, mint: bool | None = None) -> None:
    """Time out and put again: the same intent, or (a planner's bug) a copy under a new id."""
    seq = world.row_of(step)
    intent = world.store.tables.intents[seq]
    world.tally["planner_timeouts"] += 1
    name = f"{step}{RETRY}" if mint else step
    world.plan[name] = world.plan.get(step, step)
    _put(world, name, intent.tool, intent.args, Terms())


def supersede(
    world: World, step: str, args: Frozen | None = None, generation: int | None = None
) -> None:
    """Replace the step's live generation; without args by the same call."""
    intent = world.store.tables.intents[world.row_of(step, generation)]
    content = None
    if args is not None:
        content = _content(world, intent.tool, intent.tool_version, intent.lane, args)
    address = Address(DEFAULT_NAMESPACE, step)
    answer = world.store.planner.supersede(address, intent.generation, content)
    if isinstance(answer, Refusal):
        raise Impossible(f"supersede is refused: {answer.code}", "step")


def cancel(world: World, step: str) -> None:
    """Call a step off, or record that it is not wanted where a request may be on its way."""
    answer = world.store.planner.cancel(Address(DEFAULT_NAMESPACE, step))
    if isinstance(answer, Refusal):
        raise Impossible(f"cancel is refused: {answer.code}", "step")


def compensate(world: World, step: str, generation: int | None = None) -> None:
    """Ask that a step's effect be undone."""
    seq = world.row_of(step, generation)
    if world.store.tables.rows[seq].state in WITHDRAWABLE_STATES:
        cancel(world, step)
        return
    plan = plan_undo(world, seq)
    answer: OrderedCompensation | Refusal = (
        plan
        if isinstance(plan, Refusal)
        else world.store.compensations.order(seq, plan, Actor.PLANNER)
    )
    if isinstance(answer, Refusal):
        raise Impossible(f"compensate is refused: {answer.code}", "step")


def touch_domain(world: World, domain: str) -> None:
    """Change what a read set may have looked at."""
    name = (DEFAULT_NAMESPACE, domain)
    domains = world.store.tables.domains
    domains[name] = domains.get(name, 0) + 1


def pause(world: World, tool: str) -> None:
    """Pause the sends of a tool, or let them go on."""
    world.store.tables.paused = world.store.tables.paused ^ {tool}


def try_refused(world: World, event: str, code: str, *fields: Any) -> None:
    """Do something that has to be refused with a code; anything else is impossible."""
    handler = HANDLERS.get(event)
    if handler is None:
        raise Impossible(f"no event {event!r} can be refused", "event")
    try:
        handler(world, *fields)
    except Impossible as refused:
        if str(refused).endswith(f": {code}"):
            return
        raise
    raise Impossible(f"{event} was not refused", "event")


# -- late evidence -------------------------------------------------------------------------------


def late(
    world: World,
    step: str,
    generation: int | None = None,
    fence: int | None = None,
    says: str | None = None,
) -> None:
    """Hand in what a dead attempt's answer would have said; `says` makes it say something else.

    By default it tells the truth of the tool: the effect, or that nothing happened. A generation
    that is not live any more counts as stale, as in the essay.
    """
    seq = world.row_of(step, generation)
    claim = claimed_row(world.store.tables, seq)
    if fence is not None:
        claim = replace(claim, fence=fence)
    outcome = _said(world, claim, says)
    if outcome is None:
        raise Impossible(f"nothing has happened under {claim.wire_key}", "step")
    number = world.store.tables.next_number(seq, claim.fence, "evidence")
    name = f"message:{seq}:{claim.fence}:{number}"
    world.begin("bind", "evidence", name, claim, outcome, number)
    take_step(world, name)


def _said(world: World, claim: Any, says: str | None) -> Outcome | None:
    effects = [e for e in world.tools.effects.values() if e.seq == claim.seq]
    if says == "not_applied":
        return NotApplied("late", code="late", transient=True)
    if says == "miss":
        return Unknown("a success without our key", code="protocol_miss", answer=Answer.COMPLETE)
    if says is not None:
        return Applied(says)
    return Applied(effects[-1].ref) if effects else None


# -- people --------------------------------------------------------------------------------------


def decide(world: World, step: str, decision: str) -> None:
    """Approve or reject what a step's live generation would do."""
    seq = world.row_of(step)
    fingerprint = world.store.tables.intents[seq].fingerprint
    answer = world.store.gates.decide(
        seq, GateDecision(decision), actor=Actor.PERSON, actor_name="ops", reason="looked at it",
        fingerprint=fingerprint,
    )  # fmt: skip
    if isinstance(answer, Refusal):
        raise Impossible(f"decide is refused: {answer.code}", "step")


def says(
    world: World,
    step: str,
    what: str,
    generation: int | None = None,
    fence: int | None = None,
    may_duplicate: bool | None = None,
    quotes: bool | None = None,
) -> None:
    """Take a person's statement; whether it is true is judged against the tools, for monitors.

    `fence` is the one that the person saw, the row's present one by default; `quotes` False says
    that a release or a close quotes no divergence.
    """
    seq = world.row_of(step, generation)
    statement = STATEMENTS.get(what)
    if statement is None:
        raise Impossible(f"a person cannot say {what!r}", "what")
    seen = world.store.tables.rows[seq].fence if fence is None else fence
    risk = _risk(world, seq, what, quotes is not False)
    said = Said(seq, "ops", "looked at it", seen)
    latest = None if quotes is False else latest_divergence(world, seq)
    answer = statement(world, said, bool(may_duplicate), latest)
    if isinstance(answer, Denied):
        raise Impossible(f"says is refused: {answer.code}", "what")
    world.journal.append(("said", seq, what, latest is not None))
    if may_duplicate or risk:
        world.allowed[world.plan_step(seq)] += 1


def latest_divergence(world: World, seq: int) -> int | None:
    """Return the number of the latest divergence that a release of the row must quote."""
    tables = world.store.tables
    name = tables.intents[seq].name
    family = [
        *tables.names[name],
        *(u for s in tables.names[name] for u in tables.undos.get(s, ())),
    ]
    numbers = [
        event.event_id
        for one in family
        for event in tables.events[one]
        if event.name == "divergence"
    ]
    return max(numbers, default=None)


def _risk(world: World, seq: int, what: str, quotes: bool) -> bool:
    """Return whether the statement is false: what it denies has happened, or may still happen."""
    tables = world.store.tables
    stands = world.tools.standing.get(seq, 0) > 0
    if what in ("not_landed", "requeue", "undone", "close_undone"):
        # Not a mistake: nothing was there to be seen. That none may arrive later is for a guard.
        return stands
    if what in ("landed", "close_stands"):
        return not stands
    # Whoever quotes a divergence knows of the effect; over any other one `may_duplicate` is said.
    return what == "release" and quotes and tables.rows[seq].diverged_at is not None


def _landed(world: World, said: Said, risky: bool, divergence: int | None) -> Any:
    claim = claimed_row(world.store.tables, said.seq)
    effects = [e for e in world.tools.effects.values() if e.seq == claim.seq]
    ref = effects[-1].ref if effects else "seen-by-a-person"
    return world.store.people.landed(said, ref)


STATEMENTS: dict[str, Callable[[Any, Said, bool, int | None], Any]] = {
    "landed": _landed,
    "not_landed": lambda w, said, risky, d: w.store.people.not_landed(said),
    "requeue": lambda w, said, risky, d: w.store.people.not_landed(
        said, requeue=True, may_duplicate=risky
    ),
    "undone": lambda w, said, risky, d: w.store.people.undone(said),
    "release": lambda w, said, risky, d: w.store.people.release(
        said, may_duplicate=risky, divergence=d
    ),
    "close_stands": lambda w, said, risky, d: w.store.people.close_divergence(
        said, d or 0, Verdict.STANDS
    ),
    "close_undone": lambda w, said, risky, d: w.store.people.close_divergence(
        said, d or 0, Verdict.UNDONE
    ),
}


def undo_by_hand(world: World, step: str, generation: int | None = None) -> None:
    """Undo a step's effects at the tool by hand; nobody is told of it by this."""
    seq = world.row_of(step, generation)
    for effect in list(world.tools.effects.values()):
        if effect.seq == seq:
            world.tools.undo(effect.number)


HANDLERS: dict[str, Callable[..., None]] = {
    "put": put,
    "ask_again": ask_again,
    "supersede": supersede,
    "cancel": cancel,
    "compensate": compensate,
    "touch": touch_domain,
    "pause": pause,
    "late": late,
    "decide": decide,
    "says": says,
    "undo_by_hand": undo_by_hand,
    "refused": try_refused,
}
