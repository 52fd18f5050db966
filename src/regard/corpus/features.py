"""Sources that are feature vectors, such as the regions of images (Xu et al. 2015), read from files.

| file                | holds                                                                            |
|---------------------|----------------------------------------------------------------------------------|
| `.npz`              | one array (items, positions, width), or an array (positions, width) for each     |
|                     | item, in the order they were saved; names of the positions in an array `names`   |
| `.jsonl`, `.ndjson` | an object a line, `features` a list of lists of numbers, `names` a list of texts |
| `.parquet`          | columns of these names                                                           |

Nothing is unpickled, sizes are checked before anything is read, and one item is in memory at a time.
"""

import contextlib
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from regard.contract import Features
from regard.corpus.input_file import InputFile, quoted
from regard.corpus.language_codes import is_language
from regard.errors import CorpusError, MissingExtraError, RegardError, SourceError
from regard.files import without_compression

ENDINGS = (".npz", ".jsonl", ".ndjson", ".parquet")
FEATURES, NAMES = "features", "names"

_MAX_NUMBERS = 1 << 24  # of one item: 64 MB
_MAX_HEADER_BYTES = 10_000  # of an array
_MAX_NAMES = 1 << 16
_TARGETS = ("target", "tgt", "trg", "caption")
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError)
_PARQUET_ROWS = 16  # read at a time


@dataclass(frozen=True, slots=True, eq=False)
class FeatureRow:
    """An item of a file: its number from 1, its features, and its text, if the file has one."""

    number: int
    features: Features
    target: str | None = None


def holds_features(path: Path) -> bool:
    """Tell whether a file holds feature vectors, by its ending and its first record."""
    ending = without_compression(path).suffix.lower()
    if ending == ".npz":
        return True
    if ending in (".jsonl", ".ndjson"):
        with InputFile(path) as file:
            first = next(file.lines(), "")
        try:
            record = json.loads(first)
        except (ValueError, RecursionError):
            return False
        return isinstance(record, dict) and isinstance(record.get(FEATURES), list)
    if ending == ".parquet":
        with contextlib.suppress(RegardError):  # what is wrong with it, its own format says best
            return FEATURES in _parquet_names(path)
    return False


def read_features(path: Path) -> Iterator[Features]:
    """Yield the features of a file in order; all have vectors of one width."""
    with InputFile(path) as file:
        yield from (row.features for row in feature_rows(file))


def feature_rows(file: InputFile) -> Iterator[FeatureRow]:
    """Yield the items of an open file in order; all have vectors of one width."""
    ending = without_compression(file.path).suffix.lower()
    if ending == ".npz":
        rows = _npz_rows(file)
    elif ending == ".parquet":
        rows = _parquet_rows(file)
    else:
        rows = _json_rows(file)
    width, number = None, 0
    for row in rows:
        number, size = row.number, row.features.size
        if width is not None and size != width:
            raise _fault(file.path, number, f"vectors of {size:,} numbers where the first have {width:,}")
        width = size
        yield row
    if not number:
        raise CorpusError(f"{file.path}: holds no features; check how it was made")


def target_column(path: Path) -> str | None:
    """Return the name of the field with the texts of a file that holds both sides, None if it has none."""
    ending = without_compression(path).suffix.lower()
    if ending == ".npz":
        return None
    if ending == ".parquet":
        names = _parquet_names(path)
    else:
        with InputFile(path) as file:
            names = list(_record(file, 1, next(file.lines(), "")))
    found = [name for name in names if name.lower() in _TARGETS or is_language(name)]
    if len(found) > 1:
        raise CorpusError(f"{path}: several fields could be the texts ({quoted(found)}); keep one of them")
    return found[0] if found else None


def _features(path: Path, number: int, vectors: Any, names: Any = None) -> Features:
    """Return the features of one item, or raise an error that names it."""
    if names is not None and not (isinstance(names, list | tuple) and all(isinstance(n, str) for n in names)):
        raise _fault(path, number, f"{NAMES!r} must be a list of texts, one for each position")
    try:
        with np.errstate(over="ignore"):
            array = np.asarray(vectors, np.float32)
        return Features(array, tuple(names or ()))
    except (ValueError, TypeError, SourceError) as error:
        raise _fault(path, number, _reason(error)) from None


def _fault(path: Path, number: int, problem: str) -> CorpusError:
    return CorpusError(f"{path}: item {number:,}: {problem}; save finite numbers as (positions, width)")


@dataclass(frozen=True, slots=True)
class _Header:
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def _npz_rows(file: InputFile) -> Iterator[FeatureRow]:
    """Yield the items of an archive of arrays, as NumPy's `savez` and `savez_compressed` write it."""
    path = file.path
    if without_compression(path) != path:
        raise CorpusError(f"{path}: an .npz file is compressed within; decompress the file itself first")
    try:
        with zipfile.ZipFile(file.raw) as archive:
            members = {one.filename.removesuffix(".npy"): one for one in archive.infolist()}
            names = _read_names(path, archive, members.pop(NAMES, None))
            headers = {name: _read_header(path, archive, one) for name, one in members.items()}
            axes = {len(header.shape) for header in headers.values()}
            if not headers or (axes != {2} and not (axes == {3} and len(headers) == 1)):
                found = ", ".join(f"{name} {header.shape}" for name, header in list(headers.items())[:5])
                raise CorpusError(
                    f"{path}: arrays {found or 'none'}; save one array (items, positions, width), or one "
                    "(positions, width) for each item"
                )
            number = 0
            for name, member in members.items():
                with archive.open(member) as stream:
                    for array in _read_items(path, name, stream):
                        number += 1
                        yield FeatureRow(number, _features(path, number, array, names))
    except _DAMAGE as error:
        raise CorpusError(f"{path}: cannot be read as .npz ({_reason(error)}); save it again") from error


