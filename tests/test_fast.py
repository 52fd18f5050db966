"""The engine of the extra `[fast]`: the same results as NumPy, and NumPy where it cannot be used."""

import importlib.metadata
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small import VOCAB, all_of, random_weights, shrink

import regard
from regard import engines
from regard.alignment.reading import Reading
from regard.engines import NUMPY, Compute
from regard.errors import ConfigError
from regard.fast import choice, searcher
from regard.fast.convert import convert
from regard.fast.searcher import FastSearcher, Library
from regard.loaded import Loaded
from regard.modelfile import load_model
from regard.options.model import LearnedPositions, TransformerOptions
from regard.options.search import BeamOptions, RiskOptions, SampleOptions
from regard.runtime.build import build_engine
from regard.search.searcher import Query, StepSearcher
from regard.starter import bundled
from regard.translate.translator import IN_THIS_THREAD, Translator, make_pool
from regard.vocabulary import NUM_RESERVED

pytest.importorskip("ctranslate2", reason="the extra [fast] is not installed")

TEXTS = {
    "fr-en": [
        "Je suis étudiant.",
        "Le chat noir dort sur le canapé, et le chien regarde par la fenêtre.",
        "Il a acheté 3 pommes à 4,50 euros.",
        "Où est la gare ?",
        "LE TRAIN PART À HUIT HEURES.",
        "Nous avons mangé du pain. Puis nous sommes partis.",
        "Voir https://example.org pour plus d'informations.",
        "bonjour",
    ],
    "en-fr-transformer": [
        "I am a student.",
        "A man in a blue shirt is riding a red bike down the street.",
        "Thanks!",
    ],
}


@pytest.fixture(scope="module", params=TEXTS)
def both(request):
    """A bundled model on both engines, and texts for it."""
    fast, slow = (Loaded.open(request.param, compute=Compute(engine)) for engine in ("ctranslate2", "numpy"))
    assert isinstance(fast.searcher, FastSearcher) and isinstance(slow.searcher, StepSearcher)
    return fast, slow, TEXTS[request.param]


def queries(loaded, texts):
    source = loaded.tokenizers.source
    return [Query(ids) for ids in source.encode_batch(list(map(loaded.tokenizers.clean_source, texts)))]


def designs():
    runs = {"source": "tokens", "decoder_self": "attention"}  # CTranslate2 has no others
    small = [
        shrink(one)
        for one in all_of(TransformerOptions)
        if runs == {"source": one.source.kind, "decoder_self": one.decoder_self}
    ]
    seen = {(one.norm, one.positions.kind, one.tie): one for one in small}
    others = {(one.norm, one.activation, one.biases): one for one in small}
    return [*seen.values(), *others.values()]


@pytest.mark.parametrize(
    "options",
    designs(),
    ids=lambda one: f"{one.norm}-{one.positions.kind}-{one.tie}-{one.activation}-{one.biases}",
)
@pytest.mark.parametrize("reading", [Reading(-1, None, False), Reading(0, 1, False)], ids=["mean", "head"])
def test_a_converted_model_computes_the_same_probabilities_and_attention(options, reading):
    weights = random_weights(options)
    steps = StepSearcher(build_engine(options, weights), reading, None)
    translator = Library(convert(options, weights, reading), "float32", 1).open()
    random = np.random.default_rng(3)
    sources = [NUM_RESERVED + random.integers(0, 10, length) for length in (1, 4, 7)]
    names = [[*map(str, source), "2"] for source in sources]
    for result, name, source in zip(
        translator.translate_batch(
            names, beam_size=1, max_batch_size=1, max_decoding_length=6, return_attention=True
        ),
        names,
        sources,
        strict=True,
    ):
        said = result.hypotheses[0]
        (scored,) = translator.score_batch([name], [said])
        (ours,) = steps.force([source], [np.array(list(map(int, said)))])
        np.testing.assert_allclose(scored.log_probs, ours.log_probs, atol=2e-4)
        np.testing.assert_allclose(result.attention[0], ours.attention_TS[: len(said)], atol=1e-5)


