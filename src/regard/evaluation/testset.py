"""A test set as its files have it: sources and references, none of them blank."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.corpus.input_file import InputFile
from regard.corpus.read import open_corpus
from regard.errors import CorpusError, UnequalError
from regard.evaluation.frequency import count_words

_SHOWN_LINES = 5
_SURROGATE = re.compile("[\ud800-\udfff]")  # what `InputFile` makes of bytes that are not UTF-8


@dataclass(frozen=True, slots=True)
class Texts:
    """The sentences of a test set, in the order of their lines."""

    sources: tuple[str, ...]
    references: tuple[str, ...]
    source_language: str | None
    target_language: str | None


def read_texts(
    paths: Sequence[Path], source_language: str | None = None, target_language: str | None = None
) -> Texts:
    """Return the test set in two plain files, or in one that holds both languages.

    One file is read from the source language to the target language, where they are known.
    """
    corpus = open_corpus(paths, *(source_language, target_language) if len(paths) == 1 else ())
    pairs = list(corpus.pairs())
    for path, side in ((corpus.paths[0], "source"), (corpus.paths[-1], "reference")):
        texts = [pair.source if side == "source" else pair.target for pair in pairs]
        lines = [pair.line for pair in pairs]
        check_readable(path, texts, lines)
        blank = [line for line, text in zip(lines, texts, strict=True) if not text.strip()]
        if blank:
            shown = ", ".join(f"{line:,}" for line in blank[:_SHOWN_LINES])
            more = f" and {len(blank) - _SHOWN_LINES:,} more" if len(blank) > _SHOWN_LINES else ""
            raise CorpusError(
                f"{path}:{blank[0]}: the {side} is blank, and nothing can be compared with it "
                f"({corpus.place} {shown}{more}); take {'it' if len(blank) == 1 else 'them'} out "
                f"of every file, the same {corpus.place} in each"
            )
    return Texts(
        tuple(pair.source for pair in pairs),
        tuple(pair.target for pair in pairs),
        corpus.source_language,
        corpus.target_language,
    )


def read_translations(path: Path, num_wanted: int) -> tuple[str, ...]:
    """Return the translations of another system, one in each line; a blank one is a wrong one."""
    texts = tuple(read_lines(path))
    if len(texts) != num_wanted:
        raise UnequalError(
            f"{path} has {len(texts):,} lines and the test set {num_wanted:,}; give one translation for each "
            "source, in their order",
            num_wanted,
            len(texts),
        )
    return texts


def read_counts(path: Path, lower: bool, tokenized: bool) -> Counter[str]:
    """Return how often each word of a file occurs, such as the target side of what was trained on."""
    counts = count_words(read_lines(path), lower, tokenized)
    if not counts:
        raise CorpusError(f"{path}: has no words; name the target side of the training data")
    return counts


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, all of them UTF-8."""
    if not path.is_file():
        reason = "is a folder; name the file in it" if path.is_dir() else "no such file; check the name"
        raise CorpusError(f"{path}: {reason}")
    with InputFile(path) as file:
        for number, text in enumerate(file.lines(), 1):
            check_readable(path, [text], [number])
            yield text


def check_readable(path: Path, texts: Sequence[str], lines: Sequence[int]) -> None:
    """Raise an error for a line that is not UTF-8; half of its letters would be compared with nothing."""
    for line, text in zip(lines, texts, strict=True):
        if not text.isascii() and _SURROGATE.search(text):
            raise CorpusError(f"{path}:{line}: is not UTF-8; convert the file")
