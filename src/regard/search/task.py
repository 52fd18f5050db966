"""What a search is given and what it gives, and the record that hypotheses are read off."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from regard.contract import Batch, Engine, Floats, Ids
from regard.search.rules import MakeRule
from regard.search.scores import Totals
from regard.search.tree import Tree
from regard.vocabulary import EOS

LENGTH_PENALTY = 1.0
"""The exponent α of `length_factor`; at 0 the shortest translation tends to win."""

DOUBT = 2e-4
"""A choice by a smaller margin could flip in another batch, where sums of float32 are rounded differently."""

Look = Callable[[Floats, Floats | None], Floats]
"""Makes of all attention of a step (R, L, N, S), and of where its ids came from if that is told (R, S), the
one look (R, S) that is kept; none at all if L is 0."""


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

    read: list[int]
    parents: list[int]
    log_probs: list[float]  # of all that was said before this step
    attention_RS: Floats


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

    def add(self, read_R: Ids, parent_R: Ids, log_prob_R: Totals, attention_RS: Floats) -> None:
        """Take down one step."""
        self.moments.append(_Moment(read_R.tolist(), parent_R.tolist(), log_prob_R.tolist(), attention_RS))

    def read_off(
        self, sentence: int, step: int, row: int, id: int, log_prob: float, score: float
    ) -> Hypothesis:
        """Return the hypothesis that says `id` last, in this row of this step."""
        said, totals, looked = [id], [log_prob], []
        for moment in reversed(self.moments[: step + 1]):
            said.append(moment.read[row])
            totals.append(moment.log_probs[row])
            looked.append(moment.attention_RS[row])
            row = moment.parents[row]
        said.reverse()
        ids = said[1:-1] if id == EOS else said[1:]  # the first is `<s>`
        log_probs = tuple(after - before for after, before in pairwise(totals))[::-1]
        attention_TS = np.array(looked[::-1])[:, : self.num_source_B[sentence]]
        return Hypothesis(tuple(ids), log_prob, score, log_probs, attention_TS, id == EOS)
