"""The table of edges: every ordered pair of states is either an edge or a refusal."""

from dataclasses import replace
from itertools import product

import pytest

from ackbox.outbox.guards import GUARDS, Guard
from ackbox.outbox.model import CALLED_OFF_STATES, Actor, Refusal, Row, State
from ackbox.outbox.transitions import (
    BIND,
    EDGE,
    EDGES,
    Edge,
    apply,
    legal_pairs,
    refusal_of,
    set_sql,
    where_sql,
)

from ..support.edge_examples import example

MOVING = [(edge, source) for edge in EDGES for source in sorted(edge.sources)]
IDS = [f"{source.value}-{edge.name}" for edge, source in MOVING]
# PROTOCOL section 5, written out a second time by hand.
EXPECTED: dict[State, set[State]] = {
    State.HELD: {State.QUEUED, State.COMMITTED, State.CANCELLED},
    State.QUEUED: {State.HELD, State.EXECUTING, State.COMMITTED, State.CANCELLED},
    State.EXECUTING: {
        State.HELD,
        State.QUEUED,
        State.AWAITING_ACK,
        State.COMMITTED,
        State.FAILED,
        State.CANCELLED,
    },
    State.AWAITING_ACK: {State.QUEUED, State.INDETERMINATE, State.COMMITTED, State.FAILED},
    State.INDETERMINATE: {
        State.QUEUED,
        State.AWAITING_ACK,
        State.COMMITTED,
        State.FAILED,
        State.COMPENSATED,
    },
    State.COMMITTED: {State.COMPENSATED},
    State.FAILED: set(),
    State.CANCELLED: set(),
    State.COMPENSATED: set(),
}


@pytest.mark.parametrize(("edge", "source"), MOVING, ids=IDS)
def test_each_edge_can_be_taken_from_each_source(edge: Edge, source: State) -> None:
    """No edge is dead: a row, a move and a world exist in which every guard holds."""
    row, move, world = example(edge, source)
    after = apply(row, move, world)
    assert isinstance(after, Row), after
    assert after.state is edge.target


@pytest.mark.parametrize(("source", "target"), list(product(State, State)))
def test_every_ordered_pair_is_an_edge_or_a_refusal(source: State, target: State) -> None:
    """Whatever leads to the target is refused from a state that is none of its sources."""
    assert ((source, target) in legal_pairs()) is (target in EXPECTED[source])
    for edge in EDGES:
        if edge.target is target and source not in edge.sources:
            row, move, world = example(edge, source)
            refused = apply(row, move, world)
            assert isinstance(refused, Refusal)
            assert refused.code == "illegal_transition"


@pytest.mark.parametrize(("edge", "source"), MOVING, ids=IDS)
def test_a_decision_on_another_state_is_refused(edge: Edge, source: State) -> None:
    """The state that the decision was made on is part of the compare-and-set."""
    row, move, world = example(edge, source)
    other = next(state for state in State if state is not source)
    refused = refusal_of(row, replace(move, from_state=other), world)
    assert refused is not None
    assert refused.code == "illegal_transition"


@pytest.mark.parametrize(("edge", "source"), MOVING, ids=IDS)
def test_each_guard_of_an_edge_can_refuse_it(
    edge: Edge, source: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edge asks each of its guards, and tells the code of the one that does not hold."""
    row, move, world = example(edge, source)
    for guard in edge.guards:
        closed = Guard(guard.name, guard.code, lambda r, m, w: False, guard.sql)
        guards = tuple(closed if one is guard else one for one in edge.guards)
        monkeypatch.setitem(EDGE, edge.name, replace(edge, guards=guards))
        assert refusal_of(row, move, world) == Refusal(guard.code, guard.name)


def test_an_unknown_edge_is_refused() -> None:
    """A word that the table does not know moves nothing."""
    row, move, world = example(EDGE["claim"], State.QUEUED)
    refused = refusal_of(row, replace(move, edge="teleport"), world)
    assert refused is not None
    assert refused.code == "illegal_transition"


def test_names_are_unique_and_every_guard_is_used() -> None:
    """Events carry the name of the edge, so a name means one edge; no guard stands idle."""
    assert len(EDGE) == len(EDGES)
    used = {guard.name for edge in (*EDGES, BIND) for guard in edge.guards}
    assert set(GUARDS) == used


def test_called_off_states_are_final() -> None:
    """Nothing leads out of failed, cancelled and compensated."""
    assert not {source for source, _ in legal_pairs()} & CALLED_OFF_STATES


def test_only_workers_and_reconcilers_send() -> None:
    """Every edge into awaiting_ack is a worker's or the reconciler's."""
    senders = {
        actor for edge in EDGES if edge.target is State.AWAITING_ACK for actor in edge.actors
    }
    assert senders == {Actor.WORKER, Actor.RECONCILER}


@pytest.mark.parametrize(("edge", "source"), MOVING, ids=IDS)
def test_sql_forms_hold_every_part_of_the_edge(edge: Edge, source: State) -> None:
    """The condition names the source and every guard; each column is written once."""
    condition = where_sql(edge)
    assert f"'{source.value}'" in condition.splitlines()[0]
    assert "s.state = m.from_state" in condition
    assert all(guard.sql in condition for guard in edge.guards)
    columns = [line.strip().partition(" = ")[0] for line in set_sql(edge).split(",\n")]
    assert len(columns) == len(set(columns))
    assert f"state = '{edge.target.value}'" in set_sql(edge)
