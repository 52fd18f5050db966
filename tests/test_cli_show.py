"""`regard show` as a user meets it: pictures in the terminal and in files, and one line for every mistake."""

import csv
import io
import json
import os
import re
import subprocess
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from small import random_weights, shrink

import regard
from regard.cli import run
from regard.model.presets import PRESETS
from regard.modelfile import ModelFile, load_model, save_model
from regard.options.text import CharacterOptions
from regard.text.tokenizer import TokenizerPair
from regard.trace.make import Tracer
from regard.trace.views import load_trace
from regard.vocabulary import EOS, NUM_RESERVED

GOLDEN = Path(__file__).parent / "golden" / "model-1.regard"
COMMAND = [sys.executable, "-m", "regard"]
TEXT, GIVEN = "il pleut.", "it rains."
FAMILIES = [
    "sutskever2014",
    "cho2014",
    "bahdanau2015",
    "luong2015",
    "vaswani2017",
    "regard-rnn",
    "regard-small",
]
TOKENIZERS = TokenizerPair.learn(
    ["il pleut. le chat dort ici", "나는 학생입니다"], ["it rains. the cat"], CharacterOptions(joint=True)
)
FORMS = ("svg", "png", "html", "json", "csv")


@pytest.fixture(autouse=True)
def _no_columns(monkeypatch):
    """No width of a terminal is known but the one that a test asks for."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A model file of each family."""
    folder = tmp_path_factory.mktemp("models")
    for name in FAMILIES:
        options = shrink(PRESETS[name])
        weights = random_weights(options, TOKENIZERS.source.vocab_size, TOKENIZERS.target.vocab_size)
        output = next(one for one in ("W_o", "target.weight", "source.weight") if one in weights)
        weights[output][EOS + 1 : NUM_RESERVED] *= 0.3
        save_model(folder / f"{name}.regard", ModelFile(options, weights, TOKENIZERS, "fr", "en", {}, {}))
    return folder


@pytest.fixture
def call(capfdbinary, monkeypatch):
    """Runs `regard show` with these arguments and this input; its exit code, output and messages."""

    def call(*arguments, given=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), "utf-8"))
        code = run(["show", *map(str, arguments)])
        told = capfdbinary.readouterr()
        return code, told.out, told.err.decode()

    return call


@pytest.fixture
def shown(call):
    """Runs what must go well, and returns the lines of its output."""

    def shown(*arguments, **more):
        code, out, err = call(*arguments, **more)
        assert code == 0, err
        return out.decode().splitlines()

    return shown


@pytest.fixture
def refused(call, tmp_path):
    """Runs what must be refused in one line, with nothing shown or written; returns the line."""

    def refused(*arguments, **more):
        before = sorted(tmp_path.rglob("*"))
        code, out, err = call(*arguments, **more)
        assert (code, out) == (2, b""), err
        assert err.startswith("regard: ") and err.count("\n") == 1 and err.endswith("\n"), err
        assert sorted(tmp_path.rglob("*")) == before
        return err

    return refused


def width_of(line):
    """Columns in a terminal: two for what is wide, none for marks."""
    return sum(
        0
        if unicodedata.category(one) in ("Mn", "Me", "Cf")
        else 2
        if unicodedata.east_asian_width(one) in "WF"
        else 1
        for one in line
    )


def pieces_of(path, text, force):
    return Tracer.open(path).trace(text, force=force)


# The terminal.


@pytest.mark.parametrize("name", FAMILIES)
def test_the_picture_has_all_words(shown, models, name):
    lines = shown(models / f"{name}.regard", TEXT, "--force", GIVEN, "--width", 100)
    text = "\n".join(lines)
    assert f"{name}.regard: fr → en" in text and TEXT in text and f"→ {GIVEN}" in text
    rows = [line.split()[0] for line in lines if line.rstrip().endswith("%")]
    assert rows == ["it", "rains", ".", "</s>"]
    if name not in ("sutskever2014", "cho2014"):
        upright = [
            "".join(line[place : place + 1] for line in lines).replace(" ", "") for place in range(100)
        ]
        for word in ("il", "pleut", "."):
            assert any(word in column for column in upright), word


