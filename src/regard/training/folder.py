"""The run folder, beside the model: `fr-en.run` beside `fr-en.regard`.

| file             | holds                                                                  |
|------------------|------------------------------------------------------------------------|
| `run.json`       | the request, the effective configuration, the counts                   |
| `data/`          | tokenizers, stores, validation pairs, pre-trained vectors              |
| `start.regard`   | the model it began with, if any                                        |
| `log.jsonl`      | loss and validation of every update; the same after any interruption   |
| `times.jsonl`    | the clock                                                              |
| `*.checkpoint`   | the newest two states of the training                                  |
| `best.regard`    | the best model so far, ready to use                                    |
| `result.json`    | the final scores, once it is finished                                  |
| `lock`           | keeps other trainings out                                              |
"""

import json
from pathlib import Path
from typing import Any

from regard.errors import CheckpointError
from regard.files import writing
from regard.training.history import FORMAT, RUN_FILE

DATA_FOLDER = "data"
START_FILE = "start.regard"
BEST_FILE = "best.regard"
ANOTHER_VERSION = "go on with the version of regard that wrote it, or choose another --out"


def asked_before(folder: Path) -> dict[str, Any] | None:
    """Return the request of the training in a run folder, None if none has begun there."""
    if not has_begun(folder):
        return None
    asked: dict[str, Any] = read_about(folder)["request"]
    return asked


def has_begun(folder: Path) -> bool:
    """Tell whether a run folder holds a training with at least one checkpoint."""
    return (folder / RUN_FILE).exists() and any(folder.glob("*.checkpoint"))


def read_about(folder: Path) -> dict[str, Any]:
    """Return what `run.json` says, or raise an error if another version of regard wrote it."""
    about = read_json(folder / RUN_FILE)
    if about.get("format") != FORMAT:
        raise CheckpointError(
            f"{folder / RUN_FILE}: has format {about.get('format')!r}, not {FORMAT!r}; {ANOTHER_VERSION}"
        )
    return about


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write a file of the run folder, whole or not at all."""
    with writing(path) as (file,):
        file.write(json.dumps(values, indent=1, ensure_ascii=False).encode())


def read_json(path: Path) -> dict[str, Any]:
    """Return what `write_json` wrote."""
    try:
        values: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read; remove the folder and start again") from error
    return values
