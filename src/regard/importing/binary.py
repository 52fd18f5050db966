"""Reads a `model.bin` of CTranslate2, versions 1 to 6, with its own checks of every size in it.

| part      | content                                                                             |
|-----------|-------------------------------------------------------------------------------------|
| head      | version; from 2 on the name of the specification and its revision                    |
| variables | their number; for each its name, shape, type (before 4 the size of an item), numbers |
| aliases   | from 3 on: their number; for each its name and that of the variable that it means    |
"""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from regard.contract import Floats
from regard.errors import ForeignModelError
from regard.importing.weights import as_floats

_LAST_VERSION = 6
_MAX_VARIABLES = 100_000
_HALVES_OF_FLOATS = np.dtype("<u2")  # bfloat16: the upper half of 32 bits
_TYPES: list[np.dtype[Any]] = [np.dtype(one) for one in ("<f4", "<i1", "<i2", "<i4", "<f2", "<u2")]
_TYPE_BY_SIZE = {4: 0, 1: 1, 2: 2}
_OLD_SCALE = 1000.0  # of 16 bits without a scale of their own


@dataclass(frozen=True)
class Variables:
    """The variables of a model by name, and which of them have been asked for."""

    path: Path
    version: int
    spec: str
    revision: int
    arrays: dict[str, NDArray[Any]]
    asked: set[str] = field(default_factory=set)

    def refuse(self, why: str) -> NoReturn:
        """Raise an error that names the file."""
        raise ForeignModelError(f"{self.path}: {why}") from None

    def number(self, name: str, default: float) -> float:
        """Return an attribute, a single number."""
        self.asked.add(name)
        found = self.arrays.get(name)
        if found is None:
            return default
        if found.size != 1:
            self.refuse(f"{name} is no number")
        return float(as_floats(f"{self.path}: {name}", found).reshape(()))

    def word(self, name: str, default: str) -> str:
        """Return an attribute that is a text, as bytes."""
        self.asked.add(name)
        found = self.arrays.get(name)
        return default if found is None else found.tobytes().decode("utf-8", "replace")

    def floats(self, name: str, *shape: int) -> Floats:
        """Return a variable of this shape as 32-bit numbers; whole numbers are divided by their scale."""
        if name not in self.arrays:
            self.refuse(f"has no {name}; is it a whole Transformer?")
        array = self.arrays[name]
        if array.shape != shape:
            self.refuse(f"{name} has shape {array.shape} and should have {shape}")
        self.asked.add(name)
        if array.dtype.kind == "i":
            array = array / self._scale(name, array)
        elif array.dtype == _HALVES_OF_FLOATS:
            array = (array.astype(np.uint32) << 16).view(np.float32)
        return as_floats(f"{self.path}: {name}", array)

    def _scale(self, name: str, array: NDArray[Any]) -> Floats:
        """Return what whole numbers are divided by: one number, or one for each row."""
        scale = self.arrays.get(f"{name}_scale")
        if scale is None and array.dtype.itemsize == 2:
            return np.full((), _OLD_SCALE, np.float32)
        if scale is None or scale.size not in (1, len(array)) or not scale.all():
            self.refuse(f"{name}_scale is missing, of another shape or 0")
        self.asked.add(f"{name}_scale")
        return as_floats(f"{self.path}: {name}_scale", scale).reshape(-1, *(1 for _ in array.shape[1:]))


def read_variables(path: Path, data: NDArray[np.uint8]) -> Variables:
    """Return the variables of a file, without a copy of their numbers."""
    reader = _Reader(path, data)
    version = reader.number(4)
    if not 0 < version <= _LAST_VERSION:
        reader.refuse(f"is no model of CTranslate2, or of a newer version ({version})")
    spec, revision = (reader.text(), reader.number(4)) if version >= 2 else ("", 1)
    arrays: dict[str, NDArray[Any]] = {}
    for _ in range(reader.count()):
        name = reader.text()
        shape = tuple(reader.number(4) for _ in range(reader.number(1)))
        kind, num_bytes = reader.number(1), reader.number(4)
        if version < 4:
            num_bytes *= kind
            kind = _TYPE_BY_SIZE.get(kind, len(_TYPES))
        if kind >= len(_TYPES) or math.prod(shape) * _TYPES[kind].itemsize != num_bytes or len(shape) > 4:
            reader.refuse(f"the size of {name!r:.60} is not that of its numbers")
        arrays[name] = reader.take(num_bytes).view(_TYPES[kind]).reshape(shape)
    if version >= 3:
        for _ in range(reader.count()):
            alias, name = reader.text(), reader.text()
            for end in ("", "_scale"):
                if name + end in arrays:
                    arrays.setdefault(alias + end, arrays[name + end])
    return Variables(path, version, spec, revision, arrays)


@dataclass
class _Reader:
    path: Path
    data: NDArray[np.uint8]
    at: int = 0

    def refuse(self, why: str) -> NoReturn:
        raise ForeignModelError(f"{self.path}: {why}") from None

    def take(self, size: int) -> NDArray[np.uint8]:
        if size > len(self.data) - self.at:
            self.refuse(f"ends early, at byte {len(self.data):,}; was it copied as a whole?")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size).tobytes(), "little")

    def count(self) -> int:
        found = self.number(4)
        if found > _MAX_VARIABLES:
            self.refuse(f"declares {found:,} variables; it may be damaged")
        return found

    def text(self) -> str:
        return self.take(self.number(2)).tobytes().rstrip(b"\0").decode("utf-8", "replace")
