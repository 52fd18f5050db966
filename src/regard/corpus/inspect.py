"""The corpus doctor: what a corpus holds, everything that is wrong with it and where, and a clean copy."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.corpus.checks import RULES, LanguageCheck, check_pair, guess_language, known_language
from regard.corpus.read import Corpus, Pair, chunks
from regard.corpus.shift import (
    BLOCK_PAIRS,
    MAX_OFFSET,
    MIN_PAIRS,
    Block,
    Judges,
    Shift,
    Vectors,
    features,
    find_shifts,
    judge,
    learn_judges,
)
from regard.corpus.write import write_pairs
from regard.errors import ConfigError, UnequalError
from regard.parallel import map_in_order, num_cores
from regard.progress import Progress, unshown
from regard.text.normalize import normalize

Relatedness = Callable[[Callable[[], Iterable[tuple[str, str]]], Progress], NDArray[np.float32]]

LENGTH_BINS = (0, 5, 10, 15, 20, 30, 40, 50, 60, 80, 100)
_CHUNK_PAIRS = 2000
_HEAD_PAIRS = 2000  # tell the languages
_SAMPLE_BLOCKS = 150  # teach which words belong together
_SAMPLE_CHARS = 500
_PARALLEL_BYTES = 1 << 20  # below this, starting workers costs more than they save
_MAX_EXAMPLES = 1000  # of each rule come with their reason
_MISMATCH = 0.1  # of the relatedness usual in the corpus, and less, is too little
_BIT = {rule: 1 << place for place, rule in enumerate(RULES)}


@dataclass(frozen=True, slots=True)
class Problem:
    """All pairs that break one rule: their lines, and the first few with the reason in words."""

    rule: str
    lines: tuple[int, ...]
    examples: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class ShiftedBlock:
    """Lines, first to last, on which source line n belongs to target line n + offset."""

    first_line: int
    last_line: int
    offset: int

    def __str__(self) -> str:
        return (
            f"{self.first_line}-{self.last_line}: source line n belongs to target line n{self.offset:+d} "
            f"(see where a line is missing or too many just before {self.first_line})"
        )


@dataclass(frozen=True, slots=True)
class Report:
    """What `regard inspect` found."""

    files: tuple[str, ...]
    source_language: str | None
    target_language: str | None
    place: str
    num_pairs: int
    num_source_words: int
    num_target_words: int
    lengths: tuple[int, ...]  # pairs by words of the longer side; see LENGTH_BINS
    problems: tuple[Problem, ...]
    shifts: tuple[ShiftedBlock, ...]
    unrelated: bool  # the sides have nothing in common: other texts, or another order
    unequal: tuple[int, int] | None  # lines of the two sides, if they differ
    skipped: dict[str, int]  # entries that hold no pair, by reason
    notes: tuple[str, ...]  # what could not be checked, and why
    broken: NDArray[np.uint16] = field(repr=False)  # by pair: one bit for each rule it breaks

    @property
    def num_broken(self) -> int:
        """The number of pairs that break some rule."""
        return int(np.count_nonzero(self.broken))

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values, with every line number."""
        return {
            "files": list(self.files),
            "source_language": self.source_language,
            "target_language": self.target_language,
            "counted_by": self.place,
            "pairs": self.num_pairs,
            "source_words": self.num_source_words,
            "target_words": self.num_target_words,
            "lengths": {
                f"{low + 1}-{high}" if high else f">{low}": count
                for low, high, count in zip(LENGTH_BINS, (*LENGTH_BINS[1:], None), self.lengths, strict=True)
            },
            "unequal": self.unequal and {"source": self.unequal[0], "target": self.unequal[1]},
            "unrelated": self.unrelated,
            "skipped": self.skipped,
            "notes": list(self.notes),
            "pairs_with_problems": self.num_broken,
            "problems": {
                problem.rule: {
                    "meaning": RULES[problem.rule],
                    "count": len(problem.lines),
                    "lines": list(problem.lines),
                    "examples": [{self.place: line, "reason": reason} for line, reason in problem.examples],
                }
                for problem in self.problems
            },
            "shifts": [
                {"first": block.first_line, "last": block.last_line, "offset": block.offset}
                for block in self.shifts
            ],
        }


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What `clean` did: how many pairs it kept, how many each rule removed, and lines without a partner."""

    num_kept: int
    removed: dict[str, int]
    num_unpaired: int


@dataclass(frozen=True, slots=True)
class _Checked:
    """What a worker found out about a chunk of pairs."""

    broken: NDArray[np.uint16]
    pair_hashes: NDArray[np.uint64]
    log_ratios: NDArray[np.float32]  # of the sides' lengths; NaN where a side is empty
    source_words: NDArray[np.int64]
    target_words: NDArray[np.int64]
    reasons: list[tuple[int, str, str]]  # place in the chunk, rule, reason


@dataclass(frozen=True, slots=True)
class _CheckChunk:
    """Checks pairs one by one; sent once to each worker."""

    source_language: LanguageCheck | None
    target_language: LanguageCheck | None
    test_sources: frozenset[int]
    test_targets: frozenset[int]

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
            found = check_pair(source, target)
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
                checked.broken[place] |= _BIT[rule]
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


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Pairs to be judged, those from `begin` to `end`, and their neighbours."""

    first: int  # the number of the first pair
    begin: int
    end: int
    pairs: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _JudgeStretch:
    """Tells how near each source is to the targets around its own; sent once to each worker."""

    judges: Judges

    def __call__(self, stretch: _Stretch) -> Vectors:
        sources = [features(source) for source, _ in stretch.pairs]
        targets = [features(target) for _, target in stretch.pairs]
        return judge(self.judges, stretch.first, sources, targets)[stretch.begin : stretch.end]


