"""`regard translate` and `regard info` as a user meets them: lines in, as many lines out, and what is said of them."""

import contextlib
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small import random_weights, shrink

import regard
import regard.cli.translate
import regard.starter
import regard.translate.lines
from regard.cli import run
from regard.model.presets import PRESETS
from regard.modelfile import ModelFile, load_model, save_model
from regard.options.text import CharacterOptions
from regard.parallel import num_cores
from regard.text.tokenizer import TokenizerPair
from regard.translate.translator import Translator
from regard.vocabulary import EOS

GOLDEN = Path(__file__).parent / "golden" / "model-1.regard"
QUICK = ("--beam", "1", "--no-guard", "--set", "no_repeat_ngram=2")
HOW = {"beam_size": 1, "guard": False, "no_repeat_ngram": 2}
COMMAND = [sys.executable, "-m", "regard"]


def translated(*texts, **how):
    """What the library makes of the same texts."""
    return [one.text for one in regard.load(GOLDEN).translate(texts, **(how or HOW))]


@pytest.fixture
def call(capfdbinary, monkeypatch):
    """Runs `regard` with these arguments and this input; its exit code, lines and messages."""

    def call(*arguments, given=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        code = run([*map(str, arguments)])
        told = capfdbinary.readouterr()
        return code, told.out, told.err.decode()

    return call


@pytest.fixture(scope="module")
def other_weights(tmp_path_factory):
    """A model of the same vocabulary with other weights."""
    golden = load_model(GOLDEN)
    weights = {name: weight[::-1].copy() for name, weight in golden.weights.items()}
    path = tmp_path_factory.mktemp("models") / "other.regard"
    save_model(path, replace(golden, weights=weights))
    return path


@pytest.fixture(scope="module")
def other_vocabulary(tmp_path_factory):
    tokenizers = TokenizerPair.learn(["abc"], ["def"], CharacterOptions(joint=True))
    options = shrink(PRESETS["regard-rnn"])
    weights = random_weights(options, tokenizers.source.vocab_size, tokenizers.target.vocab_size)
    path = tmp_path_factory.mktemp("models") / "words.regard"
    save_model(path, ModelFile(options, weights, tokenizers, None, None, {}, {}))
    return path


# Lines in, lines out.


def test_every_line_becomes_a_line_and_blank_ones_stay_blank(call):
    code, out, err = call("translate", GOLDEN, *QUICK, given=b"il pleut.\n\n \t\nle chat dort.\n")
    first, last = translated("il pleut.", "le chat dort.")
    assert code == 0 and out.decode() == f"{first}\n\n\n{last}\n"
    assert "cannot" not in err


@pytest.mark.parametrize(
    ("given", "num_lines"),
    [
        (b"", 0),
        (b"\n", 1),
        (b"il pleut.", 1),
        (b"il pleut.\n", 1),
        (b"\n\nil pleut.", 3),
        (b"il pleut.\n\n", 2),
    ],
)
def test_as_many_lines_as_there_are(call, given, num_lines):
    code, out, _ = call("translate", GOLDEN, *QUICK, given=given)
    assert code == 0 and out.count(b"\n") == num_lines and (not out or out.endswith(b"\n"))
    assert (translated("il pleut.")[0].encode() in out) == (b"il" in given)


def test_line_ends_of_windows_and_a_byte_order_mark_are_no_part_of_a_line(call):
    _, plain, _ = call("translate", GOLDEN, *QUICK, given="où\nil pleut.\n".encode())
    code, out, _ = call("translate", GOLDEN, *QUICK, given="\ufeffoù\r\nil pleut.\r\n".encode())
    assert code == 0 and out == plain


def test_signs_that_other_programs_take_for_line_ends_make_no_lines(call):
    """Nor does anything a model may say: as many lines out as in."""
    code, out, _ = call("translate", GOLDEN, *QUICK, given="a\u2028b\x0cc\x85d\u0085e\n".encode())
    assert code == 0 and len(out.decode().splitlines()) == 1


def test_a_line_that_cannot_be_read_is_named_and_blank_and_the_others_are_translated(call):
    longest = regard.translate.lines._MAX_BYTES
    lines = [b"il pleut.", b"caf\xe9", b"il pleut.", b"\0a\0b", b"a" * (longest + 1), b"il pleut."]
    code, out, err = call("translate", GOLDEN, *QUICK, given=b"\n".join(lines))
    right = translated("il pleut.")[0]
    assert code == regard.cli.translate.SOME_FAILED == 3
    assert out.decode().split("\n") == [right, "", right, "", "", right, ""]
    told = [line for line in err.splitlines() if line.startswith("regard: line ")]
    assert len(told) == 3
    assert "line 2: byte 4 (0xe9) is not UTF-8" in told[0]
    assert "line 4: has NUL characters" in told[1]
    assert "line 5: has more than 200,000 bytes" in told[2]


def test_no_part_of_a_long_line_is_lost_in_silence(call, monkeypatch):
    """Wherever a line is too long, and whatever sign stands there."""
    monkeypatch.setattr(regard.translate.lines, "_MAX_BYTES", 10)
    for line, fits in [
        (b"a" * 10, True),
        (b"a" * 10 + b"\r", True),
        (b"a" * 11, False),
        (b"a" * 10 + b"\rbbb", False),
        (b"a" * 21 + b"\r", False),
        (b"a" * 10 + b"\r" * 12, False),
    ]:
        code, out, err = call("translate", GOLDEN, *QUICK, given=line + b"\nil\n")
        assert out.count(b"\n") == 2, line
        assert (code == 0) == fits and ("line 1: has more than" in err) != fits, line


def test_texts_may_stand_before_and_after_flags(call):
    right = "".join(f"{one}\n" for one in translated("il pleut.", "le chat dort."))
    for arguments in (
        [GOLDEN, "il pleut.", "le chat dort.", *QUICK],
        [*QUICK, GOLDEN, "il pleut.", "le chat dort."],
        [GOLDEN, "il pleut.", *QUICK, "le chat dort."],
        [GOLDEN, *QUICK, "il pleut.", "le chat dort."],
    ):
        code, out, err = call("translate", *arguments)
        assert (code, out.decode()) == (0, right), (arguments, err)


def test_a_text_of_several_lines_is_one(call):
    code, out, _ = call("translate", GOLDEN, *QUICK, "il\npleut.")
    assert code == 0 and out.decode() == translated("il pleut.")[0] + "\n"


@pytest.mark.parametrize("name", ["in.fr", "in.fr.gz"])
def test_a_file_is_read_compressed_or_not(call, tmp_path, name):
    content = b"il pleut.\nle chat dort.\n"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    code, out, _ = call("translate", GOLDEN, *QUICK, "--file", tmp_path / name)
    assert code == 0 and out.decode().splitlines() == translated("il pleut.", "le chat dort.")


def test_the_guard_is_on_unless_it_is_turned_off(call):
    code, out, err = call("translate", GOLDEN, "il pleut 48213")
    (one,) = regard.load(GOLDEN).translate(["il pleut 48213"])
    assert code == 0 and out.decode() == one.text + "\n" and "48213" in one.text
    assert "1 of 1 " in err and "(line 1)" in err  # what looks wrong is told
    _, out, err = call("translate", GOLDEN, "--no-guard", "il pleut 48213")
    assert b"48213" not in out and "lack a number" in err


# Files out.


def test_a_file_is_written_and_nothing_printed(call, tmp_path):
    code, out, _ = call("translate", GOLDEN, *QUICK, "--out", tmp_path / "out.en", given=b"il pleut.\n")
    assert (code, out) == (0, b"")
    assert (tmp_path / "out.en").read_text("utf-8").splitlines() == translated("il pleut.")
    assert [path.name for path in tmp_path.iterdir()] == ["out.en"]


def test_work_that_fails_half_way_leaves_nothing_and_keeps_what_was_there(call, tmp_path, monkeypatch):
    whole = Translator.stream

    def stream(self, texts, **how):
        yield next(whole(self, texts, **how))
        raise MemoryError("no more")

    monkeypatch.setattr(Translator, "stream", stream)
    for before in (None, "old"):
        if before is not None:
            (tmp_path / "out.en").write_text(before)
        code, _, err = call("translate", GOLDEN, *QUICK, "--out", tmp_path / "out.en", given=b"il\nil\n")
        assert code != 0 and err.count("\n") == 1
        left = {path.name: path.read_text() for path in tmp_path.iterdir()}
        assert left == ({} if before is None else {"out.en": "old"})


def test_a_process_that_is_ended_leaves_nothing(tmp_path):
    process = subprocess.Popen(
        [*COMMAND, "translate", GOLDEN, *QUICK, "--out", tmp_path / "out.en"],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        process.stdin.write(b"il pleut.\n" * 10)
        process.stdin.flush()
        deadline = time.monotonic() + 120
        while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert [path.suffix for path in tmp_path.iterdir()] == [".part"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 128 + signal.SIGTERM
        assert list(tmp_path.iterdir()) == []
    finally:
        process.kill()
        process.stdin.close()
        process.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="workers are threads elsewhere")
@pytest.mark.skipif(num_cores() < 2, reason="one core needs no workers")
def test_a_killed_worker_is_named_as_such_and_leaves_nothing(tmp_path):
    (tmp_path / "in.fr").write_text("il pleut sur la maison et le chat dort .\n" * 20_000)
    command = [sys.executable, "-m", "regard", "translate", "fr-en", "--file", "in.fr", "--out", "out.en"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    workers = []
    while not workers and process.poll() is None:
        time.sleep(0.05)
        with contextlib.suppress(FileNotFoundError):  # of a thread that has just ended
            for task in Path(f"/proc/{process.pid}/task").iterdir():
                workers += (task / "children").read_text().split()
    os.kill(int(workers[0]), signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (
        2,
        "regard: a worker process was killed by signal 9; is there enough memory?\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["in.fr"]


def test_from_outside_it_is_the_same(tmp_path):
    done = subprocess.run(
        [*COMMAND, "translate", GOLDEN, *QUICK], input="il pleut.\n\ncaf\udce9".encode("utf-8", "surrogateescape"),
        capture_output=True,
    )  # fmt: skip
    assert done.returncode == 3 and done.stdout.decode() == translated("il pleut.")[0] + "\n\n\n"
    assert done.stderr.startswith(b"regard: line 3: byte 4 (0xe9) is not UTF-8")


# Other forms.


def test_jsonl_is_one_object_a_line_with_its_number(call):
    given = "\ufeffil pleut.\n\ncaf\udce9\n“le chat”\n".encode("utf-8", "surrogateescape")
    code, out, _ = call("translate", GOLDEN, *QUICK, "--jsonl", given=given)
    found = [json.loads(line) for line in out.decode().splitlines()]
    assert code == 3 and [one["line"] for one in found] == [1, 2, 3, 4]
    assert [one["source"] for one in found] == ["il pleut.", "", "", "“le chat”"]
    assert [one["text"] for one in found] == translated("il pleut.", "", "", "“le chat”")
    assert "not UTF-8" in found[2]["error"] and "error" not in found[0]
    # In the same company: what is promised of others is the same tokens, not the last bit of a score.
    wanted, *_ = regard.load(GOLDEN).translate(["il pleut.", "", "", "“le chat”"], **HOW)
    assert {key: value for key, value in found[0].items() if key != "line"} == json.loads(
        json.dumps(wanted.to_json())
    )


def test_the_n_best_stand_in_columns(call):
    how = ("--no-guard", "--set", "no_repeat_ngram=2")
    code, out, _ = call("translate", GOLDEN, *how, "--nbest", 3, "--beam", 4, given=b"il pleut.\n\n")
    (one,) = regard.load(GOLDEN).translate(
        ["il pleut."], num_best=3, beam_size=4, guard=False, no_repeat_ngram=2
    )
    columns = [one.text, *(other.text for other in one.alternatives)]
    assert code == 0 and len(columns) == 3 and out.decode() == "\t".join(columns) + "\n\n"


def test_more_of_them_than_the_beam_is_wide_are_refused(call):
    code, out, err = call("translate", GOLDEN, "--nbest", 6, "il pleut.")
    assert (code, out) == (2, b"") and "num_best = 6" in err and err.count("\n") == 1


def test_a_prefix_begins_every_translation(call):
    code, out, _ = call("translate", GOLDEN, *QUICK, "--prefix", "the cat", given=b"il\n\nle chien\n")
    lines = out.decode().split("\n")
    assert code == 0 and lines[0].startswith("the cat") and lines[1] == "" and lines[2].startswith("the cat")


def test_samples_are_drawn_by_their_seed(call):
    drawn = [
        call("translate", GOLDEN, "--set", "kind=sample", "--set", f"seed={seed}", "il pleut.")[1]
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


# Given translations and several models.


def test_given_translations_are_scored(call, tmp_path):
    (tmp_path / "in.fr").write_text("il pleut.\n\nle chat\n", "utf-8")
    (tmp_path / "out.en").write_text("it is raining.\n\nthe cat\n", "utf-8")
    code, out, _ = call(
        "translate", GOLDEN, "--file", tmp_path / "in.fr", "--given", tmp_path / "out.en", "--jsonl"
    )
    found = [json.loads(line) for line in out.decode().splitlines()]
    wanted = regard.load(GOLDEN).force(["il pleut.", "le chat"], ["it is raining.", "the cat"])
    assert code == 0 and [one["text"] for one in found] == ["it is raining.", "", "the cat"]
    assert [found[0]["log_prob"], found[2]["log_prob"]] == pytest.approx(
        [one.log_prob for one in wanted], abs=1e-4
    )
    assert len(found[0]["confidence"]) == 4


def test_given_translations_of_another_number_or_with_blank_sides_are_told(call, tmp_path):
    (tmp_path / "short.en").write_text("it is raining.\n", "utf-8")
    code, _, err = call(
        "translate",
        GOLDEN,
        "--given",
        tmp_path / "short.en",
        "--out",
        tmp_path / "out",
        given=b"il\nle chat\n",
    )
    assert code == 2 and "differ from line 2" in err and not (tmp_path / "out").exists()
    (tmp_path / "blank.en").write_text("it\n\n", "utf-8")
    code, out, err = call("translate", GOLDEN, "--given", tmp_path / "blank.en", given=b"il\nle chat\n")
    assert code == 3 and "line 2: has one blank side" in err and out.count(b"\n") == 2
    code, _, err = call("translate", GOLDEN, "--given", tmp_path / "blank.en", "--beam", 2, given=b"il\n")
    assert code == 2 and "--beam" in err


def test_two_models_translate_together(call, other_weights):
    code, out, _ = call("translate", GOLDEN, "--with", other_weights, *QUICK, "il pleut.")
    (one,) = Translator.open(GOLDEN, other_weights).translate(["il pleut."], **HOW)
    assert code == 0 and out.decode() == one.text + "\n"
    code, out, _ = call("translate", GOLDEN, "--with", GOLDEN, *QUICK, "il pleut.")
    assert code == 0 and out.decode() == translated("il pleut.")[0] + "\n"  # the same opinion twice


def test_models_of_different_vocabularies_do_not(call, other_vocabulary):
    code, out, err = call("translate", GOLDEN, "--with", other_vocabulary, "il pleut.")
    assert (code, out) == (2, b"") and "the same vocabulary" in err and err.count("\n") == 1


# Mistakes.


def test_an_unknown_setting_names_the_nearest(call):
    code, out, err = call("translate", GOLDEN, "--set", "lenght_penalty=1", "il pleut.")
    assert (
        (code, out) == (2, b"") and "lenght_penalty" in err and "length_penalty" in err.replace("lenght", "")
    )
    code, _, err = call("translate", GOLDEN, "--set", "length_penalty", "il pleut.")
    assert code == 2 and "write key=value" in err and err.count("\n") == 1
    code, _, err = call("translate", GOLDEN, "--set", "beam_size=many", "il pleut.")
    assert code == 2 and "beam_size" in err and "many" in err and err.count("\n") == 1


def broken_models(folder):
    """Files that are no model of this version, and what is said of each."""
    data = GOLDEN.read_bytes()
    contents = {
        "missing": (None, "cannot be read"),
        "damaged": (data[:-100] + bytes(100), "is damaged"),
        "short": (data[:5000], "damaged"),
        "foreign": (b"PK\x03\x04 not ours", "is not a regard model"),
        "later": (data.replace(b"regard-model/1", b"regard-model/9"), "'regard-model/9'"),
    }
    for name, (content, message) in contents.items():
        path = folder / f"{name}.regard"
        if content is not None:
            path.write_bytes(content)
        yield path, message


@pytest.mark.parametrize("verb", ["translate", "info"])
def test_a_model_that_cannot_be_used_is_one_line_and_exit_code_two(call, tmp_path, verb):
    for path, message in broken_models(tmp_path):
        code, out, err = call(verb, path, given=b"il pleut.\n")
        assert (code, out) == (2, b""), path
        assert err.startswith("regard: ") and err.count("\n") == 1 and message in err and path.name in err


@pytest.mark.parametrize("text", ["il pleut.", "il pleut. " * 60, "a\0b", "." * 300])
def test_a_package_without_a_model_says_so(call, monkeypatch, tmp_path, text):
    """However long the text is that is no name of a file."""
    monkeypatch.setenv("REGARD_MODELS", str(tmp_path))
    code, out, err = call("translate", text)
    assert (code, out) == (2, b"") and "has no bundled models" in err and err.count("\n") == 1


def test_the_model_of_the_package_translates_where_none_is_named(call, monkeypatch, tmp_path):
    (tmp_path / "fr-en.regard").write_bytes(GOLDEN.read_bytes())
    monkeypatch.setenv("REGARD_MODELS", str(tmp_path))
    for text in ("il pleut.", "il pleut. " * 30):
        code, out, err = call("translate", *QUICK, text)
        assert code == 0 and out.decode() == translated(text)[0] + "\n", err


def test_files_that_cannot_be_read_or_written_are_one_line(call, tmp_path):
    (tmp_path / "broken.gz").write_bytes(gzip.compress(b"il pleut.\n" * 1000)[:-20])
    (tmp_path / "text.gz").write_bytes(b"il pleut.\n")
    (tmp_path / "text.xz").write_bytes(b"il pleut.\n")
    for arguments, name in [
        (["--file", tmp_path / "nowhere.fr"], "nowhere.fr"),
        (["--file", tmp_path], tmp_path.name),
        (["--file", tmp_path / "broken.gz"], "broken.gz"),
        (["--file", tmp_path / "text.gz"], "text.gz"),
        (["--file", tmp_path / "text.xz"], "text.xz"),
        (["--out", tmp_path / "text.gz" / "out.en"], "text.gz"),
        (["--given", tmp_path / "nowhere.en"], "nowhere.en"),
    ]:
        code, _, err = call(
            "translate", GOLDEN, *([] if "--given" in arguments else QUICK), *arguments, given=b"il\n"
        )
        assert code == 2 and err.count("\n") == 1 and name in err, (arguments, code, err)
    code, _, err = call("translate", GOLDEN, "--file", tmp_path / "text.gz", "il pleut.")
    assert code == 2 and "either texts or --file" in err


# What a model file is.


def test_info_shows_what_is_known(call, other_vocabulary):
    code, out, _ = call("info", GOLDEN)
    shown = out.decode()
    assert code == 0 and "fr to en" in shown and "made" in shown and "sources of more than 40 pieces" in shown
    assert f"{sum(weight.size for weight in load_model(GOLDEN).weights.values()):,}" in shown
    code, out, _ = call("info", other_vocabulary)
    shown = out.decode()
    assert code == 0 and "? to ?" in shown and "recurrent" in shown
    assert "made" not in shown and "BLEU" not in shown


def test_info_of_a_trained_model_shows_its_scores(call, tmp_path):
    golden = load_model(GOLDEN)
    validation = {
        "bleu": 31.25,
        "chrf": 55.5,
        "num_sentences": 1014,
        "signatures": {"bleu": "nrefs:1|case:mixed"},
    }
    save_model(tmp_path / "m.regard", replace(golden, card=golden.card | {"validation": validation}))
    code, out, _ = call("info", tmp_path / "m.regard")
    assert (
        code == 0
        and "31.2" in out.decode()
        and "1,014" in out.decode()
        and "nrefs:1|case:mixed" in out.decode()
    )


def test_info_shows_a_card_somebody_else_has_written(call, tmp_path):
    """The card is free JSON: the model translates whatever it says."""
    golden = load_model(GOLDEN)
    for card in ({"data": "multi30k"}, {"training": {}, "validation": None}, {"validation": {"bleu": None}}):
        save_model(tmp_path / "m.regard", replace(golden, card=card))
        code, out, err = call("info", tmp_path / "m.regard")
        assert code == 0 and b"fr to en" in out, (card, err)


def test_info_speaks_json(call, other_vocabulary):
    code, out, _ = call("info", GOLDEN, "--json")
    about, model = json.loads(out), load_model(GOLDEN)
    assert code == 0 and about["card"] == model.card and about["config"] == model.config
    assert (
        about["reading"] == {"layer": 1, "head": 0, "shifted": True, "posterior": False}
        and about["split_above"] == 40
    )
    assert (about["source_language"], about["target_language"]) == ("fr", "en")
    code, out, _ = call("info", other_vocabulary, "--json")
    assert code == 0 and json.loads(out)["reading"] is None


# A long file.

MEASURED = """
import sys
from regard.cli import run
code = run(sys.argv[1:])
with open("/proc/self/status") as status:
    peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
print(code, peak)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_a_long_file_takes_no_more_memory_than_a_short_one(tmp_path):
    golden = load_model(GOLDEN)
    weights = golden.weights | {"source.weight": golden.weights["source.weight"].copy()}
    weights["source.weight"][EOS, 0] = 4.0  # it says a letter at most, and ends
    save_model(tmp_path / "short.regard", replace(golden, weights=weights))
    peaks = []
    for num_lines in (2_000, 20_000):
        (tmp_path / "in").write_text("".join(f"le chat {number}\n" for number in range(num_lines)))
        arguments = [
            "translate",
            tmp_path / "short.regard",
            "--file",
            tmp_path / "in",
            "--out",
            tmp_path / "out",
            *QUICK,
        ]
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, *map(str, arguments)], capture_output=True, text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        code, peak = map(int, done.stdout.split())
        assert code == 0 and len((tmp_path / "out").read_bytes().split(b"\n")) == num_lines + 1
        peaks.append(peak / 1000)
    assert (
        np.diff(peaks)[0] < 12
    )  # megabytes; all translations of the long file would take several times as much


def test_words_after_two_dashes_are_texts_whatever_they_begin_with(capfdbinary):
    assert run(["translate", "--beam", "1", str(GOLDEN), "--", "-a b", "--c"]) == 0
    assert len(capfdbinary.readouterr().out.splitlines()) == 2
    assert run(["info", str(GOLDEN), "--", "x"]) == 2


def test_a_pair_that_cannot_be_compared_is_named_and_the_others_are_compared(tmp_path, capfdbinary):
    (tmp_path / "x").write_text("ab\n\u200b\ncd\n", encoding="utf-8")
    (tmp_path / "y").write_text("ab\nab\ncd\n", encoding="utf-8")
    files = ["--file", str(tmp_path / "x"), "--given", str(tmp_path / "y")]
    assert run(["translate", str(GOLDEN), *files, "--jsonl"]) == 3
    said = capfdbinary.readouterr()
    rows = [json.loads(line) for line in said.out.splitlines()]
    assert [row["line"] for row in rows] == [1, 2, 3]
    assert "error" in rows[1] and rows[2]["parts"] and b"line 2:" in said.err


@pytest.mark.parametrize("name", ["todo.po", "letter.docx", "notes.txt", "train.fr.gz", "./a/b.html"])
def test_the_name_of_a_file_is_no_text(name, capfd):
    assert run(["translate", str(GOLDEN), name]) == 2
    said = capfd.readouterr()
    assert said.out == "" and "is the name of a file and not a text" in said.err
    assert said.err.count("\n") == 1 and ("--file" in said.err) == (name == "train.fr.gz")


def test_an_existing_file_is_no_text_whatever_its_name(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lisezmoi").write_text("il pleut.\n")
    assert run(["translate", str(GOLDEN), "lisezmoi"]) == 2
    assert "--file lisezmoi" in capfd.readouterr().err
    assert run(["translate", str(GOLDEN), "--file", "lisezmoi", *QUICK]) == 0


@pytest.mark.parametrize("text", ["www.example.fr", "https://a.org/b.html", "Voir a.txt", "moi@a.fr", "12.5"])
def test_an_address_and_a_sentence_about_a_file_are_texts(text, capfd):
    assert run(["translate", str(GOLDEN), text, *QUICK]) == 0


def test_the_lines_of_a_document_are_not_taken_for_texts(tmp_path, capfd):
    path = tmp_path / "app.po"
    path.write_text('msgid "a"\nmsgstr "b"\n')
    out = tmp_path / "out.po"
    assert run(["translate", str(GOLDEN), "--file", str(path), "--out", str(out)]) == 2
    assert "would destroy its markup" in capfd.readouterr().err and not out.exists()


def test_json_lines_hold_no_control_that_a_terminal_obeys(capfd):
    text = "il \u202e pleut \x9b31m \u2066."
    assert run(["translate", str(GOLDEN), text, "--jsonl", *QUICK]) == 0
    (line,) = capfd.readouterr().out.splitlines()
    assert line.isprintable() and json.loads(line)["source"] == text


def test_markup_carries_the_tags_of_each_line(capsys):
    assert run(["translate", "fr-en", "--markup", "xml", "Le <b>chat</b> dort."]) == 0
    assert capsys.readouterr().out == "The <b>cat</b> is sleeping.\n"
    assert run(["translate", "fr-en", "--markup", "xml", "--nbest", "2", "Le chat"]) == 2
    assert "--markup" in capsys.readouterr().err
