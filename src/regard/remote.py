"""Files behind URLs such as `s3://bucket/in.fr`, through fsspec, the extra `[remote]`.

`Remote` has as much of the interface of a `Path` as reading, writing and shards need. A file is put there
whole: it is written on this machine first, and appears when all of it has arrived.
"""

import contextlib
import errno
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from regard.errors import ConfigError, MissingExtraError

_URL = re.compile(r"([a-z][a-z0-9+.-]+)://")


@dataclass(frozen=True, slots=True)
class RemoteStatus:
    """The size of a file and when it was written, in nanoseconds, 0 if the place does not say."""

    st_size: int
    st_mtime_ns: int


@dataclass(frozen=True, slots=True)
class Remote:
    """A file or a folder behind a URL. Every failure is an OSError or one of ours."""

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> "Remote":
        return Remote(f"{self.url.rstrip('/')}/{name}")

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return PurePosixPath(self.url).name

    @property
    def suffix(self) -> str:
        """The ending, with its dot."""
        return PurePosixPath(self.url).suffix

    def with_suffix(self, suffix: str) -> "Remote":
        """Return the URL with another ending."""
        return Remote(self.url.removesuffix(self.suffix) + suffix)

    def exists(self) -> bool:
        """Tell whether there is a file or a folder."""
        with self._system() as (system, path):
            return bool(system.exists(path))

    def is_file(self) -> bool:
        """Tell whether there is a file."""
        with self._system() as (system, path):
            return bool(system.isfile(path))

    def is_dir(self) -> bool:
        """Tell whether there is a folder."""
        with self._system() as (system, path):
            return bool(system.isdir(path))

    def stat(self) -> RemoteStatus:
        """Return the size of a file and when it was written."""
        with self._system() as (system, path):
            seconds = 0.0
            with contextlib.suppress(NotImplementedError):
                seconds = system.modified(path).timestamp()
            return RemoteStatus(int(system.info(path)["size"]), int(seconds * 1e9))

    def open(self, mode: str = "rb") -> IO[bytes]:
        """Open a file for reading."""
        with self._system() as (system, path):
            stream: IO[bytes] = system.open(path, mode)
            return stream

    def read_text(self, encoding: str) -> str:
        """Return what is in a file."""
        with self._system() as (system, path):
            return str(system.cat_file(path), encoding)

    def iterdir(self) -> "Iterator[Remote]":
        """Yield what is in a folder; a folder that is not there is empty."""
        with self._system() as (system, path):
            found = system.ls(path, detail=False) if system.isdir(path) else []
        for one in found:
            yield self / PurePosixPath(one).name

    def put(self, file: Path) -> None:
        """Put a file of this machine there. It appears whole, in place of what was there before."""
        with self._system() as (system, path):
            system.put_file(str(file), path)

    @contextlib.contextmanager
    def _system(self) -> Iterator[tuple[Any, str]]:
        """Give the file system of fsspec and the path in it."""
        try:
            import fsspec
        except ImportError:
            raise MissingExtraError(self.url, "remote") from None
        try:
            system, path = fsspec.core.url_to_fs(self.url)
            system.invalidate_cache()  # others write there, too
            yield system, path
        except (ImportError, ValueError) as error:  # no package for this kind of URL, or no such kind
            raise ConfigError(f"{self.url}: cannot be used ({' '.join(str(error).split()):.200})") from error
        except FileNotFoundError as error:
            raise FileNotFoundError(errno.ENOENT, "no such file", self.url) from error
        except Exception as error:  # every store has errors of its own
            reason = " ".join(str(error).split())
            raise OSError(errno.EIO, f"{type(error).__name__}: {reason:.200}", self.url) from error


Place = Path | Remote


def place(name: str) -> Place:
    """Return the file or folder of this name, which may be a URL."""
    return Remote(name) if _URL.match(name) else Path(name)
