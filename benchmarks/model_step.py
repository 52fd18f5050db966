"""How fast a model learns: target tokens a second of forward, backward and update.

    python benchmarks/model_step.py [--rounds 5] [--profile] [name ...]

The models and the batch are those of the peers' table: vocabulary 8,000, dropout 0.1 everywhere, batches of
4,096 tokens, sentences of about 15. Rounds are interleaved, and tokens are given for each GFLOP of a plain matrix
product as well, measured in the same round: on shared machines only that ratio means much.
"""

import argparse
import statistics
import time

import numpy as np
import torch

from regard.contract import Batch, Ragged, make_batch
from regard.model.build import build_model, count_parameters
from regard.model.engine import batch_loss
from regard.model.noise import Noise
from regard.options.parse import parse

VOCAB = 8000
DROPOUTS = {"dropout": 0.1, "attention_dropout": 0.1, "feed_forward_dropout": 0.1}
GRU = {"kind": "recurrent", "hidden_size": 256, "embedding_size": 256, "dropout": 0.1, "tie": "none"}
MODELS = {
    "transformer-tiny": {
        "hidden_size": 128,
        "feed_forward_size": 256,
        "num_encoder_layers": 4,
        "num_decoder_layers": 4,
        **DROPOUTS,
    },
    "transformer-small": {
        "hidden_size": 256,
        "feed_forward_size": 1024,
        "num_encoder_layers": 3,
        "num_decoder_layers": 3,
        **DROPOUTS,
    },
    "tiny-no-dropout": {
        "hidden_size": 128,
        "feed_forward_size": 256,
        "num_encoder_layers": 4,
        "num_decoder_layers": 4,
        **dict.fromkeys(DROPOUTS, 0.0),
    },
    "gru-bahdanau": GRU,
    "lstm-luong": {
        **GRU,
        "cell": "lstm",
        "readout": "linear",
        "attention": {"kind": "step-then-attend", "scorer": "general"},
    },
}


def batches(count: int) -> list[Batch]:
    """Return batches of 4,096 target tokens whose sentences have about the same length."""
    rng = np.random.default_rng(1)
    made = []
    for _ in range(count):
        length = int(rng.integers(10, 20))
        rows = 4096 // (length + 1)
        source = [rng.integers(260, VOCAB, rng.integers(length - 1, length + 2)) for _ in range(rows)]
        target = [rng.integers(260, VOCAB, length) for _ in range(rows)]
        made.append(make_batch(Ragged.of(source), Ragged.of(target), np.arange(rows)))
    return made


def matmul_speed() -> float:
    """Return the FLOPS of a plain matrix product."""
    a, b = torch.randn(4096, 512), torch.randn(512, 2048)
    start = time.perf_counter()
    for _ in range(20):
        a @ b
    return 20 * 2 * 4096 * 512 * 2048 / (time.perf_counter() - start)


def matmul_share(model: torch.nn.Module, data: list[Batch]) -> float:
    """Return the share of matrix products in the time of forward and backward, by torch's profiler."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for step, batch in enumerate(data):
            batch_loss(model, batch, Noise(1, step), 0.1).smoothed.backward()
    times = {event.key: event.self_cpu_time_total for event in profiler.key_averages()}
    products = ("aten::mm", "aten::addmm", "aten::addmm_", "aten::bmm")
    return sum(times.get(name, 0) for name in products) / sum(times.values())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=list(MODELS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--profile", action="store_true", help="print the share of matrix products as well")
    arguments = parser.parse_args()
    data = batches(arguments.batches)
    runs = {}
    for name in arguments.names:
        model = build_model(parse("model", MODELS[name]), VOCAB, VOCAB)
        optimiser = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
        runs[name] = (model, optimiser)
    speeds: dict[str, list[float]] = {name: [] for name in runs}
    ratios: dict[str, list[float]] = {name: [] for name in runs}
    for round_number in range(arguments.rounds + 1):
        for name, (model, optimiser) in runs.items():
            flops = matmul_speed()
            start, tokens = time.perf_counter(), 0
            for step, batch in enumerate(data):
                optimiser.zero_grad(set_to_none=True)
                batch_loss(model, batch, Noise(1, step), 0.1).smoothed.backward()
                optimiser.step()
                tokens += batch.num_target_tokens
            if round_number:
                speeds[name].append(tokens / (time.perf_counter() - start))
                ratios[name].append(speeds[name][-1] / flops * 1e9)
    for name, (model, _) in runs.items():
        print(
            f"{name:18} {count_parameters(model) / 1e6:5.2f} M parameters  "
            f"{statistics.median(speeds[name]):7,.0f} tokens/s  (from {min(speeds[name]):,.0f} to "
            f"{max(speeds[name]):,.0f}; {statistics.median(ratios[name]):.1f} tokens per GFLOP of matmul)"
        )
        if arguments.profile:
            print(f"{'':18} matrix products {100 * matmul_share(model, data):.0f} % of forward and backward")


if __name__ == "__main__":
    main()
