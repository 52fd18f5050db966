"""Where each word came from and how sure the model is: spans in the strings as they are, weights, links."""

import itertools
import json
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Scripted, one_after_another, straight
from small import random_engine, shrink
from small import translator as translator_with

from regard.alignment.gold import AlignmentScore, GoldLinks, aer_interval, read_gold, score_links
from regard.alignment.links import WordWeights, entropy_of_looks, hard_links, symmetrise, to_words
from regard.alignment.reading import USUAL_READING, Reading
from regard.errors import CorpusError
from regard.model.presets import PRESETS
from regard.options.text import CharacterOptions, WordOptions
from regard.text.tokenizer import TokenizerPair
from regard.text.words import PieceWords, match_pieces
from regard.translate.result import Alternative, Part, Translation
from regard.vocabulary import EOS

LETTERS = TokenizerPair.learn(["abcdefghijklmnopqrstuvwxyz' \"한국어"], ["a"], CharacterOptions(joint=True))
WORDS = TokenizerPair.learn(["le chat dort"], ["the cat sleeps"], WordOptions(vocab_size=300))
# Typographic quotes, Korean letter by letter, double and odd spaces, emoji of several characters, characters
# that are bytes to the tokenizer, an accent of its own, an invisible sign.
ODD = [
    "“ab”  ’c’",
    "\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165 ab",
    "  a \u00a0 b\tc ",
    "a 👩\u200d👩\u200d👧 b 👍🏽",
    "日本 Ωx",
    "cafe\u0301 ab",
    "a\u00adb \ufeffc",
]


def copier(tokenizers=LETTERS, look=straight):
    """A translator that says what it reads, piece by piece."""
    engine = Scripted(tokenizers.target.vocab_size, one_after_another(lambda source: source), look)
    return translator_with(engine, tokenizers)


def id_of(piece, tokenizer=WORDS.target):
    return tokenizer.pieces.index(piece)


# Spans.


def check_spans(spans, text):
    """In the text, in its order, and over all of it that can be seen."""
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert list(spans) == sorted(spans)
    covered = {place for start, end in spans for place in range(start, end)}
    return {place for place, character in enumerate(text) if not character.isspace()} - covered


@pytest.mark.parametrize("text", ODD)
def test_the_spans_of_a_source_lie_in_the_text_as_it_was_given(text):
    (one,) = copier().translate([text], guard=False)
    (part,) = one.parts
    assert one.source == text
    uncovered = check_spans(part.source_spans, text)
    assert {text[place] for place in uncovered} <= {"\u00ad", "\ufeff"}  # which nobody sees
    assert check_spans(part.spans, one.text) == set()
    assert part.source_spans[-1] == (part.source_spans[-2][1],) * 2
    assert part.spans[-1] == (len(one.text), len(one.text))
    for piece, (start, end) in zip(part.source_pieces, part.source_spans, strict=True):
        if piece.isalpha() and piece.isascii():
            assert piece in text[start:end]


def test_a_character_of_several_bytes_is_the_span_of_each_of_its_bytes():
    (one,) = copier().translate(["a Ω"], guard=False)
    (part,) = one.parts
    assert part.source_pieces == ("▁", "a", "▁", "<0xCE>", "<0xA9>", "</s>")
    assert part.source_spans[3:] == ((2, 3), (2, 3), (3, 3))
    assert one.text == "a Ω" and part.spans[3:] == ((2, 3), (2, 3), (3, 3))


def test_a_syllable_typed_letter_by_letter_is_one_span():
    korean = "\u1112\u1161\u11ab a"
    (one,) = copier().translate([korean], guard=False)
    (part,) = one.parts
    assert "한" in part.source_pieces and part.source_spans[part.source_pieces.index("한")] == (0, 3)
    assert one.text == "한 a" and part.spans[part.pieces.index("한")] == (0, 1)


