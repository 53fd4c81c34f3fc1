"""Ready adapters for the fake provider: one that honours keys, one to be probed, one with neither.

Pure: `http_json` declarations. The marker that probes look for is the wire key.
"""

from __future__ import annotations

from ..outbox.contract import Key, KeyKind, ProbeStrength
from ..outbox.defaults import DEFAULTS
from .http_answer import EchoField, EchoHeader
from .http_json import HttpCompensation, HttpJsonTool
from .http_probe import HttpProbe

TICKET = "tickets.create"
TICKET_UNDO = "tickets.delete"
MAIL = "mails.send"
CHARGE = "charges.create"

FOR_EVER = Key(KeyKind.IDEMPOTENT, None)
KEY_HEADER = EchoHeader("Idempotency-Key")


def fake_ticket(
    base_url: str,
    *,
    lane: str = "tickets",
    key: Key = FOR_EVER,
    echo: EchoHeader | EchoField | None = KEY_HEADER,
    call_limit_seconds: float = DEFAULTS.call_limit_seconds,
    settle_seconds: float = DEFAULTS.settle_seconds,
) -> HttpJsonTool:
    """Return the key-honouring ticket tool; it has a strong probe and an undo as well."""
    return HttpJsonTool(
        tool=TICKET,
        url=f"{base_url}/tickets",
        lane=lane,
        key=key,
        echo=echo,
        marker_field="marker",
        probe_by=HttpProbe(f"{base_url}/tickets?marker={{marker}}", ProbeStrength.STRONG),
        undo=HttpCompensation(TICKET_UNDO, ref_argument="id"),
        call_limit_seconds=call_limit_seconds,
        settle_seconds=settle_seconds,
    )


def fake_ticket_undo(
    base_url: str,
    *,
    lane: str = "tickets",
    call_limit_seconds: float = DEFAULTS.call_limit_seconds,
    settle_seconds: float = DEFAULTS.settle_seconds,
) -> HttpJsonTool:
    """Return the undo of a ticket: deleting by id, where "not found" is the wanted state."""
    return HttpJsonTool(
        tool=TICKET_UNDO,
        url=f"{base_url}/tickets/{{id}}",
        method="DELETE",
        lane=lane,
        key=Key(KeyKind.CLIENT_ID, None),
        done_statuses=frozenset({404}),
        ref_pointer=None,
        call_limit_seconds=call_limit_seconds,
        settle_seconds=settle_seconds,
    )


def fake_mail(
    base_url: str,
    *,
    lane: str = "mails",
    strength: ProbeStrength = ProbeStrength.STRONG,
    call_limit_seconds: float = DEFAULTS.call_limit_seconds,
    settle_seconds: float = DEFAULTS.settle_seconds,
) -> HttpJsonTool:
    """Return the mail tool: no key, but its marker can be found."""
    return HttpJsonTool(
        tool=MAIL,
        url=f"{base_url}/mails",
        lane=lane,
        marker_field="marker",
        probe_by=HttpProbe(f"{base_url}/mails?marker={{marker}}", strength),
        call_limit_seconds=call_limit_seconds,
        settle_seconds=settle_seconds,
    )


def fake_charge(
    base_url: str,
    *,
    lane: str = "charges",
    call_limit_seconds: float = DEFAULTS.call_limit_seconds,
    settle_seconds: float = DEFAULTS.settle_seconds,
) -> HttpJsonTool:
    """Return the payment tool with neither key nor probe: its unknowns go to a person."""
    return HttpJsonTool(
        tool=CHARGE,
        url=f"{base_url}/charges",
        lane=lane,
        call_limit_seconds=call_limit_seconds,
        settle_seconds=settle_seconds,
    )


def fake_tools(
    base_url: str,
    *,
    call_limit_seconds: float = DEFAULTS.call_limit_seconds,
    settle_seconds: float = DEFAULTS.settle_seconds,
) -> list[HttpJsonTool]:
    """Return all four, with the same limits."""
    made = (fake_ticket, fake_ticket_undo, fake_mail, fake_charge)
    return [
        make(base_url, call_limit_seconds=call_limit_seconds, settle_seconds=settle_seconds)
        for make in made
    ]
