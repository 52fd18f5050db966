"""What a program printed, as an SVG picture of a terminal: the figure of the README.

    regard demo --colour always | python recipes/screen.py regard demo > docs/figures/demo.svg

Unlike the export of `rich` it asks no server for a font, and cells of one colour join without seams in any font.
"""

import sys
from collections.abc import Iterator

from rich.color import Color
from rich.console import Console
from rich.text import Text

from regard.draw.labels import display_width, escaped

_CELL, _LINE, _SIZE = 8.0, 18, 13
_MARGIN, _BAR = 16, 34
_INK, _PAPER, _FRAME = "#e6e9ec", "#14171a", "#363c43"
_FONTS = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, 'Nanum Gothic Coding', monospace"


def screen_svg(output: str, title: str) -> str:
    """Return printed lines, with the colours they ask for, in a window as wide as the widest of them."""
    lines = [Text.from_ansi(line) for line in output.splitlines()]
    columns = max([display_width(line.plain) for line in lines] + [display_width(title) + 12])
    width, height = 2 * _MARGIN + columns * _CELL, _BAR + 2 * _MARGIN + len(lines) * _LINE
    dots = "".join(
        f'<circle cx="{_MARGIN + 4 + 18 * place}" cy="{_BAR / 2}" r="5" fill="{_FRAME}"/>'
        for place in range(3)
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" font-family="{_FONTS}" font-size="{_SIZE}" fill="{_INK}">',
        f"<title>{escaped(title)}</title>",
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="{_PAPER}"/>',
        f'{dots}<text x="{width / 2:g}" y="{_BAR / 2 + 5:g}" text-anchor="middle">{escaped(title)}</text>',
    ]
    for number, line in enumerate(lines):
        parts += _line(line, _BAR + _MARGIN + number * _LINE)
    return "\n".join([*parts, "</svg>\n"])


def _line(line: Text, top: float) -> Iterator[str]:
    """Yield the shapes of a line: each run of one colour where it stands, whatever font there is."""
    place = 0
    for segment in line.render(Console(), end=""):
        columns = display_width(segment.text)
        left, wide = _MARGIN + place * _CELL, columns * _CELL
        ground = _colour(segment.style.bgcolor if segment.style else None)
        if ground:
            yield f'<rect x="{left:g}" y="{top:g}" width="{wide:g}" height="{_LINE}" fill="{ground}"/>'
        if segment.text.strip():
            ink = _colour(segment.style.color if segment.style else None)
            look = f' fill="{ink}"' if ink else ""
            look += ' font-weight="bold"' if segment.style and segment.style.bold else ""
            yield (
                f'<text x="{left:g}" y="{top + 13:g}" textLength="{wide:g}" lengthAdjust="spacingAndGlyphs" '
                f'xml:space="preserve"{look}>{escaped(segment.text)}</text>'
            )
        place += columns


def _colour(colour: Color | None) -> str | None:
    return None if colour is None or colour.is_default else colour.get_truecolor().hex


if __name__ == "__main__":
    print(screen_svg(sys.stdin.read(), " ".join(sys.argv[1:])), end="")