@pytest.mark.parametrize("asked", [{"beam_size": 1}, {}, {"beam_size": 3, "length_penalty": 0.6}], ids=str)
@pytest.mark.parametrize("num_best", [1, 3])
def test_translations_are_those_of_numpy(both, asked, num_best):
    fast, slow, texts = both
    if num_best > asked.get("beam_size", 5):
        return
    theirs = Translator(fast, IN_THIS_THREAD).translate(texts, num_best=num_best, **asked)
    ours = Translator(slow, IN_THIS_THREAD).translate(texts, num_best=num_best, **asked)
    for one, other in zip(theirs, ours, strict=True):
        assert (one.text, one.flags, one.words) == (other.text, other.flags, other.words)
        assert one.score == pytest.approx(other.score, abs=1e-3)
        assert [x.text for x in one.alternatives] == [x.text for x in other.alternatives]
        for part, twin in zip(one.parts, other.parts, strict=True):
            assert (part.pieces, part.spans, part.complete) == (twin.pieces, twin.spans, twin.complete)
            np.testing.assert_allclose(part.log_probs, twin.log_probs, atol=1e-3)
            np.testing.assert_allclose(part.attention_TS, twin.attention_TS, atol=1e-4)


@pytest.mark.parametrize("beam_size", [1, 5])
def test_ctranslate2_does_most_of_the_work(both, beam_size):
    fast, _, texts = both
    found = fast.searcher.search(queries(fast, texts), BeamOptions(beam_size=beam_size))
    assert sum(one.margin is None for one in found) > len(texts) / 2


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("beam_size", [1, 5])
def test_a_sentence_has_the_same_bits_alone_and_in_company(precision, beam_size):
    loaded = Loaded.open("fr-en", compute=Compute(precision=precision))
    asked, options = queries(loaded, TEXTS["fr-en"]), BeamOptions(beam_size=beam_size)
    together = loaded.searcher.search(asked, options)
    alone = [loaded.searcher.search([query], options)[0] for query in asked]
    for one, other in zip(together, alone, strict=True):
        if one.margin is None:
            (first, second) = one.hypotheses[0], other.hypotheses[0]
            assert (first.ids, first.log_probs) == (second.ids, second.log_probs)
            assert np.array_equal(first.attention_TS, second.attention_TS)
        else:  # of NumPy, which says by itself when company matters
            assert one.in_doubt or one.hypotheses[0].ids == other.hypotheses[0].ids


@pytest.mark.parametrize("fork", [False, True])
def test_threads_and_forked_processes_find_the_same(both, fork):
    fast, slow, texts = both

    def pool(work, *, much):
        return make_pool(work, much=True, num_workers=2, fork=fork)

    many = texts * 5
    expected = [one.text for one in Translator(slow, IN_THIS_THREAD).translate(many)]
    Translator(fast, IN_THIS_THREAD).translate(texts[:1])  # CTranslate2 has threads before the fork
    assert [one.text for one in Translator(fast, pool).translate(many)] == expected


@pytest.mark.parametrize(
    "options",
    [
        BeamOptions(no_repeat_ngram=2),
        BeamOptions(coverage_penalty=0.2),
        BeamOptions(diversity=0.5),
        BeamOptions(max_ratio=0.1, extra_tokens=1),
        SampleOptions(temperature=0.7),
        RiskOptions(num_samples=4),
    ],
    ids=str,
)
def test_what_ctranslate2_cannot_do_goes_to_numpy(both, options):
    fast, slow, texts = both
    theirs, ours = (one.searcher.search(queries(one, texts[:3]), options) for one in (fast, slow))
    assert [one.hypotheses[0].ids for one in theirs] == [one.hypotheses[0].ids for one in ours]
    assert [one.margin for one in theirs] == [one.margin for one in ours]


class Refusing:
    """An engine that cannot be used."""

    max_tokens = None

    def start(self, batch, probe=None):
        raise AssertionError("NumPy was asked")


@pytest.mark.parametrize("max_logits", [1, searcher._MAX_LOGITS], ids=["one at a time", "as usual"])
def test_many_sentences_are_searched_greedily_in_batches_with_numpys_margins(both, max_logits, monkeypatch):
    monkeypatch.setattr(searcher, "_MAX_LOGITS", max_logits)
    fast, slow, texts = both
    asked, options = queries(fast, (texts * 20)[:20]), BeamOptions(beam_size=1)
    together = fast.searcher.watched_by(Refusing()).search(asked, options)
    for one, other in zip(together, slow.searcher.search(asked, options), strict=True):
        first, second = one.hypotheses[0], other.hypotheses[0]
        assert (first.ids, first.complete) == (second.ids, second.complete)
        assert one.margin == pytest.approx(other.margin, abs=1e-4)
        np.testing.assert_allclose(first.log_probs, second.log_probs, atol=1e-4)
        np.testing.assert_allclose(first.attention_TS, second.attention_TS, atol=1e-5)
    alone = [fast.searcher.search([query], options)[0] for query in asked[: len(texts)]]
    assert [one.hypotheses[0].ids for one in alone] == [
        one.hypotheses[0].ids for one in together[: len(texts)]
    ]


