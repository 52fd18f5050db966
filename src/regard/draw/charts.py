"""Scores of several systems in one figure, as SVG: lines with bands, and bars with whiskers.

The picture brings its own background, light or dark as the reader's system asks for. It has no ids: several
may stand in one page. Every number stands in a `title`, for who points at it and for who hears it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from regard.draw.ink import CHARACTER_WIDTH, MARK_PATHS, STYLE, Entry, dashes, fill, legend, stroke
from regard.draw.labels import cut, display_width, escaped, printable
from regard.draw.panels import Floats, Scale, Style, linear_ticks, number_label, styles

_MIN_WIDTH, _LEFT, _RIGHT = 860, 66, 30
_PLOT_HEIGHT = 300
_TITLE_TOP, _TITLE_LINE = 30, 21
_AXIS_TITLE_ROOM = 34  # above the plot, for what y is
_TITLE_CHARACTER_WIDTH = 9.6  # at most, as the others
_MAX_CATEGORY_WIDTH = 24
_CATEGORY_GAP = 14
_FEW = 4  # so many bands over each other are still seen apart
_BARS_SHARE = 0.8  # of the room of a category

_WORDS = {
    "en": {"to": " to ", "nothing": "nothing to show", "none": "nothing", "about": "{y} by {x}."},
    "ko": {"to": "~", "nothing": "보여 줄 것이 없습니다", "none": "없음", "about": "{x}별 {y}."},
}


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """The numbers of one system: `y` at each `x`, and where it lies between `low` and `high` if known.

    With categories x is their number from 0. NaN is a point that is not there. `note` stands in the legend
    after the name, `hints` are shown to who points at a point; without them its numbers are.
    """

    name: str
    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None
    note: str = ""
    hints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        sizes = {
            len(one) for one in (self.x, self.y, self.low, self.high, self.hints or None) if one is not None
        }
        if len(sizes) > 1 or (self.low is None) != (self.high is None):
            raise ValueError(f"{self.name}: as many numbers of each kind are needed, and both ends or none")

    @property
    def known(self) -> Floats:
        """Every y, and every end of an interval, that is a number."""
        shown = [one for one in (self.y, self.low, self.high) if one is not None]
        together = np.concatenate(shown) if shown else np.empty(0)
        return together[np.isfinite(together)]


def line_chart_svg(
    series: Sequence[Series],
    title: str,
    x_label: str,
    y_label: str,
    categories: Sequence[str] | None = None,
    notes: Sequence[str] = (),
    language: str = "en",
) -> str:
    """Return a line with its band for each series, over categories or over numbers, as an SVG document.

    `notes` stand below the categories, such as how many sentences each has. The language is that of what
    the chart itself says.
    """
    chart = _Chart(series, title, x_label, y_label, categories, notes, language=language)
    body: list[str] = []
    opacity = 0.16 if len(series) <= _FEW else 0.07
    for one, style in zip(series, chart.looks, strict=True):
        body += chart.bands(one, style, opacity)
    for one, style in zip(series, chart.looks, strict=True):
        body += chart.line(one, style)
    for one, style in zip(series, chart.looks, strict=True):
        body += chart.points(one, style)
    return chart.document(body)


def bar_chart_svg(
    series: Sequence[Series],
    title: str,
    x_label: str,
    y_label: str,
    categories: Sequence[str],
    notes: Sequence[str] = (),
) -> str:
    """Return the bars of all series, side by side in each category, with whiskers, as an SVG document."""
    chart = _Chart(
        series, title, x_label, y_label, categories, notes, min_slot=13 * len(series) / _BARS_SHARE
    )
    body: list[str] = []
    for place, (one, style) in enumerate(zip(series, chart.looks, strict=True)):
        body += chart.bars(one, style, place)
    return chart.document(body)


class _Chart:
    """A frame with axes and legend, and what can be drawn in it."""

    def __init__(
        self,
        series: Sequence[Series],
        title: str,
        x_label: str,
        y_label: str,
        categories: Sequence[str] | None,
        notes: Sequence[str],
        min_slot: float = 0.0,
        language: str = "en",
    ) -> None:
        self.words = _WORDS[language]
        self.series, self.title, self.x_label, self.y_label = series, title, x_label, y_label
        self.categories = None if categories is None else list(categories)
        self.notes = list(notes)
        if self.notes and len(self.notes) != len(self.categories or ()):
            raise ValueError(f"{len(self.notes)} notes for {len(self.categories or ())} categories")
        self.looks = styles(len(series))
        self.labels = [cut(printable(one), _MAX_CATEGORY_WIDTH) for one in self.categories or ()]
        below = [*self.labels, *(cut(printable(note), _MAX_CATEGORY_WIDTH) for note in self.notes)]
        slot = max(min_slot, CHARACTER_WIDTH * max(map(display_width, below), default=0) + _CATEGORY_GAP)
        self.plot_width = max(_MIN_WIDTH - _LEFT - _RIGHT, math.ceil(slot * len(self.labels)))
        self.width = self.plot_width + _LEFT + _RIGHT
        self.y_scale, self.x_scale = _y_scale(series), _x_scale(series)
        self.headings = _folded(title, int((self.width - _LEFT - _RIGHT) / _TITLE_CHARACTER_WIDTH))
        entries = [Entry(style, one.name, one.note) for one, style in zip(series, self.looks, strict=True)]
        legend_top = _TITLE_TOP + _TITLE_LINE * len(self.headings) + 2
        self.legend, legend_end = legend(entries, _LEFT, self.width - _RIGHT, legend_top)
        self.top = legend_end + _AXIS_TITLE_ROOM

    def document(self, body: Sequence[str]) -> str:
        """Return the whole picture."""
        bottom = self.top + _PLOT_HEIGHT
        middle = _LEFT + self.plot_width / 2
        if not any(len(one.known) for one in self.series):
            place = f'x="{middle}" y="{self.top + _PLOT_HEIGHT / 2}" text-anchor="middle"'
            body = [f'<text class="quiet" {place}>{self.words["nothing"]}</text>']
        below = bottom + (56 if self.notes else 40)
        height = below + 18
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" class="regard-plot" role="img" '
                f'width="{self.width}" height="{height}" viewBox="0 0 {self.width} {height}">',
                f"<title>{escaped(self.title)}</title>",
                f"<desc>{escaped(self._description())}</desc>",
                f"<style>{STYLE}</style>",
                f'<rect class="paper" width="{self.width}" height="{height}"/>',
                *(
                    f'<text class="heading" x="{_LEFT}" y="{y}">{escaped(line)}</text>'
                    for y, line in zip(count(_TITLE_TOP, _TITLE_LINE), self.headings, strict=False)
                ),
                *self.legend,
                *self._axes(),
                *body,
                f'<text class="title" x="{middle}" y="{below}" text-anchor="middle">{escaped(self.x_label)}'
                "</text>",
                "</svg>\n",
            ]
        )

    def bands(self, one: Series, style: Style, opacity: float) -> Iterator[str]:
        """Yield where the line may lie: a band along each stretch of points, a whisker at a lone one."""
        if one.low is None or one.high is None:
            return
        across, low, high = self._across(one.x), self._down(one.low), self._down(one.high)
        for run in _runs(np.isfinite(across) & np.isfinite(low) & np.isfinite(high)):
            if len(run) == 1:
                (place,) = run
                yield self._whisker(across[place], low[place], high[place], style)
                continue
            there = [f"{x:.1f} {y:.1f}" for x, y in zip(across[run], high[run], strict=True)]
            back = [f"{x:.1f} {y:.1f}" for x, y in zip(across[run[::-1]], low[run[::-1]], strict=True)]
            path = "M" + "L".join(there + back) + "z"
            yield f'<path class="band" d="{path}"{fill(style)} fill-opacity="{opacity}"/>'

    def line(self, one: Series, style: Style) -> Iterator[str]:
        """Yield the line, broken where points are missing."""
        across, down = self._across(one.x), self._down(one.y)
        path = "".join(
            "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(across[run], down[run], strict=True))
            for run in _runs(np.isfinite(across) & np.isfinite(down))
        )
        if path:
            yield f'<path class="line" d="{path}"{stroke(style)}{dashes(style)}/>'

    def points(self, one: Series, style: Style) -> Iterator[str]:
        """Yield a mark for each point, with its numbers."""
        across, down = self._across(one.x), self._down(one.y)
        for place in np.flatnonzero(np.isfinite(across) & np.isfinite(down)):
            mark = f'd="M{across[place]:.1f} {down[place]:.1f}{MARK_PATHS[style.mark]}"{stroke(style)}'
            yield f'<path class="mark" {mark}><title>{escaped(self._hint(one, int(place)))}</title></path>'

    def bars(self, one: Series, style: Style, place: int) -> Iterator[str]:
        """Yield the bars of one series, its mark at their feet: colour alone would not tell them apart."""
        slot = self.plot_width / max(len(self.labels), 1)
        width = slot * _BARS_SHARE / max(len(self.series), 1)
        shift = (place - (len(self.series) - 1) / 2) * width
        middles, down = self._across(one.x) + shift, self._down(one.y)
        zero = float(self._down(np.zeros(1))[0])
        for number in np.flatnonzero(np.isfinite(middles) & np.isfinite(down)):
            middle, y = middles[number], down[number]
            bar_width = max(width - 2, 1)
            yield f"<g><title>{escaped(self._hint(one, int(number)))}</title>"
            yield (
                f'<rect class="bar" x="{middle - bar_width / 2:.1f}" y="{min(y, zero):.1f}" '
                f'width="{bar_width:.1f}" height="{abs(zero - y):.1f}"{fill(style)}{stroke(style)}/>'
            )
            if (
                one.low is not None
                and one.high is not None
                and np.isfinite(one.low[number] + one.high[number])
            ):
                low, high = self._down(np.array([one.low[number], one.high[number]]))
                yield self._whisker(middle, low, high, None)
            mark = f"M{middle:.1f} {zero - 8:.1f}{MARK_PATHS[style.mark]}"
            yield f'<path class="mark" d="{mark}"{stroke(style)}/></g>'

    def _whisker(self, x: float, low: float, high: float, style: Style | None) -> str:
        ink = stroke(style) if style else ' stroke="currentColor"'
        path = f"M{x - 3:.1f} {low:.1f}h6M{x:.1f} {low:.1f}V{high:.1f}M{x - 3:.1f} {high:.1f}h6"
        return f'<path class="whisker" d="{path}"{ink}/>'

    def _axes(self) -> Iterator[str]:
        bottom = self.top + _PLOT_HEIGHT
        yield f'<text class="title" x="{_LEFT}" y="{self.top - 10}">{escaped(self.y_label)}</text>'
        heights = self._down(np.array(self.y_scale.ticks))
        grid = "".join(f"M{_LEFT} {y:.1f}h{self.plot_width}" for y in heights)
        yield f'<path class="grid" d="{grid}"/>'
        yield f'<path class="frame" d="M{_LEFT} {self.top}V{bottom}h{self.plot_width}"/>'
        for tick, y in zip(self.y_scale.ticks, heights, strict=True):
            yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{number_label(tick)}</text>'
        if self.categories is None:
            for tick, x in zip(self.x_scale.ticks, self._across(np.array(self.x_scale.ticks)), strict=True):
                yield f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{number_label(tick)}</text>'
            return
        for place, x in enumerate(self._across(np.arange(len(self.labels), dtype=float))):
            whole = f"<title>{escaped(self.categories[place])}</title>"
            label = escaped(self.labels[place])
            yield f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{whole}{label}</text>'
            if self.notes:
                note = escaped(cut(printable(self.notes[place]), _MAX_CATEGORY_WIDTH))
                yield f'<text class="quiet" x="{x:.1f}" y="{bottom + 34}" text-anchor="middle">{note}</text>'

    def _hint(self, one: Series, place: int) -> str:
        if one.hints:
            return one.hints[place]
        where = number_label(float(one.x[place]))
        if self.categories is not None:
            where = self.categories[int(one.x[place])]
        told = f"{one.name}, {where}: {one.y[place]:.1f}"
        if one.low is not None and one.high is not None and np.isfinite(one.low[place] + one.high[place]):
            told += f" ({one.low[place]:.1f}{self.words['to']}{one.high[place]:.1f})"
        if self.notes:
            told += f", {self.notes[int(one.x[place])]}"
        return told

    def _description(self) -> str:
        """Return the picture in words, for who hears it."""
        said = [self.words["about"].format(x=self.x_label, y=self.y_label)]
        for one in self.series:
            points = [self._hint(one, int(place)) for place in np.flatnonzero(np.isfinite(one.y))]
            said.append(f"{'; '.join(points)}." if points else f"{one.name}: {self.words['none']}.")
        return " ".join(said)

    def _across(self, x: Floats) -> Floats:
        if self.categories is not None:
            return _LEFT + (x + 0.5) * self.plot_width / max(len(self.labels), 1)
        return _LEFT + self.x_scale.place(x) * self.plot_width

    def _down(self, y: Floats) -> Floats:
        return self.top + (1 - self.y_scale.place(y)) * _PLOT_HEIGHT


def _y_scale(series: Sequence[Series]) -> Scale:
    """Return an axis with 0 on it: of cut ones small differences look large."""
    known = np.concatenate([np.zeros(1), *(one.known for one in series)])
    low, high = float(known.min()), float(known.max())
    if low == high:
        return Scale(0.0, 1.0, [0.0, 1.0])
    low, high = 1.05 * low, 1.05 * high if high > 0 else 0.0
    return Scale(low, high, linear_ticks(low, high, 5))


def _x_scale(series: Sequence[Series]) -> Scale:
    known = np.concatenate([np.empty(0), *(one.x[np.isfinite(one.x)] for one in series)])
    if not len(known) or known.min() == known.max():
        middle = float(known[0]) if len(known) else 0.0
        return Scale(middle - 1, middle + 1, [middle])
    low, high = float(known.min()), float(known.max())
    room = 0.02 * (high - low)
    return Scale(low - room, high + room, linear_ticks(low, high))


def _runs(known: np.ndarray) -> list[np.ndarray]:
    """Return each stretch of places that are known."""
    places = np.flatnonzero(known)
    return [run for run in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if len(run)]


def _folded(text: str, width: int) -> list[str]:
    """Return the text in lines of at most so many columns."""
    lines: list[str] = []
    for word in printable(text).split():
        word = cut(word, width)
        if lines and display_width(lines[-1]) + 1 + display_width(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
