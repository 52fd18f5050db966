"""Pre-trained word vectors for the pieces of a tokenizer, from fastText, word2vec and GloVe files."""

import codecs
import re
import unicodedata
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import numpy as np
import regex
from numpy.typing import NDArray

from regard.errors import CorpusError
from regard.files import READ_ERRORS, decompressed
from regard.text.scripts import UNSPACED
from regard.text.tokenizer import Tokenizer
from regard.vocabulary import NUM_RESERVED, SPACE

MAX_VECTOR_SIZE = 10_000

_BLOCK_BYTES = 1 << 16  # holds a header and the first vector of any size, by which a file is recognised
_MAX_LINE_BYTES = 1 << 20  # 10,000 numbers of a hundred digits
_MAX_WORD_BYTES = 1 << 14
_HEADER = re.compile(rb"[ \t]*(\d{1,18})[ \t]+(\d{1,18})[ \t]*\r?(?:\n|\Z)")
_NUMERALS = b"0123456789+-.eE \t\r\nnaifNAIF"  # nan and inf count as text too
_FOREIGN_MARKS = (
    (b"PK\x03\x04", "is a zip archive; unpack it first"),
    (b"\xba\x16\x4f\x2f", "is a fastText model; take the file of the same vectors that ends in .vec"),
    (b"\x1f\x8b", "is compressed by gzip; let its name end in .gz"),
    (b"\xfd7zXZ\x00", "is compressed by xz; let its name end in .xz"),
    (b"\x28\xb5\x2f\xfd", "is compressed by zstd; let its name end in .zst"),
)
# A letter or mark of a script that puts spaces between its words.
_SPACED_LETTER = regex.compile(rf"[\p{{L}}\p{{M}}--{UNSPACED}]", regex.VERSION1)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many pieces a file has a vector for."""

    name: str
    num_coverable: int  # pieces that stand for a word
    num_found: int
    num_lowered: int  # of the found, those found in lower case only
    vector_size: int
    num_words: int  # in the file

    def __str__(self) -> str:
        percent = 100 * self.num_found / max(self.num_coverable, 1)
        return (
            f"{self.name}: {self.num_found:,} of {self.num_coverable:,} whole-word pieces found "
            f"({percent:.1f} %), {self.num_lowered:,} of them lower-cased"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """The vector of each id; a row is zero where `found` is false."""

    table: NDArray[np.float32]
    found: NDArray[np.bool_]
    coverage: Coverage


def read_vector_size(path: Path) -> int:
    """Return how many numbers each vector of a file has, from its first bytes.

    Raises CorpusError for what is not a file of vectors.
    """
    with closing(_blocks(path)) as blocks:
        return _recognise(path, blocks).vector_size


def vectors_for(path: Path, tokenizer: Tokenizer) -> Vectors:
    """Return the vectors of all pieces that stand for a word of the file; `word_of` says which word.

    The word is looked up as it is, and in lower case if it is not there; the first of equal words counts.
    The file is read once and in little memory, and the numbers of other words are not looked at.
    Raises CorpusError, with file and line, for what is not a file of vectors.
    """
    exact: defaultdict[str, list[int]] = defaultdict(list)
    lowered: defaultdict[str, list[int]] = defaultdict(list)
    whole_words = tokenizer.options.kind == "word"
    num_pieces = len(tokenizer.pieces)
    for id in range(NUM_RESERVED, num_pieces):
        if word := word_of(tokenizer.pieces[id], whole_words=whole_words):
            exact[word].append(id)
            if (small := unicodedata.normalize("NFC", word.lower())) != word:
                lowered[small].append(id)
    num_coverable = sum(map(len, exact.values()))

    with closing(_blocks(path)) as blocks:
        file = _recognise(path, blocks)
        table = np.zeros((num_pieces, file.vector_size), np.float32)
        found = np.zeros(num_pieces, np.bool_)
        only_lowered = np.zeros(num_pieces, np.bool_)
        num_words = 0
        for entry in file.entries():
            num_words += 1
            # Bytes that are not UTF-8 become lone surrogates, which no piece holds.
            word = entry.word.decode("utf-8", "surrogateescape")
            if not word.isascii():
                word = unicodedata.normalize("NFC", word)
            if word not in exact and word not in lowered:
                continue
            vector = file.vector(entry)
            # A word is taken out once it is met, so that a second one changes nothing.
            for id in lowered.pop(word, ()):
                if not found[id]:
                    table[id] = vector
                    found[id] = only_lowered[id] = True
            for id in exact.pop(word, ()):
                table[id] = vector
                found[id] = True
                only_lowered[id] = False
    if num_words < file.num_promised:
        raise CorpusError(
            f"{path}: line 1 promises {file.num_promised:,} words but the file ends after {num_words:,}; "
            f"download it again or, if you shortened it, make line 1 '{num_words} {file.vector_size}'"
        )
    if num_words == 0:
        raise CorpusError(f"{path}: contains no word; check how it was written")
    coverage = Coverage(
        name=path.name,
        num_coverable=num_coverable,
        num_found=int(found.sum()),
        num_lowered=int(only_lowered.sum()),
        vector_size=file.vector_size,
        num_words=num_words,
    )
    return Vectors(table, found, coverage)


def word_of(piece: str, *, whole_words: bool) -> str | None:
    """Return the word, in NFC, that a learnt piece stands for, or None if it is white or part of a word.

    A piece that starts with ▁ stands for the word after it. One that does not is a word of its own
    for a tokenizer of whole words; for others it lies inside a word, and the vector of a word spelt
    the same would mislead, unless it holds no letters (punctuation and digits, which vector files set
    apart) or only those of scripts without spaces (Chinese, Thai).
    """
    word = piece.removeprefix(SPACE)
    if SPACE in word or not word.strip():
        return None
    if word == piece and not whole_words and _SPACED_LETTER.search(word):
        return None
    return unicodedata.normalize("NFC", word)


class _Entry(NamedTuple):
    """A word of the file with its numbers as they stand there; lines or words are numbered from 1."""

    number: int
    word: bytes
    values: bytes


@dataclass(frozen=True, slots=True)
class _TextFile:
    """A file with a word and its numbers on each line."""

    path: Path
    vector_size: int
    num_promised: int
    lines: Iterator[bytes]
    first_number: int

    def entries(self) -> Iterator[_Entry]:
        """Yield the entries of all lines that are not blank."""
        size = self.vector_size
        for number, line in enumerate(self.lines, self.first_number):
            line = line.rstrip()
            if line.count(b" ") == size:
                word, _, values = line.partition(b" ")
                yield _Entry(number, word, values)
            elif line:
                yield self._odd_entry(number, line)

    def vector(self, entry: _Entry) -> NDArray[np.float32]:
        """Return the numbers of an entry."""
        fields = entry.values.split()
        if len(fields) != self.vector_size:
            raise self._miscounted(entry.number, len(fields))
        try:
            values = np.array([float(field) for field in fields])
        except ValueError:
            wrong = next(field for field in fields if not _is_number(field))
            raise self._error(entry.number, f"{_quoted(wrong)} is not a number") from None
        with np.errstate(over="ignore"):
            vector = values.astype(np.float32)
        if not np.isfinite(vector).all():
            wrong = fields[int(np.isfinite(vector).argmin())]
            raise self._error(entry.number, f"{_quoted(wrong)} is not a finite number")
        return vector

    def _odd_entry(self, number: int, line: bytes) -> _Entry:
        """Return the entry of a line that has tabs or double spaces, or spaces inside its word."""
        fields = line.rsplit(None, self.vector_size)
        inner = fields[0].split()[1:]
        # GloVe's 840B vectors have words such as ". . ."; a number there is a value too many.
        if len(fields) <= self.vector_size or (inner and _is_number(inner[-1])):
            raise self._miscounted(number, len(line.split()) - 1)
        return _Entry(number, fields[0], line[len(fields[0]) :])

    def _miscounted(self, number: int, num_values: int) -> CorpusError:
        return self._error(
            number, f"{num_values:,} values instead of the {self.vector_size:,} that line 1 sets"
        )

    def _error(self, number: int, problem: str) -> CorpusError:
        return CorpusError(f"{self.path}:{number}: {problem}; fetch the file again or remove this line")


@dataclass(frozen=True, slots=True)
class _BinaryFile:
    """A word2vec binary: each word is followed by a space and its numbers as little-endian float32."""

    path: Path
    vector_size: int
    num_promised: int
    blocks: Iterator[bytes]

    def entries(self) -> Iterator[_Entry]:
        """Yield the entries; some programs end each with a line feed, others do not."""
        num_value_bytes = 4 * self.vector_size
        number = 1
        rest = b""
        for block in self.blocks:
            rest += block
            start = 0
            while (space := rest.find(b" ", start)) >= 0 and space + num_value_bytes < len(rest):
                end = space + 1 + num_value_bytes
                yield _Entry(number, rest[start:space].lstrip(b"\n"), rest[space + 1 : end])
                start = end
                number += 1
            rest = rest[start:]
            if len(rest) > _MAX_WORD_BYTES + num_value_bytes:
                raise self._error(number, f"longer than {_MAX_WORD_BYTES:,} bytes")
        if rest.strip():
            raise self._error(number, "the file ends inside it")

    def vector(self, entry: _Entry) -> NDArray[np.float32]:
        """Return the numbers of an entry."""
        vector = np.frombuffer(entry.values, "<f4").astype(np.float32)
        if not np.isfinite(vector).all():
            raise self._error(entry.number, f"{_quoted(entry.word)} has a value that is not a finite number")
        return vector

    def _error(self, number: int, problem: str) -> CorpusError:
        return CorpusError(f"{self.path}: word {number:,}: {problem}; the file is damaged, fetch it again")


def _recognise(path: Path, blocks: Iterator[bytes]) -> _TextFile | _BinaryFile:
    """Return the file, its format told by its first bytes."""
    head = next(blocks, b"")
    if not head:
        raise CorpusError(f"{path}: is empty; check how it was written")
    for mark, problem in _FOREIGN_MARKS:
        if head.startswith(mark):
            raise CorpusError(f"{path}: {problem}")
    head = head.removeprefix(codecs.BOM_UTF8)
    header = _HEADER.match(head)
    if not header:
        lines = _lines(path, chain([head], blocks), first_number=1)
        first = next(lines)
        fields = first.split()
        if len(fields) < 2 or not all(map(_is_number, fields[1:])):
            raise CorpusError(
                f"{path}:1: neither `count width` nor a word and its numbers, but {_quoted(first)}; "
                "give a file of vectors as fastText (.vec), word2vec or GloVe write them"
            )
        return _TextFile(path, _checked(path, len(fields) - 1), 0, chain([first], lines), 1)
    num_promised, vector_size = int(header[1]), _checked(path, int(header[2]))
    body = head[header.end() :]
    blocks = chain([body], blocks)
    # Half is a wide margin: a faulty line still looks like text, and few bytes of a float are numerals.
    sample = body.partition(b" ")[2][: 4 * vector_size]
    if 2 * len(sample.translate(None, _NUMERALS)) > len(sample):
        return _BinaryFile(path, vector_size, num_promised, blocks)
    return _TextFile(path, vector_size, num_promised, _lines(path, blocks, first_number=2), 2)


def _checked(path: Path, vector_size: int) -> int:
    if 0 < vector_size <= MAX_VECTOR_SIZE:
        return vector_size
    raise CorpusError(
        f"{path}:1: vectors of {vector_size:,} numbers; regard takes 1 to {MAX_VECTOR_SIZE:,}: "
        "check that this is a file of vectors"
    )


def _blocks(path: Path) -> Generator[bytes, None, None]:
    """Yield the uncompressed bytes, 64 KiB at a time."""
    try:
        raw = path.open("rb")
    except OSError as error:
        raise CorpusError(
            f"{path}: cannot be opened ({error.strerror}); check the name and permissions"
        ) from error
    with raw, closing(decompressed(path, cast(BinaryIO, raw))) as stream:
        while True:
            try:
                block = stream.read(_BLOCK_BYTES)
            except READ_ERRORS as error:
                raise CorpusError(
                    f"{path}: cannot be read ({error}); download it again, or correct its ending"
                ) from error
            if not block:
                return
            yield block


def _lines(path: Path, blocks: Iterator[bytes], first_number: int) -> Iterator[bytes]:
    """Yield the lines, ended by `\\n` and by nothing else."""
    number = first_number
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
        number += len(lines)
        if len(rest) > _MAX_LINE_BYTES:
            raise CorpusError(
                f"{path}:{number}: longer than {_MAX_LINE_BYTES:,} bytes; "
                "check that this is a file of vectors, with one word on each line"
            )
    yield rest


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _quoted(field: bytes) -> str:
    """Return bytes from the file for use in a message: in quotes, on one line, and not too many."""
    text = field[:161].decode("utf-8", "replace")
    return repr(text if len(text) <= 40 else text[:40] + "…")
