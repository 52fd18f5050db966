"""How well words are translated, by how often they occur: what is rare is learnt last."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from regard.evaluation.resample import interval_within, resample
from regard.evaluation.scores import Floats, Interval, f_measure
from regard.text.words import words

_BIN_STARTS = (0, 1, 2, 5, 10, 100, 1000, 10_000, None)


@dataclass(frozen=True, slots=True)
class FrequencyScore:
    """How well the words are translated that occur from `least` to `most` times; None is any number.

    A word is right as often as the reference of the same sentence has it. `f` is the harmonic mean of
    precision (of the words said) and recall (of the words of the references), all from 0 to 100.
    """

    least: int
    most: int | None
    num_reference_words: int
    num_words: int
    precision: float
    recall: float
    f: float
    interval: Interval | None  # none if all of its words are in one sentence

    @property
    def label(self) -> str:
        """The bin as it is written: `0`, `2-4`, `10000+`."""
        if self.most is None:
            return f"{self.least}+"
        return str(self.least) if self.least == self.most else f"{self.least}-{self.most}"


def split_words(text: str, lower: bool, tokenized: bool) -> list[str]:
    """Return the words of a text as they are counted here."""
    text = text.lower() if lower else text
    return text.split() if tokenized else [text[start:end] for start, end in words(text)]


def count_words(texts: Iterable[str], lower: bool = False, tokenized: bool = False) -> Counter[str]:
    """Return how often each word occurs."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(split_words(text, lower, tokenized))
    return counts


def by_frequency(
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    occurrences: Counter[str],
    num_resamples: int,
    seed: int,
) -> tuple[FrequencyScore, ...]:
    """Return the scores of each bin of words that the references have."""
    starts = [start for start in _BIN_STARTS if start is not None]
    # For each sentence and bin: right, said and wanted.
    counts = np.zeros((len(references), len(starts), 3))
    for row, (said, wanted) in enumerate(
        zip(map(Counter, hypotheses), map(Counter, references), strict=True)
    ):
        for word in said.keys() | wanted.keys():
            place = int(np.searchsorted(starts, occurrences[word], side="right")) - 1
            counts[row, place] += min(said[word], wanted[word]), said[word], wanted[word]
    totals = counts.sum(axis=0)
    present = [place for place in range(len(starts)) if totals[place, 2]]
    resampled = resample([counts[:, place] for place in present], num_resamples, seed)
    ends = list(pairwise(_BIN_STARTS))
    found = []
    for place, sums in zip(present, resampled, strict=True):
        # A resample without such words says nothing of them.
        known = sums[sums[:, 1:].any(axis=1)]
        num_sentences = int(counts[:, place, 1:].any(axis=1).sum())
        right, num_said, num_wanted = totals[place]
        after = ends[place][1]
        found.append(
            FrequencyScore(
                starts[place],
                None if after is None else after - 1,
                int(num_wanted),
                int(num_said),
                100 * right / max(num_said, 1),
                100 * right / num_wanted,
                float(_f(totals[place][None])[0]),
                interval_within(num_sentences, _f(known)),
            )
        )
    return tuple(found)


def _f(sums: Floats) -> Floats:
    right, said, wanted = sums.T
    return 100 * f_measure(right / np.maximum(said, 1), right / np.maximum(wanted, 1))
