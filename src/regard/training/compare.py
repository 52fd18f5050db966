"""Trainings side by side: a table, the options that differ, curves and JSON. Needs no torch."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

import numpy as np

from regard.draw.curves import Curve
from regard.draw.labels import duration, printable
from regard.errors import RunError
from regard.report.markdown import aligned
from regard.training.history import Run


def names(runs: Sequence[Run]) -> list[str]:
    """Return what to call each run: its name, or its folder where two have the same name."""
    short = [run.name for run in runs]
    return [
        name if short.count(name) == 1 else str(run.folder) for run, name in zip(runs, short, strict=True)
    ]


def curves(runs: Sequence[Run], by: Literal["updates", "time"]) -> list[Curve]:
    """Return the learning curve of each run, against updates or against minutes of training."""
    for run in runs:
        if by == "time" and run.num_updates and not len(run.times.step):
            raise RunError(f"{run.folder}: has no times, so no curve by time; draw it with --by updates")
    return [_curve(run, name, by) for run, name in zip(runs, names(runs), strict=True)]


def _curve(run: Run, name: str, by: str) -> Curve:
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


def report(runs: Sequence[Run]) -> str:
    """Return the runs as a table, what was found wrong with them, and which options differ."""
    called = names(runs)
    return "\n".join([*_table(runs, called), *_findings(runs, called), *_differences(runs)])


def _table(runs: Sequence[Run], names: Sequence[str]) -> list[str]:
    heads = ["run", "model", "parameters", "pairs", "updates", "time", "best BLEU", "final BLEU", "state"]
    rows = [heads, *(_row(run, name) for run, name in zip(runs, names, strict=True))]
    return aligned(rows, words=[heads.index(head) for head in ("run", "model", "state")])


def _row(run: Run, name: str) -> list[str]:
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


def _state(run: Run) -> str:
    """Say how far the run came. One that has not finished may be stopped or going on: no file tells."""
    if run.result:
        return f"finished: {run.result.reason}"
    if run.end_reason:
        return f"ended, not scored yet: {run.end_reason}"
    if run.saved_step is None:
        return "not finished, nothing saved yet"
    return f"not finished, saved at {run.saved_step:,}"


def _findings(runs: Sequence[Run], names: Sequence[str]) -> list[str]:
    return [
        printable(f"{name}, update {finding.step:,}: {finding.cause}; {finding.advice}")
        for run, name in zip(runs, names, strict=True)
        for finding in run.findings
    ]


def _differences(runs: Sequence[Run]) -> list[str]:
    """Say which options differ, with their values in the order of the table."""
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


def to_json(run: Run) -> Any:
    """Return all that is known of a run as plain values, null for what is not a number."""
    return _plain(
        {
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
            "saved_step": run.saved_step,
            "finished": run.finished,
            "end_reason": run.end_reason,
            "best": asdict(run.best) if run.best else None,
            "result": asdict(run.result) if run.result else None,
            "findings": [asdict(finding) for finding in run.findings],
            "validations": [asdict(one) for one in run.validations],
            "updates": {name: column.tolist() for name, column in asdict(run.updates).items()},
            "times": {name: column.tolist() for name, column in asdict(run.times).items()},
        }
    )


def _plain(value: Any) -> Any:
    """Return the value with null for what is not a number: NaN is Python and not JSON."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not -float("inf") < value < float("inf") else value
