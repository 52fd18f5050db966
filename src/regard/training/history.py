"""What a training run has written about itself, read back: its options, every update, every validation.

A run is a folder: `run.json` says what was asked for, `log.jsonl` what came of it, update by update,
`times.jsonl` how long that took, and `result.json`, once the run is finished, how good the model is.
"""

import contextlib
import json
import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.errors import RunError

RUN_FILE = "run.json"
LOG_FILE = "log.jsonl"
TIMES_FILE = "times.jsonl"
RESULT_FILE = "result.json"
FORMAT = "regard-run/1"
CHECKPOINT_NAME = re.compile(r"step-(\d+)\.([0-9a-f]{32})\.checkpoint")

_SUFFIX = ".run"
_MAX_LINE_BYTES = 1 << 20  # no line of ours is as long; a file without line ends is not read into memory
_MAX_FILE_BYTES = 1 << 24
# What reading a damaged line can raise: no JSON or no UTF-8, too deep, no such key, another type, too large.
_DAMAGES = (ValueError, RecursionError, KeyError, TypeError, OverflowError)


@dataclass(frozen=True, slots=True)
class Updates:
    """Every update of a run, a column for each quantity; what was not a number is NaN."""

    step: NDArray[np.int64]
    epoch: NDArray[np.int64]
    loss: NDArray[np.float64]
    nll: NDArray[np.float64]
    rate: NDArray[np.float64]
    norm: NDArray[np.float64]
    tokens: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Times:
    """The clock: training seconds of the whole run up to a step, and how fast it was then."""

    step: NDArray[np.int64]
    seconds: NDArray[np.float64]
    tokens_per_second: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ValidationLine:
    """A validation, as logged: losses in nats per piece."""

    step: int
    nll: float
    bleu: float
    shuffled_nll: float
    entropy: float | None
    best: bool


@dataclass(frozen=True, slots=True)
class FindingLine:
    """Something the run noticed about itself, with the one change it advises."""

    step: int
    cause: str
    advice: str


@dataclass(frozen=True, slots=True)
class Result:
    """How good the model of a finished run is, and why the run ended."""

    step: int
    reason: str
    scores: dict[str, Any]

    @property
    def bleu(self) -> float | None:
        """BLEU of the finished model."""
        value = self.scores.get("bleu")
        return float(value) if isinstance(value, int | float) else None


@dataclass(frozen=True)
class Run:
    """A training run as its folder tells it. Whether it is going on at this moment no file can tell."""

    name: str
    folder: Path
    out: str
    created: str
    languages: tuple[str | None, ...]
    preset: str | None
    config: dict[str, Any]
    facts: dict[str, Any]
    updates: Updates
    validations: tuple[ValidationLine, ...]
    findings: tuple[FindingLine, ...]
    end_reason: str | None
    times: Times
    saved_step: int | None  # of the newest checkpoint, from which an unfinished run goes on
    result: Result | None

    @property
    def finished(self) -> bool:
        """Whether the run came to its end and its model was scored."""
        return self.result is not None

    @property
    def num_updates(self) -> int:
        """How many updates the log holds."""
        return int(self.updates.step[-1]) if len(self.updates.step) else 0

    @property
    def seconds(self) -> float:
        """How long the run has trained, as far as the clock was written."""
        return float(self.times.seconds[-1]) if len(self.times.seconds) else 0.0

    @cached_property
    def best(self) -> ValidationLine | None:
        """The last validation that was the best of all before it."""
        return next((one for one in reversed(self.validations) if one.best), None)

    def seconds_at(self, step: ArrayLike) -> NDArray[np.float64]:
        """Return how long the run had trained at these steps; NaN if there is no clock."""
        steps = np.asarray(step, dtype=float)
        if not len(self.times.step):
            return np.full(steps.shape, np.nan)
        known_steps = np.concatenate([[0.0], self.times.step.astype(float)])
        known_seconds = np.concatenate([[0.0], self.times.seconds])
        # After the last entry the run went on as fast as before, on the mean.
        beyond = steps / max(1.0, known_steps[-1]) * known_seconds[-1]
        seconds: NDArray[np.float64] = np.interp(steps, known_steps, known_seconds)
        return np.where(steps > known_steps[-1], beyond, seconds)


def find_runs(folder: Path) -> list[Path]:
    """Return the run folders in a folder and in the folders in it, by name; or the folder, if it is a run."""
    if not folder.is_dir():
        raise RunError(f"{folder}: {'is not a folder' if folder.exists() else 'does not exist'}")
    if _is_run(folder):
        return [folder]
    found: list[Path] = []
    for child in _folders(folder):
        found += [child] if _is_run(child) else filter(_is_run, _folders(child))
    return sorted(found, key=lambda path: (_name(path), path))


def _is_run(folder: Path) -> bool:
    try:
        return (folder / RUN_FILE).is_file()
    except OSError:
        return False


def _folders(folder: Path) -> list[Path]:
    """Return the folders in a folder; hidden ones and those nobody may read hold no runs for us."""
    try:
        return [child for child in folder.iterdir() if child.is_dir() and not child.name.startswith(".")]
    except OSError:
        return []


def _name(folder: Path) -> str:
    return folder.absolute().name.removesuffix(_SUFFIX)


