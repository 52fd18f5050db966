"""Adapting: the new text is divided without leaks, the model is measured before and after, and none is made worse."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="training needs torch")

from test_training import Quiet, no_stages  # noqa: E402

import regard.adapt  # noqa: E402
from regard import cli  # noqa: E402
from regard.adapt import AFTER, BEFORE, AdaptRequest, adapt  # noqa: E402
from regard.corpus.suggestions import Suggestion  # noqa: E402
from regard.errors import CorpusError, OutputError, TrainingError  # noqa: E402
from regard.evaluation.run import evaluate  # noqa: E402
from regard.evaluation.testset import TestSet, read_test  # noqa: E402
from regard.modelfile import load_model, save_model, summarise  # noqa: E402
from regard.sample import read_sample  # noqa: E402
from regard.server.suggestions import Suggestions  # noqa: E402
from regard.training.stopping import Signals, Stopped  # noqa: E402


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Files with sentences of the grammar, which the bundled models do not know."""
    folder = tmp_path_factory.mktemp("corpora")
    pairs = read_sample(400)
    for name, some in (("new.tsv", pairs[:240]), ("general.tsv", pairs[240:])):
        (folder / name).write_text("".join(f"{one.source}\t{one.target}\n" for one in some), "utf-8")
    (folder / "general.txt").write_text("".join(f"{one.source}\n" for one in pairs[240:]), "utf-8")
    return folder


@pytest.fixture(autouse=True)
def few_updates(monkeypatch):
    monkeypatch.setattr(regard.adapt, "_MIN_UPDATES", 6)
    monkeypatch.setattr(regard.adapt, "_MAX_UPDATES", 6)


def rows(path):
    return [tuple(json.loads(line).values()) for line in path.read_text("utf-8").splitlines()]


def test_a_model_is_adapted_measured_and_says_so(corpora, tmp_path, capfd):
    display = Quiet()
    request = AdaptRequest(
        Path("fr-en"), (corpora / "new.tsv",), tmp_path / "m.regard", (corpora / "general.tsv",)
    )
    adapted = adapt(request, display, no_stages)
    files = {
        name: rows(request.folder / f"{name}.jsonl") for name in ("new", "test", "general", "test-general")
    }
    tests = {side for name in ("test", "test-general") for pair in files[name] for side in pair}
    assert not tests & {side for name in ("new", "general") for pair in files[name] for side in pair}
    assert len(files["test"]) == 24 and f"24 are set aside as a test in {request.folder}" in display.notes[0]
    assert adapted.trained.num_updates == 6
    assert list(adapted.tests) == ["new", "general"]
    before, after = (adapted.tests["new"].system(name).scores["bleu"].value for name in (BEFORE, AFTER))
    assert after > before
    first, model = load_model(request.start), load_model(request.out)
    assert model.card["start"]["card"] == first.card
    assert model.seen_pairs is not None
    new, general, test = (model.seen_pairs.overlap(files[name]) for name in ("new", "general", "test"))
    assert (
        new.num_seen > 0.8 * new.num_checked and general.num_seen == general.num_checked and not test.num_seen
    )
    said = model.card["adapted"]
    assert (said["from"], said["with"], said["general"]) == ("fr-en", ["new.tsv"], ["general.tsv"])
    assert said["tests"]["new"][AFTER] == after
    assert cli.run(["info", str(request.out)]) == 0
    told = capfd.readouterr().out
    assert "adapted      from fr-en with new.tsv, general.tsv" in told and f"{after:.1f} after, on 24" in told
    with pytest.raises(OutputError, match="exists already"):
        adapt(request, display, no_stages)


