"""Plain results of translating."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Translation:
    """A translated text: how likely the model finds it, piece by piece, and where it looked for each.

    `source_pieces` end in `</s>`, and so do `pieces` unless a limit has cut the translation and it is not
    `complete`. `probs` has one entry, and `attention_TS` one row, for each of the `pieces`, and a column for
    each of the `source_pieces`. A model without attention has no columns; a blank source has no pieces.
    """

    source: str
    text: str
    score: float
    log_prob: float
    source_pieces: tuple[str, ...]
    pieces: tuple[str, ...]
    probs: tuple[float, ...]
    attention_TS: NDArray[np.float32]
    complete: bool
