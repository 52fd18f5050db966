"""Word vectors from files in every format, and from files that are none."""

import gzip
import lzma
import struct
import tracemalloc
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import zstandard

from regard.errors import CorpusError
from regard.options.text import CharacterOptions, SubwordOptions, WordOptions
from regard.sample import read_sample
from regard.text.segment import SPLITS, TableSegmenter
from regard.text.tokenizer import Tokenizer
from regard.text.vectors import MAX_VECTOR_SIZE, vectors_for, word_of
from regard.vocabulary import NUM_RESERVED, SPACE

# Values that float32 holds exactly, so that every format must give back the same.
ENTRIES = {"chat": [0.5, -2.0, 0.125], "Le": [1.0, 0.0, -1.5], "été": [8.0, 0.25, 3.0]}


def word_tokenizer(*learnt: str) -> Tokenizer:
    return Tokenizer(WordOptions(), TableSegmenter([SPACE, *learnt], SPLITS["word"]))


def character_tokenizer(*learnt: str) -> Tokenizer:
    return Tokenizer(CharacterOptions(), TableSegmenter([SPACE, *learnt], SPLITS["character"]))


def lines_of(entries, end="\n"):
    return "".join(f"{word} {' '.join(map(str, values))}{end}" for word, values in entries.items())


def glove(entries):
    return lines_of(entries).encode()


def fasttext(entries, end="\n"):
    size = len(next(iter(entries.values())))
    return f"{len(entries)} {size}{end}{lines_of(entries, end)}".encode()


def binary(entries, end=b"\n"):
    size = len(next(iter(entries.values())))
    return f"{len(entries)} {size}\n".encode() + b"".join(
        word.encode() + b" " + struct.pack(f"<{size}f", *values) + end for word, values in entries.items()
    )


FILES = {
    "fasttext": fasttext(ENTRIES),
    "fasttext with a space at the end of lines": fasttext(ENTRIES, " \n"),
    "fasttext from windows": b"\xef\xbb\xbf" + fasttext(ENTRIES, "\r\n"),
    "fasttext without a last line feed": fasttext(ENTRIES)[:-1],
    "tabs": fasttext(ENTRIES).replace(b" ", b"\t"),
    "glove": glove(ENTRIES),
    "binary": binary(ENTRIES),
    "binary without line feeds": binary(ENTRIES, b""),
}


def fault(path: Path, tokenizer: Tokenizer | None = None) -> str:
    """Return the message of the error that reading raises, without the name of the file."""
    with pytest.raises(CorpusError) as caught:
        vectors_for(path, tokenizer or word_tokenizer("chat", "chien"))
    message = str(caught.value)
    assert message.startswith(f"{path}:")
    assert "\n" not in message
    assert len(message) < 300 + len(str(path))
    return message.removeprefix(f"{path}:")


# Formats


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_every_format_gives_the_same_table(write, content):
    tokenizer = word_tokenizer("▁Le", "▁chien", "▁chat", "chat", "▁été")
    vectors = vectors_for(write("vectors", content), tokenizer)
    assert vectors.table.dtype == np.float32
    assert vectors.table.shape == (NUM_RESERVED + 6, 3)
    zeros = [0, 0, 0]
    expected = [zeros, ENTRIES["Le"], zeros, ENTRIES["chat"], ENTRIES["chat"], ENTRIES["été"]]
    assert vectors.table[NUM_RESERVED:].tolist() == expected
    assert vectors.found[NUM_RESERVED:].tolist() == [False, True, False, True, True, True]
    assert not vectors.found[:NUM_RESERVED].any() and not vectors.table[:NUM_RESERVED].any()
    assert vectors.coverage.num_words == 3 and vectors.coverage.vector_size == 3


