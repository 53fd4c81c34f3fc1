"""Writes the few SVG elements that the pictures are made of, escaped, and their colours.

Decides nothing. Pure; the standard library only. What a reader sees is chosen by class, so that
light and dark are a matter of `STYLE` alone.
"""

from __future__ import annotations

import re
from html import escape

_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""What XML does not allow, however it is written."""
LIGHT = {
    "paper": "#ffffff", "ink": "#1f2328", "soft": "#59636e", "rule": "#d1d9e0",
    "bad": "#cf222e", "wait": "#9a6700", "good": "#1a7f37", "call": "#0969da", "note": "#f6f8fa",
}  # fmt: skip
DARK = {
    "paper": "#0d1117", "ink": "#e6edf3", "soft": "#9198a1", "rule": "#3d444d",
    "bad": "#ff7b72", "wait": "#d29922", "good": "#3fb950", "call": "#58a6ff", "note": "#161b22",
}  # fmt: skip
_NAMESPACE = "http://www.w3.org/2000/svg"
"""Of a file; in a page the element is known without."""
_FONT = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', sans-serif"


def _classes(colours: dict[str, str]) -> str:
    """Write colours out: a viewer of pictures may know no variables, and a page is one of many."""
    lines = [f"text {{ fill: {colours['ink']} }}"]
    for name, value in colours.items():
        lines.append(f".f-{name} {{ fill: {value} }}")
        lines.append(f".s-{name} {{ stroke: {value}; fill: none }}")
    return "\n".join(lines)


STYLE = f"""\
text {{ font: 13px {_FONT} }}
.small {{ font-size: 11px }}
.strong {{ font-weight: 600 }}
.thick {{ stroke-width: 3 }}
.dashed {{ stroke-dasharray: 5 4 }}
{_classes(LIGHT)}
@media (prefers-color-scheme: dark) {{
{_classes(DARK)}
}}
"""
"""`f-<colour>` fills, `s-<colour>` strokes."""


def clean(said: str) -> str:
    """Return a text as it may stand in a page or a picture, in quotes too."""
    return escape(_UNSEEN.sub("\N{REPLACEMENT CHARACTER}", said))


def _number(value: float) -> str:
    return f"{round(value, 2):g}"


def text(
    x: float, y: float, said: str, classes: str = "", anchor: str = "start", title: str = ""
) -> str:
    """Return a line of text; `title` is what is shown in full where `said` is cut short."""
    more = f"<title>{clean(title)}</title>" if title else ""
    return (
        f'<text x="{_number(x)}" y="{_number(y)}" class="{classes}" text-anchor="{anchor}">'
        f"{more}{clean(said)}</text>"
    )


def rectangle(x: float, y: float, width: float, height: float, classes: str = "") -> str:
    """Return a rectangle with slightly round corners."""
    return (
        f'<rect x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" '
        f'height="{_number(height)}" rx="3" class="{classes}"/>'
    )


def line(x1: float, y1: float, x2: float, y2: float, classes: str = "", marker: str = "") -> str:
    """Return a line; `marker` is the id of what stands at its end."""
    end = f' marker-end="url(#{marker})"' if marker else ""
    return (
        f'<line x1="{_number(x1)}" y1="{_number(y1)}" x2="{_number(x2)}" y2="{_number(y2)}" '
        f'class="{classes}"{end}/>'
    )


def circle(x: float, y: float, radius: float, classes: str = "") -> str:
    """Return a dot."""
    return f'<circle cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}" class="{classes}"/>'


def group(parts: list[str], name: str) -> str:
    """Return several elements as one, under an id."""
    return f'<g id="{clean(name)}">{"".join(parts)}</g>'


def arrow_heads(colours: tuple[str, ...]) -> str:
    """Return the heads `head-<colour>` that lines may end with."""
    heads = [
        f'<marker id="head-{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        f'markerHeight="8" orient="auto"><path d="M0 0 L8 4 L0 8 z" class="f-{name}"/></marker>'
        for name in colours
    ]
    return f"<defs>{''.join(heads)}</defs>"


def picture(width: float, height: float, about: str, parts: list[str], style: str = "") -> str:
    """Return a whole SVG element; `style` where it stands alone and no page around it has one."""
    own = f' xmlns="{_NAMESPACE}"' if style else ""
    sheet = f"<style>\n{style}</style>\n" if style else ""
    return (
        f'<svg{own} viewBox="0 0 {_number(width)} '
        f'{_number(height)}" width="{_number(width)}" height="{_number(height)}" role="img" '
        f'aria-label="{clean(about)}">\n{sheet}' + "\n".join(parts) + "\n</svg>\n"
    )
