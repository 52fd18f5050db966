"""Names are copied, numbers rewritten and quotation marks paired, where the model did none of it."""

import functools
from dataclasses import replace

import numpy as np
import pytest

from regard.loaded import Loaded
from regard.modelfile import load_model, save_model
from regard.starter import locate
from regard.text.conventions import rewritten
from regard.text.known import KnownWords
from regard.text.normalize import trace_normalize
from regard.text.words import words
from regard.translate.mend import mend
from regard.translate.result import Part
from regard.translate.translator import IN_THIS_THREAD, Translator


@functools.cache
def model(source="fr", target="en"):
    return replace(
        Loaded.open("fr-en"),
        source_language=source,
        target_language=target,
        known_words=KnownWords.of(["mr", "and", "said", "the", "i", "am", "here", "is", "cat", "costs"]),
    )


def mended(source, text, links, **languages):
    """Mend a translation whose words look at the source words that the links say."""
    source_spans, spans = words(source), words(text)
    attention_TS = np.zeros((len(spans) + 1, len(source_spans) + 1), np.float32)
    attention_TS[-1, -1] = 1
    for place in range(len(spans)):
        attention_TS[place, links.get(place, len(source_spans))] = 1
    ends = ((len(source), len(source)),), ((len(text), len(text)),)
    part = Part(
        (*(source[a:b] for a, b in source_spans), "</s>"),
        (*source_spans, *ends[0]),
        (*(text[a:b] for a, b in spans), "</s>"),
        (*spans, *ends[1]),
        (0.0,) * (len(spans) + 1),
        attention_TS,
        True,
        (0, len(text)),
    )
    return mend(model(**languages), trace_normalize(source, fold_quotes=True), text, part)


def test_an_invented_word_becomes_the_name_it_came_from():
    one = mended("Ici monsieur Monserrate et", "Mr Monerserrast and", {0: 1, 1: 2, 2: 3})
    assert (one.text, one.notes) == ("Mr Monserrate and", ("copied-name",))
    assert [one.text[a:b] for a, b in one.part.spans] == ["Mr", "Monserrate", "and", ""]


def test_two_invented_words_for_one_name_become_one():
    assert mended("le chat Boyle et", "the Byle Willyle and", {1: 2, 2: 2}).text == "the Boyle and"


@pytest.mark.parametrize(
    ("source", "text", "links"),
    [
        ("le chat monserrate et", "the Monerserrast and", {1: 2}),  # no capital
        ("Monserrate et", "Monerserrast and", {0: 0}),  # first of its sentence
        ("dit : Monserrate et", "said Monerserrast and", {1: 2}),
        ("le chat Monserrate et", "the cat and", {1: 2}),  # a known word
        ("le chat Monserrate et", "the Monerserrast and", {}),  # looked at nothing
        ("le chat Monserrate et", "Monserrate Monerserrast and", {1: 2}),  # it is there already
    ],
)
def test_other_words_stay(source, text, links):
    one = mended(source, text, links)
    assert (one.text, one.notes) == (text, ())


def test_a_close_decision_about_a_name_is_known_to_be_one():
    source, text = "le chat Boyle Tom", "the Byle"
    one = mended(source, text, {1: 2})
    assert not one.is_near
    attention_TS = one.part.attention_TS.copy()
    attention_TS[1] = [0, 0, 0.5, 0.4999, 0]
    part = replace(one.part, attention_TS=attention_TS, spans=(*words(text), (8, 8)), span=(0, 8))
    assert mend(model(), trace_normalize(source), text, part).is_near


@pytest.mark.parametrize(
    ("number", "after", "source", "target", "expected"),
    [
        ("3,5", " %", "fr", "en", "3.5"),
        ("12 000", "", "fr", "en", "12,000"),
        ("1\u00a0234,56 €", "", "fr", "en", "€1,234.56"),
        ("2024", "", "fr", "en", None),
        ("12:30", "", "fr", "en", None),
        ("3.5", "%", "en", "fr", "3,5"),
        ("3.10", " is out", "en", "fr", None),
        ("$1,234.56", "", "en", "fr", "1 234,56 $"),
        ("3,5 °C", "", "fr", "en", "3.5 °C"),
        ("90°", "", "fr", "en", None),
        ("3,5", "", "fr", "ko", None),
        ("3,5", "", None, "en", None),
    ],
)
def test_numbers_are_written_as_in_the_target_language(number, after, source, target, expected):
    assert rewritten(number, after, source, target) == expected


