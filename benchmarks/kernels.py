"""torch's own choice of kernels against ours and against bfloat16, in one run: whole updates, one worker, one thread.

   python benchmarks/kernels.py [--rounds 5]

On AMD's processors with AVX-512 torch multiplies by MKL, which leaves AVX-512 unused there, and `regard train` by
oneDNN. Elsewhere both are the same. `bfloat16` is `--set train.precision=bfloat16`, where the processor has it.
Batches and models are those of `benchmarks/workers.py`.
"""

import argparse
import contextlib
import statistics

import torch
from workers import MODELS, VOCAB, random_batch, tokens_per_second

from regard.doctor import probe_precisions
from regard.model.build import build_model
from regard.options.training import TrainOptions
from regard.training.device import choose_kernels
from regard.training.optimise import make_optimiser
from regard.training.workers import Workers


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    own = torch.backends.mkldnn.matmul.fp32_precision
    choose_kernels()
    ours = torch.backends.mkldnn.matmul.fp32_precision
    contenders = {
        "torch": (own, contextlib.nullcontext),
        "regard": (ours, contextlib.nullcontext),
        "bfloat16": (ours, lambda: torch.autocast("cpu", torch.bfloat16)),
    }
    if probe_precisions()["bfloat16"] != "works":
        del contenders["bfloat16"]
    batch = random_batch()
    for name, options in MODELS.items():
        model, train = build_model(options, VOCAB, VOCAB), TrainOptions()
        optimiser = make_optimiser(model, train.optimiser)
        speeds: dict[str, list[float]] = {who: [] for who in contenders}
        for round in range(arguments.rounds + 1):
            for who, (setting, autocast) in contenders.items():
                torch.backends.mkldnn.matmul.fp32_precision = setting
                speed = tokens_per_second(Workers(model, train, 1, 1, autocast=autocast), optimiser, batch)
                if round:  # the first warms up
                    speeds[who].append(speed)
        print(f"{name:18} torch {statistics.median(speeds['torch']):7,.0f} tokens/s", end="")
        for who in list(contenders)[1:]:
            ratios = [ours / own for ours, own in zip(speeds[who], speeds["torch"], strict=True)]
            print(f"  {who} {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})", end="")
        print(flush=True)


if __name__ == "__main__":
    main()
