"""`regard demo` with small untrained models: every part is shown, a model learns, and nothing is overwritten."""

import errno
import re
import signal
import sys
from pathlib import Path

import pytest
from test_starter import call, package  # noqa: F401 - fixtures

import regard.cli
from regard.cli import demo


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_part_is_shown_a_page_written_and_the_model_learns(package, call):  # noqa: F811
    pytest.importorskip("torch")
    code, out, err = call("demo")
    assert code == 0, err
    heads = [line for line in out.splitlines() if line[:3] in ("1. ", "2. ", "3. ")]
    assert len(heads) == 3
    for text in demo.SENTENCES:
        assert text.split()[0] in out and text.split()[-1] in out
    num_right = int(re.search(r"It translates (\d+) of 200 new sentences word for word \(BLEU", out)[1])
    aer = float(re.search(r"alignment error rate is (0\.\d+), against", out)[1])
    assert num_right >= 160 and aer <= 0.25 and "its attention has become the alignment." in out
    for part in ("Without attention", "With attention"):  # a short sentence and the long one
        lines = out.split(part)[1].split("\n\n")[0].splitlines()
        assert sum(line.lstrip().startswith("→") for line in lines) == 2
    page = Path("regard-demo.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>") and "je suis" in page
    assert [path.name for path in Path().iterdir()] == ["regard-demo.html"]


@pytest.fixture
def no_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # to import it fails


def test_without_torch_all_but_the_training_is_shown(package, call, no_torch):  # noqa: F811
    Path("regard-demo.html").write_text("mine")
    code, out, _ = call("demo")
    assert code == 0 and "3. " not in out and "pip install '.[train]'" in out
    page = Path("regard-demo-2.html").read_text("utf-8")
    assert all(text.split()[1] in page for text in demo.SENTENCES)
    assert Path("regard-demo.html").read_text() == "mine"
    assert Path("regard-demo-2.html").exists() and "Open regard-demo-2.html" in out


def test_a_page_is_written_where_it_is_wanted(package, call, no_torch):  # noqa: F811
    assert call("demo", "--out", "look.html")[0] == 0 and Path("look.html").exists()


def test_a_place_that_cannot_be_written_is_told_at_once(package, call):  # noqa: F811
    Path("taken").write_text("a file")
    code, out, err = call("demo", "--out", "taken/look.html")
    assert (code, out) == (2, "") and "taken" in err


def test_a_reader_that_has_gone_is_not_the_fault_of_the_page(package, call, monkeypatch):  # noqa: F811
    def gone(*_):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(demo, "_print", gone)
    monkeypatch.setattr(regard.cli, "_give_up_output", lambda: None)
    code, _, err = call("demo")
    assert (code, err) == (141, "") and not list(Path().iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stop_is_no_fault_and_promises_nothing(package, call, monkeypatch, number, code):  # noqa: F811
    pytest.importorskip("torch")
    import regard.training.run
    from regard.training.stopping import Stopped

    def stopped(*_):
        raise Stopped(number, "stopped")

    monkeypatch.setattr(regard.training.run, "train", stopped)
    try:
        found = call("demo")[0]
    except SystemExit as left:
        found = left.code
    assert found == code and not list(Path().iterdir())


def test_an_installation_without_the_models_says_what_is_missing(package, call):  # noqa: F811
    (package / "fr-en-rnn.regard").unlink()
    code, out, err = call("demo")
    assert (code, out) == (2, "") and "fr-en-rnn" in err and err.count("\n") == 1


def test_what_is_learnt_and_what_is_tested_have_no_sentence_in_common():
    learnt, test = demo.lesson()
    assert len(learnt) > 4000 and len(test) == 200
    words = {word for pair in (*learnt, *test) for word in pair.source.lower().split()}
    assert len(words) <= 500
    assert not {pair.source for pair in learnt} & {pair.source for pair in test}
