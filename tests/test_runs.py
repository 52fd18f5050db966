"""Training runs read back from their folders, and `regard runs` as a user meets it."""

import json
import os
import time
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from run_folders import CONFIG, RESULT, log_of, update, validation, write_run

from regard.cli import run as regard
from regard.errors import RunError
from regard.training.history import find_runs, read_run


def clock(*pairs):
    return [{"step": step, "seconds": seconds, "tokens_per_second": 5000.0} for step, seconds in pairs]


def test_a_finished_run_is_read_whole(tmp_path):
    log = [
        *log_of(200),
        {"kind": "finding", "step": 90, "cause": "slow", "advice": "wait"},
        {"kind": "end", "step": 200, "reason": "patience"},
    ]
    run = read_run(write_run(tmp_path / "fr-en.run", log, clock((100, 30.0), (200, 60.0)), RESULT))
    assert run.name == "fr-en" and run.languages == ("fr", "en") and run.config == CONFIG
    assert run.updates.step.tolist() == list(range(1, 201)) and run.updates.loss[0] == update(1)["loss"]
    assert [one.step for one in run.validations] == [50, 100, 150, 200]
    assert run.best.step == 200 and run.best.bleu == 20.0
    assert run.findings[0].advice == "wait" and run.end_reason == "patience"
    assert run.finished and run.result.bleu == 21.5 and run.seconds == 60.0 and run.num_updates == 200


def test_a_run_that_has_not_begun_has_nothing(tmp_path):
    run = read_run(write_run(tmp_path / "new.run"))
    assert run.num_updates == 0 and run.seconds == 0 and run.best is None and not run.finished
    assert run.validations == () and run.end_reason is None


def test_the_best_validation_is_the_last_that_was_best(tmp_path):
    log = [validation(1, 10), validation(2, 30), validation(3, 40, best=False)]
    assert read_run(write_run(tmp_path / "a.run", log)).best.step == 2


@pytest.mark.parametrize("tail", ['{"kind":"upd', '{"kind":"update"}', "\x00\x00\x00", "é"[:1]])
def test_a_last_line_that_is_not_whole_is_left_out(tmp_path, tail):
    assert read_run(write_run(tmp_path / "a.run", log_of(10), tail=tail)).num_updates == 10


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"kind":"upd', "not JSON"),
        ("[1]", "not a JSON object"),
        ("{}", "'kind' is missing"),
        ('{"kind":"dance"}', "unknown kind 'dance'"),
        (json.dumps(update(4) | {"loss": "low"}), "must be real number"),
        (json.dumps(update(4) | {"step": 1.5}), ""),
        (json.dumps(update(10**30)), ""),
        (json.dumps(validation(4, "high")), "'high' is not a number"),
        ('{"kind":"end","step":3,"reason":7}', "7 is not a text"),
        ("[" * 100_000, ""),
        ("\x00", "not JSON"),
    ],
)
def test_damage_before_the_last_line_names_file_and_line(tmp_path, line, reason):
    tail = line + "\n" + json.dumps(update(4)) + "\n"
    folder = write_run(tmp_path / "a.run", log_of(3), tail=tail)
    with pytest.raises(RunError) as caught:
        read_run(folder)
    message = str(caught.value)
    assert message.startswith(f"{folder / 'log.jsonl'}: line 4 is damaged (") and reason in message
    assert "\n" not in message and len(message) < 500


def test_a_file_without_line_ends_is_not_read_into_memory(tmp_path):
    folder = write_run(tmp_path / "a.run", tail="x" * 3_000_000)
    with pytest.raises(RunError, match="line 1 is damaged"):
        read_run(folder)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"format": "regard-run/2"}', "regard-run/2"),
        ('{"format": "regard-run/1"}', "'out' is missing"),
        ('{"format": "regard-run/1", "out": 1}', "1 is not a text"),
    ],
)
def test_a_damaged_head_is_named(tmp_path, content, reason):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunError, match="is damaged") as caught:
        read_run(tmp_path)
    assert str(caught.value).startswith(str(tmp_path / "run.json")) and reason in str(caught.value)


def test_a_loss_that_is_no_number_is_nan(tmp_path):
    run = read_run(write_run(tmp_path / "a.run", [update(1, loss=None), update(2, loss=float("nan"))]))
    assert np.isnan(run.updates.loss).all()


def test_an_end_in_the_middle_is_not_the_end(tmp_path):
    log = [update(1), {"kind": "end", "step": 1, "reason": "asked to"}, update(2)]
    assert read_run(write_run(tmp_path / "a.run", log)).end_reason is None


def test_after_a_resume_the_later_time_counts(tmp_path):
    run = read_run(
        write_run(tmp_path / "a.run", log_of(40), clock((10, 10.0), (30, 30.0), (20, 40.0), (40, 60.0)))
    )
    assert run.times.step.tolist() == [10, 20, 40] and run.seconds == 60.0
    assert run.seconds_at([5, 15, 40]).tolist() == [5.0, 25.0, 60.0]


def test_runs_are_found_two_folders_deep_and_sorted_by_name(tmp_path):
    for name in ("b.run", "deep/a.run", "deep/er/c.run", ".hidden/d.run", "b.run/inner.run"):
        write_run(tmp_path / name)
    assert [path.name for path in find_runs(tmp_path)] == ["a.run", "b.run"]
    assert find_runs(tmp_path / "b.run") == [tmp_path / "b.run"]


def test_a_long_run_is_read_fast(tmp_path):
    folder = write_run(tmp_path / "a.run", log_of(100_000))
    started = time.process_time()
    assert read_run(folder).num_updates == 100_000
    assert time.process_time() - started < 3


