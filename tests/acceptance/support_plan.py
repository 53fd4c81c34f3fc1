"""The plans of the consumers that acceptance tests kill: `plan`, and `async_plan` with async def.

What is written through the bind's session stands in table `advance`, and the next step in the
outbox itself. Each call of a callback is put on record at once, on a connection of its own, in
table `called`: that is what a call to the outside world would leave behind.
"""

import os
from functools import cache
from typing import Any

import psycopg
from sqlalchemy import text
from sqlalchemy.engine import make_url

from ackbox import AsyncBound, AsyncPlanner, Bound, Plan, Planner

TOOL = "tickets.create"
ADVANCE = text("INSERT INTO advance VALUES (:intent_id)")
plan = Plan()
async_plan = Plan()


def record(kind: str, intent_id: str) -> None:
    """Put a call on record, whatever becomes of any transaction."""
    url = make_url(os.environ["ACKBOX_DATABASE_URL"]).set(drivername="postgresql")
    plain = url.render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute("INSERT INTO called VALUES (%s, %s)", (kind, intent_id))


def following(bound: Any) -> dict[str, Any]:
    """Return how the step after a bound one is named."""
    return {"intent_id": f"after-{bound.intent.intent_id}"}


@cache
def planner() -> Planner:
    """Return the planner of `plan`."""
    return Planner.connect()


@cache
def async_planner() -> AsyncPlanner:
    """Return the planner of `async_plan`: kept from call to call, on the consumer's one loop."""
    return AsyncPlanner.connect()


@plan.on_bound(TOOL)
def advance(bound: Bound) -> None:
    """Go on in the bind's transaction."""
    record("on_bound", bound.intent.intent_id)
    bound.session.execute(ADVANCE, {"intent_id": bound.intent.intent_id})
    planner().put("mails.send", {}, on=bound.session, **following(bound))


@plan.after_bound(TOOL)
def hand_over(bound: Bound) -> None:
    """Tell the outside world."""
    record("after_bound", bound.intent.intent_id)


@plan.on_told("unknown")
def told(bound: Bound) -> None:
    """Tell the outside world."""
    record("on_told", bound.intent.intent_id)


@async_plan.on_bound(TOOL)
async def async_advance(bound: AsyncBound) -> None:
    """Go on in the bind's transaction."""
    record("on_bound", bound.intent.intent_id)
    await bound.session.execute(ADVANCE, {"intent_id": bound.intent.intent_id})
    await async_planner().put("mails.send", {}, on=bound.session, **following(bound))


@async_plan.after_bound(TOOL)
async def async_hand_over(bound: AsyncBound) -> None:
    """Tell the outside world."""
    record("after_bound", bound.intent.intent_id)


@async_plan.on_told("unknown")
async def async_told(bound: AsyncBound) -> None:
    """Tell the outside world."""
    record("on_told", bound.intent.intent_id)
