"""What each source word does: what is said without it, and what would be said from it alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.contract import Engine, Floats, Probe, Source, num_source_tokens, source_batch
from regard.search.scores import Totals, best_ids, log_normaliser, target_log_probs
from regard.search.task import Hypothesis
from regard.trace.recorded import LEAST_LOG_PROB, batch_of
from regard.vocabulary import BOS, PAD

_MAX_TOKENS = 1024  # of all rows forced together: the scores of all words for each are kept at once


@dataclass(frozen=True, slots=True)
class Only:
    """What each step would say if it looked at one source word only, and how likely that would be."""

    ids_TX: NDArray[np.int64]
    log_prob_TX: Floats


def erasure(engine: Engine[Any], source: Source, said: Hypothesis, words: Sequence[Sequence[int]]) -> Floats:
    """Return by how much the log-probability of each target piece changes without each source word (T, X).

    The pieces of a word become `<pad>`: no state passes through them and nobody can look at them. That is
    the erasure of Li et al. 2016, without a vector of zeros, which a model has never seen.
    """
    whole_T = _log_probs(engine, source, said, [()])[0]
    width = max(1, _MAX_TOKENS // (max(len(source), len(said.ids)) + 1))
    without = [
        _log_probs(engine, source, said, words[first : first + width])
        for first in range(0, len(words), width)
    ]
    if not without:
        return np.empty((len(whole_T), 0), np.float32)
    change_TX: Floats = (np.concatenate(without) - whole_T).T.astype(np.float32)
    return change_TX


def _log_probs(
    engine: Engine[Any], source: Source, said: Hypothesis, erased: Sequence[Sequence[int]]
) -> Totals:
    """Return how likely each target piece is (X, T), each time without some source pieces."""
    batch = batch_of(source, said, len(erased))
    for row, pieces in enumerate(erased):
        batch.source_BS[row, list(pieces)] = PAD
    assert batch.target_out_BT is not None
    log_prob_XT = target_log_probs(engine.force(batch).logits_BTV, batch.target_out_BT)
    return np.maximum(log_prob_XT, LEAST_LOG_PROB)


def only_looks(
    engine: Engine[Any], source: Source, said: Hypothesis, words: Sequence[Sequence[int]], cross_TLNS: Floats
) -> Only:
    """Return what each step would say if it had looked at one source word only.

    It looks so in every layer and head; all steps before it are as they were. Within a word of several
    pieces it looks as the mean of all heads did.
    """
    batch = source_batch([source], None, np.arange(1))
    mean_TS = cross_TLNS.mean(axis=(1, 2), dtype=float)
    state = engine.start(batch)
    rows = np.zeros(len(words) + 1, np.int64)
    ids, log_probs = [], []
    for step, id in enumerate([BOS, *said.ids][: len(cross_TLNS)]):
        looks_XS = np.zeros((len(words), num_source_tokens(source)))
        for word, pieces in enumerate(words):
            share = mean_TS[step, list(pieces)] + 1e-6
            looks_XS[word, list(pieces)] = share / share.sum()
        # The first row goes on as it was, the others look at a word each and are forgotten.
        after = engine.step(state.select(rows), np.full(len(rows), id, np.int64), _looking(looks_XS))
        state = after.state.select(rows[:1])
        best_X = best_ids(after.logits_RV[1:], 1)[:, 0]
        logit_X = after.logits_RV[np.arange(1, len(rows)), best_X]
        ids.append(best_X)
        log_probs.append(logit_X - log_normaliser(after.logits_RV[1:]))
    return Only(np.stack(ids), np.stack(log_probs).astype(np.float32))


def _looking(looks_XS: Any) -> Probe:
    """Return a probe under which every row but the first looks so at the source."""

    def probe(name: str, value: Any) -> Any:
        if name != "attention.weights" and not name.endswith(".cross.weights"):
            return value
        changed = np.array(value)
        changed[1:] = looks_XS if changed.ndim == 2 else looks_XS[:, None, None]
        return changed

    return probe
