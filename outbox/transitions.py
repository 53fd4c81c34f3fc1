"""The one table of edges: which event moves a row from where to where, asked by whom, under what.

Everything else asks this table. From it come the CHECK and the edge trigger in Postgres, the WHERE
and SET of every named statement that performs an edge, the in-memory store, the diagram and the
table in the documentation, and the test that walks every ordered pair.

How to read it: an `Edge` is one variant of an event (`refuse` has four: a worker's proof, a limit,
a poisoned row, a person). Its guards are a conjunction; all of them must hold in the statement that
performs the move. A pair of states that no edge connects is refused as `illegal_transition`; a
guard that does not hold is a normal answer with the guard's code, never an exception.

Pure; may import `guards`, `effects` and `model`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from . import effects as e
from . import guards as g
from .effects import Effect
from .guards import Guard
from .model import Actor, Move, Refusal, Row, State, World, changed

S = State
A = Actor


@dataclass(frozen=True, slots=True)
class Edge:
    """One variant of one event.

    `sources` is empty for an insertion. `name` is `event` or `event.variant`; it stands in every
    event row and in every move.
    """

    name: str
    sources: frozenset[State]
    target: State
    actors: tuple[Actor, ...]
    guards: tuple[Guard, ...] = ()
    effects: tuple[Effect, ...] = ()

    @property
    def event(self) -> str:
        """The event's word without the variant."""
        return self.name.partition(".")[0]

    @property
    def writes(self) -> tuple[Effect, ...]:
        """Every effect of the edge: the target's entry columns, then its own."""
        return (e.entry(self.target), *self.effects)


def _edge(
    name: str,
    sources: Iterable[State],
    target: State,
    actors: Iterable[Actor],
    guards: Iterable[Guard] = (),
    effects: Iterable[Effect] = (),
) -> Edge:
    return Edge(name, frozenset(sources), target, tuple(actors), tuple(guards), tuple(effects))


_OUT = (S.AWAITING_ACK, S.INDETERMINATE)
_ANYWHERE_OPEN = (S.HELD, S.QUEUED, S.EXECUTING, *_OUT)
_STATEMENT = (g.quiet, g.own_fence)
_SETTLED = (e.observed, e.resolved)

