"""Makes French-English sentence pairs with gold word alignments, as many as you like, from a grammar of our own.

    python recipes/sample.py --pairs 100000 --seed 3 --out corpus
    python recipes/sample.py --install

The first command writes `corpus/sample.fr`, `sample.en` and `sample.align` (Pharaoh format, counted from 0). The same
seed gives the same pairs, and a longer corpus begins with the shorter one. `--install` makes the file that the package
ships, which `regard sample` and `regard demo` read: the first pairs of seed 1.
"""

import argparse
from pathlib import Path

from grammar import generate

from regard.alignment.links import to_pharaoh
from regard.files import writing
from regard.sample import FILE, NUM_PAIRS, write_sample


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=NUM_PAIRS)
    parser.add_argument("--seed", type=int, default=1)
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--out", type=Path, help="the folder to write to")
    place.add_argument("--install", action="store_true", help="write the file of the package")
    arguments = parser.parse_args()
    if arguments.install:
        install(FILE)
    else:
        write_sample(arguments.out, generate(arguments.pairs, arguments.seed))


def install(file: Path) -> None:
    with writing(file) as (stream,):
        for pair in generate(NUM_PAIRS):
            stream.write(f"{pair.source}\t{pair.target}\t{to_pharaoh(pair.links)}\n".encode())


if __name__ == "__main__":
    main()
