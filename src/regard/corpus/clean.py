"""A clean copy of a corpus: the pairs of which an inspection found nothing wrong."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.corpus.checks import RULES
from regard.corpus.findings import BITS, Report
from regard.corpus.read import Corpus, Pair, up_to_shorter_end
from regard.corpus.write import write_pairs
from regard.errors import ConfigError
from regard.progress import Progress, unshown


@dataclass(frozen=True, slots=True)
class Cleaning:
    """How many pairs a clean copy keeps, how many each rule removes, and how many lines have no partner."""

    num_kept: int
    removed: dict[str, int]
    num_unpaired: int

    def __str__(self) -> str:
        reasons = ", ".join(f"{rule} {count:,}" for rule, count in self.removed.items())
        total = sum(self.removed.values())
        removed = f"removed {total:,} pairs" + (f": {reasons}" if reasons else "")
        if self.num_unpaired:
            return f"removed {self.num_unpaired:,} lines at the end that have no partner\n{removed}"
        return removed


def check_rules(rules: Sequence[str]) -> None:
    """Raise ConfigError for a name that is not a rule."""
    for rule in rules:
        if rule not in RULES:
            raise ConfigError(f"{rule!r} is not a rule; choose from: {', '.join(RULES)}")


def clean(
    corpus: Corpus, report: Report, out: Path, keep: Sequence[str] = (), on_progress: Progress = unshown
) -> Cleaning:
    """Write the corpus without the pairs that break a rule, except the rules in `keep`.

    A pair that breaks several rules is counted under the first, so that the counts add up to what is gone.
    """
    cleaning = what_to_clean(report, keep)
    pairs = clean_pairs(corpus, report, keep, lambda done: on_progress("writing", done, corpus.num_bytes))
    write_pairs(out, corpus, pairs)
    on_progress("writing", corpus.num_bytes, corpus.num_bytes)
    return cleaning


def clean_pairs(
    corpus: Corpus, report: Report, keep: Sequence[str] = (), on_progress: Callable[[int], None] | None = None
) -> Iterator[Pair]:
    """Yield the pairs that break no rule, except the rules in `keep`."""
    pairs = up_to_shorter_end(corpus, on_progress)
    blamed = _blamed(report, keep).tolist()
    yield from (pair for pair, bad in zip(pairs, blamed, strict=True) if not bad)


def what_to_clean(report: Report, keep: Sequence[str] = ()) -> Cleaning:
    """Return how many pairs cleaning keeps, and how many it removes for which reason."""
    check_rules(keep)
    blamed = _blamed(report, keep)
    first = blamed & -blamed.astype(np.int32)
    removed = {rule: int(np.count_nonzero(first == BITS[rule])) for rule in RULES}
    num_unpaired = abs(report.unequal[0] - report.unequal[1]) if report.unequal else 0
    return Cleaning(
        int((blamed == 0).sum()), {r: count for r, count in removed.items() if count}, num_unpaired
    )


def _blamed(report: Report, keep: Sequence[str]) -> NDArray[np.uint16]:
    """Return, by pair, one bit for each rule it breaks that is not kept."""
    return report.broken & np.uint16(sum(BITS[rule] for rule in RULES if rule not in keep))
