"""Reads the arrays of an `.npz` file, each when it is asked for, with its own checks of every size in it."""

import io
import math
from pathlib import Path
from typing import Any, NoReturn

from numpy.lib import format as npy
from numpy.typing import NDArray

from regard.contract import Floats
from regard.errors import ForeignModelError
from regard.importing.folder import Package, open_archive
from regard.importing.weights import as_floats

_MAX_HEADER = 4096
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class Npz:
    """The arrays of a file by name. None of them is a pickle."""

    def __init__(self, path: Path) -> None:
        archive = open_archive(path)
        self.path = path
        self._files = Package(path, archive, "")
        self.names = {one.removesuffix(".npy") for one in archive.namelist()}

    def refuse(self, why: str) -> NoReturn:
        """Raise an error that names the file."""
        raise ForeignModelError(f"{self.path}: {why}") from None

    def raw(self, name: str) -> NDArray[Any]:
        """Return an array of numbers."""
        if name not in self.names:
            self.refuse(f"has no {name!r:.80}")
        data = self._files.data(f"{name}.npy")
        stream = io.BytesIO(data[:_MAX_HEADER].tobytes())
        try:
            shape, by_columns, dtype = _HEADERS[npy.read_magic(stream)](stream)
        except Exception as error:  # of numpy, and of ast, which reads the header
            self.refuse(f"{name!r:.60} has a header that is none ({error!s:.60})")
        numbers = data[stream.tell() :]
        if dtype.kind not in "fiu" or math.prod(shape) * dtype.itemsize != len(numbers):
            self.refuse(f"the size of {name!r:.60} is not that of its numbers")
        return numbers.view(dtype).reshape(shape, order="F" if by_columns else "C")

    def floats(self, name: str, *shape: int) -> Floats:
        """Return an array of this shape as 32-bit numbers."""
        array = self.raw(name)
        if array.shape != shape:
            self.refuse(f"{name} has shape {array.shape} and should have {shape}")
        return as_floats(f"{self.path}: {name}", array)
