"""The model as one file: weights, tokenizers, configuration and card, with a hash of every part.

A `.regard` file is a safetensors file: any reader of that format can open it, and nothing in it is code.
The tensors are `weight.<name>`, and the bytes of `tokenizer.source` and `tokenizer.target`, or of the first
alone if both sides share it. In a packed file a matrix is one of bytes, and `scale.<name>` has for each of
its rows what a byte is worth; loading gives numbers of 32 bits again. `frozen.<name>`, if it is there, has a
bit for each row of a weight, set where a further training leaves the row as it is. `known.target`, if it is
there, has the words of the target side of the training text (`text/known.py`), and `seen.pairs` the hashes of
its pairs (`corpus/seen.py`). The metadata has one entry, `regard`, a JSON object: in `parts` the sha256 of
each tensor, in `header_sha256` that of the header, with 64 zeros in the place of this hash itself.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
import safetensors
from numpy.typing import NDArray

from regard.alignment.reading import Reading
from regard.contract import Floats
from regard.corpus.seen import SeenPairs
from regard.design import design
from regard.errors import ConfigError, ModelFileError, TokenizerError
from regard.files import writing
from regard.options.model import RecurrentOptions, TransformerOptions
from regard.options.parse import parse
from regard.runtime.recurrent import tells_posterior
from regard.runtime.shapes import weight_shapes
from regard.starter import locate
from regard.text.known import KnownWords
from regard.text.tokenizer import Tokenizer, TokenizerPair

FORMAT = "regard-model/1"

Kind = TypeVar("Kind")

_NO_HASH = "0" * 64
_KNOWN = "known.target"
_SEEN = "seen.pairs"
_MAX_HEADER_BYTES = 5_000_000  # that of a model of a hundred layers has some hundred thousand
_MAX_TOKENIZER_BYTES = 100_000_000
_DTYPES = {"F32": "float32", "F16": "float16", "F64": "float64", "I8": "int8", "U8": "uint8"}


@dataclass(frozen=True)
class ModelFile:
    """All that is needed to translate, and to know where a model comes from.

    `config` (of the whole run) and `card` (data, scores, date) are plain JSON. `reading` says which attention
    aligns best, and `split_above` how many tokens a source may have before it is split, where they are known.
    `frozen` says which rows of embeddings a further training is to leave as they are. `known_words` are those
    of the target side of the training text; a model without them does not copy names. `seen_pairs`
    tells which pairs it was trained on.
    """

    options: RecurrentOptions | TransformerOptions
    weights: dict[str, Floats]
    tokenizers: TokenizerPair
    source_language: str | None
    target_language: str | None
    config: dict[str, Any]
    card: dict[str, Any]
    reading: Reading | None = None
    split_above: int | None = None
    frozen: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    known_words: KnownWords | None = None
    seen_pairs: SeenPairs | None = None

    def aimed_at(self, to: str) -> "ModelFile":
        """Return the model for one of the languages that a multilingual model translates into."""
        tokenizers = TokenizerPair(self.tokenizers.source.aimed_at(to), self.tokenizers.target)
        return replace(self, tokenizers=tokenizers, target_language=to)


@dataclass(frozen=True, slots=True)
class Summary:
    """What the header of a model file says: design, languages and card, and whether it is packed."""

    options: RecurrentOptions | TransformerOptions
    source_language: str | None
    target_language: str | None
    card: dict[str, Any]
    is_packed: bool


def save_model(path: Path, model: ModelFile, *, packed: bool = False) -> None:
    """Write a model; the file appears whole or not at all, and the same model gives the same bytes.

    Packed, it takes a quarter of the space, and each weight is off by at most a 254th of the largest of its
    row.
    """
    given = {name: _Declared(str(one.dtype), one.shape) for name, one in model.weights.items()}
    _check_shapes(path, model.options, model.tokenizers, given)
    _check_finite(path, model)
    _check_reading(path, model)
    parts: dict[str, NDArray[Any]] = {}
    for name, array in model.weights.items():
        parts |= _pack(name, array) if packed and array.ndim == 2 else {f"weight.{name}": array}
    parts |= {f"frozen.{name}": np.packbits(rows_V) for name, rows_V in model.frozen.items()}
    if model.known_words is not None:
        parts[_KNOWN] = model.known_words.bits_U
    if model.seen_pairs is not None:
        parts[_SEEN] = model.seen_pairs.hashes_M.astype("<u4").view(np.uint8)
    parts = {name: np.ascontiguousarray(array) for name, array in parts.items()}
    source, target = model.tokenizers.source.to_bytes(), model.tokenizers.target.to_bytes()
    parts["tokenizer.source"] = np.frombuffer(source, np.uint8)
    if target != source:
        parts["tokenizer.target"] = np.frombuffer(target, np.uint8)
    about = {
        "format": FORMAT,
        "header_sha256": _NO_HASH,
        "parts": {name: _sha256(array) for name, array in parts.items()},
        "model": model.options.model_dump(),
        "source_language": model.source_language,
        "target_language": model.target_language,
        "config": model.config,
        "card": model.card,
        "reading": None if model.reading is None else _reading_json(model.reading),
        "split_above": model.split_above,
    }
    head = _head(parts, {"regard": json.dumps(about, sort_keys=True, allow_nan=False)})
    hashed = hashlib.sha256(head).hexdigest().encode()
    with writing(path) as (stream,):
        stream.write(head.replace(_NO_HASH.encode(), hashed, 1))
        for name in _in_order(parts):  # without a copy: models may be large
            stream.write(parts[name].data)


def _in_order(parts: Mapping[str, NDArray[Any]]) -> list[str]:
    """Return the names of parts as safetensors puts them: wide numbers first, so that all are aligned."""
    return sorted(parts, key=lambda name: (-parts[name].itemsize, str(parts[name].dtype), name))


def _head(parts: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> bytes:
    """Return how a safetensors file begins: the length of a JSON text, and this text."""
    codes, end = {name: code for code, name in _DTYPES.items()}, 0
    entries: dict[str, Any] = {"__metadata__": metadata}
    for name in _in_order(parts):
        start, end = end, end + parts[name].nbytes
        dtype, shape = codes[str(parts[name].dtype)], list(parts[name].shape)
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def load_model(path: Path) -> ModelFile:
    """Read a model, a file or one of the package by its name, and verify every part of it.

    What the file declares is checked before any of it is read, so that a small file cannot cost much memory.
    """
    path = locate(path)
    with _explained(path):
        header = _read_header(path)
        with safetensors.safe_open(path, framework="numpy") as file:
            model = _assemble(path, header, file)
    _check_reading(path, model)
    return model


def summarise(path: Path) -> Summary:
    """Read what a model file, or one of the package, says about itself, without its weights.

    Only that is verified.
    """
    path = locate(path)
    with _explained(path):
        header = _read_header(path)
        about = header.about
        return Summary(
            parse("model", about["model"]),
            _optional(about, "source_language", str),
            _optional(about, "target_language", str),
            _of_type(about["card"], dict),
            bool(_under("scale.", header.declared)),
        )


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong in reading a file into one line that names it."""
    try:
        yield
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read ({error.strerror or error})") from None
    except safetensors.SafetensorError as error:
        _damaged(path, str(error))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{path}: is not a complete model ({error!r:.200}); save it again") from None
    except (TokenizerError, ConfigError) as error:
        what = " ".join(str(error).split())  # a key of the file may have line breaks
        raise ModelFileError(f"{path}: {what}; was it saved by a newer regard?") from None


