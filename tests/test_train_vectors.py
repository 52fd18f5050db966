"""Training with pre-trained vectors: they are in the model, frozen ones stay to the last bit, mistakes show early."""

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch")

from test_training import assert_same_end, call, request_for, run  # noqa: E402

from regard.errors import ConfigError, CorpusError, ModelFileError, RegardError  # noqa: E402
from regard.modelfile import load_model, save_model  # noqa: E402
from regard.text.vectors import vectors_for  # noqa: E402
from regard.training.request import VectorFiles  # noqa: E402


def write_vectors(path, words, width=8, seed=1):
    """Small random vectors for some words, in the form of fastText."""
    rows = np.random.default_rng(seed).normal(0, 0.3, (len(words), width))
    lines = (f"{word} {' '.join(f'{x:.4f}' for x in row)}\n" for word, row in zip(words, rows, strict=True))
    path.write_text(f"{len(words)} {width}\n" + "".join(lines), "utf-8")
    return path


@pytest.fixture(scope="module")
def vectors(corpus, tmp_path_factory):
    """A file of vectors for each side, with two in three of its words."""
    folder = tmp_path_factory.mktemp("vectors")
    files = []
    for path, seed in zip(corpus, (1, 2), strict=True):
        words = sorted({word.strip(".,?!").lower() for word in path.read_text("utf-8").split()} - {""})
        kept = [word for number, word in enumerate(words) if number % 3]
        files.append(write_vectors(folder / f"some.{path.suffix[1:]}.vec", kept, seed=seed))
    return VectorFiles(*files)


def request_with(corpus, out, files, family="transformer", steps=8, **train_options):
    return replace(request_for(corpus, out, family, steps, **train_options), vectors=files)


def rows_of(model, side, path):
    """The rows of a side's matrix that a file has vectors for, with those vectors."""
    tokenizer = getattr(model.tokenizers, side)
    found = vectors_for(path, tokenizer)
    name = "source.weight" if side == "source" or "target.weight" not in model.weights else "target.weight"
    return model.weights[name][found.found], found.table[found.found]


@pytest.mark.parametrize(
    ("family", "choice"),
    [
        ("transformer", {}),
        ("bahdanau", {"average": {"kind": "snapshots", "num_snapshots": 3}, "valid_steps": 2}),
        ("luong", {"optimiser": {"kind": "sgd", "rate": 0.1, "momentum": 0.9}}),
        ("bahdanau", {"optimiser": {"kind": "adamw", "rate": 0.01, "weight_decay": 0.1}}),
        ("bahdanau", {"optimiser": "adadelta"}),
    ],
    ids=["moving", "snapshots", "sgd", "adamw", "adadelta"],
)
def test_frozen_vectors_are_those_of_the_file_to_the_last_bit(corpus, tmp_path, vectors, family, choice):
    request = request_with(corpus, tmp_path / "m.regard", replace(vectors, freeze=True), family, **choice)
    run(request)
    model = load_model(request.out)
    held, wanted = rows_of(model, "target", vectors.target)
    assert len(wanted) > 20
    np.testing.assert_array_equal(held, wanted)
    if (
        "target.weight" in model.weights
    ):  # one matrix for both: where both files have a word, the target's counts
        np.testing.assert_array_equal(*rows_of(model, "source", vectors.source))
    random = request_for(corpus, tmp_path / "random.regard", family, steps=1, optimiser={"rate": 1e-9})
    run(random)
    first = load_model(random.out).weights["source.weight"]
    learnt_V = (np.abs(model.weights["source.weight"] - first) > 1e-6).any(1) & ~model.frozen["source.weight"]
    assert learnt_V.any()


def test_tuned_vectors_start_as_those_of_the_file_and_are_learnt(corpus, tmp_path, vectors):
    still = request_with(corpus, tmp_path / "a.regard", vectors, "bahdanau", 1, optimiser={"rate": 1e-9})
    moved = request_with(corpus, tmp_path / "b.regard", vectors, "bahdanau")
    for request in (still, moved):
        run(request)
    for side in ("source", "target"):
        held, wanted = rows_of(load_model(still.out), side, getattr(vectors, side))
        np.testing.assert_allclose(held, wanted, atol=1e-6)
        held, wanted = rows_of(load_model(moved.out), side, getattr(vectors, side))
        assert (np.abs(held - wanted) > 1e-4).any()
    assert not load_model(moved.out).frozen


@pytest.mark.parametrize("freeze", [True, False])
def test_a_resumed_run_with_vectors_is_the_run_never_stopped(corpus, tmp_path, vectors, freeze):
    whole, broken = (
        request_with(corpus, tmp_path / name, replace(vectors, freeze=freeze), average="snapshots")
        for name in ("a.regard", "b.regard")
    )
    run(whole)
    for stop in (1, 6):
        with pytest.raises(KeyboardInterrupt):
            run(broken, end_at=stop)
    run(broken)
    assert_same_end(whole, broken)
    model, other = load_model(whole.out), load_model(broken.out)
    assert model.frozen.keys() == other.frozen.keys() == ({"source.weight"} if freeze else set())


def test_how_many_pieces_were_found_is_told_and_written_down(corpus, tmp_path, vectors, capsys):
    request = request_with(corpus, tmp_path / "m.regard", replace(vectors, freeze=True), steps=1)
    _, display = run(request)
    model = load_model(request.out)
    found = vectors_for(vectors.source, model.tokenizers.source).coverage
    told = f"source vectors some.fr.vec: {found.num_found} of {found.num_coverable} whole-word pieces found"
    assert any(note.startswith(told) for note in display.notes), display.notes
    num_frozen = int(model.frozen["source.weight"].sum())
    assert f"{num_frozen} word vectors are frozen" in display.notes
    source, target = model.card["data"]["vectors"]
    assert source["side"] == "source" and source["num_found"] == found.num_found and source["frozen"]
    assert target["side"] == "target" and target["name"] == "some.en.vec"
    from regard.cli import main

    with pytest.raises(SystemExit):
        main(["info", str(request.out)])
    assert f"{found.num_found} of {found.num_coverable} whole-word pieces" in capsys.readouterr().out


