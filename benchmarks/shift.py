"""How surely `regard inspect` finds a slip of one line, and how often it cries wolf.

    python benchmarks/shift.py a.fr a.en [--lines 10000] [--trials 20] [--length 50]

Takes the first lines of a corpus, checks that nothing is reported as it stands, then slips a block of the target
by one line, up or down, at random places, one at a time, and looks for it.
"""

import argparse
import random
import time
from itertools import islice

from regard.corpus.read import open_corpus
from regard.corpus.shift import BLOCK_PAIRS, Block, Shift, features, find_shifts, judge, learn_judges


def find(pairs: list[tuple[str, str]]) -> list[Shift]:
    """Return the shifts that `regard inspect` would report for these pairs."""
    sources, targets = [features(source) for source, _ in pairs], [features(target) for _, target in pairs]
    blocks = [
        Block(number, sources[start : start + BLOCK_PAIRS], targets[start : start + BLOCK_PAIRS])
        for number, start in enumerate(range(0, len(pairs), BLOCK_PAIRS))
    ]
    judges = learn_judges(blocks[:150])
    return find_shifts([judge(judges, 0, sources, targets)]) if judges else []


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+")
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--length", type=int, default=50)
    options = parser.parse_args()
    corpus = open_corpus(options.files)
    pairs = [(pair.source, pair.target) for pair in islice(corpus.pairs(), options.lines)]
    started = time.perf_counter()
    print(f"{' '.join(options.files)}: {len(pairs):,} lines; as they stand: {find(pairs) or 'no shift'}")
    rng = random.Random(1)
    found, wolves, errors = 0, 0, []
    for _ in range(options.trials):
        start, offset = rng.randrange(len(pairs) - options.length), rng.choice((-1, 1))
        end = start + options.length
        targets = [target for _, target in pairs]
        block = targets[start:end]
        targets[start:end] = block[-offset:] + block[:-offset]
        shifts = find([(source, target) for (source, _), target in zip(pairs, targets, strict=True)])
        right = [
            shift for shift in shifts if shift.offset == offset and shift.start < end and shift.end > start
        ]
        found += bool(right)
        wolves += len(shifts) - len(right)
        errors += [abs(right[0].start - start), abs(right[0].end - end)] if right else []
    print(
        f"slips of one line lasting {options.length}: {found} of {options.trials} found, {wolves} false alarms, "
        f"ends right within {sum(errors) / max(1, len(errors)):.1f} lines on average (at worst {max(errors, default=0)}); "
        f"{(time.perf_counter() - started) / (options.trials + 1):.1f} s each"
    )


if __name__ == "__main__":
    main()
