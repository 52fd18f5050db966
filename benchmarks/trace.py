"""How large a trace is and how long it takes: 50 x 50 pieces, with and without effects.

    python benchmarks/trace.py fr-en.regard [more.regard ...] [--rounds 5]

Each model reads a text of 50 pieces: once with a translation of 50 pieces given, whose trace is measured, and once
translating it with a beam of 5. Then comes a Transformer of 6 + 6 layers, 8 heads and width 512, with random weights
and the first model's vocabulary. Times are medians, from the text to the checked `Trace`.
"""

import argparse
import gzip
import statistics
import time
from pathlib import Path

import numpy as np

from regard.model.presets import preset
from regard.modelfile import ModelFile, load_model
from regard.runtime.shapes import weight_shapes
from regard.text.tokenizer import Tokenizer
from regard.trace.make import Tracer

SOURCE = (
    "Jane s'est rendue en Afrique en septembre dernier, a apprécié la culture et a rencontré beaucoup de gens "
    "merveilleux; elle est revenue en parlant comment son voyage était merveilleux, et elle me tente d'y aller aussi"
)
TARGET = (
    "Jane went to Africa last September, and enjoyed the culture and met many wonderful people; she came back raving "
    "about how wonderful her trip was, and is tempting me to go too."
)
NUM_PIECES = 50


def text_of(tokenizer: Tokenizer, words: list[str]) -> str:
    """Return words that are together so many pieces, `</s>` among them, or as few less as possible."""
    fitting = [n for n in range(1, len(words)) if len(tokenizer.encode(" ".join(words[:n])).ids) < NUM_PIECES]
    return " ".join(words[: max(fitting)])


def large(first: ModelFile) -> ModelFile:
    """Return the base Transformer of Vaswani et al. 2017 with weights that nobody has trained."""
    options, rng = preset("vaswani2017"), np.random.default_rng(1)
    tokenizers = first.tokenizers
    shapes = weight_shapes(options, tokenizers.source.vocab_size, tokenizers.target.vocab_size)
    weights = {
        name: np.full(shape, name.endswith("weight"), np.float32)
        if "norm" in name
        else rng.normal(0, 1.5 / np.sqrt(shape[-1]), shape).astype(
            np.float32
        )  # looks neither evenly nor at one
        for name, shape in shapes.items()
    }
    return ModelFile(options, weights, tokenizers, "fr", "en", {}, {})


def _spread(name: str) -> float:
    """Return how far weights are from 0: so that heads look neither evenly nor at one place, which packs well."""
    return 1.35 if ".W_Q" in name else 0.45


def measure(tracer: Tracer, rounds: int) -> None:
    source = text_of(tracer.model.tokenizers.source, (SOURCE + " " + SOURCE).split())
    target = text_of(tracer.model.tokenizers.target, (TARGET + " " + TARGET).split())
    seconds: dict[str, list[float]] = {
        "given": [],
        "given, with effects": [],
        "translated": [],
        "translated, with effects": [],
    }
    for _ in range(rounds):
        for name, times in seconds.items():
            start = time.perf_counter()
            trace = tracer.trace(
                source, force=target if name.startswith("given") else None, effects=name.endswith("effects")
            )
            times.append(time.perf_counter() - start)
            if name == "given, with effects":
                given = trace
    document = given.to_json().encode()
    print(
        f"{tracer.about.label}: {len(given.source.pieces)} x {len(given.target.pieces)} pieces, {len(document):,} bytes "
        f"({len(gzip.compress(document)):,} as gzip), page {len(given.to_html()):,} bytes"
    )
    for name, times in seconds.items():
        print(f"    {name}: {statistics.median(times):.2f} s ({min(times):.2f}-{max(times):.2f})")
    print(f"    translated into {len(trace.target.pieces)} pieces")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for path in options.models:
        measure(Tracer.open(path), options.rounds)
    measure(
        Tracer.of(large(load_model(options.models[0])), "6 + 6 layers, 8 heads, width 512"), options.rounds
    )


if __name__ == "__main__":
    main()
