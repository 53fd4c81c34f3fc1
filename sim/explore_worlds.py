"""The small worlds that are explored: the default one, the table of kinds, and what flags make.

Each kind of tool promises something else; each world bounds how much may go wrong in it. May import
`explore` and the specifications of worlds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .explore import SmallWorld
from .explore_offers import LOST_CLAIM, Faults
from .records import Frozen
from .tool_specs import ToolSpec
from .world import Choice
from .world_spec import WorldSpec


@dataclass(frozen=True, slots=True)
class Flags:
    """The default world of `ackbox sim explore`, chosen by measurement."""

    generations: int = 2
    crashes: int = 1
    redeliveries: int = 1


DEFAULTS = Flags()
LIMITS: dict[str, Any] = {"max_sends": 2, "max_resends": 1, "max_probes": 1}
"""How long a small world's ladder is."""
TOOLS: dict[str, dict[str, Any]] = {
    "keyless": {},
    "keyed": {"key": "idempotent"},
    "windowed": {"key": "idempotent", "key_window_seconds": 600.0},
    "client_id": {"key": "client_id"},
    "probed": {"probe": "strong"},
    "lagging": {"probe": "weak", "lag_seconds": 120.0},
    "undoable": {"probe": "strong", "undo": "undo"},
    "keyed_undoable": {"key": "idempotent", "undo": "undo"},
    "no_echo": {"key": "idempotent", "honours_key": False, "echoes": False},
}
"""What the tool of a small world promises and does."""
STEP = "s"
PUT: Choice = ("put", STEP, "tool", Frozen(title="x"))
SAME: Choice = ("supersede", STEP)
OTHER: Choice = ("supersede", STEP, Frozen(title="y"))
BACK: Choice = ("supersede", STEP, Frozen(title="x"))
CANCEL: Choice = ("cancel", STEP)
UNDO: Choice = ("compensate", STEP)
LATE: Choice = ("late", STEP)


def spec_of(kind: str, workers: int = 2, **more: Any) -> WorldSpec:
    """Return a world with one tool of a kind, and the tool that undoes it where there is one."""
    options = {**TOOLS[kind], **LIMITS, **more}
    tools = [ToolSpec("tool", **options)]
    if options.get("undo"):
        by = "marker" if options.get("probe") == "strong" else "ref"
        tools.append(ToolSpec("undo", service="tool", undoes=by, **LIMITS))
    return WorldSpec(tuple(tools), workers=tuple(f"w{n + 1}" for n in range(workers)))


def world_of_flags(
    kind: str, workers: int, intents: int, generations: int, faults: Faults
) -> SmallWorld:
    """Return the world that the flags of `ackbox sim explore` describe."""
    plan: list[Choice] = []
    for number in range(intents):
        step = STEP if number == 0 else f"{STEP}{number + 1}"
        plan.append(("put", step, "tool", Frozen(title="x")))
        plan += [("supersede", step)] * (generations - 1)
    about = f"{workers} workers, {intents} steps of {generations} generations, a {kind} tool"
    return SmallWorld(kind, about, spec_of(kind, workers), tuple(plan), faults)


DEFAULT = replace(
    world_of_flags(
        "keyless", 2, 1, DEFAULTS.generations, Faults(DEFAULTS.redeliveries, DEFAULTS.crashes)
    ),
    name="default",
)
"""What `ackbox sim explore` explores where no flag is given."""


def _says(what: str, *, duplicate: bool = False) -> Choice:
    return ("says", STEP, what, None, None, True) if duplicate else ("says", STEP, what)


TRUTHFUL = (_says("landed"), _says("not_landed"))
"""Statements that are sometimes true: a search makes them in every state, so they are mistaken too.

A mistake is allowed one more effect of its step, and nothing else."""
_LOST_COMMITS = ("lost_commit", "no_commit", LOST_CLAIM)
_ONE = Faults(crashes=1, redeliveries=1)
_BAD_WIRE = Faults(cuts=1, losses=1, redeliveries=1)


