"""Several versions of one tool: which code serves a row, and what it makes of its arguments."""

import math
from typing import Any

import pytest

from ackbox.outbox.commands import Claimed, Target
from ackbox.outbox.compensate import CompensationRequest
from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.errors import InvalidIntent
from ackbox.tool_adapters.compensating import plan_compensation
from ackbox.tool_adapters.contract import (
    Absent,
    Call,
    CompensationPlan,
    CompensationTarget,
    Found,
    FunctionCall,
    Inconclusive,
    Returned,
)
from ackbox.tool_adapters.function import strong, tool, weak
from ackbox.tool_adapters.registry import Tools
from ackbox.workers.commands import Build, NoTool, Probe, Raised
from ackbox.workers.shell.tool_driver import ToolDriver


def _double(args: dict[str, Any], from_version: int) -> dict[str, Any]:
    return {"n": args["n"] * 2, "was": from_version}


def versioned(version: int, *, upgrades: bool = False) -> Any:
    """Return one version of a tool."""
    upgrade = _double if upgrades else None
    return tool("a", version=version, upgrade=upgrade)(lambda call, *, n, was=0: None)


def test_a_row_is_served_by_its_own_version_or_by_the_nearest_that_upgrades() -> None:
    """Never by an older one, and by a newer one only if it says that it can."""
    one, three, five, seven = (versioned(n, upgrades=n in (3, 5)) for n in (1, 3, 5, 7))
    tools = Tools(one, five, three, seven)
    served = {n: tools.lookup("a", n) for n in range(1, 9)}
    assert served == {
        1: one, 2: three, 3: three, 4: five, 5: five, 6: None, 7: seven, 8: None
    }  # fmt: skip
    assert {n: contract.version for (_, n), contract in tools.served().items()} == {
        1: 1, 2: 3, 3: 3, 4: 5, 5: 5, 7: 7
    }  # fmt: skip


def _row(version: int, **args: Any) -> Call:
    return Call("default", "i", 0, "a", version, "i", args)


def test_an_older_rows_request_has_upgraded_arguments_and_this_versions_name() -> None:
    """So its digest differs from what the older code has sent, and is never sent in its place."""
    newer, stored = versioned(2, upgrades=True), {"n": 1}
    row = _row(1, **stored)
    newer.build(row)
    request = newer.encode(row, None)
    assert (request.version, dict(request.args)) == (2, {"n": 2, "was": 1})
    assert request.digest() != versioned(1).encode(row, None).digest()
    assert request.digest() == newer.encode(row, None).digest()
    assert row.args == stored
    assert newer.encode(_row(2, n=5), None).args == {"n": 5}


@pytest.mark.parametrize(
    "answer", [None, {"n": object()}, {"n": 1, "unknown": 2}, {"was": 1}, {"n": math.nan}]
)
def test_an_upgrade_that_answers_nonsense_is_a_failing_build(answer: Any) -> None:
    """Before anything is sent: what it returns is checked like any stored arguments."""
    newer = tool("a", version=2, upgrade=lambda args, from_version: answer)(
        lambda call, *, n, was=0: None
    )
    with pytest.raises((InvalidIntent, TypeError)):
        newer.build(_row(1, n=1))


def test_an_undo_is_planned_on_upgraded_arguments() -> None:
    """The undo of newer code never meets arguments of older rows."""

    def undo(target: CompensationTarget) -> CompensationPlan:
        return CompensationPlan("a", {"n": target.args["n"]})

    newer = tool("a", version=2, upgrade=_double, compensation=undo)(lambda call, *, n, was=0: None)
    planned = plan_compensation(Tools(newer), "a", 1, Target("k", {"n": 4}))
    assert isinstance(planned, CompensationRequest)
    assert planned.content.args == {"n": 8}


def _claim(version: int) -> Claimed:
    return Claimed(1, "default", "i", 0, 1, "a", version, "default", {"n": 1}, 1)


def _probed(newer: Any, version: int, answer: Any) -> Any:
    """Return what the driver makes of a probe's answer for a row of some version."""
    driver = ToolDriver(Tools(newer), DEFAULTS)
    try:
        claim = _claim(version)
        request = driver.answer(Probe(claim), driver.timing(), lambda evidence: None)
        assert isinstance(request, FunctionCall)
        command = Probe(claim, (Returned(answer),))
        return driver.answer(command, driver.timing(), lambda evidence: None)
    finally:
        driver.close()


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("declare", [strong, weak])
def test_a_weaker_probe_of_newer_code_proves_no_absence(version: int, declare: Any) -> None:
    """An old row is judged by its own declaration, which may have promised more."""
    newer = tool("a", version=2, upgrade=_double, probe=declare(lambda call, *, n, was=0: None))(
        lambda call, *, n, was=0: None
    )
    weaker = version == 1 and declare is weak
    assert isinstance(_probed(newer, version, Absent()), Inconclusive if weaker else Absent)
    assert _probed(newer, version, Found("r")) == Found("r")


def test_a_driver_knows_what_its_tools_serve() -> None:
    """A newer version is unknown to it; a failing upgrade is an adapter that raised."""
    old = ToolDriver(Tools(versioned(1)), DEFAULTS)
    new = ToolDriver(Tools(tool("a", version=2, upgrade=_raise)(lambda call, *, n: None)), DEFAULTS)
    command = Build(_claim(2))
    assert old.answer(command, old.timing(), lambda evidence: None) == NoTool()
    raised = new.answer(Build(_claim(1)), new.timing(), lambda evidence: None)
    assert isinstance(raised, Raised)
    assert raised.error_type == "LookupError"
    assert raised.where.startswith("test_tool_versions.py:")
    for driver in (old, new):
        driver.close()


def _raise(args: dict[str, Any], from_version: int) -> dict[str, Any]:
    raise LookupError("no rate")
