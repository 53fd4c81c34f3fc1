"""The fake provider, and whether adapters ever lie about it: fault by fault against its ledger."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from ackbox.outbox.outcome import Accepted, Answer, Applied, NotApplied, Outcome, Unknown
from ackbox.tool_adapters.contract import (
    Absent,
    Call,
    Evidence,
    Found,
    HttpRequest,
    Inconclusive,
    ProbeAnswer,
)
from ackbox.tool_adapters.fake_server.faults import Fault
from ackbox.tool_adapters.fake_tools import (
    fake_charge,
    fake_mail,
    fake_ticket,
    fake_ticket_undo,
)
from ackbox.tool_adapters.http_answer import EchoField
from ackbox.tool_adapters.http_json import HttpJsonTool
from ackbox.tool_adapters.shell.boottime import boottime_seconds
from ackbox.tool_adapters.shell.fake_server import FakeServer
from ackbox.tool_adapters.shell.http_transport import HttpTransport

from ..support.waiting import DEADLINE_SECONDS

MAKERS: dict[str, Callable[[str], HttpJsonTool]] = {
    "tickets": fake_ticket,
    "mails": fake_mail,
    "charges": fake_charge,
}


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        yield running


@pytest.fixture(scope="module")
def transport() -> Iterator[HttpTransport]:
    client = HttpTransport()
    yield client
    client.close()


def control(url: str, path: str, document: Any = None) -> Any:
    body = None if document is None else json.dumps(document).encode()
    with urllib.request.urlopen(url + path, body, timeout=DEADLINE_SECONDS) as answer:
        return json.load(answer)


def effects(server: FakeServer, wire_key: str) -> int:
    return int(control(server.url, "/_ledger")["effects"].get(wire_key, 0))


def until(condition: Callable[[], bool], seconds: float = DEADLINE_SECONDS) -> None:
    pause = threading.Event()
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        pause.wait(0.01)


def call_of(tool: HttpJsonTool, key: str = "i1", **args: Any) -> Call:
    return Call("default", key, 0, tool.tool, 1, key, args or {"title": "VPN down"})


def exchange(
    transport: HttpTransport, request: Any, limit_seconds: float = 0.6, harmless: bool = False
) -> Evidence:
    assert isinstance(request, HttpRequest)
    return transport.exchange(
        request,
        send_by_boottime=None if harmless else boottime_seconds() + DEADLINE_SECONDS,
        limit_seconds=limit_seconds,
        response_limit_bytes=65_536,
    )


def attempt(
    transport: HttpTransport, tool: HttpJsonTool, call: Call, limit_seconds: float = 0.6
) -> Outcome:
    tool.build(call)
    evidence = exchange(transport, tool.encode(call, None), limit_seconds)
    outcome = tool.classify(call, evidence, ())
    assert isinstance(outcome, Applied | Accepted | NotApplied | Unknown)
    return outcome


def look(transport: HttpTransport, tool: HttpJsonTool, call: Call) -> ProbeAnswer:
    answers: tuple[Evidence, ...] = ()
    while True:
        step = tool.probe(call, answers)
        if isinstance(step, Found | Absent | Inconclusive):
            return step
        answers += (exchange(transport, step, 5.0, harmless=True),)


# Truth: what an adapter says agrees with the ledger, fault by fault

EXPECTED: dict[Fault | None, tuple[type, type, type]] = {
    # fault: outcome of the ticket tool, the mail tool, the charge tool
    None: (Applied, Applied, Applied),
    Fault.DELAY_BEFORE_EFFECT: (Unknown, Unknown, Unknown),
    Fault.DELAY_AFTER_EFFECT: (Unknown, Unknown, Unknown),
    Fault.DRIP: (Unknown, Applied, Applied),
    Fault.DROP_BEFORE_EFFECT: (Unknown, Unknown, Unknown),
    Fault.DROP_AFTER_EFFECT: (Unknown, Unknown, Unknown),
    Fault.TOO_MANY_REQUESTS: (NotApplied, NotApplied, NotApplied),
    Fault.REFUSED: (NotApplied, NotApplied, NotApplied),
    Fault.ERROR_BEFORE_EFFECT: (Unknown, Unknown, Unknown),
    Fault.ERROR_AFTER_EFFECT: (Unknown, Unknown, Unknown),
    Fault.STORED_ERROR: (Unknown, Unknown, Unknown),
    Fault.STORED_REFUSAL: (NotApplied, NotApplied, NotApplied),
    Fault.EMPTY_SUCCESS: (Unknown, Applied, Applied),
    Fault.CUT_SUCCESS: (Unknown, Applied, Applied),
    Fault.GARBAGE: (Unknown, Unknown, Unknown),
    Fault.REDIRECT: (Unknown, Unknown, Unknown),
    Fault.LATE_COMMIT: (Unknown, Unknown, Unknown),
}


def test_every_fault_is_in_the_table() -> None:
    """A new fault needs its line."""
    assert EXPECTED.keys() == {None, *Fault}


@pytest.mark.parametrize("endpoint", MAKERS)
@pytest.mark.parametrize("fault", EXPECTED, ids=str)
def test_no_fault_makes_an_adapter_lie(
    server: FakeServer, transport: HttpTransport, endpoint: str, fault: Fault | None
) -> None:
    """Applied means an effect in the ledger, NotApplied means none."""
    tool = MAKERS[endpoint](server.url)
    if fault is not None:
        control(server.url, "/_faults", {"fault": fault, "seconds": 1.0})
    outcome = attempt(transport, tool, call_of(tool))
    counted = effects(server, "i1")
    assert isinstance(outcome, EXPECTED[fault][list(MAKERS).index(endpoint)])
    assert counted >= 1 or not isinstance(outcome, Applied | Accepted)
    assert counted == 0 or not isinstance(outcome, NotApplied)
    assert counted <= 1


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.STORED_REFUSAL])
def test_a_key_honouring_tool_has_one_effect_after_a_resend(
    server: FakeServer, transport: HttpTransport, fault: Fault
) -> None:
    """Whatever the first send met, resends with the same key end at one effect, at most."""
    tool = fake_ticket(server.url)
    control(server.url, "/_faults", {"fault": fault, "seconds": 0.3})
    first = attempt(transport, tool, call_of(tool), 0.2)
    assert not isinstance(first, Applied)
    until(
        lambda: not isinstance(attempt(transport, tool, call_of(tool)), Unknown) or _stored(fault)
    )
    assert effects(server, "i1") == (0 if _stored(fault) else 1)


def _stored(fault: Fault) -> bool:
    return fault is Fault.STORED_ERROR


def test_a_stored_refusal_speaks_for_every_send(
    server: FakeServer, transport: HttpTransport
) -> None:
    """Replayed out of the key store, it says so."""
    tool = fake_ticket(server.url)
    control(server.url, "/_faults", {"fault": "stored_refusal"})
    outcomes = [attempt(transport, tool, call_of(tool)) for _ in range(2)]
    assert [isinstance(one, NotApplied) and one.key_store for one in outcomes] == [False, True]


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("endpoint", ["tickets", "mails"])
def test_a_settled_probe_tells_what_the_ledger_knows(
    server: FakeServer, transport: HttpTransport, endpoint: str, fault: Fault
) -> None:
    """After the effect has had its time, Found and Absent agree with the ledger."""
    tool = MAKERS[endpoint](server.url)
    control(server.url, "/_faults", {"fault": fault, "seconds": 0.3})
    attempt(transport, tool, call_of(tool), 0.2)
    if fault in (Fault.LATE_COMMIT, Fault.DELAY_BEFORE_EFFECT):
        assert look(transport, tool, call_of(tool)) == Absent()
        until(lambda: effects(server, "i1") == 1)
    answer = look(transport, tool, call_of(tool))
    assert isinstance(answer, Found if effects(server, "i1") else Absent)
    assert look(transport, tool, replace(call_of(tool), wire_key="i1~g1")) == Absent()


def test_a_doubled_effect_is_seen_by_ledger_and_probe(
    server: FakeServer, transport: HttpTransport
) -> None:
    """The oracle counts what the provider cannot: two mails under one key."""
    tool = fake_mail(server.url)
    for _ in range(2):
        assert isinstance(attempt(transport, tool, call_of(tool)), Applied)
    assert effects(server, "i1") == 2
    found = look(transport, tool, call_of(tool))
    assert isinstance(found, Found)
    assert (found.ref, found.others) == ("mails-1", ("mails-2",))


# Switches


def test_a_tool_that_drops_the_key_is_a_protocol_miss(
    server: FakeServer, transport: HttpTransport
) -> None:
    """Key and echo gone: Unknown with a complete answer, which ends the trust in the key."""
    control(server.url, "/_switches", {"tickets": {"honours_key": False, "echo": "none"}})
    tool = fake_ticket(server.url)
    outcome = attempt(transport, tool, call_of(tool))
    assert isinstance(outcome, Unknown)
    assert outcome.answer is Answer.COMPLETE
    assert effects(server, "i1") == 1


def test_an_echo_in_the_body_and_202(server: FakeServer, transport: HttpTransport) -> None:
    """The same endpoint with its echo elsewhere, answering before it has finished."""
    control(server.url, "/_switches", {"tickets": {"echo": "body", "accepts": True}})
    tool = fake_ticket(server.url, echo=EchoField("/idempotency_key"))
    outcome = attempt(transport, tool, call_of(tool))
    assert isinstance(outcome, Accepted)
    assert outcome.ref == "tickets-1"


def test_a_key_in_flight_and_a_reused_key_are_unknown(
    server: FakeServer, transport: HttpTransport
) -> None:
    """409 while the first request is at work, 422 for another body; one effect in the end."""
    tool = fake_ticket(server.url)
    control(server.url, "/_faults", {"fault": "delay_before_effect", "seconds": 0.5})
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(attempt, transport, tool, call_of(tool), DEADLINE_SECONDS)
        until(lambda: control(server.url, "/_ledger")["requests"].get("POST tickets") == 1)
        second = attempt(transport, tool, call_of(tool))
        assert isinstance(first.result(), Applied)
    assert isinstance(second, Unknown)
    assert second.code == "key_in_flight"
    other = attempt(transport, tool, call_of(tool, title="another"))
    assert isinstance(other, Unknown)
    assert other.code == "key_reused"
    assert effects(server, "i1") == 1


def test_a_key_forgotten_after_its_window_makes_a_second_effect(
    server: FakeServer, transport: HttpTransport
) -> None:
    """What the margin before the end of the window is for."""
    control(server.url, "/_switches", {"tickets": {"key_window_seconds": 0.05}})
    tool = fake_ticket(server.url)
    attempt(transport, tool, call_of(tool))
    until(lambda: isinstance(_repeat(transport, tool), Applied) and effects(server, "i1") == 2)


def _repeat(transport: HttpTransport, tool: HttpJsonTool) -> Outcome:
    return attempt(transport, tool, call_of(tool))


def test_an_index_that_lags_hides_a_fresh_effect(
    server: FakeServer, transport: HttpTransport
) -> None:
    """Absent so far, Found later: why such a probe is weak."""
    control(server.url, "/_switches", {"mails": {"index_lag_seconds": 0.4}})
    tool = fake_mail(server.url)
    attempt(transport, tool, call_of(tool))
    assert look(transport, tool, call_of(tool)) == Absent()
    until(lambda: isinstance(look(transport, tool, call_of(tool)), Found))


def test_charges_cannot_be_probed(server: FakeServer, transport: HttpTransport) -> None:
    """Neither the adapter nor the provider has a way to look."""
    tool = fake_charge(server.url)
    assert isinstance(look(transport, tool, call_of(tool)), Inconclusive)


def test_an_undo_deletes_and_a_second_one_finds_the_wanted_state(
    server: FakeServer, transport: HttpTransport
) -> None:
    """Deleted once; "not found" afterwards is done too, since the state is the wanted one."""
    create, undo = fake_ticket(server.url), fake_ticket_undo(server.url)
    attempt(transport, create, call_of(create))
    call = replace(call_of(undo, "i1~undo0"), args={"id": "tickets-1"})
    assert isinstance(attempt(transport, undo, call), Applied)
    assert isinstance(attempt(transport, undo, call), Applied)
    ledger = control(server.url, "/_ledger")
    assert ledger["undone"] == {"i1": 1}
    assert ledger["effects"] == {"i1": 1, "i1~undo0": 1}
    assert look(transport, create, call_of(create)) == Absent()


def test_the_ledger_counts_per_intent_over_generations(
    server: FakeServer, transport: HttpTransport
) -> None:
    """Two generations are two keys of one intent."""
    tool = fake_ticket(server.url)
    for key in ("i1", "i1~g1", "i1~g2"):
        attempt(transport, tool, call_of(tool, key))
    ledger = control(server.url, "/_ledger")
    assert ledger["intents"] == {"i1": 3}
    assert ledger["total"] == 3


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("/_faults", {"fault": "no_such_fault"}),
        ("/_faults", {"fault": "drip", "colour": 1}),
        ("/_switches", {"tickets": {"colour": 1}}),
        ("/_switches", {"nowhere": {}}),
        ("/_nothing", {}),
    ],
)
def test_a_wrong_control_request_is_refused(server: FakeServer, path: str, document: Any) -> None:
    """A misspelt fault would make a test pass for nothing."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        control(server.url, path, document)
    refused.value.close()
    assert refused.value.code in (400, 404)


