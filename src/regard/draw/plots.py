"""Learning curves as PNG, by matplotlib: the panels of `curves.py` for papers and slides."""

import io
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from regard.draw.labels import cut, printable
from regard.draw.panels import Curve, Panel, Scale, Style, number_label, panels, raw_opacity, styles, x_scale
from regard.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INK = "#1b1f24"
_MARKERS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D", "cross": "x"}
_MAX_MARKS = 30
_MAX_NAME_WIDTH = 48
_LEGEND_COLUMNS = 3
_DOTS_PER_INCH = 150


def curves_png(curves: Sequence[Curve], x_label: str) -> bytes:
    """Return the learning curves of one or more runs as a PNG picture on white."""
    try:
        # Without pyplot: it keeps figures in a global list and looks for a window system.
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("drawing a PNG", "plot") from error

    shared, looks = x_scale(curves), styles(len(curves))
    num_columns = min(_LEGEND_COLUMNS if _widest(curves) <= 20 else 1, len(curves))
    legend_inches = 0.2 * -(-len(curves) // num_columns)
    figure = Figure(figsize=(8.6, 6.3 + legend_inches), layout="constrained")
    FigureCanvasAgg(figure)
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
    stream = io.BytesIO()
    with warnings.catch_warnings():
        # A name in a script the font lacks is drawn as boxes; that is no reason to stop or to speak.
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        figure.savefig(stream, format="png", dpi=_DOTS_PER_INCH, metadata={"Software": "regard"})
    return stream.getvalue()


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
