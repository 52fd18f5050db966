"""What a picture of learning curves shows, before it is SVG or PNG: panels, lines, scales, styles."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice, pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_POINTS = 2000  # of a line; a picture is not so wide
_LOG_RATIO = 3.0  # from here on equal steps of a loss are better seen as ratios
_SMOOTHING_SHARE = 60  # a point of the smoothed line is the mean of about one update in so many


@dataclass(frozen=True, slots=True)
class Curve:
    """One run: its loss after each update and its scores at each validation, both against the same x."""

    name: str
    update_x: Floats
    loss: Floats
    validation_x: Floats
    nll: Floats
    bleu: Floats

    @property
    def best_bleu(self) -> float | None:
        """The highest BLEU so far."""
        known = self.bleu[np.isfinite(self.bleu)]
        return float(known.max()) if len(known) else None


@dataclass(frozen=True, slots=True)
class Points:
    """Points of a line, all finite, in the order of x."""

    x: Floats
    y: Floats


@dataclass(frozen=True, slots=True)
class Line:
    """The line of one run in a panel; `raw` is what a smoothed line was made from."""

    points: Points
    raw: Points | None = None


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


@dataclass(frozen=True, slots=True)
class Panel:
    """One quantity of all runs, a line for each run in their order."""

    title: str
    nothing_yet: str
    lines: list[Line]
    scale: Scale

    @property
    def is_empty(self) -> bool:
        """Whether no run has a point here."""
        return not any(len(line.points.x) for line in self.lines)


@dataclass(frozen=True, slots=True)
class Style:
    """How the lines of a run are told from others: by colour, and for who sees none by dashes and marks."""

    colour: str | None  # None: the colour of the text
    dash: tuple[int, ...]  # drawn, left out, drawn, ...; empty: a whole line
    mark: str  # circle, square, triangle, diamond, cross


# Okabe and Ito 2008, without the yellow, which is not seen on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", None)
_DASHES: tuple[tuple[int, ...], ...] = ((), (7, 3), (2, 2), (9, 3, 2, 3))
MARKS = ("circle", "square", "triangle", "diamond", "cross")


def styles(num_runs: int) -> list[Style]:
    """Return a style for each run. The cycles share no factor, so 140 runs pass before one comes again."""
    return [
        Style(*each)
        for each in islice(zip(cycle(_COLOURS), cycle(_DASHES), cycle(MARKS), strict=False), num_runs)
    ]


def raw_opacity(num_runs: int) -> float:
    """Return how faint the raw loss is drawn: that of many runs would hide their lines."""
    return 0.25 if num_runs <= 2 else 0.12


def panels(curves: Sequence[Curve]) -> list[Panel]:
    """Return training loss, validation loss and BLEU, from top to bottom."""
    training = [_smoothed(_finite(curve.update_x, curve.loss)) for curve in curves]
    nll = [Line(_thinned(_finite(curve.validation_x, curve.nll))) for curve in curves]
    bleu = [Line(_thinned(_finite(curve.validation_x, curve.bleu))) for curve in curves]
    return [
        Panel("training loss, nats per target piece", "no update yet", training, _loss_scale(training)),
        Panel("validation loss, nats per target piece", "no validation yet", nll, _loss_scale(nll)),
        Panel("validation BLEU", "no validation yet", bleu, _bleu_scale(bleu)),
    ]


def x_scale(curves: Sequence[Curve]) -> Scale:
    """Return the axis all panels share: from 0 to the end of the longest run."""
    ends = [x[np.isfinite(x)][-1:] for curve in curves for x in (curve.update_x, curve.validation_x)]
    high = float(np.concatenate([[0.0], *ends]).max())
    high = high if high > 0 else 1.0
    return Scale(0.0, high, linear_ticks(0.0, high))


def _finite(x: Floats, y: Floats) -> Points:
    known = np.isfinite(x) & np.isfinite(y)
    return Points(x[known], y[known])


def _smoothed(raw: Points) -> Line:
    """Return a running mean over its raw points.

    The window shrinks towards the first update, where the loss falls fast and a mean would begin too low.
    """
    num = len(raw.y)
    half = num // (2 * _SMOOTHING_SHARE)
    if half == 0:
        return Line(_thinned(raw))
    place = np.arange(num)
    first = np.maximum(0, place - half)
    last = np.minimum(num - 1, np.minimum(place + half, 2 * place))
    # Sums of what is left after the mean: those of the values themselves would lose digits on a long run.
    centre = float(raw.y.mean())
    sums = np.concatenate([[0.0], np.cumsum(raw.y - centre)])
    mean = centre + (sums[last + 1] - sums[first]) / (last + 1 - first)
    return Line(_thinned(Points(raw.x, mean)), _envelope(raw))


def _thinned(points: Points) -> Points:
    """Return at most MAX_POINTS of the points, the first and the last among them."""
    if len(points.x) <= MAX_POINTS:
        return points
    kept = np.linspace(0, len(points.x) - 1, MAX_POINTS).round().astype(int)
    return Points(points.x[kept], points.y[kept])


def _envelope(points: Points) -> Points:
    """Return the lowest and the highest point of each stretch, so that no spike is lost."""
    num = len(points.x)
    if num <= MAX_POINTS:
        return points
    edges = np.linspace(0, num, MAX_POINTS // 2 + 1).astype(int)
    low, high = (
        np.array([first + pick(points.y[first:last]) for first, last in pairwise(edges)])
        for pick in (np.argmin, np.argmax)
    )
    kept = np.unique(np.concatenate([low, high]))
    return Points(points.x[kept], points.y[kept])


def _loss_scale(lines: Sequence[Line]) -> Scale:
    shown = [line.points.y for line in lines if len(line.points.y)]
    # A single spike of the raw loss must not press all the rest flat; it runs out of the panel.
    shown += [np.quantile(line.raw.y, [0.005, 0.995]) for line in lines if line.raw]
    if not shown:
        return Scale(0.0, 1.0, [])
    low, high = float(min(map(np.min, shown))), float(max(map(np.max, shown)))
    if low > 0 and high / low >= _LOG_RATIO:
        low, high = low / 1.06, high * 1.06
        return Scale(low, high, _log_ticks(low, high), logarithmic=True)
    room = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return Scale(low - room, high + room, linear_ticks(low - room, high + room))


def _bleu_scale(lines: Sequence[Line]) -> Scale:
    shown = [float(line.points.y.max()) for line in lines if len(line.points.y)]
    if not shown:
        return Scale(0.0, 1.0, [])
    high = 1.08 * max(shown) if max(shown) > 0 else 1.0
    return Scale(0.0, high, linear_ticks(0.0, high, 5))


def linear_ticks(low: float, high: float, num_wanted: int = 6) -> list[float]:
    """Return about so many round numbers between two others."""
    rough = (high - low) / num_wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= 0.999 * rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 6, 8)):
        ticks = [float(f"{factor * 10.0**power:.12g}") for power in powers for factor in factors]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 4:
            return ticks
    return ticks


def number_label(value: float) -> str:
    """Return a tick's number as it is written at an axis: `12,000`, `0.25`, `1e+09`."""
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e9 else f"{value:.6g}"
