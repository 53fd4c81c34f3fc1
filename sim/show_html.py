"""Draws a scene as one page that needs nothing but itself: no script, no font, no picture.

Time runs downwards, one line for each event; left the time, then a lifeline for each role, then the
count of standing effects of each intent, then what happened in words. May import `show_scene` and
`svg`.
"""

from __future__ import annotations

from collections.abc import Iterator

from .show_scene import TOOL, Arrow, Happening, Mark, Scene
from .svg import DARK, LIGHT, STYLE, arrow_heads, circle, group, line, picture, rectangle, text
from .svg import clean as said

_TIME, _LIFE, _COUNT, _WORDS = 96.0, 128.0, 84.0, 560.0
_TOP, _ROW, _TALL = 46.0, 24.0, 38.0
_BETWEEN = 11.0
_LONGEST = 84
"""Characters of a line in words; the whole of it is shown on pointing at it."""
_LIVES = {"crash": "bad", "freeze": "wait", "restart": "good", "thaw": "good"}
_COLOURS = {**_LIVES, "effect": "good"}
_PAGE = f"""\
body {{ margin: 24px; font: 15px ui-sans-serif, system-ui, sans-serif; line-height: 1.5;
  background: {LIGHT["paper"]}; color: {LIGHT["ink"]} }}
table {{ border-collapse: collapse; margin: 12px 0 }}
th, td {{ border: 1px solid {LIGHT["rule"]}; padding: 3px 10px; text-align: left }}
.scroll {{ overflow-x: auto }}
.wrong {{ color: {LIGHT["bad"]} }}
@media (prefers-color-scheme: dark) {{
body {{ background: {DARK["paper"]}; color: {DARK["ink"]} }}
th, td {{ border-color: {DARK["rule"]} }}
.wrong {{ color: {DARK["bad"]} }}
}}
"""


def html(scene: Scene) -> str:
    """Return the page."""
    name = said(scene.trace.name)
    body = [f"<h1>{name}</h1>", f"<p>{said(scene.trace.about)}</p>", *_ends(scene)]
    body += ['<div class="scroll">', _diagram(scene), "</div>"]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        '<meta name="viewport" content="width=device-width"/>\n'
        '<meta name="color-scheme" content="light dark"/>\n'
        f"<title>{name}</title>\n<style>\n{_PAGE}{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


# -- how it ended --------------------------------------------------------------------------------


def _ends(scene: Scene) -> Iterator[str]:
    outcome = scene.outcome
    effects, undone = outcome.counters["external_commits"], outcome.counters["undone"]
    yield f'<p id="effects" data-effects="{effects}">Effects: {effects}, undone: {undone}.</p>'
    yield "<table><thead><tr><th>step</th><th>generations</th><th>told</th></tr></thead><tbody>"
    for step, states in outcome.states.items():
        cells = (step, ", ".join(states), outcome.told.get(step, ""))
        yield f"<tr>{''.join(f'<td>{said(cell)}</td>' for cell in cells)}</tr>"
    yield "</tbody></table>"
    wrong = [f"Broken: {one.rule}: {one.text}" for one in outcome.violations]
    wrong += [f"Not as expected: {one}" for one in outcome.complaints]
    yield from (f'<p class="wrong">{said(one)}</p>' for one in wrong)


# -- the diagram ---------------------------------------------------------------------------------


class _Layout:
    """Where everything stands."""

    def __init__(self, scene: Scene) -> None:
        self.places = {p: _TIME + (n + 0.5) * _LIFE for n, p in enumerate(scene.places)}
        counts = _TIME + len(scene.places) * _LIFE
        self.counts = {one: counts + (n + 0.5) * _COUNT for n, one in enumerate(scene.intents)}
        self.words = counts + len(scene.intents) * _COUNT + 12
        self.width = self.words + _WORDS
        self.rows: list[float] = []
        y = _TOP
        for happening in scene.happenings:
            self.rows.append(y + _ROW / 2)
            y += _TALL if happening.logged or len(happening.shown) > 1 else _ROW
        self.bottom = y + 8


def _diagram(scene: Scene) -> str:
    layout = _Layout(scene)
    height = layout.bottom + 30
    parts = [arrow_heads(("call", "bad")), rectangle(0, 0, layout.width, height, "f-paper")]
    parts += _heads(scene, layout, 22.0)
    parts += _lifelines(scene, layout)
    for number, happening in enumerate(scene.happenings):
        parts.append(_event(scene, layout, number, happening))
    parts += _heads(scene, layout, layout.bottom + 20)
    return picture(layout.width, height, f"What happens in {scene.trace.name}", parts)