def test_the_probabilities_are_those_of_the_trace(shown):
    lines = shown(GOLDEN, TEXT, "--force", GIVEN, "--width", 90)
    drawn = pieces_of(GOLDEN, TEXT, GIVEN).heat_map()
    told = [re.search(r"(\d+) %$", line) for line in lines]
    assert [int(one[1]) for one in told if one] == [round(100 * prob) for prob in drawn.probs_T]


@pytest.mark.parametrize("width", [20, 45, 120])
@pytest.mark.parametrize(
    "more", [(), ("--pieces",), ("--effects",), ("--scores",), ("--step", "1"), ("--colour", "always")]
)
def test_no_line_is_wider_than_asked_for(shown, models, width, more):
    for arguments in (
        (GOLDEN, "le chat dort et il pleut."),
        (models / "bahdanau2015.regard", "나는 학생입니다"),
    ):
        lines = shown(*arguments, "--force", "it rains. it rains.", "--width", width, *more)
        for line in lines:
            assert width_of(re.sub("\x1b\\[[0-9;]*m", "", line)) <= width, line


def test_hangul_stands_in_columns(shown, models):
    """Every row of the map is as wide as every other, whatever its letters."""
    lines = shown(models / "bahdanau2015.regard", "나는 학생입니다", "--force", "나는 it", "--width", 80)
    rows = [line for line in lines if line.rstrip().endswith("%")]
    assert [row.split()[0] for row in rows] == ["나는", "it", "</s>"]
    assert len({width_of(row) for row in rows}) == 1
    assert "나" in "".join(lines)


def test_colour_only_adds_to_the_shades(shown):
    arguments = (GOLDEN, TEXT, "--force", GIVEN, "--width", 80)
    plain = shown(*arguments, "--colour", "never")
    coloured = shown(*arguments, "--colour", "always")
    assert shown(*arguments) == plain and plain != coloured
    assert [re.sub("\x1b\\[[0-9;]*m", "", line).rstrip() for line in coloured] == plain


def test_several_models_stand_side_by_side(shown, models):
    paths = [models / f"{name}.regard" for name in ("bahdanau2015", "regard-small")]
    lines = shown(*paths, TEXT, "--force", GIVEN, "--width", 150)
    assert any(line.count("rains") == 2 and line.count("%") == 2 for line in lines)
    narrow = shown(*paths, TEXT, "--force", GIVEN, "--width", 40)
    assert not any(line.count("rains") == 2 and line.count("%") == 2 for line in narrow)
    assert sum(line.split()[:1] == ["rains"] for line in narrow) == 2


def test_pieces_are_shown_on_request(shown):
    trace = pieces_of(GOLDEN, TEXT, GIVEN)
    lines = shown(GOLDEN, TEXT, "--force", GIVEN, "--pieces", "--width", 120)
    rows = [line.split()[0] for line in lines if line.rstrip().endswith("%")]
    assert rows == [piece.piece for piece in trace.target.pieces]
    assert len(rows) > len(trace.heat_map().rows)


def test_effects_are_a_second_picture(shown):
    plain, more = (shown(GOLDEN, TEXT, "--force", GIVEN, "--width", 60, *one) for one in ((), ("--effects",)))
    assert not any("largest effect" in line for line in plain) and any(
        "largest effect" in line for line in more
    )


def test_what_is_worth_knowing_is_said(shown, models):
    lines = shown(
        models / "regard-small.regard",
        "Ελλάδα και",
        "--force",
        GIVEN,
        "--change",
        "head=cross.1.2",
        "--width",
        120,
    )
    assert any(line.startswith("  note: the text is unlike") for line in lines)
    assert "  changed: cross, layer 1, head 2 is off" in lines


def test_a_terminal_is_steered_by_no_text(call, models):
    code, out, _ = call(
        models / "bahdanau2015.regard", "a\x1b[31mb\u202e\x07", "--raw", "--beam", 1, "--colour", "never"
    )
    assert code == 0 and not {b"\x1b", b"\x07", "\u202e".encode()} & {
        out[n : n + k] for n in range(len(out)) for k in (1, 3)
    }


# Texts from elsewhere.


