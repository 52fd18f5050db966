"""`regard runs`: the trainings in a folder side by side, what differs between them, and their curves."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import ConfigError, RunError

if TYPE_CHECKING:
    from regard.training.history import Run

NAME = "runs"
HELP = "compare trainings: scores, times, options that differ, learning curves"
DESCRIPTION = """\
Lists the training runs in each FOLDER: size, updates, time, best and final BLEU, and how each run ended.
With two or more runs, it says which options differ."""
EXAMPLES = """\
examples:
  regard runs
  regard runs fr-en.run de-en.run --svg curves.svg
  regard runs experiments --by time --png curves.png
  regard runs --json > runs.json"""

_X_LABELS = {"updates": "updates", "time": "training minutes"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "folders",
        type=Path,
        nargs="*",
        default=[Path()],
        metavar="FOLDER",
        help="run folder, or folder with runs (default: the current folder)",
    )
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write the learning curves as SVG")
    parser.add_argument(
        "--png", type=Path, metavar="FILE", help="write the learning curves as PNG (needs the extra [plot])"
    )
    parser.add_argument(
        "--by",
        choices=list(_X_LABELS),
        default="updates",
        help="x axis of the curves (default: %(default)s)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print everything as JSON, including every update"
    )


def run(options: argparse.Namespace) -> None:
    """Read the runs, print them, and draw them if asked to."""
    from regard.training.compare import report, to_json
    from regard.training.history import find_runs, read_run

    found = [path for folder in options.folders for path in find_runs(folder)]
    paths = {path.resolve(): path for path in found}.values()  # one that is named twice is listed once
    if not paths:
        places = ("this folder" if folder == Path() else str(folder) for folder in options.folders)
        raise RunError(f"{', '.join(places)}: no training run found; `regard train` makes one")
    runs, damages = [], []
    for path in paths:
        try:
            runs.append(read_run(path))
        except RunError as error:
            damages.append(str(error))
    drawn = _draw(options, runs) if runs else []
    if options.json:
        print(json.dumps([to_json(run) for run in runs], indent=1))
    elif runs:
        print(report(runs))
        for path in drawn:
            print(f"drew {path}")
    if damages:
        sys.stdout.flush()
        raise RunError("; ".join(damages))


def _draw(options: argparse.Namespace, runs: Sequence["Run"]) -> list[Path]:
    """Draw the files that are asked for, and return which."""
    from regard.draw.curves import learning_curves
    from regard.draw.png import png
    from regard.draw.scene import svg
    from regard.files import writing
    from regard.training.compare import curves

    if options.svg and options.svg == options.png:
        raise ConfigError(f"--svg and --png are both {str(options.svg)!r}; name two files")
    if not options.svg and not options.png:
        return []
    drawn = learning_curves(curves(runs, options.by), _X_LABELS[options.by])
    pictures: dict[Path, bytes] = {}
    if options.svg:
        pictures[options.svg] = svg(drawn).encode()
    if options.png:
        pictures[options.png] = png(drawn)
    with writing(*pictures) as files:
        for file, picture in zip(files, pictures.values(), strict=True):
            file.write(picture)
    return list(pictures)
