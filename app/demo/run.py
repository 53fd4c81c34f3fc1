"""One run of the demo: ackbox first, then the same plan and the same kills on bare RQ.

Whatever is started here is stopped again, in the reverse order, however the run ends.
"""

from __future__ import annotations

import secrets
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from ...outbox.errors import ConfigError
from ...outbox.shell.history import history
from ...outbox.shell.migrate import upgrade
from ...outbox.told import Committed
from ..environment import started_services
from ..logging import configure_logging
from ..settings import Settings
from ..urls import revealed
from .driver import Driver
from .faults import KillPlan
from .figures import Ending, Figures, count_ackbox, count_naive
from .naive import NaiveSide
from .naive_job import KEY_SEPARATOR
from .outbox_side import OutboxSide, outbox_side, run_settings
from .plan import Step, plan_steps
from .progress import Display
from .provider import ProviderProcess, by_step, open_log
from .schedule import Schedule, draw_schedule

SECONDS_PER_STEP = 0.5
SECONDS_PER_KILL = 3.0
SPARE_SECONDS = 60.0
GENERATION_SEPARATOR = "~"
DisplayMaker = Callable[[str], AbstractContextManager[Display]]


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for on the command line."""

    steps: int
    workers: int
    kills: int
    seed: int

    @property
    def limit_seconds(self) -> float:
        """The longest that one side may take."""
        return SPARE_SECONDS + SECONDS_PER_STEP * self.steps + SECONDS_PER_KILL * self.kills


@dataclass(frozen=True, slots=True)
class Run:
    """One run's names: `r1` in the schema and outbox `demo_1`, with a folder for its logs."""

    number: int
    name: str
    folder: Path

    @property
    def run_id(self) -> str:
        """The plan's run, as in `ackbox show r1:open-ticket-1`."""
        return f"r{self.number}"


@dataclass(frozen=True, slots=True)
class Told:
    """What a run has to tell in the end."""

    figures: Figures
    show_hint: str
    folder: Path


def run_demo(
    settings: Settings,
    request: Request,
    display: DisplayMaker,
    announce: Callable[[str], None],
) -> Told:
    """Run both sides and count. Raises ConfigError where the services cannot be had."""
    with started_services(settings) as (running, services):
        if running.redis_url is None:
            raise ConfigError(
                "the demo needs Redis beside the database", next_step="set ACKBOX_REDIS_URL"
            )
        run = _claim_run(settings.data_dir, is_private=services is not None)
        with (run.folder / "demo.log").open("a", encoding="utf-8") as log:
            configure_logging("info", "json", log)
            announce(services.describe() if services else "PostgreSQL and Redis of your settings")
            own = run_settings(running, run.name, request.workers)
            return _run_both(own, request, run, display)


def _claim_run(data_dir: Path, *, is_private: bool) -> Run:
    """Take the next free number; the folder is what keeps two demos apart.

    On servers that others share, the name must be free there too, hence the random part.
    """
    for number in count(1):
        folder = data_dir / "demo" / str(number)
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        suffix = "" if is_private else f"_{secrets.token_hex(4)}"
        return Run(number, f"demo_{number}{suffix}", folder)
    raise AssertionError("numbers do not end")


def _run_both(settings: Settings, request: Request, run: Run, display: DisplayMaker) -> Told:
    upgrade(revealed(settings.direct_url), schema=run.name, outbox=run.name)
    steps = plan_steps(run.run_id, request.steps)
    schedule = draw_schedule(steps, request.kills, request.seed)
    ours = _run_ackbox(settings, request, run, steps, schedule, display)
    effects = _run_naive(settings, request, run, steps, schedule, ours, display)
    figures = Figures(
        steps=len(steps),
        ackbox=count_ackbox(steps, ours.effects, ours.endings),
        committed=sum(one.word == Committed.word for one in ours.endings.values()),
        unknown=sum(ours.endings[one.name].parked for one in steps if one.is_keyless),
        stale_rejected=ours.stale,
        kills=ours.kills,
        naive=count_naive(steps, effects),
        remarks=tuple(_remarks(request, ours)),
    )
    hint = _show_hint(run, steps, schedule, ours.endings)
    return Told(figures, hint, run.folder)