def test_a_text_may_come_from_standard_input(shown):
    here = shown(GOLDEN, "où ?", "--force", GIVEN)
    assert shown(GOLDEN, "--force", GIVEN, given="où ?\n".encode()) == here
    assert shown(GOLDEN, "--force", GIVEN, given="où ?\r\nmore\n".encode()) == here


@pytest.mark.parametrize("given", [b"", b"\n", b" \t\n"])
def test_no_text_is_a_mistake(refused, given):
    assert "blank" in refused(GOLDEN, given=given)
    assert "blank" in refused(GOLDEN, "  ")


def test_a_text_on_standard_input_that_is_no_utf8_is_a_mistake(refused):
    assert "UTF-8" in refused(GOLDEN, given=b"caf\xe9\n")


def test_bytes_that_are_no_utf8_may_be_a_text(tmp_path):
    """Linux hands them on as they are."""
    done = subprocess.run(
        [*COMMAND, "show", GOLDEN, b"caf\xe9", "--force", "a", "--json", "-"], capture_output=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["source"]["text"] == "caf�"


def test_a_model_whose_name_is_no_utf8_can_be_shown(tmp_path):
    path = os.fsencode(tmp_path) + b"/caf\xe9.regard"
    Path(os.fsdecode(path)).write_bytes(GOLDEN.read_bytes())
    for more in ([], ["--json", "-"]):
        done = subprocess.run([*COMMAND, "show", path, TEXT, "--force", "a", *more], capture_output=True)
        assert done.returncode == 0, done.stderr


def test_a_text_that_ends_like_a_trace_file_is_a_text(shown):
    lines = shown(GOLDEN, "le chat dort.json", "--force", GIVEN)
    assert any("le chat dort.json" in line for line in lines)


# Files.


def test_each_form_is_written_whole(call, tmp_path):
    paths = {form: tmp_path / f"a.{form}" for form in FORMS}
    arguments = [one for form, path in paths.items() for one in (f"--{form}", path)]
    code, out, err = call(GOLDEN, TEXT, "--force", GIVEN, *arguments)
    assert (code, out) == (0, b"") and all(f"wrote {path}" in err for path in paths.values())
    assert sorted(tmp_path.iterdir()) == sorted(paths.values())
    root = ElementTree.fromstring(paths["svg"].read_bytes())
    told = "".join(root.itertext())
    assert root.tag.endswith("svg") and all(word in told for word in ("il", "pleut", "it", "rains", "</s>"))
    assert paths["png"].read_bytes().startswith(b"\x89PNG\r\n") and paths["png"].read_bytes().endswith(
        b"IEND\xaeB`\x82"
    )
    page = paths["html"].read_text("utf-8")
    assert (
        page.lower().startswith("<!doctype html>") and page.rstrip().endswith("</html>") and "rains" in page
    )
    trace = load_trace(paths["json"])
    assert trace.target.text == GIVEN and trace.effects is not None
    rows = list(csv.reader(paths["csv"].read_text("utf-8").splitlines()))
    np.testing.assert_allclose(
        np.array([row[1:] for row in rows[1:]], float), trace.heat_map().values_TS, atol=1e-4
    )


@pytest.mark.parametrize("form", FORMS)
def test_each_form_can_go_to_standard_output(call, tmp_path, form):
    path = tmp_path / f"a.{form}"
    arguments = (GOLDEN, TEXT, "--force", GIVEN)
    assert call(*arguments, f"--{form}", path)[0] == 0
    code, out, err = call(*arguments, f"--{form}", "-")
    assert code == 0 and err == ""
    if form in ("svg", "png", "csv"):
        assert out == path.read_bytes()
    else:
        assert abs(len(out) - path.stat().st_size) < 100  # the time is another
    assert sorted(tmp_path.iterdir()) == [path]


def test_one_form_may_go_to_standard_output_beside_files(call, tmp_path, refused):
    code, out, err = call(GOLDEN, TEXT, "--force", GIVEN, "--csv", "-", "--svg", tmp_path / "a.svg")
    assert code == 0 and out.startswith(b",il") and "wrote" in err and (tmp_path / "a.svg").is_file()
    assert "standard output" in refused(GOLDEN, TEXT, "--csv", "-", "--svg", "-")


def test_a_file_that_is_there_is_replaced_whole(call, tmp_path):
    path = tmp_path / "a.svg"
    path.write_bytes(b"x" * 1_000_000)
    assert call(GOLDEN, TEXT, "--force", GIVEN, "--svg", path)[0] == 0
    ElementTree.fromstring(path.read_bytes())
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("order", [("svg", "json"), ("json", "svg"), ("csv", "html")])
@pytest.mark.parametrize("impossible", ["a folder", "below a file"])
def test_where_one_file_cannot_be_written_none_is(call, tmp_path, order, impossible):
    good, bad = order
    old = tmp_path / "old"
    old.write_bytes(b"old")
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" if impossible == "a folder" else old / "below"
    code, out, err = call(GOLDEN, TEXT, "--force", GIVEN, f"--{good}", old, f"--{bad}", target)
    assert (code, out) == (2, b"") and err.startswith("regard: ") and err.count("\n") == 1
    assert "cannot be written" in err
    assert old.read_bytes() == b"old"
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "folder", old]