def test_words_are_what_a_reader_sees():
    (one,) = copier().translate(["“ab”  l’ami d’abc, b"], guard=False)
    source_words = [one.source[start:end] for start, end in one.source_words]
    assert source_words == ["“", "ab", "”", "l’", "ami", "d’", "abc", ",", "b"]
    assert one.text == "\"ab\" l'ami d'abc, b"
    assert [one.text[start:end] for start, end in one.words] == ['"', "ab", '"', "l'", "ami", "d'", "abc", ",", "b"]  # fmt: skip
    assert one.links == tuple((word, word) for word in range(9))


@settings(max_examples=30, deadline=None)
@given(
    st.text(
        st.sampled_from("ab’”“ \t\u00a0\u0301\u1112\u1161\u11ab日👍🏽\u200d\ufeffΩ\ud800▁\n"), max_size=16
    )
)
def test_spans_and_links_are_in_range_for_any_text(text):
    (one,) = copier().translate([text], guard=False)
    for part in one.parts:
        check_spans(part.source_spans, text)
        assert check_spans(part.spans, one.text) == set()
    assert all(0 <= a < len(one.source_words) and 0 <= b < len(one.words) for a, b in one.links)
    json.dumps(one.to_json())


@pytest.mark.parametrize("name", ["bahdanau2015", "regard-small"])
def test_spans_cover_whatever_a_random_model_says(name):
    """Bytes that make no character included."""
    vocab_size = LETTERS.target.vocab_size
    translator = translator_with(random_engine(shrink(PRESETS[name]), vocab_size, vocab_size), LETTERS)
    for one in translator.translate(ODD, kind="sample", temperature=2.0, extra_tokens=8):
        for part in one.parts:
            assert len(part.spans) == len(part.pieces) == len(part.log_probs) == len(part.attention_TS)
            assert check_spans(part.spans, one.text) == set()
        assert all(0 <= a < len(one.source_words) and 0 <= b < len(one.words) for a, b in one.links)


# From pieces to words, by hand.


def test_weights_are_summed_over_a_source_word_and_averaged_over_a_target_word():
    """Source: `ab` in pieces a, b; `c`; </s>. Target: `x` in two pieces; `y`."""
    source = match_pieces([(0, 1), (1, 2), (3, 4), (4, 4)], [(0, 2), (3, 4)])
    target = match_pieces([(0, 1), (1, 2), (3, 4), (4, 4)], [(0, 2), (3, 4)])
    attention_TS = np.array(
        [[0.5, 0.25, 0.25, 0], [0, 0.5, 0.25, 0.25], [0.125, 0.125, 0.25, 0.5], [0, 0, 0, 1]], np.float32
    )
    weights = to_words(attention_TS, source, target)
    np.testing.assert_allclose(weights.words_TS, [[(0.75 + 0.5) / 2, 0.25], [0.25, 0.25]])
    np.testing.assert_allclose(weights.elsewhere_T, [0.125, 0.5])
    assert hard_links(weights) == ((0, 0),)  # </s> wins the second word


def test_a_source_piece_of_two_words_gives_half_to_each():
    source = match_pieces([(0, 2), (2, 3), (3, 3)], [(0, 1), (1, 3)])
    target = match_pieces([(0, 3)], [(0, 1), (1, 3)])
    weights = to_words(np.array([[0.5, 0.375, 0.125]], np.float32), source, target)
    np.testing.assert_allclose(weights.words_TS, [[0.25, 0.625]] * 2)
    np.testing.assert_allclose(weights.elsewhere_T, [0.125] * 2)
    assert hard_links(weights) == ((1, 0), (1, 1))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000))
def test_no_weight_is_lost_between_pieces_and_words(seed):
    rng = np.random.default_rng(seed)
    num_source, num_target = rng.integers(1, 7, 2)
    cuts = np.unique(rng.integers(0, 12, 5)).tolist()
    source_words = list(itertools.pairwise(cuts))
    places = np.sort(rng.integers(0, 12, num_source + 1)).tolist()
    source = match_pieces(list(itertools.pairwise(places)), source_words)
    target = match_pieces([(place, place + 1) for place in range(num_target)], [(0, 2), (2, 7)])
    attention_TS = rng.random((num_target, num_source)).astype(np.float32)
    weights = to_words(attention_TS, source, target)
    for word, pieces in enumerate(target.pieces_of_word):
        whole = attention_TS[list(pieces)].sum(axis=1).mean() if pieces else 0
        assert weights.words_TS[word].sum() + weights.elsewhere_T[word] == pytest.approx(whole, abs=1e-5)


