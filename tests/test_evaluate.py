"""Scores are sacrebleu's, with signatures, and by length."""

import subprocess
import sys

import pytest
import sacrebleu

from regard.errors import CorpusError
from regard.evaluate import LengthScore, score

RIGHT = ["The cat sat on the mat today.", "It was a very fine day indeed, she said."]
NEARLY = ["The cat sat on a mat today.", "It was a very fine day indeed, he said."]


def test_a_perfect_translation_scores_100_and_another_less():
    perfect, nearly = score(RIGHT, RIGHT), score(NEARLY, RIGHT)
    assert perfect.bleu == pytest.approx(100) and perfect.chrf == pytest.approx(100)
    assert 20 < nearly.bleu < 90 and 50 < nearly.chrf < 100
    assert perfect.num_sentences == 2 and perfect.by_length == ()


def test_scores_and_signatures_are_those_of_sacrebleu():
    ours = score(NEARLY, RIGHT, target_language="en")
    assert ours.bleu == sacrebleu.corpus_bleu(NEARLY, [RIGHT]).score
    assert ours.chrf == sacrebleu.corpus_chrf(NEARLY, [RIGHT]).score
    version = sacrebleu.__version__
    assert ours.signatures == {
        "bleu": f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}",
        "chrf": f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{version}",
    }


@pytest.mark.parametrize(
    ("language", "tokenizer"), [("zh", "zh"), ("zh_Hans", "zh"), ("fr-CA", "13a"), (None, "13a")]
)
def test_the_signature_names_the_tokenizer_of_the_language(language, tokenizer):
    assert f"|tok:{tokenizer}|" in score(RIGHT, RIGHT, target_language=language).signatures["bleu"]


@pytest.mark.parametrize(("language", "without"), [("ja", "char"), ("ko", "13a")])
def test_without_a_dictionary_japanese_is_counted_by_character_and_korean_by_space(
    monkeypatch, language, without
):
    monkeypatch.setattr("regard.evaluate.find_spec", lambda name: None)
    assert (
        f"|tok:{without}|"
        in score(["これは猫です。"], ["これは猫だ。"], target_language=language).signatures["bleu"]
    )


def test_bleu_by_length_counts_words_of_the_source():
    def sentence(num_words):
        return " ".join(f"w{number}" for number in range(num_words))

    sources = [sentence(count) for count in (4, 10, 11, 40, 51, 80)] + [""]
    hypotheses = [RIGHT[0]] * 2 + [NEARLY[0]] + [RIGHT[0]] * 4
    found = score(hypotheses, [RIGHT[0]] * 7, sources).by_length
    assert [(one.first_word, one.last_word, one.num_sentences) for one in found] == [
        (1, 10, 3),
        (11, 20, 1),
        (31, 40, 1),
        (51, None, 2),
    ]
    assert found[1] == LengthScore(11, 20, 1, sacrebleu.corpus_bleu([NEARLY[0]], [[RIGHT[0]]]).score)
    assert found[0].bleu == pytest.approx(100)


def test_blank_translations_are_scored_and_not_dropped():
    assert score(["", RIGHT[1]], RIGHT).bleu < 80
    assert score(["", ""], RIGHT).bleu == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([], []), "0 translations, 0 references"),
        ((["a"], ["a", "b"]), "1 translations, 2 references"),
        ((["a"], ["a"], ["x", "y"]), "1 translations, 1 references, 2 sources"),
    ],
)
def test_nothing_or_unequal_numbers_cannot_be_scored(given, message):
    with pytest.raises(CorpusError, match=message):
        score(*given)


def test_sacrebleu_is_imported_only_when_scoring():
    code = "import regard.evaluate, regard.translate, sys; sys.exit('sacrebleu' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
