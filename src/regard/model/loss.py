"""The training loss, without ever holding the scores of all tokens at once."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

# Of 4096 rows, V = 8000, two threads: 512 and 1024 rows at a time are fastest for Q = 128 and 256 (64 rows
# take 1.3 to 1.5 times as long: the weight gradient is read and written once per chunk); 512 hold 16 MB.
CHUNK_ROWS = 512


class Loss(NamedTuple):
    """Two sums over the same tokens."""

    smoothed: Tensor
    """Label-smoothed cross-entropy: what is trained."""
    nll: Tensor
    """-log prob of the right tokens, without gradient: what perplexity is made of."""


def smoothed_cross_entropy(
    readout_MQ: Tensor, weight_VQ: Tensor, bias_V: Tensor | None, targets_M: Tensor, smoothing: float
) -> Loss:
    """Return the summed loss of M real tokens whose logits are `readout_MQ @ weight_VQ.T + bias_V`.

    Label smoothing as in Szegedy et al. 2016, section 7: the right token is to have probability
    1 - smoothing + smoothing / V and each of the others smoothing / V.
    """
    # Under autocast the readout may be narrower than the weights; sums over the vocabulary need the wider.
    with torch.autocast(readout_MQ.device.type, enabled=False):
        smoothed, nll = _SmoothedCrossEntropy.apply(
            readout_MQ.to(weight_VQ), weight_VQ, bias_V, targets_M, smoothing, torch.is_grad_enabled()
        )
    return Loss(smoothed, nll)


class _SmoothedCrossEntropy(torch.autograd.Function):
    """Gradients are computed going forward, while the scores of a chunk of rows are at hand."""

    @staticmethod
    def forward(
        ctx: Any,
        readout_MQ: Tensor,
        weight_VQ: Tensor,
        bias_V: Tensor | None,
        targets_M: Tensor,
        smoothing: float,
        grad_enabled: bool,  # inside forward gradients are always off, and needs_input_grad ignores no_grad
    ) -> tuple[Tensor, Tensor]:
        needs_readout, needs_weight, needs_bias = (grad_enabled and need for need in ctx.needs_input_grad[:3])
        grad_readout_MQ = torch.empty_like(readout_MQ) if needs_readout else None
        grad_weight_VQ = torch.zeros_like(weight_VQ) if needs_weight else None
        grad_bias_V = torch.zeros_like(bias_V) if needs_bias and bias_V is not None else None

        num_rows, num_words = len(readout_MQ), len(weight_VQ)
        nll_M, logit_M = readout_MQ.new_empty(2, num_rows)
        chunk_MV = readout_MQ.new_empty(min(num_rows, CHUNK_ROWS), num_words)
        for start in range(0, num_rows, CHUNK_ROWS):
            rows = slice(start, start + CHUNK_ROWS)
            part_MQ, target_M1 = readout_MQ[rows], targets_M[rows, None]
            logits_MV = chunk_MV[: len(part_MQ)]
            if bias_V is None:
                torch.mm(part_MQ, weight_VQ.T, out=logits_MV)
            else:
                torch.addmm(bias_V, part_MQ, weight_VQ.T, out=logits_MV)
            logit_M[rows] = logits_MV.gather(1, target_M1)[:, 0]
            prob_MV = torch.softmax(logits_MV, 1, out=logits_MV)
            prob_M = prob_MV.gather(1, target_M1)[:, 0]
            nll_M[rows] = -prob_M.log()
            # A log softmax would need no second look, but for the gradient a second exp: 7 to 15 % in all.
            tiny_M = prob_M < 1e-30
            if tiny_M.any():
                logits_MV = functional.linear(part_MQ[tiny_M], weight_VQ, bias_V)
                nll_M[rows][tiny_M] = logits_MV.logsumexp(1) - logit_M[rows][tiny_M]

            # d smoothed / d logits = prob - (1 - smoothing) at the right token - smoothing / V everywhere;
            # the last, the same for all rows and words, is left to the end.
            if needs_readout or needs_weight or needs_bias:
                right_M1 = torch.full_like(target_M1, smoothing - 1, dtype=prob_MV.dtype)
                slope_MV = prob_MV.scatter_add_(1, target_M1, right_M1)
            if grad_readout_MQ is not None:
                torch.mm(slope_MV, weight_VQ, out=grad_readout_MQ[rows])
            if grad_weight_VQ is not None:
                grad_weight_VQ.addmm_(slope_MV.T, part_MQ)
            if grad_bias_V is not None:
                grad_bias_V += slope_MV.sum(0)

        uniform = smoothing / num_words
        weight_Q = weight_VQ.sum(0)
        if grad_readout_MQ is not None:
            grad_readout_MQ -= uniform * weight_Q
        if grad_weight_VQ is not None:
            grad_weight_VQ -= uniform * readout_MQ.sum(0)
        if grad_bias_V is not None:
            grad_bias_V -= uniform * num_rows
        ctx.save_for_backward(grad_readout_MQ, grad_weight_VQ, grad_bias_V)

        # -log prob of a word, averaged over all words, is that of the right one + its logit - the mean logit.
        mean_logit_M = readout_MQ @ (weight_Q / num_words)
        if bias_V is not None:
            mean_logit_M += bias_V.mean()
        nll = nll_M.sum()
        smoothed = nll + smoothing * (logit_M - mean_logit_M).sum()
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_smoothed: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        grads = (None if grad is None else grad * grad_smoothed for grad in ctx.saved_tensors)
        return *grads, None, None, None
