"""PNG by matplotlib, for papers and slides: the panels of `curves.py`, the shapes of `heatmap.py`."""

import contextlib
import functools
import io
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from regard.draw.heatmap import Box, HeatMap, Label, Picture, Shape, Strokes, scene
from regard.draw.labels import cut, printable
from regard.draw.panels import Curve, Panel, Scale, Style, number_label, panels, raw_opacity, styles, x_scale
from regard.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK = "#1b1f24"
_MARKERS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D", "cross": "x"}
_MAX_MARKS = 30
_MAX_NAME_WIDTH = 48
_LEGEND_COLUMNS = 3
_DOTS_PER_INCH = 150
_PIXELS_PER_INCH = 100  # of a scene; it is drawn with twice as many dots
_POINTS_PER_PIXEL = 72 / _PIXELS_PER_INCH
# DejaVu Sans comes with matplotlib; the first of the others that has a character it lacks is asked for it.
_FONT = "DejaVu Sans"
_MORE_FONTS = (
    "Noto Sans KR",
    "Noto Sans CJK KR",
    "Apple SD Gothic Neo",
    "Malgun Gothic",
    "NanumGothic",
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Hiragino Sans",
    "PingFang SC",
    "Yu Gothic",
    "Microsoft YaHei",
    "Noto Sans Arabic",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "Arial Unicode MS",
)
_STROKE_LOOKS: dict[str, dict[str, Any]] = {
    "grid": {"color": "#ffffff", "alpha": 0.22, "linewidth": _POINTS_PER_PIXEL},
    "hatch": {"color": _INK, "alpha": 0.35, "linewidth": _POINTS_PER_PIXEL},
    "minus": {"linewidth": 1.2 * _POINTS_PER_PIXEL},
}
_BOX_LOOKS: dict[str, dict[str, Any]] = {
    "cell": {"linewidth": 0},
    "masked": {"facecolor": "#ffffff", "linewidth": 0},
    "track": {"facecolor": _INK, "alpha": 0.12, "linewidth": 0},
    "bar": {"facecolor": _INK, "alpha": 0.6, "linewidth": 0},
    "casing": {"fill": False, "edgecolor": "#ffffff", "linewidth": 4.5 * _POINTS_PER_PIXEL},
    "outline": {"fill": False, "edgecolor": "#d55e00", "linewidth": 2.2 * _POINTS_PER_PIXEL},
}