def test_two_forms_do_not_share_a_file(refused, tmp_path):
    path = tmp_path / "same"
    assert "same" in refused(GOLDEN, TEXT, "--force", GIVEN, "--svg", path, "--csv", path)


def test_a_file_that_cannot_be_drawn_leaves_the_old_one(call, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"old")
    code, out, err = call(GOLDEN, GOLDEN, TEXT, "--csv", path)
    assert (
        (code, out) == (2, b"") and "one model and one part at a time" in err and path.read_bytes() == b"old"
    )


def test_several_models_stand_in_one_picture_and_one_page(call, models, tmp_path):
    paths = [models / f"{name}.regard" for name in ("bahdanau2015", "regard-small")]
    code, _, _ = call(
        *paths, TEXT, "--force", GIVEN, "--svg", tmp_path / "a.svg", "--html", tmp_path / "a.html"
    )
    assert code == 0
    told = "".join(ElementTree.fromstring((tmp_path / "a.svg").read_bytes()).itertext())
    page = (tmp_path / "a.html").read_text("utf-8")
    for path in paths:
        assert path.name in told and path.name in page


def test_several_models_make_no_single_trace(refused, tmp_path):
    for form in ("json", "csv"):
        assert "one model and one part at a time" in refused(
            GOLDEN, GOLDEN, TEXT, "--force", GIVEN, f"--{form}", tmp_path / "a"
        )


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("search", [("--beam", "2"), ("--force", GIVEN), ("--prefix", "it", "--beam", "1")])
def test_a_written_trace_is_shown_as_it_was(call, shown, models, tmp_path, name, search):
    model, path = models / f"{name}.regard", tmp_path / "a.json"
    code, _, err = call(model, TEXT, *search, "--json", path)
    assert code == 0, err
    for view in ((), ("--pieces",)):
        assert shown(path, *view, "--width", 90) == shown(model, TEXT, *search, *view, "--width", 90)
    code, _, _ = call(path, "--svg", tmp_path / "a.svg", "--html", tmp_path / "a.html")
    assert code == 0 and (tmp_path / "a.html").is_file()


def test_a_trace_is_shown_as_it_was_made(call, refused, tmp_path):
    path = tmp_path / "a.json"
    assert call(GOLDEN, TEXT, "--force", GIVEN, "--json", path)[0] == 0
    for more in (
        ("--force", "a"),
        ("--prefix", "a"),
        ("--beam", "1"),
        ("--set", "length_penalty=0"),
        ("--change", "mask=off"),
    ):
        assert "cannot be translated again" in refused(path, *more)


def test_a_trace_that_is_damaged_missing_or_of_another_version_is_a_mistake(refused, write, tmp_path):
    assert "cannot be read" in refused(tmp_path / "missing.json")
    assert "no JSON" in refused(write("a.json", "{"))
    assert "regard-trace/9" in refused(write("a.json", '{"format": "regard-trace/9"}'))
    assert "not a trace" in refused(write("a.json", "[]"))


