"""What a person watches while a model learns: a panel on a terminal, plain lines elsewhere, or TensorBoard.

Training calls a `Display` and never depends on one: a display that fails is closed, and training goes on.
"""

import contextlib
import importlib
import importlib.util
import io
import logging
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TextIO

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from regard.draw.heatmap import HeatMap
from regard.draw.labels import cut, display_width, duration, pad_right, perplexity, printable
from regard.draw.terminal import heat_map_lines, sparkline

_LINE_EVERY_SECONDS = 30.0
_REFRESH_EVERY_SECONDS = 0.25
_FRAME_ROWS, _FRAME_COLUMNS = 2, 4  # what the border of the panel takes
_MAX_WIDTH = 110  # a wider panel is harder to read
_LABEL_WIDTH = 12
_MIN_MAP_ROWS = 3  # fewer rows of a heat map show nothing
_MAX_REMEMBERED = 2048  # losses; a sparkline is not so wide

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Update:
    """Where training is after an update. Losses are in nats per target token."""

    step: int
    total_steps: int | None
    epoch: int
    loss: float
    nll: float
    rate: float
    tokens_per_second: float
    seconds: float
    seconds_left: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Validation:
    """How good the model is by now, and what it makes of one sentence. No attention: no columns."""

    step: int
    nll: float
    bleu: float
    best: bool
    shuffled_nll: float
    source: str
    translation: str
    reference: str
    attention_TS: NDArray[np.floating]
    source_pieces: Sequence[str]
    pieces: Sequence[str]


class Display(Protocol):
    """Is told what happens in a training, and shows it."""

    def note(self, text: str) -> None:
        """Show a text that stays: the plan, a finding, what was saved."""

    def update(self, update: Update) -> None:
        """Show where training is; called after every update."""

    def validation(self, validation: Validation) -> None:
        """Show how good the model is by now."""

    def close(self) -> None:
        """Leave the last state to be read and give the terminal back."""


def open_display(stream: TextIO | None = None) -> Display:
    """Return the display that suits the stream, which is standard error if none is given."""
    stream = sys.stderr if stream is None else stream
    console = LastingConsole(file=stream)
    utf8 = (getattr(stream, "encoding", None) or "").lower().replace("-", "") == "utf8"
    if console.is_terminal and not console.is_dumb_terminal and utf8:
        return several([PanelDisplay(console)])
    return several([LineDisplay(stream)])


def log_display() -> Display:
    """Return the display of the library: each line is logged to the logger `regard`."""
    return several([LineDisplay(_LogLines())])


class _LogLines(io.StringIO):
    """A stream whose lines are logged."""

    def write(self, text: str) -> int:
        for line in text.splitlines():
            if line:
                logging.getLogger("regard").info(line)
        return len(text)


def several(displays: Sequence[Display]) -> Display:
    """Return one display that shows on all of these; one that fails is closed, and the others go on."""
    return _Several(list(displays))


class _Several:
    def __init__(self, displays: list[Display]) -> None:
        self._open = displays

    def note(self, text: str) -> None:
        self._each(lambda display: display.note(text))

    def update(self, update: Update) -> None:
        self._each(lambda display: display.update(update))

    def validation(self, validation: Validation) -> None:
        self._each(lambda display: display.validation(validation))

    def close(self) -> None:
        self._each(lambda display: display.close())
        self._open = []

    def _each(self, show: Callable[[Display], None]) -> None:
        for display in list(self._open):
            try:
                show(display)
            except Exception as error:
                # Hours of training are worth more than their sight. That a terminal has gone is no news.
                self._open.remove(display)
                with contextlib.suppress(Exception):
                    display.close()
                if not isinstance(error, OSError):
                    _log.warning("a display failed and was closed; training goes on", exc_info=True)


