"""Charts: lines with bands, bars with whiskers, learning curves. Each is laid out as a `Scene`.

Every number is also the hint of its mark or bar and part of the description: for tooltips and screen readers.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np

from regard.draw.colours import Floats
from regard.draw.labels import cut, display_width, number_label, printable, texts, wrapped
from regard.draw.scene import MARKS, Box, Group, Label, Lines, Mark, Scene, Shape

_MIN_WIDTH, _LEFT, _RIGHT = 860, 66, 36
_PLOT_HEIGHT = 300
_HEADING_TOP, _HEADING_LINE, _HEADING_SIZE = 30, 21, 16.0
_PANEL_GAP = 38  # above each panel, for its title
_LEGEND_ROW, _SAMPLE_WIDTH, _LEGEND_GAP = 20, 34, 24
# How wide a character is at most; fixed, so that what fits is known without a font.
_CHARACTER_WIDTH, _HEADING_CHARACTER_WIDTH = 7.3, 9.6
_MAX_NAME_WIDTH, _MAX_CATEGORY_WIDTH = 48, 24
_CATEGORY_GAP = 14
_MAX_MARKS = 30  # of a line; more would hide it
_FEW = 4  # so many bands over each other are still seen apart
_BARS_SHARE, _MIN_BAR_SLOT = 0.8, 16.25  # of the room of a category; pixels of it for each bar


@dataclass(frozen=True, slots=True)
class Style:
    """How a series is told from others: by colour, and for who sees none by dashes and marks."""

    colour: str
    dash: tuple[int, ...]  # drawn, left out, drawn, ...; empty: a whole line
    mark: str


# Okabe and Ito 2008, without the yellow, which is not seen on white; the last is the colour of text.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "ink")
_DASHES: tuple[tuple[int, ...], ...] = ((), (7, 3), (2, 2), (9, 3, 2, 3))


def styles(num_series: int) -> list[Style]:
    """Return a style for each series. The cycles share no factor: 140 pass before one comes again."""
    every = zip(cycle(_COLOURS), cycle(_DASHES), cycle(MARKS), strict=False)
    return [Style(*each) for each in islice(every, num_series)]


@dataclass(frozen=True, slots=True)
class Scale:
    """What an axis runs from and to, and where its ticks are."""

    low: float
    high: float
    ticks: list[float]
    logarithmic: bool = False

    def place(self, values: Floats) -> Floats:
        """Return where values stand: 0 at the low end, 1 at the high end."""
        if self.logarithmic:
            low, high = math.log(self.low), math.log(self.high)
            return (np.log(np.maximum(values, self.low * 1e-3)) - low) / (high - low)
        return (values - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """The numbers of one system: `y` at each `x`, and where it lies between `low` and `high` if known.

    With categories x is their number from 0. NaN is a point that is not there. `note` stands in the legend
    after the name. A smoothed line has the points it was made from in `raw_x` and `raw_y`, and no marks.
    """

    name: str
    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None
    note: str = ""
    form: str = ".1f"  # of a number in a hint
    raw_x: Floats | None = None
    raw_y: Floats | None = None

    def __post_init__(self) -> None:
        sizes = {len(one) for one in (self.x, self.y, self.low, self.high) if one is not None}
        if len(sizes) > 1 or (self.low is None) != (self.high is None):
            raise ValueError(f"{self.name}: as many numbers of each kind are needed, and both ends or none")

    @property
    def known(self) -> Floats:
        """Every y, and every end of an interval, that is a number."""
        shown = [one[np.isfinite(one)] for one in (self.y, self.low, self.high) if one is not None]
        return np.concatenate(shown)


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """One quantity of all series over the x axis that all panels share; `nothing` is said of an empty one."""

    title: str
    series: Sequence[Series]
    scale: Scale
    height: int = _PLOT_HEIGHT
    nothing: str = ""


@dataclass(frozen=True, slots=True)
class XAxis:
    """The x axis that all panels share: numbers, or categories with perhaps a note below each of them.

    The language is that of what the chart says by itself.
    """

    label: str
    scale: Scale
    categories: Sequence[str] | None = None
    notes: Sequence[str] = ()
    language: str = "en"

    @property
    def names(self) -> Sequence[str]:
        """What stands at each tick."""
        if self.categories is not None:
            return self.categories
        return [number_label(tick) for tick in self.scale.ticks]

    def hint(self, one: Series, place: int) -> str:
        """Return the numbers of a point in words: `name, 11-20: 28.0 (26.0 to 30.0), n = 3`."""
        x = float(one.x[place])
        told = f"{one.name}, {number_label(x) if self.categories is None else self.categories[int(x)]}"
        told += f": {one.y[place]:{one.form}}"
        if one.low is not None and one.high is not None and np.isfinite(one.low[place] + one.high[place]):
            to = texts("draw", self.language)["to"]
            told += f" ({one.low[place]:{one.form}}{to}{one.high[place]:{one.form}})"
        return f"{told}, {self.notes[int(x)]}" if self.notes else told


def categories(label: str, names: Sequence[str], notes: Sequence[str] = (), language: str = "en") -> XAxis:
    """Return an axis on which each category stands in the middle of its share.

    The notes stand below the names, such as how many sentences each category has.
    """
    if notes and len(notes) != len(names):
        raise ValueError(f"{len(notes)} notes for {len(names)} categories")
    places = [float(place) for place in range(len(names))]
    return XAxis(label, Scale(-0.5, max(len(names), 1) - 0.5, places), names, notes, language)


def line_chart(series: Sequence[Series], title: str, y_label: str, axis: XAxis) -> Scene:
    """Return a line with its band for each series."""
    return _chart(series, title, y_label, axis, _lines)


def bar_chart(series: Sequence[Series], title: str, y_label: str, axis: XAxis) -> Scene:
    """Return the bars of all series, side by side in each category, with whiskers."""
    return _chart(series, title, y_label, axis, _bars)


def _chart(series: Sequence[Series], title: str, y_label: str, axis: XAxis, draw: "Draw") -> Scene:
    words = texts("draw", axis.language)
    said = [words["chart"].format(x=axis.label, y=y_label)]
    for one in series:
        points = [axis.hint(one, int(place)) for place in np.flatnonzero(np.isfinite(one.y))]
        said.append(f"{'; '.join(points)}." if points else f"{one.name}: {words['none']}.")
    panel = Panel(y_label, series, zero_scale(series), nothing=words["nothing"])
    return plot(title, [panel], axis, " ".join(said), draw)


def plot(
    title: str, panels: Sequence[Panel], axis: XAxis, description: str, draw: "Draw | None" = None
) -> Scene:
    """Return panels of the same series below one another, with a title, a legend and their x axis."""
    names = [cut(printable(name), _MAX_CATEGORY_WIDTH) for name in axis.names]
    notes = [cut(printable(note), _MAX_CATEGORY_WIDTH) for note in axis.notes]
    width = float(_MIN_WIDTH - _LEFT - _RIGHT)
    if axis.categories is not None:
        slot = _CHARACTER_WIDTH * max(map(display_width, [*names, *notes]), default=0) + _CATEGORY_GAP
        slot = max(slot, _MIN_BAR_SLOT * len(panels[0].series)) if draw == _bars else slot
        width = max(width, math.ceil(slot * len(names)))
    right, middle = _LEFT + width, _LEFT + width / 2
    looks = styles(len(panels[0].series))
    lines = wrapped(printable(title).split(), int(width / _HEADING_CHARACTER_WIDTH))
    shapes: list[Shape] = [
        Label(_LEFT, _HEADING_TOP + _HEADING_LINE * place, line, _HEADING_SIZE, look="heading")
        for place, line in enumerate(lines)
    ]
    legend, y = _legend(panels[0].series, looks, right, _HEADING_TOP + _HEADING_LINE * len(lines) + 2)
    shapes += legend
    for panel in panels:
        y += _PANEL_GAP
        axes = _Axes(y, width, panel, axis)
        shapes += axes.frame()
        if any(len(one.known) for one in panel.series):
            shapes += (draw or _lines)(axes, looks)
        else:
            shapes.append(Label(middle, y + panel.height / 2, panel.nothing, anchor="middle", look="quiet"))
        y += panel.height
    ticks = axes.across(np.array(axis.scale.ticks))
    for x, name, whole in zip(ticks, names, axis.categories or [""] * len(names), strict=True):
        shapes.append(Label(x, y + 18, name, anchor="middle", hint=whole))
    for x, note in zip(ticks, notes, strict=False):
        shapes.append(Label(x, y + 34, note, anchor="middle", look="quiet"))
    y += 56 if notes else 40
    shapes.append(Label(middle, y, axis.label, anchor="middle", look="bold"))
    return Scene("plot", right + _RIGHT, y + 18, shapes, title, description)


def _legend(
    series: Sequence[Series], looks: Sequence[Style], right: float, y: float
) -> tuple[list[Shape], float]:
    """Return the legend, in as many rows as it needs, and where the last stands."""
    shapes: list[Shape] = []
    x = float(_LEFT)
    for one, style in zip(series, looks, strict=True):
        name, note = (cut(printable(text), _MAX_NAME_WIDTH) for text in (one.name, one.note))
        said = _CHARACTER_WIDTH * (display_width(name) + 1 + display_width(note))
        width = _SAMPLE_WIDTH + 8 + said + _LEGEND_GAP
        if x > _LEFT and x + width > right + _LEGEND_GAP:
            x, y = float(_LEFT), y + _LEGEND_ROW
        sample = [(x, y), (x + _SAMPLE_WIDTH, y)]
        entry = (
            Lines([sample], "sample", style.colour, style.dash),
            Mark(x + _SAMPLE_WIDTH / 2, y, style.mark, style.colour),
            Label(x + _SAMPLE_WIDTH + 8, y + 4, name, look="name", note=note),
        )
        shapes.append(Group(one.name, entry))
        x += width
    return shapes, y


@dataclass(frozen=True, slots=True)
class _Axes:
    """A panel in its place in the picture."""

    top: float
    width: float
    panel: Panel
    axis: XAxis

    def across(self, x: Floats) -> Floats:
        return _LEFT + self.axis.scale.place(x) * self.width

    def down(self, y: Floats) -> Floats:
        """Return how far down values stand; what is beyond the scale stands at its end."""
        return self.top + (1 - np.clip(self.panel.scale.place(y), 0, 1)) * self.panel.height

    def frame(self) -> Iterator[Shape]:
        """Yield title, grid, frame and the numbers of the y axis."""
        bottom, right = self.top + self.panel.height, _LEFT + self.width
        yield Label(_LEFT, self.top - 10, self.panel.title, look="bold")
        heights = self.down(np.array(self.panel.scale.ticks))
        grid = [[(_LEFT, y), (right, y)] for y in heights]
        if self.axis.categories is None:
            grid += [[(x, self.top), (x, bottom)] for x in self.across(np.array(self.axis.scale.ticks))]
        yield Lines(grid, "grid")
        yield Lines([[(_LEFT, self.top), (_LEFT, bottom), (right, bottom)]], "frame")
        for tick, y in zip(self.panel.scale.ticks, heights, strict=True):
            yield Label(_LEFT - 8, y + 4, number_label(tick), anchor="end")


Draw = Callable[[_Axes, Sequence[Style]], Iterator[Shape]]


def _lines(axes: _Axes, looks: Sequence[Style]) -> Iterator[Shape]:
    """Yield all bands and raw lines, over them all lines, over them all marks."""
    pairs = list(zip(axes.panel.series, looks, strict=True))
    for one, style in pairs:
        yield from _below(axes, one, style, len(pairs))
    for one, style in pairs:
        across, down = axes.across(one.x), axes.down(one.y)
        runs = [np.stack([across[run], down[run]], 1) for run in _runs(np.isfinite(across + down))]
        yield Lines(runs, "line", style.colour, style.dash)
    for one, style in pairs:
        across, down = axes.across(one.x), axes.down(one.y)
        places = np.flatnonzero(np.isfinite(across + down))
        if one.raw_x is None:
            for place in places[:: math.ceil(len(places) / _MAX_MARKS) or 1]:
                hint = axes.axis.hint(one, int(place))
                yield Mark(across[place], down[place], style.mark, style.colour, hint)


def _below(axes: _Axes, one: Series, style: Style, num_series: int) -> Iterator[Shape]:
    """Yield what a line lies on: a band along each run of points, a whisker at a lone one; the raw line."""
    if one.raw_x is not None and one.raw_y is not None:
        raw = np.stack([axes.across(one.raw_x), axes.down(one.raw_y)], 1)
        yield Lines([raw], "raw", style.colour, opacity=0.25 if num_series <= 2 else 0.12)
    if one.low is None or one.high is None:
        return
    across, low, high = axes.across(one.x), axes.down(one.low), axes.down(one.high)
    for run in _runs(np.isfinite(across + low + high)):
        if len(run) == 1:
            (place,) = run
            yield _whisker(across[place], low[place], high[place], style.colour)
            continue
        back = run[::-1]
        around = np.stack([np.r_[across[run], across[back]], np.r_[high[run], low[back]]], 1)
        opacity = 0.16 if num_series <= _FEW else 0.07
        yield Lines([around], "band", style.colour, opacity=opacity, closed=True)


def _bars(axes: _Axes, looks: Sequence[Style]) -> Iterator[Shape]:
    """Yield the bars of each series, its mark at their feet: colour alone would not tell them apart."""
    series = axes.panel.series
    width = axes.width / len(axes.axis.names) * _BARS_SHARE / len(series)
    zero = float(axes.down(np.zeros(1))[0])
    for number, (one, style) in enumerate(zip(series, looks, strict=True)):
        middles = axes.across(one.x) + (number - (len(series) - 1) / 2) * width
        down = axes.down(one.y)
        for place in np.flatnonzero(np.isfinite(middles + down)):
            x, y = float(middles[place]), float(down[place])
            wide, high = max(width - 2, 1), abs(zero - y)
            bar = Box(x - wide / 2, min(y, zero), wide, high, "bar", style.colour)
            shapes: list[Box | Lines | Mark] = [bar]
            if one.low is not None and one.high is not None:
                ends = axes.down(np.array([one.low[place], one.high[place]])).tolist()
                shapes += [_whisker(x, ends[0], ends[1], "ink")] if math.isfinite(sum(ends)) else []
            shapes.append(Mark(x, zero - 8, style.mark, style.colour))
            yield Group(axes.axis.hint(one, int(place)), shapes)


def _whisker(x: float, low: float, high: float, ink: str) -> Lines:
    ends = [[(x - 3, y), (x + 3, y)] for y in (low, high)]
    return Lines([*ends, [(x, low), (x, high)]], "whisker", ink)


def _runs(known: np.ndarray) -> list[np.ndarray]:
    """Return each run of places that are known."""
    places = np.flatnonzero(known)
    return [run for run in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if len(run)]


def zero_scale(series: Sequence[Series]) -> Scale:
    """Return a y axis with 0 on it: on one that is cut off small differences look large."""
    known = np.concatenate([np.zeros(1), *(one.known for one in series)])
    low, high = 1.05 * float(known.min()), 1.05 * float(known.max())
    if len(known) == 1 or low == high:
        return Scale(0.0, 1.0, [0.0, 1.0] if len(known) > 1 else [])
    return Scale(low, high, linear_ticks(low, high, 5))


def x_scale(series: Sequence[Series]) -> Scale:
    """Return an x axis of numbers: from 0, or what is below it, to the end of the longest series."""
    known = np.concatenate([np.zeros(1), *(one.x[np.isfinite(one.x)] for one in series)])
    low, high = float(known.min()), float(known.max())
    high = high if high > low else low + 1
    return Scale(low, high, linear_ticks(low, high))


def linear_ticks(low: float, high: float, num_wanted: int = 6) -> list[float]:
    """Return about so many round numbers between two others."""
    rough = (high - low) / num_wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= 0.999 * rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]