@pytest.fixture
def two_runs(tmp_path):
    other = CONFIG | {"train": CONFIG["train"] | {"label_smoothing": 0.2}}
    log = [*log_of(200), {"kind": "finding", "step": 90, "cause": "blind", "advice": "train longer"}]
    write_run(tmp_path / "one.run", log, clock((200, 125.0)), RESULT, preset="regard-small")
    two = write_run(tmp_path / "two.run", log_of(120), clock((120, 80.0)), config=other)
    for step in (50, 100):  # the updates after the last one were lost with the process
        (two / f"step-{step:08}.{'0' * 32}.checkpoint").touch()
    return tmp_path


def test_runs_are_listed_and_compared(two_runs, capsys):
    assert regard(["runs", str(two_runs)]) == 0
    heads, one, two, finding, differ = capsys.readouterr().out.splitlines()
    assert heads.split()[:2] == ["run", "model"]
    assert one.split()[:6] == ["one", "regard-small", "3,210,000", "29,000", "200", "2"]
    assert (
        "20.0 at 200" in one
        and "21.5" in one
        and one.endswith("finished: validation has not improved for 8 times")
    )
    assert (
        two.split()[:2] == ["two", "recurrent"]
        and "10.0 at 100" in two
        and two.endswith("not finished, saved at 100")
    )
    assert finding == "one, update 90: blind; train longer"
    assert differ == "only these options differ: train.label_smoothing 0.1 | 0.2"


def test_options_that_only_some_runs_have_differ_too(two_runs, capsys):
    write_run(two_runs / "three.run", config=CONFIG | {"model": {"kind": "transformer", "num_heads": 4}})
    regard(["runs", str(two_runs)])
    out = capsys.readouterr().out
    assert "  model.kind recurrent | transformer | recurrent" in out and "  model.num_heads - | 4 | -" in out


def test_runs_with_the_same_options_say_so(tmp_path, capsys):
    for name in "ab":
        write_run(tmp_path / f"{name}.run")
    regard(["runs", str(tmp_path)])
    assert capsys.readouterr().out.splitlines()[-1] == "all options are the same"


def test_runs_of_one_name_are_told_apart_and_one_named_twice_is_listed_once(tmp_path, capsys):
    for place in ("x", "y"):
        write_run(tmp_path / place / "a.run")
    regard(["runs", str(tmp_path), str(tmp_path / "x" / "a.run")])
    out = capsys.readouterr().out
    assert str(tmp_path / "x" / "a.run") in out and str(tmp_path / "y" / "a.run") in out
    assert len(out.splitlines()) == 4


def test_the_current_folder_is_the_default(two_runs, capsys, monkeypatch):
    monkeypatch.chdir(two_runs)
    assert regard(["runs"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_json_holds_everything_and_no_nan(two_runs, capsys):
    write_run(two_runs / "broken.run", [update(1, loss=float("nan"))])
    assert regard(["runs", "--json", str(two_runs)]) == 0
    broken, one, two = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert broken["updates"]["loss"] == [None]
    assert one["finished"] and one["result"]["scores"]["chrf"] == 44.0 and len(one["updates"]["loss"]) == 200
    assert two["best"]["step"] == 100 and two["times"]["seconds"] == [80.0] and two["config"]["seed"] == 1


@pytest.mark.parametrize("by", ["updates", "time"])
def test_curves_are_drawn(two_runs, capsys, by):
    pytest.importorskip("matplotlib")
    svg, png = two_runs / "c.svg", two_runs / "c.png"
    assert regard(["runs", str(two_runs), "--svg", str(svg), "--png", str(png), "--by", by]) == 0
    assert f"drew {svg}" in capsys.readouterr().out
    label = "updates" if by == "updates" else "training minutes"
    assert label in [element.text for element in ET.parse(svg).iter()]
    assert png.read_bytes().startswith(b"\x89PNG")


def test_a_run_without_a_clock_has_no_curve_by_time(two_runs, capsys):
    write_run(two_runs / "old.run", log_of(10))
    assert regard(["runs", str(two_runs), "--svg", str(two_runs / "c.svg"), "--by", "time"]) == 2
    assert "old.run: has no times" in capsys.readouterr().err


def test_a_png_without_matplotlib_says_what_to_install(two_runs, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    assert regard(["runs", str(two_runs), "--png", str(two_runs / "c.png")]) == 2
    assert "pip install '.[plot]'" in capsys.readouterr().err
    assert not (two_runs / "c.png").exists()


def test_a_damaged_run_does_not_hide_the_others(two_runs, capsys):
    write_run(two_runs / "bad.run", tail="{\n")
    assert regard(["runs", str(two_runs)]) == 2
    out, err = capsys.readouterr()
    assert "one" in out and "two" in out and "bad" not in out
    assert err == f"regard: {two_runs / 'bad.run' / 'log.jsonl'}: line 1 is damaged (not JSON)\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["empty"], "empty: no training run found"), (["none"], "none: does not exist"), (["file"], "file: is not a folder"),
     (["one.run", "--svg", "a", "--png", "a"], "name two files"), (["one.run", "--svg", "file/c.svg"], "cannot be written")],
)  # fmt: skip
def test_a_mistake_is_one_line(two_runs, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(two_runs)
    (two_runs / "empty").mkdir()
    (two_runs / "file").write_text("")
    assert regard(["runs", *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="such names are not allowed there")
def test_names_cannot_steer_the_terminal(tmp_path, capsys):
    write_run(tmp_path / "a\x1b[31m\nb.run")
    regard(["runs", str(tmp_path)])
    out = capsys.readouterr().out
    assert "\x1b" not in out and len(out.splitlines()) == 2