def _assemble(path: Path, header: "_Header", file: Any) -> ModelFile:
    """Return the model of an open file: first what is small, then the weights."""
    about, declared = header.about, header.declared
    hashes = dict(about["parts"])
    for name in sorted(hashes.keys() ^ declared.keys()):
        _damaged(path, f"{name} is not what was saved")

    def read(name: str) -> NDArray[Any]:
        array: NDArray[Any] = file.get_tensor(name)
        if _sha256(array) != hashes[name]:
            _damaged(path, f"{name} is not what was saved")
        return array

    options = parse("model", about["model"])
    source = target = _tokenizer(path, "tokenizer.source", declared, read)
    if "tokenizer.target" in declared:
        target = _tokenizer(path, "tokenizer.target", declared, read)
    tokenizers = TokenizerPair(source, target)
    for name in _under("scale.", declared):
        if f"weight.{name}" not in declared:
            _damaged(path, f"a scale of no weight, {name!r}")
    weights = {name: _weight(name, declared) for name in _under("weight.", declared)}
    _check_shapes(path, options, tokenizers, weights)
    parts = {name: read(name) for name in declared if not name.startswith("tokenizer.")}
    model = ModelFile(
        options,
        {name: _unpack(name, parts) for name in weights},
        tokenizers,
        _optional(about, "source_language", str),
        _optional(about, "target_language", str),
        _of_type(about["config"], dict),
        _of_type(about["card"], dict),
        None if about.get("reading") is None else _reading(about["reading"]),
        _optional(about, "split_above", int),
        {name: _unpack_rows(path, name, parts) for name in _under("frozen.", parts)},
        KnownWords(parts[_KNOWN]) if _KNOWN in parts else None,
        SeenPairs(parts[_SEEN].view("<u4")) if _SEEN in parts else None,
    )
    _check_finite(path, model)
    if model.split_above is not None and model.split_above < 1:
        raise ValueError(f"split_above = {model.split_above}")
    return model


