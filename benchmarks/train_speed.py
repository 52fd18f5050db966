"""How fast we learn beside others: target tokens a second of whole training steps, in one interleaved run.

    python benchmarks/train_speed.py train.en train.de --peer marian=peers/marian/bin/python ... [--rounds 5]

A step is forward, backward, clipping and update, on the same batches of 4,096 tokens in the same order, vocabulary
8,000, dropout 0.1 everywhere (attention too), label smoothing 0.1, fused AdamW, float32, two threads. Peers are driven
through their own models in the same plain loop, so that nobody's data pipeline is charged. Each contender is a process
that sits still while another trains; in each round all train on all batches, and the matrix product of that minute is
measured as well.

| contest | the same model for all |
|---|---|
| `tiny` | Transformer 4 + 4, width 128, inner 256, 4 heads, one matrix for both embeddings and the output |
| `small` | Transformer 3 + 3, width 256, inner 1024, 4 heads, tied likewise |
| `gru` | GRU 256 both ways, GRU 256, additive score, attend after the step, input feeding: JoeyNMT's `bahdanau` |
| `lstm` | Luong et al. 2015: LSTM 256 forward, LSTM 256, general score, input feeding |

`regard-paper` in `gru` is Bahdanau's own order, attend then step, with maxout; JoeyNMT has no such model.
Our Transformer, OpenNMT-py's and eole's norm before each sub-layer, Marian's after it and with biases in attention.
The peers, each in an environment of its own (`pip install torch` first, then the rest must not change it):

    python -m venv peers/marian && peers/marian/bin/pip install torch==2.13.0 transformers
    python -m venv peers/eole && peers/eole/bin/pip install torch==2.13.0 configargparse ctranslate2 fastapi pandas \
        huggingface_hub protobuf pyahocorasick pydantic pyonmttok pyyaml rapidfuzz rich sacrebleu safetensors six \
        sentencepiece subword-nmt tensorboard tokenizers torch-optimi uvicorn waitress
    peers/eole/bin/pip install --no-deps eole==0.6.4
    python -m venv peers/opennmt && peers/opennmt/bin/pip install torch==2.13.0 configargparse ctranslate2 fasttext-wheel \
        flask pyahocorasick pyonmttok pyyaml rapidfuzz sacrebleu six spacy tensorboard waitress
    peers/opennmt/bin/pip install --no-deps OpenNMT-py==3.5.1
    python -m venv peers/joeynmt && peers/joeynmt/bin/pip install torch==2.13.0 importlib_metadata joeynmt==2.3.0
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.corpus.batches import Batches, Share
from regard.corpus.read import open_corpus, sample_pairs
from regard.corpus.store import build_store
from regard.options.text import BatchOptions, SubwordOptions
from regard.text.tokenizer import TokenizerPair

TINY = {"kind": "transformer", "size": 128, "inner_size": 256, "layers": 4, "heads": 4, "attention": "sdpa"}
SMALL = {"kind": "transformer", "size": 256, "inner_size": 1024, "layers": 3, "heads": 4, "attention": "sdpa"}
GRU = {"kind": "recurrent", "size": 256, "layers": 1}
LSTM = GRU
OWN_TINY = {
    "hidden_size": 128,
    "feed_forward_size": 256,
    "num_encoder_layers": 4,
    "num_decoder_layers": 4,
    "dropout": 0.1,
}
OWN_SMALL = {"dropout": 0.1}
OWN_GRU = {
    "kind": "recurrent",
    "dropout": 0.1,
    "tie": "none",
    "readout": "linear",
    "attention": {"kind": "step-then-attend", "scorer": "additive"},
}
OWN_LSTM = OWN_GRU | {
    "cell": "lstm",
    "reading": "forward",
    "attention": {"kind": "step-then-attend", "scorer": "general"},
}
OWN_PAPER = {"kind": "recurrent", "dropout": 0.1, "tie": "none"}
# For each contest the contenders, first ours: whose model, and its sizes.
CONTESTS: dict[str, dict[str, dict[str, Any]]] = {
    "tiny": {"regard": OWN_TINY, "marian": TINY, "opennmt": TINY, "eole": TINY, "joeynmt": TINY},
    "small": {"regard": OWN_SMALL, "marian": SMALL, "opennmt": SMALL, "eole": SMALL, "joeynmt": SMALL},
    "gru": {"regard": OWN_GRU, "regard-paper": OWN_PAPER, "joeynmt": GRU},
    "lstm": {"regard": OWN_LSTM, "opennmt": LSTM},
}


class Worker:
    """A contender in its own process, quiet until it is asked."""

    def __init__(self, python: str, order: dict[str, Any]) -> None:
        environment = os.environ | {"OMP_NUM_THREADS": str(order["threads"])}
        self.process = subprocess.Popen(
            [python, str(Path(__file__).with_name("train_speed_peers.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.about = self.ask(json.dumps(order))

    def ask(self, line: str) -> dict[str, Any]:
        """Send a line and return the answer to it."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(line, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.process.args[0]} stopped; its own message stands above")
        return json.loads(answer)

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def write_batches(files: list[Path], num_batches: int, folder: Path) -> tuple[Path, int]:
    """Write batches of the corpus for all contenders; return where, and the size of the vocabulary."""
    corpus = open_corpus(files)
    pairs = sample_pairs(corpus.pairs(), 30_000)
    tokenizers = TokenizerPair.learn(
        [pair.source for pair in pairs], [pair.target for pair in pairs], SubwordOptions(vocab_size=8000)
    )
    store = build_store(corpus.pairs(), tokenizers, folder / "store")
    made = Batches([Share(store)], BatchOptions(batch_tokens=4096), seed=1)
    arrays = {}
    for number, (_, batch) in enumerate(islice(made.iterate(), num_batches)):
        arrays[f"source_{number}"] = batch.source_BS
        arrays[f"target_in_{number}"] = batch.target_in_BT
        arrays[f"target_out_{number}"] = batch.target_out_BT
    path = folder / "batches.npz"
    np.savez(path, **arrays)
    return path, tokenizers.source.vocab_size


