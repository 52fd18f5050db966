"""What a person watches during training: that it fits, that it is safe, and that it never stops a training."""

import io
import logging
import re

import numpy as np
import pytest

from regard.training import display as module
from regard.training.display import (
    LastingConsole,
    LineDisplay,
    PanelDisplay,
    TensorBoardDisplay,
    Update,
    Validation,
    open_display,
    several,
    tensorboard_writer,
)


def update(step=1200, total_steps=12_000, seconds_left=750.0, **values):
    known = {
        "epoch": 10,
        "loss": 2.31,
        "nll": np.log(6.94),
        "rate": 0.0012,
        "tokens_per_second": 6120.3,
        "seconds": 90.0,
    }
    return Update(step=step, total_steps=total_steps, seconds_left=seconds_left, **(known | values))


def validation(step=1200, num_pieces=12, bleu=34.5, best=True, **values):
    known = {
        "nll": np.log(7.1),
        "shuffled_nll": 4.0,
        "source": "Un homme regarde.",
        "translation": "A man looks.",
        "reference": "A man is looking.",
        "attention_TS": np.eye(num_pieces),
        "source_pieces": [f"▁mot{n}" for n in range(num_pieces)],
        "pieces": [f"▁word{n}" for n in range(num_pieces)],
    }
    return Validation(step=step, bleu=bleu, best=best, **(known | values))


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def panel(width=80, height=24):
    console = LastingConsole(file=io.StringIO(), width=width, height=height, force_terminal=True, record=True)
    return PanelDisplay(console, Clock()), console


def last_frame(shown, console):
    """The rows of the panel as it stands when the display is closed."""
    console.export_text()
    shown._draw()
    shown.close()
    return console.export_text().split("╭")[-1].rstrip("\n").splitlines()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 60), (60, 18), (40, 12), (20, 8), (10, 4)])
@pytest.mark.parametrize("num_pieces", [3, 12, 70])
def test_the_panel_fits_the_terminal(width, height, num_pieces):
    shown, console = panel(width, height)
    for step in range(1, 50):
        shown.update(update(step))
    shown.validation(validation(num_pieces=num_pieces, source="mot " * 100, translation="字" * 100))
    rows = last_frame(shown, console)
    assert len(rows) < height
    assert all(len(row) <= width for row in rows[1:] if "字" not in row)


def test_the_panel_shows_what_matters_in_24_rows():
    shown, console = panel()
    shown.update(update())
    shown.validation(validation())
    text = "\n".join(last_frame(shown, console))
    for wanted in ("step 1,200 of 12,000", "10%", "1 min so far, 12 min left", "6,120 tokens/s", "learning rate 0.0012", "2.31",
                   "perplexity 6.9", "BLEU 34.5", "the best so far", "A man looks.", "▁word0 ██", "more lines", "  " + "m " * 12, "  " + "o " * 12, " 0 1 2 3 4 5 6 7 8 9 … …"):  # fmt: skip
        assert wanted in text


def test_the_panel_of_a_model_without_attention_has_no_map():
    shown, console = panel()
    shown.update(update(total_steps=None, seconds_left=None))
    shown.validation(validation(attention_TS=np.zeros((12, 0)), best=False))
    text = "\n".join(last_frame(shown, console))
    assert "A man looks." in text and "word0" not in text and "left" not in text


def test_the_panel_is_drawn_at_most_four_times_a_second():
    shown, _ = panel()
    clock = shown._clock
    drawn = []
    shown._draw = lambda: (drawn.append(clock.now), setattr(shown, "_drawn", clock.now))
    for step in range(1, 1001):
        clock.now += 0.01
        shown.update(update(step))
    assert 35 <= len(drawn) <= 41


def test_what_is_remembered_of_the_losses_is_bounded():
    shown, _ = panel()
    shown._draw = lambda: None
    for step in range(20_000):
        shown.update(update(step, nll=float(step)))
    assert len(shown._losses) < 2048
    assert np.all(np.diff(shown._losses) > 0)


