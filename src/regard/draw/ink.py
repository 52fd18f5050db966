"""What learning curves and charts of scores share as SVG: colours on light and dark, marks, the legend."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.draw.labels import cut, display_width, escaped, printable
from regard.draw.panels import MARKS, Style

CHARACTER_WIDTH = 7.3  # at most; fixed, so that what fits is known without a font
_ROW, _SAMPLE_WIDTH, _GAP = 20, 34, 24
_MAX_NAME_WIDTH = 48

STYLE = """\
.regard-plot { color: #1b1f24; font: 12px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; }
.regard-plot text { fill: currentColor; }
.regard-plot .paper { fill: #ffffff; }
.regard-plot .heading { font-size: 16px; font-weight: 600; }
.regard-plot .title { font-weight: 600; }
.regard-plot .quiet { opacity: 0.75; }
.regard-plot .name { font: 12px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; }
.regard-plot .grid { stroke: currentColor; stroke-opacity: 0.13; fill: none; }
.regard-plot .frame { stroke: currentColor; stroke-opacity: 0.4; fill: none; }
.regard-plot .line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.regard-plot .raw { fill: none; stroke-width: 1; stroke-linejoin: round; }
.regard-plot .band { stroke: none; }
.regard-plot .whisker { fill: none; stroke-width: 1.4; }
.regard-plot .mark { stroke-width: 1.6; fill: #ffffff; }
.regard-plot .bar { stroke-width: 1.2; fill-opacity: 0.45; }
@media (prefers-color-scheme: dark) {
  .regard-plot { color: #e6e9ec; }
  .regard-plot .paper, .regard-plot .mark { fill: #14171a; }
}"""

MARK_PATHS = dict(
    zip(
        MARKS,
        (
            "m-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0 -6.8 0z",
            "m-3 -3h6v6h-6z",
            "m0 -3.9l3.7 6.5h-7.4z",
            "m0 -4.2l4.2 4.2l-4.2 4.2l-4.2 -4.2z",
            "m-3.2 -3.2l6.4 6.4m0 -6.4l-6.4 6.4",
        ),
        strict=True,
    )
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the legend: how it is drawn, whose it is, and what is said after the name."""

    style: Style
    name: str
    note: str = ""


def legend(entries: Sequence[Entry], left: float, right: float, top: int) -> tuple[list[str], int]:
    """Return the legend, in as many rows as it needs from left to right, and where the last stands."""
    elements: list[str] = []
    x, y = left, top
    for entry in entries:
        name, note = (cut(printable(text), _MAX_NAME_WIDTH) for text in (entry.name, entry.note))
        said = CHARACTER_WIDTH * (display_width(name) + 1 + display_width(note))
        width = _SAMPLE_WIDTH + 8 + said + _GAP
        if x > left and x + width > right + _GAP:
            x, y = left, y + _ROW
        ink = stroke(entry.style)
        mark = f"M{x + _SAMPLE_WIDTH / 2:.1f} {y}{MARK_PATHS[entry.style.mark]}"
        elements += [
            f"<g><title>{escaped(entry.name)}</title>",
            f'<path class="line" d="M{x:.1f} {y}h{_SAMPLE_WIDTH}"{ink}{dashes(entry.style)}/>',
            f'<path class="mark" d="{mark}"{ink}/>',
            f'<text class="name" x="{x + _SAMPLE_WIDTH + 8:.1f}" y="{y + 4}">{escaped(name)}'
            + (f' <tspan class="quiet">{escaped(note)}</tspan>' if note else "")
            + "</text></g>",
        ]
        x += width
    return elements, y


def stroke(style: Style) -> str:
    """Return the attribute that draws in the colour of a style."""
    return f' stroke="{style.colour or "currentColor"}"'


def fill(style: Style) -> str:
    """Return the attribute that fills with the colour of a style."""
    return f' fill="{style.colour or "currentColor"}"'


def dashes(style: Style) -> str:
    """Return the attribute that draws the dashes of a style, if it has any."""
    return f' stroke-dasharray="{" ".join(map(str, style.dash))}"' if style.dash else ""