def curves_png(curves: Sequence[Curve], x_label: str) -> bytes:
    """Return the learning curves of one or more runs as a PNG picture on white."""
    shared, looks = x_scale(curves), styles(len(curves))
    num_columns = min(_LEGEND_COLUMNS if _widest(curves) <= 20 else 1, len(curves))
    legend_inches = 0.2 * -(-len(curves) // num_columns)
    figure = _figure(8.6, 6.3 + legend_inches, layout="constrained")
    all_axes = figure.subplots(3, 1, sharex=True, height_ratios=[19, 13, 15])
    for axes, panel in zip(all_axes, panels(curves), strict=True):
        _draw(axes, panel, shared, looks)
    all_axes[-1].set_xlabel(printable(x_label), color=_INK)
    legend = figure.legend(
        handles=[_sample(style) for style in looks],
        labels=["run"] * len(curves),
        loc="outside upper left",
        ncols=num_columns,
        frameon=False,
        handlelength=3.5,
        fontsize=9,
    )
    for text, curve in zip(legend.get_texts(), curves, strict=True):
        # As it stands: `$` would begin a formula, and a name that begins with `_` would be left out.
        text.set_parse_math(False)
        text.set_text(_label(curve))
    return _png(figure, _DOTS_PER_INCH)


def heat_maps_png(maps: Sequence[HeatMap]) -> bytes:
    """Return one or more heat maps as a PNG picture on white, laid out as their SVG is."""
    laid_out = scene(maps, max_cells=0)
    figure = _figure(laid_out.width / _PIXELS_PER_INCH, laid_out.height / _PIXELS_PER_INCH)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    labels = [shape for shape in laid_out.shapes if isinstance(shape, Label)]
    families = {
        bold: _families({letter for label in labels if label.bold == bold for letter in label.text})
        for bold in (False, True)
    }
    for order, shape in enumerate(laid_out.shapes):
        _draw_shape(axes, shape, order, families)
    # Last: a picture among the shapes sets limits of its own.
    axes.set(xlim=(0, laid_out.width), ylim=(laid_out.height, 0), aspect="auto")
    return _png(figure, 2 * _PIXELS_PER_INCH)


def _figure(width_inches: float, height_inches: float, **options: Any) -> "Figure":
    try:
        # Without pyplot: it keeps figures in a global list and looks for a window system.
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("drawing a PNG", "plot") from error
    figure = Figure(figsize=(width_inches, height_inches), **options)
    FigureCanvasAgg(figure)
    return figure


def _png(figure: "Figure", dots_per_inch: int) -> bytes:
    stream = io.BytesIO()
    with warnings.catch_warnings():
        # A name in a script the fonts lack is drawn as boxes; that is no reason to stop or to speak.
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        figure.savefig(stream, format="png", dpi=dots_per_inch, metadata={"Software": "regard"})
    return stream.getvalue()


def _families(letters: set[str]) -> list[str]:
    """Return the fonts to write with: the one always there, and installed ones for what it lacks."""
    from matplotlib.font_manager import fontManager, get_font

    missing = {ord(letter) for letter in letters}
    missing -= get_font(fontManager.findfont(_FONT)).get_charmap().keys()
    families = [_FONT]
    # Matplotlib remembers the fonts it found when it first ran; one installed since then is not among them.
    for look_again in (False, True):
        if missing and look_again:
            _add_new_fonts()
        paths = {font.name: font.fname for font in reversed(fontManager.ttflist)}
        for name in _MORE_FONTS:
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


def _draw_shape(axes: "Axes", shape: Shape, order: int, families: dict[bool, list[str]]) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Rectangle

    match shape:
        case Label():
            fonts = families[shape.bold]
            axes.text(
                shape.x,
                shape.y,
                shape.text,
                fontsize=shape.size * _POINTS_PER_PIXEL,
                fontfamily=fonts,
                # Other fonts may not be there in bold; matplotlib would log that at every picture.
                fontweight="bold" if shape.bold and fonts == [_FONT] else "normal",
                color=shape.ink or _INK,
                ha={"start": "left", "middle": "center", "end": "right"}[shape.anchor],
                va="baseline",
                rotation=-shape.turn,
                rotation_mode="anchor",
                parse_math=False,
                zorder=order,
            )
        case Box():
            look = _BOX_LOOKS[shape.look] | ({"facecolor": shape.fill} if shape.fill else {})
            corner = shape.x, shape.y
            axes.add_patch(Rectangle(corner, shape.width, shape.height, zorder=order, **look))
        case Strokes():
            look = _STROKE_LOOKS[shape.look] | ({"color": shape.ink} if shape.ink else {})
            ends = [[(x, y), (x + right, y + down)] for x, y, right, down in shape.strokes]
            axes.add_collection(LineCollection(ends, zorder=order, **look))
        case Picture():
            extent = (shape.x, shape.x + shape.width, shape.y + shape.height, shape.y)
            axes.imshow(shape.pixels, extent=extent, interpolation="nearest", aspect="auto", zorder=order)


def _label(curve: Curve) -> str:
    best = "" if curve.best_bleu is None else f"  best BLEU {curve.best_bleu:.1f}"
    return cut(printable(curve.name), _MAX_NAME_WIDTH) + best


def _widest(curves: Sequence[Curve]) -> int:
    return max(len(curve.name) for curve in curves)


def _sample(style: Style) -> object:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=style.colour or _INK, linestyle=_dashes(style), **_marker(style))


def _draw(axes: "Axes", panel: Panel, shared: Scale, looks: Sequence[Style]) -> None:
    axes.set_title(panel.title, loc="left", fontsize=10, fontweight="bold", color=_INK)
    axes.set_xlim(shared.low, shared.high)
    axes.set_xticks(shared.ticks, [number_label(tick) for tick in shared.ticks])
    axes.set_yscale("log" if panel.scale.logarithmic else "linear")
    axes.set_ylim(panel.scale.low, panel.scale.high)
    axes.set_yticks(panel.scale.ticks, [number_label(tick) for tick in panel.scale.ticks])
    axes.minorticks_off()
    axes.grid(color=_INK, alpha=0.13, linewidth=0.7)
    axes.tick_params(color=_INK, labelcolor=_INK, labelsize=9, length=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_alpha(0.4)
    if panel.is_empty:
        axes.text(0.5, 0.5, panel.nothing_yet, transform=axes.transAxes, ha="center", color=_INK, alpha=0.75)
    for line, style in zip(panel.lines, looks, strict=True):
        if not len(line.points.x):
            continue
        colour = style.colour or _INK
        if line.raw:
            axes.plot(line.raw.x, line.raw.y, color=colour, alpha=raw_opacity(len(looks)), linewidth=0.7)
        marker = {} if line.raw else _marker(style)
        every = -(-len(line.points.x) // _MAX_MARKS)
        axes.plot(
            line.points.x,
            line.points.y,
            color=colour,
            linewidth=1.4,
            linestyle=_dashes(style),
            markevery=every,
            clip_on=bool(line.raw),  # marks at the very end are shown whole
            zorder=3,
            **marker,
        )


def _dashes(style: Style) -> Literal["-"] | tuple[float, Sequence[float]]:
    return (0, tuple(length / 2 for length in style.dash)) if style.dash else "-"


def _marker(style: Style) -> dict[str, Any]:
    return {
        "marker": _MARKERS[style.mark],
        "markersize": 4.5,
        "markerfacecolor": "none",
        "markeredgewidth": 1.2,
    }
