"""A translation memory: what was translated before, found again when the same or a similar source comes.

Sources are compared as words, with signs as words of their own. The similarity of two is that of most tools
for translators: 1 less their edit distance in words over the number of words of the longer one.
"""

import re
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.corpus.read import open_corpus
from regard.errors import ConfigError, CorpusError
from regard.text.normalize import normalize
from regard.text.scripts import UNSPACED_RANGES

LEAST_SCORE = 0.75
"""How similar a source must be to be worth a look, unless the user says otherwise."""

_MAX_UNITS = 2_000_000
_MAX_CHARACTERS = 1 << 29  # of all units together
_MAX_WORDS = 1000  # of a source that similar ones are looked for
_MAX_CHECKED = 200  # of those most like a source by their words alone; they bound the time of a lookup
_NOT_QUITE = 0.99  # sources with the same words that are not equal: a space more or less beside a sign
# Each letter of a script without spaces counts as a word.
_WORD = re.compile(rf"[{UNSPACED_RANGES}]|[^\W{UNSPACED_RANGES}]+|[^\w\s]")

_Numbers = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Match:
    """A unit of the memory, and how similar its source is: 1 if it is the same."""

    source: str
    target: str
    score: float

    @property
    def is_exact(self) -> bool:
        """Whether the source is the same."""
        return self.score == 1


