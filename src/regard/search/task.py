"""What a search is given and what it gives, and the record that hypotheses are read off."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from regard.contract import Batch, Engine, Floats, Ids, Looks, Step
from regard.search.rules import MakeRule
from regard.search.scores import Totals
from regard.search.tree import Tree
from regard.vocabulary import EOS

LENGTH_PENALTY = 1.0
"""The exponent α of `length_factor`; at 0 the shortest translation tends to win."""

DOUBT = 2e-4
"""A choice by a smaller margin could flip in another batch, where sums of float32 are rounded differently."""

Look = Callable[[Step[Any]], Looks]
"""Makes of a step the one look (R, S) that is kept of each row; S is 0 if the model has no attention."""


@dataclass(frozen=True, slots=True)
class Task:
    """Sentences to translate and what their translations must keep to.

    `max_tokens_B` limits the ids said, `</s>` counted. `rules` forbid ids step by step.
    """

    batch: Batch
    max_tokens_B: Ids
    look: Look
    rules: Sequence[MakeRule] = ()
    tree: Tree | None = None
    """What a beam search tried is added here, if the task is one sentence."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A translation in ids, how likely the model finds it, and where it looked at each step.

    A complete one has said `</s>`: it is not among the `ids`, but `log_probs` and `attention_TS` have a
    last row for it. Otherwise the limit of its length has cut it.
    """

    ids: tuple[int, ...]
    log_prob: float
    score: float
    log_probs: tuple[float, ...]
    attention_TS: Floats
    complete: bool


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found for one sentence, best first.

    The `margin` is the smallest difference of scores that decided a choice on the way. In another batch all
    scores differ in their last digits, so only a choice by a clear margin is the same in any batch. It is
    None if the searcher gives the same result in any batch by itself.
    """

    hypotheses: tuple[Hypothesis, ...]
    margin: float | None

    @property
    def in_doubt(self) -> bool:
        """Whether rounding in another batch could lead to another result."""
        return self.margin is not None and self.margin < DOUBT


def length_factor(num_tokens: int, length_penalty: float) -> float:
    """Return lp(Y) = ((5 + |Y|) / 6)^α (Wu et al. 2016, eq. 14), `</s>` counted; score = log_prob / lp(Y)."""
    return float(((5 + num_tokens) / 6) ** length_penalty)


@dataclass(frozen=True, slots=True)
class _Moment:
    """One step of all rows: what each read, which row of the step before it follows, and where it looked."""

    read_R: Ids
    parent_R: Ids
    log_prob_R: Totals  # of all that was said before this step
    looks: Looks


@dataclass(frozen=True, slots=True)
class End:
    """The last id of a hypothesis: said by which row of which step, and what the hypothesis has come to."""

    sentence: int
    step: int
    row: int
    id: int
    log_prob: float
    score: float


class Record:
    """The steps so far, and the hypotheses that can be read off them."""

    def __init__(self, engine: Engine[Any], task: Task) -> None:
        self.num_source_B = task.batch.source_real_BS.sum(axis=1)
        longest = engine.max_tokens
        self.limit_B = task.max_tokens_B if longest is None else np.minimum(task.max_tokens_B, longest)
        self.moments: list[_Moment] = []

    @property
    def num_steps(self) -> int:
        """The most steps that any sentence may take."""
        return int(self.limit_B.max(initial=0))

    def add(self, read_R: Ids, parent_R: Ids, log_prob_R: Totals, looks: Looks) -> None:
        """Take down one step."""
        self.moments.append(_Moment(read_R, parent_R, log_prob_R, looks))

    def read_off(self, ends: Sequence[End]) -> list[Hypothesis]:
        """Return the hypotheses that end so, all of them followed back together."""
        if not ends:
            return []
        last_X, row_X = np.array([[end.step, end.row] for end in ends]).T
        num_steps = int(last_X.max()) + 1
        said_XT = np.empty((len(ends), num_steps), np.int64)
        total_XT = np.empty(said_XT.shape)
        looked: list[Floats] = []
        for step in reversed(range(num_steps)):
            moment, going_X = self.moments[step], np.flatnonzero(last_X >= step)
            rows_X = row_X[going_X]
            said_XT[going_X, step], total_XT[going_X, step] = moment.read_R[rows_X], moment.log_prob_R[rows_X]
            row_X[going_X] = moment.parent_R[rows_X]
            once, place_X = np.unique(rows_X, return_inverse=True)
            look_XS = moment.looks(once)[place_X]
            looked.append(np.zeros((len(ends), look_XS.shape[1]), np.float32))
            looked[-1][going_X] = look_XS
        looked_TXS = np.stack(looked[::-1])
        found = []
        for number, end in enumerate(ends):
            after = end.step + 1
            ids = tuple(said_XT[number, 1:after].tolist())  # the first one read is `<s>`
            totals = [*total_XT[number, :after].tolist(), end.log_prob]
            log_probs = tuple(later - earlier for earlier, later in pairwise(totals))
            attention_TS = looked_TXS[:after, number, : self.num_source_B[end.sentence]].copy()
            ids, complete = (ids, True) if end.id == EOS else ((*ids, end.id), False)
            found.append(Hypothesis(ids, end.log_prob, end.score, log_probs, attention_TS, complete))
        return found
