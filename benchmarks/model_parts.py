"""Parts of a training step against plain torch, forward and backward, as ratios of interleaved rounds.

    python benchmarks/model_parts.py [--rounds 15]

Where other processes keep the cores busy, set OMP_NUM_THREADS=1: with more, threads wait for one another
in steps of the scheduler's 4 ms, and the ratios say more of that than of the code.
"""

import argparse
import time
from collections.abc import Callable
from itertools import count
from statistics import median

import torch
from torch import Tensor
from torch.nn import functional

from regard.model.loss import smoothed_cross_entropy
from regard.model.noise import Noise


def compare(
    name: str, ours: Callable[[], Tensor], plain: Callable[[], Tensor], learned: list[Tensor], rounds: int
) -> None:
    """Print how many times as long the plain way takes to compute a result and its gradients."""

    def seconds(compute: Callable[[], Tensor]) -> float:
        started = time.perf_counter()
        result = compute()
        torch.autograd.grad(result, learned, torch.ones_like(result))
        return time.perf_counter() - started

    for compute in (ours, plain) * 3:  # the first rounds pay for fresh memory
        seconds(compute)
    taken = [(seconds(ours), seconds(plain)) for _ in range(rounds)]
    ratios = sorted(theirs / mine for mine, theirs in taken)
    print(
        f"{name:24} {1000 * median(mine for mine, _ in taken):6.1f} ms, "
        f"plain {1000 * median(theirs for _, theirs in taken):6.1f} ms, "
        f"ratio {median(ratios):5.2f}   ({ratios[rounds // 4]:.2f} to {ratios[-1 - rounds // 4]:.2f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    torch.manual_seed(1)
    x, steps = torch.randn(4096, 512, requires_grad=True), count()
    for prob in (0.1, 0.5):
        compare(
            f"dropout {prob}, 2M elements",
            lambda prob=prob: Noise(1, next(steps)).dropout(x, prob),
            lambda prob=prob: functional.dropout(x, prob),
            [x],
            rounds,
        )
    for size in (128, 256):
        readout_MQ = torch.randn(4096, size, requires_grad=True)
        weight_VQ = (torch.randn(8000, size) / size**0.5).requires_grad_()
        bias_V, targets_M = torch.zeros(8000, requires_grad=True), torch.randint(0, 8000, (4096,))
        inputs = readout_MQ, weight_VQ, bias_V
        compare(
            f"loss, 4096 x 8000, Q={size}",
            lambda inputs=inputs, targets_M=targets_M: (
                smoothed_cross_entropy(*inputs, targets_M, 0.1).smoothed
            ),
            lambda inputs=inputs, targets_M=targets_M: functional.cross_entropy(
                functional.linear(*inputs), targets_M, label_smoothing=0.1, reduction="sum"
            ),
            list(inputs),
            rounds,
        )


if __name__ == "__main__":
    main()