def test_vectors_stay_frozen_in_a_training_that_begins_with_the_model(corpus, tmp_path, vectors):
    first = request_with(corpus, tmp_path / "first.regard", replace(vectors, freeze=True), "bahdanau", 2)
    run(first)
    frozen = load_model(first.out).frozen

    def goes_on(name, files):
        request = replace(
            first, out=tmp_path / name, start=first.out, preset=None, options={"train": {"steps": 4}}, vectors=files
        )  # fmt: skip
        _, display = run(request)
        return load_model(request.out), display.notes

    kept, notes = goes_on("kept.regard", VectorFiles())
    assert f"{sum(int(rows.sum()) for rows in frozen.values())} word vectors are frozen" in notes
    for side in ("source", "target"):
        np.testing.assert_array_equal(*rows_of(kept, side, getattr(vectors, side)))
        np.testing.assert_array_equal(kept.frozen[f"{side}.weight"], frozen[f"{side}.weight"])
    freed, _ = goes_on("freed.regard", VectorFiles(freeze=False))
    held, wanted = rows_of(freed, "source", vectors.source)
    assert (held != wanted).any() and not freed.frozen
    again, _ = goes_on(
        "again.regard", VectorFiles(source=vectors.target, freeze=True)
    )  # other vectors, laid over
    np.testing.assert_array_equal(*rows_of(again, "source", vectors.target))


@pytest.mark.parametrize(
    ("words", "width", "options", "message"),
    [
        (["le", "chat"], 5, {}, "vectors of 5 numbers, where the model has model.hidden_size = 8"),
        (["le", "chat"], 5, {"preset": "regard-rnn", "options": {}}, "give --set model.embedding_size=5"),
        (["kissa", "koira"], 8, {}, "none of its 2 words is among the"),
        (["a"], 8, {"options": {"tokenizer": {"kind": "character"}, "model": {"hidden_size": 8}}}, "knows letters only"),
    ],
)  # fmt: skip
def test_vectors_that_do_not_fit_are_refused_and_nothing_is_left(
    corpus,
    tmp_path,
    words,
    width,
    options,
    message,
):
    files = VectorFiles(source=write_vectors(tmp_path / "v.vec", words, width))
    with pytest.raises(RegardError, match=message):
        run(replace(request_with(corpus, tmp_path / "m.regard", files), **options))
    assert [path.name for path in tmp_path.iterdir()] == ["v.vec"]


def test_the_width_is_checked_once_the_model_is_chosen_by_the_size_of_the_corpus(corpus, tmp_path):
    files = VectorFiles(target=write_vectors(tmp_path / "v.vec", ["the", "is"], 256))
    request = replace(request_with(corpus, tmp_path / "m.regard", files), preset=None, options={})
    with pytest.raises(
        ConfigError, match=r"v.vec: vectors of 256 numbers, where the model has model.hidden_size = 128"
    ):
        run(request)


def test_a_missing_file_and_a_wish_without_vectors_are_named(corpus, tmp_path):
    with pytest.raises(CorpusError, match=r"gone.vec: cannot be opened"):
        run(request_with(corpus, tmp_path / "m.regard", VectorFiles(source=tmp_path / "gone.vec")))
    with pytest.raises(ConfigError, match="--freeze-vectors needs vectors; give --source-vectors"):
        run(request_with(corpus, tmp_path / "m.regard", VectorFiles(freeze=True)))
    assert not list(tmp_path.iterdir())


def test_other_vectors_in_the_same_place_are_refused(corpus, tmp_path, vectors):
    request = request_with(corpus, tmp_path / "m.regard", vectors, steps=2)
    run(request)
    for other, key in ((replace(vectors, freeze=True), "freeze"), (replace(vectors, target=None), "target")):
        with pytest.raises(ConfigError, match=rf"other settings \(vectors.{key}"):
            run(replace(request, vectors=other))


def test_a_model_file_keeps_which_rows_are_frozen(corpus, tmp_path, vectors):
    request = request_with(corpus, tmp_path / "m.regard", replace(vectors, freeze=True), steps=1)
    run(request)
    model = load_model(request.out)
    save_model(tmp_path / "copy.regard", model)
    assert (tmp_path / "copy.regard").read_bytes() == request.out.read_bytes()
    with pytest.raises(ModelFileError, match=r"frozen rows of 'no\.weight' that it does not have"):
        save_model(tmp_path / "bad.regard", replace(model, frozen={"no.weight": np.ones(9, bool)}))
        load_model(tmp_path / "bad.regard")


@pytest.mark.slow
def test_the_command_takes_vectors(corpus, tmp_path, vectors):
    code, said = call(
        *corpus, "--out", "m.regard", "--steps", "2", "--set", "model.hidden_size=8", "--source-vectors",
        vectors.source, "--target-vectors", vectors.target, "--freeze-vectors", folder=tmp_path,
    )  # fmt: skip
    assert code == 0 and "whole-word pieces found" in said and "word vectors are frozen" in said, said
    assert json.loads((tmp_path / "m.run" / "run.json").read_text())["request"]["vectors"]["freeze"] is True
    code, said = call(*corpus, "--out", "n.regard", "--source-vectors", "gone.vec", folder=tmp_path)
    assert code == 2 and said.count("\n") == 1 and "gone.vec: cannot be opened" in said, said
