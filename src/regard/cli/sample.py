"""`regard sample`: a corpus with gold alignments, from the pairs of the package."""

import argparse
from pathlib import Path

NAME = "sample"
HELP = "write a French-English corpus with gold word alignments"
DESCRIPTION = """\
Writes French-English sentence pairs with gold word alignments: DIR/sample.fr, DIR/sample.en and
DIR/sample.align (Pharaoh format, counted from 0). The package has 40,000 pairs, made by a grammar;
recipes/sample.py in the source repository makes more. A longer corpus begins with the shorter one."""
EXAMPLES = """\
examples:
  regard sample --pairs 20000 --out corpus
  regard inspect corpus/sample.fr corpus/sample.en"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write to")
    parser.add_argument(
        "--pairs", type=int, default=20_000, metavar="N", help="number of pairs (default: %(default)s)"
    )
    parser.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="choose pairs at random with this seed (default: the first pairs)",
    )


def run(options: argparse.Namespace) -> None:
    """Write the corpus."""
    from regard.sample import read_sample, write_sample

    write_sample(options.out, read_sample(options.pairs, options.seed))
    print(f"{options.pairs:,} pairs in {options.out}: sample.fr, sample.en, sample.align")
