"""Heat maps, such as where a translation looked: the numbers, and their layout as a `Scene`.

The colours of the cells are the same on light and dark backgrounds.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from regard.draw.colours import Floats, Pixels, hexadecimal, ink_on, shaded
from regard.draw.labels import cut, display_width, number_label, percent, printable, texts, wrapped
from regard.draw.png import png
from regard.draw.scene import TEXT_SIZE, Anchor, Box, Label, Lines, Picture, Scene, Shape, svg

MAX_LABEL_WIDTH = 28  # columns; what is longer stands whole in its hint
MIN_REVERSED_ROWS = 3  # two words that change places are no block yet
_MAX_CELLS = 10_000  # of a picture; beyond it a rectangle for each would make a file of megabytes
_MAX_WIDTH = 1400  # maps that would stand further to the right go below
_MAX_NUMBERED = 12  # rows and columns with which the cells still have room for their numbers
_MAX_NUMBER_LENGTH = 5  # of a number in a cell
_MAX_TOLD_ROWS = 60  # of a map in words; nobody listens longer

_MARGIN, _GAP = 24.0, 44.0
_TITLE_SIZE, _SMALL_SIZE = 14.0, 10.5
_TITLE_LINE, _TEXT_LINE = 19.0, 17.0
_MIN_TEXT_ROOM = 240.0  # for titles and captions of narrow maps
_CELL_SIZES = ((_MAX_NUMBERED, 36.0), (24, 22.0), (48, 17.0), (90, 14.0))
_SMALLEST_CELL = 11.0
_TURN = -60.0  # degrees, of the names above the columns
_ACROSS, _UP = math.cos(math.radians(_TURN)), -math.sin(math.radians(_TURN))
_STRIP_GAP, _BAR_WIDTH, _PERCENT_WIDTH = 14.0, 44.0, 48.0
_LEGEND_WIDTH, _LEGEND_HEIGHT, _LEGEND_GAP = 200.0, 46.0, 36.0
_HATCH_STEP = 5.0
_MAX_HATCHED = 2_000  # cells of a picture with strokes of their own; those of more are part of the picture
_HATCH_PIXELS = 5  # of a side of a cell then

_Stroke = tuple[tuple[float, float], tuple[float, float]]

MapKind = Literal["weights", "scores", "effects"]
"""Shares between 0 and 1; or numbers below and above 0, of which a higher one means more, or a larger one."""


@dataclass(frozen=True, slots=True, eq=False)
class HeatMap:
    """A matrix with its names, before it is SVG, PNG or characters."""

    title: str
    rows: tuple[str, ...]  # what is written, from top to bottom
    columns: tuple[str, ...]  # what is looked at, from left to right; none: a model without attention
    values_TS: Floats  # NaN: cannot be looked at
    probs_T: tuple[float, ...] | None = None  # how sure the model was of each row
    kind: MapKind = "weights"
    caption: str = ""

    def __post_init__(self) -> None:
        shape = len(self.rows), len(self.columns)
        if self.values_TS.shape != shape:
            raise ValueError(
                f"values of shape {self.values_TS.shape} for {shape[0]} rows and {shape[1]} columns"
            )
        if self.probs_T is not None and len(self.probs_T) != len(self.rows):
            raise ValueError(f"{len(self.probs_T)} probabilities for {len(self.rows)} rows")
        for prob in self.probs_T or ():
            if prob < 0 or prob > 1 + 1e-6:  # a float may round up; one that is not known is NaN
                raise ValueError(f"{prob} is not a probability")
        if np.isinf(self.values_TS).any():
            raise ValueError("a heat map has no colour for infinity; NaN stands for what cannot be looked at")
        if not self.signed and (self.values_TS < 0).any():
            raise ValueError(f"{np.nanmin(self.values_TS)} is below 0; such a map is of scores or of effects")

    @property
    def signed(self) -> bool:
        """Whether values are below and above 0."""
        return self.kind != "weights"

    @property
    def note(self) -> str:
        """The line below the map; of a map without columns it says why there is none."""
        if self.columns or self.caption.startswith("no attention"):
            return self.caption
        return f"no attention; {self.caption}" if self.caption else "no attention"

    @property
    def top_T(self) -> list[int | None]:
        """The column of the strongest value of each row, `None` where there is no value but 0."""
        if self.kind == "scores":
            known_TS = np.where(np.isnan(self.values_TS), -np.inf, self.values_TS)
            return [int(row.argmax()) if len(row) and np.isfinite(row).any() else None for row in known_TS]
        strength_TS = np.abs(np.nan_to_num(self.values_TS))
        return [int(row.argmax()) if len(row) and row.max() > 0 else None for row in strength_TS]


@dataclass(frozen=True, slots=True)
class ReversedBlock:
    """Rows that look at neighbouring columns from right to left; ends are exclusive."""

    first_row: int
    end_row: int
    first_column: int
    end_column: int


def reversed_blocks(chart: HeatMap) -> list[ReversedBlock]:
    """Return each longest run of rows that look one column further back than the row before.

    `European Economic Area` for `zone économique européenne` is one; effects have no such order.
    """
    if chart.signed:
        return []
    top_T = [*chart.top_T, None]
    blocks, first = [], 0
    for row in range(1, len(top_T)):
        here, before = top_T[row], top_T[row - 1]
        if here is not None and before is not None and here == before - 1:
            continue
        if before is not None and row - first >= MIN_REVERSED_ROWS:
            blocks.append(ReversedBlock(first, row, before, before + row - first))
        first = row
    return blocks


def bound_of(charts: Sequence[HeatMap]) -> float:
    """Return what the colours of maps of one kind end at: 1, or the largest amount or effect.

    Weights are shares: all of 0 to 1 is kept for them, so that two pictures can be compared.
    """
    sizes = [1.0 if not chart.signed else 0.0 for chart in charts]
    sizes += [float(np.abs(np.nan_to_num(chart.values_TS)).max(initial=0.0)) for chart in charts]
    return max(sizes, default=0.0) or 1.0


def heat_maps_svg(maps: Sequence[HeatMap], language: str = "en") -> str:
    """Return one or more heat maps as an SVG document; the language is that of its legend."""
    return svg(scene(maps, language=language))


def heat_maps_png(maps: Sequence[HeatMap]) -> bytes:
    """Return one or more heat maps as a PNG picture on white, laid out as their SVG is."""
    return png(scene(maps, max_cells=0))


def scene(charts: Sequence[HeatMap], max_cells: int = _MAX_CELLS, language: str = "en") -> Scene:
    """Lay out maps side by side, and in further rows where they are too wide, with one legend below.

    Maps of one kind share their colours. More cells than `max_cells` in all: a picture for each map.
    """
    if not charts:
        raise ValueError("no heat map to draw")
    words = texts("draw", language)
    bounds = {kind: bound_of([chart for chart in charts if chart.signed == kind]) for kind in (False, True)}
    as_picture = sum(chart.values_TS.size for chart in charts) > max_cells
    shapes: list[Shape] = []
    width, y = 0.0, _MARGIN
    for line in _lines([_Block.of(chart) for chart in charts]):
        x = _MARGIN
        grid_y = y + max(block.head for block in line)
        for block in line:
            shapes += block.shapes(x, y, grid_y, bounds[block.chart.signed], as_picture)
            width = max(width, x + block.width)
            x += block.width + _GAP
        y = grid_y + max(block.foot for block in line) + _GAP / 2
    width = max(width, _MARGIN + _LEGEND_WIDTH)
    legend, y = _legend(charts, bounds, width, y, words)
    return Scene(
        "map",
        math.ceil(width + _MARGIN),
        math.ceil(y),
        shapes + legend,
        ", ".join(chart.title for chart in charts),
        " ".join(_description(chart, words) for chart in charts),
    )


@dataclass(frozen=True, slots=True)
class _Block:
    """The room one map takes with all its texts; `head` is above its cells, `foot` its cells and below."""

    chart: HeatMap
    cell: float
    label_size: float
    left: float
    head: float
    foot: float
    width: float
    title: list[str]
    note: list[str]

    @classmethod
    def of(cls, chart: HeatMap) -> "_Block":
        num_rows, num_columns = chart.values_TS.shape
        longest_side = max(num_rows, num_columns)
        cell = next((size for limit, size in _CELL_SIZES if longest_side <= limit), _SMALLEST_CELL)
        size = min(13.0, cell - 3)
        left = max((_room(_short(row), size) for row in chart.rows), default=0.0) + 8
        lengths = [_room(_short(column), size) for column in chart.columns]
        ends = [(place + 0.5) * cell + _ACROSS * length for place, length in enumerate(lengths)]
        width = left + max([num_columns * cell, *(end + 0.5 * size for end in ends)])
        above = max(lengths, default=0.0) * _UP + 0.5 * size + 6
        if chart.probs_T is not None:
            width = max(width, left + num_columns * cell + _STRIP_GAP + _BAR_WIDTH + _PERCENT_WIDTH)
            above = max(above, 20.0)
        title, note = cut(printable(chart.title), 100), cut(printable(chart.note), 300)
        in_title, in_note = partial(_room, size=_TITLE_SIZE, bold=True), partial(_room, size=TEXT_SIZE)
        width = max(width, _MIN_TEXT_ROOM if title or note else 0.0)
        width = max(width, *map(in_title, title.split(" ")), *map(in_note, note.split(" ")))
        title_lines = wrapped(title.split(" ") if title else [], width, measure=in_title)
        note_lines = wrapped(note.split(" ") if note else [], width, measure=in_note)
        head = len(title_lines) * _TITLE_LINE + 4 + above
        foot = num_rows * cell + (8 + len(note_lines) * _TEXT_LINE if note else 0)
        return cls(chart, cell, size, left, head, foot, width, title_lines, note_lines)

    def shapes(self, x: float, y: float, grid_y: float, bound: float, as_picture: bool) -> Iterator[Shape]:
        """Yield the map with its upper left corner at x, y and its first row at grid_y."""
        chart, cell, size = self.chart, self.cell, self.label_size
        num_rows, num_columns = chart.values_TS.shape
        grid_x, bottom = x + self.left, grid_y + num_rows * cell
        drop = 0.35 * size  # from the middle of a line to its baseline
        for place, line in enumerate(self.title):
            yield Label(x, y + (place + 0.75) * _TITLE_LINE, line, _TITLE_SIZE, look="bold")
        for place, name in enumerate(chart.rows):
            middle = grid_y + (place + 0.5) * cell
            yield Label(grid_x - 8, middle + drop, _short(name), size, "end", hint=_hint(name))
        for place, name in enumerate(chart.columns):
            middle = grid_x + (place + 0.5) * cell
            yield Label(middle + drop, grid_y - 6, _short(name), size, turn=_TURN, hint=_hint(name))
        if num_rows and num_columns:
            yield from self._cells(grid_x, grid_y, bound, as_picture)
        for block in reversed_blocks(chart):
            corner = grid_x + block.first_column * cell, grid_y + block.first_row * cell
            sides = (block.end_column - block.first_column) * cell, (block.end_row - block.first_row) * cell
            yield from _outline(*corner, *sides)
        yield from self._strip(grid_x + num_columns * cell + _STRIP_GAP * bool(num_columns), grid_y)
        for place, line in enumerate(self.note):
            yield Label(x, bottom + 8 + (place + 0.75) * _TEXT_LINE, line)

    def _cells(self, x: float, y: float, bound: float, as_picture: bool) -> Iterator[Shape]:
        chart, cell = self.chart, self.cell
        values_TS = chart.values_TS
        num_rows, num_columns = values_TS.shape
        right, bottom = x + num_columns * cell, y + num_rows * cell
        colours_TS3 = shaded(values_TS, bound, chart.signed)
        masked_TS = np.isnan(values_TS)
        hatch_in_picture = as_picture and masked_TS.sum() > _MAX_HATCHED
        if as_picture:
            pixels = _pixels(colours_TS3, masked_TS, hatch_in_picture)
            yield Picture(x, y, right - x, bottom - y, pixels)
        else:
            for row, column in np.ndindex(num_rows, num_columns):
                corner, hint = (x + column * cell, y + row * cell), _cell_hint(chart, row, column)
                if masked_TS[row, column]:
                    yield Box(*corner, cell, cell, "masked", hint=hint)
                else:
                    yield Box(*corner, cell, cell, "cell", hexadecimal(colours_TS3[row, column]), hint)
        hatched = np.argwhere(masked_TS & (not hatch_in_picture))
        strokes = [one for row, column in hatched for one in _hatch(x + column * cell, y + row * cell, cell)]
        yield Lines(strokes, "hatch")
        if cell > _SMALLEST_CELL:
            grid = [((x, y + row * cell), (right, y + row * cell)) for row in range(num_rows + 1)]
            across = [x + column * cell for column in range(num_columns + 1)]
            yield Lines([*grid, *(((one, y), (one, bottom)) for one in across)], "gap")
        if max(num_rows, num_columns) <= _MAX_NUMBERED:
            for row, column in np.argwhere(~masked_TS):
                place = x + (column + 0.5) * cell, y + (row + 0.5) * cell + 0.35 * _SMALL_SIZE
                ink = ink_on(colours_TS3[row, column])
                if text := _number(float(values_TS[row, column]), chart.signed, bound):
                    yield Label(*place, text, _SMALL_SIZE, "middle", look="number", ink=ink)
            return
        # Where there is no room for numbers a stroke tells the negative ones, also in a print without colour.
        minuses: dict[str, list[_Stroke]] = {}
        for row, column in np.argwhere(np.nan_to_num(values_TS) < -bound / 10):
            begin, middle = x + (column + 0.3) * cell, y + (row + 0.5) * cell
            strokes = minuses.setdefault(ink_on(colours_TS3[row, column]), [])
            strokes.append(((begin, middle), (begin + 0.4 * cell, middle)))
        for ink, strokes in minuses.items():
            yield Lines(strokes, "minus", ink)

    def _strip(self, x: float, y: float) -> Iterator[Shape]:
        """Yield how sure the model was of each row, as bars with their numbers."""
        if self.chart.probs_T is None:
            return
        yield Label(x, y - 7, "probability", _SMALL_SIZE)
        thick, size = min(8.0, 0.5 * self.cell), min(_SMALL_SIZE, self.label_size)
        for place, (row, prob) in enumerate(zip(self.chart.rows, self.chart.probs_T, strict=True)):
            middle = y + (place + 0.5) * self.cell
            known = min(1.0, max(0.0, prob)) if math.isfinite(prob) else 0.0
            yield Box(x, middle - thick / 2, _BAR_WIDTH, thick, "track")
            yield Box(
                x, middle - thick / 2, known * _BAR_WIDTH, thick, "prob", hint=f"{row}: {percent(prob)}"
            )
            yield Label(x + _BAR_WIDTH + 6, middle + 0.35 * size, percent(prob), size)


def _lines(blocks: list[_Block]) -> list[list[_Block]]:
    """Return the maps that stand side by side, line by line."""
    lines: list[list[_Block]] = []
    end = math.inf
    for block in blocks:
        end += _GAP + block.width
        if end > _MAX_WIDTH - 2 * _MARGIN:
            lines.append([])
            end = block.width
        lines[-1].append(block)
    return lines


def _legend(
    charts: Sequence[HeatMap], bounds: dict[bool, float], right: float, y: float, words: Mapping[str, str]
) -> tuple[list[Shape], float]:
    """Return what explains the colours and signs that occur, and where it ends."""
    drawn = [chart for chart in charts if chart.values_TS.size]
    signed = ", ".join(sorted({words[chart.kind] for chart in drawn if chart.signed}))
    entries = {
        "weights": any(not chart.signed for chart in drawn),
        "signs": bool(signed),
        "masked": any(np.isnan(chart.values_TS).any() for chart in drawn),
        "reversed": any(reversed_blocks(chart) for chart in drawn),
    }
    shapes: list[Shape] = []
    x = _MARGIN
    for key in (key for key, occurs in entries.items() if occurs):
        if x > _MARGIN and x + _LEGEND_WIDTH > right:
            x, y = _MARGIN, y + _LEGEND_HEIGHT + 6
        text = f"{signed}: {words[key]}" if key == "signs" else words[key]
        shapes.append(Label(x, y + 10, text, _SMALL_SIZE))
        if key == "masked":
            strokes = [*_hatch(x, y + 18, 10), *_hatch(x + 10, y + 18, 10)]
            shapes += [Box(x, y + 18, 20, 10, "masked"), Lines(strokes, "hatch")]
        elif key == "reversed":
            shapes += _outline(x + 2, y + 18, 20, 10)
        else:
            shapes += _colour_bar(x, y + 18, bounds[key == "signs"], signed=key == "signs")
        x += _LEGEND_WIDTH + _LEGEND_GAP
    return shapes, y + (_LEGEND_HEIGHT + 12 if shapes else 0)


def _colour_bar(x: float, y: float, bound: float, signed: bool) -> Iterator[Shape]:
    num_steps, wide = 45, 180.0
    low = -bound if signed else 0.0
    step = wide / num_steps
    for place, colour in enumerate(shaded(np.linspace(low, bound, num_steps), bound, signed)):
        # Each lies a little over the one before it, or thin lines of paper would be seen between them.
        over = 0.5 if place < num_steps - 1 else 0
        yield Box(x + place * step, y, step + over, 10, "cell", hexadecimal(colour))
    anchors: tuple[Anchor, ...] = ("start", "middle", "end")
    for share, anchor in zip((0.0, 0.5, 1.0), anchors, strict=True):
        number = number_label(float(f"{low + share * (bound - low):.3g}")).replace("-", "−")
        yield Label(x + share * wide, y + 23, number, _SMALL_SIZE, anchor)


def _outline(x: float, y: float, width: float, height: float) -> list[Shape]:
    """Return a frame that is seen on dark and bright cells: a light line below a red one."""
    return [Box(x, y, width, height, "casing"), Box(x, y, width, height, "outline")]


def _pixels(colours_TS3: Pixels, masked_TS: NDArray[np.bool_], hatched: bool) -> Pixels:
    opacity_TS1 = np.where(masked_TS, 0, 255).astype(np.uint8)[:, :, None]
    pixels: Pixels = np.concatenate([colours_TS3, opacity_TS1], axis=2)
    if not hatched:
        return pixels
    pixels = pixels.repeat(_HATCH_PIXELS, axis=0).repeat(_HATCH_PIXELS, axis=1)
    down, across = np.indices(pixels.shape[:2])
    on_stroke = (pixels[:, :, 3] == 0) & ((down + across) % _HATCH_PIXELS == _HATCH_PIXELS - 1)
    pixels[on_stroke] = (128, 128, 128, 128)  # seen on light and dark paper
    return pixels


def _hatch(x: float, y: float, side: float) -> list[_Stroke]:
    """Return strokes from lower left to upper right over a square, in the same steps in all of them."""
    num = max(1, round(side / _HATCH_STEP))
    steps = [place * side / num for place in range(num + 1)]
    upper = [((x, y + step), (x + step, y)) for step in steps[1:]]
    return upper + [((x + step, y + side), (x + side, y + step)) for step in steps[1:-1]]


def _short(name: str) -> str:
    return cut(printable(name), MAX_LABEL_WIDTH)


def _hint(name: str) -> str:
    return "" if _short(name) == printable(name) else name


def _cell_hint(chart: HeatMap, row: int, column: int) -> str:
    value = float(chart.values_TS[row, column])
    number = f"{value:+.3f}" if chart.signed else f"{value:.3f}"
    number = "cannot be looked at" if math.isnan(value) else number
    return f"{chart.rows[row]} → {chart.columns[column]}: {number}"


def _number(value: float, signed: bool, bound: float) -> str:
    """Return a value as it is written into its cell: nothing if it rounds to 0 or has no room."""
    decimals = 2 if bound < 9.995 else 1 if bound < 99.95 else 0
    text = f"{value:+.{decimals}f}" if signed else f"{value:.{decimals}f}"
    if not 0.1 <= bound < 999.5:
        text = re.sub(r"e([+-])0?", lambda found: "e-" if found[1] == "-" else "e", f"{value:.0e}")
    return text.replace("-", "−") if float(text) and len(text) <= _MAX_NUMBER_LENGTH else ""


def _room(text: str, size: float, bold: bool = False) -> float:
    """Return how wide a text is at most in the type of the picture, whose font is not known."""
    return sum(map(_ems, text)) * size * (1.1 if bold else 1.0)


def _ems(letter: str) -> float:
    if display_width(letter) != 1:
        return 1.08 if display_width(letter) else 0.0
    if letter in "mwMW@%—…→�" or ord(letter) >= 0x0590:  # beyond Latin, Greek and Cyrillic scripts
        return 1.0
    return 0.8 if letter.isupper() else 0.4 if letter in "iljtfr.,:;'|!()[] " else 0.65


def _description(chart: HeatMap, words: Mapping[str, str]) -> str:
    """Return a map in words, for screen readers."""
    said = [words["map"].format(title=chart.title, rows=len(chart.rows), columns=len(chart.columns))]
    for place, (row, top) in enumerate(zip(chart.rows[:_MAX_TOLD_ROWS], chart.top_T, strict=False)):
        seen = ""
        if top is not None:
            value = chart.values_TS[place, top]
            number = f"{value:+.2f}" if chart.signed else f"{value:.2f}"
            seen = f" {words[f'{chart.kind} seen']} {chart.columns[top]} ({number})"
        sure = f", {words['sure']} {percent(chart.probs_T[place])}" if chart.probs_T is not None else ""
        said.append(f"{row}{seen}{sure}.")
    if len(chart.rows) > _MAX_TOLD_ROWS:
        said.append(words["more"].format(count=len(chart.rows) - _MAX_TOLD_ROWS))
    said += [
        words["turned"].format(first=chart.rows[block.first_row], last=chart.rows[block.end_row - 1])
        for block in reversed_blocks(chart)
    ]
    return " ".join([*said, chart.note])
