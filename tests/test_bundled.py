"""The models that ship: whole, small, with cards that say what they are, and able to do what the demo shows."""

from pathlib import Path

import pytest

import regard
from regard.cli.demo import SENTENCES, SHORT
from regard.modelfile import load_model
from regard.starter import bundled

TRANSFORMERS = {"fr-en": ("fr", "en"), "en-fr-transformer": ("en", "fr")}
RECURRENT = ("en-fr", "fr-en-rnn", "fr-en-fixed", "fr-en-luong")
KOREAN = "ko-en"
TESTS = ("Tatoeba", "Europarl", "newstest2013", "FLORES-200")
KOREAN_TESTS = ("Tatoeba", "Bible", "FLORES-200")


def test_all_are_there_and_small():
    files = bundled()
    assert set(files) == {*TRANSFORMERS, *RECURRENT, KOREAN}
    assert sum(path.stat().st_size for path in files.values()) < 30e6


@pytest.mark.parametrize("name", [*TRANSFORMERS, *RECURRENT, KOREAN])
def test_a_card_says_what_the_model_is(name):
    model = load_model(bundled()[name])
    assert f"{model.source_language}-{model.target_language}" == name[:5]
    card = model.card
    assert set(card["tests"]) == set(KOREAN_TESTS if name == KOREAN else TESTS)
    for test in card["tests"].values():
        assert 0 < test["bleu"] < 100 and "|version:" in test["signatures"]["bleu"]
    assert any("Tatoeba" in line for line in card["credits"]) and "recipe" in card and card["limits"]


def test_the_first_sentence_of_the_courses_is_translated_and_aligned():
    (one,) = regard.load("fr-en").translate([SHORT])
    assert one.text.rstrip(".") in ("I am a student", "I'm a student")
    words = [one.text[a:b] for a, b in one.words]
    sources = {
        one.source[slice(*one.source_words[source])]
        for source, target in one.links
        if words[target] == "student"
    }
    assert sources == {"étudiant"}


def test_the_korean_model_knows_the_first_sentence_and_says_what_it_is():
    (one,) = regard.load(KOREAN).translate(["나는 학생입니다."])
    assert one.text == "I am a student."
    assert "demonstration" in load_model(bundled()[KOREAN]).card["limits"]


def test_there_and_back_keeps_a_sentence():
    text = "The cat is sleeping."
    (there,) = regard.load("en-fr").translate([text])
    assert "chat" in there.text
    (back,) = regard.load("fr-en").translate([there.text])
    assert "cat" in back.text and "sleep" in back.text


def test_attention_is_what_carries_a_long_sentence():
    """Of the long sentence, the model that looks says more of what the best one says than the one that may not."""
    best, looking, fixed = (
        set(regard.load(name).translate([SENTENCES[-1]])[0].text.lower().split())
        for name in ("fr-en", "fr-en-rnn", "fr-en-fixed")
    )
    assert len(best & looking) > len(best & fixed)


def test_the_documents_give_the_scores_of_the_cards():
    lines = (Path(__file__).parents[1] / "docs" / "starter.md").read_text("utf-8").splitlines()
    for name, path in bundled().items():
        tests = load_model(path).card["tests"]
        cells = [
            f"{tests[test]['bleu']:.1f} / {tests[test]['chrf']:.1f}"
            for test in (KOREAN_TESTS if name == KOREAN else TESTS)
        ]
        assert f"| `{name}` | {' | '.join(cells)} |" in lines


def test_a_word_said_many_times_becomes_about_as_many_words():
    translator = regard.load("fr-en")
    (one,) = translator.translate(["chat " * 120])
    assert 90 <= len(one.text.split()) <= 150  # as one sentence: up to the length limit
    assert "split" in one.flags and "cut" not in one.flags
    (alike,) = translator.translate(
        ["Le chat et le chien et le cheval et le lapin et le canard et la souris."]
    )
    assert "split" not in alike.flags