def test_only_a_number_in_the_form_of_the_source_is_rewritten():
    one = mended("Il coûte 3,5 et 12 000", "It costs 3,5 and 12 000", {})
    assert (one.text, one.notes) == ("It costs 3.5 and 12,000", ("typography",))
    assert mended("Il coûte 3,5", "It costs 3.5", {}).notes == ()
    assert mended("Il perd -20 euros", "He loses 20 euros", {}).text == "He loses -20 euros"
    assert mended("Il fait −3,5 degrés", "It is 3.5 degrees", {}).text == "It is −3.5 degrees"
    for source, target in (
        ("Il fait -3", "It is minus 3"),
        ("les 3-5", "the 5"),
        ("Il perd -2", "It loses -2"),
    ):
        assert mended(source, target, {}).notes == ()
    assert mended("Il coûte 3,5", "It costs 3,5", {}, target="ko").text == "It costs 3,5"


@pytest.mark.parametrize(
    ("text", "links", "expected"),
    [
        (
            'the cat said "I am here the',
            {0: 1, 1: 0, 2: 2, 4: 4, 5: 5, 6: 6, 7: 9},
            'the cat said "I am here" the',
        ),
        (
            'the cat said I am here" the',
            {0: 1, 1: 0, 2: 2, 3: 4, 4: 5, 5: 6, 7: 9},
            'the cat said "I am here" the',
        ),
        ('the cat said" the', {0: 1, 1: 0, 2: 2, 4: 9}, "the cat said the"),
        ('the cat said "I am here" the', {4: 4, 5: 5, 6: 6}, 'the cat said "I am here" the'),
        ("the cat said I am here the", {3: 4}, "the cat said I am here the"),
    ],
)
def test_a_lone_quotation_mark_is_paired_or_removed(text, links, expected):
    assert mended("Chat le dit « je suis ici » et le", text, links).text == expected


def test_known_words_are_found_in_any_case_and_others_hardly_ever():
    known = KnownWords.of(f"Word{number}" for number in range(5000))
    assert all(f"wOrd{number}" in known for number in range(5000))
    assert sum(f"other{number}" in known for number in range(5000)) < 200
    both = known | KnownWords.of(["Tom"])
    assert "tom" in both and all(f"word{number}" in both for number in range(5000)) and "tim" not in both
    for bits_U in (
        np.zeros(3, np.uint8),
        np.zeros(4, np.int8),
        np.zeros((2, 2), np.uint8),
        np.zeros(0, np.uint8),
    ):
        with pytest.raises(ValueError, match="known words"):
            KnownWords(bits_U)


def test_a_model_file_keeps_known_words_and_does_without(tmp_path):
    bundled = load_model(locate("fr-en"))
    assert bundled.known_words is not None and "house" in bundled.known_words
    for known in (None, KnownWords.of(["Tom"])):
        save_model(tmp_path / "m.regard", replace(bundled, known_words=known))
        kept = load_model(tmp_path / "m.regard").known_words
        assert kept is known is None or (kept is not None and "tom" in kept and "house" not in kept)


def test_the_guard_copies_names_and_the_plain_search_does_not():
    text = "Le directeur de la commission Charbonneau habite à Beloeil."
    translator = Translator.open("fr-en", pool=IN_THIS_THREAD)
    (one,), (plain,) = translator.translate([text]), translator.translate([text], guard=False)
    assert "copied-name" in one.flags and "Beloeil" in one.text and "Beloeil" not in plain.text
    assert "copied-name" not in plain.flags
    same = translator.translate([text, "Il dort.", text], num_best=3)
    assert [two.text for two in same[::2]] == [one.text] * 2


def test_an_amount_that_a_stand_in_kept_whole_is_written_as_usual():
    for model, text, expected in [
        ("fr-en", "Il coûte 1 234,56 €.", "€1,234.56"),
        ("fr-en", "La température est de -3,5 °C.", "-3.5 °C"),
        ("en-fr", "It costs $1,234.56.", "1 234,56 $"),
    ]:
        (one,) = Translator.open(model, pool=IN_THIS_THREAD).translate([text])
        assert expected in one.text.replace("\u202f", " ").replace("\u00a0", " ")
        assert {"kept", "typography"} <= set(one.flags)
