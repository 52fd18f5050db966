"""Several models that say every word together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.contract import Batch, Engine, Floats, Forced, Ids, Probe, Step, force_by_steps, unseen
from regard.search.scores import log_normaliser


@dataclass(frozen=True, slots=True)
class EnsembleState:
    """What each of the models remembers."""

    members: tuple[Any, ...]

    def select(self, rows: Ids) -> "EnsembleState":
        """Return the states with these rows."""
        return EnsembleState(tuple(member.select(rows) for member in self.members))


class Ensemble:
    """An engine whose probability of a word is the mean of its members' (Sutskever et al. 2014, section 3.6).

    It shows where its first member looks: layers and heads of different models do not correspond.
    """

    def __init__(self, members: Sequence[Engine[Any]]) -> None:
        self.members = tuple(members)
        limits = [member.max_tokens for member in members if member.max_tokens is not None]
        self.max_tokens = min(limits, default=None)

    def start(self, batch: Batch, probe: Probe = unseen) -> EnsembleState:
        """Let each member read the sources."""
        return EnsembleState(tuple(member.start(batch, probe) for member in self.members))

    def step(self, state: EnsembleState, ids_R: Ids, probe: Probe = unseen) -> Step[EnsembleState]:
        """Read one more target id in each row; the scores are log-probabilities."""
        steps = [
            member.step(one, ids_R, probe) for member, one in zip(self.members, state.members, strict=True)
        ]
        after = EnsembleState(tuple(step.state for step in steps))
        first = steps[0]
        return Step(_mean([step.logits_RV for step in steps]), first.attention_RLNS, after, first.origins)

    def force(self, batch: Batch, probe: Probe = unseen) -> Forced:
        """Read the batch's own targets."""
        return force_by_steps(self, batch, probe)


def _mean(logits: Sequence[Floats]) -> Floats:
    """Return log (Σ_m p_m / M) from the scores of M models."""
    total_RV: Floats = np.full(logits[0].shape, -np.inf, np.float32)
    for logits_RV in logits:
        log_prob_RV = logits_RV - log_normaliser(logits_RV).astype(np.float32)[:, None]
        np.logaddexp(total_RV, log_prob_RV, out=total_RV)
    return total_RV - np.float32(np.log(len(logits)))
