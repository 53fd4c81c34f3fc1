"""A trace as one page: everything that happened is on it, and nothing is fetched for it."""

import json
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from click.testing import CliRunner

from ackbox.app.sim.cli import sim_group
from ackbox.sim.shipped import shipped, shipped_names, shipped_text
from ackbox.sim.show_html import html
from ackbox.sim.show_scene import Arrow, Mark, Scene, scene_of
from ackbox.sim.svg import DARK, LIGHT, STYLE, clean
from ackbox.sim.trace import read_trace
from ackbox.sim.trace_run import run_trace

HOSTILE = '</text></svg><script src="https://evil.example/x.js">\u0000\u0007&amp;\'"'


def parsed(page: str) -> Element:
    """Return a page's root; a page that is not well-formed fails."""
    return ElementTree.fromstring(page.removeprefix("<!doctype html>\n"))


def events(root: Element) -> list[Element]:
    """Return the groups that hold one event each, in order."""
    found = [one for one in root.iter("g") if one.get("id", "").startswith("event-")]
    assert [one.get("id") for one in found] == [f"event-{n + 1}" for n in range(len(found))]
    return found


def texts(element: Element) -> list[str]:
    """Return every piece of text below an element."""
    return [text for text in element.itertext() if text.strip()]


@pytest.mark.parametrize("name", shipped_names())
def test_every_event_of_a_shipped_trace_is_on_its_page(name: str) -> None:
    """In order, in full words, with what the store logged; the counts are the tools' own."""
    scene, outcome = scene_of(shipped(name)), run_trace(shipped(name))
    root = parsed(html(scene))
    shown = events(root)
    assert len(shown) == len(outcome.moments) > 0
    for element, happening, moment in zip(shown, scene.happenings, outcome.moments, strict=True):
        assert happening.words in texts(element)
        assert len(happening.logged) == len(moment.logged) + len(moment.arrived)
        if happening.logged:
            assert ", ".join(happening.logged) in texts(element)
    (total,) = [one for one in root.iter("p") if one.get("id") == "effects"]
    expected = shipped(name).expected.counters.get("external_commits")
    assert expected in (None, outcome.counters["external_commits"])
    assert int(total.get("data-effects", "")) == outcome.counters["external_commits"]
    last = scene.happenings[-1]
    assert last.happened == outcome.counters["external_commits"]
    assert sum(last.effects.values()) == last.happened - outcome.counters["undone"]


@pytest.mark.parametrize("name", shipped_names())
def test_everything_that_is_drawn_is_inside_and_at_its_place(name: str) -> None:
    """No arrow without its ends, nothing outside of the picture, no two events on one line."""
    scene = scene_of(shipped(name))
    (drawing,) = parsed(html(scene)).iter("svg")
    _, _, width, height = map(float, drawing.get("viewBox", "").split())
    for element in drawing.iter():
        for names, most in ((("x", "x1", "x2", "cx"), width), (("y", "y1", "y2", "cy"), height)):
            assert all(0 <= float(element.get(one, "0")) <= most for one in names)
    for happening in scene.happenings:
        for one in happening.shown:
            ends = {one.source, one.target} if isinstance(one, Arrow) else {one.place}
            assert ends <= set(scene.places)
    heights = [float(one.findall("text")[0].get("y", "")) for one in events(drawing)]
    assert all(after - before >= 20 for before, after in pairwise(heights))


@pytest.mark.parametrize("name", ["essay_bad", "two_steps_at_once", "undo_of_an_unknown_effect"])
def test_a_page_fetches_nothing(name: str) -> None:
    """No address, no script, no import, no address in a style."""
    page = html(scene_of(shipped(name)))
    assert not re.search(r"https?://|//[a-z]|<script|<link|<img|@import|\bsrc=|\bhref=", page)
    assert set(re.findall(r"url\(([^)]*)\)", page)) <= {"#head-call", "#head-bad"}


