"""Looking for an effect by its marker over HTTP: which page to read, and what the pages say.

Decides Found, Absent or Inconclusive from the answers so far. Pure: `contract`, `http_answer`.
Markers are compared exactly: an intent's key is a prefix of its next generation's key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from ..outbox.contract import ProbeStrength
from .contract import Absent, Evidence, Found, HttpEvidence, Inconclusive, Phase, ProbeAnswer
from .http_answer import MISSING, at_pointer, json_body, reference_at
from .storable import storable


@dataclass(frozen=True, slots=True)
class HttpProbe:
    """How to find what was created under a marker. `{marker}` in the URL is the wire key.

    `strength` is strong only where the read sees every write at once, all pages are followed,
    and deleted objects stay visible or nobody else can delete.
    """

    url: str
    strength: ProbeStrength = ProbeStrength.WEAK
    items_pointer: str = "/items"
    """Where the list of objects stands; "" where the answer is the object itself."""
    marker_pointer: str = "/marker"
    """Where in one object the marker stands."""
    ref_pointer: str = "/id"
    next_pointer: str | None = None
    """Where the answer names its next page's URL; followed on the same origin only."""
    missing_statuses: frozenset[int] = frozenset()
    """Statuses that mean "no such object", for a read by identity (404)."""
    pages_limit: int = 50


def first_page(probe: HttpProbe, marker: str) -> str:
    """Return the URL of the first page."""
    return probe.url.replace("{marker}", quote(marker, safe=""))


def read_pages(probe: HttpProbe, marker: str, answers: tuple[Evidence, ...]) -> ProbeAnswer | str:
    """Return what the answers prove, or the URL of the page to read next.

    Two matches are one effect too many: the first is Found, the rest stand in `others`.
    """
    matches: list[Any] = []
    url = first_page(probe, marker)
    for answer in answers:
        document = _document(probe, answer)
        if isinstance(document, Absent | Inconclusive):
            return document
        items = _items(probe, document)
        if items is None:
            return Inconclusive("the answer has no list where one was declared")
        matches += [item for item in items if at_pointer(item, probe.marker_pointer) == marker]
        following = _next_url(probe, url, document)
        if following is None:
            return _verdict(probe, matches)
        if isinstance(following, Inconclusive):
            return following
        url = following
    return url if len(answers) < probe.pages_limit else Inconclusive("too many pages")


def _document(probe: HttpProbe, answer: Evidence) -> Any:
    if not isinstance(answer, HttpEvidence):
        return Inconclusive("the read was not made")
    if answer.status in probe.missing_statuses:
        return Absent()
    if answer.status != 200 or answer.phase is not Phase.COMPLETE:
        return Inconclusive(f"status {answer.status}" if answer.status else str(answer.error))
    document = json_body(answer)
    return Inconclusive("the answer is no JSON") if document is MISSING else document


def _items(probe: HttpProbe, document: Any) -> list[Any] | None:
    if probe.items_pointer == "":
        return document if isinstance(document, list) else [document]
    items = at_pointer(document, probe.items_pointer)
    return items if isinstance(items, list) else None


def _next_url(probe: HttpProbe, url: str, document: Any) -> str | Inconclusive | None:
    if probe.next_pointer is None:
        return None
    following = at_pointer(document, probe.next_pointer)
    if following is MISSING or following in (None, ""):
        return None
    target = urljoin(url, str(following))
    if urlsplit(target)[:2] != urlsplit(url)[:2]:
        return Inconclusive("the next page stands at another origin")
    return target


def _verdict(probe: HttpProbe, matches: list[Any]) -> ProbeAnswer:
    if not matches:
        return Absent()
    refs = [reference_at(item, probe.ref_pointer) for item in matches]
    others = tuple(ref for ref in refs[1:] if ref is not None)
    return Found(ref=refs[0], result=storable(matches[0]), others=others)
