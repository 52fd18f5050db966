"""Arrays in JSON: little-endian numbers, deflated, in base64."""

import base64
import binascii
import math
import zlib
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from regard.contract import Floats

_MAX_VALUES = 11_000_000  # of one array: 200 x 200 pieces and 16 x 16 heads
_UNSEEN = 65535  # the code of what may not be looked at, or is too small for a float
_MOST_CODE = _UNSEEN - 1
_LEAST_LOG = -100.0  # a weight of 4e-44: a wider range would cost those near 1 their digits


class Array(BaseModel):
    """Numbers in row-major order: `data` is base64 of zlib of little-endian `f2`, `f4` or, of `u2`, codes.

    A code stands for the logarithm -scale * code * code, and 65535 for minus infinity. So in two bytes
    weights are exact to 1e-4 and logarithms to a few thousandths; what is below -100 is written as -100.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    dtype: Literal["f2", "f4", "u2"]
    shape: list[int] = Field(max_length=4)
    scale: float | None = None
    """Of `u2` only."""
    data: str

    @classmethod
    def of(cls, values: NDArray[Any], dtype: Literal["f2", "f4"] = "f2") -> "Array":
        """Pack numbers."""
        with np.errstate(over="ignore"):  # beyond 65,504 a number becomes infinite, and is refused on reading
            plain = np.ascontiguousarray(values).astype(f"<{dtype}")
        return cls(dtype=dtype, shape=list(plain.shape), data=_packed(plain.tobytes()))

    @classmethod
    def of_logs(cls, values: NDArray[Any]) -> "Array":
        """Pack logarithms of weights, none above 0; minus infinity for what may not be looked at."""
        seen = np.isfinite(values)
        values = np.maximum(values, _LEAST_LOG)
        lowest = float(values.min(where=seen, initial=-1e-3))
        scale = -lowest / _MOST_CODE**2
        codes = np.full(values.shape, _UNSEEN, "<u2")
        codes[seen] = np.rint(np.sqrt(np.maximum(-values[seen], 0) / scale))
        return cls(dtype="u2", shape=list(codes.shape), scale=scale, data=_packed(codes.tobytes()))

    def unpack(self) -> Floats:
        """Return the numbers; a ValueError says what is wrong with them."""
        if any(size < 0 for size in self.shape) or math.prod(self.shape) > _MAX_VALUES:
            raise ValueError(f"an array of shape {self.shape} cannot be")
        wanted = math.prod(self.shape) * np.dtype(self.dtype).itemsize
        try:
            inflate = zlib.decompressobj()
            data = inflate.decompress(base64.b64decode(self.data, validate=True), wanted + 1)
        except (binascii.Error, zlib.error) as error:
            raise ValueError(f"its numbers are damaged ({error})") from None
        if len(data) == wanted and (not inflate.eof or inflate.unused_data):
            raise ValueError("its numbers are damaged (their end is missing, or is not the end)")
        if len(data) != wanted:
            raise ValueError(f"{len(data)} bytes of numbers, and a shape of {self.shape} needs {wanted}")
        plain = np.frombuffer(data, f"<{self.dtype}").reshape(self.shape)
        if self.dtype != "u2":
            return plain.astype(np.float32)
        if self.scale is None or not 0 < self.scale < 1:
            raise ValueError(f"a scale of {self.scale} cannot be")
        logs = (-self.scale * plain.astype(np.float64) ** 2).astype(np.float32)
        return np.where(plain == _UNSEEN, np.float32(-np.inf), logs)


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()