def test_a_trace_of_a_strange_design_is_no_fault_of_ours(call, refused, write, tmp_path):
    path = tmp_path / "a.json"
    assert call(GOLDEN, TEXT, "--force", GIVEN, "--json", path)[0] == 0
    trace = json.loads(path.read_text("utf-8"))
    trace["model"] |= {"kind": "recurrent", "options": {}}
    write("b.json", json.dumps(trace))
    for more in (("--step", "1"), ("--html", tmp_path / "x.html")):
        refused(tmp_path / "b.json", *more)


# One step.


@pytest.mark.parametrize(
    ("name", "cards"),
    [
        ("sutskever2014", ["1. one vector for the whole sentence", "2. step", "the next word"]),
        ("cho2014", ["1. one vector for the whole sentence", "2. step", "the next word"]),
        ("bahdanau2015", ["score every", "turn scores", "mix the states", "step, with the context", "the next word"]),
        ("luong2015", ["score every", "turn scores", "mix the states", "end to end", "attentional", "the next word"]),
        ("regard-small", ["query, keys", "query times each", "divide by", "turn scores", "multiply each", "sum them up", "all heads"]),
        ("vaswani2017", ["query, keys", "query times each", "divide by", "turn scores", "multiply each", "sum them up", "all heads"]),
    ],
)  # fmt: skip
def test_one_step_is_shown_card_by_card_with_its_numbers(shown, models, name, cards):
    path = models / f"{name}.regard"
    trace = pieces_of(path, TEXT, GIVEN)
    lines = shown(path, TEXT, "--force", GIVEN, "--step", 2, "--width", 120)
    text = "\n".join(lines)
    places = [text.index(card) for card in cards]
    assert places == sorted(places)
    assert "not recorded" not in text
    piece = trace.target.pieces[1]
    assert (
        f"reads '{trace.target.pieces[0].piece}', says '{piece.piece}' with probability {np.exp(piece.log_prob):.3f}"
        in text
    )
    best = piece.candidates
    for log_prob in best.log_probs[:5]:
        assert f" {np.exp(log_prob):7.4f}" in text
    cross = trace.attention("cross")
    if cross is not None:
        layer = trace.model.reading.layer
        for weight in cross.weights_LNTS[layer, 0, 1]:
            assert f" {weight:8.4f}" in text
        for score in cross.scores_LNTS[layer, 0, 1]:
            assert not np.isfinite(score) or f" {score:8.4f}" in text


def test_the_vectors_of_a_step_are_those_of_the_trace(shown, models):
    path = models / "bahdanau2015.regard"
    trace = pieces_of(path, TEXT, GIVEN)
    text = "\n".join(shown(path, TEXT, "--force", GIVEN, "--step", 3, "--width", 120))
    for symbol, name in (
        ("s_{t-1}", "attention.query"),
        ("c_t", "attention.context"),
        ("s_t", "decoder.0.state"),
    ):
        values = trace.states[name].unpack()[2]
        assert f"{symbol} = [" + " ".join(f"{value:.3f}" for value in values[:5]) in text


@pytest.mark.parametrize("name", FAMILIES)
def test_a_step_that_is_not_there_is_a_mistake(shown, refused, models, name):
    path = models / f"{name}.regard"
    last = len(pieces_of(path, TEXT, GIVEN).target.pieces)
    assert any(
        f"step {last} of {last}" in line for line in shown(path, TEXT, "--force", GIVEN, "--step", last)
    )
    for step in (0, -1, last + 1):
        told = refused(path, TEXT, "--force", GIVEN, "--step", step)
        assert f"no step {step}: the translation has {last} steps" in told


def test_a_step_of_one_layer_and_head(shown, models):
    path = models / "regard-small.regard"
    trace = pieces_of(path, TEXT, GIVEN)
    for layer, head in ((1, 1), (1, 2), (2, 2)):
        lines = shown(
            path, TEXT, "--force", GIVEN, "--step", 2, "--attention", f"cross.{layer}.{head}", "--width", 120
        )
        text = "\n".join(lines)
        assert f"layer {layer}, head {head}" in text and "not recorded" not in text
        for weight in trace.attention("cross").weights_LNTS[layer - 1, head - 1, 1]:
            assert f" {weight:8.4f}" in text


