"""What a translation must keep to, as scores of minus infinity for what it may not say next."""

from collections.abc import Sequence

import numpy as np

from regard.contract import Floats, Ids, Ragged
from regard.search.task import Task
from regard.vocabulary import PAD


class Rules:
    """The rules of one search, and what its rows have said as far as the rules must know."""

    def __init__(self, task: Task, num_rows: int) -> None:
        self.ngram = task.no_repeat_ngram
        self.prefix_BT = None if task.prefixes is None else _padded(task.prefixes)
        self.said_RT: Ids = np.empty((num_rows, 0), np.int64)
        self.step = 0

    def bind(self, logits_RV: Floats, sentence_R: Ids) -> Floats:
        """Return the scores with those of forbidden ids at minus infinity; the given array stays as it is."""
        bound_RV = logits_RV
        if self.ngram is not None and self.step >= self.ngram:
            row_X, id_X = _repeats(self.said_RT, self.ngram)
            if len(row_X):
                bound_RV = logits_RV.copy()
                bound_RV[row_X, id_X] = -np.inf
        if self.prefix_BT is not None and self.step < self.prefix_BT.shape[1]:
            forced_R = self.prefix_BT[sentence_R, self.step]
            rows = np.flatnonzero(forced_R != PAD)
            bound_RV = logits_RV.copy() if bound_RV is logits_RV else bound_RV
            bound_RV[rows] = -np.inf
            bound_RV[rows, forced_R[rows]] = logits_RV[rows, forced_R[rows]]  # a prefix may repeat itself
        return bound_RV

    def follow(self, rows: Ids, ids_R: Ids) -> None:
        """Take down that these rows of the last step go on, each with an id."""
        self.step += 1
        if self.ngram is not None:
            self.said_RT = np.concatenate([self.said_RT[rows], ids_R[:, None]], axis=1)


def _repeats(said_RT: Ids, ngram: int) -> tuple[Ids, Ids]:
    """Return rows and ids which, said next, would make a run of `ngram` ids that the row has said before."""
    windows_RTX = np.lib.stride_tricks.sliding_window_view(said_RT, ngram, axis=1)
    last_RX = said_RT[:, said_RT.shape[1] - ngram + 1 :]
    row_X, place_X = np.nonzero((windows_RTX[:, :, :-1] == last_RX[:, None]).all(axis=2))
    return row_X, windows_RTX[row_X, place_X, -1]


def _padded(prefixes: Sequence[Ids]) -> Ids:
    return Ragged.of([np.asarray(prefix, np.int64) for prefix in prefixes]).padded()
