"""Files that appear whole or not at all, and compressed files read and written like any other."""

import contextlib
import gzip
import io
import lzma
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, BinaryIO, cast

from regard.errors import OutputError

COMPRESSIONS = (".gz", ".xz", ".zst")


def without_compression(path: Path) -> Path:
    """Return the path as it would be named uncompressed: `a.fr.gz` gives `a.fr`."""
    return path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path


def decompressed(path: Path, raw: BinaryIO) -> BinaryIO:
    """Return a stream of the uncompressed bytes of `raw`, by the ending of `path`. Nothing is read yet."""
    match path.suffix.lower():
        case ".gz":
            return cast(BinaryIO, gzip.GzipFile(fileobj=raw, mode="rb"))
        case ".xz":
            return cast(BinaryIO, lzma.LZMAFile(raw, "rb"))
        case ".zst":
            return io.BufferedReader(cast(io.RawIOBase, _zstd_reader(raw)), buffer_size=1 << 20)
    return raw


def _zstd_reader(raw: BinaryIO) -> object:
    try:
        from compression import zstd  # Python 3.14 and later
    except ImportError:
        import zstandard

        return zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    return zstd.ZstdFile(raw)


def compressed(path: Path, raw: BinaryIO) -> BinaryIO:
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
def writing(*paths: Path) -> Iterator[list[IO[bytes]]]:
    """Open files for writing that appear, all of them and whole, when the block ends well.

    Each is written beside its place under a temporary name, synced and then renamed;
    if the block raises, the temporary files are removed and what stood there before still stands.
    """
    temporaries: list[Path] = []
    with contextlib.ExitStack() as stack, _explained(paths[0]):
        stack.callback(_remove, temporaries)
        raws, streams = [], []
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
            temporaries.append(Path(name))
            raw = stack.enter_context(os.fdopen(handle, "wb"))
            raws.append(raw)
            streams.append(compressed(path, cast(BinaryIO, raw)))
        yield cast(list[IO[bytes]], streams)
        for raw, stream in zip(raws, streams, strict=True):
            if stream is not raw:
                stream.close()
            raw.flush()
            os.fsync(raw.fileno())
        umask = os.umask(0)
        os.umask(umask)
        for temporary, path in zip(temporaries, paths, strict=True):
            temporary.chmod(0o666 & ~umask)  # mkstemp makes files nobody else can read
            temporary.replace(path)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def writing_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder that takes the place of `path`, whole, when the block ends well."""
    with _explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
        try:
            yield temporary
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o777 & ~umask)
            if path.is_dir():
                shutil.rmtree(path)
            temporary.replace(path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn a failure of the file system into one line that names the file."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"{path}: cannot be written ({reason}); nothing was changed there") from error
