"""Measure how long a translation memory takes to load and to look up, and how much memory it needs.

The pairs are shuffled; some are held out and looked up.

    python benchmarks/memory.py pairs.tsv more.tsv.gz
"""

import argparse
import random
import resource
import time
from pathlib import Path

from regard.corpus.read import open_corpus
from regard.memory import TranslationMemory


def main() -> None:
    """Load, look up and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+", help="files with both languages")
    parser.add_argument("--pairs", type=int, default=100_000, metavar="N")
    parser.add_argument("--held-out", type=int, default=2000, metavar="N")
    options = parser.parse_args()
    pairs = [(one.source, one.target) for path in options.files for one in open_corpus([path]).pairs()]
    random.Random(1).shuffle(pairs)
    held_out = pairs[: options.held_out]
    kept = pairs[options.held_out : options.held_out + options.pairs]
    before, started = _peak(), time.process_time()
    memory = TranslationMemory.of(kept)
    print(f"{len(memory):,} units: {time.process_time() - started:.2f} s, {_peak() - before:,} MB more")
    times, scores = [], []
    for source, _ in held_out:
        started = time.process_time()
        match = memory.nearest(source)
        times.append(1000 * (time.process_time() - started))
        scores.append(0.0 if match is None else match.score)
    times.sort()
    mean, late = sum(times) / len(times), times[int(0.99 * len(times))]
    print(f"a lookup takes {mean:.2f} ms, 99 of 100 at most {late:.2f} ms, the longest {times[-1]:.2f} ms")
    print(f"of {len(scores):,}: {scores.count(1.0):,} exact, {sum(0 < one < 1 for one in scores):,} similar")


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


if __name__ == "__main__":
    main()
