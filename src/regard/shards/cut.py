"""Where lines are cut into shards, and the bytes of each: those of one file, or of two side by side."""

import contextlib
import hashlib
import stat
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, Self, cast

from regard.errors import ConfigError, CorpusError
from regard.files import READ_ERRORS, decompressed
from regard.progress import Progress, unshown
from regard.remote import Place

_BLOCK_BYTES = 1 << 20
_MAX_SHARD_BYTES = 1 << 28  # some are in memory at once
_MAX_SHARDS = 99_999


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Part:
    """Whole lines of a file: `num_bytes` from `offset` on in the uncompressed file."""

    offset: int
    num_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Shard:
    """Lines that are worked on together, and where they stand; `beside` are those of a second file."""

    number: int
    first_line: int
    num_lines: int
    offset: int
    num_bytes: int
    sha256: str
    beside: Part | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the shard as plain values."""
        values = asdict(self)
        if self.beside is None:
            del values["beside"]
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Return the shard of `to_json`."""
        beside = values.get("beside")
        return cls(**values | {"beside": beside and Part(**beside)})


@dataclass(frozen=True, slots=True)
class Task:
    """A shard to be worked on, with its bytes."""

    number: int
    first_line: int
    text: bytes
    beside: bytes = b""


@dataclass(frozen=True, slots=True)
class Source:
    """The lines that are cut: those of a file, or of two files with as many lines.

    Every shard but the last has a multiple of `multiple` lines.
    """

    path: Place
    beside: Place | None = None
    multiple: int = 1

    def __str__(self) -> str:
        return str(self.path) if self.beside is None else f"{self.path} or {self.beside}"

    def size_and_time(self) -> dict[str, int]:
        """Return sizes and times: if they are the same, the text is taken to be the same."""
        values: dict[str, int] = {}
        for name, path in (("", self.path), ("beside_", self.beside)):
            if path is not None:
                try:
                    status = path.stat()
                except OSError as error:
                    raise CorpusError(f"{path}: cannot be opened ({error.strerror})") from error
                values |= {f"{name}size": status.st_size, f"{name}modified": status.st_mtime_ns}
        return values

    def cut(self, num_shards: int, on_progress: Progress = unshown) -> list[Shard]:
        """Return shards of about as many bytes, cut between lines. If there are few lines, some are empty."""
        if not 1 <= num_shards <= _MAX_SHARDS:
            raise ConfigError(f"--shards {num_shards} is not valid; use 1 to {_MAX_SHARDS:,}")
        total = _num_bytes(self.path)
        shards: list[Shard] = []
        line = 1
        with _opened(self.path) as stream, contextlib.ExitStack() as stack:
            reader = _Reader(stream)
            beside = None if self.beside is None else _Reader(stack.enter_context(_opened(self.beside)))
            for number in range(1, num_shards + 1):
                num_lines, part = reader.to(total * number // num_shards, self.multiple)
                other = None if beside is None else beside.lines(num_lines)
                shards.append(Shard(number, line, num_lines, **asdict(part), beside=other))
                line += num_lines
                on_progress("cutting", reader.offset, total)
                if (beside and other is None) or (beside and number == num_shards and not beside.is_at_end()):
                    raise CorpusError(f"{self.path} and {self.beside}: have different numbers of lines")
        self._check_sizes(shards)
        return shards

    def _check_sizes(self, shards: list[Shard]) -> None:
        largest = max(part.num_bytes for one in shards for part in (one, one.beside) if part)
        if largest > _MAX_SHARD_BYTES:
            raise ConfigError(
                f"{self}: a shard would have {largest:,} bytes, and at most {_MAX_SHARD_BYTES:,} are done "
                f"in one piece; use --shards {len(shards) * -(-2 * largest // _MAX_SHARD_BYTES)}"
            )

    def read_tasks(self, shards: Iterable[Shard]) -> Iterator[Task]:
        """Yield shards with their bytes, in order; bytes that are not those that were cut are an error."""
        with contextlib.ExitStack() as stack:
            reader = _Reader(stack.enter_context(_opened(self.path)))
            beside = None if self.beside is None else _Reader(stack.enter_context(_opened(self.beside)))
            for shard in shards:
                text = reader.again(shard)
                other = beside.again(shard.beside) if beside and shard.beside else b""
                if text is None or other is None:
                    raise CorpusError(
                        f"{self.path if text is None else self.beside}: lines {shard.first_line:,} to "
                        f"{shard.first_line + shard.num_lines - 1:,} have changed since the file was cut "
                        "into shards; bring back the file, or choose another --out"
                    )
                yield Task(shard.number, shard.first_line, text, other)


@contextlib.contextmanager
def _opened(path: Place) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as raw:
            if isinstance(path, Path) and not stat.S_ISREG(path.stat().st_mode):
                raise CorpusError(f"{path}: is no regular file; shards are read from a file")
            yield decompressed(path, cast(BinaryIO, raw))
    except READ_ERRORS as error:
        reason = getattr(error, "strerror", None) or error
        raise CorpusError(f"{path}: cannot be read ({reason}); check the name, or copy it again") from error


def _num_bytes(path: Place) -> int:
    with _opened(path) as stream:
        if stream.seekable():
            return path.stat().st_size
        num_bytes = 0
        while block := stream.read(_BLOCK_BYTES):
            num_bytes += len(block)
        return num_bytes


class _Reader:
    """Reads a stream from its beginning to its end, in parts of whole lines."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.offset = 0

    def to(self, end: int, multiple: int) -> tuple[int, Part]:
        """Read to this place at least, and on until a multiple of lines is read; return how many, too."""
        start, digest, num_lines, block = self.offset, hashlib.sha256(), 0, b""
        while self.offset < end and (block := self._stream.read(min(_BLOCK_BYTES, end - self.offset))):
            self.offset += len(block)
            num_lines += block.count(b"\n")
            digest.update(block)
        if block and not block.endswith(b"\n"):
            self._line(digest)
            num_lines += 1  # the last line of a file may have no end
        while num_lines % multiple and self._line(digest):
            num_lines += 1
        return num_lines, Part(start, self.offset - start, digest.hexdigest())

    def lines(self, num_lines: int) -> Part | None:
        """Read so many lines; None if there are fewer."""
        start, digest = self.offset, hashlib.sha256()
        for _ in range(num_lines):
            if not self._line(digest):
                return None
        return Part(start, self.offset - start, digest.hexdigest())

    def is_at_end(self) -> bool:
        """Tell whether there is nothing more to read."""
        return not self._stream.read(1)

    def again(self, part: Shard | Part) -> bytes | None:
        """Return the bytes of a part that stands further on; None if they are others than they were."""
        if self._stream.seekable():
            self._stream.seek(part.offset)
            self.offset = part.offset
        while self.offset < part.offset:
            self.offset += len(self._stream.read(min(_BLOCK_BYTES, part.offset - self.offset))) or part.offset
        text = self._stream.read(part.num_bytes)
        self.offset += len(text)
        return text if hashlib.sha256(text).hexdigest() == part.sha256 else None

    def _line(self, digest: _Digest) -> bool:
        """Read to the end of a line; tell whether there was anything to read."""
        is_any = False
        while block := self._stream.readline(_BLOCK_BYTES):
            self.offset += len(block)
            digest.update(block)
            is_any = True
            if block.endswith(b"\n"):
                break
        return is_any