def matmul_flops() -> float:
    """Return the FLOPS of a plain matrix product."""
    a, b, c = torch.randn(4096, 512), torch.randn(512, 2048), torch.empty(4096, 2048)
    torch.mm(a, b, out=c)  # into the same place: fresh memory would cost a sixth
    start = time.perf_counter()
    for _ in range(40):
        torch.mm(a, b, out=c)
    return 40 * 2 * 4096 * 512 * 2048 / (time.perf_counter() - start)


def contest(name: str, pythons: dict[str, str], order: dict[str, Any], num_rounds: int) -> None:
    """Run the rounds of one contest and print them."""
    workers = {}
    for contender, options in CONTESTS[name].items():
        package = contender.partition("-")[0]
        if package in pythons:
            own = order | {"contender": package, "options": options}
            workers[contender] = Worker(pythons[package], own)
            about = workers[contender].about
            print(
                f"{name}: {contender} {about['version']}, {about['parameters'] / 1e6:.2f} M parameters, "
                f"{about['flops'] / 1e9:,.0f} GFLOP of matrix products in a round, loss {about['loss']:.2f}",
                flush=True,
            )
    speeds: dict[str, list[float]] = {contender: [] for contender in workers}
    shares = []
    for number in range(num_rounds):
        flops = matmul_flops()
        for contender, worker in workers.items():
            answer = worker.ask("go")
            speeds[contender].append(answer["tokens"] / answer["seconds"])
            if contender == "regard":
                shares.append(worker.about["flops"] / answer["seconds"] / flops)
        said = "  ".join(f"{contender} {speed[-1]:,.0f}" for contender, speed in speeds.items())
        print(
            f"{name} round {number + 1}: {said} tokens/s; matrix product {flops / 1e9:.0f} GFLOPS", flush=True
        )
    for worker in workers.values():
        worker.close()
    medians = {contender: statistics.median(speed) for contender, speed in speeds.items()}
    peers = [contender for contender in workers if not contender.startswith("regard")]
    print(
        f"{name}: our matrix products alone are {100 * statistics.median(shares):.0f} % of the machine's speed"
    )
    for contender in workers:
        print(f"{name}: {contender} {medians[contender]:,.0f} tokens/s")
    if peers:
        fastest = max(peers, key=lambda peer: medians[peer])
        for own in (contender for contender in workers if contender not in peers):
            ratios = sorted(a / b for a, b in zip(speeds[own], speeds[fastest], strict=True))
            print(
                f"{name}: {own} / {fastest} = {statistics.median(ratios):.2f} "
                f"(rounds from {ratios[0]:.2f} to {ratios[-1]:.2f})"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs=2, type=Path, help="source and target of the corpus")
    parser.add_argument("--peer", action="append", default=[], help="NAME=PYTHON, the peer's own Python")
    parser.add_argument("--only", nargs="+", choices=CONTESTS, default=list(CONTESTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2, help="beside other busy processes 1 swings less")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    pythons = {"regard": sys.executable} | dict(peer.split("=", 1) for peer in arguments.peer)
    with tempfile.TemporaryDirectory() as folder:
        path, vocab_size = write_batches(arguments.files, arguments.batches, Path(folder))
        order = {"batches": str(path), "vocab_size": vocab_size, "threads": arguments.threads}
        for name in arguments.only:
            contest(name, pythons, order, arguments.rounds)


if __name__ == "__main__":
    main()
