"""Named places in an attempt and in a bind where a test or the demo may end or stop this process.

Inert unless `ACKBOX_FAULT_PLAN` names a plan file: a JSON list of {"point", "intent_id", "action"}.
Each entry fires once over all processes: the one that creates its marker file beside the plan.
The file may be replaced while processes run; each reads it anew when it has changed.
Shell. Never set in production; `ackbox doctor` says so where it is.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

PLAN_VARIABLE = "ACKBOX_FAULT_PLAN"
POINTS = ("before_send", "after_mark", "after_effect", "before_settle", "after_settle")
"""In order: claimed and built; marked, nothing on the wire; the tool has answered; the outcome is
known, not stored; stored, nobody told."""
CONSUMER_POINTS = (
    "before_bind", "in_bind", "before_bind_commit", "after_bind",
    "before_hand_over", "after_hand_over", "after_handed", "before_tell", "after_tell",
)  # fmt: skip
"""In order: settled and taken; bound in an open transaction; on_bound has returned in it; the bind
is durable; leased for after_bound; that has returned; that is on record, its batch is not; leased
for on_told; that has returned."""
_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


class FaultPoints:
    """The faults that this process may meet."""

    def __init__(self, plan_path: str | None) -> None:
        self._path = Path(plan_path) if plan_path else None
        self._plan: dict[tuple[str, str], str] = {}
        self._version: tuple[int, int] | None = None
        if self._path is not None:
            self._read_anew(self._path)

    @classmethod
    def from_environment(cls) -> FaultPoints:
        """Return the process's plan; an empty one where the variable is not set."""
        return cls(os.environ.get(PLAN_VARIABLE))

    @property
    def planned(self) -> bool:
        """Whether this process has a plan at all."""
        return self._path is not None

    def reach(self, point: str, intent_id: str) -> None:
        """Meet the fault planned for this point and intent, if it has not fired yet."""
        if self._path is None:
            return
        self._read_anew(self._path)
        action = self._plan.get((point, intent_id))
        if action is not None and self._is_first(point, intent_id):
            # To this very thread: a stop sent to the process waits for its main thread to be
            # scheduled, and until then this one would run on past the point.
            signal.pthread_kill(threading.get_ident(), _SIGNALS[action])

    def _read_anew(self, path: Path) -> None:
        status = path.stat()
        version = (status.st_ino, status.st_mtime_ns)
        if version == self._version:
            return
        entries = json.loads(path.read_text(encoding="utf-8"))
        # Replaced as a whole: another thread may be looking something up.
        self._plan = {(one["point"], one["intent_id"]): one["action"] for one in entries}
        self._version = version

    def _is_first(self, point: str, intent_id: str) -> bool:
        assert self._path is not None
        try:
            (self._path.parent / f"fired-{point}-{intent_id}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True
