"""Learning curves as SVG: three panels over one another that share the x axis. Nothing but text is needed.

The picture brings its own background, light or dark as the reader's system asks for, so that it can be read
on any page. It has no ids and clips by nested `svg` elements: several may stand in one page.
"""

from collections.abc import Sequence

import numpy as np

from regard.draw.ink import MARK_PATHS, STYLE, Entry, dashes, legend, stroke
from regard.draw.labels import escaped
from regard.draw.panels import (
    Curve,
    Floats,
    Line,
    Panel,
    Points,
    Scale,
    Style,
    number_label,
    panels,
    raw_opacity,
    styles,
    x_scale,
)

_WIDTH = 860
_LEFT, _RIGHT = 62, 36
_PLOT_WIDTH = _WIDTH - _LEFT - _RIGHT
_PANEL_HEIGHTS = (190, 130, 150)
_PANEL_GAP = 38  # holds the title of the panel below
_LEGEND_TOP = 52
_MAX_MARKS = 30  # of a line; more would hide it
_EDGE = 6  # room beside a panel, for marks at its very end


def curves_svg(curves: Sequence[Curve], x_label: str) -> str:
    """Return the learning curves of one or more runs as an SVG document."""
    shared = x_scale(curves)
    looks = styles(len(curves))
    entries = [Entry(style, curve.name, _best(curve)) for curve, style in zip(curves, looks, strict=True)]
    names, top = legend(entries, _LEFT, _WIDTH - _RIGHT, _LEGEND_TOP)
    body: list[str] = []
    for panel, height in zip(panels(curves), _PANEL_HEIGHTS, strict=True):
        top += _PANEL_GAP
        body += _panel(panel, shared, looks, top, height)
        top += height
    for tick, x in zip(shared.ticks, _across(shared, np.array(shared.ticks)), strict=True):
        body.append(f'<text x="{x:.1f}" y="{top + 18}" text-anchor="middle">{number_label(tick)}</text>')
    middle = _LEFT + _PLOT_WIDTH / 2
    body.append(
        f'<text class="title" x="{middle}" y="{top + 38}" text-anchor="middle">{escaped(x_label)}</text>'
    )
    height = top + 52
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="regard-plot" role="img" width="{_WIDTH}" '
            f'height="{height}" viewBox="0 0 {_WIDTH} {height}">',
            f"<title>{escaped(_heading(curves))}</title>",
            f"<desc>{escaped(_description(curves, x_label))}</desc>",
            f"<style>{STYLE}</style>",
            f'<rect class="paper" width="{_WIDTH}" height="{height}"/>',
            f'<text class="heading" x="{_LEFT}" y="30">Learning curves</text>',
            *names,
            *body,
            "</svg>\n",
        ]
    )


def _best(curve: Curve) -> str:
    return "" if curve.best_bleu is None else f"best BLEU {curve.best_bleu:.1f}"


def _heading(curves: Sequence[Curve]) -> str:
    return f"Learning curves of {', '.join(curve.name for curve in curves)}"


def _description(curves: Sequence[Curve], x_label: str) -> str:
    """Return the picture in words, for who hears it."""
    said = ["Training loss, validation loss and validation BLEU, one below the other."]
    for curve in curves:
        best = _best(curve) or "no validation yet"
        end = f"{curve.update_x[-1]:,.0f} {x_label}" if len(curve.update_x) else "no update yet"
        said.append(f"{curve.name}: {end}, {best}.")
    return " ".join(said)


def _panel(panel: Panel, shared: Scale, looks: Sequence[Style], top: int, height: int) -> list[str]:
    elements = [f'<text class="title" x="{_LEFT}" y="{top - 9}">{escaped(panel.title)}</text>']
    places = (1 - panel.scale.place(np.array(panel.scale.ticks))) * height + top
    grid = "".join(f"M{_LEFT} {y:.1f}h{_PLOT_WIDTH}" for y in places)
    grid += "".join(f"M{x:.1f} {top}v{height}" for x in _across(shared, np.array(shared.ticks)))
    elements.append(f'<path class="grid" d="{grid}"/>')
    elements.append(f'<path class="frame" d="M{_LEFT} {top}v{height}h{_PLOT_WIDTH}"/>')
    for tick, y in zip(panel.scale.ticks, places, strict=True):
        label = number_label(tick)
        elements.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    if panel.is_empty:
        middle = f'x="{_LEFT + _PLOT_WIDTH / 2}" y="{top + height / 2:.0f}" text-anchor="middle"'
        return [*elements, f'<text class="quiet" {middle}>{escaped(panel.nothing_yet)}</text>']
    box = (_LEFT - _EDGE, top - _EDGE, _PLOT_WIDTH + 2 * _EDGE, height + 2 * _EDGE)
    x, y, wide, high = box
    elements.append(f'<svg x="{x}" y="{y}" width="{wide}" height="{high}" viewBox="{x} {y} {wide} {high}">')
    for line, style in zip(panel.lines, looks, strict=True):
        if line.raw:
            across, down = _placed(line.raw, panel.scale, shared, top, height)
            path = f'd="{_path(across, down)}"{stroke(style)} stroke-opacity="{raw_opacity(len(looks))}"'
            elements.append(f'<path class="raw" {path}/>')
    for line, style in zip(panel.lines, looks, strict=True):
        elements += _line(line, style, panel.scale, shared, top, height)
    return [*elements, "</svg>"]


def _line(line: Line, style: Style, scale: Scale, shared: Scale, top: int, height: int) -> list[str]:
    if not len(line.points.x):
        return []
    across, down = _placed(line.points, scale, shared, top, height)
    drawn = [f'<path class="line" d="{_path(across, down)}"{stroke(style)}{dashes(style)}/>']
    if line.raw is None:
        every = -(-len(across) // _MAX_MARKS)
        marks = _marks(style, across[::every], down[::every])
        drawn.append(f'<path class="mark" d="{marks}"{stroke(style)}/>')
    return drawn


def _across(shared: Scale, x: Floats) -> Floats:
    return _LEFT + shared.place(x) * _PLOT_WIDTH


def _placed(points: Points, scale: Scale, shared: Scale, top: int, height: int) -> tuple[Floats, Floats]:
    return _across(shared, points.x), top + (1 - scale.place(points.y)) * height


def _path(across: Floats, down: Floats) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(across.tolist(), down.tolist(), strict=True))


def _marks(style: Style, across: Floats, down: Floats) -> str:
    shape = MARK_PATHS[style.mark]
    return "".join(f"M{x:.1f} {y:.1f}{shape}" for x, y in zip(across.tolist(), down.tolist(), strict=True))
