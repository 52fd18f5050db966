"""`regard runs`: the trainings in a folder side by side, what differs between them, and their curves."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import ConfigError, RunError

if TYPE_CHECKING:
    from regard.draw.curves import Curve
    from regard.training.history import Run

NAME = "runs"
HELP = "compare trainings: scores, times, options that differ, learning curves"
DESCRIPTION = """\
List the trainings found in each FOLDER and in the folders in it, or the one that FOLDER is:
size, updates, time, best and final BLEU, and how each ended. With two or more, say which options differ."""
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
        help="a run, or a folder with runs (default: the current folder)",
    )
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw the learning curves")
    parser.add_argument("--png", type=Path, metavar="FILE", help="the same as a PNG, by matplotlib")
    parser.add_argument(
        "--by",
        choices=list(_X_LABELS),
        default="updates",
        help="draw the curves against updates or training time (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print everything, every update too, as JSON")


def run(options: argparse.Namespace) -> None:
    """Read the runs, print them, and draw them if asked to."""
    from regard.training.history import find_runs, read_run

    found = [path for folder in options.folders for path in find_runs(folder)]
    paths = {path.resolve(): path for path in found}.values()  # one that is named twice is listed once
    if not paths:
        raise RunError(f"{_places(options.folders)}: no training run found; `regard train` makes one")
    runs, damages = [], []
    for path in paths:
        try:
            runs.append(read_run(path))
        except RunError as error:
            damages.append(str(error))
    names = _names(runs)
    drawn = _draw(options, runs, names) if runs else []
    if options.json:
        print(json.dumps([_plain(_to_json(run)) for run in runs], indent=1))
    elif runs:
        print("\n".join([*_table(runs, names), *_findings(runs, names), *_differences(runs)]))
        for path in drawn:
            print(f"drew {path}")
    if damages:
        sys.stdout.flush()
        raise RunError("; ".join(damages))


def _places(folders: Sequence[Path]) -> str:
    return ", ".join("this folder" if folder == Path() else str(folder) for folder in folders)


def _names(runs: Sequence["Run"]) -> list[str]:
    """Return what to call each run: its name, or its folder where two have the same name."""
    names = [run.name for run in runs]
    return [
        name if names.count(name) == 1 else str(run.folder) for run, name in zip(runs, names, strict=True)
    ]


def _draw(options: argparse.Namespace, runs: Sequence["Run"], names: Sequence[str]) -> list[Path]:
    """Draw the files that are asked for, and return which."""
    from regard.draw.curves import learning_curves
    from regard.draw.png import png
    from regard.draw.scene import svg
    from regard.files import writing

    pictures: dict[Path, bytes] = {}
    if options.svg and options.svg == options.png:
        raise ConfigError(f"--svg and --png are both {str(options.svg)!r}; name two files")
    if options.svg or options.png:
        if options.by == "time":
            _check_clocks(runs)
        curves = [_curve(run, name, options.by) for run, name in zip(runs, names, strict=True)]
        drawn = learning_curves(curves, _X_LABELS[options.by])
        if options.svg:
            pictures[options.svg] = svg(drawn).encode()
        if options.png:
            pictures[options.png] = png(drawn)
        with writing(*pictures) as files:
            for file, picture in zip(files, pictures.values(), strict=True):
                file.write(picture)
    return list(pictures)


def _check_clocks(runs: Sequence["Run"]) -> None:
    for run in runs:
        if run.num_updates and not len(run.times.step):
            raise RunError(f"{run.folder}: has no times, so no curve by time; draw it with --by updates")


def _curve(run: "Run", name: str, by: str) -> "Curve":
    import numpy as np

    from regard.draw.curves import Curve

    validation_steps = np.array([one.step for one in run.validations], float)
    update_x, validation_x = run.updates.step.astype(float), validation_steps
    if by == "time":
        update_x, validation_x = (run.seconds_at(steps) / 60 for steps in (update_x, validation_x))
    return Curve(
        name=name,
        update_x=update_x,
        loss=run.updates.loss,
        validation_x=validation_x,
        nll=np.array([one.nll for one in run.validations], float),
        bleu=np.array([one.bleu for one in run.validations], float),
    )


def _table(runs: Sequence["Run"], names: Sequence[str]) -> list[str]:
    from regard.report.markdown import aligned

    heads = ["run", "model", "parameters", "pairs", "updates", "time", "best BLEU", "final BLEU", "state"]
    rows = [heads, *(_row(run, name) for run, name in zip(runs, names, strict=True))]
    return aligned(rows, words=[heads.index(head) for head in ("run", "model", "state")])


def _row(run: "Run", name: str) -> list[str]:
    from regard.draw.labels import duration

    model = run.config.get("model")
    kind = model.get("kind", "?") if isinstance(model, dict) else "?"
    final = run.result.bleu if run.result else None
    return [
        name,
        run.preset or str(kind),
        _count(run.facts.get("num_parameters")),
        _count(run.facts.get("num_pairs")),
        f"{run.num_updates:,}",
        duration(run.seconds) if run.seconds else "-",
        f"{run.best.bleu:.1f} at {run.best.step:,}" if run.best else "-",
        "-" if final is None else f"{final:.1f}",
        _state(run),
    ]


def _count(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else "-"


def _state(run: "Run") -> str:
    """Say how far the run came. One that has not finished may be stopped or going on: no file tells."""
    if run.result:
        return f"finished: {run.result.reason}"
    if run.end_reason:
        return f"ended, not scored yet: {run.end_reason}"
    return f"not finished, at {run.num_updates:,}"


def _findings(runs: Sequence["Run"], names: Sequence[str]) -> list[str]:
    from regard.draw.labels import printable

    return [
        printable(f"{name}, update {finding.step:,}: {finding.cause}; {finding.advice}")
        for run, name in zip(runs, names, strict=True)
        for finding in run.findings
    ]


def _differences(runs: Sequence["Run"]) -> list[str]:
    """Say which options differ, with their values in the order of the table."""
    from regard.draw.labels import printable

    if len(runs) < 2:
        return []
    flat = [dict(_flattened(run.config)) for run in runs]
    keys = list(dict.fromkeys(key for options in flat for key in options))
    lines = [
        printable(f"{key} {' | '.join(options.get(key, '-') for options in flat)}")
        for key in keys
        if len({options.get(key) for options in flat}) > 1
    ]
    if not lines:
        return ["all options are the same"]
    if len(lines) == 1:
        return [f"only these options differ: {lines[0]}"]
    return ["only these options differ:", *(f"  {line}" for line in lines)]


def _flattened(options: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """Return each option as `train.label_smoothing` with its value as a text."""
    pairs: list[tuple[str, str]] = []
    for key, value in options.items():
        if isinstance(value, dict):
            pairs += _flattened(value, f"{before}{key}.")
        else:
            pairs.append((before + key, value if isinstance(value, str) else json.dumps(value)))
    return pairs


def _to_json(run: "Run") -> dict[str, Any]:
    """Return all that is known of a run."""
    return {
        "name": run.name,
        "folder": str(run.folder),
        "out": run.out,
        "created": run.created,
        "languages": list(run.languages),
        "preset": run.preset,
        "config": run.config,
        "facts": run.facts,
        "num_updates": run.num_updates,
        "seconds": run.seconds,
        "finished": run.finished,
        "end_reason": run.end_reason,
        "best": asdict(run.best) if run.best else None,
        "result": asdict(run.result) if run.result else None,
        "findings": [asdict(finding) for finding in run.findings],
        "validations": [asdict(one) for one in run.validations],
        "updates": {name: column.tolist() for name, column in asdict(run.updates).items()},
        "times": {name: column.tolist() for name, column in asdict(run.times).items()},
    }


def _plain(value: Any) -> Any:
    """Return the value with null for what is not a number: NaN is Python and not JSON."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not -float("inf") < value < float("inf") else value
