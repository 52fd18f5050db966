import re
import time
from itertools import pairwise

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text.split import sentences, split

any_text = st.one_of(
    st.text(alphabet=st.characters(exclude_categories=())),  # lone surrogates too
    st.text(
        alphabet="ab A.!?…,;: \n\t\x1c\u00a0\u2028。！？、」»«\"'—3\u0301👍🏽\u200d🇫🇷한\ud83d\x00",
        max_size=200,
    ),
)


def cut(text, max_length):
    return [text[start:end] for start, end in split(text, lambda part: len(part) <= max_length)]


def found(text):
    return [text[start:end] for start, end in sentences(text)]


def cluster_ends(word):
    return [match.end() for match in regex.finditer(r"\X", word)]


def assert_nothing_is_lost(text, spans):
    place = 0
    for start, end in spans:
        assert place <= start < end <= len(text)
        assert text[place:start].strip() == ""
        assert text[start:end] == text[start:end].strip()
        place = end
    assert text[place:].strip() == ""


@pytest.mark.parametrize(
    "expected",
    [
        ["It rains.", "We stay at home!", "Do you?", "Yes…", "Good."],
        ["Mr. Smith met Dr. J. S. Bach.", "They spoke, e.g. about No. 5 and 3.5 on p. 120.", "Then he left."],
        ["It was in 1998.", "Then came the U.S. Army."],
        ['"Why?" he asked.', '"Because."', "(Nobody knew.)", "Well... perhaps not."],
        ["M. Dupont est là !", "« Viens ! »", "Mme. Curie ; puis : rien ?", "Vers 50 av. J.-C. Rome."],
        [
            "Wir kamen am 3. Mai, z. B. Anna und z.B. Otto.",
            "»Komm!«",
            "„Nein.“",
            "Der 2. Weltkrieg, usw.",
            "Ende.",
        ],
        ["안녕하세요.", "저는 학생입니다.", "정말요?", "네.", "그렇습니다."],
        ["Visit https://a.b/c.d?e=f.", "Now."],
    ],
)
def test_sentences_end_where_a_reader_would_say(expected):
    assert found(" ".join(expected)) == expected


@pytest.mark.parametrize(
    "expected",
    [
        ["你好！", "你叫什么名字？", "“我很好。”", "再见。"],
        ["你好吗?", "我很好!", "谢谢。"],
        ["今日は雨です。", "「はい。」と彼は言った。", "『本当？』", "ええ。"],
    ],
)
def test_sentences_of_chinese_and_japanese_need_no_space(expected):
    assert found("".join(expected)) == expected


def test_a_blank_line_ends_a_sentence_and_a_line_break_does_not():
    assert found("A heading\n \nThe text\nruns on") == ["A heading", "The text\nruns on"]


def test_text_without_capitals_is_cut_at_its_full_stops_rather_than_anywhere():
    assert cut("i came home. nobody was there.", 20) == ["i came home.", "nobody was there."]


def test_a_text_that_fits_is_looked_at_once_and_stays_whole():
    looks = []
    assert split("  One. Two. Three.\n", lambda part: looks.append(part) or True) == [(2, 18)]
    assert looks == ["One. Two. Three."]


@pytest.mark.parametrize("text", ["", " ", "\n\t \x1c\u2028", " " * 100_000])
def test_white_space_has_no_segments(text):
    assert split(text, lambda part: False) == sentences(text) == []


def test_neighbouring_sentences_share_a_segment_while_they_fit():
    assert cut("One. Two. Three. Four.", 11) == ["One. Two.", "Three.", "Four."]
    assert cut("One. Two. Three. Four.", 16) == ["One. Two. Three.", "Four."]


def test_a_long_sentence_is_cut_at_a_clause_before_it_is_cut_between_words():
    assert cut("He came, he saw, he won the war.", 22) == ["He came, he saw,", "he won the war."]
    assert cut("Il vint ; il vit : il vainquit tout.", 20) == ["Il vint ; il vit :", "il vainquit tout."]
    assert cut("他来了，他看到了，他胜利了。", 10) == ["他来了，他看到了，", "他胜利了。"]
    assert cut("- eins und zwei\n- drei und vier", 20) == ["- eins und zwei", "- drei und vier"]