@pytest.mark.parametrize("which", ["cross.3.1", "cross.1.3", "cross.99.1", "encoder.1.1", "decoder"])
def test_a_step_of_a_layer_or_head_that_is_not_there_is_a_mistake(refused, models, which):
    for name in ("regard-small", "bahdanau2015"):
        refused(models / f"{name}.regard", TEXT, "--force", GIVEN, "--step", 1, "--attention", which)


def test_a_step_that_is_not_there_is_a_mistake_for_files_too(refused, tmp_path):
    """Or else `--step` would be passed over in silence."""
    refused(GOLDEN, TEXT, "--force", GIVEN, "--step", 99, "--svg", tmp_path / "a.svg")


# Which attention.


@pytest.mark.parametrize(
    ("which", "title"),
    [
        ("cross", "to the source, all layers, mean of heads"),
        ("cross.2", "to the source, layer 2, mean of heads"),
        ("cross.2.1", "to the source, layer 2, head 1"),
        ("encoder.1.2", "encoder, layer 1, head 2"),
        ("decoder", "decoder, all layers"),
        ("decoder.1.1", "decoder, layer 1, head 1"),
    ],
)
def test_one_attention_is_shown(shown, call, models, which, title, tmp_path):
    path = models / "regard-small.regard"
    lines = shown(path, TEXT, "--force", GIVEN, "--attention", which, "--width", 120)
    assert any(title in line for line in lines)
    assert (
        call(path, TEXT, "--force", GIVEN, "--attention", which, "--pieces", "--csv", tmp_path / "a.csv")[0]
        == 0
    )
    kind, *places = which.split(".")
    weights = pieces_of(path, TEXT, GIVEN).attention(kind).weights_LNTS
    layer, head = (
        (slice(int(one) - 1, int(one)) for one in places)
        if len(places) == 2
        else (slice(int(places[0]) - 1, int(places[0])) if places else slice(None), slice(None))
    )
    right = weights[layer, head].mean(axis=(0, 1))
    rows = list(csv.reader((tmp_path / "a.csv").read_text("utf-8").splitlines()))[1:]
    for t, row in enumerate(rows):
        for s, cell in enumerate(row[1:]):
            assert (cell == "") == (kind == "decoder" and s > t)
            assert cell == "" or float(cell) == pytest.approx(right[t, s], abs=1e-4)


@pytest.mark.parametrize(
    ("name", "which", "told"),
    [
        ("regard-small", "cros", "is not valid"),
        ("regard-small", "cross.0", "is not valid"),
        ("regard-small", "cross.-1", "is not valid"),
        ("regard-small", "cross.1.1.1", "is not valid"),
        ("regard-small", "cross.x", "is not valid"),
        ("regard-small", "cross.", "is not valid"),
        ("regard-small", "", "is not valid"),
        ("regard-small", "cross.3", "no layer 3"),
        ("regard-small", "encoder.1.3", "head 3"),
        ("regard-small", "cross.²", "is not valid"),
        ("bahdanau2015", "encoder", "no attention of kind 'encoder'"),
        ("bahdanau2015", "cross.2", "no layer 2"),
        ("sutskever2014", "cross", "no attention"),
    ],
)
def test_an_attention_that_is_not_there_is_a_mistake(refused, models, tmp_path, name, which, told):
    arguments = (models / f"{name}.regard", TEXT, "--force", GIVEN, f"--attention={which}")
    assert told in refused(*arguments)
    assert told in refused(*arguments, "--svg", tmp_path / "a.svg")


def test_a_model_without_attention_has_words_and_no_map(shown, refused, models):
    lines = shown(models / "cho2014.regard", TEXT, "--force", GIVEN)
    assert [line.split()[0] for line in lines if line.rstrip().endswith("%")] == ["it", "rains", ".", "</s>"]
    assert "no attention" in refused(models / "cho2014.regard", TEXT, "--force", GIVEN, "--scores")


# Changes.