def _heads(scene: Scene, layout: _Layout, y: float) -> Iterator[str]:
    yield text(12, y, "time", "small f-soft")
    for place, x in layout.places.items():
        yield rectangle(x - 50, y - 17, 100, 24, "f-note s-rule")
        yield text(x, y, place, "strong", "middle")
    for intent, x in layout.counts.items():
        yield text(x, y, _cut(intent, 12), "small strong", "middle", intent)
    if layout.counts:
        yield text(
            layout.words, y, "numbers: effects that stand at the tool, by intent", "small f-soft"
        )


def _lifelines(scene: Scene, layout: _Layout) -> Iterator[str]:
    """Draw each line in pieces: none while its process is dead, broken while it stands still."""
    for place, x in layout.places.items():
        since, style = _TOP - 14, "s-rule"
        for y, kind in _turns(scene, layout, place):
            if style:
                yield line(x, since, x, y, style)
            since, style = y, {"crash": "", "freeze": "s-wait dashed"}.get(kind, "s-rule")
        if style:
            yield line(x, since, x, layout.bottom, style)


def _turns(scene: Scene, layout: _Layout, place: str) -> Iterator[tuple[float, str]]:
    for y, happening in zip(layout.rows, scene.happenings, strict=True):
        for one in happening.shown:
            if isinstance(one, Mark) and one.place == place and one.kind in _LIVES:
                yield y, one.kind


def _event(scene: Scene, layout: _Layout, number: int, happening: Happening) -> str:
    y = layout.rows[number]
    parts = [text(12, y + 4, f"{happening.seconds:.1f} s", "small f-soft")]
    for place, one in enumerate(happening.shown):
        # A claim is two arrows, the second one a little lower, with its words below.
        low = y + place * _BETWEEN
        above = 4.0 - place * 15.0
        parts += (
            _arrow(layout, one, low, above) if isinstance(one, Arrow) else _mark(layout, one, low)
        )
    parts += _counts(scene, layout, number, y)
    words = happening.words
    parts.append(text(layout.words, y + 4, _cut(words, _LONGEST), "small", title=words))
    if happening.logged:
        logged = ", ".join(happening.logged)
        parts.append(
            text(layout.words, y + 18, _cut(logged, _LONGEST), "small f-soft", title=logged)
        )
    return group(parts, f"event-{number + 1}")


def _arrow(layout: _Layout, arrow: Arrow, y: float, above: float) -> Iterator[str]:
    start, end = layout.places[arrow.source], layout.places[arrow.target]
    colour = "bad" if arrow.lost else "call"
    if arrow.lost:
        end = start + (end - start) * 0.8
        yield line(end - 5, y - 5, end + 5, y + 5, "s-bad")
        yield line(end - 5, y + 5, end + 5, y - 5, "s-bad")
    yield line(start, y, end, y, f"s-{colour}{' dashed' if arrow.source == TOOL else ''}",
               "" if arrow.lost else "head-call")  # fmt: skip
    yield text((start + end) / 2, y - above, _cut(arrow.label, 30), f"small f-{colour}", "middle",
               arrow.label)  # fmt: skip


def _mark(layout: _Layout, mark: Mark, y: float) -> Iterator[str]:
    x, colour = layout.places[mark.place], _COLOURS.get(mark.kind, "soft")
    if mark.kind == "crash":
        yield line(x - 7, y - 7, x + 7, y + 7, "s-bad thick")
        yield line(x - 7, y + 7, x + 7, y - 7, "s-bad thick")
    elif mark.kind in ("wait", "note"):
        yield line(_TIME, y, _TIME + len(layout.places) * _LIFE, y, "s-rule dashed")
    else:
        yield circle(x, y, 6 if mark.kind == "effect" else 4, f"f-{colour}")
    beside, anchor = (x - 12, "end") if mark.place == TOOL else (x + 12, "start")
    yield text(beside, y - 4, _cut(mark.label, 34), f"small f-{colour}", anchor, mark.label)


def _counts(scene: Scene, layout: _Layout, number: int, y: float) -> Iterator[str]:
    """Yield the running counts: strong where one has changed, red where a step has too many."""
    now = scene.happenings[number].effects
    before = scene.happenings[number - 1].effects if number else {}
    for intent, x in layout.counts.items():
        count = now.get(intent, 0)
        changed = count != before.get(intent, 0)
        if count or changed:
            colour = "bad" if intent in scene.too_many[number] else "good" if changed else "soft"
            yield text(x, y + 4, str(count), f"{'strong' if changed else ''} f-{colour}", "middle")


def _cut(words: str, length: int) -> str:
    return words if len(words) <= length else words[: length - 1] + "…"