def _stretches(chunks: Iterable[list[tuple[str, str]]]) -> Iterator[_Stretch]:
    """Return the chunks with the neighbours that the pairs at their ends are compared with."""
    held: list[tuple[str, str]] = []
    first = begin = 0
    for chunk in chunks:
        held += chunk
        end = len(held) - MAX_OFFSET
        if end > begin:
            yield _Stretch(first, begin, end, held)
            drop = max(0, end - MAX_OFFSET)
            held, first, begin = held[drop:], first + drop, end - drop
    if len(held) > begin:
        yield _Stretch(first, begin, len(held), held)


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


def inspect(
    corpus: Corpus,
    test: Corpus | None = None,
    on_progress: Progress | None = None,
    relatedness: Relatedness | None = None,
    num_workers: int | None = None,
) -> Report:
    """Return a report on a corpus; with a test set also on what it shares with it.

    With `relatedness`, that of `alignment/statistical/evidence.py`, it also finds pairs whose words do not
    translate one another.

    The corpus is read twice: once for every pair on its own, once for pairs among their neighbours.
    Some fifty bytes are kept for each pair, nothing else grows with the corpus.
    """
    progress = on_progress or unshown
    total = corpus.num_bytes
    workers = num_workers or (num_cores() if total > _PARALLEL_BYTES else 1)
    notes: list[str] = []

    head = list(islice(_up_to_shorter_end(corpus), _HEAD_PAIRS))
    source_language, source_check = _language(
        "source", corpus.source_language, [pair.source for pair in head], notes
    )
    target_language, target_check = _language(
        "target", corpus.target_language, [pair.target for pair in head], notes
    )
    if _swapped(head, source_language, target_language):
        notes.append("the two sides look swapped: the source is in the target's language")
    test_pairs = list(test.pairs()) if test else []
    check = _CheckChunk(
        source_check,
        target_check,
        frozenset(_hash(pair.source) for pair in test_pairs),
        frozenset(_hash(pair.target) for pair in test_pairs),
    )

    reading = _Reading(corpus, lambda done: progress("checking pairs", done, total))
    checked, reasons, num_read = [], [], 0
    counts: Counter[str] = Counter()
    for part in map_in_order(check, reading.chunks(), workers, fork=True):
        checked.append(part)
        for place, rule, reason in part.reasons:
            if counts[rule] < _MAX_EXAMPLES:
                reasons.append((num_read + place, rule, reason))
                counts[rule] += 1
        num_read += len(part.broken)
    progress("checking pairs", total, total)
    skipped = dict(corpus.skipped)
    lines = np.concatenate(reading.lines)
    broken = np.concatenate([part.broken for part in checked])

    reasons += _mark_lengths(broken, np.concatenate([part.log_ratios for part in checked]))
    reasons += _mark_duplicates(broken, np.concatenate([part.pair_hashes for part in checked]), lines)
    shifts: list[Shift] | None = []
    if num_read < MIN_PAIRS:
        notes.append(f"shifted blocks are not looked for in fewer than {MIN_PAIRS} pairs")
    else:
        shifts = _find_shifts(corpus, reading.blocks(), workers, progress)
    for shift in shifts or []:
        broken[shift.start : shift.end] |= np.uint16(_BIT["shift"])
        reasons.append((shift.start, "shift", f"source line n belongs to target line n{shift.offset:+d}"))

    if relatedness and num_read - np.count_nonzero(broken & _BIT["empty"]) < MIN_PAIRS:
        notes.append(f"words that do not belong together are not looked for in fewer than {MIN_PAIRS} pairs")
    elif relatedness:
        reasons += _mark_mismatches(broken, relatedness(partial(_texts, corpus), progress), notes)

    source_words = np.concatenate([part.source_words for part in checked])
    target_words = np.concatenate([part.target_words for part in checked])
    longer = np.maximum(1, np.maximum(source_words, target_words))
    bins = np.searchsorted(LENGTH_BINS, longer, side="left") - 1
    return Report(
        tuple(map(str, corpus.paths)),
        source_language,
        target_language,
        corpus.place,
        len(lines),
        int(source_words.sum()),
        int(target_words.sum()),
        tuple(np.bincount(bins, minlength=len(LENGTH_BINS)).tolist()),
        tuple(_problems(broken, lines, reasons)),
        tuple(ShiftedBlock(int(lines[s.start]), int(lines[s.end - 1]), s.offset) for s in shifts or []),
        shifts is None,
        reading.unequal,
        skipped,
        tuple(notes),
        broken,
    )