def test_the_entropy_of_a_look_does_not_depend_on_its_sum():
    weights_TS = np.array([[0.6, 0, 0, 0], [0.25, 0.25, 0.25, 0.25], [0.1, 0.1, 0, 0]], np.float32)
    np.testing.assert_allclose(entropy_of_looks(weights_TS), [0, math.log(4), math.log(2)], atol=1e-6)


def test_no_words_no_links():
    nothing = WordWeights(np.empty((2, 0), np.float32), np.ones(2, np.float32))
    assert hard_links(nothing) == ()
    assert to_words(np.ones((1, 1), np.float32), PieceWords(((),), ()), PieceWords(((0,),), ((0,),))).words_TS.shape == (1, 0)  # fmt: skip


# From an engine to the reader.


def french():
    """`le chat dort` to `the cat sleeps`: the first word looks at two, the last one at </s> most."""
    looks = [[0.5, 0.25, 0.125, 0.125], [0.125, 0.75, 0.125, 0], [0.125, 0.125, 0.25, 0.5], [0, 0, 0, 1]]
    said = [id_of("▁the"), id_of("▁cat"), id_of("▁sleeps")]
    scores = [2.0, 4.0, 6.0, 8.0]

    def say(source, before):
        place = min(len(before), 3)
        return {[*said, EOS][place]: scores[place]}

    return (
        Scripted(WORDS.target.vocab_size, say, lambda source, before: looks[min(len(before), 3)]),
        looks,
        scores,
    )


def test_links_attention_confidence_and_surprise_are_as_worked_out_by_hand():
    engine, looks, scores = french()
    (one,) = translator_with(engine, WORDS).translate(["le chat dort"], beam_size=1, guard=False)
    assert one.text == "the cat sleeps"
    np.testing.assert_allclose(one.attention_TS, looks)
    np.testing.assert_allclose(one.word_attention_TS, [row[:3] for row in looks[:3]])
    assert one.links == ((0, 0), (1, 1))
    others = WORDS.target.vocab_size - 1
    probs = [math.exp(score) / (math.exp(score) + others) for score in scores]
    np.testing.assert_allclose(one.probs, probs, rtol=1e-5)
    np.testing.assert_allclose(one.confidence, probs[:3], rtol=1e-5)
    np.testing.assert_allclose(one.surprise, [math.log2(1 / prob) for prob in probs[:3]], rtol=1e-5)
    assert one.log_prob == pytest.approx(sum(map(math.log, probs)), rel=1e-5)
    # Wu et al. 2016, eq. 14, for four tokens.
    assert one.score == pytest.approx(one.log_prob / ((5 + 4) / 6), rel=1e-6)


def test_a_shifted_reading_looks_where_the_step_that_reads_a_piece_looks():
    engine, looks, _ = french()
    for reading, right in (
        (Reading(0, None, False), looks),
        (Reading(0, None, True), [looks[1], looks[2], looks[3], looks[3]]),
    ):
        (one,) = translator_with(engine, WORDS, reading).translate(["le chat dort"], guard=False)
        np.testing.assert_allclose(one.attention_TS, right)
        (forced,) = translator_with(engine, WORDS, reading).force(["le chat dort"], [one.text])
        np.testing.assert_allclose(forced.attention_TS, right)


def test_a_reading_picks_its_layer_and_head():
    weights_RLNS = np.arange(2 * 3 * 2 * 4, dtype=np.float32).reshape(2, 3, 2, 4)
    np.testing.assert_array_equal(Reading(1, 0, False).look(weights_RLNS), weights_RLNS[:, 1, 0])
    np.testing.assert_array_equal(
        Reading(2, None, False).look(weights_RLNS), (weights_RLNS[:, 2, 0] + weights_RLNS[:, 2, 1]) / 2
    )
    np.testing.assert_array_equal(USUAL_READING.look(weights_RLNS), weights_RLNS[:, 1].mean(1))
    # A model of one layer has no last but one.
    np.testing.assert_array_equal(USUAL_READING.look(weights_RLNS[:, :1]), weights_RLNS[:, 0].mean(1))
    assert USUAL_READING.look(np.empty((2, 0, 0, 4), np.float32)).shape == (2, 0)