EDGES: tuple[Edge, ...] = (
    # -- admission: inserted rows; later generations come from supersede alone -------------------
    _edge("put", (), S.QUEUED, (A.PLANNER, A.OUTBOX)),
    _edge("put.held", (), S.HELD, (A.PLANNER, A.OUTBOX)),
    # -- out of held -----------------------------------------------------------------------------
    _edge(
        "release", (S.HELD,), S.QUEUED, (A.OUTBOX,),
        (g.wanted, g.gate_passed, g.earlier_called_off, g.undiverged),
    ),
    _edge(
        "release.person", (S.HELD,), S.QUEUED, (A.PERSON,),
        (g.wanted, g.gate_passed, g.person_may_release, g.divergence_quoted),
        (e.reunited,),
    ),
    _edge(
        "adopt", (S.HELD,), S.COMMITTED, (A.OUTBOX,),
        (g.wanted, g.undiverged, g.adopts_owner), (e.observed, e.adopted),
    ),
    _edge("hold", (S.QUEUED, S.EXECUTING), S.HELD, (A.OUTBOX,), (g.diverged, g.live)),
    # -- called off while no send is open ---------------------------------------------------------
    _edge(
        "withdraw", (S.HELD, S.QUEUED, S.EXECUTING), S.CANCELLED,
        (A.PLANNER, A.OUTBOX, A.REAPER), (g.not_wanted,), (e.observed,),
    ),
    _edge(
        "withdraw.cancel", (S.HELD, S.QUEUED, S.EXECUTING), S.CANCELLED,
        (A.PLANNER, A.PERSON, A.OUTBOX), (g.live,), (e.observed, e.unwanted),
    ),
    _edge(
        "withdraw.worker", (S.EXECUTING,), S.CANCELLED, (A.WORKER,),
        (g.own_fence, g.own_claim), (e.observed, e.unwanted),
    ),
    # -- an attempt -------------------------------------------------------------------------------
    _edge(
        "claim", (S.QUEUED,), S.EXECUTING, (A.WORKER,),
        (g.live, g.wanted, g.undiverged, g.ready, g.alone_if_suspect, g.servable),
        (e.claimed, e.taken_up),
    ),
    _edge(
        "send", (S.EXECUTING,), S.AWAITING_ACK, (A.WORKER,),
        (g.own_fence, g.own_claim, g.live, g.wanted, g.undiverged, g.owner_alive,
         g.read_set_holds, g.unpaused),
        (e.marked, e.described, e.cleared_of_suspicion),
    ),
    _edge(
        "give_back", (S.EXECUTING,), S.QUEUED, (A.WORKER,),
        (g.own_fence, g.own_claim, g.wanted), (e.unready,),
    ),
    _edge(
        "lapse", (S.EXECUTING,), S.QUEUED, (A.REAPER,), (g.overdue, g.wanted), (e.suspected,)
    ),
    _edge(
        "retry", (S.AWAITING_ACK,), S.QUEUED, (A.WORKER,),
        (g.own_fence, g.transient, g.resolved, g.wanted, g.sends_left, g.no_undo),
        (e.resolved,),
    ),
    _edge(
        "acknowledge", _ANYWHERE_OPEN, S.COMMITTED, (A.WORKER, A.RECONCILER),
        (g.has_sent, g.beyond_own_claim), (*_SETTLED, e.quieted),
    ),
    _edge("lose", (S.AWAITING_ACK,), S.INDETERMINATE, (A.WORKER,), (g.own_fence,), (e.quieted,)),
    _edge("expire", (S.AWAITING_ACK,), S.INDETERMINATE, (A.REAPER,), (g.overdue,)),
    # -- proof of nothing -------------------------------------------------------------------------
    _edge(
        "refuse", (S.EXECUTING, S.AWAITING_ACK, S.INDETERMINATE), S.FAILED, (A.WORKER,),
        (g.own_fence, g.refusable, g.resolved), (*_SETTLED, e.quieted),
    ),
    _edge(
        "refuse.unready", (S.EXECUTING,), S.FAILED, (A.WORKER,),
        (g.own_fence, g.own_claim, g.unready_too_long), (e.observed,),
    ),
    _edge(
        "refuse.unserved", (S.EXECUTING,), S.FAILED, (A.WORKER,),
        (g.own_fence, g.own_claim, g.unready_too_long, g.tool_unserved), (e.observed,),
    ),
    _edge(
        "refuse.poisoned", (S.EXECUTING,), S.FAILED, (A.REAPER,), (g.overdue, g.poisonous),
        (e.observed,),
    ),
    _edge(
        "refuse.absent", (S.INDETERMINATE,), S.FAILED, (A.RECONCILER,),
        (g.own_fence, g.strong_probe, g.key_trusted, g.quiet, g.spent_or_unwanted, g.no_undo),
        _SETTLED,
    ),
    _edge("refuse.person", (S.INDETERMINATE,), S.FAILED, (A.PERSON,), _STATEMENT, _SETTLED),
    # -- out of indeterminate ---------------------------------------------------------------------
    _edge(
        "acknowledge.person", (S.INDETERMINATE,), S.COMMITTED, (A.PERSON,), _STATEMENT, _SETTLED
    ),
    _edge(
        "resend", (S.INDETERMINATE,), S.AWAITING_ACK, (A.RECONCILER,),
        (g.own_fence, g.same_request, g.key_trusted, g.undiverged, g.quiet, g.no_undo,
         g.wanted_or_successor, g.unpaused, g.read_set_holds, g.resends_left, g.in_key_window),
        (e.resent, e.marked),
    ),
    _edge(
        "clear", (S.INDETERMINATE,), S.QUEUED, (A.RECONCILER,),
        (g.own_fence, g.wanted, g.no_undo, g.strong_probe, g.key_trusted, g.quiet, g.sends_left,
         g.resends_left),
        (e.resolved, e.counted_clear),
    ),
    _edge(
        "clear.worker", (S.INDETERMINATE,), S.QUEUED, (A.WORKER,),
        (g.own_fence, g.transient, g.resolved, g.wanted, g.no_undo, g.sends_left),
        (e.resolved,),
    ),
    _edge(
        "clear.person", (S.INDETERMINATE,), S.QUEUED, (A.PERSON,),
        (*_STATEMENT, g.wanted, g.no_undo, g.person_may_clear), (e.resolved, e.doubted),
    ),
    # -- undone -----------------------------------------------------------------------------------
    _edge(
        "compensate", (S.COMMITTED, S.INDETERMINATE), S.COMPENSATED, (A.OUTBOX,),
        (g.undo_committed,), (*_SETTLED, e.undone),
    ),
    _edge(
        "compensate.adopter", (S.COMMITTED,), S.COMPENSATED, (A.OUTBOX,),
        (g.adopter_of_undone,), (e.observed,),
    ),
    _edge(
        "compensate.person", (S.COMMITTED, S.INDETERMINATE), S.COMPENSATED, (A.PERSON,),
        (*_STATEMENT, g.no_undo, g.no_adoption), _SETTLED,
    ),
)  # fmt: skip

EDGE: dict[str, Edge] = {edge.name: edge for edge in EDGES}

BIND = Edge(
    "bind", frozenset(), State.COMMITTED, (A.OUTBOX,),
    (g.live, g.unbound, g.bindable, g.undiverged),
)  # fmt: skip
"""Not an edge: binding moves no state. Its guards stand here because they are state rules."""


def legal_pairs() -> frozenset[tuple[State, State]]:
    """Return every (from, to) that some edge connects; the database trigger allows only these."""
    return frozenset((source, edge.target) for edge in EDGES for source in edge.sources)


def refusal_of(row: Row, move: Move, world: World) -> Refusal | None:
    """Return why the move is refused on this row, or None where every guard holds."""
    edge: Edge | None = (world.edges or EDGE).get(move.edge)
    if edge is None or row.state not in edge.sources or row.state is not move.from_state:
        return Refusal("illegal_transition", f"{move.edge} from {row.state.value}")
    for guard in edge.guards:
        if not guard.holds(row, move, world):
            return Refusal(guard.code, guard.name)
    return None


def apply(row: Row, move: Move, world: World) -> Row | Refusal:
    """Return the row after the move, or the refusal; the in-memory store's only way to write."""
    refused = refusal_of(row, move, world)
    if refused is not None:
        return refused
    columns: dict[str, Any] = {}
    edge: Edge = (world.edges or EDGE)[move.edge]
    for effect in edge.writes:
        columns.update(effect.change(row, move, world))
    return changed(row, columns)


def where_sql(edge: Edge) -> str:
    """Return the edge's condition as SQL over the aliases that `guards` names."""
    states = ", ".join(f"'{state.value}'" for state in sorted(edge.sources))
    conditions = [f"s.state IN ({states})", "s.state = m.from_state"] if edge.sources else []
    return "\n   AND ".join([*conditions, *(guard.sql for guard in edge.guards)])


def set_sql(edge: Edge) -> str:
    """Return the edge's SET list as SQL. Later effects win over the entry columns."""
    columns: dict[str, str] = {}
    for effect in edge.writes:
        columns.update(effect.sql)
    return ",\n       ".join(f"{column} = {value}" for column, value in columns.items())