def hostile_scene() -> Scene:
    """Return a scene whose names, arguments and sentences want to be markup."""
    document = json.loads(shipped_text("essay_bad"))
    document["name"] = document["about"] = HOSTILE
    document["events"][0]["args"] = {"title": HOSTILE.replace("\u0000", "")}
    document["expected"]["told"] = {"step-7": HOSTILE}
    return scene_of(read_trace(json.dumps(document)))


def test_whatever_a_trace_says_is_text() -> None:
    """Markup, quotes and characters that no page may hold are shown, not obeyed."""
    page = html(hostile_scene())
    root = parsed(page)
    assert not list(root.iter("script"))
    assert [one.text for one in root.iter("h1")] == [HOSTILE.replace("\u0000", "\ufffd").replace(
        "\u0007", "\ufffd")]  # fmt: skip
    assert "<script" not in page
    assert clean("a\ud800<\u0000") == "a\ufffd&lt;\ufffd"


def test_two_effects_of_one_step_are_seen() -> None:
    """The bad trace of the essay: a crash, a second effect in red, and the broken rule in words."""
    scene = scene_of(shipped("essay_bad"))
    assert scene.places == ("planner", "queue", "outbox", "passes", "w1", "w2", "tool")
    marks = [one for h in scene.happenings for one in h.shown if isinstance(one, Mark)]
    assert [one.kind for one in marks].count("effect") == 2
    assert Mark("w1", "crash", "crash") in marks
    first = [bool(many) for many in scene.too_many].index(True)
    assert scene.happenings[first].words.startswith("arrive")
    assert scene.happenings[first].effects == {"step-7": 1, "step-7-retry": 1}
    root = parsed(html(scene))
    assert "f-bad" in ElementTree.tostring(events(root)[first], "unicode")
    assert any("one_effect_per_step" in text for text in texts(root))
    good = scene_of(shipped("essay_good"))
    assert not any(good.too_many)


def test_an_undone_effect_is_counted_down() -> None:
    """The running count goes back to nothing."""
    counts = [
        h.effects.get("s", 0) for h in scene_of(shipped("undo_of_an_unknown_effect")).happenings
    ]
    assert (counts[0], max(counts), counts[-1]) == (0, 1, 0)


def test_people_and_what_they_say_have_a_line() -> None:
    """A person's statement goes to the outbox, and reaches it."""
    scene = scene_of(shipped("statement_waits_for_quiet"))
    arrows = [one for h in scene.happenings for one in h.shown if isinstance(one, Arrow)]
    assert scene.places[0] == "person"
    assert {(one.source, one.target) for one in arrows if one.source == "person"} == {
        ("person", "outbox")
    }


def test_light_and_dark_know_the_same_colours() -> None:
    """Each class has both, so that nothing is drawn in the colour of the page."""
    assert LIGHT.keys() == DARK.keys()
    assert len(set(LIGHT.values())) == len(LIGHT)
    light, _, dark = STYLE.partition("prefers-color-scheme: dark")
    for name in LIGHT:
        assert f".f-{name} {{ fill: {LIGHT[name]} }}" in light
        assert f".f-{name} {{ fill: {DARK[name]} }}" in dark


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    """`--html FILE` writes and prints nothing; a place that cannot be written is exit 2."""
    place = tmp_path / "page.html"
    done = CliRunner().invoke(sim_group, ["show", "essay_bad", "--html", str(place)])
    assert (done.exit_code, done.output) == (0, "")
    assert place.read_text(encoding="utf-8") == html(scene_of(shipped("essay_bad")))
    nowhere = str(tmp_path / "none" / "page.html")
    refused = CliRunner().invoke(sim_group, ["show", "essay_bad", "--html", nowhere])
    assert (refused.exit_code, nowhere in refused.stderr) == (2, True)
    impossible = tmp_path / "bad.json"
    text = shipped_text("essay_bad").replace(
        '"do": "claim", "who": "w1"', '"do": "claim", "who": "w9"'
    )
    impossible.write_text(text, encoding="utf-8")
    told = CliRunner().invoke(sim_group, ["show", str(impossible), "--html", str(place)])
    assert (told.exit_code, "there is no process 'w9'" in told.stderr) == (2, True)