def test_the_confidence_in_a_word_is_the_product_over_its_pieces():
    """`ab c`, with the spaces pieces of their own that belong to no word."""
    log_probs = [math.log(prob) for prob in (0.5, 0.5, 0.25, 0.1, 0.125, 0.9)]
    spans = ((0, 0), (0, 1), (1, 2), (2, 3), (3, 4), (4, 4))
    part = Part(("x", "</s>"), ((0, 1), (1, 1)), ("▁", "a", "b", "▁", "c", "</s>"), spans, tuple(log_probs), np.full((6, 2), 0.5, np.float32), True, (0, 4))  # fmt: skip
    one = Translation("x", "ab c", -1.0, sum(log_probs), (part,))
    np.testing.assert_allclose(one.confidence, [0.125, 0.125])
    np.testing.assert_allclose(one.surprise, [3, 3])
    assert one.links == ()  # </s> is looked at as much


@pytest.mark.parametrize("name", ["bahdanau2015", "luong2015", "vaswani2017"])
def test_words_get_what_their_pieces_got(name):
    options = shrink(PRESETS[name])
    vocab_size = LETTERS.target.vocab_size
    (one,) = translator_with(random_engine(options, vocab_size, vocab_size), LETTERS).force(
        ["“ab” cd"], ["xy za b"]
    )
    # Spaces and </s> of the source are no words.
    part = one.parts[0]
    inside = np.array(
        [any(start < b and a < end for a, b in one.source_words) for start, end in part.source_spans]
    )
    pieces_of_word = [[1, 2], [4, 5], [7]]  # ▁xy▁za▁b
    for word, pieces in enumerate(pieces_of_word):
        rows = part.attention_TS[pieces]
        elsewhere = rows[:, ~inside].sum(axis=1).mean()
        assert one.word_attention_TS[word].sum() + elsewhere == pytest.approx(
            rows.sum(axis=1).mean(), abs=1e-5
        )


# JSON.


def test_json_holds_the_values_and_nothing_but_plain_ones():
    engine, looks, _ = french()
    (one,) = translator_with(engine, WORDS).translate(["le chat dort"], num_best=3, beam_size=3, guard=False)
    again = json.loads(json.dumps(one.to_json(), allow_nan=False))
    assert again == one.to_json()
    assert (again["source"], again["text"], again["score"], again["log_prob"]) == (one.source, one.text, one.score, one.log_prob)  # fmt: skip
    assert again["words"] == [[0, 3], [4, 7], [8, 14]] and again["source_words"] == [[0, 2], [3, 7], [8, 12]]
    assert again["links"] == [[0, 0], [1, 1]] and again["flags"] == list(one.flags)
    np.testing.assert_allclose(again["word_attention"], [row[:3] for row in looks[:3]])
    np.testing.assert_allclose(again["confidence"], one.confidence, rtol=1e-3)
    (part,) = again["parts"]
    assert part["source_pieces"] == ["▁le", "▁chat", "▁dort", "</s>"] and part["complete"]
    assert part["spans"] == [[0, 3], [4, 7], [8, 14], [14, 14]]
    np.testing.assert_allclose(part["attention"], looks)
    np.testing.assert_allclose(part["log_probs"], one.parts[0].log_probs, rtol=1e-3)
    assert [other["text"] for other in again["alternatives"]] == [other.text for other in one.alternatives]
    assert again["alternatives"]


def test_a_blank_text_is_plain_json_too():
    (one,) = copier().translate([" "])
    assert one.to_json()["parts"] == [] and one.links == () and one.confidence == ()
    json.dumps(one.to_json(), allow_nan=False)
    with_others = Translation(
        "a", "b", -1.0, -1.0, (), (Alternative("c", -2.0, -2.0),), ("split",), ((0, 1),)
    )
    assert with_others.to_json()["alternatives"] == [{"text": "c", "score": -2.0, "log_prob": -2.0}]
    assert with_others.to_json()["uncovered"] == [[0, 1]]


