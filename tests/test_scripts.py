"""The table of scripts: its ranges hold the letters of the script, and every module takes them from it."""

import re
import sys
import unicodedata
from pathlib import Path

import pytest
import regex

import regard
from regard.corpus.shift import features
from regard.text.scripts import (
    EAST_ASIAN,
    HAN_LANGUAGES,
    SCRIPTS,
    UNSPACED,
    character_width,
    is_hangul_syllable,
    is_unspaced,
)

CHARACTERS = [chr(code) for code in range(sys.maxunicode + 1)]
LETTERS = [character for character in CHARACTERS if unicodedata.category(character)[0] in "LM"]
# One sentence for each script: "I am going to school", or nearly so.
SENTENCES = {
    "Thai": "ผมไปโรงเรียน",
    "Lao": "ຂ້ອຍໄປໂຮງຮຽນ",
    "Tibetan": "ང་སློབ་གྲྭར་འགྲོ",
    "Myanmar": "ငါကျောင်းသွားတယ်",
    "Khmer": "បងទៅសាលារៀន",
    "Hiragana": "わたしはいきます",
    "Katakana": "ワタシハイキマス",
    "Han": "我去学校上课",
    "Hangul": "나는 학교에 갑니다",
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_ranges_hold_letters_of_the_script_and_no_other(script):
    in_ranges, in_script = re.compile(f"[{script.ranges}]"), regex.compile(rf"\p{{{script.name}}}")
    shared = regex.compile(r"[\p{Common}\p{Inherited}]")  # ー, marks of kana
    found = [letter for letter in LETTERS if in_ranges.match(letter)]
    assert found and all(in_script.match(letter) or shared.match(letter) for letter in found)
    assert any(map(in_script.match, SENTENCES[script.name]))
    assert all(map(in_ranges.match, re.findall(r"\w", SENTENCES[script.name])))


def test_the_classes_are_the_scripts_of_the_table():
    unspaced, east_asian = (regex.compile(of, regex.VERSION1) for of in (UNSPACED, EAST_ASIAN))
    assert [name for name, text in SENTENCES.items() if unspaced.match(text)] == list(SENTENCES)[:-1]
    assert [name for name, text in SENTENCES.items() if east_asian.match(text)] == list(SENTENCES)[5:]
    assert unspaced.match("ー") and not unspaced.search("aéжع1 ,") and not east_asian.search("aéжع1 ,")


@pytest.mark.parametrize("name", SENTENCES)
def test_rough_stems_of_a_script_without_spaces_are_pairs_of_characters(name):
    found = features(SENTENCES[name])
    assert max(map(len, found)) == 2
    assert features("Quand Marie partait") == {"quand", "marie", "partai"}


def test_languages_without_spaces_between_sentences():
    for code in ("zh", "zh-Hans", "zho_Hans", "ZH", "ja", "th", "lo", "km", "my"):
        assert is_unspaced(code), code
    for code in ("ko", "fr", "en-GB", "bo", "", None):
        assert not is_unspaced(code), code
    assert set(HAN_LANGUAGES) == {"zh", "ja"}


@pytest.mark.parametrize(
    ("text", "widths"),
    [
        ("aé1.", [1, 1, 1, 1]),
        ("한中あＡ", [2, 2, 2, 2]),
        ("e\u0301", [1, 0]),
        ("ᄒ\u1161\u11ab", [2, 0, 0]),
        ("ｱ", [1]),
    ],
)
def test_widths_in_a_terminal(text, widths):
    assert [character_width(character) for character in text] == widths


def test_a_syllable_of_korean_is_one_character():
    syllables = [character for character in CHARACTERS if is_hangul_syllable(character)]
    assert len(syllables) == 19 * 21 * 28  # initials, vowels, finals with none
    assert all(unicodedata.name(syllable).startswith("HANGUL SYLLABLE") for syllable in syllables)


def test_no_other_module_has_a_list_of_scripts():
    own = re.compile(
        r"east_asian_width|\\u(0e00|3040|ac00)|\\p\{(Thai|Hiragana|Katakana|Hangul)|\"zh\", \"ja\""
    )
    package = Path(regard.__file__).parent
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if own.search(path.read_text("utf-8"))
    }
    assert found == {"text/scripts.py"}
