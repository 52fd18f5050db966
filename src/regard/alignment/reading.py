"""Which attention of a model is read as its word alignment."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.contract import Floats, Looks, Step


@dataclass(frozen=True, slots=True)
class Reading:
    """Which attention of a model tells which source piece became which.

    That of one layer (counted from the last if negative), of one of its heads or the mean of all; and if
    `shifted`, at the step that reads a piece instead of the one that says it (SHIFT-ATT, Chen et al. 2020).
    A recurrent decoder looks before it knows the word. Its `posterior` is that look once the word is known,
    so the step that reads a piece has it (Shankar and Sarawagi 2019).
    """

    layer: int
    head: int | None
    shifted: bool
    posterior: bool = False

    def look(self, attention_RLNS: Floats, origin_RS: Floats | None = None) -> Floats:
        """Return the chosen weights of each row (R, S), none if the model has no attention.

        `origin_RS` is what the engine tells of where the ids that were read came from.
        """
        if self.posterior:
            assert origin_RS is not None
            return origin_RS
        num_rows, num_layers = attention_RLNS.shape[:2]
        if not num_layers:
            return np.empty((num_rows, 0), np.float32)
        layer = self.layer if self.layer >= 0 else max(num_layers + self.layer, 0)
        heads_RNS = attention_RLNS[:, layer]
        look_RS: Floats = heads_RNS.mean(axis=1) if self.head is None else heads_RNS[:, self.head]
        return look_RS

    def looks(self, step: Step[Any]) -> Looks:
        """Return what gives the chosen weights of some rows of a step."""
        if self.posterior:
            assert step.origins is not None
            return step.origins
        return self.look(step.attention_RLNS).__getitem__

    def align(self, looks_TS: Floats) -> Floats:
        """Return for each piece said where it came from, given where each step looked.

        The last piece is read by no step and keeps its own.
        """
        return np.concatenate([looks_TS[1:], looks_TS[-1:]]) if self.shifted else looks_TS


AFTERWARDS = Reading(0, None, shifted=True, posterior=True)
"""The posterior attention of a recurrent model."""

USUAL_READING = Reading(-2, None, False)
"""Where nothing was learnt about a model: the last layer but one, the mean of its heads. In Transformers its
weights align best (Garg et al. 2019, section 4.1)."""
