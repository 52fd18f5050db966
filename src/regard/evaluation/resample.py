"""What chance does to a score: intervals by bootstrap, and tests of whether two systems differ.

All systems are resampled together: in each resample every one of them has the same sentences (Koehn 2004).
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from regard.evaluation.scores import Floats, Interval

NUM_RESAMPLES = 1000
NUM_TRIALS = 10_000
SEED = 12345  # sacrebleu's: the same draws, and so the same intervals
MAX_CELLS = 2_000_000  # of the matrix of counts: memory stays flat however large the test set

Formula = Callable[[Floats], Floats]  # from sums, a row for each resample, to scores


def resample(
    counts: Sequence[Floats], num_resamples: int, seed: int, max_cells: int = MAX_CELLS
) -> list[Floats]:
    """Return for each matrix of counts, a row for each sentence, its sums in each resample.

    Every resample draws as many sentences as there are, with replacement, the same for all matrices. At most
    `max_cells` numbers are drawn at a time.
    """
    together = np.concatenate(counts, axis=1)
    num_sentences = len(together)
    rng = np.random.default_rng(seed)
    sums = [
        _times_drawn(rng.integers(0, num_sentences, (size, num_sentences)), num_sentences) @ together
        for size in _chunks(num_resamples, num_sentences, max_cells)
    ]
    ends = np.cumsum([one.shape[1] for one in counts])[:-1]
    return np.split(np.concatenate(sums), ends, axis=1)


def interval_within(num_sentences: int, values: Floats) -> Interval | None:
    """Return the interval of a part of a test set, None of a single sentence: all draws are the same."""
    return interval(values) if num_sentences > 1 else None


def interval(values: Floats) -> Interval:
    """Return what is left of the values without the highest and the lowest fortieth."""
    ordered = np.sort(values)
    cut = len(ordered) // 40
    return Interval(float(ordered[cut]), float(ordered[len(ordered) - 1 - cut]))


def bootstrap_p(differences: Floats) -> float:
    """Return how likely resamples find a difference of the other sign, on both sides (Koehn 2004).

    1 if all differences are 0; never 0, for there might be another resample.
    """
    num_not_above, num_not_below = int((differences <= 0).sum()), int((differences >= 0).sum())
    return min(1.0, 2 * (min(num_not_above, num_not_below) + 1) / (len(differences) + 1))


def randomisation_p(one: Floats, other: Floats, formula: Formula, num_trials: int, seed: int) -> float:
    """Return how likely chance alone makes scores differ so much (Riezler and Maxwell 2005).

    In each trial every sentence changes places with its rival with probability 1/2; counted are the trials
    whose difference is not smaller than the one that was found.
    """
    found = abs(formula(one.sum(axis=0)[None]) - formula(other.sum(axis=0)[None]))[0]
    change = other - one
    rng = np.random.default_rng(seed)
    num_as_large = 0
    for size in _chunks(num_trials, len(one)):
        moved = rng.integers(0, 2, (size, len(one)), dtype=np.int8).astype(float) @ change
        difference = formula(one.sum(axis=0) + moved) - formula(other.sum(axis=0) - moved)
        num_as_large += int((abs(difference) >= found - 1e-12).sum())
    return (num_as_large + 1) / (num_trials + 1)


def corrected(p_values: Sequence[float]) -> list[float]:
    """Return the p values of several tests, corrected for their number (Holm 1979).

    If those below 0.05 count as findings, the chance of at least one false finding is 5 % at most.
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    found, least = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        found[place] = least
    return found


def _times_drawn(drawn: np.ndarray, num_sentences: int) -> Floats:
    """Return how often each sentence was drawn, a row for each resample."""
    size = len(drawn)
    places = drawn + num_sentences * np.arange(size)[:, None]
    return np.bincount(places.ravel(), minlength=size * num_sentences).reshape(size, -1).astype(float)


def _chunks(num_rows: int, row_size: int, max_cells: int = MAX_CELLS) -> Iterator[int]:
    """Yield how many rows to make at a time, up to all of them."""
    most = max(1, max_cells // row_size)
    for first in range(0, num_rows, most):
        yield min(most, num_rows - first)
