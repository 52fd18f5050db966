"""A corpus of words as numbers in a temporary file, and blocks of it in the shape the equations want."""

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

from regard.contract import Ids, Ragged

WordPair = tuple[Sequence[str], Sequence[str]]  # the words of a source and of its translation

MAX_WORDS = 400  # a side longer than this is hardly one sentence, and costs the square of its length
TOO_LONG = f"over {MAX_WORDS} words"
MAX_VOCABULARY = 1 << 20  # words beyond share numbers, so that a corpus of any size fits
MAX_BLOCK_CELLS = 1 << 18  # of 4 bytes; with fewer, calls cost more than what they compute


class WordIds:
    """Numbers of words, lower-cased, in the order they are first met; `by_frequency` puts them in order."""

    def __init__(self, max_words: int = MAX_VOCABULARY) -> None:
        self._max_words = max_words
        self._ids: dict[str, int] = {}
        self._counts: list[int] = []
        self._rank: Ids = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, words: Sequence[str]) -> list[int]:
        """Return the numbers of these words, as they are before `by_frequency`, and count them."""
        ids = []
        for word in words:
            lowered = word.lower()
            id = self._ids.get(lowered)
            if id is None:
                if len(self._ids) < self._max_words:
                    id = self._ids[lowered] = len(self._ids)
                    self._counts.append(0)
                else:
                    id = zlib.crc32(lowered.encode("utf-8", "surrogatepass")) % self._max_words
            self._counts[id] += 1
            ids.append(id)
        return ids

    def by_frequency(self) -> Ids:
        """Return the rank of each number, 0 for the most frequent word."""
        if len(self._rank) != len(self._counts):
            order = np.argsort(-np.array(self._counts, np.int64), kind="stable")
            rank = np.empty(len(order), np.int64)
            rank[order] = np.arange(len(order))
            self._rank = rank  # whole at once: both directions may ask for it at the same time
        return self._rank

    def ranks(self, words: Sequence[str]) -> list[int]:
        """Return the ranks of these words; a word never met has the rank after the last."""
        rank, unknown = self.by_frequency(), len(self._counts)
        ids = (self._ids.get(word.lower()) for word in words)
        return [unknown if id is None else int(rank[id]) for id in ids]

    def counts(self) -> list[int]:
        """Return how often each word was met, by rank."""
        return sorted(self._counts, reverse=True)

    def words(self) -> list[str]:
        """Return all words by rank."""
        rank = self.by_frequency()
        ordered = [""] * len(rank)
        for word, id in self._ids.items():
            ordered[rank[id]] = word
        return ordered


@dataclass(frozen=True, slots=True)
class Block:
    """Pairs whose given sides are equally long, the longest said sides first.

    Words said stand end to end: the first ones of all pairs, then the second ones of those that have one.
    So a time step is a slice, and nothing is padded. `M` counts them, `row_M` says whose they are.
    """

    pairs_B: Ids
    given_BS: Ids
    said_M: Ids
    row_M: Ids
    starts: tuple[int, ...]  # where each time step begins, and the end of the last

    def places(self, row: int) -> list[int]:
        """Return where the words said of one pair stand."""
        return [start + row for start, end in pairwise(self.starts) if start + row < end]


def blocks(given: Ragged, said: Ragged, max_cells: int = MAX_BLOCK_CELLS) -> Iterator[Block]:
    """Yield all pairs in blocks, but those with an empty side or one of more than MAX_WORDS."""
    lengths_B, steps_B = given.lengths_B, said.lengths_B
    given_starts, said_starts = np.cumsum(lengths_B) - lengths_B, np.cumsum(steps_B) - steps_B
    order = np.lexsort((-steps_B, lengths_B))
    keep = (np.minimum(lengths_B, steps_B) > 0) & (np.maximum(lengths_B, steps_B) <= MAX_WORDS)
    order = order[keep[order]]
    sorted_lengths = lengths_B[order]
    first = 0
    while first < len(order):
        length = int(sorted_lengths[first])
        most = max(1, max_cells // (length * int(steps_B[order[first]])))
        end = min(first + most, int(np.searchsorted(sorted_lengths, length, "right")))
        pairs_B = order[first:end]
        first = end
        # Row r has a word at step t while t < steps_B[r]; the rows are in falling order of that.
        alive = np.arange(steps_B[pairs_B[0]])[:, None] < steps_B[pairs_B]
        step_M, row_M = np.nonzero(alive)
        yield Block(
            pairs_B,
            given.flat[given_starts[pairs_B, None] + np.arange(length)],
            said.flat[said_starts[pairs_B][row_M] + step_M],
            row_M,
            (0, *np.cumsum(alive.sum(axis=1)).tolist()),
        )


@dataclass
class PairFile:
    """All pairs as numbers of 32 bits in three files of a folder; in memory there are only the words.

    `skipped` counts by reason the pairs from which nothing is learnt.
    """

    folder: Path
    source_words: WordIds = field(default_factory=WordIds)
    target_words: WordIds = field(default_factory=WordIds)
    chunk_pairs: int = 2000  # written at a time, for words are many small objects
    chunks_read: int = 50  # are read back together: of 100,000 pairs many have the same length
    num_pairs: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    _written: list[tuple[int, int, int]] = field(default_factory=list)  # pairs, source and target words

    def fill(self, pairs: Iterable[WordPair], on_progress: Callable[[int], None] | None = None) -> None:
        """Write all pairs, read once."""
        with (
            (self.folder / "source").open("wb") as source_file,
            (self.folder / "target").open("wb") as target_file,
            (self.folder / "lengths").open("wb") as lengths_file,
        ):
            iterator = iter(pairs)
            while chunk := list(islice(iterator, self.chunk_pairs)):
                lengths = np.array([(len(source), len(target)) for source, target in chunk], "<i4")
                sources = [id for source, _ in chunk for id in self.source_words.add(source)]
                targets = [id for _, target in chunk for id in self.target_words.add(target)]
                np.array(sources, "<i4").tofile(source_file)
                np.array(targets, "<i4").tofile(target_file)
                lengths.tofile(lengths_file)
                self._written.append((len(chunk), len(sources), len(targets)))
                empty = (lengths == 0).any(axis=1)
                self.skipped["empty side"] += int(empty.sum())
                too_long = (lengths > MAX_WORDS).any(axis=1)
                self.skipped[TOO_LONG] += int((too_long & ~empty).sum())
                self.num_pairs += len(chunk)
                if on_progress is not None:
                    on_progress(self.num_pairs)

    def __iter__(self) -> Iterator[tuple[Ragged, Ragged]]:
        source_rank, target_rank = self.source_words.by_frequency(), self.target_words.by_frequency()
        with (
            (self.folder / "source").open("rb") as source_file,
            (self.folder / "target").open("rb") as target_file,
            (self.folder / "lengths").open("rb") as lengths_file,
        ):
            for first in range(0, len(self._written), self.chunks_read):
                written = np.array(self._written[first : first + self.chunks_read])
                num_pairs, num_source, num_target = written.sum(axis=0).tolist()
                lengths = np.fromfile(lengths_file, "<i4", 2 * num_pairs).astype(np.int64)
                sources = source_rank[np.fromfile(source_file, "<i4", num_source)]
                targets = target_rank[np.fromfile(target_file, "<i4", num_target)]
                yield Ragged(sources, lengths[::2]), Ragged(targets, lengths[1::2])
