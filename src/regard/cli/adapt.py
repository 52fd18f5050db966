"""`regard adapt`: a model for one's own texts, from a trained one and a translation memory."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.progress import progress
from regard.cli.settings import add_machine, read_time
from regard.training import load_torch
from regard.training.stopping import Stopped, catching_signals

if TYPE_CHECKING:
    from regard.adapt import Adapted

NAME = "adapt"
HELP = "adapt a trained model to your own texts"
DESCRIPTION = (
    "Trains a model on with your sentence pairs, mixed with general text so that it does not forget. A part\n"
    "of your pairs is set aside, and BLEU before and after is measured on it. A model that is worse there\n"
    "is not written. To continue an interrupted training, run the same command again."
)
EXAMPLES = """examples:
  regard adapt fr-en --with my.tmx --out mine.regard
  regard adapt fr-en --with my.tmx --out mine.regard --general news.fr --time 10m
  regard adapt fr-en --with a.fr a.en --out mine.regard --general all.tsv
  regard adapt fr-en --with corrections.db --out mine.regard
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="model file or name of a bundled model")
    parser.add_argument(
        "--with", type=Path, nargs="+", required=True, dest="material", metavar="FILE",
        help="your sentence pairs: one TMX, XLIFF, PO, TSV ... file, two plain files, or the corrections "
        "of a server (regard serve --suggestions FILE)",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, required=True, metavar="MODEL", help="model file to write")
    parser.add_argument(
        "--general", type=Path, nargs="+", default=[], metavar="FILE",
        help="what the model must not forget: sentence pairs, or a plain file of sources, which the model "
        "translates itself (default: it translates some of your sources)",
    )  # fmt: skip
    parser.add_argument(
        "--time",
        metavar="TIME",
        help="time of the training: 10m, 1h (default: chosen by the size of your text)",
    )
    add_machine(parser)


def run(arguments: argparse.Namespace) -> int:
    """Adapt, and print the scores before and after."""
    seconds = read_time(arguments.time) if arguments.time else None
    load_torch()
    from regard.adapt import AdaptRequest, adapt
    from regard.training.display import open_display

    request = AdaptRequest(
        arguments.model,
        tuple(arguments.material),
        arguments.out,
        tuple(arguments.general),
        seconds,
        arguments.seed,
        arguments.device,
    )
    display = open_display()
    with catching_signals() as signals:
        try:
            adapted = adapt(request, display, progress, signals)
        except Stopped as stopped:
            display.note(str(stopped))
            return 128 + stopped.number
        finally:
            display.close()
    print("\n".join(report(adapted)))
    return 0


def report(adapted: "Adapted") -> list[str]:
    """Return the scores before and after, and whether chance explains the difference."""
    from regard.adapt import AFTER, BEFORE

    lines = [f"{'BLEU':8}{'sentences':>10}{'before':>22}{'after':>22}   difference"]
    for name, found in adapted.tests.items():
        scores = []
        for system in (BEFORE, AFTER):
            score = found.system(system).scores["bleu"]
            around = score.interval
            within = f" ({around.low:.1f} to {around.high:.1f})" if around else ""
            scores.append(f"{score.value:.1f}{within}")
        difference = next(one for one in found.differences if one.measure == "bleu")
        chance = "beyond chance" if difference.is_beyond_chance else "may be chance"
        p = max(difference.p_randomisation, difference.p_bootstrap)
        told = f"{difference.value:+.1f}, {chance} (p = {p:.2g})"
        lines.append(f"{name:8}{len(found.sources):>10,}{scores[0]:>22}{scores[1]:>22}   {told}")
    if "general" not in adapted.tests:
        lines.append(
            "general text was not measured; give sentence pairs with --general to see what is forgotten"
        )
    return [*lines, f"\nwrote {adapted.out}"]
