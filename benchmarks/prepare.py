"""Preparing a corpus: speed against a plain loop, memory against size, the cost of a batch in a training step.

    python benchmarks/prepare.py speed  train.fr.gz train.en.gz [--rounds 3]
    python benchmarks/prepare.py memory train.fr.gz train.en.gz [--pairs 300000]
    python benchmarks/prepare.py large  train.fr.gz train.en.gz [--pairs 10000000]
    python benchmarks/prepare.py padding train.fr.gz train.en.gz
    python benchmarks/prepare.py batch  train.fr.gz train.en.gz        (needs the extra [train])

The files are a parallel corpus, read as often as needed to give the number of pairs.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from statistics import median

import numpy as np

from regard.corpus.batches import Batches, Share
from regard.corpus.read import Corpus, Pair, open_corpus, sample_pairs
from regard.corpus.store import Store, build_store
from regard.options.text import BatchOptions, SubwordOptions
from regard.text.tokenizer import Tokenizer, TokenizerPair  # noqa: F401 - the child below uses both


def repeated(corpus: Corpus, num_pairs: int) -> Iterator[Pair]:
    def forever() -> Iterator[Pair]:
        while True:
            yield from corpus.pairs()

    return islice(forever(), num_pairs)


def learn(corpus: Corpus) -> TokenizerPair:
    pairs = sample_pairs(islice(corpus.pairs(), 300_000), 20_000)
    options = SubwordOptions(vocab_size=8000)
    return TokenizerPair.learn([p.source for p in pairs], [p.target for p in pairs], options)


def plain_loop(corpus: Corpus, tokenizers: TokenizerPair, folder: Path, num_pairs: int) -> None:
    """Tokenise line by line with sentencepiece in one process, and write the ids: what a script would do."""
    import sentencepiece

    model = tokenizers.source.to_bytes().partition(b"\n")[2]
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    with (folder / "source.ids").open("wb") as source_file, (folder / "target.ids").open("wb") as target_file:
        for pair in repeated(corpus, num_pairs):
            for file, text in ((source_file, pair.source), (target_file, pair.target)):
                ids = processor.encode(" " + text)
                file.write(np.array(ids, np.uint16).tobytes())


def speed(corpus: Corpus, options: argparse.Namespace) -> None:
    tokenizers = learn(corpus)
    seconds: dict[str, list[float]] = {"plain loop": [], "regard": []}
    for _ in range(options.rounds):
        for name in seconds:
            with tempfile.TemporaryDirectory() as folder:
                started = time.perf_counter()
                if name == "regard":
                    build_store(repeated(corpus, options.pairs), tokenizers, Path(folder) / "store")
                else:
                    plain_loop(corpus, tokenizers, Path(folder), options.pairs)
                seconds[name].append(time.perf_counter() - started)
    for name, taken in seconds.items():
        print(
            f"{name:10} {options.pairs / median(taken):8,.0f} pairs/s   ({', '.join(f'{s:.1f} s' for s in taken)})"
        )
    ratios = [loop / ours for loop, ours in zip(seconds["plain loop"], seconds["regard"], strict=True)]
    print(f"ratio      {median(ratios):.2f}   ({', '.join(f'{ratio:.2f}' for ratio in ratios)})")


_CHILD = """
import json, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from prepare import *
tokenizer = Tokenizer.from_bytes(Path(sys.argv[2]).read_bytes())
corpus, num_pairs, folder = open_corpus(sys.argv[5:]), int(sys.argv[3]), Path(sys.argv[4])
started = time.perf_counter()
store = build_store(repeated(corpus, num_pairs), TokenizerPair(tokenizer, tokenizer), folder)
built = time.perf_counter()
def peak():  # not ru_maxrss: a process inherits that of the one that started it
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024
building = peak()
batches = Batches([Share(store)], BatchOptions(), seed=1)
num_batches = num_iterated = 0
for position, batch in batches.iterate():
    if position.epoch:
        break
    num_batches += 1
    num_iterated += len(batch.pairs_B)
