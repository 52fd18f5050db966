import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import TokenizerError
from regard.options.parse import parse
from regard.options.text import CharacterOptions, SubwordOptions, WordOptions
from regard.sample import read_sample
from regard.text.normalize import normalize, trace_normalize
from regard.text.tokenizer import Tokenizer, TokenizerPair
from regard.text.words import match_pieces, words
from regard.vocabulary import BOS, EOS, NUM_RESERVED, PAD, RESERVED, SPACE, UNK

SENTENCES = [text for pair in read_sample(600) for text in (pair.source, pair.target)] + [
    "한국어 문장입니다."
] * 3
OPTIONS = {
    "unigram": SubwordOptions(kind="unigram", vocab_size=700),
    "bpe": SubwordOptions(kind="bpe", vocab_size=700),
    "elisions": SubwordOptions(vocab_size=700, elisions=True),
    "word": WordOptions(vocab_size=400),
    "word-unk": WordOptions(vocab_size=400, unknown="unk"),
    "character": CharacterOptions(vocab_size=300),
}
LOSSLESS = [name for name in OPTIONS if name != "word-unk"]
TRAPS = [
    "",
    " ",
    "  deux  espaces ",
    "\t\r\n\x00\u2028\u2029\x85",
    f"{SPACE}a {SPACE}{SPACE}b {SPACE}",
    "<s> </s> <unk> <pad> <0x41>",
    "e\u0301tudiant",
    "\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165",
    "한국어 😀 👨‍👩‍👧 🇫🇷",
    "l\u2019homme",
    "\ud800 lone \udfff",
    "\ufeffBOM",
]
any_text = st.one_of(
    st.text(),
    st.text(alphabet=st.characters(exclude_categories=())),  # lone surrogates too
    st.text(alphabet=f"ab ▁{SPACE}\u0301\u1112\u1161\u11ab한'’\n\t\u00a0\u200b\u2028😀\ud83d"),
    st.text(alphabet="lquLQ' ’a1é_\n"),
    st.sampled_from(SENTENCES),
)


@pytest.fixture(scope="module")
def tokenizers():
    return {name: Tokenizer.learn(SENTENCES, options) for name, options in OPTIONS.items()}


@pytest.mark.parametrize("name", ["unigram", "bpe", "word"])
def test_small_words_and_signs_tell_little_and_rare_and_unknown_ones_most(tokenizers, name):
    tokenizer = tokenizers[name]
    told = dict(zip(tokenizer.pieces, tokenizer.information_V.tolist(), strict=True))
    assert len(told) == tokenizer.vocab_size and min(told.values()) > 0
    assert told[RESERVED[UNK]] == max(told.values()) == 1
    longer = [piece for piece in tokenizer.pieces[NUM_RESERVED:] if len(piece.strip(SPACE)) > 1]
    for common in (f"{SPACE}the", "."):  # BPE has the sign among the last
        assert told[common] < told[longer[-1]] - 0.2


def lists(batch):
    return [ids.tolist() for ids in batch]


@pytest.mark.parametrize("name", LOSSLESS)
@given(text=any_text)
def test_decoding_gives_back_any_text(tokenizers, name, text):
    tokenizer = tokenizers[name]
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


@pytest.mark.parametrize("text", TRAPS)
@pytest.mark.parametrize("name", LOSSLESS)
def test_decoding_gives_back_the_traps_of_unicode(tokenizers, name, text):
    tokenizer = tokenizers[name]
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


@pytest.mark.parametrize("name", OPTIONS)
@given(text=any_text)
def test_spans_are_in_order_and_miss_nothing_but_spaces(tokenizers, name, text):
    encoding = tokenizers[name].encode(text)
    place = 0
    for start, end in encoding.spans:
        assert 0 <= start <= end <= len(text)
        if start > place:
            assert text[place:start] == " "
        place = max(place, end)
    assert place == len(text)
    assert list(encoding.spans) == sorted(encoding.spans)


