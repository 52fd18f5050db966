"""Finds blocks of a corpus where one side is shifted against the other by a few lines.

Words of the two languages that keep company in the same pairs are given similar vectors: the leading
singular vectors of their correlation matrix, that is, a canonical correlation analysis with diagonal
covariances (compare Dumais et al. 1997, cross-language latent semantic indexing). A sentence is the sum
of its words' vectors. Where `source[i]` is nearer to `target[i + k]` than to `target[i]`, line after line,
the sides are shifted by k.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

MAX_OFFSET = 5
BLOCK_PAIRS = 100  # the sample is made of blocks of neighbouring pairs, so that offsets can be tried on it
_MAX_WORDS = 3000
_WIDTH = 64
_MIN_PAIRS = 150  # with fewer the vectors mean nothing
_MIN_STRENGTH = 0.08  # how much nearer true pairs must be than chance ones, on held-out blocks
_MARGIN = 0.03  # how much nearer the shifted line must be, on average ...
_EVIDENCE = 3.0  # ... and how much of that must come together to call it a block

_WORD = re.compile(r"\w+")
_OTHER = re.compile("[\u0e00-\uffff]")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]")  # kana, ideographs, Thai


def features(text: str) -> set[str]:
    """Return rough stems: the first letters of words, pairs of characters where no spaces part words."""
    words = _WORD.findall(text.casefold())
    if text.isascii() or not _OTHER.search(text):
        return {word[:6] for word in words}
    found = set()
    for word in words:
        if _UNSPACED.search(word):
            found |= {word[place : place + 2] for place in range(max(1, len(word) - 1))}
        else:
            found.add(word[: 2 if _HANGUL.match(word) else 6])
    return found


@dataclass(frozen=True, slots=True)
class Shift:
    """A block of pairs, counted from 0 with the end left out, whose source i belongs to target i + offset."""

    start: int
    end: int
    offset: int


@dataclass(frozen=True, slots=True)
class Companions:
    """Vectors for the words of both languages, near to each other where the words keep company."""

    source_words: dict[str, int]
    target_words: dict[str, int]
    source_vectors: Vectors
    target_vectors: Vectors

    def source(self, texts: Sequence[str]) -> Vectors:
        """Return a vector of length 1 for each source sentence; 0 if it has no known word."""
        return _sentence_vectors(texts, self.source_words, self.source_vectors)

    def target(self, texts: Sequence[str]) -> Vectors:
        """Return a vector of length 1 for each target sentence; 0 if it has no known word."""
        return _sentence_vectors(texts, self.target_words, self.target_vectors)


Block = Sequence[tuple[str, str]]  # neighbouring (source, target) pairs


def learn_companions(blocks: Sequence[Block]) -> Companions | None:
    """Learn word vectors from a sample of a corpus, or return None if it is too small or unrelated.

    Usually the sides fit line by line. They may be shifted everywhere, though: then vectors learnt from
    another offset tell true pairs from chance ones better, on blocks held out from the learning.
    """
    if sum(map(len, blocks)) < _MIN_PAIRS:
        return None
    held_out = blocks[0::3] if len(blocks) >= 3 else [blocks[0][: len(blocks[0]) // 3]]
    learnt_from = [block for place, block in enumerate(blocks) if place % 3] or [
        blocks[0][len(blocks[0]) // 3 :]
    ]
    offsets = sorted(range(-MAX_OFFSET, MAX_OFFSET + 1), key=abs)
    for offset in offsets:
        companions = _learn(_offset_pairs(learnt_from, offset))
        strengths = {other: _strength(companions, held_out, other) for other in offsets}
        best = max(offsets, key=lambda other: strengths[other])
        if strengths[best] >= _MIN_STRENGTH:
            return companions if best == offset else _learn(_offset_pairs(learnt_from, best))
    return None


def _offset_pairs(blocks: Sequence[Block], offset: int) -> list[tuple[str, str]]:
    return [
        (block[place][0], block[place + offset][1])
        for block in blocks
        for place in range(max(0, -offset), min(len(block), len(block) - offset))
    ]


def _strength(companions: Companions, blocks: Sequence[Block], offset: int) -> float:
    """Return how much nearer the sides of a pair are than sides of different pairs, on average."""
    pairs = _offset_pairs(blocks, offset)
    source = companions.source([source for source, _ in pairs])
    target = companions.target([target for _, target in pairs])
    apart = np.roll(target, len(pairs) // 2, axis=0)
    return float(np.einsum("ie,ie->i", source, target - apart).mean())


def _learn(pairs: Sequence[tuple[str, str]]) -> Companions:
    sources = [features(source) for source, _ in pairs]
    targets = [features(target) for _, target in pairs]
    source_words, target_words = _vocabulary(sources), _vocabulary(targets)
    # How often each two words share a pair, less what chance would give, relative to their counts.
    together = np.zeros((len(source_words), len(target_words)), np.float32)
    for source, target in zip(sources, targets, strict=True):
        rows = [source_words[word] for word in source if word in source_words]
        columns = [target_words[word] for word in target if word in target_words]
        together[np.ix_(rows, columns)] += 1
    source_counts, target_counts = _counts(sources, source_words), _counts(targets, target_words)
    together -= np.outer(source_counts, target_counts / max(1, len(pairs)))
    together /= np.sqrt(source_counts)[:, None]
    together /= np.sqrt(target_counts)
    left, values, right = _leading_singular(together)
    scale = np.sqrt(values)
    return Companions(
        source_words,
        target_words,
        (left * scale / np.sqrt(source_counts)[:, None]).astype(np.float32),
        (right * scale / np.sqrt(target_counts)[:, None]).astype(np.float32),
    )


def _vocabulary(sentences: Sequence[set[str]]) -> dict[str, int]:
    """Return the most frequent words that occur at least twice."""
    counts = Counter(word for sentence in sentences for word in sentence)
    ranked = sorted((word for word in counts if counts[word] > 1), key=lambda word: (-counts[word], word))
    return {word: place for place, word in enumerate(ranked[:_MAX_WORDS])}


def _counts(sentences: Sequence[set[str]], words: dict[str, int]) -> Vectors:
    counts = np.zeros(len(words), np.float32)
    for sentence in sentences:
        for word in sentence:
            if word in words:
                counts[words[word]] += 1
    return counts


def _leading_singular(matrix: Vectors) -> tuple[Vectors, Vectors, Vectors]:
    """Return the leading singular vectors and values by subspace iteration (Halko et al. 2011)."""
    width = min(_WIDTH, *matrix.shape)
    if width == 0:
        empty = np.zeros((0,), np.float32)
        return matrix[:, :0], empty, matrix.T[:, :0]
    basis = np.random.default_rng(0).standard_normal((matrix.shape[1], width + 8), np.float32)
    for _ in range(3):
        basis, _ = np.linalg.qr(matrix @ basis)
        basis, _ = np.linalg.qr(matrix.T @ basis)
    left, values, inner = np.linalg.svd(matrix @ basis, full_matrices=False)
    return left[:, :width], values[:width], (basis @ inner.T)[:, :width]


def _sentence_vectors(texts: Sequence[str], words: dict[str, int], vectors: Vectors) -> Vectors:
    known = [[words[word] for word in features(text) if word in words] for text in texts]
    counts = np.array([len(places) for places in known], np.int64)
    rows = np.zeros((len(texts), vectors.shape[1]), np.float32)
    if counts.any():
        gathered = vectors[[place for places in known for place in places]]
        starts = np.cumsum(counts) - counts
        rows[counts > 0] = np.add.reduceat(gathered, starts[counts > 0])
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(norms > 0, norms, 1)
    return rows


class ShiftFinder:
    """Reads sentence vectors in order, in pieces of any size, and finds the shifted blocks."""

    def __init__(self) -> None:
        self._source = np.zeros((0, 0), np.float32)
        self._target = np.zeros((0, 0), np.float32)
        self._first = 0  # the number of the first sentence still held
        self._offsets = [offset for offset in range(-MAX_OFFSET, MAX_OFFSET + 1) if offset]
        self._runs = {offset: _Run() for offset in self._offsets}

    def add(self, source: Vectors, target: Vectors) -> None:
        """Take the vectors of the next pairs."""
        held = len(self._source) > 0
        self._source = np.concatenate([self._source, source]) if held else source
        self._target = np.concatenate([self._target, target]) if held else target
        self._advance(len(self._source) - MAX_OFFSET)

    def finish(self) -> list[Shift]:
        """Return the shifted blocks, in order; where several offsets overlap, the stronger one."""
        self._advance(len(self._source))
        found = [
            (run.peak, Shift(run.start, run.end, offset))
            for offset in self._offsets
            for run in self._runs[offset].finish()
        ]
        chosen: list[Shift] = []
        for _, shift in sorted(found, key=lambda item: -item[0]):
            if all(shift.end <= other.start or other.end <= shift.start for other in chosen):
                chosen.append(shift)
        return sorted(chosen, key=lambda shift: shift.start)

    def _advance(self, end: int) -> None:
        """Compare the sentences held up to `end`, and forget those no offset can reach any more."""
        begin = min(self._first, MAX_OFFSET)  # sentences before are held for negative offsets only
        if end <= begin:
            return
        source, places = self._source[begin:end], np.arange(begin, end)
        here = np.einsum("ie,ie->i", source, self._target[begin:end])
        for offset in self._offsets:
            there = places + offset
            inside = (there >= 0) & (there < len(self._target))
            shifted = np.full(len(places), -1, np.float32)
            shifted[inside] = np.einsum("ie,ie->i", source[inside], self._target[there[inside]])
            for difference in (shifted - here - _MARGIN).tolist():
                self._runs[offset].add(difference)
        drop = max(0, end - MAX_OFFSET)
        self._source, self._target = self._source[drop:], self._target[drop:]
        self._first += drop


@dataclass(frozen=True, slots=True)
class _Found:
    start: int
    end: int
    peak: float


class _Run:
    """The stretches of a stream of numbers whose sum rises high enough: a cumulative sum (Page 1954)."""

    def __init__(self) -> None:
        self._place = 0
        self._sum = self._peak = 0.0
        self._start = self._end = 0
        self._found: list[_Found] = []

    def add(self, value: float) -> None:
        if self._sum <= 0:
            self._sum, self._peak, self._start = 0.0, 0.0, self._place
        self._sum += value
        self._place += 1
        if self._sum > self._peak:
            self._peak, self._end = self._sum, self._place
        # Once the sum has fallen far from its peak the stretch is over, however high the peak was.
        if self._sum <= 0 or self._sum < self._peak - _EVIDENCE:
            self._close()

    def _close(self) -> None:
        if self._peak >= _EVIDENCE:
            self._found.append(_Found(self._start, self._end, self._peak))
        self._sum = self._peak = 0.0

    def finish(self) -> Iterator[_Found]:
        self._close()
        yield from self._found
