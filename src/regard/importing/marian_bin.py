"""Reads the arrays of a `.bin` file of Marian, each when it is asked for, with checks of every size in it.

The file has a version, a header for each array, then names, shapes and numbers. Matrices in 8 or 16 bits have
their axes exchanged there, embeddings do not; a factor by which the numbers were multiplied follows them.
"""

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from regard.contract import Floats
from regard.errors import ForeignModelError
from regard.importing.folder import Folder
from regard.importing.weights import as_floats

_VERSION = struct.pack("<Q", 1)
_HEADER = struct.Struct("<4Q")  # lengths of name, type, shape and numbers
_MAX_ARRAYS = 100_000
_FLOATS = {0x404: "<f4", 0x402: "<f2", 0x101: "<i1"}
_SCALED = {0x10001: "<i1", 0x10002: "<i2", 0x4101: "<i1", 0x4102: "<i2"}  # of Marian, and of Bergamot's fork


def is_marian_bin(path: Path) -> bool:
    """Tell whether a file begins as such a file does."""
    try:
        with path.open("rb") as file:
            return file.read(len(_VERSION)) == _VERSION
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class _Array:
    kind: int
    shape: tuple[int, ...]
    first: int
    size: int


class MarianBin:
    """The arrays of a file by name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data = Folder(path.parent).data(path.name)
        self._at = len(_VERSION)
        count = self._number("<Q")
        if count > _MAX_ARRAYS:
            self.refuse(f"has {count:,} arrays; is it a model of Marian?")
        headers = [_HEADER.unpack(self._bytes(_HEADER.size)) for _ in range(count)]
        names = [self._bytes(header[0]).rstrip(b"\0").decode("utf-8", "replace") for header in headers]
        shapes = [struct.unpack(f"<{header[2]}i", self._bytes(4 * header[2])) for header in headers]
        self._bytes(self._number("<Q"))  # so that the numbers begin at a multiple of 256
        self._arrays: dict[str, _Array] = {}
        for name, shape, (_, kind, _, size) in zip(names, shapes, headers, strict=True):
            self._arrays[name] = _Array(kind, shape, self._at, size)
            self._skip(size)
        self.names = set(self._arrays)

    def refuse(self, why: str) -> NoReturn:
        """Raise an error that names the file."""
        raise ForeignModelError(f"{self.path}: {why}") from None

    def raw(self, name: str) -> NDArray[Any]:
        """Return an array of numbers."""
        if name not in self._arrays:
            self.refuse(f"has no {name!r:.80}")
        array = self._arrays[name]
        scaled = _SCALED.get(array.kind)
        dtype = np.dtype(scaled or _FLOATS.get(array.kind, "V1"))
        if dtype.kind == "V":
            self.refuse(f"{name!r:.60} has type {array.kind:#x}; convert the model with --gemm-type float32")
        count = math.prod(array.shape)
        end = count * dtype.itemsize
        if min(array.shape, default=1) < 0 or end + 4 * (scaled is not None) > array.size:
            self.refuse(f"the size of {name!r:.60} is not that of its numbers")
        data = self._data[array.first : array.first + array.size]
        numbers = np.frombuffer(data[:end].tobytes(), dtype)
        if scaled is None:
            return numbers.reshape(array.shape)
        factor = np.frombuffer(data[end : end + 4].tobytes(), "<f4")[0]
        if not (np.isfinite(factor) and factor > 0) or len(array.shape) != 2:
            self.refuse(f"{name!r:.60} is no matrix with a factor")
        rows, columns = array.shape
        whole = numbers.reshape(rows, columns) if "Wemb" in name else numbers.reshape(columns, rows).T
        found: NDArray[Any] = whole.astype(np.float32) / factor
        return found

    def floats(self, name: str, *shape: int) -> Floats:
        """Return an array of this shape as 32-bit numbers."""
        array = self.raw(name)
        if array.shape != shape:
            self.refuse(f"{name} has shape {array.shape} and should have {shape}")
        return as_floats(f"{self.path}: {name}", array)

    def _number(self, form: str) -> int:
        number: int = struct.unpack(form, self._bytes(struct.calcsize(form)))[0]
        return number

    def _bytes(self, count: int) -> bytes:
        """Return the next bytes."""
        first = self._at
        self._skip(count)
        return self._data[first : self._at].tobytes()

    def _skip(self, count: int) -> None:
        if count > len(self._data) - self._at:
            self.refuse("ends too early; is it complete?")
        self._at += count