def _tokenizer(
    path: Path, name: str, declared: Mapping[str, "_Declared"], read: Callable[[str], NDArray[Any]]
) -> Tokenizer:
    dtype, shape = declared[name].dtype, declared[name].shape
    if dtype != "uint8" or len(shape) != 1 or shape[0] > _MAX_TOKENIZER_BYTES:
        _damaged(path, f"{name} is {dtype} of shape {shape}")
    return Tokenizer.from_bytes(read(name).tobytes())


def _reading_json(reading: Reading) -> dict[str, Any]:
    """Return a reading as earlier versions know it, unless it is one that they cannot read."""
    return {key: value for key, value in asdict(reading).items() if key != "posterior" or value}


def _reading(values: Any) -> Reading:
    reading = Reading(**values)
    _of_type(reading.layer, int)
    _of_type(reading.shifted, bool)
    _of_type(reading.posterior, bool)
    return replace(reading, head=None if reading.head is None else _of_type(reading.head, int))


def _optional(values: Mapping[str, Any], key: str, kind: type[Kind]) -> Kind | None:
    return None if values.get(key) is None else _of_type(values[key], kind)


def _of_type(value: Any, kind: type[Kind]) -> Kind:
    """Return a value if it is of a kind of JSON values; a bool is no int."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{value!r:.40} is not {kind.__name__}")
    return value


def _check_reading(path: Path, model: ModelFile) -> None:
    """Raise an error if the model has no such layer and head as are to be read."""
    reading, (layers, heads) = model.reading, design(model.options).size("cross")
    if reading and not (reading.layer in range(layers) and reading.head in (None, *range(heads))):
        raise ModelFileError(
            f"{path}: the model does not have the layer and head of {reading}; save it again"
        )
    if reading and reading.posterior and not tells_posterior(model.options):
        raise ModelFileError(f"{path}: a model of this design has no posterior attention; save it again")


@dataclass(frozen=True, slots=True)
class _Declared:
    """What the header says of a tensor."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Header:
    """What a file says about itself, and about its tensors."""

    about: dict[str, Any]
    declared: dict[str, _Declared]