def test_many_beams_are_searched_by_numpy_unless_ctranslate2_was_asked_for(both):
    fast, _, texts = both
    asked, options = queries(fast, (texts * 8)[:8]), BeamOptions(beam_size=2)
    named, usual = fast.searcher, replace(fast.searcher, is_named=False)
    assert named.is_named and not Loaded.open("fr-en").searcher.is_named
    theirs, ours = named.search(asked, options), usual.search(asked, options)
    assert any(one.margin is None for one in theirs) and not any(one.margin is None for one in ours)
    assert [one.hypotheses[0].ids for one in theirs] == [one.hypotheses[0].ids for one in ours]
    assert any(one.margin is None for one in usual.search(asked[:7], options))
    assert any(one.margin is None for one in usual.search(asked, options, 2))


@pytest.mark.parametrize("has_small_kernels", [False, True])
def test_a_large_model_is_left_to_numpy_where_that_is_as_fast(has_small_kernels, monkeypatch):
    monkeypatch.setattr(choice, "_LARGE", 1_000_000)
    monkeypatch.setattr(choice, "has_small_kernels", lambda: has_small_kernels)
    usual = Loaded.open("fr-en")
    assert usual.used.engine == ("numpy" if has_small_kernels else "ctranslate2")
    assert ("1,000,000 weights" in usual.used.why) == has_small_kernels
    assert Loaded.open("fr-en", compute=Compute("ctranslate2")).used.engine == "ctranslate2"


def test_batches_of_a_large_vocabulary_are_searched_by_numpy(both, monkeypatch):
    monkeypatch.setattr(searcher, "_MAX_VOCAB", 10)
    fast, _, texts = both
    asked, options = queries(fast, (texts * 20)[:20]), BeamOptions(beam_size=1)
    with pytest.raises(AssertionError, match="NumPy was asked"):
        fast.searcher.watched_by(Refusing()).search(asked, options)


def test_prefixes_and_given_translations_go_to_numpy(both):
    fast, slow, texts = both
    theirs, ours = Translator(fast), Translator(slow)
    begun = [one.translate(texts[:1], prefixes=["Le"])[0] for one in (theirs, ours)]
    assert begun[0].text == begun[1].text and begun[0].text.startswith("Le")
    forced = [one.force(texts[:1], ["A student."])[0].log_prob for one in (theirs, ours)]
    assert forced[0] == forced[1]


def test_a_source_longer_than_the_converted_positions_goes_to_numpy():
    loaded = Loaded.open("fr-en")
    long = Query(np.full(1100, NUM_RESERVED + 50))
    (found,) = loaded.searcher.search([long], BeamOptions(beam_size=1, max_ratio=0.001, extra_tokens=2))
    assert found.margin is not None


def test_learned_positions_limit_both_engines_alike():
    options = shrink(TransformerOptions(positions=LearnedPositions()))
    weights = random_weights(options)
    converted = convert(options, weights, Reading(-1, None, False))
    assert converted.max_tokens == build_engine(options, weights).max_tokens == 16
    assert len(weights["source.weight"]) == VOCAB


def test_recurrent_models_and_ensembles_compute_in_numpy():
    assert Loaded.open("fr-en-rnn").used.engine == "numpy"
    path = bundled()["fr-en"]
    together = Loaded.open(path, path)
    assert together.used.engine == "numpy" and "together" in together.used.why
    for models in (["fr-en-rnn"], [path, path]):
        with pytest.raises(ConfigError, match="ctranslate2 cannot be used"):
            Loaded.open(*models, compute=Compute("ctranslate2"))
        with pytest.raises(ConfigError, match="ctranslate2 cannot be used"):
            Loaded.open(*models, compute=Compute(precision="int8"))


