"""How many pairs that do not belong together `regard inspect --align` finds, and how many good ones it blames.

    python benchmarks/mismatch.py a.fr a.en [--pairs 20000] [--share 0.04]

Takes the first pairs of a corpus that break no rule, gives some of them the target of another, and inspects that.
"""

import argparse
import random
import tempfile
import time
from itertools import islice
from pathlib import Path

from regard.alignment.statistical.evidence import relatedness
from regard.corpus.clean import clean_pairs
from regard.corpus.inspect import inspect
from regard.corpus.read import open_corpus


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+")
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--share", type=float, default=0.04)
    options = parser.parse_args()
    corpus = open_corpus(options.files)
    pairs = [
        (pair.source, pair.target) for pair in islice(clean_pairs(corpus, inspect(corpus)), options.pairs)
    ]
    spoilt = random.Random(1).sample(range(len(pairs)), round(options.share * len(pairs)))
    targets = [target for _, target in pairs]
    for place, other in zip(spoilt, spoilt[1:] + spoilt[:1], strict=True):
        targets[place] = pairs[other][1]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"mixed.{side}" for side in ("source", "target")]
        for file, texts in zip(files, ([source for source, _ in pairs], targets), strict=True):
            file.write_text("".join(f"{text}\n" for text in texts), "utf-8")
        mixed = open_corpus(files, corpus.source_language, corpus.target_language)
        started = time.perf_counter()
        plain = inspect(mixed)
        between = time.perf_counter()
        report = inspect(mixed, relatedness=relatedness)
        seconds = time.perf_counter() - between, between - started
    found = {line - 1 for one in report.problems if one.rule == "mismatch" for line in one.lines}
    others = {line - 1 for one in plain.problems for line in one.lines}
    wrong, right = found - set(spoilt), found & set(spoilt)
    print(
        f"{options.files[0]}: {len(pairs):,} pairs, {len(spoilt):,} of them mixed up. Found {len(right) / len(spoilt):.1%} of these, "
        f"{len((right | others) & set(spoilt)) / len(spoilt):.1%} together with the other rules; blamed "
        f"{len(wrong) / (len(pairs) - len(spoilt)):.2%} of the good pairs; {seconds[0]:.1f} s, without --align {seconds[1]:.1f} s"
    )
    print("\n".join(f"note: {note}" for note in report.notes))


if __name__ == "__main__":
    main()
