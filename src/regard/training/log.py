"""The log of a run: JSON lines that a resumed run continues as if it had never stopped."""

import contextlib
import json
import os
import time
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from regard.errors import CheckpointError, OutputError
from regard.training.history import LOG_FILE, TIMES_FILE

_CLOCK_SECONDS = 5.0


class Log:
    """`log.jsonl`: what is a function of data, options and seed. `times.jsonl`: what the clock says."""

    def __init__(self, folder: Path, num_bytes: int, step: int) -> None:
        self._path = folder / LOG_FILE
        try:
            self._file = self._path.open("ab")
            size = self._file.seek(0, os.SEEK_END)
            if size < num_bytes:
                raise CheckpointError(
                    f"{self._path}: has {size:,} bytes and had {num_bytes:,} when the checkpoint was made; "
                    "restore the whole file, or start again with another --out"
                )
            self._file.truncate(num_bytes)  # what came after the checkpoint comes again
            self._times = (folder / TIMES_FILE).open("a+b")
            self._times.seek(0)
            self._times.truncate(sum(map(len, takewhile(partial(_is_before, step), self._times))))
        except OSError as error:
            raise self._explained(error) from error
        self.num_bytes = num_bytes
        self._last_time = 0.0

    def write(self, kind: str, **values: Any) -> None:
        """Add a line."""
        line = json.dumps({"kind": kind, **values}).encode() + b"\n"
        try:
            self._file.write(line)
            self._file.flush()
        except OSError as error:
            raise self._explained(error) from error
        self.num_bytes += len(line)

    def clock(self, step: int, seconds: float, tokens_per_second: float, *, last: bool = False) -> None:
        """Add a line to the times, some in a minute, and the last one in any case."""
        if time.monotonic() - self._last_time < _CLOCK_SECONDS and not last:
            return
        self._last_time = time.monotonic()
        line = {"step": step, "seconds": round(seconds, 2), "tokens_per_second": round(tokens_per_second, 1)}
        try:
            self._times.write(json.dumps(line).encode() + b"\n")
            self._times.flush()
        except OSError as error:
            raise self._explained(error) from error

    def sync(self) -> None:
        """Have the system write it down; a checkpoint relies on it."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._explained(error) from error

    def close(self) -> None:
        """Close the files; what could not be written was told when it was tried."""
        for file in (self._file, self._times):
            with contextlib.suppress(OSError):
                file.close()

    def _explained(self, error: OSError) -> OutputError:
        return OutputError(f"{self._path}: cannot be written ({error.strerror or error})")


def _is_before(step: int, line: bytes) -> bool:
    """Tell whether a line of the clock is whole and of an update that will not be made again."""
    try:
        return line.endswith(b"\n") and json.loads(line)["step"] <= step
    except (ValueError, KeyError, TypeError):
        return False
