"""The E-step: how likely each given word is to be where each word said came from, for blocks of pairs.

A sentence of S words is given, and each word said comes from one of them or from none (the empty word). IBM
model 1 (Brown et al. 1993, section 4.1) holds all places equally likely; in the hidden Markov model
(Vogel et al. 1996) a place depends on that of the word before, through the width of the jump between them.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from regard.alignment.statistical.pairs import Block
from regard.contract import Floats, Ids

Doubles = NDArray[np.float64]

MAX_JUMP = 40  # wider jumps count as this wide
NULL_PROB = 0.3  # that a word said comes from no word; 0.2 to 0.4 differ by less than chance
UNIFORM_JUMPS = 0.2  # the share of jumps that go anywhere (Och & Ney 2003, section 2.2.3)


@dataclass(frozen=True, slots=True)
class Posteriors:
    """How likely each word said came from each given word, and from none; they sum to 1.

    `log_probs_M` of the words said, each in view of those before it; `jumps` how often each width of jump,
    from -MAX_JUMP to MAX_JUMP, is expected to have been made.
    """

    words_MS: Floats
    null_M: Floats
    log_probs_M: Floats
    jumps: Doubles


def ibm1(said_MS: Floats, said_by_null_M: Floats) -> Posteriors:
    """Return the posteriors of model 1, given p(word said | given word) and p(word said | empty word).

    Brown et al. 1993, equation 17: t(f|e) over the sum of t(f|e) over all e, the empty word one of them.
    """
    num_places = said_MS.shape[1] + 1
    total_M = said_MS.sum(axis=1) + said_by_null_M
    return Posteriors(
        said_MS / total_M[:, None],
        said_by_null_M / total_M,
        np.log(total_M / num_places),
        np.zeros(2 * MAX_JUMP + 1),
    )


def jump_widths(num_given: int) -> Ids:
    """Return the width class of the jump to each place (S) from the start and from each place (S + 1)."""
    widths = np.arange(num_given)[None, :] - np.arange(-1, num_given)[:, None]
    clipped: Ids = np.clip(widths, -MAX_JUMP, MAX_JUMP) + MAX_JUMP
    return clipped


def jump_probs(jumps: Doubles, num_given: int) -> Floats:
    """Return p(place | place before), (S + 1, S), the first row for the first word said.

    Vogel et al. 1996, equation 7: the weight of the jump over that of all jumps that stay in the sentence.
    """
    weights = jumps[jump_widths(num_given)]
    weights /= weights.sum(axis=1, keepdims=True)
    mixed: Floats = ((1 - UNIFORM_JUMPS) * weights + UNIFORM_JUMPS / num_given).astype(np.float32)
    return mixed


def hmm(block: Block, said_MS: Floats, said_by_null_M: Floats, jumps: Doubles) -> Posteriors:
    """Return the posteriors of the hidden Markov model by forward and backward passes.

    A word that comes from none keeps in mind the place before it (Och & Ney 2003, section 2.2.2): the state
    is a place, real or kept. Both have the same future, so forward passes add them up. Each step is scaled to
    sum to 1 (Rabiner 1989, section V.A); a step of all pairs of the block is one matrix product.
    """
    num_said, num_given = said_MS.shape
    starts = block.starts
    steps = [slice(*ends) for ends in pairwise(starts)]
    sizes = [step.stop - step.start for step in steps]
    probs = jump_probs(jumps, num_given) * np.float32(1 - NULL_PROB)
    first_S, probs_SS = probs[0], probs[1:]
    null_M = np.float32(NULL_PROB) * said_by_null_M

    # Sums of rows are products with ones: the matrix library adds faster.
    ones_S = np.ones(num_given, np.float32)
    state_MS, reached_MS = np.empty_like(said_MS), np.empty_like(said_MS)
    scale_M = np.empty(num_said, np.float32)
    for time, step in enumerate(steps):
        state_BS, reached_BS = state_MS[step], reached_MS[step]
        if time == 0:
            reached_BS[:] = first_S
            kept_BS = null_M[step, None] * (ones_S / np.float32(num_given))
        else:
            before_BS = state_MS[starts[time - 1] : starts[time - 1] + sizes[time]]
            np.matmul(before_BS, probs_SS, out=reached_BS)
            kept_BS = before_BS * null_M[step, None]
        np.multiply(reached_BS, said_MS[step], out=state_BS)
        state_BS += kept_BS
        scale_B = state_BS @ ones_S
        state_BS /= scale_B[:, None]
        scale_M[step] = scale_B

    future_MS = np.ones_like(said_MS)
    arrived_MS = said_MS / scale_M[:, None]  # then times the future
    back_SS = np.ascontiguousarray(probs_SS.T)
    null_M = null_M / scale_M
    for time in reversed(range(len(steps))):
        step = steps[time]
        if time + 1 < len(steps):
            later = steps[time + 1]
            future_BS = future_MS[step.start : step.start + sizes[time + 1]]
            np.matmul(arrived_MS[later], back_SS, out=future_BS)
            future_BS += future_MS[later] * null_M[later, None]
        arrived_MS[step] *= future_MS[step]

    num_pairs = sizes[0]
    before_M = np.arange(num_pairs, num_said) - np.repeat(np.array(sizes[:-1], np.int64), sizes[1:])
    expected_SS = (state_MS[before_M].T @ arrived_MS[num_pairs:]) * probs_SS
    expected_S = arrived_MS[:num_pairs].sum(axis=0) * first_S
    widths = jump_widths(num_given)
    made = np.zeros(2 * MAX_JUMP + 1)
    made += np.bincount(widths[1:].ravel(), expected_SS.ravel(), len(made))
    made += np.bincount(widths[0], expected_S, len(made))
    reached_MS *= arrived_MS
    none_M = np.maximum(1 - reached_MS @ ones_S, 0)
    return Posteriors(reached_MS, none_M, np.log(scale_M), made)