@pytest.mark.parametrize("name", OPTIONS)
@given(text=any_text)
def test_a_piece_spells_the_characters_of_its_span(tokenizers, name, text):
    encoding = tokenizers[name].encode(text)
    for piece, id, (start, end) in zip(encoding.pieces, encoding.ids, encoding.spans, strict=True):
        if id >= NUM_RESERVED:
            spelt = piece.replace(SPACE, " ")
            assert text[start:end] == spelt or (text[start:end] == spelt[1:] and spelt[0] == " ")
        elif id != UNK:
            assert end - start == 1 and int(piece[1:-1], 16) in text[start].encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("name", OPTIONS)
@given(text=any_text)
def test_spans_of_a_normalised_text_lie_in_the_original(tokenizers, name, text):
    tokenizer = tokenizers[name]
    normal = trace_normalize(text)
    encoding = tokenizer.encode(normal)
    assert encoding.ids == tokenizer.encode(normal.text).ids
    assert encoding.text == text
    for (start, end), inner in zip(encoding.spans, tokenizer.encode(normal.text).spans, strict=True):
        assert 0 <= start <= end <= len(text)
        # What stands there in the original normalises to what the piece covers.
        assert normal.text[slice(*inner)] in normalize(f"█{text[start:end]}█")


def test_spans_by_hand_for_korean_in_decomposed_form(tokenizers):
    text = "  \u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165 e\u0301te\u0301 👍🏽."  # 한국어 été
    encoding = tokenizers["character"].encode(trace_normalize(text))
    covered = list(dict.fromkeys(text[start:end] for start, end in encoding.spans))
    assert covered == [
        *("", "\u1112\u1161\u11ab", "\u1100\u116e\u11a8", "\u110b\u1165", " "),
        *("e\u0301", "t", "👍", "🏽", "."),
    ]  # fmt: skip


def test_reserved_ids_are_the_documented_ones(tokenizers):
    assert (PAD, BOS, EOS, UNK) == (0, 1, 2, 3)
    for tokenizer in tokenizers.values():
        assert tuple(tokenizer.pieces[:NUM_RESERVED]) == RESERVED


def test_pad_and_sentence_marks_leave_no_text(tokenizers):
    tokenizer = tokenizers["unigram"]
    ids = tokenizer.encode("Je suis étudiant.").ids
    assert tokenizer.decode([BOS, *ids, EOS, PAD, PAD]) == "Je suis étudiant."


def test_broken_bytes_of_a_model_decode_to_the_replacement_character(tokenizers):
    assert tokenizers["unigram"].decode([4 + 0xED, 4 + 0x95]) == "\ufffd"


def test_the_word_tokenizer_can_give_unknown_words_as_the_papers_do(tokenizers):
    encoding = tokenizers["word-unk"].encode("Il xyzzy est.")
    assert encoding.ids[1] == UNK
    assert encoding.spans[1] == (3, 8)
    assert tokenizers["word-unk"].decode(encoding.ids) == "Il\u2047 est."


@pytest.mark.parametrize("name", OPTIONS)
def test_a_tokenizer_read_back_gives_the_same_ids(tokenizers, name):
    tokenizer = tokenizers[name]
    again = Tokenizer.from_bytes(tokenizer.to_bytes())
    assert again.sha256 == tokenizer.sha256
    for mine, other in zip(
        again.encode_batch(SENTENCES + TRAPS), tokenizer.encode_batch(SENTENCES + TRAPS), strict=True
    ):
        assert mine.tolist() == other.tolist()


@pytest.mark.parametrize("name", OPTIONS)
def test_learning_twice_gives_the_same_tokenizer(tokenizers, name):
    assert Tokenizer.learn(SENTENCES, OPTIONS[name]).sha256 == tokenizers[name].sha256


