"""One id after another and no way back: greedy search, and sampling."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.contract import Engine, Floats, Ids
from regard.options.search import RiskOptions, SampleOptions
from regard.search.rules import Rules
from regard.search.scores import Totals, best_two, log_normaliser
from regard.search.task import DOUBT, LENGTH_PENALTY, End, Found, Record, Task, length_factor
from regard.vocabulary import BOS, EOS

Mask = NDArray[np.bool_]
_Choose = Callable[[Floats, Ids], tuple[Ids, Totals]]
"""Chooses from the scores of each row (and which row of the first step it was) an id, by which margin."""


def greedy(engine: Engine[Any], task: Task, length_penalty: float = LENGTH_PENALTY) -> list[Found]:
    """Return what the model says if it takes the likeliest id at every step, one translation a sentence."""
    return _walk(engine, task, lambda logits_RV, walk_R: best_two(logits_RV), 1, length_penalty)


def sample(
    engine: Engine[Any],
    task: Task,
    options: SampleOptions | RiskOptions,
    keys: Sequence[int],
    num_samples: int,
) -> list[Found]:
    """Return `num_samples` translations of each sentence, drawn as likely as the model finds them.

    They come in the order they were drawn. What is drawn depends on the sentence's key and nothing else.
    """
    # As whole numbers of 64 bits: a list with a large and a small one would become floats, and lose digits.
    streams = [np.array([key, n], np.uint64) for key in keys for n in range(num_samples)]
    draws = [np.random.Generator(np.random.Philox(key=stream)) for stream in streams]

    def choose(logits_RV: Floats, walk_R: Ids) -> tuple[Ids, Totals]:
        return _draw(logits_RV, options, [draws[walk] for walk in walk_R.tolist()])

    return _walk(engine, task, choose, num_samples, LENGTH_PENALTY)


def _walk(
    engine: Engine[Any], task: Task, choose: _Choose, num_walks: int, length_penalty: float
) -> list[Found]:
    """Return the translations made by choosing, so many of each sentence."""
    num_sentences = len(task.batch.source_BS)
    record, rules = Record(engine, task), Rules(task.rules, num_sentences * num_walks)
    ends: dict[int, End] = {}
    rows = walk_R = np.arange(num_sentences * num_walks)
    sentence_R = walk_R // num_walks
    read_R, log_prob_R = np.full(len(rows), BOS, np.int64), np.zeros(len(rows))
    margin_R = np.full(len(rows), np.inf)
    margins = margin_R.copy()
    state = engine.start(task.batch)
    if num_walks > 1:
        state = state.select(sentence_R)
    for step in range(record.num_steps):
        said = engine.step(state, read_R)
        record.add(read_R, rows, log_prob_R, task.look(said))
        read_R, gap_R = choose(rules.bind(said.logits_RV, sentence_R), walk_R)
        margin_R = np.minimum(margin_R, gap_R)
        logit_R = said.logits_RV[np.arange(len(read_R)), read_R]
        log_prob_R = log_prob_R + logit_R - log_normaliser(said.logits_RV)
        done_R = (read_R == EOS) | (record.limit_B[sentence_R] == step + 1)
        factor = length_factor(step + 1, length_penalty)
        for row in np.flatnonzero(done_R).tolist():
            sentence, total = int(sentence_R[row]), float(log_prob_R[row])
            ends[walk_R[row]] = End(sentence, step, row, int(read_R[row]), total, total / factor)
            margins[walk_R[row]] = margin_R[row]
        rows = np.flatnonzero(~done_R)
        if not len(rows):
            break
        rules.follow(rows, read_R[rows])
        state = said.state if len(rows) == len(done_R) else said.state.select(rows)
        walk_R, sentence_R, margin_R = walk_R[rows], sentence_R[rows], margin_R[rows]
        read_R, log_prob_R = read_R[rows], log_prob_R[rows]
    smallest_B = margins.reshape(num_sentences, num_walks).min(axis=1)
    found = record.read_off([ends[walk] for walk in range(num_sentences * num_walks)])
    return [
        Found(tuple(found[n * num_walks : (n + 1) * num_walks]), float(margin))
        for n, margin in enumerate(smallest_B)
    ]


def _draw(
    logits_RV: Floats, options: SampleOptions | RiskOptions, draws: list[np.random.Generator]
) -> tuple[Ids, Totals]:
    """Draw an id for each row: the highest score with Gumbel noise is drawn as often as its probability says.

    (Gumbel 1954; Maddison et al. 2014.) Unlike a random number looked up among summed probabilities, the
    winner wins by a margin that tells whether scores a little different would have drawn another.
    """
    said_RV = logits_RV[:, EOS:].astype(float) / options.temperature
    said_RV -= log_normaliser(said_RV)[:, None]
    noisy_RV = said_RV + np.stack([draw.gumbel(size=said_RV.shape[1]) for draw in draws])
    kept = _choice(said_RV, options)
    ids_R, _ = best_two(np.where(kept.exact_RV, noisy_RV, -np.inf), first=0)
    # What the smallest change would take out of the choice, or let into it, makes the choice doubtful.
    other_R, gap_R = best_two(np.where(kept.loose_RV, noisy_RV, -np.inf), first=0)
    gap_R[~kept.tight_RV[np.arange(len(ids_R)), ids_R] | (other_R != ids_R)] = 0
    return ids_R + EOS, gap_R * options.temperature  # as a difference of the model's own scores


@dataclass(frozen=True, slots=True)
class _Choice:
    """Which ids may be drawn: those that may, that may after any small change, and that might after one."""

    exact_RV: Mask
    tight_RV: Mask
    loose_RV: Mask

    def within(self, other: "_Choice") -> "_Choice":
        """Return what both allow."""
        return _Choice(
            self.exact_RV & other.exact_RV, self.tight_RV & other.tight_RV, self.loose_RV & other.loose_RV
        )


def _choice(log_prob_RV: Totals, options: SampleOptions | RiskOptions) -> _Choice:
    """Return which ids may be drawn, never none: each option chooses from what the one before it has left.

    Probabilities and the entropy stay those of all ids.
    """
    slack = DOUBT / options.temperature
    possible_RV = log_prob_RV > -np.inf
    choice = _Choice(possible_RV, possible_RV, possible_RV)
    if options.top_k is not None and options.top_k < log_prob_RV.shape[1]:
        falling_RV = -np.partition(-log_prob_RV, [options.top_k - 1, options.top_k], axis=1)
        last_in_R1, first_out_R1 = falling_RV[:, options.top_k - 1, None], falling_RV[:, options.top_k, None]
        choice = choice.within(
            _Choice(
                log_prob_RV >= last_in_R1,
                log_prob_RV > first_out_R1 + slack,
                log_prob_RV >= last_in_R1 - slack,
            )
        )
    prob_RV = np.exp(log_prob_RV)
    if options.top_p is not None:
        choice = _fewest(choice, -log_prob_RV, prob_RV, options.top_p, slack)
    if options.typical_p is not None:
        surprise_RV = np.where(possible_RV, -log_prob_RV, 0)
        entropy_R1 = (prob_RV * surprise_RV).sum(axis=1, keepdims=True)
        choice = _fewest(choice, np.abs(-log_prob_RV - entropy_R1), prob_RV, options.typical_p, slack)
    return choice


def _fewest(choice: _Choice, rank_RV: Totals, prob_RV: Totals, mass: float, slack: float) -> _Choice:
    """Return the first of a choice in the order of `rank_RV` that have a probability of at least `mass`."""
    order_RV = np.argsort(rank_RV, axis=1, kind="stable")
    chosen_RV = np.take_along_axis(np.where(choice.exact_RV, prob_RV, 0), order_RV, axis=1)
    before_RV = np.empty_like(prob_RV)  # of each id: the probability of all before it
    np.put_along_axis(before_RV, order_RV, np.cumsum(chosen_RV, axis=1) - chosen_RV, axis=1)
    doubtful_RV = choice.loose_RV & ~choice.tight_RV
    doubt_R1 = slack + np.where(doubtful_RV, prob_RV, 0).sum(axis=1, keepdims=True)
    last_in_R1 = np.where(before_RV < mass + doubt_R1, rank_RV, -np.inf).max(axis=1, keepdims=True)
    first_out_R1 = np.where(before_RV < mass - doubt_R1, np.inf, rank_RV).min(axis=1, keepdims=True)
    return choice.within(
        _Choice(before_RV < mass, rank_RV < first_out_R1 - slack, rank_RV <= last_in_R1 + slack)
    )
