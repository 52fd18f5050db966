"""Which sentences of an evaluation are worth a look."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from regard.evaluation.document import Evaluation, System

_NUM_EXTREME = 5  # worst and best sentences of each system
_NUM_APART = 4  # sentences that a system translates better than the first, and as many worse
_LEAST_APART = 5.0  # of chrF; nearer ones tell nothing
_MAX_PICTURED_CHARACTERS = 220  # of a source; the map of a longer one fits on no screen


@dataclass(frozen=True, slots=True)
class Chosen:
    """Sentences of a system by their number from 0, the clearest first, all by chrF.

    They are those that it translates `better` or `worse` than the first system, or its `worst` and `best`.
    """

    system: str
    why: Literal["better", "worse", "worst", "best"]
    rows: tuple[int, ...]


def choose(evaluation: Evaluation) -> list[Chosen]:
    """Return where each system parts from the first, then the worst and best sentences of each."""
    first, *others = evaluation.systems
    found = [one for system in others for one in _apart(first, system)]
    return found + [one for system in evaluation.systems for one in _extremes(system)]


def pictured(evaluation: Evaluation) -> list[int]:
    """Return the sentences to show with where each model looked: those in which systems part, if any can."""
    kinds = ("worst", "best") if len(evaluation.systems) == 1 else ("better", "worse")
    rows = sorted({row for one in choose(evaluation) if one.why in kinds for row in one.rows})
    return [row for row in rows if len(evaluation.sources[row]) <= _MAX_PICTURED_CHARACTERS]


def _extremes(system: System) -> Iterator[Chosen]:
    order = sorted(range(len(system.chrf)), key=lambda row: system.chrf[row])
    num = min(_NUM_EXTREME, len(order) // 2)
    yield Chosen(system.name, "worst", tuple(order[:num]))
    # The longest of equals first: that a long sentence is all right says more than that "Yes." is.
    best = sorted(order, key=lambda row: (-system.chrf[row], -len(system.texts[row])))[:num]
    yield Chosen(system.name, "best", tuple(best))


def _apart(first: System, other: System) -> Iterator[Chosen]:
    gains = [mine - its for mine, its in zip(other.chrf, first.chrf, strict=True)]
    order = sorted(range(len(gains)), key=lambda row: -gains[row])
    better = tuple(row for row in order[:_NUM_APART] if gains[row] >= _LEAST_APART)
    worse = tuple(row for row in order[::-1][:_NUM_APART] if gains[row] <= -_LEAST_APART)
    yield Chosen(other.name, "better", better)
    yield Chosen(other.name, "worse", worse)
