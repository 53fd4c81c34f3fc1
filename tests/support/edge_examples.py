"""For every edge a row, a move and a world in which all of its guards hold."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from ackbox.outbox.contract import ProbeStrength, ToolContract, idempotent
from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.model import Move, Row, State, World
from ackbox.outbox.transitions import Edge

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
BEFORE = NOW - timedelta(seconds=1)
LONG_AGO = NOW - timedelta(seconds=DEFAULTS.unready_limit_seconds)
OWNER = UUID(int=7, version=4)
FENCE = 3
CONTRACT = ToolContract(tool="t", key=idempotent(None), probe=ProbeStrength.STRONG)
EARLIER = Row(seq=1, generation=0, state=State.COMMITTED, fingerprint="f", content="c")

_ROW = Row(
    seq=2, generation=1, fence=FENCE, sends=1, ready_at=BEFORE, ack_by=BEFORE, owner=OWNER,
    first_sent_at=BEFORE, quiet_at=BEFORE, request_digest="d", unready_since=LONG_AGO,
    contract_id=1, observation_id=1, fingerprint="f", content="c",
)  # fmt: skip
_ROWS: dict[str, Row] = {
    "hold": replace(_ROW, diverged_at=BEFORE),
    "withdraw": replace(_ROW, wanted=False),
    "refuse.poisoned": replace(_ROW, suspect=True, suspect_claims=DEFAULTS.max_claims),
    "refuse.absent": replace(_ROW, wanted=False),
    "compensate.adopter": replace(_ROW, adopted_from=1),
}
_EARLIER: dict[str, Row] = {
    "adopt": EARLIER,
    "compensate.adopter": replace(EARLIER, state=State.COMPENSATED),
}


def example(edge: Edge, source: State) -> tuple[Row, Move, World]:
    """Return a legal use of the edge from one of its sources."""
    row = replace(_ROWS.get(edge.name, _ROW), state=source)
    earlier = _EARLIER.get(edge.name)
    # From executing, only the proof of an older attempt acknowledges.
    fence = FENCE - 1 if edge.name == "acknowledge" else FENCE
    move = Move(
        edge=edge.name, seq=row.seq, from_state=source, fence=fence, owner=OWNER, contract_id=1,
        final=edge.name == "refuse", transient=True, key_store=True, alone=True, digest="d",
        decisive=True, adopted_from=1 if earlier else None,
    )  # fmt: skip
    world = World(
        now=NOW,
        contract=CONTRACT,
        step=(earlier, row) if earlier else (row,),
        undo_committed=True,
    )
    return row, move, world
