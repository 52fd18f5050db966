"""Pictures made of characters: attention as a heat map, a row of numbers as a sparkline."""

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.draw.colours import Floats, nearest_of_256, shaded
from regard.draw.heatmap import HeatMap, bound_of
from regard.draw.labels import cut, display_width, pad_left, pad_right, percent, printable, wrapped

Colour = Literal["none", "256", "full"]

USUAL_WIDTH = 100
"""Columns, where nobody says how many there are."""

# Attention is seldom spread evenly: a fifth of the weight on one of thirty tokens is already a look at it.
_SHADES = " ░▒▓█"
_SHADE_LIMITS = (0.08, 0.2, 0.4, 0.7)
_CELL_WIDTH = 2
_LABEL_SHARE = 3  # the labels of rows take at most one column in so many
_MAX_NAME_LETTERS = 12  # of a name that stands upright
_SURE = " prob"  # heads the column of probabilities, which is as wide
_CAPTION_WIDTH = 40  # how wide a caption may be, even if its map is not
_GAP = 3  # between maps that stand side by side
_FAINTEST_INK = 0.45  # of the way from the colour of 0 to that of the largest value
_RESET = "\x1b[0m"
_ESCAPE = re.compile("\x1b\\[[0-9;]*m")
_BARS = "▁▂▃▄▅▆▇█"


