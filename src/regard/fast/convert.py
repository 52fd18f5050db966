"""A Transformer of ours as a CTranslate2 model, made in memory.

Nothing is written to disk, so no file can be stale, half written or tampered with. The format is that of
`ctranslate2.specs.TransformerSpec`, revision 7 in binary version 6; that module itself imports torch.
"""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.alignment.reading import Reading
from regard.contract import Floats
from regard.errors import ConfigError
from regard.options.model import ModelOptions, TransformerOptions
from regard.runtime.equations import sinusoids

_BINARY_VERSION, _SPEC, _REVISION = 6, "TransformerSpec", 7
_TYPES = {"float32": 0, "int8": 1, "int16": 2}
_POSITIONS = 1024  # sinusoids in the converted model; longer sentences are left to NumPy
ACTIVATIONS = {"relu": 0, "swish": 2, "gelu": 3}
"""Their numbers in CTranslate2."""

_BIAS_OF = {"W_QKV": "b_Q", "W_Q": "b_Q", "W_KV": "b_KV", "W_O": "b_O"}

Variables = Iterator[tuple[str, NDArray[np.generic]]]


@dataclass(frozen=True, slots=True)
class Converted:
    """The files of a CTranslate2 model by name, the longest source or target it can read, and whether `</s>`
    follows a source."""

    files: dict[str, bytes]
    max_tokens: int
    end: bool


def unfit(options: ModelOptions) -> str | None:
    """Return why CTranslate2 cannot run such a model, None if it can."""
    if not isinstance(options, TransformerOptions):
        return "CTranslate2 has no recurrent models"
    if options.decoder_self == "ssru":
        return "CTranslate2 has no decoders with SSRU"
    return None if options.source.kind == "tokens" else "CTranslate2 reads no feature vectors"


def convert(options: ModelOptions, weights: Mapping[str, Floats], reading: Reading) -> Converted:
    """Return a model in CTranslate2's format, in which the attention that is read has the first heads.

    Its tokens are our ids as digits. Raises ConfigError for a model that CTranslate2 cannot run.
    """
    if (why := unfit(options)) is not None:
        raise ConfigError(why)
    assert isinstance(options, TransformerOptions)
    learned = weights.get("source_positions")
    max_tokens = _POSITIONS if learned is None else min(len(learned), len(weights["target_positions"]))
    variables = dict(_variables(options, weights, reading, max_tokens))
    target = weights["target.weight"] if "target.weight" in weights else weights["source.weight"]
    names = {"source": len(weights["source.weight"]), "target": len(target)}
    config = {
        "unk_token": "3",
        "bos_token": "1",
        "eos_token": "2",
        "decoder_start_token": "1",
        "add_source_bos": False,
        "add_source_eos": False,
        "layer_norm_epsilon": None,
        "multi_query_attention": False,
    }
    vocabularies = {
        f"{side}_vocabulary.json": json.dumps([str(id) for id in range(size)]).encode()
        for side, size in names.items()
    }
    files = {"model.bin": _serialized(variables), "config.json": json.dumps(config).encode(), **vocabularies}
    return Converted(files, max_tokens, options.source_end)


def _variables(
    options: TransformerOptions, weights: Mapping[str, Floats], reading: Reading, max_tokens: int
) -> Variables:
    """Yield every variable of the model by its name."""
    num_layers, num_heads = options.num_decoder_layers, options.num_heads
    read_layer = max(reading.layer + num_layers, 0) if reading.layer < 0 else reading.layer
    target = weights["target.weight"] if "target.weight" in weights else weights["source.weight"]
    yield "encoder/embeddings_0/weight", weights["source.weight"]
    yield "encoder/embeddings_merge", np.array(0, np.int8)
    yield "decoder/embeddings/weight", target
    yield "decoder/projection/weight", weights.get("W_o", target)
    if options.biases:
        yield "decoder/projection/bias", weights["b_o"]
    yield "decoder/alignment_layer", np.array(read_layer, np.int16)
    yield "decoder/alignment_heads", np.array(num_heads if reading.head is None else 1, np.int16)
    for side in ("encoder", "decoder"):
        positions = weights.get("source_positions" if side == "encoder" else "target_positions")
        if positions is None:
            positions = sinusoids(0, max_tokens, options.hidden_size).astype(np.float32)
        yield f"{side}/position_encodings/encodings", positions
        yield f"{side}/num_heads", np.array(num_heads, np.int16)
        yield f"{side}/activation", np.array(ACTIVATIONS[options.activation], np.int8)
        yield f"{side}/pre_norm", np.array(options.norm == "pre", np.int8)
        yield f"{side}/scale_embeddings", np.array(1, np.int8)
        if f"{side}_norm.weight" in weights:
            yield from _norm(f"{side}/layer_norm", f"{side}_norm", weights)
    for layer in range(options.num_encoder_layers):
        yield from _layer("encoder", layer, weights)
    for layer in range(num_layers):
        given = weights
        if reading.head and layer == read_layer:
            given = _first_head(reading.head, num_heads, f"decoder.{layer}.cross", weights)
        yield from _layer("decoder", layer, given)


