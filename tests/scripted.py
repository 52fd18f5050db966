"""An engine that does what a test writes down, for behaviour that no small model can be relied on to show."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from regard.contract import Step, force_by_steps, unseen
from regard.vocabulary import BOS, EOS, PAD

SURE = 12.0
"""The score of what is to be said, against 0 of all else: it is said with a probability of nearly 1."""


@dataclass(frozen=True)
class _Rows:
    """What each row has read: its source without `</s>`, and what was said so far."""

    sources: tuple[tuple[int, ...], ...]
    width: int  # of the batch, padding counted
    said: tuple[tuple[int, ...], ...]

    def select(self, rows):
        return replace(
            self,
            sources=tuple(self.sources[row] for row in rows),
            said=tuple(self.said[row] for row in rows),
        )


@dataclass(frozen=True)
class Scripted:
    """An engine that follows a script.

    `say` gives from the ids of the source and those said so far the scores of some next ids, that of all
    others being 0. `look` gives from the same the weights of the step on the source and its `</s>`: (S) or
    (L, N, S); without it there is no attention.
    """

    vocab_size: int
    say: Callable[[tuple[int, ...], tuple[int, ...]], dict[int, float]]
    look: Callable[[tuple[int, ...], tuple[int, ...]], Sequence[float]] | None = None
    max_tokens: int | None = None

    def start(self, batch, probe=unseen):
        sources = tuple(
            tuple(id for id in row if id not in (PAD, EOS)) for row in map(np.ndarray.tolist, batch.source_BS)
        )
        return _Rows(sources, batch.source_BS.shape[1], ((),) * len(sources))

    def step(self, state, ids_R, probe=unseen):
        said = tuple(
            before if id == BOS else (*before, id)
            for before, id in zip(state.said, ids_R.tolist(), strict=True)
        )
        logits_RV = np.zeros((len(said), self.vocab_size), np.float32)
        looks = []
        for row, told in enumerate(zip(state.sources, said, strict=True)):
            for id, score in self.say(*told).items():
                logits_RV[row, id] = score
            if self.look is not None:
                weights = np.array(self.look(*told), np.float32)
                weights_LNS = weights if weights.ndim == 3 else weights[None, None]
                missing = state.width - weights_LNS.shape[2]
                looks.append(np.pad(weights_LNS, [(0, 0), (0, 0), (0, missing)]))
        attention_RLNS = np.stack(looks) if looks else np.empty((len(said), 0, 0, state.width), np.float32)
        return Step(logits_RV, attention_RLNS, replace(state, said=said))

    def force(self, batch, probe=unseen):
        return force_by_steps(self, batch, probe)


def one_after_another(sayings):
    """The `say` of an engine that says for each source the ids of `sayings`, whatever it has said before."""

    def say(source, said):
        ids = (*sayings(source), EOS)
        return {ids[min(len(said), len(ids) - 1)]: SURE}

    return say


def straight(source, said):
    """The `look` of an engine whose step t looks at source piece t, and at `</s>` after the last."""
    weights = [0.0] * (len(source) + 1)
    weights[min(len(said), len(source))] = 1.0
    return weights
