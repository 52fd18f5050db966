"""A test set as its files have it: sources and references, none of them blank."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.contract import Features
from regard.corpus.input_file import check_utf8, read_lines
from regard.corpus.read import open_corpus
from regard.errors import CorpusError, UnequalError
from regard.evaluation.frequency import count_words

_SHOWN_LINES = 5


@dataclass(frozen=True, slots=True)
class TestSet:
    """Sources and a reference for each, none of them blank; their languages where they are known.

    Sources that are features are named by their positions in `sources`.
    """

    __test__ = False  # pytest takes it for a test by its name

    sources: tuple[str, ...]
    references: tuple[str, ...]
    source_language: str | None = None
    target_language: str | None = None
    features: tuple[Features, ...] = ()

    @property
    def inputs(self) -> Sequence[str | Features]:
        """What a model is given: the sources, or their features."""
        return self.features or self.sources

    @classmethod
    def of(
        cls,
        sources: Sequence[str],
        references: Sequence[str],
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> "TestSet":
        """Return the test set of two lists of texts, or raise an error that says why they are none."""
        if isinstance(sources, str) or isinstance(references, str):
            raise TypeError("a test set has lists of texts; put single texts into brackets")
        if not sources or len(sources) != len(references):
            raise CorpusError(
                f"cannot evaluate {len(sources):,} sources, {len(references):,} references; "
                "give one of each for every sentence, and at least one"
            )
        for side, texts in (("source", sources), ("reference", references)):
            for number, text in enumerate(texts, 1):
                if not text.strip():
                    raise CorpusError(f"{side} {number:,} is blank; leave that sentence out")
        return cls(tuple(sources), tuple(references), source_language, target_language)


def read_test(
    paths: Sequence[Path], source_language: str | None = None, target_language: str | None = None
) -> TestSet:
    """Return the test set in two plain files, or in one that holds both languages.

    One file is read from the source language to the target language, where they are known.
    """
    corpus = open_corpus(paths, *(source_language, target_language) if len(paths) == 1 else ())
    pairs = list(corpus.pairs())
    for path, side in ((corpus.paths[0], "source"), (corpus.paths[-1], "reference")):
        texts = [pair.source if side == "source" else pair.target for pair in pairs]
        lines = [pair.line for pair in pairs]
        for line, text in zip(lines, texts, strict=True):
            check_utf8(path, line, text)
        blank = [line for line, text in zip(lines, texts, strict=True) if not text.strip()]
        if blank:
            shown = ", ".join(f"{line:,}" for line in blank[:_SHOWN_LINES])
            more = f" and {len(blank) - _SHOWN_LINES:,} more" if len(blank) > _SHOWN_LINES else ""
            raise CorpusError(
                f"{path}:{blank[0]}: the {side} is blank, and nothing can be compared with it "
                f"({corpus.place} {shown}{more}); take {'it' if len(blank) == 1 else 'them'} out "
                f"of every file, the same {corpus.place} in each"
            )
    features = tuple(pair.features for pair in pairs if pair.features is not None)
    return TestSet(
        tuple(one.text for one in features) or tuple(pair.source for pair in pairs),
        tuple(pair.target for pair in pairs),
        corpus.source_language,
        corpus.target_language,
        features,
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