class TranslationMemory:
    """Units of a source and its translation.

    White space, and whether quotation marks are curly, make no difference. Of several translations of a
    source the last is kept.
    """

    def __init__(self, units: dict[str, tuple[str, str]], least_score: float) -> None:
        """Make the index of units by their normalised source; use `of` or `read`."""
        if not 0 < least_score <= 1:
            raise ConfigError(f"a least score of {least_score} is not valid; use more than 0 up to 1")
        self.least_score = least_score
        self._units = units
        self._keys = list(units)
        self._vocabulary: dict[str, int] = {}
        ids, ends = array("i"), array("q", [0])
        for key in self._keys:
            words = _WORD.findall(key)
            if len(words) <= _MAX_WORDS:
                ids.extend([self._vocabulary.setdefault(word, len(self._vocabulary)) for word in words])
            ends.append(len(ids))
        self._ids_M: _Numbers = np.frombuffer(ids, np.int32) if ids else np.empty(0, np.int32)
        self._ends = np.frombuffer(ends, np.int64)
        self._lengths: _Numbers = np.diff(self._ends).astype(np.int32)
        order = np.argsort(self._ids_M, kind="stable")
        # For each word the units that have it, one after the other: those of word w begin at _firsts[w].
        self._having = np.repeat(np.arange(len(self._keys), dtype=np.int32), self._lengths)[order]
        counts = np.bincount(self._ids_M, minlength=len(self._vocabulary))
        self._firsts = np.concatenate([[0], np.cumsum(counts)])

    @classmethod
    def of(
        cls, pairs: Iterable[tuple[str, str]], least_score: float = LEAST_SCORE, name: str = "the memory"
    ) -> "TranslationMemory":
        """Return the memory of pairs; those with a blank side are left out."""
        units: dict[str, tuple[str, str]] = {}
        num_characters = 0
        for source, target in pairs:
            key = _key(source)
            if not key or not target.strip():
                continue
            units[key] = (source, target)
            num_characters += len(source) + len(target)
            if len(units) > _MAX_UNITS or num_characters > _MAX_CHARACTERS:
                raise CorpusError(
                    f"{name}: is too large for a translation memory (at most {_MAX_UNITS:,} units and "
                    f"{_MAX_CHARACTERS >> 20} million characters); give a part of it"
                )
        return cls(units, least_score)

    @classmethod
    def read(
        cls,
        *paths: str | Path,
        source_language: str | None = None,
        target_language: str | None = None,
        least_score: float = LEAST_SCORE,
    ) -> "TranslationMemory":
        """Return the memory in one file with both languages (TMX, XLIFF, PO, TSV ...), or in two plain ones.

        The languages say in which direction one file is read.
        """
        corpus = open_corpus(list(map(Path, paths)), source_language, target_language)
        if corpus.feature_size is not None:
            raise CorpusError(f"{corpus.paths[0]}: has features, and a translation memory has texts")
        name = " and ".join(map(str, corpus.paths))
        return cls.of(((pair.source, pair.target) for pair in corpus.pairs()), least_score, name)

    def __len__(self) -> int:
        return len(self._keys)

    def exact(self, text: str) -> Match | None:
        """Return the unit with the same source; case and signs count."""
        unit = self._units.get(_key(text))
        return None if unit is None else Match(*unit, 1.0)

    def nearest(self, text: str) -> Match | None:
        """Return the unit with the most similar source, None if none is similar enough."""
        if (same := self.exact(text)) is not None:
            return same
        words = _WORD.findall(_key(text))
        if not words or len(words) > _MAX_WORDS:
            return None
        ids = [self._vocabulary.get(word, -1) for word in words]
        best, best_score = -1, 0.0
        for place, bound in self._candidates(ids):
            if bound <= best_score:
                break
            unit = self._ids_M[self._ends[place] : self._ends[place + 1]].tolist()
            score = 1 - _distance(ids, unit) / max(len(ids), len(unit))
            if score > best_score:
                best, best_score = place, score
        if best < 0 or best_score < self.least_score:
            return None
        return Match(*self._units[self._keys[best]], min(best_score, _NOT_QUITE))

    def _candidates(self, ids: list[int]) -> list[tuple[int, float]]:
        """Return the units that may be similar enough, and how similar at most, the likeliest first.

        At least `least` words must be shared. So a similar unit has one of the rarest words, however many of
        the others it lacks (prefix filtering, Chaudhuri et al. 2006).
        """
        size = len(ids)
        least = int(np.ceil(self.least_score * size - 1e-9))
        num_units = {id: 0 if id < 0 else int(self._firsts[id + 1] - self._firsts[id]) for id in ids}
        rarest = {id for id in sorted(ids, key=num_units.__getitem__)[: size - least + 1] if id >= 0}
        if not rarest:
            return []
        found = np.concatenate([self._having[self._firsts[id] : self._firsts[id + 1]] for id in rarest])
        lengths = self._lengths[found]
        found = np.unique(found[(lengths >= least) & (lengths * self.least_score <= size + 1e-9)])
        if not len(found):
            return []
        is_asked = np.zeros(len(self._vocabulary), bool)
        is_asked[[id for id in ids if id >= 0]] = True
        lengths = self._lengths[found]
        # The places of all words of the units, one unit after the other.
        starts = np.cumsum(lengths) - lengths
        places = np.arange(int(lengths.sum())) + np.repeat(self._ends[found] - starts, lengths)
        shared = np.add.reduceat(is_asked[self._ids_M[places]], starts, dtype=np.int32)
        bounds = np.minimum(shared, size) / np.maximum(lengths, size)
        keep = np.flatnonzero(bounds >= self.least_score - 1e-9)
        keep = keep[np.argsort(-bounds[keep], kind="stable")][:_MAX_CHECKED]
        return list(zip(found[keep].tolist(), bounds[keep].tolist(), strict=True))


def _key(text: str) -> str:
    return normalize(text, fold_quotes=True)


def _distance(one: list[int], other: list[Any]) -> int:
    """Return the edit distance of two lists, all rows of its table at once as bits (Hyyrö 2003)."""
    everywhere: dict[int, int] = {}
    for place, id in enumerate(one):
        everywhere[id] = everywhere.get(id, 0) | 1 << place
    all_ones, last = (1 << len(one)) - 1, 1 << (len(one) - 1)
    up, down, distance = all_ones, 0, len(one)
    for id in other:
        equal = everywhere.get(id, 0)
        diagonal = (((equal & up) + up) ^ up) | equal | down
        right, left = down | ~(diagonal | up) & all_ones, up & diagonal
        distance += bool(right & last) - bool(left & last)
        right, left = right << 1 | 1, left << 1
        up, down = (left | ~(diagonal | right)) & all_ones, right & diagonal & all_ones
    return distance