@pytest.mark.parametrize("content", [fasttext(ENTRIES), glove(ENTRIES), binary(ENTRIES)])
@pytest.mark.parametrize(
    ("ending", "compress"),
    [(".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstandard.ZstdCompressor().compress)],
)
def test_compressed_files_are_read_like_any_other(write, content, ending, compress):
    vectors = vectors_for(write(f"cc.fr.vec{ending}", compress(content)), word_tokenizer("▁chat"))
    assert vectors.table[-1].tolist() == ENTRIES["chat"]


@pytest.mark.parametrize("encode", [fasttext, glove, binary])
def test_entries_are_whole_wherever_a_block_ends(write, encode):
    rng = np.random.default_rng(1)
    entries = {f"w{number}": rng.normal(size=50).astype(np.float32).tolist() for number in range(500)}
    vectors = vectors_for(write("vectors", encode(entries)), word_tokenizer(*entries))
    assert vectors.found[NUM_RESERVED + 1 :].all()
    assert vectors.table[NUM_RESERVED + 1 :].tolist() == list(entries.values())


def test_the_widest_vectors_are_read_in_every_format(write):
    values = np.random.default_rng(1).normal(size=MAX_VECTOR_SIZE).astype(np.float32)
    for encode in (fasttext, glove, binary):
        vectors = vectors_for(write("vectors", encode({"chat": values.tolist()})), word_tokenizer("chat"))
        assert np.array_equal(vectors.table[-1], values)


def test_a_word_may_hold_spaces(write):
    path = write(
        "glove.840B.txt", "the 1 2 3\n. . . 4 5 6\nat name@domain.com 7 8 9\n.\u00a0. 1 1 1\nchat 2 2 2\n"
    )
    vectors = vectors_for(path, word_tokenizer(".", "at", "chat"))
    assert vectors.found[-3:].tolist() == [False, False, True]
    assert vectors.coverage.num_words == 5


def test_only_a_line_feed_ends_a_line(write):
    path = write("a.vec", "3 2\n\u2028 1 2\nx\x85y\x0cz 3 4\nchat 5 6\n")
    assert vectors_for(path, word_tokenizer("chat")).table[-1].tolist() == [5, 6]


def test_a_word_that_is_not_utf8_is_read_over(write):
    for content in (b"2 2\ncaf\xe9 1 2\nchat 3 4\n", b"caf\xe9 1 2\nchat 3 4\n"):
        vectors = vectors_for(write("a.vec", content), word_tokenizer("caf\ufffd", "caf", "chat"))
        assert vectors.found[-3:].tolist() == [False, False, True]
        assert vectors.coverage.num_words == 2


def test_a_file_may_hold_more_than_its_header_promises(write):
    vectors = vectors_for(write("a.vec", "1 2\nle 1 2\nchat 3 4\n\n"), word_tokenizer("chat"))
    assert vectors.table[-1].tolist() == [3, 4] and vectors.coverage.num_words == 2


def test_numbers_of_words_that_are_not_wanted_are_not_looked_at(write):
    vectors = vectors_for(write("a.vec", "3 2\nle nan nan\nzut oops inf\nchat 3 4\n"), word_tokenizer("chat"))
    assert vectors.table[-1].tolist() == [3, 4]


# Which word a piece stands for, and how it is found


@pytest.mark.parametrize(
    ("piece", "in_words", "in_subwords"),
    [
        ("▁chat", "chat", "chat"),
        ("▁e\u0301te\u0301", "été", "été"),
        ("▁(", "(", "("),
        ("chat", "chat", None),
        ("한", "한", None),
        ("\u0301", "\u0301", None),
        ("'s", "'s", None),
        (".", ".", "."),
        ("...", "...", "..."),
        ("7", "7", "7"),
        ("世界", "世界", "世界"),
        ("データ", "データ", "データ"),
        ("ไทย", "ไทย", "ไทย"),
        ("▁", None, None),
        ("▁▁", None, None),
        ("\u00a0", None, None),
    ],
)
def test_a_piece_stands_for_a_word_or_for_none(piece, in_words, in_subwords):
    assert word_of(piece, whole_words=True) == in_words
    assert word_of(piece, whole_words=False) == in_subwords


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_subwords_inside_words_get_no_vector(write, kind):
    texts = [text for pair in read_sample(300) for text in (pair.source, pair.target)]
    tokenizer = Tokenizer.learn(texts, SubwordOptions(kind=kind, vocab_size=600))
    everything = {piece.removeprefix(SPACE): [1.0, 2.0] for piece in tokenizer.pieces}
    everything.pop("")
    vectors = vectors_for(write("a.vec", fasttext(everything)), tokenizer)
    starts = [id for id, piece in enumerate(tokenizer.pieces) if piece[0] == SPACE and piece != SPACE]
    inside = [id for id, piece in enumerate(tokenizer.pieces) if id >= NUM_RESERVED and piece.isalpha()]
    assert len(starts) > 100 and vectors.found[starts].all()
    assert len(inside) > 20 and not vectors.found[inside].any()
    assert vectors.found[tokenizer.pieces.index(".")]
    assert vectors.coverage.num_found == vectors.coverage.num_coverable == vectors.found.sum()


def test_a_letter_is_not_the_word_spelt_the_same(write):
    vectors = vectors_for(write("a.txt", "a 1 2\n. 3 4\n"), character_tokenizer("a", "."))
    assert vectors.found[-2:].tolist() == [False, True]


def test_the_exact_word_is_preferred_wherever_it_stands(write):
    for content in ("le 1 1\nLe 2 2\n", "Le 2 2\nle 1 1\n"):
        vectors = vectors_for(write("a.txt", content), word_tokenizer("Le", "le", "LE"))
        assert vectors.table[-3:].tolist() == [[2, 2], [1, 1], [1, 1]]
        assert vectors.coverage.num_lowered == 1


def test_the_first_of_equal_words_counts(write):
    path = write("a.txt", "chat 1 1\nchat 2 2\nchat nan nan\nle 3 3\nle 4 4\nle nan nan\n")
    assert vectors_for(path, word_tokenizer("chat", "Le")).table[-2:].tolist() == [[1, 1], [3, 3]]


def test_accents_match_however_they_are_written(write):
    path = write("a.txt", unicodedata.normalize("NFD", "été 1 1\nécole 2 2\n"))
    assert vectors_for(path, word_tokenizer("été", "École")).table[-2:].tolist() == [[1, 1], [2, 2]]


def test_reserved_pieces_get_no_vector(write):
    path = write("a.txt", "</s> 1 1\n<unk> 1 1\n<0x41> 1 1\nA 1 1\n")
    assert not vectors_for(path, word_tokenizer("chat")).found.any()


def test_coverage_counts_pieces_as_worked_out_by_hand(write):
    # Of ▁ Le chat CHAT . zzz the first is no word; chat and . are there, Le and CHAT in lower case.
    path = write("cc.fr.300.vec", "4 2\nle 1 1\nchat 2 2\n. 3 3\nchien 4 4\n")
    coverage = vectors_for(path, word_tokenizer("▁Le", "chat", "CHAT", ".", "zzz")).coverage
    assert (coverage.num_coverable, coverage.num_found, coverage.num_lowered) == (5, 4, 2)
    assert (coverage.num_words, coverage.vector_size) == (4, 2)
    assert str(coverage) == "cc.fr.300.vec: 4 of 5 whole-word pieces found (80.0 %), 2 of them lower-cased"


def test_a_tokenizer_without_words_has_no_coverage(write):
    coverage = vectors_for(write("a.txt", "chat 1 1\n"), character_tokenizer("a")).coverage
    assert str(coverage) == "a.txt: 0 of 0 whole-word pieces found (0.0 %), 0 of them lower-cased"


# Files that are wrong


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("2 3\nle 1 2 3\nchat 1 2\n", "3: 2 values instead of the 3 that line 1 sets"),
        ("2 3\nle 1 2 3\nchien 1 2 3 4\n", "3: 4 values instead of the 3 that line 1 sets"),
        ("le 1 2 3\nzut 1 2\n", "2: 2 values instead of the 3 that line 1 sets"),
        ("le 1 2 3\nzut 1 2 \n", "2: 2 values instead of the 3 that line 1 sets"),
        ("le 1 2 3\nchat 1  2\n", "2: 2 values instead of the 3 that line 1 sets"),
        ("le 1 2 3\nchat\n", "2: 0 values instead of the 3 that line 1 sets"),
        ("2 3\nchat 1 zwei 3\n", "2: 'zwei' is not a number"),
        ("le 1 2 3\nchat 1 0x2 3\n", "2: '0x2' is not a number"),
        ("le 1 2 3\nchat 1 nan 3\n", "2: 'nan' is not a finite number"),
        ("1 3\nchat 1 2 -inf\n", "2: '-inf' is not a finite number"),
        ("1 3\nchat 1 2 1e39\n", "2: '1e39' is not a finite number"),
    ],
)
def test_a_wrong_line_is_named(write, content, message):
    assert fault(write("a.vec", content)) == message + "; fetch the file again or remove this line"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_binary_value_that_is_not_finite_is_named(write, value):
    message = fault(write("a.bin", binary({"le": [1.0, 2.0], "chat": [1.0, value]})))
    assert message.startswith(" word 2: 'chat' has a value that is not a finite number;")