def test_changes_change_the_trace_and_are_written_down(call, models, tmp_path):
    path, plain = models / "regard-small.regard", tmp_path / "plain.json"
    assert call(path, TEXT, "--force", GIVEN, "--json", plain)[0] == 0
    num = len(load_trace(plain).source.pieces)
    row = ",".join(["0", "1", *["0"] * (num - 2)])
    for change, written in {
        "head=cross.1.2": {"type": "head_off", "kind": "cross", "layer": 0, "head": 1},
        "head=encoder.2.1": {"type": "head_off", "kind": "encoder", "layer": 1, "head": 0},
        "mask=off": {"type": "mask_off"},
        "positions=off": {"type": "positions_off"},
        f"look=2:{row}": {"type": "look", "step": 1, "layer": None, "head": None},
        f"look=2@1:{row}": {"type": "look", "step": 1, "layer": 0, "head": None},
        f"look=2@2.1:{row}": {"type": "look", "step": 1, "layer": 1, "head": 0},
    }.items():
        code, _, err = call(path, TEXT, "--force", GIVEN, "--change", change, "--json", tmp_path / "a.json")
        assert code == 0, err
        trace = load_trace(tmp_path / "a.json")
        (told,) = trace.request.interventions
        assert told.model_dump().items() >= written.items()
        assert trace.target.log_prob != pytest.approx(load_trace(plain).target.log_prob, abs=1e-6), change


BAD_CHANGES = [
    ("regard-small", "", "is not valid"),
    ("regard-small", "head", "is not valid"),
    ("regard-small", "head=cross", "is not valid"),
    ("regard-small", "head=cross.1", "is not valid"),
    ("regard-small", "head=cross.0.1", "is not valid"),
    ("regard-small", "head=nose.1.1", "is not valid"),
    ("regard-small", "head=cross.9.1", "no layer 9"),
    ("regard-small", "head=cross.1.9", "head 9"),
    ("regard-small", "mask=on", "is not valid"),
    ("regard-small", "masks=off", "is not valid"),
    ("regard-small", "look=1", "is not valid"),
    ("regard-small", "look=0:1", "is not valid"),
    ("regard-small", "look=-1:1", "is not valid"),
    ("regard-small", "look=1:a,b", "is not valid"),
    ("regard-small", "look=1:", "is not valid"),
    ("regard-small", "look=1:1", "1 weights for step 1"),
    ("regard-small", "look=1@9:ROW", "no layer 9"),
    ("regard-small", "look=1@1.9:ROW", "head 9"),
    ("regard-small", "look=1@0:ROW", "is not valid"),
    ("regard-small", "look=99:ROW", "no step 99"),
    ("regard-small", "look=1:TWO", "sum to 2"),
    ("regard-small", "look=1:MINUS", "smallest is -1"),
    ("regard-small", "look=1:NAN", "weight"),
    ("regard-small", "look=1:INF", "weight"),
    ("bahdanau2015", "head=cross.1.1", "no heads"),
    ("bahdanau2015", "mask=off", "no mask"),
    ("bahdanau2015", "positions=off", "no positions"),
    ("sutskever2014", "look=1:ROW", "no attention"),
]


@pytest.mark.parametrize(("name", "change", "told"), BAD_CHANGES)
def test_a_change_that_cannot_be_is_a_mistake(refused, models, tmp_path, name, change, told):
    rest = ["0"] * (len(TOKENIZERS.source.encode(TEXT).ids) - 1)
    rows = {
        "ROW": ["0", "1"],
        "TWO": ["1", "1"],
        "MINUS": ["2", "-1"],
        "NAN": ["nan", "1"],
        "INF": ["inf", "0"],
    }
    for key, row in rows.items():
        change = change.replace(key, ",".join([*row, *rest]))
    arguments = (models / f"{name}.regard", TEXT, "--force", GIVEN, "--change", change)
    assert told in refused(*arguments)
    assert told in refused(*arguments, "--json", tmp_path / "a.json")


