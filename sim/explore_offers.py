"""What a search offers in a state of a small world.

It takes the choices of `choices` and bounds them in its own way: a row is claimed a number of
times, while time may pass as often as somebody waits for something. Redelivered wake tokens are
tried in every state, also where the row is not ready: they have to change nothing there.

May import `choices` and `explore_key`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from .choices import Bounds, Search
from .explore_key import StateKeys
from .world import Choice, World

LOST_CLAIM = "lost_claim"
"""The fault of a claim whose COMMIT was kept while nobody learned of it."""
LOST_AT = 4
"""Where in a claim its lost COMMIT stands."""


@dataclass(frozen=True, slots=True)
class Faults:
    """How often each thing may happen in a world; what is not named does not happen."""

    redeliveries: int = 0
    """Claims beside each row's first, of all rows together; with any, a token may come always."""
    crashes: int = 0
    restarts: int = 0
    freezes: int = 0
    cuts: int = 0
    losses: int = 0
    fates: tuple[str, ...] = ()
    """What may become of one request instead of its plain answer."""
    odd_fates: int = 1
    faults: tuple[str, ...] = ()
    """What one step may meet: faults of `driver.FAULTS`, or `LOST_CLAIM`."""
    odd_faults: int = 1

    def bounds(self, plan: tuple[Choice, ...], statements: tuple[Choice, ...]) -> Bounds:
        """Return the bounds of a search under these faults."""
        return Bounds(
            plan=plan, statements=statements, crashes=self.crashes, restarts=self.restarts,
            freezes=self.freezes, cuts=self.cuts, losses=self.losses, fates=self.fates,
            odd_fates=self.odd_fates if self.fates else 0, faults=self.faults,
            odd_faults=self.odd_faults if self.faults else 0, waits=0,
        )  # fmt: skip


class Offers:
    """The choices of one search's states, in a fixed order, and the states' keys."""

    def __init__(self, search: Search, faults: Faults) -> None:
        self._search = search
        self._redeliveries = faults.redeliveries
        self._keys = StateKeys()

    def choices(self) -> list[Choice]:
        """Return everything that may happen now."""
        search, found = self._search, list[Choice]()
        left = self._claims_left(search.world)
        bounds = search.bounds
        loses_claims = bounds.odd_faults > 0 and LOST_CLAIM in bounds.faults
        for choice in search.choices():
            if choice[0] != "claim":
                found.append(choice)
            elif choice[2] in left:
                found.append(choice)
                if loses_claims:
                    found.append((*choice, None, True))
        if self._redeliveries > 0:
            found += _redelivered(search.world, found)
        return found + self._next_wait()

    def _claims_left(self, world: World) -> set[str]:
        """Return the steps whose live row may be claimed once more; each resend took one fence."""
        tables = world.store.tables
        claims = {seq: row.fence - row.resends for seq, row in tables.rows.items()}
        spent = sum(max(count - 1, 0) for count in claims.values()) >= self._redeliveries
        return {
            tables.intents[seq].intent_id
            for seq, row in tables.rows.items()
            if row.live and (claims[seq] < 1 or not spent)
        }

    def apply(self, choice: Choice) -> bool:
        """Let one thing happen; False where it is refused now."""
        search = self._search
        if not search.apply(choice):
            return False
        if choice[0] == "claim" and len(choice) > LOST_AT:
            search.bounds = search.bounds.less(odd_faults=search.bounds.odd_faults - 1)
        return True

    def changed_nothing(self, choice: Choice) -> bool:
        """Return whether the last choice was a claim that found nothing to claim."""
        return choice[0] == "claim" and not self._search.world.store.tables.dirty

    def key(self) -> Hashable:
        """Return what tells this state from others."""
        return self._keys.key(self._search.world, self._search.bounds.left)

    def _next_wait(self) -> list[Choice]:
        """Return the wait for the next moment that tells two states apart, if there is one."""
        world = self._search.world
        moment = self._keys.next_moment(world)
        return [] if moment is None else [("wait", (moment - world.clock.now).total_seconds())]


def _redelivered(world: World, offered: list[Choice]) -> Iterator[Choice]:
    """Yield a claim of every row that is not ready, by the first worker that is idle."""
    idle = next((name for name in world.spec.workers if _is_idle(world, name)), None)
    if idle is None:
        return
    ready = {choice[2] for choice in offered if choice[0] == "claim"}
    now = world.clock.now
    for seq, row in world.store.tables.rows.items():
        step = world.store.tables.intents[seq].intent_id
        if row.live and step not in ready and not (row.ready_at and row.ready_at <= now):
            yield ("claim", idle, step)


def _is_idle(world: World, name: str) -> bool:
    return world.processes[name].runs and not any(t.process == name for t in world.tasks.values())
