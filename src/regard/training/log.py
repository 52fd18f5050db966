"""The log of a run: JSON lines that a resumed run continues as if it had never stopped."""

import json
import os
import time
from pathlib import Path
from typing import Any

from regard.errors import CheckpointError, OutputError

_CLOCK_SECONDS = 5.0


class Log:
    """`log.jsonl`: what is a function of data, options and seed. `times.jsonl`: what the clock says."""

    def __init__(self, folder: Path, num_bytes: int) -> None:
        self._path = folder / "log.jsonl"
        try:
            self._file = self._path.open("ab")
            size = self._file.seek(0, os.SEEK_END)
            if size < num_bytes:
                raise CheckpointError(
                    f"{self._path}: has {size:,} bytes and had {num_bytes:,} when the checkpoint was made; "
                    "put the whole file back, or start anew with another --out"
                )
            self._file.truncate(num_bytes)  # what came after the checkpoint comes again
            self._times = (folder / "times.jsonl").open("a+b")
            self._times.seek(0)
            # A line that a killed process did not end would swallow the next.
            self._times.truncate(self._times.read().rfind(b"\n") + 1)
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
        """Close the files."""
        self._file.close()
        self._times.close()

    def _explained(self, error: OSError) -> OutputError:
        return OutputError(f"{self._path}: cannot be written ({error.strerror or error})")
