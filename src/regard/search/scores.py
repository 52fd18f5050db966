"""What search reads off the scores of the next word, without copying them."""

import numpy as np
from numpy.typing import NDArray

from regard.contract import Floats, Ids
from regard.vocabulary import EOS

Totals = NDArray[np.float64]

# `<pad>` and `<s>`, the ids before `</s>`, are never said: everything below starts to look at `</s>`.
_FIRST = EOS

# Rows whose exponents are taken together: few enough to stay in the processor's cache.
_BLOCK_ROWS = 32


def log_normaliser(logits_RV: Floats | Totals) -> Totals:
    """Return log Σ exp(logit) of each row: log_prob = logit - log_normaliser, as in `force` over all ids."""
    num_rows, vocab_size = logits_RV.shape
    total_R = np.empty(num_rows)
    exponents_RV = np.empty((min(_BLOCK_ROWS, num_rows), vocab_size), logits_RV.dtype)
    ones_V = np.ones(vocab_size, logits_RV.dtype)  # a product with them is a sum, only faster
    for first in range(0, num_rows, _BLOCK_ROWS):
        block_RV = logits_RV[first : first + _BLOCK_ROWS]
        largest_R = block_RV.max(axis=1)
        out_RV = exponents_RV[: len(block_RV)]
        np.exp(np.subtract(block_RV, largest_R[:, None], out=out_RV), out=out_RV)
        total_R[first : first + len(block_RV)] = np.log(out_RV @ ones_V) + largest_R
    return total_R


def target_log_probs(logits_BTV: Floats, target_BT: Ids) -> Totals:
    """Return the log-probability of each of some given ids."""
    logits_XV = logits_BTV.reshape(-1, logits_BTV.shape[2])
    logit_X = np.take_along_axis(logits_XV, target_BT.reshape(-1, 1), axis=1)[:, 0]
    log_prob_BT: Totals = (logit_X - log_normaliser(logits_XV)).reshape(target_BT.shape)
    return log_prob_BT


def best_two(logits_RV: Floats | Totals, first: int = _FIRST) -> tuple[Ids, Totals]:
    """Return the best id of each row, from `first` on, and by how much its score is above the second best."""
    rows = np.arange(len(logits_RV))
    ids_R: Ids = logits_RV[:, first:].argmax(axis=1) + first
    best_R = logits_RV[rows, ids_R]
    # Covered up for a moment, instead of copying all scores.
    rest_RV = logits_RV if logits_RV.flags.writeable else logits_RV.copy()
    rest_RV[rows, ids_R] = -np.inf
    gap_R: Totals = best_R.astype(float) - rest_RV[:, first:].max(axis=1, initial=-np.inf)
    rest_RV[rows, ids_R] = best_R
    return ids_R, gap_R


def best_ids(logits_RV: Floats, num_best: int) -> Ids:
    """Return the ids of the `num_best` highest scores of each row, best first; fewer if there are fewer.

    Partitioning a whole row costs as much as the output layer that made it. So the ids are dealt into about
    √(V · num_best) groups: a group without one of the `num_best` highest maxima holds none of the best ids.
    """
    said_RV = logits_RV[:, _FIRST:]
    num_rows, num_ids = said_RV.shape
    group_size = int((num_ids / num_best) ** 0.5)
    if group_size < 2:
        return _largest(said_RV, min(num_best, num_ids)) + _FIRST
    num_groups = num_ids // group_size
    dealt = num_groups * group_size
    maxima_RX = said_RV[:, :dealt].reshape(num_rows, group_size, num_groups).max(axis=1)
    groups_RX = _largest(maxima_RX, num_best)
    members_RX = (groups_RX[:, :, None] + num_groups * np.arange(group_size)).reshape(num_rows, -1)
    left_over_RX = np.broadcast_to(np.arange(dealt, num_ids), (num_rows, num_ids - dealt))
    members_RX = np.concatenate([members_RX, left_over_RX], axis=1)
    chosen_RX = _largest(np.take_along_axis(said_RV, members_RX, axis=1), num_best)
    return np.take_along_axis(members_RX, chosen_RX, axis=1) + _FIRST


def _largest(values_RX: Floats, num_best: int) -> Ids:
    """Return where the largest values of each row stand, largest first and of equals the first."""
    # Value and place in one whole number: NumPy partitions these five times as fast as it argpartitions.
    bits_RX = np.ascontiguousarray(values_RX, np.float32).view(np.int32)
    rising_RX = bits_RX ^ (bits_RX >> 31 & 0x7FFFFFFF)  # whole numbers in the order of the floats
    last = values_RX.shape[1] - 1
    keys_RX = (rising_RX.astype(np.int64) << 32) + np.arange(last, -1, -1)
    first = last + 1 - num_best
    best_RK = np.sort(np.partition(keys_RX, first, axis=1)[:, first:], axis=1)[:, ::-1]
    places_RK: Ids = last - (best_RK & 0xFFFFFFFF)
    return places_RK
