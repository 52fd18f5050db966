"""`regard lineage`: what attention buys, on anybody's data."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.progress import progress
from regard.cli.settings import (
    add_corpus,
    add_gold_format,
    add_machine,
    read_gold_format,
    read_sections,
    read_time,
)
from regard.errors import ConfigError
from regard.training import load_torch

if TYPE_CHECKING:
    from regard.lineage.measure import Gold

NAME = "lineage"
HELP = "compare designs from one fixed vector to the Transformer on your data"
DESCRIPTION = (
    "Trains nine designs on the same pairs, each for an equal share of the time: two that encode a sentence\n"
    "in one vector, six with attention, and a Transformer. Writes a report in English and Korean: BLEU by\n"
    "source length, what each design gains, where it looks. To continue an interrupted run, use the same\n"
    "command again."
)
EXAMPLES = """examples:
  regard lineage train.fr train.en --time 2h --report lineage
  regard lineage train.fr train.en --time 2h --report lineage --test test.fr test.en
  regard lineage train.fr train.en --time 40m --report three --only sutskever,bahdanau,transformer
  regard lineage train.fr train.en --time 9h --report lineage --gold gold.fr gold.en gold.align
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_corpus(parser)
    parser.add_argument(
        "--report", type=Path, required=True, metavar="DIR",
        help="folder for the report, and for the models in models/",
    )  # fmt: skip
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument(
        "--time", metavar="TIME", help="total training time: 2h, 1h30m; each design gets an equal share"
    )
    length.add_argument("--steps", type=int, metavar="N", help="number of updates per design")
    parser.add_argument(
        "--only", metavar="NAME,NAME", help="train only these designs; docs/lineage.md lists their names"
    )
    parser.add_argument(
        "--test", type=Path, nargs="+", default=[], metavar="FILE",
        help="test pairs (default: the validation pairs)",
    )  # fmt: skip
    parser.add_argument(
        "--gold", type=Path, nargs=3, metavar=("SOURCE", "TARGET", "LINKS"),
        help="pairs with a gold alignment, for the alignment error rate: `3-4` sure, `3p4` possible",
    )  # fmt: skip
    add_gold_format(parser)
    parser.add_argument(
        "--sentence", metavar="TEXT", help="sentence for the heat maps (default: one of the test set)"
    )
    add_machine(parser)
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE",
        help="an option of docs/options.md for all designs, such as model.hidden_size=64",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Train, measure, write, and print what came of it."""
    sections = read_sections(arguments.set)
    seconds = None if arguments.time is None else read_time(arguments.time)
    gold = _gold(arguments)
    load_torch()
    from regard.lineage.report import file_name, write_report
    from regard.lineage.run import LineageOptions, lineage
    from regard.training.display import open_display
    from regard.training.stopping import Stopped

    options = LineageOptions(
        seconds=seconds,
        steps=arguments.steps,
        validation=arguments.valid,
        test=arguments.test,
        gold=gold,
        only=arguments.only,
        sentence=arguments.sentence,
        source_language=arguments.source,
        target_language=arguments.target,
        seed=arguments.seed,
        device=arguments.device,
        sections=sections,
    )
    try:
        found = lineage(
            arguments.files, arguments.report, options, display=lambda rung: open_display(), stages=progress
        )
    except Stopped as stopped:
        display = open_display()
        display.note(str(stopped))
        display.close()
        return 128 + stopped.number
    write_report(found, arguments.report)
    print(found)
    english, korean = (arguments.report / file_name(language, "html") for language in ("en", "ko"))
    print(f"\nwrote {english} and {korean}")
    return 0


def _gold(arguments: argparse.Namespace) -> "Gold | None":
    if arguments.gold is None:
        if arguments.from_one or arguments.reversed or arguments.words:
            raise ConfigError(
                "--from-one, --reversed and --words describe the gold file; use them with --gold"
            )
        return None
    from regard.lineage.run import read_gold_pairs

    cut, counted_from = read_gold_format(arguments)
    return read_gold_pairs(
        *arguments.gold, counted_from=counted_from, target_first=arguments.reversed, cut=cut
    )
