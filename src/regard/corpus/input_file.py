"""What every format stands on: a user's file read in bounded pieces, and the pairs that come out of it."""

import codecs
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple, Self, cast

from regard.contract import Features
from regard.corpus.language_codes import Languages
from regard.errors import CorpusError
from regard.files import READ_ERRORS, decompressed

# No sentence is this long. Without a limit a single hostile line would be held in memory whole.
MAX_LINE_BYTES = 1 << 20
_BLOCK_BYTES = 1 << 16

_COMPRESSION_NAMES = {".gz": "gzip", ".xz": "xz", ".zst": "zstd"}
# The mark of UTF-32-LE begins with that of UTF-16-LE, so it is tried first.
_FOREIGN_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


class Pair(NamedTuple):
    """Two sides of one sentence, and where they stand: the line, or the row in Parquet, counted from 1.

    The source may be features; `source` is then a text of letters that only the same features have.
    """

    line: int
    source: str
    target: str
    features: Features | None = None


class InputFile:
    """One of the user's files, open: its blocks or lines, of bounded size, and errors that say where."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.raw = path.open("rb")
        except OSError as error:
            raise CorpusError(f"{path}: cannot be opened ({error.strerror}); check permissions") from error
        # Every stream that decompressed() returns has read1, which BinaryIO does not promise.
        self._stream = cast(BufferedReader, decompressed(path, cast(BinaryIO, self.raw)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stream.close()
        self.raw.close()

    def position(self) -> int:
        """Return how many bytes on disk have been consumed."""
        return self.raw.tell()

    def error(self, line: int, problem: str) -> CorpusError:
        """Return an error about one line of this file, to be raised by whoever found it."""
        return CorpusError(f"{self.path}:{line}: {problem}")

    def blocks(self) -> Iterator[bytes]:
        """Yield the uncompressed bytes, at most 64 KiB at a time."""
        num_bytes = num_lines = 0
        while True:
            try:
                # Where a damaged file makes read() raise, it loses what it had gathered; read1() does not.
                block = self._stream.read1(_BLOCK_BYTES)
                if not block and self.path.suffix.lower() == ".zst" and not _zstd_is_whole(self.raw):
                    raise EOFError("the file ends before its last frame does")
            except READ_ERRORS as error:
                raise self._damaged(error, num_bytes, num_lines) from error
            if not block:
                return
            num_bytes += len(block)
            num_lines += block.count(b"\n")
            yield block

    def lines(self) -> Iterator[str]:
        """Yield the lines, ended by `\\n` or `\\r\\n` and by nothing else; bytes that are not UTF-8 become
        lone surrogates (U+DC80 to U+DCFF), so that a later check can name the line.
        """
        num_lines = 0
        rest = b""
        for block in self.blocks():
            end = block.rfind(b"\n")
            if end < 0:
                rest += block
                if len(rest) > MAX_LINE_BYTES + 1:  # one more, for a \r whose \n is still to come
                    raise self._too_long(num_lines + 1)
                continue
            # Many lines are decoded in one go: four times as fast as one by one, and the same text,
            # for \n is never part of a longer sequence in UTF-8, valid or not.
            lines = self._decoded(rest + block[:end], num_lines)
            rest = block[end + 1 :]
            yield from lines
            num_lines += len(lines)
        if rest:
            yield from self._decoded(rest, num_lines)

    def _decoded(self, lines: bytes, num_before: int) -> list[str]:
        """Return whole lines as text; the last one comes without its `\\n`."""
        if num_before == 0:
            for mark, encoding in _FOREIGN_MARKS:
                if lines.startswith(mark):
                    raise self.error(
                        1, f"is {encoding}, not UTF-8; convert it: iconv -f {encoding} -t UTF-8 OLD > NEW"
                    )
            lines = lines.removeprefix(codecs.BOM_UTF8)
        # Only the first line can be long: the others lie within one block.
        first, _, _ = lines.partition(b"\n")
        if len(first.removesuffix(b"\r")) > MAX_LINE_BYTES:
            raise self._too_long(num_before + 1)
        text = lines.decode("utf-8", "surrogateescape")
        return text.removesuffix("\r").replace("\r\n", "\n").split("\n")

    def _too_long(self, line: int) -> CorpusError:
        return self.error(
            line, f"longer than {MAX_LINE_BYTES:,} bytes; put one sentence on each line, or remove this line"
        )

    def _damaged(self, error: Exception, num_bytes: int, num_lines: int) -> CorpusError:
        compression = _COMPRESSION_NAMES.get(self.path.suffix.lower())
        if compression is None:
            return CorpusError(f"{self.path}: cannot be read after line {num_lines} ({error})")
        if num_bytes == 0:
            return CorpusError(
                f"{self.path}: not a valid {compression} file ({error}); fetch it again or correct its ending"
            )
        return CorpusError(f"{self.path}: damaged after line {num_lines} ({error}); fetch it again")


@dataclass(frozen=True, slots=True)
class Format:
    """How to read one corpus: its languages, and a function from open files to pairs.

    The function counts in the given counter, by reason, the entries that it reads over.
    """

    languages: Languages
    pairs: Callable[[Sequence[InputFile], Counter[str]], Iterator[Pair]]
    place: str = "line"
    feature_size: int | None = None  # numbers in each vector, of sources that are features


def quoted(names: Iterable[str]) -> str:
    """Return names from a file for use in a message: in quotes, on one line, and not too many."""
    shown = [repr(name if len(name) <= 40 else name[:40] + "…") for name in names]
    return ", ".join(shown[:10]) + (f" and {len(shown) - 10} more" if len(shown) > 10 else "")


def _zstd_is_whole(raw: BufferedReader) -> bool:
    """Return whether the file ends where a frame ends (RFC 8878, section 3.1).

    The zstandard package takes the end of a truncated file for the end of the text. Only the headers of
    blocks are read here; the position is left at the end, where the reader had come anyway.
    """
    size = raw.seek(0, os.SEEK_END)
    raw.seek(0)

    def number(num_bytes: int) -> int:
        return int.from_bytes(raw.read(num_bytes), "little")

    while raw.tell() < size:
        magic = number(4)
        if magic & 0xFFFFFFF0 == 0x184D2A50:  # a frame to be skipped
            raw.seek(number(4), os.SEEK_CUR)
            continue
        descriptor = number(1)
        single_segment = descriptor >> 5 & 1
        content_size = (single_segment, 2, 4, 8)[descriptor >> 6]
        dictionary_size = (0, 1, 2, 4)[descriptor & 3]
        raw.seek(1 - single_segment + dictionary_size + content_size, os.SEEK_CUR)
        last = 0
        while not last and raw.tell() < size:
            block = number(3)
            last = block & 1
            repeats_one_byte = (block >> 1 & 3) == 1
            raw.seek(1 if repeats_one_byte else block >> 3, os.SEEK_CUR)
        if not last:
            return False
        raw.seek(4 * (descriptor >> 2 & 1), os.SEEK_CUR)
    return raw.tell() == size


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, all of them UTF-8."""
    if not path.is_file():
        reason = "is a folder; name the file in it" if path.is_dir() else "no such file; check the name"
        raise CorpusError(f"{path}: {reason}")
    with InputFile(path) as file:
        for number, text in enumerate(file.lines(), 1):
            check_utf8(path, number, text)
            yield text


def check_utf8(path: Path, line: int, text: str) -> None:
    """Raise an error for a line with bytes that are not UTF-8, which are read as half characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CorpusError(f"{path}:{line}: is not UTF-8; convert the file") from None
