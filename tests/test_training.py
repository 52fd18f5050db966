"""One training from the outside: what it leaves behind, and that no interruption shows in it."""

import contextlib
import hashlib
import json
import os
import pty
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch")

import regard  # noqa: E402
from regard.errors import (  # noqa: E402
    CheckpointError,
    ConfigError,
    CorpusError,
    OutputError,
    RegardError,
    TrainingError,
    UnequalError,
)
from regard.importing.run import read_model  # noqa: E402
from regard.modelfile import load_model, save_model  # noqa: E402
from regard.options.text import SubwordOptions  # noqa: E402
from regard.options.training import AverageOptions, OptimiserOptions, ScheduleOptions  # noqa: E402
from regard.text.known import KnownWords  # noqa: E402
from regard.training.checkpoint import newest_checkpoint  # noqa: E402
from regard.training.request import CorpusFiles, TrainRequest  # noqa: E402
from regard.training.run import train  # noqa: E402

TINY = {
    "hidden_size": 8,
    "feed_forward_size": 16,
    "num_heads": 2,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
}
RECURRENT = {"kind": "recurrent", "hidden_size": 8, "embedding_size": 8}
FAMILIES = {
    "transformer": ("regard-small", TINY),
    "bahdanau": ("regard-rnn", RECURRENT),
    "luong": ("luong2015", {"hidden_size": 8, "embedding_size": 8, "num_layers": 2}),
    "sutskever": ("sutskever2014", {"hidden_size": 8, "embedding_size": 8}),
}


class Quiet:
    """A display that shows nothing, remembers notes, and can end the process's work at an update."""

    def __init__(self, end_at=None):
        self.notes, self.validations, self.end_at = [], [], end_at

    def note(self, text):
        self.notes.append(text)

    def update(self, progress):
        if progress.step == self.end_at:
            raise KeyboardInterrupt

    def validation(self, validation):
        self.validations.append(validation)

    def close(self):
        pass


@contextlib.contextmanager
def no_stages():
    yield lambda stage, done, total: None


def request_for(corpus, out, family="transformer", steps=12, **train_options):
    preset, model = FAMILIES[family]
    options = {
        "tokenizer": {"kind": "unigram", "vocab_size": 420},
        "batch": {"batch_tokens": 400},
        "model": model,
        "train": {"steps": steps, "valid_steps": 4, **train_options},
    }
    return TrainRequest((CorpusFiles(corpus),), out, preset=preset, options=options)


def run(request, **quiet):
    display = Quiet(**quiet)
    return train(request, display, no_stages), display


def end_of(request):
    """Everything the end of a run is: weights, optimiser and averages, the log."""
    checkpoint, damaged = newest_checkpoint(request.folder)
    assert checkpoint is not None and not damaged
    return checkpoint.tensors, (request.folder / "log.jsonl").read_bytes()


def assert_same_end(one, other):
    tensors, log = end_of(one)
    other_tensors, other_log = end_of(other)
    assert tensors.keys() == other_tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(tensor, other_tensors[name]), name
    assert log == other_log
    model, other_model = load_model(one.out), load_model(other.out)
    assert all(np.array_equal(array, other_model.weights[name]) for name, array in model.weights.items())
    assert model.card["validation"] == other_model.card["validation"]


def kinds_of(union):
    from typing import get_args

    for cls in get_args(get_args(union)[0]):
        yield from get_args(cls.model_fields["kind"].annotation)


def test_one_call_leaves_a_model_that_translates_as_well_as_it_says(corpus, tmp_path):
    request = request_for(corpus, tmp_path / "m.regard")
    trained, display = run(request)
    translator = regard.load(request.out)
    data = json.loads((request.folder / "data" / "data.json").read_text())
    sources = [source for source, _ in data["validation"]]
    texts = [one.text for one in translator.translate(sources)]
    from regard.evaluation.scores import score

    again = score(texts, [target for _, target in data["validation"]], sources=sources, target_language="en")
    assert again.bleu == trained.scores.bleu
    result = json.loads((request.folder / "result.json").read_text())
    assert result["scores"]["bleu"] == trained.scores.bleu and result["step"] == 12
    assert len(display.validations) == 3
    assert any("pairs to train on" in note for note in display.notes)


