"""Attention: scores to weights, weights to a context. Masking, softmax and mixing are written here once."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.contract import Probe
from regard.model.scorers import build_scorer
from regard.options.model import AttendThenStep, StepAttendStep, StepThenAttend


class Attended(NamedTuple):
    """What looking gives: the mixture of memories, and the share of each."""

    context_BTH: Tensor
    weights_BTS: Tensor


@dataclass(frozen=True, slots=True)
class Memories:
    """A read source: its memories, what the scorer made of them, which are real, and how many."""

    memory_BSH: Tensor
    keys_BSA: Tensor
    real_BS: Tensor
    length_B: Tensor

    def select(self, rows_R: Tensor) -> "Memories":
        """Return the memories of these rows."""
        return Memories(
            self.memory_BSH[rows_R], self.keys_BSA[rows_R], self.real_BS[rows_R], self.length_B[rows_R]
        )


class Attention(nn.Module):
    """One look at the memories with a query: any scorer, through any window."""

    def __init__(
        self,
        options: AttendThenStep | StepThenAttend | StepAttendStep,
        query_size: int,
        memory_size: int,
        layer_norm: bool = False,
    ) -> None:
        super().__init__()
        inner = (memory_size, layer_norm) if options.kind == "step-attend-step" else (query_size, False)
        self.scorer = build_scorer(options.scorer, query_size, memory_size, *inner)
        self.max_positions = options.scorer.max_positions if options.scorer.kind == "location" else None
        self.half_width = options.window.half_width if options.window.kind != "global" else None
        self.place = PredictedPlace(query_size) if options.window.kind == "local-p" else None

    def prepare(self, memory_BSH: Tensor, real_BS: Tensor, probe: Probe) -> Memories:
        """Return all that stays the same while one sentence is translated."""
        if self.max_positions is not None:
            real_BS = real_BS & (torch.arange(real_BS.shape[1], device=real_BS.device) < self.max_positions)
        keys_BSA = probe("attention.keys", self.scorer.prepare(memory_BSH))
        return Memories(memory_BSH, keys_BSA, real_BS, real_BS.sum(1))

    def forward(self, query_BTQ: Tensor, memories: Memories, first_step: int, probe: Probe) -> Attended:
        """Look with one query for each target step, the first of which has number `first_step`."""
        query_BTQ = probe("attention.query", query_BTQ)
        scores_BTS = probe("attention.scores", self.scorer(query_BTQ, memories.keys_BSA, probe))
        seen_BTS = memories.real_BS[:, None].expand_as(scores_BTS)
        if self.half_width is None:
            weights_BTS = _softmax(scores_BTS, seen_BTS, probe)
        else:
            weights_BTS = self._local(query_BTQ, scores_BTS, seen_BTS, memories, first_step, probe)
        weights_BTS = probe("attention.weights", weights_BTS)
        return Attended(probe("attention.context", weights_BTS @ memories.memory_BSH), weights_BTS)

    def _local(
        self,
        query_BTQ: Tensor,
        scores_BTS: Tensor,
        seen_BTS: Tensor,
        memories: Memories,
        first_step: int,
        probe: Probe,
    ) -> Tensor:
        """Return weights within D of a place (Luong et al. 2015, eqs. 9-10; not normalised again)."""
        assert self.half_width is not None
        num_steps, device = scores_BTS.shape[1], scores_BTS.device
        if self.place is None:
            step_T = torch.arange(first_step, first_step + num_steps, device=device)
            place_BT = torch.minimum(step_T, memories.length_B[:, None] - 1).to(scores_BTS.dtype)
        else:
            place_BT = self.place(query_BTQ) * memories.length_B[:, None]
        # Wherever a probe puts it, some source token is in view.
        place_BT = probe("attention.place", place_BT).clamp(min=0).minimum(memories.length_B[:, None])
        position_S = torch.arange(scores_BTS.shape[2], device=device)
        offset_BTS = position_S - place_BT[:, :, None]
        weights_BTS = _softmax(scores_BTS, seen_BTS & (offset_BTS.abs() <= self.half_width), probe)
        if self.place is None:
            return weights_BTS
        spread = self.half_width / 2
        return weights_BTS * torch.exp(-(offset_BTS**2) / (2 * spread**2))


class PredictedPlace(nn.Module):
    """The share of the source at which to look: sigmoid(v_p . tanh(W_p s)) (Luong et al. 2015, eq. 9)."""

    def __init__(self, query_size: int) -> None:
        super().__init__()
        self.W_p = nn.Parameter(torch.empty(query_size, query_size))
        self.v_p = nn.Parameter(torch.empty(query_size))

    def forward(self, query_BTQ: Tensor) -> Tensor:
        """Return one share for each query (B, T)."""
        return torch.sigmoid(torch.tanh(functional.linear(query_BTQ, self.W_p)) @ self.v_p)


def _softmax(scores_BTS: Tensor, seen_BTS: Tensor, probe: Probe) -> Tensor:
    """Return weights that sum to 1 over what is seen, and are 0 elsewhere."""
    seen_BTS = probe("attention.seen", seen_BTS)
    return torch.softmax(scores_BTS.masked_fill(~seen_BTS, float("-inf")), dim=-1)
