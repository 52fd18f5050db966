"""The corpus doctor: what a corpus holds, everything that is wrong with it, and where."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from regard.corpus.checks import (
    COMPARING,
    RULES,
    LanguageCheck,
    check_pair,
    guess_language,
    known_language,
)
from regard.corpus.findings import BITS, LENGTH_BINS, Problem, Report, ShiftedBlock
from regard.corpus.language_codes import one_language
from regard.corpus.read import Corpus, Pair, chunks, up_to_shorter_end
from regard.corpus.shift import (
    BLOCK_PAIRS,
    MIN_PAIRS,
    Block,
    Shift,
    features,
    find_shifts,
    judge_stretch,
    learn_judges,
    stretches,
)
from regard.errors import UnequalError
from regard.parallel import map_in_order, num_cores
from regard.progress import Progress, unshown
from regard.text.normalize import normalize

Relatedness = Callable[[Callable[[], Iterable[tuple[str, str]]], Progress], NDArray[np.float32]]
_Reason = tuple[int, str, str]  # the number of a pair, the rule it breaks, the reason in words

_CHUNK_PAIRS = 2000
_HEAD_PAIRS = 2000  # tell the languages
_SAMPLE_BLOCKS = 150  # teach which words belong together
_SAMPLE_CHARS = 500
_PARALLEL_BYTES = 1 << 20  # below this, starting workers costs more than they save
_MAX_EXAMPLES = 1000  # of each rule come with their reason
_MISMATCH = 0.1  # of the relatedness usual in the corpus, and less, is too little


def inspect(
    corpus: Corpus,
    test: Corpus | None = None,
    on_progress: Progress = unshown,
    relatedness: Relatedness | None = None,
    num_workers: int | None = None,
) -> Report:
    """Return a report on a corpus; with a test set also on what it shares with it.

    Of features and their texts only the texts are checked.

    With `relatedness`, that of `alignment/statistical/evidence.py`, it also finds pairs whose words do not
    translate one another. `num_workers` None is one for each processor, and one for a small corpus.

    The corpus is read twice: once for every pair on its own, once for pairs among their neighbours.
    Some fifty bytes are kept for each pair, nothing else grows with the corpus.
    """
    if num_workers is None:
        num_workers = num_cores() if corpus.num_bytes > _PARALLEL_BYTES else 1
    languages = _Languages.of(corpus)
    notes = list(languages.notes)
    found = _check_all(corpus, _CheckChunk.of(languages, test), num_workers, on_progress)
    skipped = dict(corpus.skipped)  # before the corpus is read again
    broken, reasons = found.broken, found.reasons
    compared = languages.are_compared
    if compared:
        reasons += _mark_lengths(broken, found.log_ratios)
    reasons += _mark_duplicates(broken, found.pair_hashes, found.lines)

    shifts: list[Shift] | None = []
    if corpus.feature_size is not None:
        relatedness = None
    elif len(broken) < MIN_PAIRS:
        notes.append(f"shifted blocks are not looked for in fewer than {MIN_PAIRS} pairs")
    else:
        shifts = _find_shifts(corpus, found.sample, num_workers, on_progress)
        if shifts is None and not compared:  # a summary may share too little with its text to tell
            notes.append("shifted blocks could not be looked for: the sides have too few words in common")
            shifts = []
    reasons += _mark_shifts(broken, shifts or [])
    if relatedness and len(broken) - np.count_nonzero(broken & BITS["empty"]) < MIN_PAIRS:
        notes.append(f"words that do not belong together are not looked for in fewer than {MIN_PAIRS} pairs")
    elif relatedness:
        reasons += _mark_mismatches(broken, relatedness(partial(_texts, corpus), on_progress), notes)

    lines = found.lines
    return Report(
        files=tuple(map(str, corpus.paths)),
        source_language=languages.source,
        target_language=languages.target,
        place=corpus.place,
        num_pairs=len(lines),
        num_source_words=0 if corpus.feature_size else int(found.source_words.sum()),
        num_target_words=int(found.target_words.sum()),
        lengths=_by_length(found.source_words, found.target_words),
        problems=tuple(_problems(broken, lines, reasons)),
        shifts=tuple(
            ShiftedBlock(int(lines[one.start]), int(lines[one.end - 1]), one.offset) for one in shifts or []
        ),
        unrelated=shifts is None,
        unequal=found.unequal,
        skipped=skipped,
        notes=tuple(notes),
        broken=broken,
    )


@dataclass(frozen=True, slots=True)
class _Languages:
    """The languages of the two sides, guessed if they are not known, and the checks for them."""

    source: str | None
    target: str | None
    source_check: LanguageCheck | None
    target_check: LanguageCheck | None
    notes: tuple[str, ...]
    are_compared: bool  # the pairs are translations, and not texts and summaries or features and texts

    @classmethod
    def of(cls, corpus: Corpus) -> "_Languages":
        head = list(islice(up_to_shorter_end(corpus), _HEAD_PAIRS))
        notes: list[str] = []
        source, source_check = None, None
        if corpus.feature_size is None:
            texts = [pair.source for pair in head]
            source, source_check = _language("source", corpus.source_language, texts, notes)
        target, target_check = _language("target", corpus.target_language, [p.target for p in head], notes)
        if _swapped(head, source, target):
            notes.append("the two sides look swapped: the source is in the target's language")
        if one_language(source, target):
            notes.append(
                f"both sides are in {target!r}, so these are no translations: the rules "
                f"{', '.join(COMPARING)} are not used"
            )
        compared = corpus.feature_size is None and not one_language(source, target)
        return cls(source, target, source_check, target_check, tuple(notes), compared)


def _language(
    side: str, language: str | None, texts: Sequence[str], notes: list[str]
) -> tuple[str | None, LanguageCheck | None]:
    """Return the language of a side, guessed if it is not known, and the check for it."""
    if language is None and (language := guess_language(texts)):
        notes.append(f"the {side} side looks like {language!r}; name its language if that is wrong")
    if language is None:
        notes.append(
            f"the language of the {side} side is not clear, so it is not checked; name it to have it checked"
        )
        return None, None
    if not known_language(language):
        notes.append(f"{language!r} cannot be recognised, so the language of the {side} side is not checked")
        return language, None
    return language, LanguageCheck(language, texts)


def _swapped(pairs: Sequence[Pair], source_language: str | None, target_language: str | None) -> bool:
    if not (known_language(source_language) and known_language(target_language)):
        return False
    some = pairs[:200]
    guessed = guess_language([pair.target for pair in some]), guess_language([pair.source for pair in some])
    return guessed == (source_language, target_language) and source_language != target_language


@dataclass(frozen=True, slots=True)
class _Checked:
    """What a worker found out about a chunk of pairs."""

    broken: NDArray[np.uint16]
    pair_hashes: NDArray[np.uint64]
    log_ratios: NDArray[np.float32]  # of the sides' lengths; NaN where a side is empty
    source_words: NDArray[np.int64]
    target_words: NDArray[np.int64]
    reasons: list[_Reason]  # place in the chunk, rule, reason


@dataclass(frozen=True, slots=True)
class _CheckChunk:
    """Checks pairs one by one; sent once to each worker."""

    source_language: LanguageCheck | None
    target_language: LanguageCheck | None
    test_sources: frozenset[int]
    test_targets: frozenset[int]
    compare: bool

    @classmethod
    def of(cls, languages: _Languages, test: Corpus | None) -> "_CheckChunk":
        """Return the checks for a corpus in these languages that should share nothing with a test set."""
        pairs = list(test.pairs()) if test else []
        return cls(
            languages.source_check,
            languages.target_check,
            frozenset(_hash(pair.source) for pair in pairs),
            # Two images may have the same caption.
            frozenset(_hash(pair.target) for pair in pairs if pair.features is None),
            languages.are_compared,
        )

    def __call__(self, pairs: list[tuple[str, str]]) -> _Checked:
        count = len(pairs)
        checked = _Checked(
            np.zeros(count, np.uint16),
            np.zeros(count, np.uint64),
            np.zeros(count, np.float32),
            np.array([len(source.split()) for source, _ in pairs], np.int64),
            np.array([len(target.split()) for _, target in pairs], np.int64),
            [],
        )
        seen: Counter[str] = Counter()
        for place, (source, target) in enumerate(pairs):
            found = check_pair(source, target, compare=self.compare)
            for side, text, language in (
                ("source", source, self.source_language),
                ("target", target, self.target_language),
            ):
                if language and "empty" not in found and (other := language(text)):
                    found.setdefault("language", f"{side} looks like {other!r}")
            if self.test_sources or self.test_targets:
                if _hash(source) in self.test_sources:
                    found["overlap"] = "the source is in the test set"
                elif _hash(target) in self.test_targets:
                    found["overlap"] = "the target is in the test set"
            for rule, reason in found.items():
                checked.broken[place] |= BITS[rule]
                seen[rule] += 1
                if seen[rule] <= _MAX_EXAMPLES:
                    checked.reasons.append((place, rule, reason))
            checked.pair_hashes[place] = _hash(source, target)
            # Twenty characters are added so that "Oui." and "Yes, I do." do not count as outliers.
            checked.log_ratios[place] = (
                np.nan if "empty" in found else np.log((len(source) + 20) / (len(target) + 20))
            )
        return checked


def _hash(*texts: str) -> int:
    """Return 64 bits that two texts share only if they say the same, white space and case apart."""
    joined = "\0".join(normalize(text, fold_quotes=True).casefold() for text in texts)
    return int.from_bytes(blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


class _Reading:
    """Reads a corpus in chunks, remembers its line numbers, and a sample of blocks of neighbouring pairs."""

    def __init__(self, corpus: Corpus, progress: Callable[[int], None]) -> None:
        self._corpus = corpus
        self._progress = progress
        self.lines: list[NDArray[np.int64]] = []
        self.sample: dict[int, list[tuple[str, str]]] = {}  # by number of the block
        self.unequal: tuple[int, int] | None = None

    def chunks(self) -> Iterator[list[tuple[str, str]]]:
        rng = random.Random(1)
        places: list[int] = []  # the numbers of the sampled blocks
        number = 0
        for chunk in chunks(self._pairs(), _CHUNK_PAIRS):
            self.lines.append(np.array([pair.line for pair in chunk], np.int64))
            pairs = [(pair.source, pair.target) for pair in chunk]
            for pair in pairs:
                block, place = divmod(number, BLOCK_PAIRS)
                if place == 0:  # a block begins: every block is as likely as any other to be kept
                    if block < _SAMPLE_BLOCKS:
                        places.append(block)
                        self.sample[block] = []
                    elif (chosen := rng.randrange(block + 1)) < _SAMPLE_BLOCKS:
                        del self.sample[places[chosen]]
                        places[chosen] = block
                        self.sample[block] = []
                if block in self.sample:
                    self.sample[block].append((pair[0][:_SAMPLE_CHARS], pair[1][:_SAMPLE_CHARS]))
                number += 1
            yield pairs

    def blocks(self) -> list[Block]:
        """Return the sample as blocks to learn from."""
        return [
            Block(
                number, [features(source) for source, _ in pairs], [features(target) for _, target in pairs]
            )
            for number, pairs in sorted(self.sample.items())
        ]

    def _pairs(self) -> Iterator[Pair]:
        try:
            yield from self._corpus.pairs(self._progress)
        except UnequalError as error:
            self.unequal = (error.num_source, error.num_target)


@dataclass(frozen=True, slots=True)
class _Found:
    """What the first reading of a corpus found, one entry for each pair."""

    lines: NDArray[np.int64]
    broken: NDArray[np.uint16]
    pair_hashes: NDArray[np.uint64]
    log_ratios: NDArray[np.float32]
    source_words: NDArray[np.int64]
    target_words: NDArray[np.int64]
    reasons: list[_Reason]
    sample: list[Block]
    unequal: tuple[int, int] | None


def _check_all(corpus: Corpus, check: _CheckChunk, num_workers: int, progress: Progress) -> _Found:
    """Return what is found by looking at every pair on its own."""
    total = corpus.num_bytes
    reading = _Reading(corpus, lambda done: progress("checking pairs", done, total))
    parts: list[_Checked] = []
    reasons: list[_Reason] = []
    num_read = 0
    counts: Counter[str] = Counter()
    for part in map_in_order(check, reading.chunks(), num_workers, fork=True):
        parts.append(part)
        for place, rule, reason in part.reasons:
            if counts[rule] < _MAX_EXAMPLES:
                reasons.append((num_read + place, rule, reason))
                counts[rule] += 1
        num_read += len(part.broken)
    progress("checking pairs", total, total)
    return _Found(
        np.concatenate(reading.lines),
        np.concatenate([part.broken for part in parts]),
        np.concatenate([part.pair_hashes for part in parts]),
        np.concatenate([part.log_ratios for part in parts]),
        np.concatenate([part.source_words for part in parts]),
        np.concatenate([part.target_words for part in parts]),
        reasons,
        reading.blocks(),
        reading.unequal,
    )


def _mark_lengths(broken: NDArray[np.uint16], log_ratios: NDArray[np.float32]) -> list[_Reason]:
    """Mark pairs whose ratio of lengths is far from what is usual in this corpus, and return reasons.

    Far is six times the usual spread (the median deviation, so that outliers do not count), and at
    least a factor of two.
    """
    known = log_ratios[~np.isnan(log_ratios)]
    if not len(known):
        return []
    middle = np.median(known)
    limit = max(np.log(2.0), 6 * 1.4826 * float(np.median(np.abs(known - middle))))
    outliers = np.flatnonzero(np.abs(log_ratios - middle) > limit)
    broken[outliers] |= np.uint16(BITS["length"])
    reasons = []
    for place in outliers[:_MAX_EXAMPLES].tolist():
        side, factor = ("source", 1) if log_ratios[place] > middle else ("target", -1)
        times = np.exp(factor * (log_ratios[place] - middle))
        reasons.append(
            (place, "length", f"the {side} is {times:.1f} times longer than is usual for the other side")
        )
    return reasons


def _mark_duplicates(
    broken: NDArray[np.uint16], hashes: NDArray[np.uint64], lines: NDArray[np.int64]
) -> list[_Reason]:
    """Mark every pair that stood earlier, and return reasons."""
    order = np.argsort(hashes, kind="stable")
    starts = np.concatenate([[True], hashes[order][1:] != hashes[order][:-1]])
    first = np.empty(len(order), np.int64)
    first[order] = order[np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))]
    again = np.flatnonzero(first != np.arange(len(order)))
    broken[again] |= np.uint16(BITS["duplicate"])
    return [
        (place, "duplicate", f"the same as {lines[first[place]]}") for place in again[:_MAX_EXAMPLES].tolist()
    ]


def _find_shifts(
    corpus: Corpus, sample: list[Block], num_workers: int, progress: Progress
) -> list[Shift] | None:
    """Return the shifted blocks, or None if the sides have nothing in common."""
    progress("learning which words belong together", 0, 1)
    judges = learn_judges(sample)
    progress("learning which words belong together", 1, 1)
    if judges is None:
        return None
    reading = _Reading(corpus, lambda done: progress("comparing neighbours", done, corpus.num_bytes))
    judged = map_in_order(partial(judge_stretch, judges), stretches(reading.chunks()), num_workers, fork=True)
    shifts = find_shifts(judged)
    progress("comparing neighbours", corpus.num_bytes, corpus.num_bytes)
    return shifts


def _mark_shifts(broken: NDArray[np.uint16], shifts: Sequence[Shift]) -> list[_Reason]:
    """Mark the pairs of shifted blocks, and return a reason for each block."""
    for shift in shifts:
        broken[shift.start : shift.end] |= np.uint16(BITS["shift"])
    return [
        (shift.start, "shift", f"source line n belongs to target line n{shift.offset:+d}") for shift in shifts
    ]


def _texts(corpus: Corpus) -> Iterator[tuple[str, str]]:
    return ((pair.source, pair.target) for pair in up_to_shorter_end(corpus))


def _mark_mismatches(
    broken: NDArray[np.uint16], related: NDArray[np.float32], notes: list[str]
) -> list[_Reason]:
    """Mark pairs whose sides are far less related than is usual in this corpus, and return reasons."""
    unknown = np.isnan(related)
    if unknown.any():
        notes.append(f"{np.count_nonzero(unknown):,} pairs have too few words to tell a mismatch")
    if unknown.all():
        return []
    usual = float(np.median(related[~unknown]))
    found = np.flatnonzero(related < _MISMATCH * usual)
    broken[found] |= np.uint16(BITS["mismatch"])
    reason = f"scores {{:.3f}}, where {usual:.3f} is usual"
    return [(place, "mismatch", reason.format(related[place])) for place in found[:_MAX_EXAMPLES].tolist()]


def _problems(
    broken: NDArray[np.uint16], lines: NDArray[np.int64], reasons: list[_Reason]
) -> Iterator[Problem]:
    examples: dict[str, list[tuple[int, str]]] = {rule: [] for rule in RULES}
    for place, rule, reason in reasons:
        if len(examples[rule]) < _MAX_EXAMPLES:
            examples[rule].append((int(lines[place]), reason))
    for rule in RULES:
        if len(places := np.flatnonzero(broken & BITS[rule])):
            yield Problem(rule, tuple(lines[places].tolist()), tuple(examples[rule]))


def _by_length(source_words: NDArray[np.int64], target_words: NDArray[np.int64]) -> tuple[int, ...]:
    """Return how many pairs fall into each of LENGTH_BINS by the words of their longer side."""
    longer = np.maximum(1, np.maximum(source_words, target_words))
    bins = np.searchsorted(LENGTH_BINS, longer, side="left") - 1
    return tuple(np.bincount(bins, minlength=len(LENGTH_BINS)).tolist())