@pytest.mark.parametrize(
    "family",
    [
        "transformer",
        *(pytest.param(name, marks=pytest.mark.slow) for name in FAMILIES if name != "transformer"),
    ],
)
def test_a_resumed_run_is_the_run_never_stopped(corpus, tmp_path, family):
    whole, broken = (request_for(corpus, tmp_path / name, family) for name in ("a.regard", "b.regard"))
    run(whole)
    for stop in (3, 7, 11):
        with pytest.raises(KeyboardInterrupt):
            run(broken, end_at=stop)
    run(broken)
    assert_same_end(whole, broken)


CHOICES = (
    [{"optimiser": {"kind": kind, "rate": 0.01}} for kind in kinds_of(OptimiserOptions)]
    + [{"schedule": kind} for kind in kinds_of(ScheduleOptions)]
    + [{"average": kind} for kind in kinds_of(AverageOptions)]
    + [
        {"accumulate": 3},
        {"r_drop": 1.0},
        {"subword_sampling": 0.5},
        {"guidance": 0.1},
        {"clip_norm": None},
        {"clip_norm": 0.01},
    ]
    + [{"label_smoothing": 0.0}, {"precision": "float32"}]
)


@pytest.mark.slow
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_every_choice_trains_and_resumes(corpus, tmp_path, choice):
    whole, broken = (
        request_for(corpus, tmp_path / name, steps=8, **choice) for name in ("a.regard", "b.regard")
    )
    run(whole)
    with pytest.raises(KeyboardInterrupt):
        run(broken, end_at=6)
    run(broken)
    assert_same_end(whole, broken)


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(corpus, tmp_path):
    whole, broken = (request_for(corpus, tmp_path / name) for name in ("a.regard", "b.regard"))
    run(whole)
    with pytest.raises(KeyboardInterrupt):
        run(broken, end_at=11)
    newest = max(broken.folder.glob("*.checkpoint"))
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    _, display = run(broken)
    assert any(newest.name in note and "damaged" in note for note in display.notes)
    newest.unlink(missing_ok=True)
    assert_same_end(whole, broken)


def test_a_finished_run_is_not_trained_again(corpus, tmp_path):
    request = request_for(corpus, tmp_path / "m.regard")
    first, _ = run(request)
    written = request.out.read_bytes()
    again, _ = run(request, end_at=1)
    assert again.scores == first.scores and request.out.read_bytes() == written


def test_more_updates_go_on_where_the_run_ended(corpus, tmp_path):
    out = tmp_path / "m.regard"
    run(request_for(corpus, out, steps=8))
    longer, display = run(request_for(corpus, out, steps=16))
    assert longer.num_updates == 16 and any("from update 8" in note for note in display.notes)


def test_other_settings_in_the_same_place_are_refused(corpus, tmp_path):
    out = tmp_path / "m.regard"
    run(request_for(corpus, out))
    with pytest.raises(ConfigError, match=r"other settings \(train.label_smoothing\)"):
        run(request_for(corpus, out, label_smoothing=0.3))


