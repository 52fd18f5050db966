"""`regard lineage`: what attention buys, on anybody's data."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli.settings import put_setting, read_setting, read_time
from regard.errors import ConfigError
from regard.training import load_torch

if TYPE_CHECKING:
    from regard.lineage.measure import Gold

NAME = "lineage"
HELP = "train the designs from one fixed vector to the Transformer, and show what each step bought"
DESCRIPTION = (
    "Trains nine designs on the same pairs, each for an equal share of the time: two that press a sentence\n"
    "into one vector, six with attention, and a Transformer. Writes a report, in English and Korean:\n"
    "BLEU by length of the source, what each step bought, where each design looks. The same command again\n"
    "goes on where an interrupted one stopped."
)
EXAMPLES = """examples:
  regard lineage train.fr train.en --time 2h --report ladder
  regard lineage train.fr train.en --time 2h --report ladder --test test.fr test.en
  regard lineage train.fr train.en --time 40m --report three --only sutskever,bahdanau,transformer
  regard lineage train.fr train.en --time 9h --report ladder --gold gold.fr gold.en gold.align
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE",
        help="two plain files, source and target, or one TMX, XLIFF, PO, TSV, JSONL or Parquet file",
    )  # fmt: skip
    parser.add_argument(
        "--report", type=Path, required=True, metavar="DIR",
        help="the folder of the report and, in models/, of the models",
    )  # fmt: skip
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument(
        "--time", metavar="TIME", help="how long all trainings take together: 2h, 1h30m; each has its share"
    )
    length.add_argument("--steps", type=int, metavar="N", help="how many updates each has instead")
    parser.add_argument(
        "--only", metavar="NAME,NAME", help="these rungs alone; docs/lineage.md has their names"
    )
    parser.add_argument(
        "--valid", type=Path, nargs="+", default=[], metavar="FILE",
        help="pairs to validate on; without it some are set aside",
    )  # fmt: skip
    parser.add_argument(
        "--test", type=Path, nargs="+", default=[], metavar="FILE",
        help="pairs to measure on; without it those of validation",
    )  # fmt: skip
    parser.add_argument(
        "--gold", type=Path, nargs=3, metavar=("SOURCE", "TARGET", "LINKS"),
        help="pairs aligned by hand, for the alignment error rate: `3-4` sure, `3p4` possible",
    )  # fmt: skip
    parser.add_argument("--from-one", action="store_true", help="the gold links count words from 1")
    parser.add_argument("--reversed", action="store_true", help="the gold links have the target's word first")
    parser.add_argument(
        "--words", action="store_true", help="they count words as regard cuts them: l' and . are words"
    )
    parser.add_argument(
        "--sentence", metavar="TEXT", help="the sentence whose heat maps are shown; else one of the test set"
    )
    parser.add_argument("--source", metavar="LANG", help="source language, if the files do not tell")
    parser.add_argument("--target", metavar="LANG", help="target language")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="another seed is another run (1)")
    parser.add_argument(
        "--device", default="auto", help="cpu, cuda, cuda:1, mps; by itself the best there is"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE",
        help="an option of docs/options.md for every rung, such as model.hidden_size=64",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Train, measure, write, and print what came of it."""
    options = _options(arguments.set)
    seconds = None if arguments.time is None else read_time(arguments.time)
    gold = _gold(arguments)
    load_torch()
    from regard.lineage.report import file_name, write_report
    from regard.lineage.run import lineage
    from regard.training.display import open_display
    from regard.training.loop import Stopped

    try:
        found = lineage(
            arguments.files,
            arguments.report,
            seconds=seconds,
            steps=arguments.steps,
            valid=arguments.valid,
            test=arguments.test,
            gold=gold,
            only=arguments.only,
            sentence=arguments.sentence,
            source_language=arguments.source,
            target_language=arguments.target,
            seed=arguments.seed,
            device=arguments.device,
            options=options,
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
                "--from-one, --reversed and --words say how to read gold links; give them with --gold"
            )
        return None
    from regard.lineage.run import read_gold_pairs

    return read_gold_pairs(
        *arguments.gold,
        from_one=arguments.from_one,
        is_reversed=arguments.reversed,
        cut="words" if arguments.words else "spaces",
    )


def _options(settings: list[str]) -> dict[str, dict[str, Any]]:
    """Return the options for every rung, by section."""
    values: dict[str, dict[str, Any]] = {}
    for setting in settings:
        path, value = read_setting(setting, "section.key=value")
        if len(path) < 2:
            raise ConfigError(f"--set {setting} is not valid; write section.key=value")
        put_setting(values, path, value)
    return values
