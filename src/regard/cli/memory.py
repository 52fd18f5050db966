"""The options of `regard translate` for a translation memory, and what is told of it."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.memory import TranslationMemory
    from regard.translate.translator import Translator


def add_memory(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--memory", type=Path, action="append", default=[], metavar="FILE",
        help="translation memory (.tmx .xlf .po .tsv ...): what it has is taken as it is; "
        "of two plain files, give both",
    )  # fmt: skip
    parser.add_argument(
        "--fuzzy", type=float, metavar="SCORE",
        help="how similar a source in the memory must be to be shown, from 0 to 1 (default 0.75)",
    )  # fmt: skip


def read_memory(options: argparse.Namespace, translator: "Translator") -> "TranslationMemory | None":
    """Return the memory that the options name."""
    if not options.memory:
        if options.fuzzy is not None:
            raise ConfigError("--fuzzy is about a translation memory; name it with --memory FILE")
        return None
    from regard.memory import LEAST_SCORE

    least = LEAST_SCORE if options.fuzzy is None else options.fuzzy
    return translator.model.read_memory(*options.memory, least_score=least)