class LineDisplay:
    """A line now and then, for files and pipes."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._last = -np.inf

    def note(self, text: str) -> None:
        """Print it."""
        for line in text.splitlines():
            self._print(printable(line))

    def update(self, update: Update) -> None:
        """Print a line if the last one is half a minute old."""
        if self._clock() - self._last < _LINE_EVERY_SECONDS:
            return
        self._last = self._clock()
        parts = [
            f"step {update.step:,}",
            f"epoch {update.epoch:,}",
            f"loss {update.loss:.2f}",
            f"perplexity {perplexity(update.nll)}",
            f"learning rate {update.rate:.2g}",
            f"{update.tokens_per_second:,.0f} tokens/s",
        ]
        if update.seconds_left is not None:
            parts.append(f"{duration(update.seconds_left)} left")
        self._print("  ".join(parts))

    def validation(self, validation: Validation) -> None:
        """Print a line."""
        best = " (best so far)" if validation.best else ""
        score = f"validation: BLEU {validation.bleu:.1f}{best}"
        self._print(f"step {validation.step:,}  {score}  perplexity {perplexity(validation.nll)}")

    def close(self) -> None:
        """Leave the stream as it is."""

    def _print(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


class LastingConsole(Console):
    """A console that raises when its reader has gone. That of rich would end the whole process."""

    def on_broken_pipe(self) -> None:
        """Leave the error to the caller."""
        raise BrokenPipeError


class PanelDisplay:
    """A panel that is drawn over and over, at most four times a second; notes scroll by above it.

    Drawn by the training itself and not by a thread: what fails, fails where it can be caught.
    """

    def __init__(self, console: LastingConsole, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._drawn = -np.inf
        self._update: Update | None = None
        self._losses: list[float] = []
        self._updates_a_loss = 1
        self._recent: list[float] = []
        self._validation: Validation | None = None
        self._bleus: list[float] = []
        self._best: tuple[int, float] | None = None
        # Standard output is left alone: it may be a file.
        self._live = Live(
            console=console, auto_refresh=False, redirect_stdout=False, get_renderable=self._panel
        )

    def note(self, text: str) -> None:
        """Print it above the panel."""
        for line in text.splitlines():
            self._console.print(Text(printable(line)))

    def update(self, update: Update) -> None:
        """Draw the panel anew if it is time to."""
        self._update = update
        self._remember(update.nll)
        if self._clock() - self._drawn >= _REFRESH_EVERY_SECONDS:
            self._draw()

    def validation(self, validation: Validation) -> None:
        """Draw the panel anew."""
        self._validation = validation
        self._bleus.append(validation.bleu)
        if validation.best:
            self._best = (validation.step, validation.bleu)
        self._draw()

    def close(self) -> None:
        """Leave the panel as it was last and show the cursor again."""
        if self._live.is_started:
            self._live.stop()

    def _draw(self) -> None:
        self._drawn = self._clock()
        if not self._live.is_started:
            self._live.start()
        self._live.refresh()

    def _remember(self, nll: float) -> None:
        """Keep the losses of the whole run in bounded room: means of more and more updates."""
        self._recent.append(nll)
        if len(self._recent) < self._updates_a_loss:
            return
        self._losses.append(float(np.mean(self._recent)))
        self._recent = []
        if len(self._losses) >= _MAX_REMEMBERED:
            self._losses = np.reshape(self._losses, (-1, 2)).mean(axis=1).tolist()
            self._updates_a_loss *= 2

    def _panel(self) -> Panel:
        width = min(self._console.width, _MAX_WIDTH)
        inside = max(1, width - _FRAME_COLUMNS)
        # One row stays free: a panel as high as the terminal makes it scroll at every turn.
        room = max(1, self._console.height - _FRAME_ROWS - 1)
        rows = [*self._update_rows(inside), *self._validation_rows(inside)]
        if self._validation is not None:
            rows += _probe_rows(self._validation, inside, room - len(rows))
        return Panel(Group(*rows[:room]), title="training", width=width)

    def _update_rows(self, width: int) -> list[Text | Table]:
        update = self._update
        if update is None:
            return []
        rows: list[Text | Table] = [_bar(update, width)]
        clock = f"{duration(update.seconds)} so far"
        if update.seconds_left is not None:
            clock += f", {duration(update.seconds_left)} left"
        rows.append(_row("time", f"{clock}   learning rate {update.rate:.2g}", width))
        now = f"{update.loss:.2f}   perplexity {perplexity(update.nll)}"
        rows.append(_row("loss", now, width, self._losses))
        return rows

    def _validation_rows(self, width: int) -> list[Text]:
        last = self._validation
        if last is None:
            return []
        bleu = f"BLEU {last.bleu:.1f}"
        if self._best is not None:
            step, best = self._best
            bleu += "   the best so far" if step == last.step else f"   best {best:.1f} at step {step:,}"
        # A model that uses the source is lost without it; one that only speaks the language is not.
        other = f"perplexity {perplexity(last.nll)}   given other sources {perplexity(last.shuffled_nll)}"
        return [_row("validation", bleu, width, self._bleus), _row("", other, width)]


def _bar(update: Update, width: int) -> Table | Text:
    of_all = f" of {update.total_steps:,}" if update.total_steps else ""
    speed = f"{update.tokens_per_second:,.0f} tokens/s"
    where = f"epoch {update.epoch:,}, step {update.step:,}{of_all}   {speed}"
    if not update.total_steps:
        return _row("", where, width)
    share = min(1.0, update.step / update.total_steps)
    left = width - display_width(where) - 6
    if left < 4:
        return Text(cut(f"{share:4.0%} {where}", width), no_wrap=True)
    grid = Table.grid(padding=(0, 1))
    grid.add_row(ProgressBar(total=1.0, completed=share, width=left), f"{share:4.0%}", Text(where))
    return grid


def _row(label: str, text: str, width: int, values: Sequence[float] = ()) -> Text:
    """Return `label  text  sparkline`, the last as long as there is room."""
    row = Text(pad_right(label, _LABEL_WIDTH), style="bold", no_wrap=True)
    room = width - _LABEL_WIDTH
    row.append(cut(text, room), style="not bold")
    # Beside each other, the sparklines of loss and BLEU begin in the same column.
    begin = max(40, display_width(text) + 3)
    if values and room - begin >= 8:
        row.append(
            " " * (begin - display_width(text)) + sparkline(values, room - begin), style="not bold cyan"
        )
    return row


def _probe_rows(validation: Validation, width: int, room: int) -> list[Text]:
    """Return the probe sentence, its translation, and as many rows of the attention as there is room for."""
    texts = (
        ("source", validation.source),
        ("reference", validation.reference),
        ("translation", validation.translation),
    )
    rows = [_row(label, printable(text), width) for label, text in texts]
    lines = _map_lines(validation, width, room - len(rows)) if np.size(validation.attention_TS) else []
    drawn = [Text(line, no_wrap=True) for line in lines]
    # Blank rows between the parts, if the rest leaves room for them.
    if room >= len(rows) + len(drawn) + 2:
        return [Text(), *rows, Text(), *drawn] if drawn else [Text(), *rows]
    return [*rows, *drawn]


def _map_lines(validation: Validation, width: int, room: int) -> list[str]:
    """Return as much of the attention as there is room for, or nothing if that would be little."""
    weights_TS = np.asarray(validation.attention_TS, dtype=float)
    # Few letters have room above a column. Which words they are of can be seen in the source, just above.
    columns = tuple(piece.removeprefix("▁") or piece for piece in validation.source_pieces)
    chart = HeatMap("", tuple(validation.pieces), columns, weights_TS)
    max_letters = max(3, room // 3)
    lines = heat_map_lines(chart, width, max_letters=max_letters)
    if len(lines) <= room:
        return lines
    if room < max_letters + _MIN_MAP_ROWS:
        return []
    return [*lines[: room - 1], f"… {len(lines) - room + 1} more lines"]


class ScalarWriter(Protocol):
    """What we use of TensorBoard."""

    def add_scalar(self, tag: str, data: float, step: int) -> None:
        """Write one number."""

    def close(self) -> None:
        """Write what is left."""


def tensorboard_writer(folder: Path) -> ScalarWriter | None:
    """Return a writer of TensorBoard's files, or none if the package is not installed.

    It is TensorBoard's own writer: that of torch is the same with torch around it.
    """
    if importlib.util.find_spec("tensorboard") is None:
        return None
    writer: ScalarWriter = importlib.import_module("tensorboard.summary").Writer(str(folder))
    return writer


class TensorBoardDisplay:
    """Every number of a training, for TensorBoard."""

    def __init__(self, writer: ScalarWriter) -> None:
        self._writer = writer

    def note(self, text: str) -> None:
        """Leave texts to other displays."""

    def update(self, update: Update) -> None:
        """Write the numbers of an update."""
        for name in ("loss", "nll", "rate", "tokens_per_second"):
            self._writer.add_scalar(f"training/{name}", getattr(update, name), update.step)

    def validation(self, validation: Validation) -> None:
        """Write the numbers of a validation."""
        for name in ("nll", "shuffled_nll", "bleu"):
            self._writer.add_scalar(f"validation/{name}", getattr(validation, name), validation.step)

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()