# Two directions into one.

PHARAOHS = st.frozensets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14)


def grown_by_the_book(forward, backward):
    """The pseudo-code of Koehn et al. 2005, figure 1, word for word."""
    alignment = forward & backward
    neighbouring = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))

    def aligned(e=None, f=None):
        return any((e is None or a == e) and (f is None or b == f) for a, b in alignment)

    added = True
    while added:
        added = False
        for e, f in itertools.product(range(7), range(7)):
            if (e, f) in alignment:
                for down, right in neighbouring:
                    e_new, f_new = e + down, f + right
                    if (not aligned(e=e_new) or not aligned(f=f_new)) and (
                        e_new,
                        f_new,
                    ) in forward | backward:
                        alignment = alignment | {(e_new, f_new)}
                        added = True
    grown = alignment
    for one in (forward, backward):
        for e_new, f_new in itertools.product(range(7), range(7)):
            if not aligned(e=e_new) and not aligned(f=f_new) and (e_new, f_new) in one:
                alignment = alignment | {(e_new, f_new)}
    return grown, alignment


@settings(max_examples=150, deadline=None)
@given(PHARAOHS, PHARAOHS)
def test_growing_equals_the_pseudo_code(forward, backward):
    grown, final = grown_by_the_book(forward, backward)
    assert symmetrise(forward, backward, "grow-diag") == grown
    assert symmetrise(forward, backward, "grow-diag-final-and") == final
    assert symmetrise(forward, backward, "intersection") == forward & backward
    assert symmetrise(forward, backward, "union") == forward | backward
    assert forward & backward <= grown <= final <= forward | backward


def test_growing_by_hand():
    forward, backward = {(0, 0), (1, 1), (1, 2), (4, 4)}, {(0, 0), (1, 1), (2, 2), (5, 4)}
    # (1, 2) touches (1, 1) and joins target 2; (2, 2) touches it and joins source 2; (4, 4) touches nothing.
    assert symmetrise(forward, backward, "grow-diag") == {(0, 0), (1, 1), (1, 2), (2, 2)}
    # Then (4, 4), whose words are both free; after it (5, 4) is not, for target 4 is taken.
    assert symmetrise(forward, backward, "grow-diag-final-and") == {(0, 0), (1, 1), (1, 2), (2, 2), (4, 4)}


def test_without_common_links_only_the_last_step_adds():
    assert symmetrise({(0, 0)}, {(1, 1)}, "grow-diag") == frozenset()
    assert symmetrise({(0, 0)}, {(1, 1)}, "grow-diag-final-and") == {(0, 0), (1, 1)}


# Gold alignments.


def gold_file(tmp_path, text):
    path = tmp_path / "gold.align"
    path.write_text(text, "utf-8")
    return path


def test_gold_of_a_line_a_sentence_is_read(tmp_path):
    gold = read_gold(gold_file(tmp_path, "0-0 1p2 3?1\n\n2-2\n"))
    assert [one.sure for one in gold] == [{(0, 0)}, set(), {(2, 2)}]
    assert [one.possible for one in gold] == [{(0, 0), (1, 2), (3, 1)}, set(), {(2, 2)}]
    assert read_gold(gold_file(tmp_path, "1-1 2p3\n"), counted_from=1) == [
        GoldLinks(frozenset({(0, 0)}), frozenset({(0, 0), (1, 2)}))
    ]
    assert gold[0].flipped().possible == {(0, 0), (2, 1), (1, 3)}
    assert read_gold(gold_file(tmp_path, "\ufeff0-0\n")) == read_gold(gold_file(tmp_path, "0-0\n"))


def test_gold_of_a_line_a_link_is_read(tmp_path):
    path = gold_file(tmp_path, "0001 1 1 S\n0001 2 3 P\n0003 4 4\n")
    gold = read_gold(path)
    assert gold == read_gold(path, counted_from=1)  # such files count from 1
    assert [one.sure for one in gold] == [{(0, 0)}, set(), {(3, 3)}]
    assert [one.possible for one in gold] == [{(0, 0), (1, 2)}, set(), {(3, 3)}]
    assert len(read_gold(path, lengths=[(4, 4)] * 3)) == 3