def test_after_an_elided_word_the_next_has_the_pieces_it_has_elsewhere(tokenizers):
    for text in ("l'étudiant", "L’étudiant", "qu'étudiant", "lorsqu'étudiant"):
        encoding = tokenizers["elisions"].encode(text)
        rest = tokenizers["elisions"].encode("étudiant").pieces
        assert encoding.pieces[-len(rest) :] == rest and encoding.spans[-1][1] == len(text)
        assert encoding.spans[-len(rest)][0] == len(text) - len("étudiant")
    joined = tokenizers["unigram"].encode("l'étudiant").pieces
    assert joined[-1][0] != SPACE  # without the option it has pieces of its own
    alone = tokenizers["elisions"].encode("don't l'1 all'x").pieces
    assert sum(piece[0] == SPACE for piece in alone) == 3


@given(text=any_text)
def test_the_spans_of_decoded_pieces_lie_where_the_text_was_encoded(tokenizers, text):
    for name in ("unigram", "elisions"):
        tokenizer = tokenizers[name]
        encoding = tokenizer.encode(text)
        decoded, spans = tokenizer.decode_spans(encoding.ids)
        assert decoded == text and tuple(spans) == encoding.spans


@pytest.mark.parametrize("name", ["unigram", "bpe", "elisions"])
def test_sampled_segmentations_vary_decode_to_the_same_text_and_repeat_with_the_seed(tokenizers, name):
    tokenizer = tokenizers[name]
    texts = [*SENTENCES[:50], f"{SPACE} a\ud800b"]
    first = lists(tokenizer.sample_batch(texts, 0.1, seed=1))
    assert first == lists(tokenizer.sample_batch(texts, 0.1, seed=1))
    assert first != lists(tokenizer.sample_batch(texts, 0.1, seed=2))
    assert first != lists(tokenizer.encode_batch(texts))
    assert [tokenizer.decode(ids) for ids in first] == texts


def test_a_batch_is_encoded_as_its_texts_one_by_one(tokenizers):
    texts = SENTENCES[:200] + TRAPS
    for tokenizer in tokenizers.values():
        assert lists(tokenizer.encode_batch(texts)) == [list(tokenizer.encode(text).ids) for text in texts]


def test_a_joint_vocabulary_is_one_tokenizer_and_separate_ones_are_two():
    sources, targets = SENTENCES[0::2], SENTENCES[1::2]
    joint = TokenizerPair.learn(sources, targets, OPTIONS["unigram"])
    assert joint.source is joint.target
    separate = TokenizerPair.learn(sources, targets, OPTIONS["word"])
    assert f"{SPACE}the" in separate.target.pieces and f"{SPACE}the" not in separate.source.pieces


def test_a_small_corpus_gives_a_smaller_vocabulary_than_asked_for():
    for kind in ("unigram", "bpe"):
        tokenizer = Tokenizer.learn(["le chat dort"] * 5, SubwordOptions(kind=kind, vocab_size=8000))
        assert NUM_RESERVED < tokenizer.vocab_size < 8000
        assert tokenizer.decode(tokenizer.encode("le chat").ids) == "le chat"


def test_a_vocabulary_too_small_for_the_alphabet_says_how_many_are_needed():
    texts = ["".join(map(chr, range(0xAC00, 0xAC00 + 400)))] * 3
    with pytest.raises(TokenizerError, match="use at least"):
        Tokenizer.learn(texts, SubwordOptions(vocab_size=300))


def test_learning_from_nothing_is_a_clear_error():
    with pytest.raises(TokenizerError):
        Tokenizer.learn(["", ""], SubwordOptions())


@pytest.mark.parametrize(
    "text", ["a." * 40_000, "+-" * 40_000, "qu" * 40_000, "a@b." * 20_000, "http://" * 10_000]
)
def test_words_are_found_in_linear_time(text):
    started = time.process_time()
    words(text)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{}",
        b"[1]\n",
        b"\x80\x04pickle",
        b'{"format": "regard-tokenizer/9", "options": {}}\n',
        b'{"format": "regard-tokenizer/1", "options": null}\n',
        b'{"format": "regard-tokenizer/1", "options": {"kind": "word"}}\n',
        b'{"format": "regard-tokenizer/1", "options": {}}\n',
    ],
)
def test_foreign_bytes_are_refused_as_a_tokenizer(damage):
    with pytest.raises(TokenizerError):
        Tokenizer.from_bytes(damage)


