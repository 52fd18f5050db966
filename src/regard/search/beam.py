"""Beam search: the most likely translations of a batch of sentences.

Sentences are searched side by side, and each leaves the batch when it is finished. What was said is kept as
the ids of each step with pointers to the rows they follow; a hypothesis is read off backwards at the end.
"""

import heapq
from collections.abc import Sequence
from itertools import chain, islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.contract import Engine, Floats
from regard.options.search import BeamOptions
from regard.search.rules import Rules
from regard.search.scores import Totals, best_ids, log_normaliser
from regard.search.task import End, Found, Record, Task, length_factor
from regard.search.tree import Offers
from regard.vocabulary import BOS, EOS

# A source piece that nobody looked at at all would cost infinitely much; a local attention has such pieces.
_LEAST_COVERAGE = 1e-4


class Kept:
    """The best finished hypotheses of a sentence, as many as the beam is wide, as places in the record."""

    def __init__(self, beam_size: int) -> None:
        self.beam_size = beam_size
        self.heap: list[tuple[bool, float, int, int, int, float]] = []  # the worst is first
        self.best_lost = (False, -np.inf)

    def add(self, score: float, step: int, row: int, id: int, log_prob: float) -> None:
        """Keep a possible hypothesis if it is among the best; a cut one is worse than any complete one."""
        if log_prob == -np.inf:
            return
        entry = (id == EOS, score, -step, -row, id, log_prob)  # of equals the first one found
        if len(self.heap) < self.beam_size:
            heapq.heappush(self.heap, entry)
        else:
            self.best_lost = max(self.best_lost, heapq.heappushpop(self.heap, entry)[:2])

    @property
    def worst(self) -> float:
        """The score that a new one has to beat."""
        return self.heap[0][1] if len(self.heap) == self.beam_size else -np.inf

    def ends(self, sentence: int, num_best: int) -> list[End]:
        """Return the ends of the best hypotheses kept, best first."""
        return [
            End(sentence, -step, -row, id, log_prob, score)
            for _, score, step, row, id, log_prob in sorted(self.heap, reverse=True)[:num_best]
        ]

    def margin(self, num_best: int) -> float:
        """Return by how little the first `num_best` might come in another order, or be others."""
        ranked = [*(entry[:2] for entry in sorted(self.heap, reverse=True)), self.best_lost]
        return min(
            (
                better - worse
                for (one, better), (other, worse) in pairwise(ranked[: num_best + 1])
                if one == other
            ),
            default=np.inf,
        )


