"""What a translation must keep to, as scores of minus infinity for what it may not say next."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from regard.contract import Floats, Ids, Ragged
from regard.vocabulary import PAD


class Rule(Protocol):
    """Sees each step of a search and forbids ids; its state has one row for each hypothesis."""

    def bind(self, bound_RV: Floats, logits_RV: Floats, sentence_R: Ids) -> Floats:
        """Return `bound_RV` with the scores of forbidden ids at minus infinity.

        `logits_RV` are the model's own scores, which no rule writes into; `bound_RV` is the same array until
        a rule returns a changed copy. `sentence_R` says which sentence of the batch each row belongs to.
        """
        ...

    def follow(self, rows: Ids, ids_R: Ids) -> None:
        """Go on with these rows of the last step, in this order, each of which has said an id."""
        ...


MakeRule = Callable[[int], Rule]
"""Returns a rule for a search that begins with so many rows."""


class NoRepeat:
    """No run of `ngram` ids is said twice."""

    def __init__(self, ngram: int, num_rows: int) -> None:
        self.ngram = ngram
        self.said_RT: Ids = np.empty((num_rows, 0), np.int64)

    def bind(self, bound_RV: Floats, logits_RV: Floats, sentence_R: Ids) -> Floats:
        """Forbid each id that would complete such a run."""
        if self.said_RT.shape[1] < self.ngram:
            return bound_RV
        windows_RTX = np.lib.stride_tricks.sliding_window_view(self.said_RT, self.ngram, axis=1)
        last_RX = self.said_RT[:, self.said_RT.shape[1] - self.ngram + 1 :]
        row_X, place_X = np.nonzero((windows_RTX[:, :, :-1] == last_RX[:, None]).all(axis=2))
        if len(row_X):
            bound_RV = bound_RV.copy() if bound_RV is logits_RV else bound_RV
            bound_RV[row_X, windows_RTX[row_X, place_X, -1]] = -np.inf
        return bound_RV

    def follow(self, rows: Ids, ids_R: Ids) -> None:
        """Keep what each row has said."""
        self.said_RT = np.concatenate([self.said_RT[rows], ids_R[:, None]], axis=1)


class Prefix:
    """Each translation begins with the prefix of its sentence, whatever other rules forbid."""

    def __init__(self, prefixes: Sequence[Ids]) -> None:
        self.prefix_BT = Ragged.of([np.asarray(prefix, np.int64) for prefix in prefixes]).padded()
        self.step = 0

    def bind(self, bound_RV: Floats, logits_RV: Floats, sentence_R: Ids) -> Floats:
        """Forbid all ids but the next one of the prefix, as long as it lasts."""
        if self.step >= self.prefix_BT.shape[1]:
            return bound_RV
        forced_R = self.prefix_BT[sentence_R, self.step]
        rows = np.flatnonzero(forced_R != PAD)
        bound_RV = bound_RV.copy() if bound_RV is logits_RV else bound_RV
        bound_RV[rows] = -np.inf
        bound_RV[rows, forced_R[rows]] = logits_RV[rows, forced_R[rows]]
        return bound_RV

    def follow(self, rows: Ids, ids_R: Ids) -> None:
        """Count the step."""
        self.step += 1


class Rules:
    """All rules of one search, in the order in which they are asked; the last has the last word."""

    def __init__(self, make: Sequence[MakeRule], num_rows: int) -> None:
        self.rules = [one(num_rows) for one in make]

    def bind(self, logits_RV: Floats, sentence_R: Ids) -> Floats:
        """Return the scores with those of forbidden ids at minus infinity; the given array stays as it is."""
        bound_RV = logits_RV
        for rule in self.rules:
            bound_RV = rule.bind(bound_RV, logits_RV, sentence_R)
        return bound_RV

    def follow(self, rows: Ids, ids_R: Ids) -> None:
        """Let each rule go on with these rows of the last step, each of which has said an id."""
        for rule in self.rules:
            rule.follow(rows, ids_R)