print(json.dumps({
    "pairs": len(store), "build_seconds": built - started, "iterate_seconds": time.perf_counter() - built,
    "batches": num_batches, "iterated_pairs": num_iterated, "too_long": batches.num_too_long(),
    "store_mib": sum(path.stat().st_size for path in folder.iterdir()) / 2**20,
    "peak_mib": peak(), "peak_building_mib": building,
}))
"""


def measured(corpus: Corpus, tokenizers: TokenizerPair, num_pairs: int) -> dict[str, float]:
    """Prepare and iterate in a fresh process and return its figures."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = Path(folder) / "tokenizer"
        tokenizer.write_bytes(tokenizers.source.to_bytes())
        arguments = [Path(__file__).parent, tokenizer, num_pairs, Path(folder) / "store", *corpus.paths]
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, *map(str, arguments)], stdout=subprocess.PIPE, check=True
        )
    figures: dict[str, float] = json.loads(done.stdout)
    print(json.dumps({name: round(value, 1) for name, value in figures.items()}), flush=True)
    return figures


def memory(corpus: Corpus, options: argparse.Namespace) -> None:
    tokenizers = learn(corpus)
    small, large = (
        measured(corpus, tokenizers, num)["peak_mib"] for num in (options.pairs // 10, options.pairs)
    )
    print(f"{small:.0f} MiB, with ten times the corpus {large:.0f} MiB: {large / small:.3f}x")


def large(corpus: Corpus, options: argparse.Namespace) -> None:
    figures = measured(corpus, learn(corpus), options.pairs)
    print(f"{figures['pairs']:,} pairs prepared and iterated in at most {figures['peak_mib']:.0f} MiB")


def batch(corpus: Corpus, options: argparse.Namespace) -> None:
    """Compare the time to make a batch with that of a training step of a tiny Transformer on it."""
    import torch
    from torch import nn

    with tempfile.TemporaryDirectory() as folder:
        store: Store = build_store(repeated(corpus, options.pairs), learn(corpus), Path(folder) / "store")
        batches = Batches([Share(store)], BatchOptions(), seed=1)
        torch.manual_seed(1)
        embed = nn.Embedding(8000, 128)
        body = nn.Transformer(128, 4, 4, 4, 256, dropout=0.1, batch_first=True)
        optimizer = torch.optim.Adam([*embed.parameters(), *body.parameters()])
        loss_of = nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.1)
        making, stepping, rows = [], [], iter(batches.iterate())
        for _ in range(60):
            started = time.perf_counter()
            _, made = next(rows)
            making.append(time.perf_counter() - started)
            started = time.perf_counter()
            source, read, said = map(
                torch.from_numpy, (made.source_BS, made.target_in_BT, made.target_out_BT)
            )
            hidden = body(embed(source), embed(read), tgt_mask=nn.Transformer.generate_square_subsequent_mask(read.shape[1]),
                          src_key_padding_mask=source == 0, memory_key_padding_mask=source == 0, tgt_is_causal=True)  # fmt: skip
            loss_of((hidden @ embed.weight.T).flatten(0, 1), said.flatten()).backward()
            optimizer.step()
            optimizer.zero_grad()
            stepping.append(time.perf_counter() - started)
    print(
        f"making a batch  {1000 * sum(making) / len(making):.2f} ms (the first, with its window: {1000 * making[0]:.0f} ms)"
    )
    print(
        f"training step   {1000 * sum(stepping) / len(stepping):.0f} ms (Transformer 4+4, width 128, 4,096 tokens)"
    )
    print(f"overhead        {100 * sum(making) / sum(stepping):.2f} % of a step, the window counted")


def padding(corpus: Corpus, options: argparse.Namespace) -> None:
    """Print the share of padding in the batches of one epoch, both sides counted."""
    with tempfile.TemporaryDirectory() as folder:
        pairs = islice(corpus.pairs(), options.pairs)
        batches = Batches(
            [Share(build_store(pairs, learn(corpus), Path(folder) / "store"))], BatchOptions(), seed=1
        )
        real = padded = 0
        for position, made in batches.iterate():
            if position.epoch:
                break
            real += int(made.source_real_BS.sum()) + made.num_target_tokens
            padded += made.source_BS.size + made.target_out_BT.size
    print(
        f"{batches.epoch_pairs:,} pairs: {100 * (1 - real / padded):.2f} % padding in batches of 4,096 tokens"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tasks = {"speed": speed, "memory": memory, "large": large, "batch": batch, "padding": padding}
    parser.add_argument("task", choices=tasks)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.pairs = (
        options.pairs
        or {"speed": 300_000, "memory": 300_000, "large": 10_000_000, "batch": 100_000, "padding": 300_000}[
            options.task
        ]
    )
    tasks[options.task](open_corpus(options.files), options)


if __name__ == "__main__":
    main()
