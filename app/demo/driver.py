"""The demo's planner: puts the plan's steps, loses patience, supersedes, and watches the kills.

It asks again by id and mints nothing. Steps are given out a window at a time; those of the reserve
come last and take over the kills that did not happen.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence

import structlog

from ...outbox.errors import AckboxError, ProtocolViolation
from ...outbox.identity import DEFAULT_NAMESPACE
from ...outbox.intent import Intent
from ...outbox.shell.planner_store import PlannerStore
from ...outbox.telling import tell
from ...outbox.told import InFlight
from ...tool_adapters.contract import IntentDraft
from .faults import KillPlan
from .figures import Ending
from .outbox_side import OutboxSide
from .plan import Step
from .progress import Snapshot
from .provider import ProviderProcess
from .schedule import Schedule, aim

WINDOW = 15
PATIENCE_SECONDS = 0.3
EFFECT_SEEN_SECONDS = 8.0
TICK_SECONDS = 0.1
STEAL_EVERY_TICKS = 8
CALM_SECONDS = 1.0
"""After this much time without news a kill that is still missing is taken for missed."""
_log = structlog.get_logger(__name__)
_NOT_STORED = Ending(None, False, False)


class Driver:
    """Drives one run on ackbox to its end."""

    def __init__(
        self,
        side: OutboxSide,
        provider: ProviderProcess,
        steps: Sequence[Step],
        schedule: Schedule,
        kill_plan: KillPlan,
        show: Callable[[Snapshot], None],
    ) -> None:
        self._side = side
        self._provider = provider
        self._steps = {one.name: one for one in steps}
        self._schedule = schedule
        self._kill_plan = kill_plan
        self._show = show
        self._store = PlannerStore(side.parts.statements, side.parts.limits)
        self._waiting = [one.name for one in steps if one.name not in schedule.reserve]
        self._reserve = list(schedule.reserve)
        self._put: list[str] = []
        self._fired: set[str] = set()
        self._news_at = time.monotonic()
        self._pause = threading.Event()
        self.endings: dict[str, Ending] = {name: _NOT_STORED for name in self._steps}
        self.replays = 0

    # -- the loop --------------------------------------------------------------------------------

    def run(self, limit_seconds: float) -> bool:
        """Run until every step has ended; False when the time was over or the pool gave up."""
        end_at = time.monotonic() + limit_seconds
        tick = 0
        while not self._is_done():
            if time.monotonic() >= end_at or self._side.has_given_up:
                return False
            self._emit()
            self._look()
            self._call_on_reserve()
            tick += 1
            if tick % STEAL_EVERY_TICKS == 0:
                self._side.thief.steal()
            self._pause.wait(TICK_SECONDS)
        return True

    @property
    def kills(self) -> int:
        """Kills that happened: a marker for each, and a process that died for each."""
        return min(len(self._fired), self._side.deaths)

    def finish(self) -> None:
        """Read how every step stands, for the last time, and log what went wrong on the way."""
        self._look()
        _log.info(
            "went_wrong",
            kills=self.kills,
            replays=self.replays,
            wakes_lost=self._side.ringer.lost + self._side.thief.stolen,
            wakes_doubled=self._side.ringer.doubled,
        )

    def _is_done(self) -> bool:
        return not self._waiting and not self._reserve and not self._open()

    def _open(self) -> list[str]:
        return [name for name in self._put if not self.endings[name].ended]

    def _look(self) -> None:
        endings = self._read(self._put)
        fired = self._kill_plan.fired()
        if fired != self._fired or endings != {name: self.endings[name] for name in self._put}:
            self._news_at = time.monotonic()
        self._fired = fired
        self.endings.update(endings)
        words = [ending.word for ending in self.endings.values()]
        ended = sum(ending.ended for ending in self.endings.values())
        self._show(Snapshot(ended, len(self._steps), self.kills, words.count("unknown")))

    def _read(self, names: Collection[str]) -> dict[str, Ending]:
        keys = {(DEFAULT_NAMESPACE, self._steps[name].intent_id): name for name in names}
        if not keys:
            return {}
        read = self._side.parts.database.run(lambda c: self._store.steps(c, keys))
        endings = {}
        for key, name in keys.items():
            generations, now = read.get(key, ([], None))
            telling = tell(generations, None, now) if now is not None else None
            endings[name] = (
                Ending(telling.told, telling.finished, telling.bound) if telling else _NOT_STORED
            )
        return endings

    # -- putting ---------------------------------------------------------------------------------

    def _emit(self) -> None:
        while self._waiting and len(self._open()) < WINDOW:
            self._begin(self._steps[self._waiting.pop(0)])

    def _begin(self, step: Step) -> None:
        seconds = self._schedule.answer_seconds(step.name)
        if seconds:
            self._provider.answer_late(step.lane, step.intent_id, seconds)
        intent = self._put_step(step)
        self._put.append(step.name)
        if step.name in self._schedule.impatient:
            self._lose_patience(step, intent)
        if step.name in self._schedule.superseded:
            self._supersede(step, intent)

    def _put_step(self, step: Step) -> Intent:
        draft = IntentDraft(step.tool, 1, step.lane, step.args)
        return self._side.planner.put(draft, run_id=step.run_id, step=step.name)

    def _lose_patience(self, step: Step, intent: Intent) -> None:
        """Ask again after a time-out, as a planner does that has forgotten what it did."""
        told = self._side.planner.wait(intent, timeout_seconds=PATIENCE_SECONDS)
        if not isinstance(told, InFlight):
            return
        self._side.planner.note_timeout(intent)
        again = self._put_step(step)
        self.replays += 1
        if again.created or again.seq != intent.seq:
            raise ProtocolViolation(
                f"a replay of {step.name} minted another intent",
                effect_may_exist="A second effect may exist.",
                next_step=f"ackbox show {intent.intent_id}",
            )

    def _supersede(self, step: Step, intent: Intent) -> None:
        """Replace the step once its effect is done and before its result has come."""
        end_at = time.monotonic() + EFFECT_SEEN_SECONDS
        while time.monotonic() < end_at:
            if self._provider.effects().get(intent.wire_key):
                break
            self._pause.wait(TICK_SECONDS / 2)
        try:
            self._side.planner.supersede(intent, 0)
        except AckboxError as error:
            _log.warning("not_superseded", step=step.name, code=error.code)

    # -- kills that did not happen ---------------------------------------------------------------

    def _call_on_reserve(self) -> None:
        """Give out the reserve once it is clear how many kills are missing."""
        if not self._reserve or self._waiting or not self._has_settled_down():
            return
        wanted = len(self._schedule.kills) - self.kills
        victims, self._reserve = self._reserve[:wanted], self._reserve[wanted:]
        if wanted <= 0:
            victims, self._reserve = self._reserve, []
        else:
            self._kill_plan.aim(aim([self._steps[name] for name in victims]))
        self._waiting += victims
        self._news_at = time.monotonic()

    def _has_settled_down(self) -> bool:
        """Return whether no planned kill can still happen."""
        if time.monotonic() - self._news_at < CALM_SECONDS:
            return False
        open_victims = set(self._open()) & set(self._kill_plan.aimed)
        return not open_victims - self._fired
