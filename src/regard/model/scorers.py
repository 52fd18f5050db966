"""How well a query and a memory match: a number before masking and softmax, which belong to attention.py."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.contract import Probe
from regard.options.model import ContentScorer, LocationScorer


class DotScorer(nn.Module):
    """Luong et al. 2015, section 3.1, dot: s . h; scaled by 1/√n as in Vaswani et al. 2017, eq. 1, if asked.

    A memory of two directions is twice as wide as the query, which then meets both halves: s . h→ + s . h←.
    """

    def __init__(self, query_size: int, memory_size: int, scaled: bool) -> None:
        super().__init__()
        self.query_size = query_size
        self.scale = 1 / math.sqrt(query_size) if scaled else 1.0

    def prepare(self, memory_BSH: Tensor) -> Tensor:
        """Return the keys, once per sentence."""
        return memory_BSH.unflatten(-1, (-1, self.query_size)).sum(-2) * self.scale

    def forward(self, query_BTQ: Tensor, keys_BSA: Tensor, probe: Probe) -> Tensor:
        """Return raw scores (B, T, S)."""
        return query_BTQ @ keys_BSA.transpose(1, 2)


class GeneralScorer(nn.Module):
    """Luong et al. 2015, section 3.1, general: s . W_a h; scaled by 1/√n if asked.

    Adam moves every entry of W_a at once, and so a score by much more than an entry. Unscaled and at a high
    rate the softmax then closes on one place and never opens again (docs/experiments.md).
    """

    def __init__(self, query_size: int, memory_size: int, scaled: bool) -> None:
        super().__init__()
        self.W_a = nn.Parameter(torch.empty(query_size, memory_size))
        self.scale = 1 / math.sqrt(query_size) if scaled else 1.0

    def prepare(self, memory_BSH: Tensor) -> Tensor:
        """Return W_a h, once per sentence."""
        return functional.linear(memory_BSH, self.W_a) * self.scale

    def forward(self, query_BTQ: Tensor, keys_BSA: Tensor, probe: Probe) -> Tensor:
        """Return raw scores (B, T, S)."""
        return query_BTQ @ keys_BSA.transpose(1, 2)


class AdditiveScorer(nn.Module):
    """Bahdanau et al. 2015, A.1.2: v_a . tanh(W_a s + U_a h + b_a); Luong's `concat` with W_a = [W_a U_a].

    Its inner layer is as wide as the query, as in the papers (1000 and 1000), or, as in Nematus, the memory.
    """

    def __init__(self, query_size: int, memory_size: int, inner_size: int, layer_norm: bool) -> None:
        super().__init__()
        self.W_a = nn.Parameter(torch.empty(inner_size, query_size))
        self.U_a = nn.Parameter(torch.empty(inner_size, memory_size))
        self.b_a = None if layer_norm else nn.Parameter(torch.zeros(inner_size))
        self.v_a = nn.Parameter(torch.empty(inner_size))
        self.norm_of_query = nn.LayerNorm(inner_size) if layer_norm else None
        self.norm_of_keys = nn.LayerNorm(inner_size) if layer_norm else None

    def prepare(self, memory_BSH: Tensor) -> Tensor:
        """Return U_a h + b_a, once per sentence."""
        keys_BSA = functional.linear(memory_BSH, self.U_a, self.b_a)
        return keys_BSA if self.norm_of_keys is None else self.norm_of_keys(keys_BSA)

    def forward(self, query_BTQ: Tensor, keys_BSA: Tensor, probe: Probe) -> Tensor:
        """Return raw scores (B, T, S)."""
        query_BTA = functional.linear(query_BTQ, self.W_a)
        if self.norm_of_query is not None:
            query_BTA = self.norm_of_query(query_BTA)
        inner_BTSA = probe("attention.inner", torch.tanh(query_BTA[:, :, None] + keys_BSA[:, None]))
        return inner_BTSA @ self.v_a


class PositionScorer(nn.Module):
    """Luong et al. 2015, eq. 8, location: row i of W_a s scores position i, whatever stands there."""

    def __init__(self, query_size: int, max_positions: int) -> None:
        super().__init__()
        self.W_a = nn.Parameter(torch.empty(max_positions, query_size))

    def prepare(self, memory_BSH: Tensor) -> Tensor:
        """Return the rows of W_a for the positions there are, the same for every sentence."""
        rows_SQ = self.W_a[: memory_BSH.shape[1]]
        missing = memory_BSH.shape[1] - len(rows_SQ)
        return functional.pad(rows_SQ, (0, 0, 0, missing)).expand(len(memory_BSH), -1, -1)

    def forward(self, query_BTQ: Tensor, keys_BSA: Tensor, probe: Probe) -> Tensor:
        """Return raw scores (B, T, S)."""
        return query_BTQ @ keys_BSA.transpose(1, 2)


Scorer = DotScorer | GeneralScorer | AdditiveScorer | PositionScorer


def build_scorer(
    options: ContentScorer | LocationScorer,
    query_size: int,
    memory_size: int,
    inner_size: int | None = None,
    layer_norm: bool = False,
) -> Scorer:
    """Return the scorer of these options; the last two are those of an additive one."""
    if options.kind == "location":
        return PositionScorer(query_size, options.max_positions)
    if options.kind in ("general", "scaled-general"):
        return GeneralScorer(query_size, memory_size, scaled=options.kind == "scaled-general")
    if options.kind == "additive":
        return AdditiveScorer(query_size, memory_size, inner_size or query_size, layer_norm)
    return DotScorer(query_size, memory_size, scaled=options.kind == "scaled-dot")
