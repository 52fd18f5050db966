"""Learning curves of one or more runs: what each panel of their chart shows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from regard.draw.charts import Panel, Scale, Series, XAxis, linear_ticks, plot, x_scale, zero_scale
from regard.draw.colours import Floats
from regard.draw.scene import Scene

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
    def best(self) -> str:
        """The highest BLEU so far, in words; nothing before the first validation."""
        known = self.bleu[np.isfinite(self.bleu)]
        return f"best BLEU {known.max():.1f}" if len(known) else ""


def learning_curves(curves: Sequence[Curve], x_label: str) -> Scene:
    """Return training loss, validation loss and BLEU, one below the other, over updates or time."""
    shown = panels(curves)
    said = ["Training loss, validation loss and validation BLEU, one below the other."]
    for curve in curves:
        end = f"{curve.update_x[-1]:,.0f} {x_label}" if len(curve.update_x) else "no update yet"
        said.append(f"{curve.name}: {end}, {curve.best or 'no validation yet'}.")
    axis = XAxis(x_label, x_scale([one for panel in shown for one in panel.series]))
    return plot("Learning curves", shown, axis, " ".join(said))


def panels(curves: Sequence[Curve]) -> list[Panel]:
    """Return training loss, validation loss and BLEU, from top to bottom."""
    training = [_smoothed(curve) for curve in curves]
    nll = [_series(curve, curve.validation_x, curve.nll, ".3f") for curve in curves]
    bleu = [_series(curve, curve.validation_x, curve.bleu) for curve in curves]
    loss = "loss, nats per target piece"
    return [
        Panel(f"training {loss}", training, _loss_scale(training), 190, "no update yet"),
        Panel(f"validation {loss}", nll, _loss_scale(nll), 130, "no validation yet"),
        Panel("validation BLEU", bleu, zero_scale(bleu), 150, "no validation yet"),
    ]


def _series(curve: Curve, x: Floats, y: Floats, form: str = ".1f") -> Series:
    """Return at most MAX_POINTS of the points that are known, the first and the last among them."""
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if len(known) > MAX_POINTS:
        known = known[np.linspace(0, len(known) - 1, MAX_POINTS).round().astype(int)]
    return Series(curve.name, x[known], y[known], note=curve.best, form=form)


def _smoothed(curve: Curve) -> Series:
    """Return a running mean of the loss over its raw points.

    The window shrinks towards the first update, where the loss falls fast and a mean would begin too low.
    """
    known = np.isfinite(curve.update_x) & np.isfinite(curve.loss)
    x, y = curve.update_x[known], curve.loss[known]
    half = len(y) // (2 * _SMOOTHING_SHARE)
    if half == 0:
        return _series(curve, x, y, ".3f")
    place = np.arange(len(y))
    first = np.maximum(0, place - half)
    last = np.minimum(len(y) - 1, np.minimum(place + half, 2 * place))
    # Sums of what is left after the mean: those of the values themselves would lose digits on a long run.
    centre = float(y.mean())
    sums = np.concatenate([[0.0], np.cumsum(y - centre)])
    mean = centre + (sums[last + 1] - sums[first]) / (last + 1 - first)
    smooth, kept = _series(curve, x, mean), _envelope(y)
    return Series(curve.name, smooth.x, smooth.y, note=curve.best, raw_x=x[kept], raw_y=y[kept])


def _envelope(y: Floats) -> np.ndarray:
    """Return the places of the lowest and the highest point of each stretch, so that no spike is lost."""
    if len(y) <= MAX_POINTS:
        return np.arange(len(y))
    edges = np.linspace(0, len(y), MAX_POINTS // 2 + 1).astype(int)
    picks = (np.argmin, np.argmax)
    return np.unique([first + pick(y[first:last]) for pick in picks for first, last in pairwise(edges)])


def _loss_scale(series: Sequence[Series]) -> Scale:
    shown = [one.y for one in series if len(one.y)]
    # A single spike of the raw loss must not press all the rest flat; it is cut off at the edge.
    shown += [np.quantile(one.raw_y, [0.005, 0.995]) for one in series if one.raw_y is not None]
    if not shown:
        return Scale(0.0, 1.0, [])
    low, high = float(min(map(np.min, shown))), float(max(map(np.max, shown)))
    if low > 0 and high / low >= _LOG_RATIO:
        low, high = low / 1.06, high * 1.06
        return Scale(low, high, _log_ticks(low, high), logarithmic=True)
    room = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return Scale(low - room, high + room, linear_ticks(low - room, high + room))


def _log_ticks(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 6, 8)):
        ticks = [float(f"{factor * 10.0**power:.12g}") for power in powers for factor in factors]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 4:
            return ticks
    return ticks
