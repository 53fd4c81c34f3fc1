"""Probing over HTTP: exact markers, every page, and nothing concluded from a doubtful answer."""

import json
from dataclasses import replace
from typing import Any

import pytest

from ackbox.outbox.contract import ProbeStrength
from ackbox.tool_adapters.contract import (
    Absent,
    Evidence,
    Found,
    HttpEvidence,
    Inconclusive,
    NotWritten,
    OverLimit,
    Phase,
)
from ackbox.tool_adapters.http_probe import HttpProbe, first_page, read_pages

BASE = "http://tool.test"
PAGED = HttpProbe(
    f"{BASE}/things?marker={{marker}}", ProbeStrength.STRONG, next_pointer="/paging/next"
)
BY_ID = HttpProbe(f"{BASE}/things/{{marker}}", items_pointer="", missing_statuses=frozenset({404}))


def page(*markers: str, following: Any = None, status: int = 200) -> HttpEvidence:
    items = [{"id": f"t{number}", "marker": marker} for number, marker in enumerate(markers)]
    body = json.dumps({"items": items, "paging": {"next": following}}).encode()
    return HttpEvidence(Phase.COMPLETE, status, (), body, framing_complete=True)


@pytest.mark.parametrize("near", ["i1~g1", "i", "I1", " i1", "~ns~i1", "i1~undo0"])
def test_a_marker_that_only_resembles_ours_is_not_found(near: str) -> None:
    """A server's search may match prefixes; the wrong generation is not this one's effect."""
    assert read_pages(PAGED, "i1", (page(near),)) == Absent()
    found = read_pages(PAGED, "i1", (page(near, "i1"),))
    assert found == Found("t1", {"id": "t1", "marker": "i1"})


def test_the_marker_is_escaped_in_the_url() -> None:
    """A key may hold a colon and a tilde; it cannot add a parameter."""
    assert first_page(PAGED, "a:b~g1&x=1") == f"{BASE}/things?marker=a%3Ab~g1%26x%3D1"


def test_every_page_is_read_before_absent_is_said() -> None:
    """Relative and absolute links; the match may stand on the last page."""
    first = page("x", following="/things?page=2")
    second = page("y", following=f"{BASE}/things?page=3")
    assert read_pages(PAGED, "i1", ()) == f"{BASE}/things?marker=i1"
    assert read_pages(PAGED, "i1", (first,)) == f"{BASE}/things?page=2"
    assert read_pages(PAGED, "i1", (first, second)) == f"{BASE}/things?page=3"
    assert read_pages(PAGED, "i1", (first, second, page())) == Absent()
    assert isinstance(read_pages(PAGED, "i1", (first, second, page("i1"))), Found)


def test_effects_on_two_pages_are_both_seen() -> None:
    """The second one is one too many."""
    pages = (page("i1", following="/things?page=2"), page("x", "i1"))
    found = read_pages(PAGED, "i1", pages)
    assert isinstance(found, Found)
    assert (found.ref, found.others) == ("t0", ("t1",))


@pytest.mark.parametrize("link", ["http://evil.test/x", "https://tool.test/x", "//evil.test/x"])
def test_a_next_page_elsewhere_is_not_followed(link: str) -> None:
    """It would get our credentials; what was not read proves nothing."""
    assert isinstance(read_pages(PAGED, "i1", (page(following=link),)), Inconclusive)


def test_pages_without_end_are_inconclusive() -> None:
    """A bounded number of reads."""
    probe = replace(PAGED, pages_limit=2)
    endless = (page(following="/things?page=2"),) * 2
    assert isinstance(read_pages(probe, "i1", endless), Inconclusive)


DOUBTFUL: list[Evidence] = [
    HttpEvidence(Phase.SENT, error="ReadTimeout"),
    HttpEvidence(Phase.STATUS, 200, (), b'{"items": []}'),
    HttpEvidence(Phase.STATUS, 200, over_limit=True),
    HttpEvidence(Phase.COMPLETE, 200, (), b"", framing_complete=True),
    HttpEvidence(Phase.COMPLETE, 200, (), b'{"things": []}', framing_complete=True),
    HttpEvidence(Phase.COMPLETE, 200, (), b'{"items": {}}', framing_complete=True),
    page(status=404),
    page(status=500),
    page(status=206),
    page(status=401),
    NotWritten(),
    OverLimit(),
]


@pytest.mark.parametrize("evidence", DOUBTFUL)
def test_a_doubtful_answer_is_never_absent(evidence: Evidence) -> None:
    """Cut off, refused, of another shape, or no answer at all."""
    assert isinstance(read_pages(PAGED, "i1", (evidence,)), Inconclusive)


def test_a_read_by_identity_is_found_or_missing() -> None:
    """404 means absent only where the probe declares it."""
    body = b'{"id": "t1", "marker": "i1"}'
    found = HttpEvidence(Phase.COMPLETE, 200, (), body, framing_complete=True)
    assert isinstance(read_pages(BY_ID, "i1", (found,)), Found)
    assert read_pages(BY_ID, "i2", (found,)) == Absent()
    assert read_pages(BY_ID, "i1", (page(status=404),)) == Absent()