# Other mistakes.


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("missing.regard", "a"), "missing.regard"),
        ((GOLDEN, "a", "b"), "one text at a time can be shown"),
        (("a", "b"), "one text at a time can be shown"),
        (("a text", GOLDEN), "one text at a time can be shown"),
        ((GOLDEN, "le chat " * 150, "--raw"), "pieces and a picture shows no more than"),
        ((GOLDEN, TEXT, "--force", ""), "given translation is blank"),
        ((GOLDEN, TEXT, "--force", "it rains. " * 150), "given translation has"),
        ((GOLDEN, TEXT, "--force", "a", "--prefix", "a"), "leave the prefix"),
        ((GOLDEN, TEXT, "--force", "a", "--beam", "2"), "leave the prefix and the search out"),
        ((GOLDEN, TEXT, "--beam", "0"), "beam_size"),
        ((GOLDEN, TEXT, "--beam", "x"), "--beam"),
        ((GOLDEN, TEXT, "--step", "x"), "--step"),
        ((GOLDEN, TEXT, "--set", "beam_sise=2"), "beam_sise"),
        ((GOLDEN, TEXT, "--set", "nothing"), "--set nothing is not valid"),
        ((GOLDEN, TEXT, "--width", "19"), "too narrow"),
        ((GOLDEN, TEXT, "--width", "0"), "too narrow"),
        ((GOLDEN, TEXT, "--width", "-5"), "too narrow"),
        ((GOLDEN, TEXT, "--colour", "red"), "--colour"),
        ((GOLDEN, TEXT, "--nonsense"), "--nonsense"),
        ((Path(__file__), TEXT), "test_cli_show.py"),
    ],
    ids=lambda one: str(one)[-40:],
)
def test_a_mistake_is_one_line(refused, arguments, told):
    assert told in refused(*arguments)


def test_every_option_of_the_search_can_be_set(shown):
    lines = shown(GOLDEN, TEXT, "--set", "kind=sample", "--set", "seed=3")
    assert any(line.strip().startswith("sample, log-probability") for line in lines)
    (right,) = regard.load(GOLDEN).translate([TEXT], guard=False, kind="sample", seed=3)
    assert any(right.text in line for line in lines) or "�" in right.text


def test_gates_are_kept_on_request(call, models, tmp_path):
    path = models / "bahdanau2015.regard"
    for more, kept in ((), False), (("--gates",), True):
        assert call(path, TEXT, "--force", GIVEN, "--json", tmp_path / "a.json", *more)[0] == 0
        assert ("decoder.0.update" in load_trace(tmp_path / "a.json").states) == kept


def test_a_page_has_the_numbers_of_every_card(call, models, tmp_path):
    assert call(models / "regard-small.regard", TEXT, "--force", GIVEN, "--html", tmp_path / "a.html")[0] == 0
    page = (tmp_path / "a.html").read_text("utf-8")
    for name in ("query", "keys", "values", "heads"):
        assert f"cross.{name}" in page


def test_a_model_that_splits_can_be_shown(call, tmp_path):
    save_model(tmp_path / "m.regard", replace(load_model(GOLDEN), split_above=2))
    code, out, _ = call(tmp_path / "m.regard", TEXT, "--force", GIVEN, "--width", 150)
    assert code == 0 and b"note: `translate` would split" in out


# From outside.


def test_help_answers_at_once_and_without_what_is_heavy():
    code = "import sys; from regard.cli import run\ntry: run(['show', '--help'])\nexcept SystemExit: pass\nprint(*[one for one in ('torch', 'numpy', 'matplotlib', 'pydantic') if one in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    assert "--step" in done.stdout and "regard show" in done.stdout
    assert not {"torch", "numpy", "matplotlib"} & set(done.stderr.split())


def test_a_translation_is_shown_without_torch():
    code = f"import sys; from regard.cli import run\nassert run(['show', {str(GOLDEN)!r}, {TEXT!r}, '--force', {GIVEN!r}, '--effects']) == 0\nassert run(['show', {str(GOLDEN)!r}, {TEXT!r}, '--force', {GIVEN!r}, '--html', '-']) == 0\nprint(*[one for one in ('torch', 'matplotlib') if one in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0 and done.stderr.strip() == "", done.stderr
    assert "rains" in done.stdout and "</html>" in done.stdout


def test_a_terminal_that_knows_no_such_signs_is_no_reason_to_fail():
    done = subprocess.run(
        [*COMMAND, "show", GOLDEN, TEXT, "--force", GIVEN],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0 and b"rains" in done.stdout


def test_a_reader_that_goes_away_is_no_reason_for_a_traceback():
    with subprocess.Popen(
        [*COMMAND, "show", GOLDEN, TEXT, "--force", GIVEN, "--html", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()
        err = process.stderr.read()
    assert b"Traceback" not in err and process.returncode in (2, 141)