@pytest.mark.parametrize(
    ("text", "counted_from", "message"),
    [
        ("0-0\n1-1 2:3\n", 0, "gold.align, line 2: '2:3' is not a gold link"),
        ("1-1\n0-1\n", 1, "line 2: '0-1' has a number 0 where counting starts at 1"),
        ("0-0\n0-0 3-1\n", 0, "line 2: '3-1' is out of range: the sentences have 3 and 2 words"),
        ("0-0\n0-2\n", 0, "line 2: '0-2' is out of range"),
        ("0-0\n", 0, "has 1 lines for 2 sentence pairs"),
        ("0-0\n0-0\n0-0\n", 0, "line 3: '0-0' refers to sentence 3, and there are 2"),
        ("1 1 1 S\n1 2 2 X\n", 1, "line 2: '1 2 2 X' is not a gold link; write sentence"),
        ("1 1 1 S\n9 1 1 S\n", 1, "refers to sentence 9, and there are 2"),
        ("1 1 1 S\n", 1, "has 1 sentences for 2 sentence pairs"),
    ],
)
def test_gold_that_does_not_fit_is_an_error_with_its_line(tmp_path, text, counted_from, message):
    with pytest.raises(CorpusError, match=re.escape(message)):
        read_gold(gold_file(tmp_path, text), counted_from=counted_from, lengths=[(3, 2), (3, 2)])


def test_gold_that_cannot_be_read_is_an_error(tmp_path):
    with pytest.raises(CorpusError, match="cannot be read"):
        read_gold(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe0-0")
    with pytest.raises(CorpusError, match="cannot be read"):
        read_gold(tmp_path / "bytes")
    with pytest.raises(CorpusError, match="beyond 1,000,000"):
        read_gold(gold_file(tmp_path, "999999999 1 1 S\n"))
    assert read_gold(gold_file(tmp_path, "")) == []


def gold_links(sure, possible):
    return GoldLinks(frozenset(sure), frozenset(possible))


def test_the_error_rate_by_hand():
    """Of three links found two are possible and one sure, of two sure ones: 1 - (1 + 2) / (3 + 2)."""
    score = score_links([{(0, 0), (1, 2), (5, 5)}], [gold_links({(0, 0), (1, 1)}, {(0, 0), (1, 1), (1, 2)})])
    assert score == AlignmentScore(1 - 3 / 5, 2 / 3, 1 / 2, 3, 1)


@given(st.lists(st.tuples(PHARAOHS, PHARAOHS, PHARAOHS), min_size=1, max_size=4))
def test_error_rates_lie_between_nought_and_one(sentences):
    gold = [gold_links(sure, sure | possible) for _, sure, possible in sentences]
    score = score_links([found for found, _, _ in sentences], gold)
    assert 0 <= score.aer <= 1 and 0 <= score.precision <= 1 and 0 <= score.recall <= 1
    assert score_links([one.sure for one in gold], gold).aer == 0
    low, high = aer_interval([found for found, _, _ in sentences], gold, num_samples=50)
    assert 0 <= low <= high <= 1


def test_an_interval_holds_the_rate_and_comes_from_the_seed():
    gold = [gold_links({(0, 0), (1, 1)}, {(0, 0), (1, 1)})] * 30
    found = [{(0, 0), (1, 1)}, {(0, 0)}, {(2, 2)}] * 10
    low, high = aer_interval(found, gold)
    assert low < score_links(found, gold).aer < high
    assert aer_interval(found, gold) == (low, high) != aer_interval(found, gold, seed=2)
    narrow = aer_interval(found, gold, confidence=0.5)
    assert low < narrow[0] < narrow[1] < high
    assert aer_interval([], []) == (0.0, 0.0)


def test_links_of_other_sentences_are_not_scored():
    with pytest.raises(CorpusError, match="links of 2 sentences and a gold alignment of 1"):
        score_links([set(), set()], [gold_links(set(), set())])
