"""Finds blocks of a corpus where one side is shifted against the other by a few lines.

Words of the two languages that keep company in the same pairs are given similar vectors: the leading
singular vectors of their correlation matrix, that is, a canonical correlation analysis with diagonal
covariances (compare Dumais et al. 1997, cross-language latent semantic indexing). A sentence is the sum
of its words' vectors. Where `source[i]` is nearer to `target[i + k]` than to `target[i]`, line after line,
the sides are shifted by k.

No block of lines is judged by vectors that were learnt from it: a shifted block teaches that its words belong
together as they stand. So there are two sets of vectors, one from the even blocks, which judges the odd ones,
and one from the odd.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from regard.text.scripts import HANGUL_RANGES, UNSPACED_RANGES, is_hangul_syllable

Vectors = NDArray[np.float32]
Features = list[set[str]]  # the stems of each sentence

MAX_OFFSET = 5
OFFSETS = tuple(range(-MAX_OFFSET, MAX_OFFSET + 1))
_MAX_ROUNDS = 4  # of learning
BLOCK_PAIRS = 100  # the sample is made of blocks of neighbouring pairs, so that offsets can be tried on it
_MAX_WORDS = 3000
_WIDTH = 64
MIN_PAIRS = 150  # with fewer the vectors mean nothing
_MIN_STRENGTH = 0.08  # how much nearer true pairs must be than chance ones
_MARGIN = 0.03  # how much nearer a shifted line must be, on average ...
_PENALTY = 1.5  # ... and how much nearness a change of offset must gain to be believed
_MAX_FEATURE_CHARS = 1000  # of a sentence are looked at

_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(f"[{UNSPACED_RANGES}]")
_NO_STEMS = re.compile(f"[{UNSPACED_RANGES}{HANGUL_RANGES}]")  # that six letters would find


def features(text: str) -> set[str]:
    """Return rough stems: the first letters of words, pairs of characters where no spaces part words."""
    words = _WORD.findall(text[:_MAX_FEATURE_CHARS].casefold())
    if text.isascii() or not _NO_STEMS.search(text):
        return {word[:6] for word in words}
    found = set()
    for word in words:
        if _UNSPACED.search(word):
            found |= {word[place : place + 2] for place in range(max(1, len(word) - 1))}
        else:
            found.add(word[: 2 if is_hangul_syllable(word[0]) else 6])
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

    def compare(self, sources: Features, targets: Features) -> Vectors:
        """Return how near each source is to the targets around its own: one column for each of OFFSETS."""
        source = _sentence_vectors(sources, self.source_words, self.source_vectors)
        target = _sentence_vectors(targets, self.target_words, self.target_vectors)
        nearness = np.zeros((len(sources), len(OFFSETS)), np.float32)
        for column, offset in enumerate(OFFSETS):
            first, end = max(0, -offset), min(len(sources), len(sources) - offset)
            if first < end:
                both = source[first:end], target[first + offset : end + offset]
                nearness[first:end, column] = np.einsum("ie,ie->i", *both)
        return nearness


@dataclass(frozen=True, slots=True)
class Block:
    """Neighbouring pairs of a corpus, and the number of the block: how many such blocks stand before it."""

    number: int
    sources: Features
    targets: Features


Judges = tuple[Companions, Companions]  # of the even blocks, of the odd ones


def learn_judges(blocks: Sequence[Block]) -> Judges | None:
    """Learn word vectors from a sample of a corpus, or return None if its sides have nothing in common.

    Usually the sides fit line by line. If not, they may be shifted, everywhere or from some line on: then
    vectors are learnt again from every block at the offset that fits it best, until none changes.
    """
    halves = (
        [block for block in blocks if block.number % 2 == 0],
        [block for block in blocks if block.number % 2],
    )
    for start in sorted(OFFSETS, key=abs):
        own = {block.number: start for block in blocks}
        for _ in range(_MAX_ROUNDS):
            judges = _learn(halves[1], own), _learn(halves[0], own)
            strengths = {block.number: _strengths(judges[block.number % 2], block) for block in blocks}
            best = {
                number: max(OFFSETS, key=lambda k: row[k] - _MARGIN * (k != 0))
                for number, row in strengths.items()
            }
            if np.mean([strengths[number][best[number]] for number in best]) < _MIN_STRENGTH:
                break
            if best == own:
                return judges
            own = best
        else:
            return judges
    return None


def _strengths(companions: Companions, block: Block) -> dict[int, float]:
    """Return, for each offset, how much nearer the pairs of a block are than sides of different pairs."""
    nearness = companions.compare(block.sources, block.targets)
    half = len(block.sources) // 2
    chance = companions.compare(block.sources, block.targets[half:] + block.targets[:half]).mean()
    return {offset: float(nearness[:, column].mean() - chance) for column, offset in enumerate(OFFSETS)}


def _learn(blocks: Sequence[Block], offsets: dict[int, int]) -> Companions:
    sources: list[set[str]] = []
    targets: list[set[str]] = []
    for block in blocks:
        offset = offsets[block.number]
        first, end = max(0, -offset), min(len(block.sources), len(block.sources) - offset)
        sources += block.sources[first:end]
        targets += block.targets[first + offset : end + offset]
    source_words, target_words = _vocabulary(sources), _vocabulary(targets)
    # How often each two words share a pair, less what chance would give, relative to their counts.
    together = np.zeros((len(source_words), len(target_words)), np.float32)
    for source, target in zip(sources, targets, strict=True):
        rows = [source_words[word] for word in source if word in source_words]
        columns = [target_words[word] for word in target if word in target_words]
        together[np.ix_(rows, columns)] += 1
    source_counts, target_counts = _counts(sources, source_words), _counts(targets, target_words)
    together -= np.outer(source_counts, target_counts / max(1, len(sources)))
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


def _sentence_vectors(sentences: Features, words: dict[str, int], vectors: Vectors) -> Vectors:
    """Return a vector of length 1 for each sentence; 0 if it has no known word."""
    known = [[words[word] for word in sentence if word in words] for sentence in sentences]
    counts = np.array([len(places) for places in known], np.int64)
    rows = np.zeros((len(sentences), vectors.shape[1]), np.float32)
    if counts.any():
        gathered = vectors[[place for places in known for place in places]]
        starts = np.cumsum(counts) - counts
        rows[counts > 0] = np.add.reduceat(gathered, starts[counts > 0])
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(norms > 0, norms, 1)
    return rows


def judge(judges: Judges, first: int, sources: Features, targets: Features) -> Vectors:
    """Return the nearness of the pairs from number `first` on, each by vectors not learnt from it."""
    odd = (np.arange(first, first + len(sources)) // BLOCK_PAIRS) % 2 == 1
    even_view, odd_view = (companions.compare(sources, targets) for companions in judges)
    return np.where(odd[:, None], odd_view, even_view)


def find_shifts(nearness: Iterable[Vectors]) -> list[Shift]:
    """Return the shifted blocks of a corpus whose nearness comes in pieces, in order.

    The most likely sequence of offsets, if staying costs nothing and a change costs a penalty (Viterbi 1967).
    """
    bias = np.array([_MARGIN if offset else 0.0 for offset in OFFSETS], np.float32)
    scores = np.array([-_PENALTY if offset else 0.0 for offset in OFFSETS], np.float32)
    came_from: list[NDArray[np.uint8]] = []  # eleven bytes for each pair
    stay = np.arange(len(OFFSETS), dtype=np.uint8)
    for piece in nearness:
        back = np.empty(piece.shape, np.uint8)
        for row, gain in zip(back, piece - bias, strict=True):
            best = int(scores.argmax())
            changed = scores < scores[best] - _PENALTY
            row[:] = np.where(changed, best, stay)
            scores = np.where(changed, scores[best] - _PENALTY, scores) + gain
        came_from.append(back)
    state = int(scores.argmax())
    states: list[int] = []
    for back in reversed(came_from):
        for row in back[::-1].tolist():
            states.append(state)
            state = row[state]
    return list(_runs(states[::-1]))


def _runs(states: Sequence[int]) -> Iterator[Shift]:
    start = 0
    for state, group in groupby(states):
        end = start + len(list(group))
        if OFFSETS[state]:
            yield Shift(start, end, OFFSETS[state])
        start = end


@dataclass(frozen=True, slots=True)
class Stretch:
    """Pairs to be judged, those from `begin` to `end`, and their neighbours."""

    first: int  # the number of the first pair
    begin: int
    end: int
    pairs: list[tuple[str, str]]


def stretches(chunks: Iterable[list[tuple[str, str]]]) -> Iterator[Stretch]:
    """Yield the chunks with the neighbours that the pairs at their ends are compared with."""
    held: list[tuple[str, str]] = []
    first = begin = 0
    for chunk in chunks:
        held += chunk
        end = len(held) - MAX_OFFSET
        if end > begin:
            yield Stretch(first, begin, end, held)
            drop = max(0, end - MAX_OFFSET)
            held, first, begin = held[drop:], first + drop, end - drop
    if len(held) > begin:
        yield Stretch(first, begin, len(held), held)


def judge_stretch(judges: Judges, stretch: Stretch) -> Vectors:
    """Return how near the source of each pair to be judged is to the targets around its own."""
    sources = [features(source) for source, _ in stretch.pairs]
    targets = [features(target) for _, target in stretch.pairs]
    return judge(judges, stretch.first, sources, targets)[stretch.begin : stretch.end]
