"""Claims rows for this process: when a token says so, and again whenever a slot becomes free.

Attempts outlive the token that started them, bounded per lane. A row that killed its worker before
is claimed only when this process holds nothing unmarked, and runs alone until its mark. Shell.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from ...outbox.commands import Claimed
from ...outbox.errors import AckboxError
from ...outbox.shell.claim_store import ClaimStore
from .drain import UnknownLane
from .runner import Runner
from .slots import LaneSlots

_log = structlog.get_logger(__name__)
BATCH_LIMIT = 100
REFILL_SHARE = 4
"""A lane is claimed for again when a quarter of its slots is free: batches, not single rows."""
LOOK_SECONDS = 0.05
SUSPECT_SECONDS = 1.0


class ProcessDrainer:
    """The claiming side of one worker process; what wake tokens run (`drain.LaneDrainer`)."""

    def __init__(
        self,
        store: ClaimStore,
        runner: Runner,
        slots: LaneSlots,
        *,
        outbox: str,
        lanes: Collection[str],
        owner: UUID,
        contracts: Mapping[str, int],
    ) -> None:
        self._store = store
        self._runner = runner
        self._slots = slots
        self._outbox = outbox
        self._lanes = frozenset(lanes)
        self._owner = owner
        self._contracts = dict(contracts)
        self._refill = max(1, slots.slots_per_lane // REFILL_SHARE)
        self._stopping = threading.Event()
        self._alone = threading.Lock()
        self._hungry: set[str] = set()
        self._suspects: set[str] = set()
        self._looked: dict[str, float] = {}
        self._state = threading.Lock()
        self._thread = threading.Thread(target=self._refill_lanes, daemon=True)
        self._thread.name = "ackbox-refill"
        self._thread.start()

    # -- what a token runs -----------------------------------------------------------------------

    def drain(self, outbox: str, lane: str, limit: int, seconds: float) -> int:
        """Claim until the lane is empty, `limit` is reached, time is over or no slot is free.

        Returns the number of rows claimed. Raises UnknownLane for what is not served here.
        """
        if outbox != self._outbox or lane not in self._lanes:
            raise UnknownLane(f"{outbox}/{lane}")
        end_at = time.monotonic() + seconds
        claimed = 0
        while claimed < limit and time.monotonic() < end_at:
            wanted = min(limit - claimed, self._slots.free(lane), BATCH_LIMIT)
            got = self._claim(lane, wanted)
            claimed += got
            if got == 0 or got < wanted:
                break
        self._look_for_suspects(lane)
        return claimed

    def stop_claiming(self) -> None:
        """Claim no more; attempts without a mark are given back."""
        self._stopping.set()
        self._runner.stop()

    def has_suspects(self) -> bool:
        """Return whether rows that killed their worker wait to be claimed alone."""
        with self._state:
            return bool(self._suspects)

    def wait_idle(self, grace_seconds: float) -> bool:
        """Wait until nothing is in flight and, unless stopping, no lane waits for a free slot."""
        end_at = time.monotonic() + grace_seconds
        while (left := end_at - time.monotonic()) > 0:
            if not self._slots.wait_idle(left):
                return False
            with self._state:
                busy = (self._hungry or self._suspects) and not self._stopping.is_set()
            if not busy:
                return True
            self._stopping.wait(min(LOOK_SECONDS, left))
        return False

    # -- claiming --------------------------------------------------------------------------------

    def _claim(self, lane: str, wanted: int) -> int:
        if wanted <= 0:
            self._set_hungry(lane, True)
            return 0
        if not self._may_claim() or not self._alone.acquire(blocking=False):
            return 0
        try:
            claims = self._take(lane, wanted, alone=False)
        finally:
            self._alone.release()
        self._set_hungry(lane, len(claims) == wanted)
        return len(claims)

    def _may_claim(self) -> bool:
        """A process that would give back whatever it claims claims nothing."""
        return not (self._stopping.is_set() or self._runner.is_doubtful())

    def _take(self, lane: str, wanted: int, *, alone: bool) -> list[Claimed]:
        self._slots.take(lane, wanted)
        claims: list[Claimed] = []
        try:
            claims = self._store.claim(lane, wanted, self._owner, self._contracts, alone=alone)
        except (AckboxError, SQLAlchemyError) as error:
            # Also a lost COMMIT: what it claimed is nobody's and lapses by itself.
            _log.warning("claim_failed", lane=lane, code=_code(error))
        finally:
            self._slots.release(lane, wanted - len(claims))
        self._runner.start(claims, lambda claim: self._slots.release(claim.lane))
        return claims

    def _set_hungry(self, lane: str, hungry: bool) -> None:
        with self._state:
            (self._hungry.add if hungry else self._hungry.discard)(lane)

    # -- free slots claim by themselves ----------------------------------------------------------

    def _refill_lanes(self) -> None:
        while not self._stopping.is_set():
            with self._slots.changed:
                self._slots.changed.wait(LOOK_SECONDS)
            with self._state:
                hungry, suspects = sorted(self._hungry), sorted(self._suspects)
            for lane in hungry:
                if self._has_room(lane):
                    self._claim(lane, min(self._slots.free(lane), BATCH_LIMIT))
            for lane in suspects:
                self._run_suspect_alone(lane)

    def _has_room(self, lane: str) -> bool:
        return self._slots.free(lane) >= self._refill or self._slots.is_idle(lane)

    # -- rows that killed their worker -----------------------------------------------------------

    def _look_for_suspects(self, lane: str) -> None:
        now = time.monotonic()
        if now < self._looked.get(lane, 0.0) + SUSPECT_SECONDS:
            return
        self._looked[lane] = now
        try:
            found = self._store.suspect_ready(lane)
        except (AckboxError, SQLAlchemyError) as error:
            _log.warning("claim_failed", lane=lane, code=_code(error))
            return
        if found:
            with self._state:
                self._suspects.add(lane)

    def _run_suspect_alone(self, lane: str) -> None:
        """Claim one suspect row while this process holds nothing unmarked, until its mark."""
        with self._alone:
            if not self._wait_unmarked():
                return
            if not self._may_claim():
                return
            with self._state:
                self._suspects.discard(lane)
            if self._slots.free(lane) > 0 and self._take(lane, 1, alone=True):
                self._wait_unmarked()
                with self._state:
                    self._suspects.add(lane)

    def _wait_unmarked(self) -> bool:
        while self._runner.unmarked() > 0:
            if self._stopping.wait(LOOK_SECONDS / 10):
                return False
        return True


def _code(error: AckboxError | SQLAlchemyError) -> str:
    return error.code if isinstance(error, AckboxError) else type(error).__name__
