"""A picture as plain shapes, and those shapes as SVG; `png.py` writes the same shapes as PNG.

An SVG brings its own background, light or dark as the reader's system asks for. It has no ids: several can
stand in one page. A hint is the `title` element of a shape: a tooltip, also for screen readers.
"""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from regard.draw.colours import Floats, Pixels, png
from regard.draw.labels import escaped

TEXT_SIZE = 12.0
Anchor = Literal["start", "middle", "end"]
Points = Sequence[tuple[float, float]] | Floats
_OWN, _INK, _PAPER = "own", "ink", "paper"  # a shape's own colour, that of text, that of the background
LIGHT, DARK = {_INK: "#1b1f24", _PAPER: "#ffffff"}, {_INK: "#e6e9ec", _PAPER: "#14171a"}


@dataclass(frozen=True, slots=True)
class Look:
    """How shapes of one kind are drawn; the opacity is that of the fill, or without fill of the stroke."""

    fill: str = "none"
    stroke: str = "none"
    width: float = 1.0
    opacity: float = 1.0


LOOKS = {
    # Charts.
    "grid": Look(stroke=_INK, opacity=0.13),
    "frame": Look(stroke=_INK, opacity=0.4),
    "sample": Look(stroke=_OWN, width=1.8),
    "line": Look(stroke=_OWN, width=1.8),
    "raw": Look(stroke=_OWN),
    "band": Look(fill=_OWN),
    "whisker": Look(stroke=_OWN, width=1.4),
    "bar": Look(fill=_OWN, stroke=_OWN, width=1.2, opacity=0.45),
    "mark": Look(fill=_PAPER, stroke=_OWN, width=1.6),
    # Heat maps.
    "cell": Look(fill=_OWN),
    "masked": Look(fill=_PAPER),
    "gap": Look(stroke="#ffffff", opacity=0.22),
    "hatch": Look(stroke=_INK, opacity=0.35),
    "minus": Look(stroke=_OWN, width=1.2),
    "track": Look(fill=_INK, opacity=0.12),
    "prob": Look(fill=_INK, opacity=0.6),
    "casing": Look(stroke="#ffffff", width=4.5),
    "outline": Look(stroke="#d55e00", width=2.2),
    # The background of both.
    "paper": Look(fill=_PAPER),
}
# Each as an SVG path from its middle, and what matplotlib calls it.
MARKS = {
    "circle": ("m-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0 -6.8 0z", "o"),
    "square": ("m-3 -3h6v6h-6z", "s"),
    "triangle": ("m0 -3.9l3.7 6.5h-7.4z", "^"),
    "diamond": ("m0 -4.2l4.2 4.2l-4.2 4.2l-4.2 -4.2z", "D"),
    "cross": ("m-3.2 -3.2l6.4 6.4m0 -6.4l-6.4 6.4", "x"),
}


