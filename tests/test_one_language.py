"""Pairs in one language, such as texts and their headlines: nothing takes them for bad translations."""

import json
from dataclasses import replace

import pytest
from small import random_weights, shrink

import regard
from regard.corpus.checks import COMPARING
from regard.corpus.clean import clean
from regard.corpus.inspect import inspect
from regard.corpus.language_codes import one_language
from regard.corpus.read import open_corpus
from regard.loaded import Loaded
from regard.model.presets import preset
from regard.modelfile import ModelFile, load_model
from regard.options.text import SubwordOptions
from regard.sample import read_sample
from regard.text.tokenizer import TokenizerPair
from regard.trace.make import Tracer
from regard.translate.guard import judge_alone
from regard.translate.translator import Translator

SENTENCES = [pair.target for pair in read_sample(900)]
ODD = [
    ("The house was sold in 1999 for 300 pounds.", "Sold for 12"),  # numbers
    ("It rains.", "It rains."),  # copy
    (" ".join(SENTENCES[:40]), "Much happened"),  # length
    ("Press <b>here</b> to go on.", "Go on"),  # markup
]


def pairs():
    """Texts of two sentences with the first words of the first as headline, and some odd ones."""
    texts = [f"{first} {second}" for first, second in zip(SENTENCES[::2], SENTENCES[1::2], strict=True)]
    plain = [(text, " ".join(text.split()[:3])) for text in texts]
    return [*plain[:200], *ODD, *plain[200:]]


@pytest.fixture
def files(tmp_path):
    paths = tmp_path / "text.en", tmp_path / "headline.en"
    for path, side in zip(paths, (0, 1), strict=True):
        path.write_text("".join(pair[side] + "\n" for pair in pairs()), "utf-8")
    return paths


@pytest.mark.parametrize(
    ("source", "target", "one"),
    [("en", "en", True), ("en-GB", "en_us", True), ("en", "fr", False), ("en", None, False), (None, None, False)],
)  # fmt: skip
def test_regions_of_a_language_are_one_language_and_what_is_not_known_is_not(source, target, one):
    assert one_language(source, target) == one


def test_rules_that_expect_a_translation_are_not_used(files):
    report = inspect(open_corpus(files))
    assert not {problem.rule for problem in report.problems} & {*COMPARING, "shift"}
    assert not report.unrelated
    assert any("both sides are in 'en', so these are no translations" in note for note in report.notes)


def test_the_same_pairs_are_bad_translations(files):
    as_translations = replace(open_corpus(files), source_language=None, target_language="fr")
    found = {problem.rule for problem in inspect(as_translations).problems}
    assert {"copy", "numbers", "markup"} <= found


def test_two_files_of_an_unnamed_language_are_recognised(files, tmp_path):
    plain = [path.rename(path.with_suffix(".txt")) for path in files]
    report = inspect(open_corpus(plain))
    assert (report.source_language, report.target_language) == ("en", "en")
    assert "copy" not in {problem.rule for problem in report.problems}


def test_headlines_that_share_no_word_with_their_texts_are_not_refused(tmp_path):
    paths = tmp_path / "text.en", tmp_path / "headline.en"
    paths[0].write_text("".join(f"{text}\n" for text in SENTENCES[:400]), "utf-8")
    paths[1].write_text("".join(f"Wow {number % 7} {number % 11}\n" for number in range(400)), "utf-8")
    report = inspect(open_corpus(paths))
    assert not report.unrelated
    assert any("too few words in common" in note for note in report.notes)


def test_a_clean_copy_keeps_both_sides_apart(files, tmp_path):
    corpus = open_corpus(files)
    clean(corpus, inspect(corpus), tmp_path / "clean.jsonl")
    first = json.loads((tmp_path / "clean.jsonl").read_text("utf-8").splitlines()[0])
    assert first == {"source": pairs()[0][0], "target": pairs()[0][1]}


@pytest.fixture(scope="module")
def model_file():
    tokenizers = TokenizerPair.learn(SENTENCES, SENTENCES, SubwordOptions(vocab_size=500))
    options = shrink(preset("regard-small"))
    weights = random_weights(options, tokenizers.source.vocab_size, tokenizers.target.vocab_size)
    return ModelFile(options, weights, tokenizers, "en", "en", {}, {}, split_above=200)


def test_a_text_is_read_whole_and_not_compared_with_its_source(model_file):
    text = f"{SENTENCES[0]} {SENTENCES[1]} It costs 1234 pounds."
    (translation,) = Translator.of(model_file).translate([text])
    assert len(translation.parts) == 1
    assert set(translation.flags) <= {"cut", "loops", "empty"}
    (other,) = Translator.of(replace(model_file, target_language="fr")).translate([text])
    assert len(other.parts) > 1 and "length" in other.flags


def test_a_text_longer_than_the_model_has_learnt_is_still_split(model_file):
    text = " ".join(SENTENCES[:30])
    (translation,) = Translator.of(model_file).translate([text])
    assert len(translation.parts) > 1 and "split" in translation.flags


def test_what_is_shown_is_what_is_translated(model_file):
    text = f"{SENTENCES[0]} {SENTENCES[1]}"
    (translation,) = Translator.of(model_file).translate([text])
    traces = Tracer(Loaded.of(model_file)).traces(text)
    assert [trace.target.text for trace in traces] == [translation.text]


@pytest.mark.parametrize(
    ("text", "ids", "complete", "flags"),
    [
        ("", [], True, ("empty",)),
        ("a", [300], True, ()),
        ("a", [300], False, ("cut",)),
        ("aaaa", [300] * 12, True, ("loops",)),
    ],
)
def test_only_what_is_wrong_by_itself_is_flagged(text, ids, complete, flags):
    verdict = judge_alone(text, ids, complete)
    assert verdict.flags == flags and not verdict.grave


@pytest.mark.slow
def test_headlines_are_trained_on_translated_and_evaluated(files, tmp_path, capsys):
    pytest.importorskip("torch", reason="training needs torch")
    regard.train(
        *files, out=tmp_path / "m.regard", preset="regard-rnn", tokenizer={"vocab_size": 400},
        model={"hidden_size": 8, "embedding_size": 8}, train={"steps": 2},
    )  # fmt: skip
    card = load_model(tmp_path / "m.regard").card
    assert card["data"]["num_removed"] == {} and card["data"]["num_read"] == len(pairs())
    from regard.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["evaluate", str(tmp_path / "m.regard"), *map(str, files)])
    assert not ended.value.code and "chrF2" in capsys.readouterr().out
