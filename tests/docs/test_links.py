"""Every relative link of the documentation leads to something that is there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "outbox" / "PROTOCOL.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


def broken_links(page: Path, root: Path) -> list[str]:
    """Return the links of a page that lead nowhere, to a missing heading or out of the checkout."""
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    return [link for link in _LINK.findall(text) if not _leads(link, page, root)]


def _leads(link: str, page: Path, root: Path) -> bool:
    if re.match(r"(https?|mailto):", link):
        return True
    name, _, anchor = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    if not target.exists() or not target.is_relative_to(root):
        return False
    return not anchor or anchor in _anchors(target)


def _anchors(page: Path) -> set[str]:
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in _HEADING.findall(text)
    }


def test_every_relative_link_leads_somewhere() -> None:
    """Property: files and headings that pages point to exist, inside the checkout."""
    found = {str(page.relative_to(ROOT)): broken_links(page, ROOT) for page in PAGES}
    assert not {page: links for page, links in found.items() if links}


def test_a_broken_link_is_seen(tmp_path: Path) -> None:
    """Property: a missing file, a missing heading and a way out of the checkout are each seen."""
    page = tmp_path / "page.md"
    page.write_text("# One two\n[a](page.md#one-two) [b](gone.md) [c](#three) [d](../..)\n")
    assert broken_links(page, tmp_path) == ["gone.md", "#three", "../.."]


def test_every_page_can_be_reached_from_the_readme() -> None:
    """Property: no page stands alone: links lead from the README to all of them."""
    seen = {ROOT / "README.md"}
    waiting = list(seen)
    while waiting:
        page = waiting.pop()
        text = _CODE.sub("", page.read_text(encoding="utf-8"))
        for link in _LINK.findall(text):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target.suffix == ".md" and target not in seen:
                seen.add(target)
                waiting.append(target)
    assert not [str(page.relative_to(ROOT)) for page in PAGES if page not in seen]