# Load, and a process of its own


def test_two_hundred_slow_calls_at_once(server: FakeServer, transport: HttpTransport) -> None:
    """They wait side by side, not one after the other."""
    control(server.url, "/_faults", {"fault": "delay_after_effect", "seconds": 1.0, "count": None})
    tool = fake_ticket(server.url)
    began = time.monotonic()
    with ThreadPoolExecutor(200) as pool:
        calls = [call_of(tool, f"i{number}") for number in range(200)]
        outcomes = list(
            pool.map(lambda call: attempt(transport, tool, call, DEADLINE_SECONDS), calls)
        )
    assert all(isinstance(one, Applied) for one in outcomes)
    assert time.monotonic() - began < DEADLINE_SECONDS
    assert control(server.url, "/_ledger")["total"] == 200


def test_it_runs_in_a_process_of_its_own_and_ends_with_its_starter(
    transport: HttpTransport,
) -> None:
    """It prints its port when it listens, and leaves no orphan."""
    command = [sys.executable, "-m", "ackbox.tool_adapters.fake_server", "--port", "0"]
    with subprocess.Popen(
        [*command, "--print-port", "--until-stdin-ends"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        url = json.loads(process.stdout.readline())["url"]
        tool = fake_ticket(url)
        assert isinstance(attempt(transport, tool, call_of(tool), DEADLINE_SECONDS), Applied)
        assert control(url, "/_ledger")["effects"] == {"i1": 1}
        process.stdin.close()
        assert process.wait(DEADLINE_SECONDS) == 0


CLIENT = """
import socket, sys, time
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
head = b"POST /mails HTTP/1.1\\r\\nIdempotency-Key: i1\\r\\nContent-Length: 2\\r\\n\\r\\n"
connection.sendall(head + b"{}")
sys.stdout.write("sent\\n"); sys.stdout.flush()
connection.recv(1)
"""


def test_the_effect_happens_although_the_client_was_killed(server: FakeServer) -> None:
    """SIGKILL between the request and its effect: the provider goes on, and counts."""
    control(server.url, "/_faults", {"fault": "delay_before_effect", "seconds": 0.3})
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(server.port)], stdout=subprocess.PIPE
    ) as client:
        assert client.stdout is not None
        client.stdout.readline()
        os.kill(client.pid, signal.SIGKILL)
        client.wait(DEADLINE_SECONDS)
    until(lambda: effects(server, "i1") == 1)
