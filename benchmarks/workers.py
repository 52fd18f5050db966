"""Workers with sentences of their own against threads within each matrix product: whole updates, one run.

    python benchmarks/workers.py [--rounds 5] [--threads 2]

Batches of 256 pairs of 14 and 15 tokens, vocabulary 8,000; forward, backward, clipping and Adam.
"""

import argparse
import statistics
import time

import numpy as np
import torch

from regard.contract import Batch, Ragged, make_batch
from regard.model.build import build_model
from regard.model.presets import preset
from regard.options.parse import parse
from regard.options.training import TrainOptions
from regard.training.optimise import make_optimiser
from regard.training.workers import Workers

LUONG = {
    "kind": "recurrent",
    "cell": "lstm",
    "reading": "forward",
    "attention": {"kind": "step-then-attend", "scorer": "general"},
    "readout": "linear",
}
MODELS = {
    "regard-small": preset("regard-small"),
    "regard-base": preset("regard-base"),
    "regard-rnn": preset("regard-rnn"),
    "LSTM 256, Luong": parse("model", LUONG),
}
VOCAB = 8000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    batch = random_batch()
    for name, options in MODELS.items():
        model = build_model(options, VOCAB, VOCAB)
        train = TrainOptions()
        optimiser = make_optimiser(model, train.optimiser)
        speeds: dict[int, list[float]] = {1: [], arguments.threads: []}
        pools = {number: Workers(model, train, 1, number) for number in speeds}
        for round in range(arguments.rounds + 1):
            for number, workers in pools.items():
                torch.set_num_threads(arguments.threads // number)
                speed = tokens_per_second(workers, optimiser, batch)
                if round:  # the first warms up
                    speeds[number].append(speed)
        ratios = [many / one for one, many in zip(*speeds.values(), strict=True)]
        print(
            f"{name:18} one worker {statistics.median(speeds[1]):7,.0f} tokens/s  {arguments.threads} workers "
            f"{statistics.median(speeds[arguments.threads]):7,.0f}  ratio {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f}-{max(ratios):.2f})",
            flush=True,
        )


def random_batch() -> Batch:
    rng = np.random.default_rng(0)
    sides = [Ragged.of([rng.integers(300, VOCAB, length) for _ in range(256)]) for length in (14, 15)]
    return make_batch(*sides, np.arange(256))


def tokens_per_second(workers: Workers, optimiser: torch.optim.Optimizer, batch: Batch) -> float:
    """Return the speed of three whole updates, in target tokens."""
    start = time.perf_counter()
    for step in range(3):
        workers.set_gradients([batch], batch.num_target_tokens, step)
        torch.nn.utils.clip_grad_norm_(optimiser.param_groups[0]["params"], 1.0)
        optimiser.step()
    return 3 * batch.num_target_tokens / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