def _read_header(path: Path) -> _Header:
    """Return what the file says about itself, verified to the last bit."""
    with path.open("rb") as file:
        length = file.read(8)
        num_bytes = int.from_bytes(length, "little")
        header = file.read(num_bytes) if len(length) == 8 and num_bytes <= _MAX_HEADER_BYTES else b""
    try:
        outer = _json(header)
        about = _json(outer.pop("__metadata__")["regard"])
        form, header_sha256 = str(about["format"]), str(about["header_sha256"])
        declared = {
            name: _Declared(_DTYPES.get(one["dtype"], str(one["dtype"])), tuple(map(int, one["shape"])))
            for name, one in outer.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ModelFileError(
            f"{path}: is not a regard model, or is damaged; check the name, or copy or download it again"
        ) from None
    if form != FORMAT:
        raise ModelFileError(
            f"{path}: has format {form!r:.40} and this version of regard reads {FORMAT!r}; "
            "install the version that wrote it, or train again"
        )
    hashed = (length + header).replace(header_sha256.encode("utf-8", "replace"), _NO_HASH.encode(), 1)
    if hashlib.sha256(hashed).hexdigest() != header_sha256:
        _damaged(path, "its header is not what was saved")
    return _Header(about, declared)


def _json(text: bytes | str) -> dict[str, Any]:
    """Return a JSON object in which no key stands twice."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            raise ValueError("a key stands twice")
        return values

    return _of_type(json.loads(text, object_pairs_hook=unique), dict)


def _weight(name: str, declared: Mapping[str, _Declared]) -> _Declared:
    """Return a weight as it is once unpacked; what does not fit together stays, for the check to find."""
    weight, scale = declared[f"weight.{name}"], declared.get(f"scale.{name}")
    if scale is None or weight.dtype != "int8" or len(weight.shape) != 2:
        return weight
    fits = scale == _Declared("float32", weight.shape[:1])
    return _Declared("float32", weight.shape) if fits else weight


def _check_shapes(
    path: Path,
    options: RecurrentOptions | TransformerOptions,
    tokenizers: TokenizerPair,
    weights: Mapping[str, _Declared],
) -> None:
    """Raise an error unless the weights are exactly those of the design, with one vector for each piece."""
    source_vocab, target_vocab = tokenizers.source.vocab_size, tokenizers.target.vocab_size
    wanted = weight_shapes(options, source_vocab, target_vocab)
    for name in sorted(wanted.keys() | weights.keys()):
        given = weights.get(name)
        if given is None or given.shape != wanted.get(name) or given.dtype != "float32":
            found = "is missing" if given is None else f"is {given.dtype} of shape {given.shape}"
            should = f"float32 of shape {wanted[name]}" if name in wanted else "no weight of this name"
            raise ModelFileError(
                f"{path}: weight {name!r} {found} and the model has {should}; save it again from its training"
            )
    if "target.weight" not in wanted and source_vocab != target_vocab:
        raise ModelFileError(
            f"{path}: one matrix for both sides and vocabularies of {source_vocab:,} and {target_vocab:,} "
            "pieces; save it again from its training"
        )


def _check_finite(path: Path, model: ModelFile) -> None:
    for name, weight in model.weights.items():
        if not np.isfinite(weight).all():
            raise ModelFileError(
                f"{path}: weight {name!r} has values that are not finite; save it again from its training"
            )


def _pack(name: str, matrix: Floats) -> dict[str, NDArray[Any]]:
    """Return a matrix as bytes from -127 to 127, and for each row what one of them is worth."""
    scale = np.abs(matrix).max(axis=1, initial=0) / np.float32(127)
    steps = np.clip(np.rint(matrix / np.where(scale > 0, scale, 1)[:, None]), -127, 127)
    return {f"weight.{name}": steps.astype(np.int8), f"scale.{name}": scale.astype(np.float32)}


def _unpack(name: str, parts: dict[str, NDArray[Any]]) -> Floats:
    """Return a weight as it is used; what does not fit together stays as it is, for the check to find."""
    weight, scale = parts[f"weight.{name}"], parts.get(f"scale.{name}")
    if scale is None or weight.dtype != np.int8 or weight.ndim != 2:
        return weight
    if scale.dtype != np.float32 or scale.shape != weight.shape[:1]:
        return weight
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found by the check
        unpacked: Floats = weight.astype(np.float32) * scale[:, None]
    return unpacked


def _unpack_rows(path: Path, name: str, parts: dict[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Return which rows of a weight are frozen."""
    bits, weight = parts[f"frozen.{name}"], parts.get(f"weight.{name}")
    if weight is None or weight.ndim != 2 or bits.dtype != np.uint8 or bits.shape != (-(-len(weight) // 8),):
        _damaged(path, f"frozen rows of {name!r} that it does not have")
    return np.unpackbits(bits, count=len(weight)).astype(np.bool_)


def _under(prefix: str, names: Iterable[str]) -> list[str]:
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


def _damaged(path: Path, reason: str) -> NoReturn:
    raise ModelFileError(f"{path}: is damaged ({reason}); copy or download it again") from None


def _sha256(array: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()
