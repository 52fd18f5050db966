"""Sentence pairs in two plain files, and links in a third."""

import codecs
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from regard.alignment.attention import Alignment
from regard.alignment.links import Link, from_pharaoh, to_pharaoh
from regard.corpus.input_file import check_utf8, read_lines
from regard.corpus.read import open_corpus
from regard.errors import CorpusError
from regard.text.words import Cut, cut_words


class PairFiles:
    """The lines of two files side by side, read anew each time; both must have as many, all UTF-8."""

    def __init__(self, source: Path, target: Path) -> None:
        self._corpus = open_corpus([source, target])
        self.source_language = self._corpus.source_language
        self.target_language = self._corpus.target_language

    def __iter__(self) -> Iterator[tuple[str, str]]:
        source, target = self._corpus.paths
        for pair in self._corpus.pairs():
            check_utf8(source, pair.line, pair.source)
            check_utf8(target, pair.line, pair.target)
            yield pair.source, pair.target


def lines_of(text: bytes, *, is_first: bool) -> list[str]:
    """Return lines of a file as `PairFiles` reads them; `is_first` if they are its first."""
    if not text:
        return []
    lines = text.removeprefix(codecs.BOM_UTF8 if is_first else b"").decode().removesuffix("\n")
    return lines.removesuffix("\r").replace("\r\n", "\n").split("\n")


def line_of_links(one: Alignment, *, as_json: bool) -> bytes:
    """Return what is written for a pair: its links, or all that is known, as JSON."""
    line = json.dumps(one.to_json(), ensure_ascii=False) if as_json else to_pharaoh(one.links)
    return line.encode() + b"\n"


def read_links(
    path: Path, pairs: Iterable[tuple[str, str]], cut: Cut = "spaces"
) -> Iterator[frozenset[Link]]:
    """Yield the links of each pair from a file with a line `0-0 1-2 ...` for each of them."""
    num_lines, num_pairs = sum(1 for _ in read_lines(path)), sum(1 for _ in pairs)
    if num_lines != num_pairs:
        raise CorpusError(f"{path} has {num_lines:,} lines for {num_pairs:,} pairs of sentences")
    for number, ((source, target), line) in enumerate(zip(pairs, read_lines(path), strict=True), 1):
        try:
            links = from_pharaoh(line)
        except ValueError as error:
            raise CorpusError(f"{path}, line {number}: {error}") from None
        lengths = len(cut_words(source, cut)), len(cut_words(target, cut))
        for a, b in links:
            if a >= lengths[0] or b >= lengths[1]:
                raise CorpusError(
                    f"{path}, line {number}: {a}-{b} is out of range, the pair has {lengths[0]} and "
                    f"{lengths[1]} words"
                )
        yield links
