"""Batches side by side: in forked processes, in threads, or one after the other; sentences a second, in one run.

    python benchmarks/translate_workers.py en-de.regard test.en [--rounds 5] [--sentences 500]

The bare search (no guard), greedy and with a beam of 5; one thread of the matrix library for each worker.
"""

import argparse
import statistics
import time
from functools import partial
from pathlib import Path

from regard.loaded import Loaded
from regard.translate.translator import Translator, make_pool


def speed(model: Loaded, texts: list[str], beam_size: int, way: str) -> float:
    """Return sentences a second."""
    num_workers = 1 if way == "one worker" else None
    translator = Translator(model, partial(make_pool, num_workers=num_workers, fork=way == "processes"))
    start = time.perf_counter()
    translator.translate(texts, beam_size=beam_size, guard=False)
    return len(texts) / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=500)
    arguments = parser.parse_args()
    model = Loaded.open(arguments.model)
    texts = arguments.file.read_text("utf-8").splitlines()[: arguments.sentences]
    for beam_size in (1, 5):
        speeds: dict[str, list[float]] = {"one worker": [], "threads": [], "processes": []}
        for _ in range(arguments.rounds):
            for way, found in speeds.items():
                found.append(speed(model, texts, beam_size, way))
        for way, found in speeds.items():
            ratios = [mine / one for mine, one in zip(found, speeds["one worker"], strict=True)]
            print(
                f"beam {beam_size}: {way:10} {statistics.median(found):6.0f} sentences/s, "
                f"{statistics.median(ratios):.2f} times one worker ({min(ratios):.2f}-{max(ratios):.2f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
