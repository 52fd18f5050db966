"""Which sentences of an evaluation are worth a look."""

from dataclasses import dataclass

from regard.evaluation.document import Evaluation, System

_NUM_EXTREME = 5  # worst and best sentences of each system
_NUM_APART = 4  # sentences that a system translates better than the first, and as many worse
_LEAST_APART = 5.0  # of chrF; nearer ones tell nothing
_MAX_PICTURED_CHARACTERS = 220  # of a source; the map of a longer one fits on no screen


@dataclass(frozen=True, slots=True)
class Extremes:
    """The sentences that a system translates worst and best, by chrF, from the extreme inwards."""

    system: str
    worst: tuple[int, ...]
    best: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Apart:
    """The sentences in which a system does better than the first, and worse, the largest difference first."""

    system: str
    better: tuple[int, ...]
    worse: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Examples:
    """Sentences by their number from 0; those `pictured` are shown with where each model looked."""

    extremes: tuple[Extremes, ...]
    apart: tuple[Apart, ...]
    pictured: tuple[int, ...]


def choose(evaluation: Evaluation) -> Examples:
    """Return the sentences to show: the worst and best of each system, and where systems part."""
    first, *others = evaluation.systems
    extremes = tuple(_extremes(system) for system in evaluation.systems)
    apart = tuple(_apart(first, system) for system in others)
    pictured = {row for one in apart for row in (*one.better, *one.worse)}
    if not others:
        pictured = {row for one in extremes for row in (*one.worst, *one.best)}
    short = (row for row in sorted(pictured) if len(evaluation.sources[row]) <= _MAX_PICTURED_CHARACTERS)
    return Examples(extremes, apart, tuple(short))


def _extremes(system: System) -> Extremes:
    order = sorted(range(len(system.chrf)), key=lambda row: system.chrf[row])
    num = min(_NUM_EXTREME, len(order) // 2)
    # The longest of equals first: that a long sentence is all right says more than that "Yes." is.
    best = sorted(order, key=lambda row: (-system.chrf[row], -len(system.texts[row])))[:num]
    return Extremes(system.name, tuple(order[:num]), tuple(best))


def _apart(first: System, other: System) -> Apart:
    gains = [mine - its for mine, its in zip(other.chrf, first.chrf, strict=True)]
    order = sorted(range(len(gains)), key=lambda row: -gains[row])
    return Apart(
        other.name,
        tuple(row for row in order[:_NUM_APART] if gains[row] >= _LEAST_APART),
        tuple(row for row in order[::-1][:_NUM_APART] if gains[row] <= -_LEAST_APART),
    )
