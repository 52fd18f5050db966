"""Files that appear whole or not at all, and compressed files read and written like any other."""

import contextlib
import gzip
import io
import lzma
import os
import re
import secrets
import shutil
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeVar, cast

from regard.errors import ConfigError, CorpusError, OutputError
from regard.remote import Place, Remote

try:
    from compression.zstd import ZstdError  # Python 3.14 and later
except ImportError:
    from zstandard import ZstdError

AnyPlace = TypeVar("AnyPlace", bound=Place)

COMPRESSIONS = (".gz", ".xz", ".zst")

# Text compresses to a third or a tenth, seldom to a fiftieth; a file made to do harm to a hundred-thousandth.
MAX_EXPANSION = 100
_max_expansion = MAX_EXPANSION
_ALWAYS_ALLOWED_BYTES = 16 << 20

_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{8}\.part")  # what _beside() gives

# gzip.BadGzipFile is an OSError; the others are what each library raises for bytes that make no sense.
READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, ZstdError)


def without_compression(path: AnyPlace) -> AnyPlace:
    """Return the path as it would be named uncompressed: `a.fr.gz` gives `a.fr`."""
    return cast(AnyPlace, path.with_suffix("")) if path.suffix.lower() in COMPRESSIONS else path


@contextlib.contextmanager
def expansion_allowed(factor: int) -> Iterator[None]:
    """Let compressed files expand to `factor` times their size, in the whole process, within a `with`."""
    global _max_expansion
    if factor < 1:
        raise ConfigError(f"a compressed file cannot expand to {factor} times its size; give 1 or more")
    before, _max_expansion = _max_expansion, factor
    try:
        yield
    finally:
        _max_expansion = before


def check_expansion(path: Place) -> None:
    """Raise CorpusError for a compressed file that expands too far, before any work is spent on its lines."""
    if path.suffix.lower() not in COMPRESSIONS:
        return
    with contextlib.suppress(*READ_ERRORS), path.open("rb") as raw:  # the reader tells at which line
        stream = decompressed(path, cast(BinaryIO, raw))
        while stream.read(1 << 20):
            pass


def decompressed(path: Place, raw: BinaryIO) -> BinaryIO:
    """Return a stream of the uncompressed bytes of `raw`, by the ending of `path`. Nothing is read yet.

    Reading raises CorpusError where a regular file expands to more than `expansion_allowed` allows.
    """
    match path.suffix.lower():
        case ".gz":
            reader: Any = gzip.GzipFile(fileobj=raw, mode="rb")
            read = reader.readinto1
        case ".xz":
            reader = lzma.LZMAFile(raw, "rb")  # noqa: SIM115
            read = reader.readinto1
        case ".zst":
            reader = _zstd_reader(raw)
            read = reader.readinto
        case _:
            return raw
    return cast(BinaryIO, io.BufferedReader(_Bounded(path, raw, reader, read), buffer_size=1 << 20))


class _Bounded(io.RawIOBase):
    """The bytes that a reader gives by `read`, up to a limit that depends on the size of the file."""

    def __init__(self, path: Place, raw: BinaryIO, reader: Any, read: Callable[[Any], int]) -> None:
        self._path = path
        self._reader = reader
        self._read = read
        self._num_bytes = 0
        if isinstance(path, Remote):
            size, self._has_size = path.stat().st_size, True
        else:
            status = os.fstat(raw.fileno())
            size, self._has_size = status.st_size, stat.S_ISREG(status.st_mode)
        self._limit = max(_max_expansion * size, _ALWAYS_ALLOWED_BYTES)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        num_bytes = self._read(buffer)
        self._num_bytes += num_bytes
        if self._has_size and self._num_bytes > self._limit:
            raise CorpusError(
                f"{self._path}: expands to more than {self._limit:,} bytes, {_max_expansion} times its size; "
                f"if you know that its text is real, allow more with --max-expansion {10 * _max_expansion}"
            )
        return num_bytes

    def close(self) -> None:
        self._reader.close()
        super().close()


def _zstd_reader(raw: BinaryIO) -> object:
    try:
        from compression import zstd  # Python 3.14 and later
    except ImportError:
        import zstandard

        return zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    return zstd.ZstdFile(raw)


def compressed(path: Place, raw: BinaryIO) -> BinaryIO:
    """Return a stream that writes to `raw` in the compression named by the ending of `path`.

    The same bytes in give the same bytes out: no time stamp or file name is stored.
    """
    match path.suffix.lower():
        case ".gz":
            return cast(
                BinaryIO, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=6)
            )
        case ".xz":
            return cast(BinaryIO, lzma.LZMAFile(raw, "wb"))
        case ".zst":
            try:
                from compression import zstd
            except ImportError:
                import zstandard

                return cast(BinaryIO, zstandard.ZstdCompressor().stream_writer(raw, closefd=False))
            return cast(BinaryIO, zstd.ZstdFile(raw, "wb"))
    return raw