def _row_labels(rows: Sequence[str], width: int) -> tuple[list[str], int]:
    """Return the names of rows, cut and padded to one width, and that width."""
    labels = [cut(printable(row), width // _LABEL_SHARE) for row in rows]
    label_width = max(map(display_width, labels), default=0)
    return [pad_left(label, label_width) for label in labels], label_width


def _shades(shares_S: Floats) -> list[str]:
    places: NDArray[np.int64] = np.searchsorted(_SHADE_LIMITS, np.nan_to_num(shares_S), side="right")
    return [_SHADES[place] for place in places]


def heat_map_lines(
    chart: HeatMap, width: int, colour: Colour = "none", max_letters: int = _MAX_NAME_LETTERS
) -> list[str]:
    """Return the lines of a heat map with its title, names upright above its columns, and its caption.

    No line is wider than `width`, no name higher than `max_letters`. Columns that do not fit follow in blocks
    below, each with the rows that look there, the first also with those that look nowhere; where not even one
    column fits there is a line that says so. Colour only adds to the shades, it never tells more than they
    do; effects carry their sign, as shares of the largest one, which is written below.
    """
    lines = [cut(printable(chart.title), width)] if chart.title else []
    labels, label_width = _row_labels(chart.rows, width)
    room = width - label_width - 1
    narrowest = _CELL_WIDTH if chart.columns else 0
    probs_T = chart.probs_T if room >= narrowest + len(_SURE) else None
    sure = _SURE if probs_T is not None else ""
    sure_T = [pad_left(percent(prob), len(sure)) for prob in probs_T] if probs_T else [""] * len(labels)
    margin = " " * (label_width + 1)
    num_columns, num_fitting = len(chart.columns), (room - len(sure)) // _CELL_WIDTH
    if not num_columns:
        lines += [cut(f"{margin[1:]}{sure}", width)] if sure else []
        lines += [f"{label}{prob}" for label, prob in zip(labels, sure_T, strict=True)]
    elif num_fitting < 1:
        lines.append(cut("too narrow for a map", width))
    else:
        bound = bound_of([chart])
        inked_TS = np.abs(np.nan_to_num(chart.values_TS)) >= _SHADE_LIMITS[0] * bound
        num_blocks = math.ceil(num_columns / num_fitting)
        block_size = math.ceil(num_columns / num_blocks)  # about the same in all, not a narrow last one
        for first in range(0, num_columns, block_size):
            end = min(first + block_size, num_columns)
            if num_blocks > 1:
                lines.append(cut(f"columns {first + 1}-{end}", width))
            names = _upright(chart.columns[first:end], max_letters)
            lines += [margin + line for line in names[:-1]]
            lines.append(margin + names[-1] + sure)
            shown_T = inked_TS[:, first:end].any(axis=1) | (first == 0) & ~inked_TS.any(axis=1)
            for row in np.flatnonzero(shown_T):
                cells = _coloured(chart.values_TS[row, first:end], bound, chart.signed, colour)
                lines.append(f"{labels[row]} {cells}{sure_T[row]}")
        if chart.signed:
            lines.append(cut(f"largest {chart.kind.removesuffix('s')} {bound:.3g}", width))
    # Below the map, not beside it: a long caption would keep other maps from standing beside this one.
    widest = max(_CAPTION_WIDTH, *map(_visible_width, lines), 0)
    lines += wrapped(printable(chart.note).split(), min(width, widest))
    return [line.rstrip(" ") for line in lines]


def shades_legend(width: int) -> list[str]:
    """Return what the shades of `heat_map_lines` mean, for once below all maps."""
    entries = [f"{shade} from {limit:g}" for shade, limit in zip(_SHADES[1:], _SHADE_LIMITS, strict=True)]
    return wrapped([*entries, "of 1, or of the largest number"], width, gap="  ")


def side_by_side(blocks: Sequence[list[str]], width: int) -> list[str]:
    """Return blocks of lines beside each other as far as they fit into the width, the others below them.

    Escape sequences take no room; a block wider than `width` stands alone and stays as it is.
    """
    lines: list[str] = []
    used = width + 1
    beside: list[list[str]] = []
    for block in blocks:
        block_width = max(map(_visible_width, block), default=0)
        if used + _GAP + block_width > width:
            lines += [*_joined(beside), ""] if beside else []
            beside, used = [], -_GAP
        beside.append(block)
        used += _GAP + block_width
    return lines + _joined(beside)


def _joined(blocks: list[list[str]]) -> list[str]:
    widths = [max(map(_visible_width, block), default=0) for block in blocks]
    lines: list[str] = []
    for place in range(max(map(len, blocks), default=0)):
        parts = [block[place] if place < len(block) else "" for block in blocks]
        padded = (
            part + " " * (width - _visible_width(part)) for part, width in zip(parts, widths, strict=True)
        )
        lines.append((" " * _GAP).join(padded).rstrip(" "))
    return lines


def _visible_width(line: str) -> int:
    return display_width(_ESCAPE.sub("", line))


def _upright(columns: Sequence[str], max_letters: int) -> list[str]:
    """Return the lines in which each name runs downwards and ends just above its column."""
    names = [list(_letters(printable(column))) for column in columns]
    names = [name if len(name) <= max_letters else [*name[: max_letters - 1], "…"] for name in names]
    height = max(1, *map(len, names))
    padded = [[""] * (height - len(name)) + name for name in names]
    return ["".join(pad_right(letter, _CELL_WIDTH) for letter in line) for line in zip(*padded, strict=True)]


def _letters(name: str) -> Iterator[str]:
    """Yield each letter with the marks that belong to it, at most as wide as a cell."""
    letter = ""
    for character in name:
        is_mark = not display_width(character) or unicodedata.category(character).startswith("M")
        if letter and (not is_mark or display_width(letter + character) > _CELL_WIDTH):
            yield letter
            letter = ""
        # A mark without a letter would go to whatever stands before it.
        letter += character if letter or not is_mark else f" {character}"
    if letter:
        yield letter


def _coloured(values_S: Floats, bound: float, signed: bool, colour: Colour) -> str:
    """Return the cells of one row; a stretch in one colour shares its escape sequence."""
    shades = _shades(np.abs(values_S) / bound)
    cells = [_cell(*each, signed) for each in zip(values_S.tolist(), shades, strict=True)]
    if colour == "none":
        return "".join(cells)
    # The ground is the colour of 0, so that it looks the same on a dark and on a light terminal.
    ground = shaded(0.0, bound, signed, on_dark=True)
    # A light shade lets most of the ground through: in the colour of its own value it would not be seen.
    shares_S = np.nan_to_num(values_S) / bound
    colours = shaded(
        _FAINTEST_INK * np.sign(shares_S) + (1 - _FAINTEST_INK) * shares_S, 1.0, signed, on_dark=True
    )
    inks = [
        "" if np.isnan(value) else _sequence(ground if shade == _SHADES[0] else ink, ground, colour)
        for value, shade, ink in zip(values_S, shades, colours, strict=True)
    ]
    return "".join(
        (ink + text + _RESET if ink else text)
        for ink, group in groupby(zip(inks, cells, strict=True), key=lambda pair: pair[0])
        for text in ["".join(cell for _, cell in group)]
    )


def _cell(value: float, shade: str, signed: bool) -> str:
    if np.isnan(value):
        return pad_right("·", _CELL_WIDTH)
    if not signed or shade == _SHADES[0]:
        return shade * _CELL_WIDTH
    return ("-" if value < 0 else "+") + shade


def _sequence(ink: ArrayLike, ground: ArrayLike, colour: Colour) -> str:
    if colour == "256":
        return f"\x1b[38;5;{nearest_of_256(ink)};48;5;{nearest_of_256(ground)}m"
    red_green_blue = [";".join(map(str, np.asarray(part).tolist())) for part in (ink, ground)]
    return f"\x1b[38;2;{red_green_blue[0]};48;2;{red_green_blue[1]}m"


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
