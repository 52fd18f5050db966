"""Which of several translations is most like all the others, by chrF."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_ORDER, _BETA = 6, 2  # character n-grams up to six, recall counted twice (Popović 2015), as in sacreBLEU


def by_risk(texts: Sequence[str]) -> list[int]:
    """Return the numbers of the texts in the order of their mean chrF against all, of equals the first first.

    With samples of the model as both candidates and references the first is the decision of least expected
    loss (Kumar & Byrne 2004; Eikema & Aziz 2020).
    """
    counts = Counter(texts)
    utility_X = pairwise_chrf(list(counts)) @ np.array(list(counts.values()), float)
    utility = dict(zip(counts, utility_X.tolist(), strict=True))
    return sorted(range(len(texts)), key=lambda n: -utility[texts[n]])


def pairwise_chrf(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the chrF, from 0 to 1, of every text as a translation against every text as its reference."""
    num = len(texts)
    precision, recall, orders = np.zeros((3, num, num))
    for order in range(1, _ORDER + 1):
        counts = [_counts("".join(text.split()), order) for text in texts]
        total_X = np.array([one.total() for one in counts])
        matches = _matches(counts)
        known = (total_X[:, None] > 0) & (total_X > 0)  # only orders that both texts have are counted
        precision += np.where(known, matches / np.maximum(total_X, 1)[:, None], 0)
        recall += np.where(known, matches / np.maximum(total_X, 1), 0)
        orders += known
    precision, recall = precision / np.maximum(orders, 1), recall / np.maximum(orders, 1)
    below = _BETA**2 * precision + recall
    return np.where(below > 0, (1 + _BETA**2) * precision * recall / np.where(below > 0, below, 1), 0)


def _counts(text: str, order: int) -> Counter[str]:
    return Counter(text[start : start + order] for start in range(len(text) - order + 1))


def _matches(counts: Sequence[Counter[str]]) -> NDArray[np.float64]:
    """Return how many n-grams of each text are found in each, none more often than the other has it."""
    num_texts = Counter(gram for one in counts for gram in one)
    shared = [gram for gram, num in num_texts.items() if num > 1]
    columns = {gram: column for column, gram in enumerate(shared)}
    counts_XG = np.zeros((len(counts), len(columns)), np.float32)
    for row, one in enumerate(counts):
        for gram, count in one.items():
            if gram in columns:
                counts_XG[row, columns[gram]] = count
    # The lesser of two counts is how many k both reach: a matrix product for each k, most of them small.
    matches = np.zeros((len(counts), len(counts)))
    for least in range(1, int(counts_XG.max(initial=0)) + 1):
        counts_XG = counts_XG[:, counts_XG.max(axis=0) >= least]
        reached_XG = (counts_XG >= least).astype(np.float32)
        matches += reached_XG @ reached_XG.T
    np.fill_diagonal(matches, [one.total() for one in counts])
    return matches