@dataclass(frozen=True, slots=True)
class Label:
    """A text; x and y are the point of its baseline that the anchor names. A faint `note` may follow it."""

    x: float
    y: float
    text: str
    size: float = TEXT_SIZE
    anchor: Anchor = "start"
    turn: float = 0.0  # degrees clockwise, around x and y
    look: Literal["", "bold", "heading", "quiet", "name", "number"] = ""
    ink: str = _INK
    hint: str = ""
    note: str = ""

    @property
    def bold(self) -> bool:
        """Whether it is written in bold type."""
        return self.look in ("bold", "heading")


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float
    look: Literal["paper", "cell", "masked", "track", "prob", "bar", "casing", "outline"]
    ink: str = _INK
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Lines:
    """One or more polylines of one look, or a polygon; a dash is lengths drawn, left out, drawn ..."""

    points: Sequence[Points]
    look: Literal["grid", "frame", "sample", "line", "raw", "band", "whisker", "gap", "hatch", "minus"]
    ink: str = _INK
    dash: tuple[int, ...] = ()
    opacity: float | None = None
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A sign of about 7 pixels around a point, one of `MARKS`."""

    x: float
    y: float
    kind: str
    ink: str = _INK
    hint: str = ""
    look: Literal["mark"] = "mark"


@dataclass(frozen=True, slots=True)
class Picture:
    """A pixel, or a square of pixels, for each cell of a heat map."""

    x: float
    y: float
    width: float
    height: float
    pixels: Pixels


@dataclass(frozen=True, slots=True)
class Group:
    """Shapes that share a hint."""

    hint: str
    shapes: Sequence[Label | Box | Lines | Mark]


Shape = Label | Box | Lines | Mark | Picture | Group


@dataclass(frozen=True, slots=True)
class Scene:
    """A whole picture: its shapes in the order of drawing, its size in pixels, its description in words."""

    kind: Literal["plot", "map"]
    width: float
    height: float
    shapes: list[Shape]
    title: str
    description: str

    @property
    def flat(self) -> Iterator[Label | Box | Lines | Mark | Picture]:
        """Every shape by itself, after the background."""
        yield Box(0, 0, self.width, self.height, "paper")
        for shape in self.shapes:
            if isinstance(shape, Group):
                yield from shape.shapes
            else:
                yield shape


def svg(scene: Scene) -> str:
    """Return a picture as an SVG document."""
    size = f"{scene.width:.0f}", f"{scene.height:.0f}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="regard-picture regard-{scene.kind}" role="img" '
            f'width="{size[0]}" height="{size[1]}" viewBox="0 0 {" ".join(size)}">',
            f"<title>{escaped(scene.title)}</title>",
            f"<desc>{escaped(scene.description)}</desc>",
            f"<style>{_style(scene)}</style>",
            _element(next(scene.flat)),
            *filter(None, map(_element, scene.shapes)),
            "</svg>\n",
        ]
    )


_FONTS = """\
.regard-picture { color: #1b1f24; font: 12px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', 'Noto Sans KR', \
'Apple SD Gothic Neo', 'Malgun Gothic', NanumGothic, sans-serif; }
.regard-picture text { fill: currentColor; }
.regard-picture .bold, .regard-picture .heading { font-weight: 600; }
.regard-picture .quiet { opacity: 0.75; }
.regard-picture .name { font-family: ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; }
.regard-picture image { image-rendering: pixelated; }
.regard-picture path:not(.mark), .regard-picture .number, .regard-picture .casing, .regard-picture .outline \
{ pointer-events: none; }"""


def _style(scene: Scene) -> str:
    """Return the rules of the looks that occur: a page may hold many pictures."""
    looks = sorted({shape.look for shape in scene.flat if not isinstance(shape, Label | Picture)} - {"cell"})
    rules = [f".regard-picture .{name} {{ {_rule(LOOKS[name])} }}" for name in looks]
    papers = ", ".join(f".regard-picture .{name}" for name in looks if LOOKS[name].fill == _PAPER)
    dark = f".regard-picture {{ color: {DARK[_INK]}; }} {papers} {{ fill: {DARK[_PAPER]}; }}"
    return "\n".join([_FONTS, *rules, f"@media (prefers-color-scheme: dark) {{ {dark} }}"])


def _rule(look: Look) -> str:
    rule = "" if look.fill == _OWN else f"fill: {_colour(look.fill)}; "
    if look.stroke != "none":
        rule += "" if look.stroke == _OWN else f"stroke: {_colour(look.stroke)}; "
        rule += f"stroke-width: {look.width:g}; stroke-linejoin: round; "
    if look.opacity != 1:
        rule += f"{'stroke' if look.fill == 'none' else 'fill'}-opacity: {look.opacity:g}; "
    return rule.strip()


def _colour(name: str) -> str:
    return {_INK: "currentColor", _PAPER: LIGHT[_PAPER]}.get(name, name)


def _element(shape: Shape) -> str:
    match shape:
        case Label():
            return _text(shape)
        case Box():
            return _tag("rect", _frame(shape) + _looks(shape), shape.hint)
        case Lines():
            path = "".join(
                "M" + "L".join(f"{_digits(x)} {_digits(y)}" for x, y in one) for one in shape.points
            )
            path += "z" if shape.closed else ""
            return _tag("path", f'd="{path}"' + _looks(shape)) if path else ""
        case Mark():
            path = f"M{_digits(shape.x)} {_digits(shape.y)}{MARKS[shape.kind][0]}"
            return _tag("path", f'd="{path}"' + _looks(shape), shape.hint)
        case Picture():
            data = base64.b64encode(png(shape.pixels)).decode()
            return f'<image {_frame(shape)} preserveAspectRatio="none" href="data:image/png;base64,{data}"/>'
        case Group():
            inside = "".join(map(_element, shape.shapes))
            return f"<g><title>{escaped(shape.hint)}</title>{inside}</g>"


def _looks(shape: Box | Lines | Mark) -> str:
    look = LOOKS[shape.look]
    written = "" if shape.look == "cell" else f' class="{shape.look}"'
    for name, colour in (("fill", look.fill), ("stroke", look.stroke)):
        written += f' {name}="{_colour(shape.ink)}"' if colour == _OWN else ""
    if isinstance(shape, Lines):
        written += f' stroke-dasharray="{" ".join(map(str, shape.dash))}"' if shape.dash else ""
        written += f' opacity="{shape.opacity:g}"' if shape.opacity is not None else ""
    return written


def _text(label: Label) -> str:
    x, y = _digits(label.x), _digits(label.y)
    attributes = f'x="{x}" y="{y}"'
    attributes += f' font-size="{label.size:g}"' if label.size != TEXT_SIZE else ""
    attributes += f' text-anchor="{label.anchor}"' if label.anchor != "start" else ""
    attributes += f' transform="rotate({label.turn:g} {x} {y})"' if label.turn else ""
    attributes += f' class="{label.look}"' if label.look else ""
    # As a style: the rule for all texts is stronger than an attribute.
    attributes += f' style="fill: {label.ink}"' if label.ink != _INK else ""
    note = f' <tspan class="quiet">{escaped(label.note)}</tspan>' if label.note else ""
    return _tag("text", attributes, label.hint, escaped(label.text) + note)


def _tag(name: str, attributes: str, hint: str = "", text: str = "") -> str:
    inside = (f"<title>{escaped(hint)}</title>" if hint else "") + text
    return f"<{name} {attributes}>{inside}</{name}>" if inside else f"<{name} {attributes}/>"


def _frame(shape: Box | Picture) -> str:
    x, y, width, height = map(_digits, (shape.x, shape.y, shape.width, shape.height))
    return f'x="{x}" y="{y}" width="{width}" height="{height}"'


def _digits(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