def _read_header(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> _Header:
    with archive.open(member) as stream:
        return _header(path, member.filename, stream)


def _header(path: Path, name: str, stream: IO[bytes]) -> _Header:
    """Return the shape and the type of an array, from the beginning of its stream."""
    version = np.lib.format.read_magic(stream)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in read:
        raise CorpusError(f"{path}: {name}: version {version} of the format is not known; save it again")
    shape, fortran_order, dtype = read[version](stream, max_header_size=_MAX_HEADER_BYTES)
    if dtype.kind not in "fiuU":
        raise CorpusError(f"{path}: {name}: holds {dtype} and no numbers; nothing but numbers is read")
    if fortran_order and len(shape) > 1:
        raise CorpusError(
            f"{path}: {name}: is stored column by column; save numpy.ascontiguousarray of it instead"
        )
    if min(shape, default=0) < 0 or int(np.prod(shape[-2:], dtype=object)) > _MAX_NUMBERS:
        raise CorpusError(f"{path}: {name}: items of {shape[-2:]}; at most {_MAX_NUMBERS:,} numbers are read")
    return _Header(shape, dtype)


def _read_items(path: Path, name: str, stream: IO[bytes]) -> Iterator[NDArray[Any]]:
    """Yield the items of an array one after the other."""
    header = _header(path, name, stream)
    shape = header.shape[-2:]
    num_items = header.shape[0] if len(header.shape) == 3 else 1
    num_bytes = int(np.prod(shape)) * header.dtype.itemsize
    for _ in range(num_items):
        data = stream.read(num_bytes)
        if len(data) != num_bytes:
            raise EOFError(f"{name} ends before its last item")
        yield np.frombuffer(data, header.dtype).reshape(shape)


def _read_names(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo | None) -> list[str] | None:
    if member is None:
        return None
    with archive.open(member) as stream:
        header = _header(path, NAMES, stream)
        if header.dtype.kind != "U" or len(header.shape) != 1 or header.shape[0] > _MAX_NAMES:
            raise CorpusError(f"{path}: {NAMES}: must be an array of texts, one for each position")
        num_bytes = header.shape[0] * header.dtype.itemsize
        if num_bytes > 4 * _MAX_NUMBERS:
            raise CorpusError(f"{path}: {NAMES}: its texts are too long")
        return [str(name) for name in np.frombuffer(stream.read(num_bytes), header.dtype)]


def _json_rows(file: InputFile) -> Iterator[FeatureRow]:
    """Yield the items of lines of JSON."""
    column = target_column(file.path)
    for number, line in enumerate(file.lines(), 1):
        record = _record(file, number, line)
        if not isinstance(record.get(FEATURES), list):
            raise file.error(number, f"{FEATURES!r} must be there, a list of lists of numbers")
        yield FeatureRow(
            number,
            _features(file.path, number, record[FEATURES], record.get(NAMES)),
            _text(file, number, record, column),
        )


def _text(file: InputFile, number: int, record: Mapping[str, Any], column: str | None) -> str | None:
    if column is None:
        return None
    text = record.get(column)
    if not isinstance(text, str):
        raise file.error(number, f"{column!r} must be there and be text")
    return text


def _record(file: InputFile, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise file.error(number, "not JSON; write one object on each line") from error
    if not isinstance(record, dict):
        raise file.error(number, "JSON, but not an object; write one object on each line")
    return cast(dict[str, Any], record)


def _parquet_names(path: Path) -> list[str]:
    with InputFile(path) as file:
        return list(_parquet(file).schema_arrow.names)


def _parquet(file: InputFile) -> Any:
    try:
        from pyarrow import ArrowException
        from pyarrow import parquet as pyarrow_parquet
    except ImportError as error:
        raise MissingExtraError("reading Parquet", "parquet") from error
    try:
        return pyarrow_parquet.ParquetFile(file.raw)
    except (ArrowException, *_DAMAGE, KeyError) as error:
        raise CorpusError(f"{file.path}: not valid Parquet ({_reason(error)}); fetch it again") from error


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _parquet_rows(file: InputFile) -> Iterator[FeatureRow]:
    """Yield the items of a table."""
    import pyarrow

    table, column = _parquet(file), target_column(file.path)
    if FEATURES not in table.schema_arrow.names:
        raise CorpusError(f"{file.path}: has no column {FEATURES!r}; name the column of the vectors so")
    known = [name for name in (FEATURES, NAMES, column) if name in table.schema_arrow.names]
    batches = table.iter_batches(_PARQUET_ROWS, columns=known, use_threads=False)
    number = 0
    while True:
        try:
            batch = next(batches, None)
            rows = [] if batch is None else batch.to_pylist()
        except (pyarrow.ArrowException, *_DAMAGE, KeyError) as error:
            raise CorpusError(f"{file.path}: not valid Parquet ({_reason(error)}); fetch it again") from error
        if batch is None:
            return
        for row in rows:
            number += 1
            features = _features(file.path, number, row[FEATURES], row.get(NAMES))
            yield FeatureRow(number, features, _text(file, number, row, column))