def _layer(side: str, layer: int, weights: Mapping[str, Floats]) -> Variables:
    ours, theirs = f"{side}.{layer}", f"{side}/layer_{layer}"
    yield from _attention(f"{theirs}/self_attention", f"{ours}.own", ("W_QKV", "W_O"), weights)
    if side == "decoder":
        yield from _attention(f"{theirs}/attention", f"{ours}.cross", ("W_Q", "W_KV", "W_O"), weights)
    for number in (0, 1):
        yield f"{theirs}/ffn/linear_{number}/weight", weights[f"{ours}.feed_forward.W_{number + 1}"]
        yield f"{theirs}/ffn/linear_{number}/bias", weights[f"{ours}.feed_forward.b_{number + 1}"]
    yield from _norm(f"{theirs}/ffn/layer_norm", f"{ours}.feed_forward_sum.norm", weights)


def _norm(theirs: str, ours: str, weights: Mapping[str, Floats]) -> Variables:
    yield f"{theirs}/gamma", weights[f"{ours}.weight"]
    yield f"{theirs}/beta", weights[f"{ours}.bias"]


def _attention(theirs: str, ours: str, matrices: tuple[str, ...], weights: Mapping[str, Floats]) -> Variables:
    for number, matrix in enumerate(matrices):
        weight, bias = weights[f"{ours}.{matrix}"], weights.get(f"{ours}.{_BIAS_OF[matrix]}")
        yield f"{theirs}/linear_{number}/weight", weight
        if bias is not None:  # keys and values have none
            yield f"{theirs}/linear_{number}/bias", np.pad(bias, (0, len(weight) - len(bias)))
    yield from _norm(f"{theirs}/layer_norm", f"{ours}_sum.norm", weights)


def _first_head(head: int, num_heads: int, name: str, weights: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the weights with one head of an attention first: its output is a sum over heads in any order.

    CTranslate2 can return the mean of the first so many heads of a layer, and no other.
    """
    size = weights[f"{name}.W_Q"].shape[0]
    order_N = [head, *(other for other in range(num_heads) if other != head)]
    order_H = np.arange(size).reshape(num_heads, -1)[order_N].ravel()
    W_KV = weights[f"{name}.W_KV"].reshape(2, size, size)[:, order_H].reshape(2 * size, size)
    changed = {
        "W_Q": weights[f"{name}.W_Q"][order_H],
        "W_KV": W_KV,
        "W_O": weights[f"{name}.W_O"][:, order_H],
    }
    if f"{name}.b_Q" in weights:
        changed["b_Q"] = weights[f"{name}.b_Q"][order_H]
    return {**weights, **{f"{name}.{matrix}": value for matrix, value in changed.items()}}


def _serialized(variables: Mapping[str, NDArray[np.generic]]) -> bytes:
    """Return the variables as the bytes of a `model.bin`; an array that comes twice is written once."""
    written: dict[int, str] = {}
    aliases: list[tuple[str, str]] = []
    chunks: list[bytes] = []
    for name, value in variables.items():
        if value.ndim and id(value) in written:
            aliases.append((name, written[id(value)]))
            continue
        written[id(value)] = name
        data = np.ascontiguousarray(value).tobytes()
        head = struct.pack("B", value.ndim) + struct.pack(f"{value.ndim}I", *value.shape)
        chunks += [_string(name), head, struct.pack("=BI", _TYPES[value.dtype.name], len(data)), data]
    start = struct.pack("I", _BINARY_VERSION) + _string(_SPEC) + struct.pack("II", _REVISION, len(written))
    end = struct.pack("I", len(aliases)) + b"".join(_string(one) + _string(of) for one, of in aliases)
    return b"".join((start, *chunks, end))


def _string(text: str) -> bytes:
    return struct.pack("H", len(text) + 1) + text.encode() + b"\0"