@pytest.fixture(scope="module")
def trained_model(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("start") / "first.regard"
    run(request_for(corpus, out, steps=60, guidance=0.1))
    return out


def test_training_begins_with_the_weights_and_the_vocabulary_of_a_model(corpus, tmp_path, trained_model):
    first = load_model(trained_model)
    request = replace(
        request_for(corpus, tmp_path / "m.regard"),
        start=trained_model,
        preset=None,
        options={"train": {"steps": 1, "optimiser": {"rate": 1e-9}}},
    )
    _, display = run(request)
    model = load_model(request.out)
    assert model.tokenizers.source.to_bytes() == first.tokenizers.source.to_bytes()
    assert model.options == first.options
    assert model.config["train"]["guidance"] == 0 and model.reading == first.reading
    for name, array in first.weights.items():
        np.testing.assert_allclose(model.weights[name], array, atol=1e-6)
    assert model.card["start"]["card"] == first.card
    assert any("starts from" in note for note in display.notes)
    assert not any("very small" in note for note in display.notes)
    assert model.card["start"]["sha256"] == hashlib.sha256(trained_model.read_bytes()).hexdigest()
    so_far = load_model(request.folder / "best.regard").card
    assert so_far["start"] == model.card["start"] and so_far["training"]["step"] == 1
    shown = {
        word for line in corpus[1].read_text("utf-8").splitlines()[:50] for word in line.strip(".?!").split()
    }
    for one in (first, model):
        assert one.known_words is not None and "monserrate" not in one.known_words
        known = [word for word in shown if word.isalpha()]
        assert known and sum(word in one.known_words for word in known) > 0.9 * len(known)


def test_a_model_that_goes_on_still_knows_the_words_of_its_first_corpus(corpus, tmp_path, trained_model):
    first = tmp_path / "first.regard"
    save_model(first, replace(load_model(trained_model), known_words=KnownWords.of(["Monserrate"])))
    request = replace(
        request_for(corpus, tmp_path / "m.regard"), start=first, preset=None, options={"train": {"steps": 1}}
    )
    run(request)
    known = load_model(request.out).known_words
    assert known is not None and "Monserrate" in known and "Monserrat" not in known


def test_a_run_that_began_with_a_model_resumes_and_is_gentler(corpus, tmp_path, trained_model):
    def request(name):
        plain = request_for(corpus, tmp_path / name)
        return replace(plain, start=trained_model, preset=None, options={"train": {"steps": 8}})

    whole, broken = request("a.regard"), request("b.regard")
    run(whole)
    for stop in (1, 6):
        with pytest.raises(KeyboardInterrupt):
            run(broken, end_at=stop)
    run(broken)
    assert_same_end(whole, broken)
    rates = [load_model(path).config["train"]["optimiser"]["rate"] for path in (trained_model, whole.out)]
    assert rates[1] == rates[0] / 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"preset": "regard-small"}, "remove --preset regard-small, or --from"),
        ({"options": {"model": {"hidden_size": 16}}}, "first.regard: model.hidden_size is 8 in this model"),
        ({"options": {"tokenizer": {"vocab_size": 500}}}, "tokenizer.vocab_size is"),
        ({"source_language": "de"}, r"translates fr to en and --source and --target say de to \?; leave"),
    ],
)
def test_options_that_fix_weight_shapes_cannot_be_changed(corpus, tmp_path, trained_model, changes, message):
    plain = replace(request_for(corpus, tmp_path / "m.regard"), preset=None, options={}, start=trained_model)
    with pytest.raises(RegardError, match=message):
        run(replace(plain, **changes))
    assert not list(tmp_path.iterdir())


def test_how_a_model_learns_may_change_with_its_weights(corpus, tmp_path, trained_model):
    plain = replace(request_for(corpus, tmp_path / "m.regard"), preset=None, start=trained_model)
    run(replace(plain, options={"train": {"steps": 1}, "model": {"dropout": 0.3}}))
    assert load_model(plain.out).options.dropout == 0.3


def test_the_model_a_run_began_with_may_be_gone_at_its_end(corpus, tmp_path, trained_model):
    start = tmp_path / "start.regard"
    start.write_bytes(trained_model.read_bytes())
    plain = replace(request_for(corpus, tmp_path / "m.regard"), preset=None, start=start)
    display = Quiet()
    display.update = lambda progress: start.unlink(missing_ok=True)
    trained = train(replace(plain, options={"train": {"steps": 3}}), display, no_stages)
    assert trained.num_updates == 3 and not start.exists()


def test_an_imported_model_is_trained_on(corpus, tmp_path):
    imported = tmp_path / "opus.regard"
    folder = Path(__file__).parent / "golden" / "marian"
    save_model(imported, replace(read_model(folder), source_language="fr", target_language="en"))
    request = replace(
        request_for(corpus, tmp_path / "m.regard"),
        preset=None,
        start=imported,
        options={"train": {"steps": 2}},
    )
    run(request)
    first, model = load_model(imported), load_model(request.out)
    assert model.options == first.options and model.card["start"]["card"] == first.card
    assert model.tokenizers.sha256 == first.tokenizers.sha256
    assert any(not np.array_equal(array, model.weights[name]) for name, array in first.weights.items())