def _up_to_shorter_end(corpus: Corpus, on_progress: Callable[[int], None] | None = None) -> Iterator[Pair]:
    """Return the pairs of a corpus whose sides may differ in length."""
    try:
        yield from corpus.pairs(on_progress)
    except UnequalError:
        return


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


def _mark_lengths(broken: NDArray[np.uint16], log_ratios: NDArray[np.float32]) -> list[tuple[int, str, str]]:
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
    broken[outliers] |= np.uint16(_BIT["length"])
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
) -> list[tuple[int, str, str]]:
    """Mark every pair that stood earlier, and return reasons."""
    order = np.argsort(hashes, kind="stable")
    starts = np.concatenate([[True], hashes[order][1:] != hashes[order][:-1]])
    first = np.empty(len(order), np.int64)
    first[order] = order[np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))]
    again = np.flatnonzero(first != np.arange(len(order)))
    broken[again] |= np.uint16(_BIT["duplicate"])
    return [
        (place, "duplicate", f"the same as {lines[first[place]]}") for place in again[:_MAX_EXAMPLES].tolist()
    ]


def _find_shifts(corpus: Corpus, blocks: list[Block], workers: int, progress: Progress) -> list[Shift] | None:
    """Return the shifted blocks, or None if the sides have nothing in common."""
    progress("learning which words belong together", 0, 1)
    judges = learn_judges(blocks)
    progress("learning which words belong together", 1, 1)
    if judges is None:
        return None
    reading = _Reading(corpus, lambda done: progress("comparing neighbours", done, corpus.num_bytes))
    shifts = find_shifts(
        map_in_order(_JudgeStretch(judges), _stretches(reading.chunks()), workers, fork=True)
    )
    progress("comparing neighbours", corpus.num_bytes, corpus.num_bytes)
    return shifts


