"""The layer before the output matrix of a recurrent model."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.contract import Probe
from regard.options.model import RecurrentOptions


class Readout(nn.Module):
    """From what a step gives to the vector that meets the output matrix."""

    def __init__(self, options: RecurrentOptions, context_size: int | None) -> None:
        super().__init__()
        size, embedding_size = options.hidden_size, options.embedding_size
        self.kind = options.readout
        tied = options.tie in ("target", "all")
        width = size
        if self.kind != "linear":
            width = embedding_size if tied or self.kind == "tanh" else size // 2
            num_sums = 2 * width if self.kind == "maxout" else width
            self.U_o = nn.Parameter(torch.empty(num_sums, size))
            self.V_o = nn.Parameter(torch.empty(num_sums, embedding_size))
            self.C_o = None if context_size is None else nn.Parameter(torch.empty(num_sums, context_size))
            normed = ("U_o", "V_o", "C_o")[: 2 if context_size is None else 3]
            if self.kind == "maxout" or not options.layer_norm:
                normed = ()
            self.norms = nn.ModuleDict({name: nn.LayerNorm(num_sums) for name in normed})
            self.b_m = None if normed else nn.Parameter(torch.zeros(num_sums))
        self.P_o = None
        if options.tie == "factored" or (tied and width != embedding_size):
            self.P_o = nn.Parameter(torch.empty(embedding_size, width))
            width = embedding_size
        self.width = width

    def forward(self, top: Tensor, embedded: Tensor, context: Tensor | None, probe: Probe) -> Tensor:
        """Return the readout of one step or of all.

        Bahdanau et al. 2015, A.2.2: the larger of each two of U_o s + V_o e(y) + C_o c. The appendix prints
        s_{t-1} there, but equation 4 and Cho et al. 2014 have s_t, which is what we take. Sennrich et al.
        2017 take tanh instead.
        """
        if self.kind != "linear":
            sums = self._normed("U_o", functional.linear(top, self.U_o, self.b_m))
            sums = sums + self._normed("V_o", functional.linear(embedded, self.V_o))
            if self.C_o is not None and context is not None:
                sums = sums + self._normed("C_o", functional.linear(context, self.C_o))
            top = sums.unflatten(-1, (-1, 2)).amax(-1) if self.kind == "maxout" else torch.tanh(sums)
        if self.P_o is not None:
            top = functional.linear(top, self.P_o)
        return probe("readout", top)

    def _normed(self, name: str, sums: Tensor) -> Tensor:
        """Return one input's share, normalised if layers are."""
        normed: Tensor = self.norms[name](sums) if self.norms else sums
        return normed