def test_a_model_that_does_not_say_how_it_was_trained_is_refused(corpus, tmp_path, trained_model):
    bare = tmp_path / "bare.regard"
    save_model(bare, replace(load_model(trained_model), config={}))
    with pytest.raises(ConfigError, match=r"bare\.regard: it does not say how it was trained"):
        run(replace(request_for(corpus, tmp_path / "m.regard"), preset=None, start=bare))


@pytest.mark.slow
def test_the_command_begins_with_a_model_of_the_package(corpus, tmp_path):
    french, english = corpus
    code, said = call(
        french, english, "--from", "fr-en", "--out", "m.regard", "--steps", "1", folder=tmp_path
    )
    assert code == 0 and "starts from the weights" in said, said
    assert load_model(tmp_path / "m.regard").card["start"]["card"]["name"] == "fr-en"


def test_a_model_is_not_trained_on_its_languages_the_other_way_round(corpus, tmp_path, trained_model):
    french, english = corpus
    back = replace(request_for((english, french), tmp_path / "m.regard"), preset=None, start=trained_model)
    with pytest.raises(CorpusError, match="swap the files"):
        run(back)


def test_two_trainings_in_one_folder_are_refused(corpus, tmp_path):
    request = request_for(corpus, tmp_path / "m.regard")
    refused = []

    class Second(Quiet):
        def update(self, progress):
            with pytest.raises(OutputError, match="another training is running"):
                run(request)
            refused.append(progress.step)

    train(request, Second(), no_stages)
    assert len(refused) == 12


def test_somebody_elses_file_is_not_overwritten(corpus, tmp_path):
    out = tmp_path / "m.regard"
    out.write_text("mine")
    with pytest.raises(OutputError, match="exists already"):
        run(request_for(corpus, out))
    assert out.read_text() == "mine" and list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(
    ("lines", "error", "message"),
    [
        ((10, 10), CorpusError, "10 are too few"),
        ((300, 299), UnequalError, "300 lines and .* 299"),
    ],
)
def test_a_corpus_that_cannot_be_learnt_leaves_nothing_behind(corpus, tmp_path, lines, error, message):
    paths = []
    for path, count in zip(corpus, lines, strict=True):
        paths.append(tmp_path / path.name)
        paths[-1].write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[:count]), "utf-8")
    with pytest.raises(error, match=message):
        run(request_for(tuple(paths), tmp_path / "m.regard"))
    assert sorted(tmp_path.iterdir()) == sorted(paths)


