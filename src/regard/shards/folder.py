"""The folder of a run in shards.

| file                     | holds                                                                        |
|--------------------------|------------------------------------------------------------------------------|
| `shards.json`            | the shards of the input, the models and options                              |
| `00001-<hash>.txt`       | the lines of a finished shard                                                |
| `00001-<hash>.json`      | its report: lines that failed, warnings                                      |
| `lock`                   | a byte for each shard, locked by the process that works on it                |

The hash is one of the shard's place, its text, the models and the options.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from regard.errors import ConfigError, OutputError
from regard.files import is_unfinished, writing
from regard.progress import Progress
from regard.remote import Place, Remote
from regard.shards.cut import Shard, Source
from regard.shards.work import Done
from regard.translate.lines import Report

FORMAT = "regard-shards/1"

_MANIFEST, _LOCK = "shards.json", "lock"
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class ShardFolder:
    """The shards of an input and what is done of them. `work` is the identity of the models and options."""

    path: Place
    source: dict[str, int]
    work: dict[str, Any]
    shards: tuple[Shard, ...]

    @classmethod
    def begin(
        cls, path: Place, source: Source, num_shards: int, work: dict[str, Any], on_progress: Progress
    ) -> "ShardFolder":
        """Return the folder of this run: a new one, or the one that was begun, if nothing has changed."""
        now = source.size_and_time()
        if not has_begun(path):
            _remove_unfinished(path, (f".{_MANIFEST}.",))
            if any(one.name != _LOCK for one in path.iterdir()):
                raise OutputError(f"{path}: has other files in it; choose another --out")
            found = cls(path, now, work, tuple(source.cut(num_shards, on_progress)))
            found._write()
            return found
        found = cls.read(path)
        changed = [
            f"{key} was {before!s:.20} and is {value!s:.20}"
            for key, value in work.items()
            if (before := found.work.get(key)) != value
        ]
        if len(found.shards) != num_shards:
            changed.append(f"--shards was {len(found.shards)} and is {num_shards}")
        elif now != found.source and tuple(source.cut(num_shards, on_progress)) != found.shards:
            changed.append(f"the text of {source} is another")
        if changed:
            raise ConfigError(
                f"{path}: was begun otherwise ({'; '.join(changed)}); go on as it was begun, or choose "
                "another --out"
            )
        return found

    @classmethod
    def read(cls, path: Place) -> "ShardFolder":
        """Return a folder that was begun."""
        try:
            values = json.loads((path / _MANIFEST).read_text("utf-8"))
            if values["format"] != FORMAT:
                raise ValueError(f"format {values['format']!r:.40}")
            shards = tuple(Shard.from_json(one) for one in values["shards"])
            return cls(path, dict(values["source"]), dict(values["work"]), shards)
        except FileNotFoundError:
            raise ConfigError(f"{path}: has no {_MANIFEST}; name the --out of a run with --shards") from None
        except NotADirectoryError:
            raise ConfigError(f"{path}: is a file; name the folder of a run with --shards") from None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise OutputError(
                f"{path / _MANIFEST}: cannot be read ({error!r:.100}); choose another --out and start again"
            ) from error

    def finished(self) -> set[int]:
        """Return the numbers of the finished shards; a file that is there is whole."""
        names = {one.name for one in self.path.iterdir()}
        return {shard.number for shard in self.shards if self.text_path(shard).name in names}

    def store(self, done: Done) -> None:
        """Write a finished shard."""
        shard = self.shards[done.number - 1]
        with writing(self._report_path(shard), self.text_path(shard)) as (report, text):
            report.write(json.dumps(done.report.to_json(), ensure_ascii=False).encode("utf-8", "replace"))
            text.write(done.text)

    def report(self, shard: Shard) -> Report:
        """Return the report of a finished shard."""
        path = self._report_path(shard)
        try:
            return Report.from_json(json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise OutputError(
                f"{path}: cannot be read ({error!r:.100}); remove {self.text_path(shard).name} and run again"
            ) from error

    def join(self, out: IO[bytes], on_progress: Progress) -> Report:
        """Write the lines of all shards in order, and return the report of all."""
        missing = sorted({shard.number for shard in self.shards} - self.finished())
        if missing:
            raise ConfigError(
                f"{self.path}: {len(missing):,} of {len(self.shards):,} shards are missing, the first is "
                f"number {missing[0]}; run the command that began it again"
            )
        report = Report()
        for shard in self.shards:
            num_lines = 0
            with self.text_path(shard).open("rb") as text:
                while block := text.read(_BLOCK_BYTES):
                    num_lines += block.count(b"\n")
                    out.write(block)
            if num_lines != shard.num_lines:
                raise OutputError(
                    f"{self.text_path(shard)}: has {num_lines:,} lines for {shard.num_lines:,}; remove it "
                    "and run the command that began it again"
                )
            report.add_report(self.report(shard))
            on_progress("joining", shard.number, len(self.shards))
        return report

    def remove_leftovers(self, shards: Sequence[Shard]) -> None:
        """Remove what killed processes left unfinished of these shards."""
        _remove_unfinished(self.path, tuple(f".{shard.number:05}-" for shard in shards))

    def text_path(self, shard: Shard) -> Place:
        """Return the file of a finished shard."""
        named = json.dumps([self._work_hash, shard.to_json()], sort_keys=True)
        return self.path / f"{shard.number:05}-{_sha256(named)[:16]}.txt"

    def _report_path(self, shard: Shard) -> Place:
        return self.text_path(shard).with_suffix(".json")

    @cached_property
    def _work_hash(self) -> str:
        return _sha256(json.dumps(self.work, sort_keys=True))

    def _write(self) -> None:
        values = {
            "format": FORMAT,
            "source": self.source,
            "work": self.work,
            "shards": [shard.to_json() for shard in self.shards],
        }
        with writing(self.path / _MANIFEST) as (file,):
            file.write(json.dumps(values, indent=1).encode())


def has_begun(path: Place) -> bool:
    """Tell whether a folder has the plan of a run."""
    return (path / _MANIFEST).exists()


def _remove_unfinished(path: Place, beginnings: tuple[str, ...]) -> None:
    """Remove temporary files of killed processes; behind a URL there are none."""
    if isinstance(path, Path):
        for one in path.iterdir():
            if is_unfinished(one) and one.name.startswith(beginnings):
                one.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(path: Place, number: int | None) -> Iterator[IO[bytes] | None]:
    """Keep other processes from a shard, or with None from all; the system frees a lock with its process.

    If the block fails before there is a plan, nothing of it stays in the folder. Behind a URL there are no
    locks: two processes may do the same shard, and write the same bytes.
    """
    if isinstance(path, Remote):
        yield None
        return
    is_new = not path.exists()
    try:
        path.mkdir(parents=True, exist_ok=True)
        file = (path / _LOCK).open("a+b")
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}); choose another --out") from error
    with file:
        try:
            _lock(file, 1 if number is None else number, 0 if number is None else 1, wait=False)
        except (BlockingIOError, PermissionError):  # what a lock of another process is depends on the system
            what = "a run is" if number is None else f"shard {number}, or all of it, is"
            raise OutputError(
                f"{path}: {what} being worked on by another process; wait for it, or choose another --out"
            ) from None
        except OSError as error:
            raise OutputError(
                f"{path}: cannot be locked ({error.strerror}); choose a folder on another file system"
            ) from error
        try:
            yield file
        except BaseException:
            if not has_begun(path):
                _remove_lock(path, file, with_folder=is_new)
            raise


def _remove_lock(path: Path, file: IO[bytes], *, with_folder: bool) -> None:
    """Remove the lock of a run that never began, unless another process uses it."""
    with contextlib.suppress(OSError):
        _lock(file, 0, 0, wait=False)
        (path / _LOCK).unlink()
        if with_folder:
            path.rmdir()


@contextlib.contextmanager
def planning(file: IO[bytes] | None) -> Iterator[None]:
    """Wait until no other process reads or writes the plan; `file` is that of `locked`."""
    if file is None:
        yield
        return
    _lock(file, 0, 1, wait=True)
    try:
        if not os.fstat(file.fileno()).st_nlink:  # the process that we waited for has failed
            raise OutputError(f"{file.name}: was removed by another process; run the command again")
        yield
    finally:
        _lock(file, 0, 1, free=True)


def _lock(file: IO[bytes], start: int, length: int, *, wait: bool = True, free: bool = False) -> None:
    try:
        import fcntl
    except ImportError:
        raise ConfigError("--shards needs the file locks of Linux or macOS; use WSL on Windows") from None
    how = fcntl.LOCK_UN if free else fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB)
    fcntl.lockf(file, how, length, start)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