def _texts(corpus: Corpus) -> Iterator[tuple[str, str]]:
    return ((pair.source, pair.target) for pair in _up_to_shorter_end(corpus))


def _mark_mismatches(
    broken: NDArray[np.uint16], related: NDArray[np.float32], notes: list[str]
) -> list[tuple[int, str, str]]:
    """Mark pairs whose sides are far less related than is usual in this corpus, and return reasons."""
    unknown = np.isnan(related)
    if unknown.any():
        notes.append(f"{np.count_nonzero(unknown):,} pairs have too few words to tell a mismatch")
    if unknown.all():
        return []
    usual = float(np.median(related[~unknown]))
    found = np.flatnonzero(related < _MISMATCH * usual)
    broken[found] |= np.uint16(_BIT["mismatch"])
    reason = f"scores {{:.3f}}, where {usual:.3f} is usual"
    return [(place, "mismatch", reason.format(related[place])) for place in found[:_MAX_EXAMPLES].tolist()]


def _problems(
    broken: NDArray[np.uint16], lines: NDArray[np.int64], reasons: list[tuple[int, str, str]]
) -> Iterator[Problem]:
    examples: dict[str, list[tuple[int, str]]] = {rule: [] for rule in RULES}
    for place, rule, reason in reasons:
        if len(examples[rule]) < _MAX_EXAMPLES:
            examples[rule].append((int(lines[place]), reason))
    for rule in RULES:
        if len(places := np.flatnonzero(broken & _BIT[rule])):
            yield Problem(rule, tuple(lines[places].tolist()), tuple(examples[rule]))


def check_rules(rules: Sequence[str]) -> None:
    """Raise ConfigError for a name that is not a rule."""
    for rule in rules:
        if rule not in RULES:
            raise ConfigError(f"{rule!r} is not a rule; choose from: {', '.join(RULES)}")


def clean(
    corpus: Corpus, report: Report, out: Path, keep: Sequence[str] = (), on_progress: Progress | None = None
) -> Cleaning:
    """Write the corpus without the pairs that break a rule, except the rules in `keep`.

    A pair that breaks several rules is counted under the first, so that the counts add up to what is gone.
    """
    progress = on_progress or unshown
    cleaning = what_to_clean(report, keep)
    pairs = clean_pairs(corpus, report, keep, lambda done: progress("writing", done, corpus.num_bytes))
    write_pairs(out, corpus, pairs)
    progress("writing", corpus.num_bytes, corpus.num_bytes)
    return cleaning


def clean_pairs(
    corpus: Corpus, report: Report, keep: Sequence[str] = (), on_progress: Callable[[int], None] | None = None
) -> Iterator[Pair]:
    """Yield the pairs that break no rule, except the rules in `keep`."""
    pairs = _up_to_shorter_end(corpus, on_progress)
    blamed = _blamed(report, keep).tolist()
    yield from (pair for pair, bad in zip(pairs, blamed, strict=True) if not bad)


def what_to_clean(report: Report, keep: Sequence[str] = ()) -> Cleaning:
    """Return how many pairs cleaning keeps, and how many it removes for which reason."""
    check_rules(keep)
    blamed = _blamed(report, keep)
    first = blamed & -blamed.astype(np.int32)
    removed = {rule: int(np.count_nonzero(first == _BIT[rule])) for rule in RULES}
    num_unpaired = abs(report.unequal[0] - report.unequal[1]) if report.unequal else 0
    return Cleaning(
        int((blamed == 0).sum()), {r: count for r, count in removed.items() if count}, num_unpaired
    )


def _blamed(report: Report, keep: Sequence[str]) -> NDArray[np.uint16]:
    """Return, by pair, one bit for each rule it breaks that is not kept."""
    return report.broken & np.uint16(sum(_BIT[rule] for rule in RULES if rule not in keep))