@dataclass(frozen=True, slots=True)
class _Ours:
    effects: dict[str, int]
    endings: dict[str, Ending]
    fired: dict[str, str]
    """Step and point of every kill that happened: bare RQ meets the same."""
    kills: int
    stale: int
    finished: bool


def _run_ackbox(
    settings: Settings,
    request: Request,
    run: Run,
    steps: Sequence[Step],
    schedule: Schedule,
    display: DisplayMaker,
) -> _Ours:
    folder = run.folder / "ackbox"
    folder.mkdir()
    kill_plan = KillPlan(folder, {one.name: one for one in steps}, schedule.kills)
    with (
        open_log(run.folder, "provider") as log,
        ProviderProcess(log) as provider,
        outbox_side(
            settings, provider.url, run.folder, kill_plan.path,
            seed=request.seed, kills=request.kills,
        ) as side,
        display("ackbox") as shown,
    ):  # fmt: skip
        driver = Driver(side, provider, steps, schedule, kill_plan, shown.show)
        finished = driver.run(request.limit_seconds)
        driver.finish()
        return _Ours(
            effects=dict(by_step(provider.effects(), GENERATION_SEPARATOR)),
            endings=driver.endings,
            fired={name: kill_plan.aimed[name] for name in kill_plan.fired()},
            kills=driver.kills,
            stale=_count_stale(side, [one for one in steps if one.name in schedule.superseded]),
            finished=finished,
        )


def _count_stale(side: OutboxSide, superseded: Sequence[Step]) -> int:
    """Count on the record the results that came for a generation which had passed."""

    def names(intent_id: str) -> list[str]:
        found = side.parts.database.run(lambda c: history(c, side.parts.statements, intent_id))
        return [] if found is None else [entry.name for entry in found.entries]

    return sum(names(one.intent_id).count("stale") for one in superseded)


def _run_naive(
    settings: Settings,
    request: Request,
    run: Run,
    steps: Sequence[Step],
    schedule: Schedule,
    ours: _Ours,
    display: DisplayMaker,
) -> dict[str, int]:
    folder = run.folder / "naive"
    folder.mkdir()
    kill_plan = KillPlan(folder, {one.name: one for one in steps}, ours.fired)
    with (
        open_log(run.folder, "naive-provider") as log,
        ProviderProcess(log) as provider,
        display("plain RQ with Retry") as shown,
    ):
        side = NaiveSide(
            revealed(settings.redis_url), run.name, provider, schedule, kill_plan, shown.show
        )
        side.run(
            steps, workers=request.workers, folder=run.folder, limit_seconds=request.limit_seconds
        )
        return dict(by_step(provider.effects(), KEY_SEPARATOR))


def _remarks(request: Request, ours: _Ours) -> list[str]:
    remarks = []
    if not ours.finished:
        remarks.append("ackbox was not done when the time was over, or its pool gave up")
    if ours.kills != request.kills:
        remarks.append(
            f"{ours.kills} of {request.kills} kills happened: the others' calls were cut by a"
            " neighbour's kill before they reached their point, and no step was left to aim at"
        )
    return remarks


def _show_hint(
    run: Run, steps: Sequence[Step], schedule: Schedule, endings: dict[str, Ending]
) -> str:
    """Return the command that tells one step's story: a killed one that came out well at best."""
    killed = [one for one in steps if schedule.kills.get(one.name) == "after_effect"]
    settled = [one for one in killed if not endings[one.name].parked]
    step = [*settled, *killed, *steps][0]
    names = f"--schema {run.name} --outbox {run.name}"
    return f"{_program()} show {names} {run.run_id}:{step.name}"


def _program() -> str:
    """Return what to type for `ackbox`: its path, as seen from here, where PATH does not have it.

    After `make demo` it stands in the checkout's environment, which nobody has activated.
    """
    own = Path(sys.executable).with_name("ackbox")
    found = shutil.which("ackbox")
    if not own.exists() or (found is not None and Path(found).samefile(own)):
        return "ackbox"
    here = Path.cwd()
    return str(own.relative_to(here) if own.is_relative_to(here) else own)
