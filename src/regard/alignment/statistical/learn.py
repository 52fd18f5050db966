"""Learns which words translate which from sentence pairs alone, and aligns any pair with what it learnt.

A direction is learnt by three rounds of IBM model 1 (Brown et al. 1993), then four of a hidden Markov model
(Vogel et al. 1996), each of which counts under the probabilities of the last. Both directions are learnt side
by side on two processors, and what both hold likely is a link.

Memory does not grow with the corpus: probabilities stand in tables of fixed size (`table.py`), the pairs as
numbers in a temporary file (`pairs.py`). Words do need memory, up to a million of them.
"""

import mmap
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np

from regard.alignment.links import Link, Symmetrisation, agreed_links, symmetrise
from regard.alignment.statistical.pairs import MAX_WORDS, Block, PairFile, WordIds, WordPair, blocks
from regard.alignment.statistical.posteriors import MAX_JUMP, Doubles, Posteriors, hmm, ibm1
from regard.alignment.statistical.table import TABLE_BITS, TableKeys
from regard.contract import Floats, Ids, Ragged
from regard.errors import CorpusError
from regard.parallel import map_in_order, num_cores
from regard.progress import Progress, unshown

Found = TypeVar("Found")
Round = Literal["ibm1", "hmm"]

ROUNDS: tuple[Round, ...] = ("ibm1",) * 3 + ("hmm",) * 4  # one or two more changed nothing
# Added to each count. With variational Bayes (Dyer et al. 2013) instead, which makes small counts smaller
# still, rare words collected whatever stood near them: twice the errors.
SMOOTHING = 0.005
_NEGLIGIBLE = 0.003  # a posterior not worth counting: at the end nine in ten are
_FLOOR = 1e-9
CHUNK_PAIRS = 2000
"""Pairs that a worker aligns at a time; fewer than these are learnt from in this process."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """What one direction has learnt.

    p(said | given) is `table[place of the pair] * per_given[given]`, at most 1; before anything is learnt
    there is no table and every word is as likely as any other. The last of `per_given` and of `null` belongs
    to words never met.
    """

    table: Floats | None
    per_given: Floats
    null: Floats
    jumps: Doubles
    smoothing: float  # added to each count

    @classmethod
    def uniform(cls, num_given: int, num_said: int, smoothing: float) -> "Parameters":
        """Return what is held before anything is learnt."""
        return cls(
            None,
            np.full(num_given + 1, 1 / num_said, np.float32),
            np.full(num_said + 1, 1 / num_said, np.float32),
            np.ones(2 * MAX_JUMP + 1),
            smoothing,
        )


@dataclass(frozen=True, slots=True)
class RoundReport:
    """How well a round explained the words said, before it learnt: the mean log probability of a word."""

    round: Round
    log_prob_per_word: float


@dataclass(frozen=True, slots=True)
class _Counts:
    given: Doubles
    null: Doubles
    jumps: Doubles
    log_prob: float
    num_said: int


@dataclass
class _Direction:
    """One direction while it is learnt. Of its two tables one holds probabilities, the other takes counts."""

    flipped: bool  # the target is given and the source said
    keys: TableKeys
    parameters: Parameters
    counted: Floats
    spare: Floats

    @classmethod
    def make(cls, pairs: PairFile, flipped: bool, table_bits: int, smoothing: float) -> "_Direction":
        sizes = len(pairs.source_words), len(pairs.target_words)
        num_given, num_said = sizes[::-1] if flipped else sizes
        return cls(
            flipped,
            TableKeys.make(num_given + 1, num_said + 1, table_bits),
            Parameters.uniform(num_given, num_said, smoothing),
            _shared_zeros(1 << table_bits),
            _shared_zeros(1 << table_bits),
        )

    def count(self, pairs: PairFile, round_: Round) -> _Counts:
        """Add the expected counts of all pairs to the table of counts, and return the others."""
        given = np.zeros(len(self.parameters.per_given))
        null = np.zeros(len(self.parameters.null))
        jumps = np.zeros(2 * MAX_JUMP + 1)
        log_prob, num_said = 0.0, 0
        for source, target in pairs:
            sides = (target, source) if self.flipped else (source, target)
            for block in blocks(*sides):
                keys_MS = _keys(self.keys, block)
                found = _posteriors(self.parameters, block, keys_MS, round_)
                worth = np.flatnonzero(found.words_MS.ravel() > _NEGLIGIBLE)
                np.add.at(self.counted, keys_MS.ravel()[worth], found.words_MS.ravel()[worth])
                given += np.bincount(
                    block.given_BS.ravel(), _sum_over_time(block, found.words_MS).ravel(), len(given)
                )
                null += np.bincount(block.said_M, found.null_M, len(null))
                jumps += found.jumps
                log_prob += float(found.log_probs_M.sum(dtype=np.float64))
                num_said += len(block.said_M)
        return _Counts(given, null, jumps, log_prob, num_said)

    def learn(self, counts: _Counts, round_: Round) -> None:
        """Make probabilities of the counts: each with a little added, over their sum."""
        smoothing = self.parameters.smoothing
        self.counted += np.float32(smoothing)
        added = smoothing * (len(counts.null) - 1)
        per_given = 1 / (counts.given + added)
        null = (counts.null + smoothing) / (counts.null.sum() + added)
        jumps = counts.jumps / counts.jumps.sum() + _FLOOR if round_ == "hmm" else self.parameters.jumps
        self.parameters = Parameters(
            self.counted, per_given.astype(np.float32), null.astype(np.float32), jumps, smoothing
        )
        self.counted, self.spare = self.spare, self.counted
        self.counted[:] = 0


def _shared_zeros(size: int) -> Floats:
    """Return zeros that processes forked from this one share with it."""
    return np.frombuffer(mmap.mmap(-1, size * 4), np.float32)


def _keys(keys: TableKeys, block: Block) -> Ids:
    keys_MS: Ids = keys.given[block.given_BS][block.row_M]
    keys_MS ^= keys.said[block.said_M][:, None]
    return keys_MS


def _sum_over_time(block: Block, words_MS: Floats) -> Floats:
    sum_BS = np.zeros(block.given_BS.shape, np.float32)
    for start, end in pairwise(block.starts):
        sum_BS[: end - start] += words_MS[start:end]
    return sum_BS


def _posteriors(parameters: Parameters, block: Block, keys_MS: Ids, round_: Round) -> Posteriors:
    per_given_MS = parameters.per_given[block.given_BS][block.row_M]
    if parameters.table is None:
        said_MS = per_given_MS
    else:
        said_MS = parameters.table.take(keys_MS)
        num_given, num_said = len(parameters.per_given) - 1, len(parameters.null) - 1
        said_MS[block.said_M == num_said] = (
            parameters.smoothing  # never met, so whatever stands at its place is not its own
        )
        said_MS *= per_given_MS
        np.minimum(said_MS, 1, out=said_MS)
        if (block.given_BS == num_given).any():
            said_MS[block.given_BS[block.row_M] == num_given] = 1 / num_said
    said_MS += np.float32(_FLOOR)
    said_by_null_M = parameters.null[block.said_M]
    if round_ == "ibm1":
        return ibm1(said_MS, said_by_null_M)
    return hmm(block, said_MS, said_by_null_M, parameters.jumps)


@dataclass(frozen=True, slots=True)
class Aligner:
    """One direction: each target word comes from one source word or from none."""

    source_words: WordIds
    target_words: WordIds
    keys: TableKeys
    parameters: Parameters
    flipped: bool  # learnt the other way round: each source word comes from one target word or from none
    last_round: Round
    reports: tuple[RoundReport, ...]
    skipped: Counter[str]

    @classmethod
    def learn(
        cls,
        pairs: Iterable[WordPair],
        *,
        rounds: Sequence[Round] = ROUNDS,
        table_bits: int = TABLE_BITS,
        smoothing: float = SMOOTHING,
        on_progress: Progress = unshown,
    ) -> "Aligner":
        """Learn from pairs of words, which are read once. Letters count as small ones."""
        return _learn(pairs, (False,), rounds, table_bits, smoothing, 1, on_progress)[0]

    def posteriors(self, pairs: Sequence[WordPair]) -> list[Floats]:
        """Return for each pair how likely target words came from source words, (T, S) each."""
        source = _ragged(self.source_words, [source for source, _ in pairs])
        target = _ragged(self.target_words, [target for _, target in pairs])
        found = [np.zeros((len(target), len(source)), np.float32) for source, target in pairs]
        for block in blocks(*((target, source) if self.flipped else (source, target))):
            words_MS = _posteriors(self.parameters, block, _keys(self.keys, block), self.last_round).words_MS
            for row, pair in enumerate(block.pairs_B.tolist()):
                matrix = words_MS[block.places(row)]
                found[pair] = matrix.T if self.flipped else matrix
        return found

    def shares(self, given: Ids, said: Ids) -> Floats:
        """Return which share of all that came from given words, and one more, are the words said (ranks)."""
        if self.parameters.table is None:
            return self.parameters.per_given[given] + np.zeros(len(said), np.float32)
        counts, met = self.expected(given, said)
        shares: Floats = np.clip(counts / (met + 1), 0, 1)
        return shares

    def expected(self, given: Ids, said: Ids) -> tuple[Floats, Floats]:
        """Return how often words said came from given ones, as expected, and how often any did (ranks)."""
        parameters, keys = self.parameters, self.keys
        assert parameters.table is not None  # after the first round
        counts: Floats = parameters.table[keys.given[given] ^ keys.said[said]] - np.float32(
            parameters.smoothing
        )
        added = np.float32(parameters.smoothing * (len(parameters.null) - 1))
        met: Floats = np.float32(1) / parameters.per_given[given] - added
        return counts, met

    def align(self, source: Sequence[str], target: Sequence[str]) -> frozenset[Link]:
        """Return the links of one pair."""
        return next(self.align_many([(source, target)]))

    def align_many(self, pairs: Iterable[WordPair]) -> Iterator[frozenset[Link]]:
        """Yield the links of each pair: of each word the likeliest origin, unless none at all is likelier."""
        for chunk in _chunks(pairs, CHUNK_PAIRS):
            for found_TS in self.posteriors(chunk):
                yield _best_links(found_TS, self.flipped)


@dataclass(frozen=True, slots=True)
class Term:
    """A word and its best translation, its score up to 1, and how often the word was met."""

    source: str
    target: str
    score: float
    num_met: int


@dataclass(frozen=True, slots=True)
class TwoWayAligner:
    """Both directions, and what they agree on."""

    forward: Aligner
    backward: Aligner

    @property
    def skipped(self) -> Counter[str]:
        """Return by reason how many pairs nothing was learnt from."""
        return self.forward.skipped

    def align(
        self, source: Sequence[str], target: Sequence[str], how: Symmetrisation | None = None
    ) -> frozenset[Link]:
        """Return the links of one pair, as `align_many`."""
        return next(self.align_many([(source, target)], how))

    def align_many(
        self, pairs: Iterable[WordPair], how: Symmetrisation | None = None, chunk_pairs: int = CHUNK_PAIRS
    ) -> Iterator[frozenset[Link]]:
        """Yield the links of each pair, in order; chunks of `chunk_pairs` are aligned in parallel.

        Without `how`: those to which both directions together give enough (compare Liang et al. 2006, who
        multiply the posteriors). With it: the links of each direction, symmetrised by that rule.
        """
        yield from map_chunks(partial(self._align_chunk, how=how), pairs, chunk_pairs)

    def _align_chunk(self, chunk: list[WordPair], how: Symmetrisation | None) -> list[frozenset[Link]]:
        both = zip(self.forward.posteriors(chunk), self.backward.posteriors(chunk), strict=True)
        if how is None:
            return [agreed_links(forward_TS, backward_TS) for forward_TS, backward_TS in both]
        return [
            symmetrise(_best_links(forward_TS, False), _best_links(backward_TS, True), how)
            for forward_TS, backward_TS in both
        ]

    def translations(self, word: str, num_best: int = 5) -> list[tuple[str, float]]:
        """Return the words that translate a source word best, each with a score up to 1; none if never met.

        The score is the geometric mean of how often each is expected to have come from the other, over how
        often they were met and once more, so that nothing met once is sure. A table like ours cannot be
        listed, but all known words can be tried; two pairs that share a place in it by chance do so in one
        direction, and hardly in the other.
        """
        rank = self.forward.source_words.ranks([word])[0]
        if rank == len(self.forward.source_words):
            return []
        scores, words = self._scores(rank), self.forward.target_words.words()
        best = np.argsort(-scores, kind="stable")[:num_best]
        return [(words[place], float(scores[place])) for place in best if scores[place] > 0]

    def glossary(self, min_count: int = 3, min_score: float = 0.3) -> Iterator[Term]:
        """Yield the source words met so often whose best translation scores so much, the most frequent first.

        Words are as the aligner knows them, in small letters; signs without a letter are none.
        """
        sources, targets = self.forward.source_words, self.forward.target_words
        target_words = targets.words()
        for rank, (word, met) in enumerate(zip(sources.words(), sources.counts(), strict=True)):
            if met < min_count:
                return
            scores = self._scores(rank)
            best = int(scores.argmax())
            if scores[best] >= min_score and _has_letter(word) and _has_letter(target_words[best]):
                yield Term(word, target_words[best], float(scores[best]), met)

    def _scores(self, rank: int) -> Floats:
        """Return how well each target word, by rank, translates a source word."""
        targets = np.arange(len(self.forward.target_words))
        there = self.forward.shares(np.array([rank]), targets)
        scores: Floats = np.sqrt(there * self.backward.shares(targets, np.array([rank])))
        return scores


def learn_both(
    pairs: Iterable[WordPair],
    *,
    rounds: Sequence[Round] = ROUNDS,
    table_bits: int = TABLE_BITS,
    smoothing: float = SMOOTHING,
    num_workers: int | None = None,
    on_progress: Progress = unshown,
) -> TwoWayAligner:
    """Learn both directions from pairs of words, which are read once.

    With two workers, the directions are learnt side by side; None: if there are many pairs.
    """
    return TwoWayAligner(
        *_learn(pairs, (False, True), rounds, table_bits, smoothing, num_workers, on_progress)
    )


def _learn(
    pairs: Iterable[WordPair],
    ways: Sequence[bool],
    rounds: Sequence[Round],
    table_bits: int,
    smoothing: float,
    num_workers: int | None,
    tell: Progress,
) -> list[Aligner]:
    with tempfile.TemporaryDirectory(prefix="regard-aligner-") as folder:
        file = PairFile(Path(folder))
        file.fill(pairs, lambda done: tell("reading", done, 0))
        if file.num_pairs == sum(file.skipped.values()):
            raise CorpusError(
                f"of {file.num_pairs:,} pairs none has words on both sides and at most {MAX_WORDS}; "
                "there is nothing to learn word alignments from"
            )
        if num_workers is None:
            num_workers = min(len(ways), num_cores()) if file.num_pairs > CHUNK_PAIRS else 1
        directions = [_Direction.make(file, flipped, table_bits, smoothing) for flipped in ways]
        reports: list[list[RoundReport]] = [[] for _ in ways]
        for number, round_ in enumerate(rounds):
            tell("learning", number, len(rounds))

            def count(way: int, round_: Round = round_) -> _Counts:
                return directions[way].count(file, round_)

            # Forked anew for each round: what a direction learns from its counts, its next process knows.
            for way, counts in enumerate(map_in_order(count, range(len(ways)), num_workers, fork=True)):
                reports[way].append(RoundReport(round_, counts.log_prob / counts.num_said))
                directions[way].learn(counts, round_)
        tell("learning", len(rounds), len(rounds))
        return [
            Aligner(
                file.source_words,
                file.target_words,
                direction.keys,
                direction.parameters,
                direction.flipped,
                rounds[-1],
                tuple(report),
                file.skipped,
            )
            for direction, report in zip(directions, reports, strict=True)
        ]


def _has_letter(word: str) -> bool:
    return any(map(str.isalpha, word))


def _ragged(words: WordIds, sentences: Sequence[Sequence[str]]) -> Ragged:
    return Ragged.of([np.array(words.ranks(sentence), np.int64) for sentence in sentences])


def map_chunks(
    work: Callable[[list[WordPair]], list[Found]], pairs: Iterable[WordPair], chunk_pairs: int = CHUNK_PAIRS
) -> Iterator[Found]:
    """Yield what is found for each pair, in order; several chunks are shared among processes."""
    chunks = _chunks(pairs, chunk_pairs)
    first = list(islice(chunks, 2))
    for found in map_in_order(work, chain(first, chunks), None if len(first) > 1 else 1, fork=True):
        yield from found


def _chunks(pairs: Iterable[WordPair], size: int) -> Iterator[list[WordPair]]:
    iterator = iter(pairs)
    while chunk := list(islice(iterator, size)):
        yield chunk


def _best_links(found_TS: Floats, flipped: bool) -> frozenset[Link]:
    """Return for each word said its likeliest origin, unless that it has none is likelier."""
    if not found_TS.size:
        return frozenset()
    found_XX = found_TS.T if flipped else found_TS
    best = found_XX.argmax(axis=1)
    linked = np.flatnonzero(found_XX.max(axis=1) > 1 - found_XX.sum(axis=1))
    links = ((int(best[said]), int(said)) for said in linked)
    return frozenset((said, given) if flipped else (given, said) for given, said in links)
