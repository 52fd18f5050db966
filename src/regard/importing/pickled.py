"""Reads the tensors of a `pytorch_model.bin` without running anything in it, and without torch.

Such a file is a zip archive of raw numbers with a pickle that says which tensor is where. A pickle is a
program; this module interprets the few of its opcodes that a state dict needs and refuses all others.
"""

import math
import pickletools
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from regard.contract import Floats
from regard.errors import ForeignModelError

_MAX_PICKLE_BYTES = 16 << 20
_DTYPES: dict[str, np.dtype[Any]] = {
    "FloatStorage": np.dtype("<f4"),
    "HalfStorage": np.dtype("<f2"),
    "DoubleStorage": np.dtype("<f8"),
}
_OTHER_STORAGES = {"LongStorage", "IntStorage", "ByteStorage", "BoolStorage", "BFloat16Storage"}
_CONVERT = (
    "convert it where it was made: model.save_pretrained('folder', safe_serialization=True) in transformers"
)


@dataclass(frozen=True, slots=True)
class _Global:
    """A name that the pickle mentions; only those of `_KNOWN` can be called."""

    name: str


@dataclass(frozen=True, slots=True)
class _Storage:
    """Numbers in a file of the archive."""

    kind: str
    key: str


@dataclass(frozen=True, slots=True)
class _Tensor:
    """Where a tensor lies in its storage, in elements."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


def _ints(values: Any) -> tuple[int, ...]:
    if not isinstance(values, tuple) or not all(type(one) is int and one >= 0 for one in values):
        raise ValueError("a shape that is none")
    return values


def _rebuild_tensor(storage: Any, offset: Any, shape: Any, stride: Any, *_: Any) -> _Tensor:
    if not isinstance(storage, _Storage) or len(_ints(shape)) != len(_ints(stride)):
        raise ValueError("a tensor that is none")
    return _Tensor(storage, _ints((offset,))[0], shape, stride)


def _rebuild_parameter(tensor: Any, *_: Any) -> Any:
    return tensor


def _ordered_dict(*given: Any) -> dict[Any, Any]:
    if given not in ((), ([],)):
        raise ValueError("a dictionary with contents")
    return {}


_KNOWN: dict[str, Callable[..., Any]] = {
    "collections OrderedDict": _ordered_dict,
    "torch._utils _rebuild_tensor_v2": _rebuild_tensor,
    "torch._utils _rebuild_parameter": _rebuild_parameter,
}
_STORAGES = {f"torch {name}" for name in (*_DTYPES, *_OTHER_STORAGES)}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_VALUES = {
    "BINUNICODE",
    "SHORT_BINUNICODE",
    "BINUNICODE8",
    "BININT",
    "BININT1",
    "BININT2",
    "LONG1",
    "BINFLOAT",
}
_EMPTY: dict[str, Callable[[], Any]] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
_SIZES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_IGNORED = {"PROTO", "FRAME"}


class _UnknownError(Exception):
    """The pickle does what no state dict needs."""


class _Machine:
    """A stack machine for the opcodes of a state dict."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self, program: bytes) -> Any:
        """Return what the pickle describes."""
        for opcode, argument, _ in pickletools.genops(program):
            if opcode.name == "STOP":
                return self.stack.pop()
            self._do(opcode.name, argument)
        raise ValueError("no end")

    def _do(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name in _IGNORED:
            return
        if name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _VALUES:
            stack.append(argument)
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name == "MARK":
            self.marks.append(len(stack))
        elif name in ("BINPUT", "LONG_BINPUT"):
            self.memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(self.memo[argument])
        elif name in _SIZES:
            self._tuple(len(stack) - _SIZES[name])
        elif name == "TUPLE":
            self._tuple(self.marks.pop())
        elif name == "GLOBAL":
            if argument not in _KNOWN and argument not in _STORAGES:
                raise _UnknownError(f"it wants to use {argument.replace(' ', '.')!r:.80}")
            stack.append(_Global(argument))
        elif name == "BINPERSID":
            stack.append(_storage(stack.pop()))
        elif name == "REDUCE":
            arguments, called = stack.pop(), stack.pop()
            if not isinstance(called, _Global) or called.name not in _KNOWN or type(arguments) is not tuple:
                raise _UnknownError("it calls what is no function")
            stack.append(_KNOWN[called.name](*arguments))
        elif name in ("SETITEM", "SETITEMS", "APPEND", "APPENDS"):
            self._fill(name)
        elif name == "BUILD":  # attributes, such as the versions of modules: not needed
            stack.pop()
        else:
            raise _UnknownError(f"it has the opcode {name}")

    def _tuple(self, first: int) -> None:
        if first < 0:
            raise ValueError("an empty stack")
        self.stack[first:] = [tuple(self.stack[first:])]

    def _fill(self, name: str) -> None:
        """Put the last values of the stack into the dictionary or list below them."""
        alone = {"SETITEM": 2, "APPEND": 1}.get(name)
        first = self.marks.pop() if alone is None else len(self.stack) - alone
        values, owner = self.stack[first:], self.stack[first - 1]
        del self.stack[first:]
        if name.startswith("APPEND") and type(owner) is list:
            owner.extend(values)
        elif type(owner) is dict and len(values) % 2 == 0:
            owner.update(zip(values[::2], values[1::2], strict=True))
        else:
            raise ValueError("values of nothing")


def _storage(identity: Any) -> _Storage:
    """Return the storage of a persistent id: ("storage", class, key, device, number of elements)."""
    if not isinstance(identity, tuple) or len(identity) != 5 or identity[0] != "storage":
        raise ValueError("a storage that is none")
    _, kind, key, _, _ = identity
    if not isinstance(kind, _Global) or kind.name not in _STORAGES or not isinstance(key, str):
        raise ValueError("a storage that is none")
    return _Storage(kind.name.removeprefix("torch "), key)


class PickledTensors:
    """The tensors of a `pytorch_model.bin` by name, each read when it is asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._archive = zipfile.ZipFile(path)
            (name,) = (one for one in self._archive.namelist() if one.endswith("/data.pkl"))
            self._folder = name.removesuffix("data.pkl")
            orders = f"{self._folder}byteorder"
            if orders in self._archive.namelist() and self._read(orders, 16) != b"little":
                self._refuse("its numbers are big-endian")
            found = _Machine().run(self._read(name, _MAX_PICKLE_BYTES))
        except _UnknownError as error:
            self._refuse(str(error))
        except ForeignModelError:
            raise
        except OSError as error:
            raise ForeignModelError(f"{path}: cannot be read ({error.strerror or error})") from None
        except Exception as error:  # damaged bytes meet the zip, the pickle and our own checks everywhere
            self._refuse(f"it is not a zip archive of PyTorch, or is damaged ({error!s:.60})")
        if not isinstance(found, dict):
            self._refuse("it does not hold tensors by name")
        self._tensors: dict[str, _Tensor] = {
            name: one for name, one in found.items() if isinstance(name, str) and isinstance(one, _Tensor)
        }

    def names(self) -> list[str]:
        """Return the names of all tensors."""
        return list(self._tensors)

    def get(self, name: str) -> Floats:
        """Return a tensor as 32-bit numbers."""
        one = self._tensors[name]
        dtype = _DTYPES.get(one.storage.kind)
        if dtype is None:
            self._refuse(f"{name} is a {one.storage.kind}")
        size = math.prod(one.shape)
        last = one.offset + sum((n - 1) * step for n, step in zip(one.shape, one.stride, strict=True))
        try:
            info = self._archive.getinfo(f"{self._folder}data/{one.storage.key}")
            if (size and (last + 1) * dtype.itemsize > info.file_size) or size > info.file_size:
                self._refuse(f"{name} is larger than its data")
            data = self._read(info.filename, info.file_size)
            flat = np.frombuffer(data, dtype)
            strides = [step * dtype.itemsize for step in one.stride]
            view = np.lib.stride_tricks.as_strided(flat[one.offset :], one.shape, strides, writeable=False)
            return view.astype(np.float32)
        except ForeignModelError:
            raise
        except Exception as error:
            self._refuse(f"{name} is damaged ({error!s:.60})")

    def _read(self, name: str, max_bytes: int) -> bytes:
        """Return a file of the archive, which must not be compressed: memory is bounded by the file."""
        info = self._archive.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED or info.file_size > max_bytes:
            self._refuse(f"{name!r:.60} is compressed or too large")
        if info.file_size > self._path.stat().st_size:
            self._refuse(f"{name!r:.60} is larger than the file")
        return self._archive.read(info)

    def _refuse(self, why: str) -> NoReturn:
        raise ForeignModelError(f"{self._path}: {why}; {_CONVERT}") from None