def test_int8_says_nearly_what_float32_says():
    exact, rough = regard.load("fr-en"), regard.load("fr-en", precision="int8")
    assert rough.model.used.precision == "int8" and exact.model.used.precision == "float32"
    pairs = zip(exact.translate(TEXTS["fr-en"]), rough.translate(TEXTS["fr-en"]), strict=True)
    assert sum(one.text == other.text for one, other in pairs) >= len(TEXTS["fr-en"]) / 2


def test_a_trace_of_a_fast_translator_shows_its_translation():
    fast = regard.load("fr-en")
    assert fast.model.used.engine == "ctranslate2"
    trace = regard.show(fast, "je suis étudiant")
    (said,) = fast.translate(["je suis étudiant"])
    assert json.loads(trace.to_json())["target"]["text"] == said.text


def test_unknown_engines_and_precisions_are_named():
    with pytest.raises(ConfigError, match="engine = 'gpu' is not valid; use auto, numpy, ctranslate2"):
        regard.load("fr-en", engine="gpu")
    with pytest.raises(ConfigError, match="precision = 'int4'"):
        regard.load("fr-en", precision="int4")
    with pytest.raises(ConfigError, match="needs the engine ctranslate2"):
        regard.load("fr-en", engine="numpy", precision="int8")


def test_without_ctranslate2_numpy_is_used_and_a_named_engine_refused(monkeypatch):
    def absent(name, version=importlib.metadata.version):
        if name == "ctranslate2":
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    engines.fault.cache_clear()
    try:
        model = load_model(bundled()["fr-en"])
        used = Loaded.of(model).used
        assert used.engine == "numpy" and "[fast]" in used.why
        with pytest.raises(ConfigError, match=r"not installed.*\[fast\]"):
            Loaded.of(model, compute=Compute("ctranslate2"))
        assert Loaded.of(model, compute=NUMPY).used.why == "asked for"
    finally:
        engines.fault.cache_clear()


def another_ctranslate2(folder, version, code):
    """Put another CTranslate2 in front of the installed one; returns the environment that finds it."""
    (folder / "ctranslate2").mkdir()
    (folder / "ctranslate2" / "__init__.py").write_text(code)
    (folder / f"ctranslate2-{version}.dist-info").mkdir()
    (folder / f"ctranslate2-{version}.dist-info" / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: ctranslate2\nVersion: {version}\n"
    )
    source = str(Path(regard.__file__).parents[1])
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), source]),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }


def translate(environment, *more):
    command = [sys.executable, "-m", "regard", "translate", "fr-en", "bonjour", *more]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize(
    ("version", "code", "told"),
    [
        ("4.0.0", "", "CTranslate2 4.0.0 is older than 4.8.1"),
        ("4.8.4", "import os, signal; os.kill(os.getpid(), signal.SIGILL)", "dies with SIGILL"),
        ("4.8.4", "raise ImportError('no such library')", "no such library"),
        ("4.8.4", "", "fails on this machine"),
    ],
    ids=["old", "illegal instruction", "broken", "hollow"],
)
def test_a_broken_ctranslate2_is_said_once_and_numpy_used(tmp_path, version, code, told):
    environment = another_ctranslate2(tmp_path, version, code)
    done = translate(environment)
    assert done.returncode == 0 and done.stdout.strip()
    (line,) = done.stderr.splitlines()
    assert told in line and "NumPy is used instead" in line
    named = translate(environment, "--engine", "ctranslate2")
    assert named.returncode == 2 and not named.stdout
    (line,) = named.stderr.splitlines()
    assert told in line and "cannot be used" in line


def test_a_cache_folder_that_cannot_be_written_only_costs_time(tmp_path):
    (tmp_path / "cache").write_text("a file")
    done = translate({**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}, "--engine", "ctranslate2")
    assert done.returncode == 0 and not done.stderr and done.stdout.strip()


def test_the_note_of_a_probe_holds_nothing_that_is_believed(tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    assert translate(environment).returncode == 0
    (note,) = (tmp_path / "regard").iterdir()
    note.write_bytes(b"\x80\x04import os")
    assert translate(environment).stdout == translate({**os.environ}).stdout


def test_the_command_says_which_engine_is_used():
    for model, expected in (("fr-en", "CTranslate2 4."), ("fr-en-rnn", "NumPy, float32 (")):
        done = subprocess.run([sys.executable, "-m", "regard", "info", model], capture_output=True, text=True)
        assert f"engine       {expected}" in done.stdout