def test_a_long_clause_is_cut_between_words_and_a_long_word_between_characters():
    assert cut("one two three four", 9) == ["one two", "three", "four"]
    assert cut("ab " + "x" * 7 + " cd", 3) == ["ab", "xxx", "xxx", "x", "cd"]


def test_a_character_of_many_code_points_is_never_cut():
    family, flag, accent = "👨‍👩‍👧", "🇫🇷", "e\u0301"
    assert cut(family * 3, 6) == [family] * 3
    assert cut(flag * 4, 5) == [flag * 2] * 2
    assert cut("我。\ufe00我。", 3) == ["我。\ufe00", "我。"]
    assert cut(accent * 3, 1) == [accent] * 3  # does not fit, and is a segment all the same


@settings(deadline=None)
@given(text=any_text, max_length=st.integers(1, 40))
def test_nothing_is_lost_and_everything_fits(text, max_length):
    spans = split(text, lambda part: len(part) <= max_length)
    assert_nothing_is_lost(text, spans)
    for start, end in spans:
        assert end - start <= max_length or len(regex.findall(r"\X", text[start:end])) == 1


@settings(deadline=None)
@given(text=any_text, max_length=st.integers(1, 10))
def test_where_segments_touch_a_character_ends(text, max_length):
    spans = split(text, lambda part: len(part) <= max_length)
    ends = {word.start() + end for word in re.finditer(r"\S+", text) for end in cluster_ends(word.group())}
    assert {end for _, end in spans} <= ends


@settings(deadline=None)
@given(text=any_text, seed=st.integers(0, 1000))
def test_everything_fits_even_if_a_longer_text_fits_where_a_shorter_does_not(text, seed):
    def fits(part):
        return len(part) < 60 and (len(part) * 7919 + seed) % 3 > 0

    spans = split(text, fits)
    assert_nothing_is_lost(text, spans)
    for start, end in spans:
        assert fits(text[start:end]) or len(regex.findall(r"\X", text[start:end])) == 1


@settings(deadline=None)
@given(text=any_text)
def test_sentences_lose_nothing(text):
    assert_nothing_is_lost(text, sentences(text))


@settings(deadline=None)
@given(
    text=st.text(alphabet="ab ", max_size=200)
    | st.lists(st.sampled_from(["Yes.", "Is it so?", "Ab, c!"])).map(" ".join),
    max_length=st.integers(9, 40),
)
def test_no_two_neighbours_could_have_been_one_segment(text, max_length):
    for (start, _), (_, end) in pairwise(split(text, lambda part: len(part) <= max_length)):
        assert end - start > max_length


def test_few_looks_are_needed_and_none_goes_far_beyond_what_fits():
    looks = []

    def fits(part):
        looks.append(len(part))
        return len(part) <= 500

    text = "The quick brown fox jumps over the lazy dog. " * 2000 + "x" * 50_000 + " word" * 10_000
    spans = split(text, fits)
    assert_nothing_is_lost(text, spans)
    assert len(spans) < 1.2 * len(text) / 500
    assert len(looks) < 14 * len(spans)
    assert max(looks) <= 1000


HOSTILE = {
    "prose": "Il vint, il vit ; il vainquit. " * 32_000,
    "one word": "x" * 200_000,
    "dots": "." * 200_000 + "x",
    "dots and spaces": ". " * 100_000,
    "wide dots": "。" * 200_000 + "」と",
    "closing quotes": "." + "»" * 200_000 + "x" + ". »" * 50_000,
    "spaces": "a." + " " * 200_000 + "b",
    "dashes": "—" * 200_000 + "x",
    "commas": "," * 200_000 + "x",
    "initials": "a." * 100_000 + " B. " * 50_000,
    "marks": "a" + "\u0301" * 200_000,
    "flags": "🇫" * 200_000,
    "joiners": "👍\u200d" * 100_000,
    "surrogates": "\ud83d" * 200_000,
    "nulls": "\x00" * 200_000,
    "chinese": "我们，" * 70_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_time_in_proportion_to_its_length(name):
    text = HOSTILE[name]
    begin = time.process_time()
    spans = split(text, lambda part: len(part) <= 300)
    assert time.process_time() - begin < 10  # what is quadratic takes minutes
    assert_nothing_is_lost(text, spans)