def beam(engine: Engine[Any], task: Task, options: BeamOptions, num_best: int = 1) -> list[Found]:
    """Return the best translations that a beam finds, for each sentence up to `num_best`.

    Each step looks at the likeliest continuations of a sentence's open hypotheses. Those among the best
    `beam_size` that say `</s>` are finished; the best `beam_size` that do not stay open. A sentence is done
    when it has `beam_size` finished ones and no open one scores, at its present length, above the worst.
    The margin is that of these.
    """
    beam_size, beta = options.beam_size, options.coverage_penalty
    num_sentences = len(task.batch.source_BS)
    record, rules = Record(engine, task), Rules(task.rules, num_sentences)
    kept = [Kept(beam_size) for _ in range(num_sentences)]
    margin_B = np.full(num_sentences, np.inf)
    open_B = parent_R = np.arange(num_sentences)  # sentences still searched, in the order of their rows
    read_R, log_prob_BK = np.full(num_sentences, BOS, np.int64), np.zeros((num_sentences, 1))
    real_RS = task.batch.source_real_BS
    coverage_RS: Floats = np.zeros((num_sentences, 1), np.float32)
    state = engine.start(task.batch)
    for step in range(record.num_steps):
        said = engine.step(state, read_R)
        looks = task.look(said)
        record.add(read_R, parent_R, log_prob_BK.ravel(), looks)
        width, factor = log_prob_BK.shape[1], length_factor(step + 1, options.length_penalty)
        bound_RV = rules.bind(said.logits_RV, np.repeat(open_B, width))
        # An open hypothesis offers two continuations more than the beam is wide: one may be `</s>`, and the
        # margin of the last that stays is its distance from the first that does not.
        ids_RK = best_ids(bound_RV, beam_size + 2)
        logit_RK = np.take_along_axis(bound_RV, ids_RK, axis=1)
        start_R1 = (log_prob_BK.ravel() - log_normaliser(said.logits_RV))[:, None]
        total_RK = start_R1 + logit_RK
        key_RK = total_RK - options.diversity * np.arange(ids_RK.shape[1]) if options.diversity else total_RK
        total_BX, key_BX = total_RK.reshape(len(open_B), -1), key_RK.reshape(len(open_B), -1)
        ids_BX = ids_RK.reshape(total_BX.shape)
        order_BX = np.argsort(-key_BX, axis=1, kind="stable")
        ends_BX = np.take_along_axis(ids_BX == EOS, order_BX, axis=1)
        sorted_BX = np.take_along_axis(key_BX, order_BX, axis=1)
        at_limit_B = record.limit_B[open_B] == step + 1
        leaves_BK = ends_BX[:, :beam_size] | at_limit_B[:, None]
        penalty_R: Totals | None = None
        if beta and said.attention_RLNS.shape[1]:
            coverage_RS = coverage_RS + looks(np.arange(len(read_R)))
            penalty_R = beta * _coverage_penalty(coverage_RS, real_RS)
        for place, rank in np.argwhere(leaves_BK).tolist():
            chosen = int(order_BX[place, rank])
            row = place * width + chosen // ids_RK.shape[1]
            bonus = 0.0 if penalty_R is None else float(penalty_R[row])
            total, id = float(total_BX[place, chosen]), int(ids_BX[place, chosen])
            kept[open_B[place]].add(total / factor + bonus, step, row, id, total)
        # A stable sort puts the continuations that stay open before those that end, each best first.
        stay_BX = np.argsort(ends_BX, axis=1, kind="stable")
        leaving_BX = ends_BX | at_limit_B[:, None]
        margin_B[open_B] = np.minimum(margin_B[open_B], _margins(sorted_BX, leaving_BX, stay_BX, beam_size))
        if options.diversity:
            sibling_B = _sibling_margins(total_RK, order_BX, leaving_BX, beam_size)
            margin_B[open_B] = np.minimum(margin_B[open_B], sibling_B)
        open_BK = stay_BX[:, :beam_size]
        chosen_BK = np.take_along_axis(order_BX, open_BK, axis=1)
        log_prob_BK = np.take_along_axis(total_BX, chosen_BK, axis=1)
        log_prob_BK[np.take_along_axis(ends_BX, open_BK, axis=1)] = -np.inf  # fewer ids than the beam is wide
        if task.tree is not None:
            order_X, opened = order_BX[0], [] if at_limit_B[0] else open_BK[0].tolist()
            finished = np.flatnonzero(leaves_BK[0]).tolist()
            rows_X, totals_X = order_X // ids_RK.shape[1], total_BX[0, order_X]
            task.tree.add(Offers(ids_BX[0, order_X], rows_X, totals_X, factor, finished, opened))
        ahead_B = _ahead(log_prob_BK, factor, [kept[sentence] for sentence in open_B])
        margin_B[open_B] = np.fmin(margin_B[open_B], np.where(at_limit_B, np.inf, np.abs(ahead_B)))
        stays = np.flatnonzero(~at_limit_B & (ahead_B > 0))
        if not len(stays):
            break
        parent_R = (stays[:, None] * width + chosen_BK[stays] // ids_RK.shape[1]).ravel()
        read_R = np.take_along_axis(ids_BX, chosen_BK, axis=1)[stays].ravel()
        log_prob_BK, open_B = log_prob_BK[stays], open_B[stays]
        if penalty_R is not None:
            coverage_RS, real_RS = coverage_RS[parent_R], real_RS[parent_R]
        rules.follow(parent_R, read_R)
        state = said.state.select(parent_R)
    margins = [min(float(margin), one.margin(num_best)) for one, margin in zip(kept, margin_B, strict=True)]
    return found_by(kept, record, margins, num_best)


def found_by(kept: Sequence[Kept], record: Record, margins: Sequence[float], num_best: int) -> list[Found]:
    """Return the best hypotheses kept of each sentence, with its margin."""
    ends = [one.ends(sentence, num_best) for sentence, one in enumerate(kept)]
    said = iter(record.read_off(list(chain.from_iterable(ends))))
    return [Found(tuple(islice(said, len(own))), margin) for own, margin in zip(ends, margins, strict=True)]


def _ahead(log_prob_BK: Totals, factor: float, kept: Sequence[Kept]) -> Totals:
    """Return by how much the best open hypothesis of each sentence scores above its worst finished one.

    Growing may yet raise a score, to log_prob / lp(limit) at most; to wait until not even that is above the
    worst is much work for hardly another translation.
    """
    worst_B = np.array([one.worst for one in kept])
    with np.errstate(invalid="ignore"):  # -inf - -inf: none open and few finished
        ahead_B: Totals = log_prob_BK.max(axis=1) / factor - worst_B
    return ahead_B


def _coverage_penalty(coverage_RS: Floats, real_RS: NDArray[np.bool_]) -> Totals:
    """Return cp = Σ_i log min(Σ_t α_ti, 1) of each row (Wu et al. 2016, eq. 14), without its weight β."""
    seen_RS = np.where(real_RS, np.clip(coverage_RS, _LEAST_COVERAGE, 1), 1)
    penalty_R: Totals = np.log(seen_RS).sum(axis=1, dtype=float)
    return penalty_R


def _margins(
    sorted_BX: Totals, ends_BX: NDArray[np.bool_], stay_BX: NDArray[np.int64], beam_size: int
) -> Totals:
    """Return by how little one that ends would not be finished, or one that stays open would be dropped."""
    num_choices = sorted_BX.shape[1]
    if num_choices <= beam_size:
        return np.full(len(sorted_BX), np.inf)
    # To be finished one must be among the first `beam_size`, to stay open among the first of those that do.
    inside = np.arange(num_choices) < beam_size
    with np.errstate(invalid="ignore"):  # -inf - -inf: neither is a choice
        other_BX = np.where(inside, sorted_BX[:, beam_size, None], sorted_BX[:, beam_size - 1, None])
        ending_BX = np.where(ends_BX, np.abs(sorted_BX - other_BX), np.inf)
        edge_BX = np.take_along_axis(sorted_BX, stay_BX[:, beam_size - 1 : beam_size + 1], axis=1)
        staying_B = edge_BX[:, 0] - edge_BX[:, 1]
    margin_B: Totals = np.fmin(np.fmin.reduce(ending_BX, axis=1), np.where(staying_B < 0, np.inf, staying_B))
    return np.where(np.isnan(margin_B), np.inf, margin_B)


def _sibling_margins(
    total_RK: Totals, order_BX: NDArray[np.int64], ends_BX: NDArray[np.bool_], beam_size: int
) -> Totals:
    """Return by how little two siblings of different fates have their ranks, which decide what each pays."""
    inside = np.arange(ends_BX.shape[1]) < beam_size
    stays_BX = np.cumsum(~ends_BX, axis=1) <= beam_size
    fate_BX = np.empty(ends_BX.shape, np.int64)  # dropped, stays open, finished
    np.put_along_axis(fate_BX, order_BX, np.where(ends_BX, 2 * inside, stays_BX), axis=1)
    fate_RK = fate_BX.reshape(total_RK.shape)
    with np.errstate(invalid="ignore"):  # -inf - -inf: neither is a choice
        gap_RX = np.where(fate_RK[:, :-1] != fate_RK[:, 1:], total_RK[:, :-1] - total_RK[:, 1:], np.inf)
    margin_B: Totals = np.fmin.reduce(gap_RX.reshape(len(ends_BX), -1), axis=1, initial=np.inf)
    return margin_B