def test_a_model_is_adapted_to_the_suggestions_of_a_server(tmp_path, capfd):
    suggested = Suggestions(tmp_path / "corrections.db", 1000)  # the server goes on
    for one in read_sample(240):
        suggested.add(Suggestion("fr", "en", one.source, one.target), "")
        suggested.add(Suggestion("en", "fr", one.target, f"non : {one.source}"), "")
    words = [
        "adapt",
        "fr-en",
        "--with",
        str(tmp_path / "corrections.db"),
        "--out",
        str(tmp_path / "m.regard"),
    ]
    assert cli.run(words) in (0, 2)  # it may get worse
    suggested.close()
    assert "24 are set aside as a test" in capfd.readouterr().err
    assert not any("non :" in side for row in rows(tmp_path / "m.adapt" / "new.jsonl") for side in row)


def test_a_packed_model_stays_packed_and_is_measured_so(corpora, tmp_path):
    full = tmp_path / "full.regard"
    save_model(full, load_model(Path("fr-en")))
    for start, is_packed in ((Path("fr-en"), True), (full, False)):
        out, material, general = (
            tmp_path / f"{start.stem}-new.regard",
            corpora / "new.tsv",
            corpora / "general.tsv",
        )
        request = AdaptRequest(start, (material,), out, (general,))
        adapted = adapt(request, Quiet(), no_stages)
        assert summarise(start).is_packed == summarise(request.out).is_packed == is_packed
        again = evaluate([request.out], adapt_test(request))
        assert again.systems[0].texts == adapted.tests["new"].system(AFTER).texts
        measured, written = load_model(request.folder / "part-way.regard"), load_model(request.out)
        assert all((measured.weights[name] == weight).all() for name, weight in written.weights.items())
    assert 3 * (tmp_path / "fr-en-new.regard").stat().st_size < (tmp_path / "full-new.regard").stat().st_size


def adapt_test(request):
    return read_test([request.folder / "test.jsonl"], "fr", "en")


@pytest.mark.parametrize("general", ["general.txt", None])
def test_the_model_translates_general_text_itself(corpora, tmp_path, general, capfd):
    asked = [] if general is None else ["--general", str(corpora / general)]
    words = ["adapt", "fr-en", "--with", str(corpora / "new.tsv"), "--time", "3s"]
    assert cli.run([*words, "--out", str(tmp_path / "m.regard"), *asked]) in (0, 2)  # it may get worse
    told = capfd.readouterr()
    known = {one.source for one in read_sample(400)[slice(240, None) if general else slice(0, 240)]}
    mixed = rows(tmp_path / "m.adapt" / "general.jsonl")
    assert mixed and {source for source, _ in mixed} <= known
    assert "model translates them" in told.err
    assert "general text was not measured" in told.out or "not written" in told.err
    assert ("wrote" in told.out) == (tmp_path / "m.regard").exists()


def test_a_worse_model_is_refused():
    test = TestSet.of(["a", "b"], ["the cat sleeps now", "a dog eats here"])
    same = list(test.references)
    worse = evaluate({}, test, given={BEFORE: same, AFTER: ["the cat sleeps now", "no"]})
    with pytest.raises(TrainingError, match=r"from 100\.0 to"):
        regard.adapt._refuse_worse(worse)
    regard.adapt._refuse_worse(evaluate({}, test, given={BEFORE: same, AFTER: same}))


def test_mistakes_show_before_the_work(corpora, tmp_path):
    few = tmp_path / "few.tsv"
    few.write_text("".join((corpora / "new.tsv").read_text("utf-8").splitlines(keepends=True)[:100]), "utf-8")
    request = AdaptRequest(Path("fr-en"), (few,), tmp_path / "m.regard")
    with pytest.raises(CorpusError, match="at least 200 are needed"):
        adapt(request, Quiet(), no_stages)
    signals = Signals()
    signals.number = 15
    with pytest.raises(Stopped, match="the same command goes on"):
        adapt(request, Quiet(), no_stages, signals)
    with pytest.raises(OutputError, match="with an ending"):
        adapt(replace(request, out=tmp_path / "m"), Quiet(), no_stages)