def _world(
    name: str, about: str, spec: WorldSpec, plan: tuple[Choice, ...], faults: Faults,
    *statements: Choice,
) -> SmallWorld:  # fmt: skip
    return SmallWorld(name, about, spec, plan, faults, statements)


TABLE: tuple[SmallWorld, ...] = (
    _world("keyless", "one generation, a crash, a redelivery", spec_of("keyless"), (PUT,), _ONE),
    _world("keyless_wire", "lost requests and answers", spec_of("keyless"), (PUT,), _BAD_WIRE),
    _world("keyless_person", "a person who may be mistaken", spec_of("keyless"), (PUT,),
           Faults(cuts=1, redeliveries=1), *TRUTHFUL),
    _world("keyless_requeue", "a person queues again, knowingly or not", spec_of("keyless"), (PUT,),
           Faults(cuts=1), _says("requeue"), LATE),
    _world("keyless_cancel", "called off at any moment", spec_of("keyless"), (PUT, CANCEL), _ONE),
    _world("keyless_refusals", "429, 422 and 503", spec_of("keyless"), (PUT,),
           Faults(redeliveries=1, fates=("too_many_requests", "refused", "error_before_effect"))),
    _world("keyless_deadline", "a deadline that may pass anywhere", spec_of("keyless"),
           (("put", STEP, "tool", Frozen(title="x"), None, 100.0),), _ONE),
    _world("probed", "a strong probe, a crash", spec_of("probed"), (PUT,), _ONE),
    _world("probed_wire", "a strong probe, lost requests", spec_of("probed"), (PUT,), _BAD_WIRE),
    _world("probed_person", "a strong probe and a person", spec_of("probed"), (PUT,),
           Faults(cuts=1), *TRUTHFUL),
    _world("lagging", "an index that lags", spec_of("lagging"), (PUT,), _ONE),
    _world("lagging_person", "an index that lags, and a person", spec_of("lagging"), (PUT,),
           Faults(cuts=1), *TRUTHFUL),
    _world("keyed", "a key without a window", spec_of("keyed"), (PUT,), _ONE),
    _world("keyed_person", "a key, and a person who may be mistaken", spec_of("keyed"), (PUT,),
           Faults(cuts=1), *TRUTHFUL),
    _world("windowed", "a key window that passes", spec_of("windowed"), (PUT,), Faults(cuts=1)),
    _world("windowed_person", "a key window, a mistaken person, a late answer",
           spec_of("windowed"), (PUT,), Faults(cuts=1), _says("not_landed"), LATE),
    _world("stored_error", "an error that the key store replays", spec_of("keyed"), (PUT,),
           Faults(cuts=1, fates=("stored_error", "stored_refusal"))),
    _world("stored_error_windowed", "replayed until the key window has passed",
           spec_of("windowed"), (PUT,), Faults(cuts=1, fates=("stored_error",))),
    _world("stored_error_bare", "replayed without a header", spec_of("keyed", replays=False),
           (PUT,), Faults(cuts=1, fates=("stored_error", "stored_refusal"))),
    _world("client_id", "the key is the object's identity", spec_of("client_id"), (PUT,),
           Faults(cuts=1, losses=1)),
    _world("client_id_person", "the key is the identity, and a person", spec_of("client_id"),
           (PUT,), Faults(cuts=1), *TRUTHFUL),
    _world("no_echo", "2xx without the echo that was promised", spec_of("keyed"), (PUT,),
           Faults(cuts=1, fates=("no_echo", "empty_success", "garbage", "cut_success"))),
    _world("lost_commits", "COMMITs without an acknowledgement, two reconcilers",
           replace(spec_of("keyed"), reconcilers=("r1", "r2")), (PUT,),
           Faults(cuts=1, faults=_LOST_COMMITS)),
    _world("lost_commits_twice", "two lost COMMITs, keyless", spec_of("keyless"), (PUT,),
           Faults(redeliveries=1, faults=_LOST_COMMITS, odd_faults=2)),
    _world("lost_commits_probed", "lost COMMITs, a strong probe", spec_of("probed"), (PUT,),
           Faults(faults=_LOST_COMMITS)),
    _world("lost_commits_windowed", "lost COMMITs, a key window that passes", spec_of("windowed"),
           (PUT,), Faults(cuts=1, faults=_LOST_COMMITS)),
    _world("frozen", "a process that stands still beyond its lease", spec_of("probed"), (PUT,),
           Faults(freezes=1, redeliveries=1)),
    _world("restarted", "a worker that dies and comes back", spec_of("keyed"), (PUT,),
           Faults(crashes=1, restarts=1, redeliveries=1)),
    _world("two_same", "two generations, same arguments", spec_of("keyless"), (PUT, SAME),
           Faults(crashes=1)),
    _world("two_same_keyed", "two generations, same arguments, a key", spec_of("keyed"),
           (PUT, SAME), Faults(cuts=1)),
    _world("two_same_probed", "same arguments, a strong probe, one worker", spec_of("probed", 1),
           (PUT, SAME), Faults()),
    _world("two_same_client_id", "same arguments, the key is the identity, one worker",
           spec_of("client_id", 1), (PUT, SAME), Faults()),
    _world("two_other", "two generations, other arguments", spec_of("keyless"), (PUT, OTHER),
           Faults(crashes=1)),
    _world("two_other_probed", "other arguments, a strong probe", spec_of("probed"), (PUT, OTHER),
           Faults(cuts=1)),
    _world("two_other_lagging", "other arguments, an index that lags, one worker",
           spec_of("lagging", 1), (PUT, OTHER), Faults()),
    _world("two_other_mistaken", "other arguments, a mistaken person", spec_of("keyless"),
           (PUT, OTHER), Faults(cuts=1), _says("not_landed"), LATE),
    _world("three_a_b_a", "three generations: a, b, a", spec_of("keyless"), (PUT, OTHER, BACK),
           Faults(cuts=1)),
    _world("gate", "an approval before each generation", spec_of("keyless"),
           (("put", STEP, "tool", Frozen(title="x"), "policy"), OTHER), Faults(),
           ("decide", STEP, "approved"), ("decide", STEP, "rejected")),
    _world("gate_keyed", "an approval, then a lost answer and a key", spec_of("keyed"),
           (("put", STEP, "tool", Frozen(title="x"), "policy"),), Faults(cuts=1),
           ("decide", STEP, "approved"), ("decide", STEP, "rejected")),
    _world("gate_cancel", "called off before, at or after the approval", spec_of("keyless"),
           (("put", STEP, "tool", Frozen(title="x"), "policy"), CANCEL), Faults(crashes=1),
           ("decide", STEP, "approved")),
    _world("undo", "an effect that is undone on request", spec_of("undoable"), (PUT, UNDO),
           Faults(cuts=1)),
    _world("undo_keyed", "undone by reference, a key", spec_of("keyed_undoable"), (PUT, UNDO),
           Faults(cuts=1)),
    _world("undo_first", "the earlier effect is undone for the next generation, one worker",
           spec_of("undoable", 1), (PUT, OTHER), Faults()),
    _world("undone_by_hand", "a person undoes it, and says so", spec_of("keyless"), (PUT,),
           Faults(cuts=1), ("undo_by_hand", STEP), _says("undone")),
    _world("handed_over", "callbacks that raise or whose consumer dies", spec_of("keyless"),
           (PUT,), Faults(faults=("callback_raises", "dies_after_callback"), odd_faults=2)),
    _world("read_set", "what the plan read changes", spec_of("keyless"),
           (("put", STEP, "tool", Frozen(title="x"), None, None, None, Frozen(stock=0)),
            ("touch", "stock")), _ONE),
    _world("paused", "sends stop and go on", spec_of("keyed"),
           (PUT, ("pause", "tool"), ("pause", "tool")), Faults(cuts=1)),
)  # fmt: skip
"""The kinds of world that the protocol's own model was checked in, on the shipped code."""
SMALL = {world.name: world for world in (DEFAULT, *TABLE)}


def mints(world: SmallWorld) -> SmallWorld:
    """Return the world with a planner that times out once, and mints a new id then."""
    plan = (*world.plan[:1], ("ask_again", STEP, True), *world.plan[1:])
    return replace(world, name=f"{world.name}_minting", plan=plan)