def test_notes_stay_above_the_panel_and_cannot_steer_the_terminal():
    shown, console = panel()
    shown.update(update())
    shown.note("finding: [bold]\x1b[2J the model does not look")
    shown.update(update(1300))
    shown.close()
    text = console.export_text()
    assert "finding: [bold]␛[2J the model does not look" in text
    assert "\x1b[2J" not in console.file.getvalue()


def test_hostile_sentences_cannot_steer_the_terminal():
    shown, console = panel()
    shown.validation(
        validation(
            1,
            1,
            source="\x1b]0;title\x07",
            translation="\r\n\x9b31m",
            pieces=["\x1b[8m"],
            source_pieces=["\x1bc"],
        )
    )
    shown.close()
    written = console.file.getvalue()
    assert (
        "\x07" not in written
        and "\x9b" not in written
        and "\x1bc" not in written
        and "\x1b[8m" not in written
    )


def test_lines_are_printed_now_and_then():
    stream, clock = io.StringIO(), Clock()
    shown = LineDisplay(stream, clock)
    shown.note("29,000 pairs\n1,014 to validate on")
    for step in range(1, 101):
        clock.now += 1
        shown.update(update(step))
    shown.validation(validation())
    shown.validation(validation(bleu=30.0, best=False))
    shown.close()
    assert stream.getvalue().splitlines() == [
        "29,000 pairs",
        "1,014 to validate on",
        *(
            f"step {step}  epoch 10  loss 2.31  perplexity 6.9  learning rate 0.0012  6,120 tokens/s  12 min left"
            for step in (1, 31, 61, 91)
        ),
        "step 1,200  validation: BLEU 34.5 (best so far)  perplexity 7.1",
        "step 1,200  validation: BLEU 30.0  perplexity 7.1",
    ]


def test_a_pipe_gets_lines_and_a_terminal_a_panel(monkeypatch):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")

    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self):
            return True

    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        shown = open_display(stream)
        shown.update(update())
        shown.close()
    assert "╭" in terminal.getvalue()
    assert pipe.getvalue().startswith("step 1,200  epoch 10")
    monkeypatch.setenv("TERM", "dumb")
    dumb = Terminal()
    open_display(dumb).note("hello")
    assert dumb.getvalue() == "hello\n"


class Broken(io.StringIO):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, text):
        raise self.error


@pytest.mark.parametrize(
    "error", [BrokenPipeError(), OSError(5, "gone"), ValueError("I/O operation on closed file")]
)
def test_a_display_that_fails_never_stops_a_training(error, caplog):
    good = io.StringIO()
    with caplog.at_level(logging.WARNING):
        for make in (
            LineDisplay,
            lambda stream: PanelDisplay(LastingConsole(file=stream, force_terminal=True)),
        ):
            shown = several([make(Broken(error)), LineDisplay(good)])
            shown.note("plan")
            shown.update(update())
            shown.validation(validation())
            shown.close()
    assert good.getvalue().count("plan") == 2 and good.getvalue().count("BLEU") == 2
    assert bool(caplog.records) == isinstance(
        error, ValueError
    )  # a fault of ours is logged, a lost terminal not


def test_a_closed_display_shows_nothing_more():
    stream = io.StringIO()
    shown = several([LineDisplay(stream)])
    shown.close()
    shown.note("late")
    shown.close()
    assert stream.getvalue() == ""


def test_numbers_go_to_tensorboard():
    class Writer:
        def __init__(self):
            self.written = {}

        def add_scalar(self, tag, data, step):
            self.written[tag, step] = data

        def close(self):
            self.written["closed", 0] = 1.0

    writer = Writer()
    shown = TensorBoardDisplay(writer)
    shown.note("not a number")
    shown.update(update(loss=2.0))
    shown.validation(validation(bleu=30.0))
    shown.close()
    assert writer.written["training/loss", 1200] == 2.0 and writer.written["validation/bleu", 1200] == 30.0
    assert ("closed", 0) in writer.written


def test_tensorboard_is_used_only_if_it_is_there(monkeypatch, tmp_path):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    assert tensorboard_writer(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_tensorboard_files_are_written(tmp_path):
    pytest.importorskip("tensorboard")
    shown = TensorBoardDisplay(tensorboard_writer(tmp_path))
    shown.update(update())
    shown.close()
    assert any(re.match("events", path.name) for path in tmp_path.iterdir())
