"""What an inspection of a corpus found, as plain data, as text and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.corpus.checks import RULES

LENGTH_BINS = (0, 5, 10, 15, 20, 30, 40, 50, 60, 80, 100)
BITS = {rule: 1 << place for place, rule in enumerate(RULES)}
"""The bit that stands for each rule in `Report.broken`."""

_SHOWN_EXAMPLES = 8
_SHOWN_LINES = 12
_BAR_WIDTH = 40


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
            f"(look for a missing or an extra line just before {self.first_line})"
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

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{' + '.join(self.files)}: {self.source_language or '?'} -> {self.target_language or '?'}"
        yield f"{self.num_pairs:,} pairs; {self.num_source_words:,} and {self.num_target_words:,} words"
        yield from ("", "number of words on the longer side", *_histogram(LENGTH_BINS, self.lengths), "")
        if self.unequal:
            num_source, num_target = self.unequal
            yield f"PROBLEM unequal: {num_source:,} source lines, {num_target:,} target lines"
            yield ""
        if self.unrelated:
            yield "PROBLEM unrelated: the sides have nothing in common; are they translations in one order?"
            yield ""
        for problem in self.problems:
            yield from self._problem_lines(problem)
        yield from (f"skipped {count:,} entries: {reason}" for reason, count in self.skipped.items())
        yield from (f"note: {note}" for note in self.notes)
        sound = self.num_pairs - self.num_broken
        share = f"{sound:,} of {self.num_pairs:,} pairs"
        if self.unrelated:
            yield f"{share} have no problem of their own, but the sides do not match"
        else:
            yield f"{share} have no problem ({_percent(sound, self.num_pairs)})"

    def _problem_lines(self, problem: Problem) -> Iterator[str]:
        share = f"{len(problem.lines):,} ({_percent(len(problem.lines), self.num_pairs)})"
        yield f"PROBLEM {problem.rule}: {share}: {RULES[problem.rule]}"
        if problem.rule == "shift":
            yield from (f"    {self.place}s {block}" for block in self.shifts)
            return
        shown = problem.examples[:_SHOWN_EXAMPLES]
        yield from (f"    {self.place} {line}: {reason}" for line, reason in shown)
        known = dict(shown)
        if others := [line for line in problem.lines if line not in known]:
            numbers = ", ".join(map(str, others[:_SHOWN_LINES]))
            more = len(others) - _SHOWN_LINES
            rest = f" and {more:,} more (--json lists all)" if more > 0 else ""
            yield f"    and {self.place}s {numbers}{rest}"


def _histogram(bins: Sequence[int], counts: Sequence[int]) -> Iterator[str]:
    last = max((place for place, count in enumerate(counts) if count), default=0)
    labels = [f"{low + 1}-{high}" for low, high in pairwise(bins)] + [f"over {bins[-1]}"]
    width = _BAR_WIDTH / max(1, *counts)
    for label, count in list(zip(labels, counts, strict=True))[: last + 1]:
        bar = "█" * round(count * width) or ("▏" if count else "")
        yield f"  {label:>8} {bar:{_BAR_WIDTH}} {count:,}"


def _percent(part: int, whole: int) -> str:
    percent = 100 * part / whole
    return f"{percent:.1f} %" if percent >= 0.1 or not part else "under 0.1 %"
