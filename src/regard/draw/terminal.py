"""Pictures made of characters: attention as a heat map, a row of numbers as a sparkline."""

import string
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from regard.draw.labels import cut, display_width, pad_left, printable

# Attention is seldom spread evenly: a fifth of the weight on one of thirty tokens is already a look at it.
_SHADES = " ░▒▓█"
_SHADE_LIMITS = (0.08, 0.2, 0.4, 0.7)
_CELL_WIDTH = 2
_COLUMN_NAMES = "123456789" + string.ascii_letters  # numbers of two digits would run into each other
_LABEL_SHARE = 3  # the labels of rows take at most one column in so many
_BARS = "▁▂▃▄▅▆▇█"


def heat_map(weights_TS: ArrayLike, rows: Sequence[str], columns: Sequence[str], width: int) -> list[str]:
    """Return the lines of a heat map: target pieces down, source pieces across, the darker the more weight.

    The line below the map names the columns 1 to 9, a to z, A to Z, one character each, and the lines after
    it say which name is which piece. No line is wider than `width`; columns that do not fit are left out,
    with `…`.
    """
    weights = np.asarray(weights_TS, dtype=float)
    if weights.shape != (len(rows), len(columns)):
        raise ValueError(f"weights of shape {weights.shape} for {len(rows)} rows and {len(columns)} columns")
    labels = [cut(printable(row), width // _LABEL_SHARE) for row in rows]
    label_width = max(map(display_width, labels), default=0)
    num_fitting = max(0, (width - label_width - 1) // _CELL_WIDTH)
    num_shown = len(columns) if len(columns) <= num_fitting else max(0, num_fitting - 1)
    if not len(rows) or not num_shown:
        return []
    more = "…" if num_shown < len(columns) else ""
    lines = [
        f"{pad_left(label, label_width)} {_cells(weights_S[:num_shown])}{more}"
        for label, weights_S in zip(labels, weights, strict=True)
    ]
    names = "".join(f"{_column_name(place):<{_CELL_WIDTH}}" for place in range(num_shown))
    lines.append(f"{' ' * label_width} {names}{more}")
    return lines + _key(columns[:num_shown], more, width)


def _cells(weights_S: np.ndarray) -> str:
    shades = np.searchsorted(_SHADE_LIMITS, np.nan_to_num(weights_S), side="right")
    return "".join(_SHADES[shade] * _CELL_WIDTH for shade in shades)


def _column_name(place: int) -> str:
    return _COLUMN_NAMES[place] if place < len(_COLUMN_NAMES) else "·"


def _key(columns: Sequence[str], more: str, width: int) -> list[str]:
    """Return `1 le  2 chat  3 dort`, broken into lines where it must be."""
    entries = [f"{_column_name(place)} {printable(column)}" for place, column in enumerate(columns)]
    lines: list[str] = []
    for entry in [*entries, more] if more else entries:
        entry = cut(entry, width)
        if lines and display_width(lines[-1]) + 2 + display_width(entry) <= width:
            lines[-1] += f"  {entry}"
        else:
            lines.append(entry)
    return lines


def sparkline(values: ArrayLike, width: int) -> str:
    """Return a row of bars at most `width` long, from the lowest value to the highest.

    More values than bars: each bar is the mean of its share. What is not a number leaves a blank.
    """
    numbers = np.asarray(values, dtype=float).reshape(-1)
    if len(numbers) > width > 0:
        edges = np.linspace(0, len(numbers), width + 1).astype(int)
        numbers = np.add.reduceat(numbers, edges[:-1]) / np.diff(edges)
    numbers = numbers[: max(0, width)]
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return " " * len(numbers)
    low, span = finite.min(), float(np.ptp(finite)) or 1.0
    return "".join(
        _BARS[int((number - low) / span * (len(_BARS) - 1) + 0.5)] if np.isfinite(number) else " "
        for number in numbers
    )