@contextlib.contextmanager
def writing(*paths: Place) -> Iterator[list[IO[bytes]]]:
    """Open files for writing that appear, all of them and whole, when the block ends well.

    Each is written beside its place under a temporary name, synced and then renamed; if the block raises,
    the temporary files are removed and what stood there before still stands. A file that is replaced keeps
    its mode and, where we may set it, its owner; a symbolic link is followed. What is no regular file, such
    as a device or a pipe, is written to directly. What has a URL is written here and then put there.
    """
    temporaries: list[Path] = []
    places: list[Place] = []
    renamed: list[tuple[Path, Place]] = []
    for path in paths:
        if isinstance(path, Remote):
            places.append(path)
            continue
        if path.is_dir():  # before the first of several is in its place
            raise OutputError(f"{path}: cannot be written (it is a folder); name a file")
        # What is no regular file may have no other name: /dev/stdout is a link to `pipe:[4711]`.
        is_special = path.exists() and not path.is_file()
        places.append(path.resolve() if path.is_symlink() and not is_special else path)
    with contextlib.ExitStack() as cleaning, _explained(paths[0]):
        cleaning.callback(_remove, temporaries)
        with contextlib.ExitStack() as closing:
            raws: list[IO[bytes]] = []
            streams: list[IO[bytes]] = []
            for path, place in zip(paths, places, strict=True):
                if isinstance(place, Remote):
                    temporaries.append(_beside(Path(tempfile.gettempdir()) / place.name))
                    raws.append(closing.enter_context(temporaries[-1].open("xb")))
                    renamed.append((temporaries[-1], place))
                elif place.exists() and not place.is_file():
                    raws.append(closing.enter_context(place.open("wb")))
                else:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    temporaries.append(_beside(place))  # known before it is there: a signal may come
                    raws.append(closing.enter_context(temporaries[-1].open("xb")))
                    _keep_mode(place, raws[-1])
                    renamed.append((temporaries[-1], place))
                streams.append(compressed(path, cast(BinaryIO, raws[-1])))
                closing.callback(_close_quietly, streams[-1])
            yield streams
            for raw, stream in zip(raws, streams, strict=True):
                if stream is not raw:
                    stream.close()
                raw.flush()
                if stat.S_ISREG(os.fstat(raw.fileno()).st_mode):  # a pipe cannot be synced
                    os.fsync(raw.fileno())
        # Closed before they are renamed: some systems do not rename open files.
        for temporary, place in renamed:
            if isinstance(place, Remote):
                place.put(temporary)
            else:
                temporary.replace(place)


def _keep_mode(place: Path, new: IO[bytes]) -> None:
    """Give a new file the mode and the owner of the one it will replace, if there is one."""
    if not place.exists():
        return
    old = place.stat()
    if hasattr(os, "fchown"):
        with contextlib.suppress(PermissionError):
            os.fchown(new.fileno(), old.st_uid, old.st_gid)
    if hasattr(os, "fchmod"):
        os.fchmod(new.fileno(), old.st_mode & 0o7777)


def refuse_to_replace(outputs: Iterable[Place | None], inputs: Iterable[Place | None]) -> None:
    """Raise an error if a file to be written is one of those to be read; None is no file."""
    for output in filter(None, outputs):
        for input in filter(None, inputs):
            is_same = output == input
            if isinstance(output, Path) and isinstance(input, Path):
                is_same = output.exists() and input.exists() and output.samefile(input)
            if is_same:
                raise OutputError(f"{output}: is read by this command; name another file to write to")


def _close_quietly(stream: IO[bytes]) -> None:
    """Close a stream that may already have failed; its file is about to be removed."""
    with contextlib.suppress(OSError, ValueError):
        stream.close()


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):  # it may never have been made
            path.unlink()


@contextlib.contextmanager
def writing_folder(path: Path, mark: str) -> Iterator[Path]:
    """Give a temporary folder that takes the place of `path`, whole, when the block ends well.

    A folder that stands there already is replaced only if it holds the file `mark`, that is, if it is one
    of ours, or if it is empty; anything else is somebody's work.
    """
    if path.exists() and not (path / mark).is_file() and not (path.is_dir() and not any(path.iterdir())):
        raise OutputError(f"{path}: exists and was not written by regard; choose another name, or remove it")
    with _explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = _beside(path)
        old = temporary.with_suffix(".old")
        try:
            temporary.mkdir()
            yield temporary
            if path.exists():
                path.rename(old)
            try:
                temporary.rename(path)
            except OSError:
                if old.exists():
                    old.rename(path)
                raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            if path.exists():
                shutil.rmtree(old, ignore_errors=True)


def is_unfinished(path: Path) -> bool:
    """Return whether this is the temporary file of a process that is still writing it, or was killed."""
    return _UNFINISHED.fullmatch(path.name) is not None


def _beside(path: Path) -> Path:
    """Return a name in the same folder that nothing has."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")


@contextlib.contextmanager
def _explained(path: Place) -> Iterator[None]:
    """Turn a failure of the file system into one line that names the file."""
    try:
        yield
    except BrokenPipeError:  # no file, but the reader of what is printed meanwhile
        raise
    except OSError as error:
        reason, where = error.strerror or str(error), str(error.filename or path)
        named = path if where.endswith(".part") else where
        raise OutputError(f"{named}: cannot be written ({reason}); choose another place") from error
