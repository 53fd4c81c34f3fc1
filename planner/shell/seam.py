"""What lies between a planner's calls and its outbox: the seam at which another outbox may stand.

Shapes only. The shipped outbox is a Postgres schema (`parts`, `link`, `async_link`); a test's may
be memory. Whatever stands here, what a call does is decided in `operations`. Shell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sqlalchemy import Connection, Engine, RowMapping
from sqlalchemy.ext.asyncio import AsyncEngine

from ...outbox.compensate import CompensationRequest, OrderedCompensation
from ...outbox.intent import Address, Content, Draft, Intent
from ...outbox.model import Refusal, State
from ...outbox.shell.compensation_store import UndoTarget
from ...outbox.telling import Generation, Telling
from .joining import AsyncOn, On

if TYPE_CHECKING:
    from .operations import Operation, Operations

T = TypeVar("T")
Row = RowMapping | Mapping[str, Any]
"""One generation's immutable part, by column."""


class StepStore(Protocol):
    """The rows of steps, each call in the transaction of a connection."""

    def put(
        self, connection: Connection, drafts: Sequence[Draft], *, keep: bool = False
    ) -> list[Intent | Refusal]:
        """Insert drafts, or find what stands under their ids; one answer per draft, in order."""

    def note_refusal(self, connection: Connection, subject: str, code: str) -> None:
        """Put a refused put on record."""

    def note(self, connection: Connection, intent: Intent, name: str) -> None:
        """Append an event of the planner that moves nothing."""

    def steps(
        self, connection: Connection, names: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], tuple[list[Generation], datetime]]:
        """Read all generations of the named steps, with the store's time."""

    def find(self, connection: Connection, name: tuple[str, str]) -> Intent | None:
        """Return the live generation of a step as an intent."""

    def generation(self, connection: Connection, address: Address, generation: int) -> Row | None:
        """Read one generation's immutable part."""

    def supersede(
        self,
        connection: Connection,
        address: Address,
        from_generation: int,
        content: Content | None = None,
        deadline: datetime | None = None,
    ) -> Intent | Refusal:
        """Replace the live generation by the next one."""

    def cancel(self, connection: Connection, address: Address) -> State | Refusal:
        """Withdraw the live generation, or record that it is not wanted."""


class UndoStore(Protocol):
    """The compensations of an outbox, each call in the transaction of a connection."""

    def undo_target(self, connection: Connection, seq: int) -> UndoTarget | None:
        """Return whose effect a compensation of a row would undo."""

    def order(
        self, connection: Connection, seq: int, plan: CompensationRequest
    ) -> OrderedCompensation | Refusal:
        """Insert the intent that undoes a row's effect, or say why not."""


class Waits(Protocol):
    """Waits for steps. They change nothing, however they end."""

    def wait(
        self, address: Address, timeout_seconds: float, *, until_bound: bool = False
    ) -> Telling | None:
        """Wait on a thread; None where no such step is visible."""

    async def wait_async(
        self, address: Address, timeout_seconds: float, *, until_bound: bool = False
    ) -> Telling | None:
        """Wait on an event loop."""


class Parts(Protocol):
    """What a planner has beside the way of its calls."""

    @property
    def operations(self) -> Operations:
        """Its calls."""

    @property
    def waiters(self) -> Waits:
        """Its waits."""

    def may_be_open(self, address: Address) -> bool:
        """Return whether a transaction of this process may still hold the step back."""

    def ring(self, lanes: Iterable[str] | None) -> None:
        """Ring lanes, or those of puts on bare connections."""

    def close(self) -> None:
        """End the waits, and ring what waits to be rung."""


class Way(Protocol):
    """The way of the calls of a planner that threads use."""

    def run(self, operation: Operation[T], on: On | None = None) -> T:
        """Run an operation in the caller's transaction, or in one of its own."""

    def note(self, operation: Operation[None]) -> None:
        """Record a refusal, whatever becomes of the caller's transaction."""

    def know_own(self) -> None:
        """Learn which outbox our own database holds, if it answers."""

    def engine(self) -> Engine:
        """Return the engine of our own transactions."""

    def close(self) -> None:
        """Close the connections."""


class AsyncWay(Protocol):
    """The way of the calls of a planner that an event loop uses."""

    async def run(self, operation: Operation[T], on: AsyncOn | None = None) -> T:
        """Run an operation in the caller's transaction, or in one of its own."""

    async def note(self, operation: Operation[None]) -> None:
        """Record a refusal, whatever becomes of the caller's transaction."""

    async def know_own(self) -> None:
        """Learn which outbox our own database holds, if it answers."""

    def engine(self) -> AsyncEngine:
        """Return the engine of our own transactions on the running loop."""

    async def close(self) -> None:
        """Close the connections of the running loop, and what threads had."""