def test_a_header_that_promises_too_much_is_told_the_right_number(write):
    message = fault(write("a.vec", "2000 2\nle 1 2\nchat 1 2\n"))
    assert message.startswith(" line 1 promises 2,000 words but the file ends after 2; download it again")
    assert message.endswith("make line 1 '2 2'")
    assert fault(write("a.vec", "5 2")).startswith(" line 1 promises 5 words but the file ends after 0;")


def test_a_binary_cut_anywhere_is_refused(write):
    content = binary(ENTRIES, b"")
    for length in range(len("3 3\nchat ") + 1, len(content)):
        message = fault(write("a.bin", content[:length]), word_tokenizer("chien"))
        assert "the file ends inside it" in message or "line 1 promises 3 words" in message, length
    assert fault(write("a.bin", content[:-1])).startswith(" word 3: the file ends inside it;")


@pytest.mark.parametrize("size", [0, MAX_VECTOR_SIZE + 1, 10**17])
def test_a_width_out_of_bounds_is_refused(write, size):
    assert fault(write("a.vec", f"2 {size}\nchat 1\n")).startswith(f"1: vectors of {size:,} numbers;")


def test_a_first_line_with_too_many_numbers_is_refused(write):
    assert fault(write("a.txt", "le" + " 1" * 10_001)).startswith("1: vectors of 10,001 numbers;")


@pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".zst"])
def test_an_empty_file_is_refused(write, ending):
    compress = {
        "": bytes,
        ".gz": gzip.compress,
        ".xz": lzma.compress,
        ".zst": zstandard.ZstdCompressor().compress,
    }
    assert fault(write("a.vec" + ending, compress[ending](b""))) == " is empty; check how it was written"


def test_a_file_without_words_is_refused(write):
    assert fault(write("a.vec", "0 300\n")) == " contains no word; check how it was written"


@pytest.mark.parametrize(
    "content",
    [
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
        b"Le chat dort.\n",
        b"\n",
        b"chat\n",
        "chat 1 2\n".encode("utf-16"),
        bytes(1000),
        b'{"chat": [1, 2]}',
    ],
)
def test_what_is_no_file_of_vectors_is_refused(write, content):
    message = fault(write("a.vec", content))
    assert message.startswith("1: neither `count width` nor a word and its numbers, but ")
    assert message.endswith("; give a file of vectors as fastText (.vec), word2vec or GloVe write them")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04" + bytes(30), "is a zip archive; unpack it first"),
        (struct.pack("<ii", 793712314, 12), "is a fastText model; take the file"),
        (gzip.compress(glove(ENTRIES)), "is compressed by gzip; let its name end in .gz"),
        (lzma.compress(glove(ENTRIES)), "is compressed by xz; let its name end in .xz"),
        (zstandard.compress(glove(ENTRIES)), "is compressed by zstd; let its name end in .zst"),
    ],
    ids=["zip", "fasttext", "gzip", "xz", "zstd"],
)
def test_files_that_people_have_beside_their_vectors_are_recognised(write, content, message):
    assert fault(write("a.vec", content)).startswith(" " + message)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    assert fault(tmp_path / "a.vec").startswith(" cannot be opened (No such file or directory);")
    assert fault(tmp_path).startswith(" cannot be opened (Is a directory);")


@pytest.mark.parametrize(
    ("ending", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstandard.compress)]
)
def test_damaged_compression_is_named(write, ending, compress):
    assert fault(write("a.vec" + ending, b"not compressed at all")).startswith(" cannot be read (")
    whole = compress(fasttext({f"w{number}": [number / 7, 1.0] for number in range(500)}))
    fault(write("a.vec" + ending, whole[: len(whole) // 2]))


# Memory


def peak_bytes(path, tokenizer, expected_fault=None):
    tracemalloc.start()
    try:
        if expected_fault is None:
            vectors_for(path, tokenizer)
        else:
            assert expected_fault in fault(path, tokenizer)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("encode", [fasttext, glove, binary])
def test_memory_does_not_grow_with_the_file(write, encode):
    tokenizer = word_tokenizer("w1", "w99")
    values = np.random.default_rng(1).normal(size=500).round(4).tolist()
    content = encode({f"w{number}": values for number in range(100)})
    body = content if encode is glove else content.partition(b"\n")[2]
    small, large = write("small", content), write("large", content + 23 * body)
    assert large.stat().st_size > 4.5e6
    large_peak = peak_bytes(large, tokenizer)  # half of it is the table
    assert large_peak < 1.2 * peak_bytes(small, tokenizer)
    assert large_peak < 1.5e6


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"", "1: longer than 1,048,576 bytes"),
        (b"le 1 2\n", "2: longer than 1,048,576 bytes"),
        (b"1 2\nchat 1.5 2.5", "2: longer than 1,048,576 bytes"),
        (b"2 2\nle " + struct.pack("<2f", 0.5, 0.5), "word 2: longer than 16,384 bytes"),
    ],
)
def test_a_gigabyte_without_an_end_costs_little_memory(tmp_path, head, message):
    path = tmp_path / "a.vec"
    with path.open("wb") as file:
        file.write(head)
        file.truncate(1 << 30)  # zeros that take no room on the disk
    assert peak_bytes(path, word_tokenizer("chat"), message) < 8 << 20


def test_a_small_file_that_unpacks_to_a_long_line_costs_little_memory(write):
    path = write("a.vec.gz", gzip.compress(b"chat " + b"1" * (16 << 20)))
    assert path.stat().st_size < 1e5
    assert peak_bytes(path, word_tokenizer("chat"), "1: longer than") < 8 << 20