def read_run(folder: Path) -> Run:
    """Read a run folder. A last line not yet whole is left out; a damaged one before it is an error."""
    if not folder.is_dir():
        raise RunError(f"{folder}: {'is not a folder' if folder.exists() else 'does not exist'}")
    if not _is_run(folder):
        raise RunError(f"{folder}: is not a training run; it holds no {RUN_FILE}")
    with _whole_file(folder / RUN_FILE) as record:
        if record["format"] != FORMAT:
            raise ValueError(f"format is {record['format']!r}, not {FORMAT!r}; is there a newer regard?")
        out, created = _text(record["out"]), _text(record["created"])
        languages = tuple(None if one is None else _text(one) for one in record["languages"])
        preset = None if record["preset"] is None else _text(record["preset"])
        config, facts = _object(record["config"]), _object(record["facts"])
    log = _read_log(folder / LOG_FILE)
    return Run(
        name=_name(folder),
        folder=folder,
        out=out,
        created=created,
        languages=languages,
        preset=preset,
        config=config,
        facts=facts,
        updates=Updates(**_columns(log.updates)),
        validations=tuple(log.validations),
        findings=tuple(log.findings),
        end_reason=log.end_reason,
        times=_read_times(folder / TIMES_FILE),
        saved_step=_saved_step(folder),
        result=_read_result(folder / RESULT_FILE),
    )


def _saved_step(folder: Path) -> int | None:
    names = (CHECKPOINT_NAME.fullmatch(path.name) for path in folder.glob("step-*.checkpoint"))
    return max((int(name[1]) for name in names if name), default=None)


def _read_result(path: Path) -> Result | None:
    if not path.exists():
        return None
    with _whole_file(path) as record:
        return Result(_integer(record["step"]), _text(record["reason"]), _object(record["scores"]))


@dataclass
class _Log:
    """The log while it is read: numbers go into typed columns, which refuse anything else."""

    updates: dict[str, "array[Any]"]
    validations: list[ValidationLine]
    findings: list[FindingLine]
    end_reason: str | None = None


def _read_log(path: Path) -> _Log:
    columns = {"step": "q", "epoch": "q", "loss": "d", "nll": "d", "rate": "d", "norm": "d", "tokens": "q"}
    log = _Log({name: array(code) for name, code in columns.items()}, [], [])
    _each_line(path, partial(_add, log))
    return log


def _add(log: _Log, record: dict[str, Any]) -> None:
    kind = record["kind"]
    # A run that was ended and then told to go on has an end in the middle.
    log.end_reason = None
    if kind == "update":
        for name, column in log.updates.items():
            value = record[name]
            column.append(np.nan if value is None and column.typecode == "d" else value)
    elif kind == "validation":
        entropy = record["entropy"]
        log.validations.append(
            ValidationLine(
                step=_integer(record["step"]),
                nll=_number(record["nll"]),
                bleu=_number(record["bleu"]),
                shuffled_nll=_number(record["shuffled_nll"]),
                entropy=None if entropy is None else _number(entropy),
                best=bool(record["best"]),
            )
        )
    elif kind == "finding":
        cause, advice = _text(record["cause"]), _text(record["advice"])
        log.findings.append(FindingLine(_integer(record["step"]), cause, advice))
    elif kind == "end":
        log.end_reason = _text(record["reason"])
    else:
        raise ValueError(f"unknown kind {kind!r}")


def _read_times(path: Path) -> Times:
    columns: dict[str, array[Any]] = {
        "step": array("q"),
        "seconds": array("d"),
        "tokens_per_second": array("d"),
    }

    def add(record: dict[str, Any]) -> None:
        step = _integer(record["step"])
        # A run that was continued from an earlier step takes those updates again; the last time counts.
        while columns["step"] and columns["step"][-1] >= step:
            for column in columns.values():
                column.pop()
        for name, column in columns.items():
            column.append(record[name])

    _each_line(path, add)
    return Times(**_columns(columns))


def _columns(columns: dict[str, "array[Any]"]) -> dict[str, NDArray[Any]]:
    return {
        name: np.array(column, dtype=np.int64 if column.typecode == "q" else np.float64)
        for name, column in columns.items()
    }


def _each_line(path: Path, add: Callable[[dict[str, Any]], None]) -> None:
    """Give the object of each whole line to `add`. A file that is not there has no lines."""
    if not path.exists():
        return
    number = 1
    try:
        with path.open("rb") as stream:
            while line := stream.readline(_MAX_LINE_BYTES):
                if not line.endswith(b"\n"):
                    if len(line) < _MAX_LINE_BYTES:
                        return  # still being written, or the process was ended while it wrote
                    raise ValueError(f"longer than {_MAX_LINE_BYTES:,} bytes")
                add(_object(json.loads(line)))
                number += 1
    except _DAMAGES as error:
        raise RunError(f"{path}: line {number} is damaged ({_why(error)})") from error
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror or error})") from error


@contextlib.contextmanager
def _whole_file(path: Path) -> Iterator[dict[str, Any]]:
    """Give the object in a file; what is wrong with it, found here or in the block, names the file."""
    try:
        with path.open("rb") as stream:
            content = stream.read(_MAX_FILE_BYTES + 1)
        if len(content) > _MAX_FILE_BYTES:
            raise ValueError(f"longer than {_MAX_FILE_BYTES:,} bytes")
        yield _object(json.loads(content))
    except _DAMAGES as error:
        raise RunError(f"{path}: is damaged ({_why(error)})") from error
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror or error})") from error


def _why(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error.args[0]!r} is missing"
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return "not JSON"
    return " ".join(str(error).split())[:200]


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("not a JSON object")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _integer(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is not a whole number")
    return value


def _number(value: Any) -> float:
    """Return a number; what is not one, such as the loss of a broken model, may be written as null."""
    if not isinstance(value, int | float | None):
        raise TypeError(f"{value!r} is not a number")
    return float("nan") if value is None else float(value)