def test_an_absurd_option_is_named_before_the_corpus_is_read(corpus, tmp_path):
    with pytest.raises(ConfigError, match=r"train.label_smoothing = 3"):
        run(request_for(corpus, tmp_path / "m.regard", label_smoothing=3))
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_named(corpus, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file"):
        run(request_for(corpus, tmp_path / "file" / "m.regard"))


def test_a_loss_that_is_not_a_number_is_named_with_its_lines_and_never_kept(corpus, tmp_path):
    request = request_for(corpus, tmp_path / "m.regard", steps=100, clip_norm=None,
                          optimiser={"kind": "sgd", "rate": 100.0})  # fmt: skip
    with pytest.raises(TrainingError, match=r"update \d+ \(lines .*\d.*\).*rate=25|diverges"):
        run(request)
    assert not request.out.exists()
    for checkpoint in request.folder.glob("*.checkpoint"):
        assert checkpoint
        tensors = newest_checkpoint(request.folder)[0].tensors
        assert all(torch.isfinite(tensor).all() for tensor in tensors.values())


def test_without_improvement_the_descent_begins_and_ends_the_run(corpus, tmp_path):
    request = request_for(corpus, tmp_path / "m.regard", steps=None, valid_steps=2, patience=2,
                          optimiser={"kind": "adam", "rate": 1e-9}, average="none",
                          schedule={"warmup_steps": 0})  # fmt: skip
    trained, _ = run(request)
    assert "has not improved for 2 times" in trained.reason
    log = [json.loads(line) for line in (request.folder / "log.jsonl").read_text().splitlines()]
    rates = [line["rate"] for line in log if line["kind"] == "update"]
    assert rates[-1] < rates[-2]


def test_a_time_budget_is_kept(corpus, tmp_path):
    request = request_for(corpus, tmp_path / "m.regard", steps=None, valid_steps=50, seconds=8.0)
    started = time.monotonic()
    trained, _ = run(request)
    assert trained.reason == "the time is up" and 5 < time.monotonic() - started < 40


def test_a_training_judges_itself_and_keeps_the_verdict(corpus, tmp_path):
    request = request_for(corpus, tmp_path / "m.regard")
    trained, _ = run(request)
    assert trained.verdict.level == "not usable yet" and "12 updates" in trained.verdict.why
    assert "--also" in trained.verdict.next  # not --from: the design was chosen
    assert load_model(request.out).card["verdict"] == asdict(trained.verdict)
    again, _ = run(request)  # finished: read from the run folder
    assert again.verdict == trained.verdict


def test_too_few_updates_are_told_after_a_hundred(corpus, tmp_path):
    request = request_for(corpus, tmp_path / "m.regard", steps=104, valid_steps=200)
    _, display = run(request)
    (told,) = [note for note in display.notes if "probably too few updates" in note]
    assert "the run makes 104" in told and "--steps 2000" in told
    log = (request.folder / "log.jsonl").read_text()
    assert '"kind": "finding", "step": 100' in log


@contextlib.contextmanager
def slow_stages():
    time.sleep(2)
    yield lambda stage, done, total: None


def test_the_rate_warms_up_however_long_preparation_took(corpus, tmp_path):
    request = request_for(corpus, tmp_path / "m.regard", steps=None, valid_steps=50, seconds=6.0)
    train(request, Quiet(), slow_stages)
    log = [json.loads(line) for line in (request.folder / "log.jsonl").read_text().splitlines()]
    rates = [line["rate"] for line in log if line["kind"] == "update"]
    schedule = json.loads((request.folder / "run.json").read_text())["config"]["train"]
    assert rates[0] == schedule["optimiser"]["rate"] / schedule["schedule"]["warmup_steps"]
    assert rates[-1] < max(rates) and rates.index(max(rates)) > 1  # up, then down
    facts = newest_checkpoint(request.folder)[0].facts
    assert 2 < facts["prepared_seconds"] < facts["seconds"]


def command_for(request, *more):
    sets = [
        f"--set={section}.{key}={json.dumps(value) if not isinstance(value, str) else value}"
        for section, values in request.options.items()
        for key, value in values.items()
    ]
    files = [str(path) for path in request.corpora[0].paths]
    return [
        "-m",
        "regard",
        "train",
        *files,
        "--out",
        str(request.out),
        "--preset",
        request.preset,
        *sets,
        *more,
    ]


def start(request, *more):
    return subprocess.Popen(
        [sys.executable, *command_for(request, *more)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def wait_for_update(request, step):
    """Return once the log holds this update."""
    log = request.folder / "log.jsonl"
    for _ in range(6000):
        if log.exists() and f'"step": {step},' in log.read_text():
            return
        time.sleep(0.01)
    raise AssertionError(f"no update {step}")


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_kill_nine_at_any_moment_does_not_show(corpus, tmp_path, family):
    whole, killed = (
        request_for(corpus, tmp_path / name, family, steps=40) for name in ("a.regard", "b.regard")
    )
    run(whole)
    rng = random.Random(family)
    for step in (1, 9, 22):
        process = start(killed)
        wait_for_update(killed, step)
        time.sleep(rng.random() * 0.2)
        process.kill()
        process.communicate()
    process = start(killed)
    assert process.communicate() and process.returncode == 0
    assert_same_end(whole, killed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_a_signal_saves_once_and_the_next_run_goes_on(corpus, tmp_path, number, code):
    whole, stopped = (
        request_for(corpus, tmp_path / name, steps=60, valid_steps=30) for name in ("a.regard", "b.regard")
    )
    run(whole)
    process = start(stopped)
    wait_for_update(stopped, 3)
    process.send_signal(number)
    _, errors = process.communicate()
    assert process.returncode == code and "the same command goes on" in errors
    assert len(list(stopped.folder.glob("*.checkpoint"))) == 1 and not stopped.out.exists()
    run(stopped)
    assert_same_end(whole, stopped)


def handles_term(process):
    """Tell whether the command has begun; on a busy machine the interpreter alone takes more than a second."""
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        return True
    caught = int(status.read_text().partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


@pytest.mark.slow
def test_a_signal_in_the_first_seconds_is_kept_and_told_as_what_it_is(corpus, tmp_path):
    """Whatever is being imported or prepared: no missing extra, no traceback, and nothing is lost."""
    for number, seconds in enumerate((0.6, 1.2, 2.0, 3.0)):
        request = request_for(corpus, tmp_path / f"{number}.regard", steps=100_000)
        process = start(request)
        begin = time.monotonic()
        while not handles_term(process) or time.monotonic() < begin + seconds:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 143, errors
        assert "stopped" in errors and "needs the extra" not in errors and "Traceback" not in errors, errors


@pytest.mark.slow
def test_a_closed_terminal_saves(corpus, tmp_path):
    request = request_for(corpus, tmp_path / "m.regard", steps=100_000, valid_steps=50_000)
    process, terminal = pty.fork()
    if not process:
        os.execv(sys.executable, [sys.executable, *command_for(request)])
    drain = threading.Thread(target=drained, args=(terminal,), daemon=True)
    drain.start()
    wait_for_update(request, 3)
    os.kill(process, signal.SIGSTOP)  # so that the terminal is gone when the program goes on
    os.close(terminal)
    os.kill(process, signal.SIGCONT)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 129
    checkpoint, _ = newest_checkpoint(request.folder)
    assert checkpoint.step >= 3


def drained(terminal):
    with contextlib.suppress(OSError):
        while os.read(terminal, 4096):
            pass


def rewritten(path, change):
    """The checkpoint with other facts, under its new hash."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    said = json.loads(header["__metadata__"]["regard"])
    change(said)
    header["__metadata__"]["regard"] = json.dumps(said)
    head = json.dumps(header).encode()
    data = len(head).to_bytes(8, "little") + head + data[8 + length :]
    path.unlink()
    name = f"{path.name.split('.')[0]}.{hashlib.sha256(data).hexdigest()[:32]}.checkpoint"
    path.with_name(name).write_bytes(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda said: said["facts"].pop("epoch_step"), "'epoch_step' is missing"),
        (lambda said: said["facts"].pop("history"), "'history' is missing"),
        (lambda said: said["facts"].update(momentum=1), "'momentum' is unknown"),
        (lambda said: said["facts"].update(epoch="2"), "'epoch' is '2'"),
        (lambda said: said["facts"]["history"][0].pop("bleu"), "'bleu' is missing"),
        (lambda said: said.update(facts=[]), "is of another version"),
        (lambda said: said.update(format="regard-checkpoint/2"), "has format 'regard-checkpoint/2'"),
        (lambda said: said.pop("format"), "is no checkpoint of a training"),
    ],
)
def test_a_checkpoint_of_another_version_is_named_and_kept(corpus, tmp_path, stopped_run, change, message):
    request = replace(stopped_run, out=tmp_path / stopped_run.out.name)
    shutil.copytree(stopped_run.folder, request.folder)
    newest = max(request.folder.glob("*.checkpoint"))
    rewritten(newest, change)
    before = sorted(request.folder.glob("*.checkpoint"))
    with pytest.raises(CheckpointError, match="go on with the version of regard that wrote it") as raised:
        run(request)
    assert message in str(raised.value) and "remove" not in str(raised.value)
    assert sorted(request.folder.glob("*.checkpoint")) == before


@pytest.fixture(scope="module")
def stopped_run(corpus, tmp_path_factory):
    request = request_for(corpus, tmp_path_factory.mktemp("stopped") / "m.regard")
    with pytest.raises(KeyboardInterrupt):
        run(request, end_at=9)
    return request


def test_a_run_folder_of_a_newer_version_is_named_and_kept(tmp_path, stopped_run):
    request = replace(stopped_run, out=tmp_path / stopped_run.out.name)
    shutil.copytree(stopped_run.folder, request.folder)
    about = json.loads((request.folder / "run.json").read_text())
    (request.folder / "run.json").write_text(json.dumps(about | {"format": "regard-run/2"}))
    with pytest.raises(CheckpointError, match="'regard-run/2', not 'regard-run/1'; go on with the version"):
        run(request)


def test_two_models_do_not_share_a_run_folder(stopped_run):
    with pytest.raises(OutputError, match=r"is the run folder of m\.regard; choose another --out"):
        run(replace(stopped_run, out=stopped_run.out.with_suffix(".other")))


@pytest.mark.slow
def test_a_full_disk_is_told_and_the_last_checkpoint_stays(corpus, tmp_path):
    request = request_for(corpus, tmp_path / "m.regard", steps=8)
    with pytest.raises(KeyboardInterrupt):
        run(request, end_at=6)
    before = newest_checkpoint(request.folder)[0]
    size = next(request.folder.glob("*.checkpoint")).stat().st_size

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))

    process = subprocess.run(
        [sys.executable, *command_for(request)], preexec_fn=limit, capture_output=True, text=True
    )
    assert process.returncode == 2, process.stderr
    assert process.stderr.count("\n") < 12 and "cannot be written (File too large)" in process.stderr
    after = newest_checkpoint(request.folder)[0]
    assert after.step == before.step
    assert all(torch.equal(after.tensors[name], before.tensors[name]) for name in before.tensors)


def torchrun(request, *flags):
    """Start two processes by torchrun, on a free port of its own, and for each restart another one."""
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *flags,
         *command_for(request)],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"},
    )  # fmt: skip


def kill_one(process):
    """Kill a process that torchrun has started, and return all of them."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[-1]), signal.SIGKILL)
    return children


def losses_of(request):
    lines = (request.folder / "log.jsonl").read_text().splitlines()
    return [line["loss"] for line in map(json.loads, lines) if line["kind"] == "update"]


@pytest.mark.slow
def test_two_processes_learn_what_one_learns_though_one_is_killed(corpus, tmp_path):
    alone, together = (request_for(corpus, tmp_path / name, steps=20) for name in ("a.regard", "b.regard"))
    for request in (alone, together):
        request.options["model"].update(dropout=0.0, attention_dropout=0.0, feed_forward_dropout=0.0)
    run(alone)
    process = torchrun(together, "--max-restarts", "1")
    wait_for_update(together, 6)
    kill_one(process)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert losses_of(together) == pytest.approx(losses_of(alone), abs=1e-5)
    assert together.out.exists()


@pytest.mark.slow
def test_the_death_of_one_process_ends_the_others(corpus, tmp_path):
    request = request_for(corpus, tmp_path / "m.regard", steps=100_000, valid_steps=1000)
    process = torchrun(request)
    wait_for_update(request, 5)
    started = time.monotonic()
    children = kill_one(process)
    process.communicate()
    assert process.returncode != 0 and time.monotonic() - started < 120
    for child in children:
        with contextlib.suppress(FileNotFoundError):
            assert "State:\tZ" in Path(f"/proc/{child}/status").read_text()


def call(*arguments, folder):
    done = subprocess.run(
        [sys.executable, "-m", "regard", "train", *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_the_command_takes_several_corpora_a_validation_set_and_a_configuration(corpus, tmp_path):
    lines = [path.read_text("utf-8").splitlines() for path in corpus]
    rows = [f"{source}\t{target}\n" for source, target in zip(*lines, strict=True)]
    (tmp_path / "main.fr-en.tsv").write_text("fr\ten\n" + "".join(rows[:150]), "utf-8")
    (tmp_path / "more.fr-en.tsv").write_text("fr\ten\n" + "".join(rows[150:270]), "utf-8")
    (tmp_path / "dev.fr-en.tsv").write_text("fr\ten\n" + "".join(rows[270:]), "utf-8")
    (tmp_path / "run.toml").write_text(
        '[train]\nsteps = 3\naverage = "none"\nclip_norm = "none"\n[model]\nhidden_size = 8\n'
    )
    code, said = call(
        "main.fr-en.tsv", "--also", "more.fr-en.tsv", "2", "--valid", "dev.fr-en.tsv", "--config", "run.toml",
        "--set", "tokenizer=bpe", "--vocab", "420", "--keep", "numbers", "--steps", "4", "--out", "m.regard",
        "--source", "fr", "--target", "en", "--seed", "5", folder=tmp_path,
    )  # fmt: skip
    assert code == 0, said
    about = json.loads((tmp_path / "m.run" / "run.json").read_text())
    assert about["facts"]["num_validation_pairs"] == 30 and about["facts"]["num_pairs"] <= 270
    config = about["config"]
    assert config["tokenizer"]["kind"] == "bpe" and config["train"]["clip_norm"] is None
    assert (
        config["train"]["average"] == {"kind": "none"}
        and config["train"]["steps"] == 4
        and config["seed"] == 5
    )
    assert load_model(tmp_path / "m.regard").config == config


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seed", "-1"], "seed = -1"),
        (["--keep", "nubers"], "'nubers' is not a rule"),
        (["--also", "a.fr", "a.en", "0"], "weight 0.0 of a.fr a.en"),
        (["--set", "tokenizer.joint=false"], "model.tie = 'all' needs one vocabulary"),
        (["--set", "model.source=features"], "the corpus has text; leave one of them out"),
        (
            ["--set", "model.positions.kind=learned", "--set", "batch.max_tokens=500"],
            "set batch.max_tokens = 256",
        ),
        (["--set", "train.schedule=cosine"], "must know the end"),
        (["--time", "5"], "--time 5 is not valid"),
        (["--preset", "bahdanau"], "did you mean 'bahdanau2015'"),
        (["--device", "tpu9"], "--device tpu9 cannot be used"),
        (["--config", "none.toml"], "none.toml: cannot be read"),
        (["--set", "modle.dropout=0.2"], "section 'modle' does not exist; did you mean 'model'?"),
    ],
)
def test_a_mistake_is_one_line_before_anything_is_read(corpus, tmp_path, arguments, message):
    for path, name in zip(corpus, ("a.fr", "a.en"), strict=True):
        (tmp_path / name).write_bytes(path.read_bytes())
    code, said = call("a.fr", "a.en", "--out", "m.regard", *arguments, folder=tmp_path)
    assert code == 2 and message in said and said.count("\n") == 1, said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.en", "a.fr"]


def test_settings_may_change_while_nothing_has_been_learnt(corpus, tmp_path):
    out = tmp_path / "m.regard"
    with pytest.raises(KeyboardInterrupt):
        run(request_for(corpus, out), end_at=1)
    trained, _ = run(request_for(corpus, out, label_smoothing=0.3))
    assert trained.num_updates == 12


def test_only_damaged_checkpoints_are_an_error_and_stay(corpus, tmp_path):
    request = request_for(corpus, tmp_path / "m.regard")
    with pytest.raises(KeyboardInterrupt):
        run(request, end_at=11)
    damaged = sorted(request.folder.glob("*.checkpoint"))
    for path in damaged:
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="and so is every other"):
        run(request)
    assert sorted(request.folder.glob("*.checkpoint")) == damaged


def test_less_time_than_preparation_takes_still_gives_a_model(corpus, tmp_path):
    request = request_for(corpus, tmp_path / "m.regard", steps=None, seconds=0.01)
    trained, _ = run(request)
    assert trained.num_updates == 1 and request.out.exists()


def test_validation_pairs_that_are_too_long_are_left_out(corpus, tmp_path):
    request = request_for(corpus, tmp_path / "m.regard", steps=4)
    request.options["batch"]["max_tokens"] = 20
    run(request)
    data = json.loads((request.folder / "data" / "data.json").read_text())
    assert 2 <= len(data["validation"]) < 15


def test_a_small_corpus_is_not_used_up_by_validation_for_a_large_one(corpus, tmp_path):
    small = tuple(tmp_path / path.name for path in corpus)
    for path, copy in zip(corpus, small, strict=True):
        copy.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[:60]), "utf-8")
    request = request_for(small, tmp_path / "m.regard", steps=4)
    request = replace(request, corpora=(*request.corpora, CorpusFiles(corpus)))
    run(request)
    facts = json.loads((request.folder / "run.json").read_text())["facts"]
    assert facts["num_validation_pairs"] <= 15


def test_subword_options_are_those_asked_for(corpus, tmp_path):
    request = request_for(corpus, tmp_path / "m.regard", steps=4)
    run(request)
    config = json.loads((request.folder / "run.json").read_text())["config"]
    assert SubwordOptions(**config["tokenizer"]) == SubwordOptions(kind="unigram", vocab_size=420)
