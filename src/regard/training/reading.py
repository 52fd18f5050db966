"""Which attention of a trained model tells best which source piece became which target piece.

Every layer and head is asked, and every mean of heads, at the step that says a piece and at the step that
reads it; of a recurrent model its posterior attention too, if the engine tells it. Each links every target
piece of some training pairs to the source piece it looks at most. The best reading is the one whose links
tell most about the words: the mutual information of linked pieces, measured on pairs other than those it was
counted on. No alignments made by hand are needed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.alignment.reading import AFTERWARDS, Reading
from regard.contract import Batch, Engine, Forced, Ids
from regard.vocabulary import EOS, PAD

_PRIOR = 2.0  # links of which a source piece is given as many as if nothing were known of it
_MAX_ROWS = 64  # pairs forced together: all scores of all words are kept at once


@dataclass(frozen=True, slots=True)
class _Links:
    """For each target piece, its id, and by each reading the id of the source piece it is linked to."""

    target_M: Ids
    source_XM: Ids


def choose_reading(engine: Engine[Any], batches: Iterable[Batch], max_tokens: int = 40_000) -> Reading | None:
    """Return the reading that tells most of `max_tokens` target tokens; None without attention.

    More tokens than these tell the same.
    """
    ranked = rank_readings(engine, _enough(batches, max_tokens))
    return ranked[0][0] if ranked else None


def rank_readings(engine: Engine[Any], batches: Iterable[Batch]) -> list[tuple[Reading, float]]:
    """Return all readings of a model with what their links tell, in bits a piece, the best first.

    A model without attention has none.
    """
    readings: list[Reading] = []
    folds: list[list[_Links]] = [[], []]
    for number, batch in enumerate(_small(batches)):
        forced = engine.force(batch)
        if not forced.attention_BTLNS.shape[2]:
            return []
        readings = _readings(*forced.attention_BTLNS.shape[2:4])
        if forced.origin_BTS is not None:
            readings.append(AFTERWARDS)
        folds[number % 2].append(_links(batch, forced))
    if not all(folds):
        return []
    halves = [
        _Links(
            np.concatenate([one.target_M for one in fold]), np.concatenate([one.source_XM for one in fold], 1)
        )
        for fold in folds
    ]
    told = [
        sum(_information(halves[fold], halves[1 - fold], row) for fold in (0, 1)) / 2
        for row in range(len(readings))
    ]
    # Of equals the mean of heads, and the step that says the piece, come first.
    return sorted(zip(readings, told, strict=True), key=lambda pair: -pair[1])


def _readings(num_layers: int, num_heads: int) -> list[Reading]:
    heads = [None, *range(num_heads)] if num_heads > 1 else [None]
    return [
        Reading(layer, head, shifted)
        for shifted in (False, True)
        for layer in range(num_layers)
        for head in heads
    ]


def _enough(batches: Iterable[Batch], max_tokens: int) -> Iterable[Batch]:
    num_tokens = 0
    for batch in batches:
        yield batch
        num_tokens += batch.num_target_tokens
        if num_tokens >= max_tokens:
            return


def _small(batches: Iterable[Batch]) -> Iterable[Batch]:
    """Yield the batches in parts of a few rows."""
    for batch in batches:
        num_parts = -(-len(batch.source_BS) // _MAX_ROWS)
        for part in range(num_parts):
            yield batch.shard(part, num_parts)


def _links(batch: Batch, forced: Forced) -> _Links:
    """Return where each piece of a batch is linked to, `</s>` of the targets aside."""
    assert batch.target_out_BT is not None
    attention_BTLNS = forced.attention_BTLNS
    num_heads = attention_BTLNS.shape[3]
    looks = [attention_BTLNS.mean(axis=3, keepdims=True), attention_BTLNS][: 1 + (num_heads > 1)]
    best_BTLN = np.concatenate([look.argmax(axis=-1) for look in looks], axis=3)
    source_BTX = batch.source_BS[
        np.arange(len(best_BTLN))[:, None, None], best_BTLN.reshape(*best_BTLN.shape[:2], -1)
    ]
    said_BT = (batch.target_out_BT != PAD) & (batch.target_out_BT != EOS)
    # A piece is read at the step after the one that says it; there is always one, for `</s>` comes last.
    read_BT = np.roll(said_BT, 1, axis=1)
    found = [source_BTX[said_BT], source_BTX[read_BT]]
    if forced.origin_BTS is not None:
        origin_BT = forced.origin_BTS.argmax(axis=-1)
        found.append(np.take_along_axis(batch.source_BS, origin_BT, axis=1)[read_BT][:, None])
    return _Links(batch.target_out_BT[said_BT], np.concatenate(found, axis=1).T)


def _information(known: _Links, new: _Links, row: int) -> float:
    """Return how many bits the linked source piece tells about a target piece, counted on other pairs."""
    vocab_size = 1 + int(max(known.target_M.max(), new.target_M.max()))
    pairs, counts = np.unique(known.source_XM[row] * vocab_size + known.target_M, return_counts=True)
    of_source = np.bincount(known.source_XM[row], minlength=1 + int(new.source_XM[row].max()))
    of_target = np.bincount(known.target_M, minlength=vocab_size) + 1.0
    prob_M = of_target[new.target_M] / of_target.sum()
    wanted_M = new.source_XM[row] * vocab_size + new.target_M
    place_M = np.minimum(np.searchsorted(pairs, wanted_M), len(pairs) - 1)
    together_M = np.where(pairs[place_M] == wanted_M, counts[place_M], 0)
    given_M = (together_M + _PRIOR * prob_M) / (of_source[new.source_XM[row]] + _PRIOR)
    return float(np.log2(given_M / prob_M).mean())
