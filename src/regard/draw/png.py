"""The shapes of `scene.py` as PNG on white, by matplotlib: for papers and slides."""

import contextlib
import functools
import io
import warnings
from typing import TYPE_CHECKING

from regard.draw.scene import LIGHT, LOOKS, MARKS, Box, Label, Lines, Mark, Picture, Scene
from regard.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PIXELS_PER_INCH = 100  # of a scene; it is drawn with twice as many dots
_POINTS_PER_PIXEL = 72 / _PIXELS_PER_INCH
# They come with matplotlib; the first of the others that has a character they lack is asked for it.
_FONT, _MONOSPACED = "DejaVu Sans", "DejaVu Sans Mono"
_MORE_FONTS = """\
Noto Sans KR, Noto Sans CJK KR, Apple SD Gothic Neo, Malgun Gothic, NanumGothic, Noto Sans CJK JP, \
Noto Sans CJK SC, Hiragino Sans, PingFang SC, Yu Gothic, Microsoft YaHei, Noto Sans Arabic, \
Noto Sans Devanagari, Noto Sans Thai, Arial Unicode MS"""


def png(scene: Scene) -> bytes:
    """Return a picture as PNG, with two dots for each pixel of its SVG."""
    try:
        # Without pyplot: it keeps figures in a global list and looks for a window system.
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("drawing a PNG", "plot") from error
    figure = Figure(figsize=(scene.width / _PIXELS_PER_INCH, scene.height / _PIXELS_PER_INCH))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    labels = [shape for shape in scene.flat if isinstance(shape, Label)]
    fonts = {
        key: _families({letter for one in labels if _type(one) == key for letter in one.text}, key[0])
        for key in {_type(one) for one in labels}
    }
    for order, shape in enumerate(scene.flat):
        if isinstance(shape, Label):
            _write(axes, shape, order, fonts[_type(shape)])
        else:
            _draw(axes, shape, order)
    # Last: a picture among the shapes sets limits of its own.
    axes.set(xlim=(0, scene.width), ylim=(scene.height, 0), aspect="auto")
    stream = io.BytesIO()
    with warnings.catch_warnings():
        # A name in a script the fonts lack is drawn as boxes; that is no reason to stop or to speak.
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        figure.savefig(stream, format="png", dpi=2 * _PIXELS_PER_INCH, metadata={"Software": "regard"})
    return stream.getvalue()


def _type(label: Label) -> tuple[str, bool]:
    return _MONOSPACED if label.look == "name" else _FONT, label.bold


def _write(axes: "Axes", label: Label, order: int, fonts: list[str]) -> None:
    axes.text(
        label.x,
        label.y,
        f"{label.text}  {label.note}" if label.note else label.text,
        fontsize=label.size * _POINTS_PER_PIXEL,
        fontfamily=fonts,
        # Other fonts may not be there in bold; matplotlib would log that at every picture.
        fontweight="bold" if label.bold and len(fonts) == 1 else "normal",
        color=LIGHT.get(label.ink, label.ink),
        alpha=0.75 if label.look == "quiet" else 1.0,
        ha={"start": "left", "middle": "center", "end": "right"}[label.anchor],
        va="baseline",
        rotation=-label.turn,
        rotation_mode="anchor",
        parse_math=False,
        zorder=order,
    )


def _draw(axes: "Axes", shape: Box | Lines | Mark | Picture, order: int) -> None:
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    if isinstance(shape, Picture):
        extent = (shape.x, shape.x + shape.width, shape.y + shape.height, shape.y)
        axes.imshow(shape.pixels, extent=extent, interpolation="nearest", aspect="auto", zorder=order)
        return
    look = LOOKS[shape.look]
    opacity = look.opacity if not isinstance(shape, Lines) or shape.opacity is None else shape.opacity
    colours = {**LIGHT, "own": LIGHT.get(shape.ink, shape.ink)}
    fill = to_rgba(colours.get(look.fill, look.fill), opacity if look.fill != "none" else 0)
    stroke = to_rgba(colours.get(look.stroke, look.stroke), opacity if look.fill == "none" else None)
    width = look.width * _POINTS_PER_PIXEL if look.stroke != "none" else 0
    if isinstance(shape, Box):
        frame = Rectangle((shape.x, shape.y), shape.width, shape.height, facecolor=fill, edgecolor=stroke)
        frame.set(linewidth=width, zorder=order)
        axes.add_patch(frame)
    elif isinstance(shape, Mark):
        (mark,) = axes.plot([shape.x], [shape.y], marker=MARKS[shape.kind][1], zorder=order)
        mark.set(markersize=6.5 * _POINTS_PER_PIXEL, markeredgewidth=width)
        mark.set(markerfacecolor=fill, markeredgecolor=stroke)
    elif shape.closed:
        axes.add_collection(PolyCollection(shape.points, facecolors=fill, linewidths=0, zorder=order))
    else:
        dashes = (0, tuple(length / look.width for length in shape.dash)) if shape.dash else "solid"
        lines = LineCollection(shape.points, colors=stroke, linewidths=width, linestyles=dashes)
        lines.set_zorder(order)
        axes.add_collection(lines)


def _families(letters: set[str], first: str) -> list[str]:
    """Return the fonts to write with: the one always there, and installed ones for what it lacks."""
    from matplotlib.font_manager import fontManager, get_font

    missing = {ord(letter) for letter in letters}
    missing -= get_font(fontManager.findfont(first)).get_charmap().keys()
    families = [first]
    # Matplotlib remembers the fonts it found when it first ran; one installed since then is not among them.
    for look_again in (False, True):
        if missing and look_again:
            _add_new_fonts()
        paths = {font.name: font.fname for font in reversed(fontManager.ttflist)}
        for name in _MORE_FONTS.split(", "):
            if missing and name in paths and name not in families:
                known = missing & get_font(paths[name]).get_charmap().keys()
                families += [name] if known else []
                missing -= known
    return families


@functools.cache
def _add_new_fonts() -> None:
    from matplotlib.font_manager import findSystemFonts, fontManager

    for path in {*findSystemFonts()} - {font.fname for font in fontManager.ttflist}:
        # A font it cannot read, such as one of coloured pictures, is no loss.
        with contextlib.suppress(Exception), warnings.catch_warnings(action="ignore"):
            fontManager.addfont(path)
