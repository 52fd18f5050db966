"""French-English sentence pairs with gold word alignments, made by a grammar (`recipes/sample.py`).

The grammar's rules for what links to what are in `recipes/grammar/__init__.py`.
"""

import lzma
import random
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from regard.alignment.links import Link, from_pharaoh, to_pharaoh
from regard.errors import ConfigError
from regard.files import writing

FILE = Path(__file__).with_name("pairs.tsv.xz")  # source, target, links in Pharaoh format
NUM_PAIRS = 40_000


@dataclass(frozen=True, slots=True)
class SamplePair:
    """A French sentence, its English translation, and which words belong together (counted from 0)."""

    source: str
    target: str
    links: frozenset[Link]


def read_sample(num_pairs: int = NUM_PAIRS, seed: int | None = None) -> list[SamplePair]:
    """Return the first pairs of the package, or with a seed a random selection without repetition.

    A longer selection with the same seed begins with the shorter one.
    """
    if not 1 <= num_pairs <= NUM_PAIRS:
        raise ConfigError(
            f"--pairs {num_pairs} is not valid; ask for 1 to {NUM_PAIRS:,}, which the package has, "
            "or make more with recipes/sample.py of the project's sources"
        )
    with lzma.open(FILE, "rt", encoding="utf-8", newline="\n") as lines:
        if seed is None:
            return [_pair(line) for line in islice(lines, num_pairs)]
        # Of the generator only `random()` gives the same numbers in every version of Python.
        dice = random.Random(seed)
        chosen = sorted(lines, key=lambda _: dice.random())[:num_pairs]
    return [_pair(line) for line in chosen]


def write_sample(folder: str | Path, pairs: Iterable[SamplePair]) -> None:
    """Write `sample.fr`, `sample.en` and `sample.align` (Pharaoh format), all three whole or none."""
    paths = [Path(folder) / f"sample.{ending}" for ending in ("fr", "en", "align")]
    with writing(*paths) as (french, english, align):
        for pair in pairs:
            french.write(f"{pair.source}\n".encode())
            english.write(f"{pair.target}\n".encode())
            align.write(f"{to_pharaoh(pair.links)}\n".encode())


def _pair(line: str) -> SamplePair:
    source, target, links = line.rstrip("\n").split("\t")
    return SamplePair(source, target, from_pharaoh(links))