def test_a_damaged_subword_model_is_refused(tokenizers):
    data = tokenizers["unigram"].to_bytes()
    head = data.index(b"\n") + 1
    with pytest.raises(TokenizerError):
        Tokenizer.from_bytes(data[:head] + b"\xff" * 100)


@given(text=any_text, fold=st.booleans())
def test_normalising_twice_is_normalising_once_and_the_traced_twin_agrees(text, fold):
    once = normalize(text, fold_quotes=fold)
    assert normalize(once, fold_quotes=fold) == once
    traced = trace_normalize(text, fold_quotes=fold)
    assert traced.text == once
    assert len(traced.origin) == len(once)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("  a\t b\u00a0\u2028c \n", "a b c"),
        ("e\u0301te\u0301", "été"),
        ("\u1112\u1161\u11ab", "한"),
        ("\ufeffso\u00adft\u200b\x00", "soft"),
        ("½ ﬁ Ａ", "½ ﬁ Ａ"),
        ("👨‍👩‍👧", "👨‍👩‍👧"),
        ("l’homme “dit”", "l’homme “dit”"),
    ],
)
def test_normalising_by_hand(text, clean):
    assert normalize(text) == clean


def test_quotes_are_folded_only_where_asked():
    assert normalize("l’homme “dit” «oui»", fold_quotes=True) == 'l\'homme "dit" «oui»'


@given(text=any_text)
def test_words_are_in_order_and_leave_only_white_space_between(text):
    place = 0
    for start, end in words(text):
        assert text[place:start].strip() == "" and start < end
        place = end
    assert text[place:].strip() == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("L'accord n'est pas signé... d'accord ?", ["L'", "accord", "n'", "est", "pas", "signé", "...", "d'", "accord", "?"]),
        ("I don't know: it's 12:30 o'clock, 1,992.50€.", ["I", "don't", "know", ":", "it's", "12:30", "o'clock", ",", "1,992.50", "€", "."]),
        ("한국어 문장입니다.", ["한국어", "문장입니다", "."]),
        ("e\u0301te\u0301 हिन्दी 我喜欢", ["e\u0301te\u0301", "हिन्दी", "我", "喜", "欢"]),
        ("👨‍👩‍👧!! %s {name} https://a.b/c?d=1.", ["👨‍👩‍👧", "!!", "%s", "{name}", "https://a.b/c?d=1", "."]),
    ],
)  # fmt: skip
def test_words_by_hand(text, expected):
    assert [text[start:end] for start, end in words(text)] == expected


def test_pieces_and_words_find_each_other(tokenizers):
    text = "Les  étudiantes xyzzy."
    encoding = tokenizers["bpe"].encode(text)
    matched = match_pieces(encoding.spans, words(text))
    for piece, touched in enumerate(matched.words_of_piece):
        for word in touched:
            assert piece in matched.pieces_of_word[word]
    for word, (start, end) in enumerate(words(text)):
        pieces = matched.pieces_of_word[word]
        assert encoding.spans[pieces[0]][0] == start and encoding.spans[pieces[-1]][1] == end


def test_a_piece_over_a_boundary_touches_both_words():
    matched = match_pieces([(0, 2), (2, 5), (5, 5), (5, 6)], [(0, 3), (3, 5)])
    assert matched.words_of_piece == ((0,), (0, 1), (), ())
    assert matched.pieces_of_word == ((0, 1), (1,))


def test_the_default_tokenizer_is_unigram_subwords():
    assert parse("tokenizer", {}) == SubwordOptions()
