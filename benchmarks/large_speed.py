"""How fast a model of OPUS-MT's size is in both engines, beside CTranslate2 itself: one run, in turn.

    python benchmarks/large_speed.py text.fr [--lines 64] [--rounds 3] [--layers 6] [--pieces 58000]

The model has OPUS-MT's shape (6 + 6 layers, width 512) and random weights, changed so that it repeats a piece and ends after
some twenty: what it says is nonsense, but as long as a sentence. Each contender is a process that waits while another works, with one thread for
each processor. `ctranslate2` is `translate_batch` on ids, at most 64 sentences in a batch, tokens alone. Ours are
`regard.load(MODEL)` with each engine and without the guard, text to text, with scores and alignment. A text
of fixed words replaces each line, as long as it, since the random model has a vocabulary of its own. Needs Linux and
ctranslate2.
"""

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from import_large import make

from regard.contract import Ragged, make_batch
from regard.importing.run import import_model
from regard.modelfile import ModelFile, load_model, save_model
from regard.runtime.build import build_engine
from regard.vocabulary import EOS

BEAMS = (1, 5)
ENGINES = ("ctranslate2", "regard, ctranslate2", "regard, numpy")
_SURE, _FAINT = 3, 0.02  # how far embeddings stand out, and layers do not
_END, _LENGTH = 10, 20  # how steeply the end becomes likely, and after how many pieces


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path)
    parser.add_argument("--lines", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--pieces", type=int, default=58_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = make(folder / "opus", options.layers, options.pieces)
        path = folder / "large.regard"
        import_model(folder / "opus", path)
        model = load_model(path)
        save_model(path, dataclasses.replace(model, weights=ending(model)))
        random = np.random.default_rng(2)
        lengths = [
            len(line.split()) for line in options.text.read_text("utf-8").splitlines()[: options.lines]
        ]
        texts = [" ".join(random.choice(words, length)) for length in lengths]
        compare(path, texts, options.rounds)


def ending(model: ModelFile) -> dict[str, Any]:
    """Return weights with which the last piece is the likeliest next one, until the position says it is enough."""
    table, weights = "source.weight", dict(model.weights)
    for name, weight in weights.items():
        if weight.ndim == 2:
            weights[name] = weight * np.float32(_SURE if name == table else _FAINT)
    size = weights[table].shape[1]
    waves = np.arange(0, size, 2)
    rising = waves[10_000 ** (waves / size) > _LENGTH]  # the sines that rise for so long
    weights[table][EOS] = 0
    weights[table][EOS, rising] = _END / np.sqrt(len(rising))
    source, target = Ragged.of([np.arange(300, 310)]), Ragged.of([np.full(_LENGTH, 300)])
    forced = build_engine(model.options, weights).force(make_batch(source, target, np.arange(1)))
    logits_V = forced.logits_BTV[0, _LENGTH]
    weights["b_o"][EOS] += logits_V.max() - logits_V[EOS] + 0.5  # at no step a matter of rounding
    weights["b_o"][300] += 10  # what is said first
    return weights


def compare(path: Path, texts: list[str], rounds: int) -> None:
    """Let all translate the texts, in turn, and print a table."""
    print(
        f"{len(texts)} lines, {path.stat().st_size / 2**20:.0f} MB, {len(os.sched_getaffinity(0))} processors"
    )
    contenders = {engine: Contender(engine, path) for engine in ENGINES}
    seconds: dict[tuple[str, int], list[float]] = {}
    ids: dict[tuple[str, int], int] = {}
    for _ in range(rounds + 1):  # the first warms up
        for beam in BEAMS:
            for engine, contender in contenders.items():
                told = contender.ask({"texts": texts, "beam": beam})
                seconds.setdefault((engine, beam), []).append(told["seconds"])
                ids[engine, beam] = told["ids"]
    print("| | loading | memory | beam | sentences/s | pieces said | of CTranslate2's speed |")
    print("|---|---|---|---|---|---|---|")
    for engine, contender in contenders.items():
        for beam in BEAMS:
            mine, theirs = seconds[engine, beam][1:], seconds["ctranslate2", beam][1:]
            ratios = [a / b for a, b in zip(theirs, mine, strict=True)]
            print(
                f"| {engine} | {contender.loading:.1f} s | {contender.ask({})['memory'] / 1024:,.0f} MB | {beam} | "
                f"{len(texts) / statistics.median(mine):.1f} | {ids[engine, beam]:,} | "
                f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f}) |"
            )


class Contender:
    """The process of one engine."""

    def __init__(self, engine: str, path: Path) -> None:
        command = [sys.executable, __file__, "--serve", engine, str(path)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.loading: float = self._told()["loading"]

    def ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of the process."""
        assert self._process.stdin is not None
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        return self._told()

    def _told(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        told: dict[str, Any] = json.loads(self._process.stdout.readline())
        return told


def serve(engine: str, path: Path) -> None:
    """Do what the lines of standard input ask for; this is the process of one contender."""
    start = time.perf_counter()
    work = theirs(path) if engine == "ctranslate2" else ours(path, engine.rpartition(" ")[2])
    print(json.dumps({"loading": time.perf_counter() - start}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if asked:
            start = time.perf_counter()
            num_ids = work(asked["texts"], asked["beam"])
            print(json.dumps({"seconds": time.perf_counter() - start, "ids": num_ids}), flush=True)
        else:
            status = Path("/proc/self/status").read_text()
            memory = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
            print(json.dumps({"memory": int(memory)}), flush=True)


def ours(path: Path, engine: str) -> Callable[[list[str], int], int]:
    import regard

    translator = regard.load(path, engine=engine)

    def work(texts: list[str], beam: int) -> int:
        said = translator.translate(texts, beam_size=beam, guard=False)
        return sum(len(one.pieces) for one in said)

    return work


def theirs(path: Path) -> Callable[[list[str], int], int]:
    import ctranslate2

    from regard.alignment.reading import USUAL_READING
    from regard.fast.convert import convert

    model = load_model(path)
    converted = convert(model.options, model.weights, USUAL_READING)
    translator = ctranslate2.Translator(
        "model", files=converted.files, inter_threads=len(os.sched_getaffinity(0)), intra_threads=1
    )

    def work(texts: list[str], beam: int) -> int:
        sources = [[*map(str, ids.tolist()), str(EOS)] for ids in model.tokenizers.source.encode_batch(texts)]
        said = translator.translate_batch(
            sources, beam_size=beam, max_batch_size=64, max_decoding_length=200, length_penalty=0
        )
        return sum(len(one.hypotheses[0]) for one in said)

    return work


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], Path(sys.argv[3]))
    else:
        main()
