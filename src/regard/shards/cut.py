"""Where a file of lines is cut into shards, and the bytes of each."""

import contextlib
import hashlib
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from regard.errors import ConfigError, CorpusError
from regard.files import READ_ERRORS, decompressed
from regard.progress import Progress, unshown

_BLOCK_BYTES = 1 << 20
_MAX_SHARD_BYTES = 1 << 28  # some are in memory at once
_MAX_SHARDS = 99_999


@dataclass(frozen=True, slots=True)
class Shard:
    """Lines that are translated together: `num_bytes` from `offset` on in the uncompressed file."""

    number: int
    first_line: int
    num_lines: int
    offset: int
    num_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Task:
    """A shard to be translated, with its bytes."""

    number: int
    first_line: int
    text: bytes


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


def cut(path: Path, num_shards: int, on_progress: Progress = unshown) -> list[Shard]:
    """Return shards of about as many bytes, cut between lines. If there are few lines, some are empty."""
    if not 1 <= num_shards <= _MAX_SHARDS:
        raise ConfigError(f"--shards {num_shards} is not valid; use 1 to {_MAX_SHARDS:,}")
    total = _num_bytes(path)
    shards: list[Shard] = []
    offset, line = 0, 1
    with _opened(path) as stream:
        for number in range(1, num_shards + 1):
            digest = hashlib.sha256()
            piece = _read_piece(stream, total * number // num_shards - offset, digest)
            shards.append(Shard(number, line, piece.num_lines, offset, piece.num_bytes, digest.hexdigest()))
            offset, line = offset + piece.num_bytes, line + piece.num_lines
            on_progress("cutting", offset, total)
    largest = max(shard.num_bytes for shard in shards)
    if largest > _MAX_SHARD_BYTES:
        raise ConfigError(
            f"{path}: a shard would have {largest:,} bytes, and at most {_MAX_SHARD_BYTES:,} are translated "
            f"in one piece; use --shards {num_shards * -(-2 * largest // _MAX_SHARD_BYTES)}"
        )
    return shards


def read_tasks(path: Path, shards: Iterable[Shard]) -> Iterator[Task]:
    """Yield shards with their bytes, in order; bytes that are not those that were cut are an error."""
    with _opened(path) as stream:
        position = 0
        for shard in shards:
            if stream.seekable():
                stream.seek(shard.offset)
            while not stream.seekable() and position < shard.offset:
                position += len(stream.read(min(_BLOCK_BYTES, shard.offset - position))) or shard.offset
            text = stream.read(shard.num_bytes)
            position = shard.offset + len(text)
            if hashlib.sha256(text).hexdigest() != shard.sha256:
                raise CorpusError(
                    f"{path}: lines {shard.first_line:,} to {shard.first_line + shard.num_lines - 1:,} have "
                    "changed since the file was cut into shards; bring back the file, or choose another --out"
                )
            yield Task(shard.number, shard.first_line, text)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as raw:
            if not stat.S_ISREG(path.stat().st_mode):
                raise CorpusError(f"{path}: is no regular file; shards are read from a file")
            yield decompressed(path, raw)
    except READ_ERRORS as error:
        reason = getattr(error, "strerror", None) or error
        raise CorpusError(f"{path}: cannot be read ({reason}); check the name, or copy it again") from error


def _num_bytes(path: Path) -> int:
    with _opened(path) as stream:
        if stream.seekable():
            return path.stat().st_size
        num_bytes = 0
        while block := stream.read(_BLOCK_BYTES):
            num_bytes += len(block)
        return num_bytes


@dataclass(frozen=True, slots=True)
class _Piece:
    num_bytes: int
    num_lines: int


def _read_piece(stream: BinaryIO, wanted: int, digest: _Digest) -> _Piece:
    """Read at least so many bytes, and on to the end of the line."""
    num_bytes = num_lines = 0
    block = b""
    while num_bytes < wanted and (block := stream.read(min(_BLOCK_BYTES, wanted - num_bytes))):
        num_bytes += len(block)
        num_lines += block.count(b"\n")
        digest.update(block)
    while block and not block.endswith(b"\n"):
        rest = stream.readline(_BLOCK_BYTES)
        num_bytes += len(rest)
        digest.update(rest)
        if not rest or rest.endswith(b"\n"):
            num_lines += 1  # the last line of a file may have no end
            break
    return _Piece(num_bytes, num_lines)
