"""What the engine computes while it reads a translation, kept by name and packed for the trace."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.contract import Batch, Engine, Floats, Probe, Ragged, Source, source_batch
from regard.design import Kind
from regard.probes import Recorder, together
from regard.search.scores import target_log_probs
from regard.search.task import Hypothesis
from regard.trace.arrays import Array
from regard.trace.document import Attention, Head

LEAST_LOG_PROB = -1e4
"""What is impossible to the model is written as this likely: JSON knows no infinity."""

_F2_MAX = 6e4  # beyond it two bytes are not enough
# Seen once, when the source is read; all else is seen at each step, or for all steps at once.
_BY_STEP = ("attention.inner",)  # has three axes and is yet of one step
_OF_SOURCE = ("source.", "encoder.", "memory", "attention.keys", "decoder.summary")


def is_of_source(name: str) -> bool:
    """Tell whether a quantity has a row for each source piece, and not for each step."""
    return name.startswith(_OF_SOURCE) or (".cross." in name and name.endswith((".keys", ".values")))


def read_again(
    engine: Engine[Any], ids: Source, said: Hypothesis, probe: Probe, kept: Sequence[str]
) -> "Recorded":
    """Let the engine read the source and what was said, and keep the attention and what else is named."""
    batch = batch_of(ids, said)
    recorder = Recorder("*.scores", "*.weights", "*.seen", *kept)
    forced = engine.force(batch, together(probe, recorder))
    assert batch.target_out_BT is not None
    wanted = Recorder(*kept)
    return Recorded(
        recorder,
        tuple(name for name in recorder if kept and wanted.wants(name)),
        np.maximum(target_log_probs(forced.logits_BTV, batch.target_out_BT)[0], LEAST_LOG_PROB),
        forced.logits_BTV[0],
        forced.attention_BTLNS[0],
        None if forced.origin_BTS is None else forced.origin_BTS[0],
    )


def batch_of(ids: Source, said: Hypothesis, num_rows: int = 1) -> Batch:
    """Return so many rows of a source and what was said to it: as many steps as there were in the search."""
    read = said.ids if said.complete else said.ids[:-1]  # a limit has cut it before `</s>`
    target = np.array(read, np.int64)
    batch = source_batch([ids] * num_rows, Ragged.of([target] * num_rows), np.arange(num_rows))
    if not said.complete:
        assert batch.target_out_BT is not None
        batch.target_out_BT[:, -1] = said.ids[-1]
    return batch


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the recorder has seen of one translation."""

    recorder: Recorder
    kept: tuple[str, ...]
    log_prob_T: NDArray[np.float64]
    logits_TV: Floats
    cross_TLNS: Floats
    origin_TS: Floats | None = None

    def states(self) -> dict[str, Array]:
        """Return all that was to be kept, by name."""
        return {name: self._packed(name) for name in self.kept}

    def _packed(self, name: str) -> Array:
        value = np.asarray(self._value(name), np.float32)
        return Array.of(value, "f2" if np.abs(value).max(initial=0) < _F2_MAX else "f4")

    def _value(self, name: str) -> NDArray[Any]:
        """Return a quantity without the axis of the batch, a row for each source piece or each step."""
        seen = self.recorder[name]
        if name.endswith(".positions") or (name.startswith("decoder.") and name.endswith(".self.seen")):
            return seen[0]  # they have no axis of the batch
        if name.startswith(_OF_SOURCE) or name.endswith(".start"):
            if len(seen) == 1:
                return np.asarray(seen[0][0])
            return np.concatenate(seen[::-1] if ".leftward." in name else seen)  # gates, in reading order
        if seen[0].ndim == 4:  # (1, N, T, D) of a Transformer; its keys and values are of the source
            return np.asarray(seen[0][0])
        at_once = seen[0].ndim == 3 and name not in _BY_STEP
        return np.asarray(seen[0][0]) if at_once else np.concatenate(seen)

    def attention(self, kind: Kind, names: Sequence[str], *, causal: bool, normalised: bool) -> Attention:
        """Return the scores and weights of all layers, which go by these names."""
        scores, seen, weights = (
            np.stack([self._matrix(f"{name}.{what}") for name in names])
            for what in ("scores", "seen", "weights")
        )
        scores = np.where(seen.astype(bool), scores.astype(float), -np.inf)
        top = scores.max(axis=-1, keepdims=True)
        sums = top + np.log(np.exp(scores - top).sum(axis=-1, keepdims=True))
        logs = np.minimum(scores - sums, 0)
        goes_on_with_others = np.abs(np.exp(logs) - weights).max(initial=0) > 1e-5
        return Attention(
            kind=kind,
            log_weights=Array.of_logs(logs),
            log_sums=Array.of(sums[..., 0], "f4"),
            weights=Array.of(weights, "f4") if goes_on_with_others else None,
            causal=causal,
            normalised=normalised,
            heads=[[_head(weights_TS) for weights_TS in layer] for layer in weights],
        )

    def _matrix(self, name: str) -> NDArray[Any]:
        """Return (heads, who, whom) of one layer."""
        seen = self.recorder[name]
        if name.startswith("attention."):
            return np.concatenate(seen)[None]
        return (
            seen[0][None] if seen[0].ndim == 2 else np.asarray(seen[0][0])
        )  # the decoder's mask has no heads


def entropies(weights_TS: Floats) -> Floats:
    """Return the entropy of each row in nats, of its weights as they are."""
    entropy_T: Floats = -(weights_TS * np.log(np.where(weights_TS > 0, weights_TS, 1))).sum(axis=1)
    return entropy_T


def _head(weights_TS: Floats) -> Head:
    """Return how a head looks in general."""
    num_rows, num_columns = weights_TS.shape
    rows = np.arange(num_rows)[:, None] / max(num_rows - 1, 1)
    columns = np.arange(num_columns)[None] / max(num_columns - 1, 1)
    distance = float((weights_TS * np.abs(rows - columns)).sum(axis=1).mean())
    return Head(entropy=round(float(entropies(weights_TS).mean()), 4), diagonality=round(1 - distance, 4))
