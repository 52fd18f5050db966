"""`regard sample`: a corpus with gold alignments, made by the built-in grammar."""

import argparse
from pathlib import Path

from regard.draw.progress import progress
from regard.errors import ConfigError

NAME = "sample"
HELP = "make a French-English corpus with gold word alignments"
DESCRIPTION = """\
Make French-English sentence pairs with gold word alignments from a grammar of our own:
DIR/sample.fr, DIR/sample.en and DIR/sample.align (Pharaoh format, counted from 0).
The same seed gives the same pairs, and a longer corpus begins with the shorter one."""
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
        "--seed", type=int, default=1, metavar="N", help="another seed, other pairs (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> None:
    """Write the corpus."""
    from regard.sample import write

    if options.pairs < 1:
        raise ConfigError(f"--pairs {options.pairs} is not valid; ask for at least 1")
    with progress() as show:
        write(
            options.out, options.pairs, options.seed, lambda done: show("making pairs", done, options.pairs)
        )
    print(f"{options.pairs:,} pairs in {options.out}: sample.fr, sample.en, sample.align")
