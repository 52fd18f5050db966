"""A Transformer of ours as a `MarianMTModel` folder of Hugging Face's transformers: an import undone."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from regard.contract import Floats, Ids
from regard.errors import ConfigError
from regard.files import writing_folder
from regard.importing.export import (
    MARK,
    about,
    name_of,
    readme,
    refuse_unless_like,
    sentencepiece_models,
)
from regard.importing.weights import NEVER, halves_to_turns
from regard.modelfile import ModelFile
from regard.options.model import LearnedPositions, ModelOptions, TransformerOptions
from regard.options.search import BeamOptions
from regard.verification.parity import Parity, compare_with_transformers
from regard.vocabulary import BOS, EOS, NUM_RESERVED, UNK

_USE = """from transformers import MarianMTModel, MarianTokenizer
model, tokenizer = MarianMTModel.from_pretrained("."), MarianTokenizer.from_pretrained(".")
found = model.generate(**tokenizer("Bonjour.", return_tensors="pt"))
print(tokenizer.decode(found[0], skip_special_tokens=True))
"""
_SPECIAL = {"</s>": EOS, "<unk>": UNK, "<pad>": BOS}
"""Their first tokens, with our row of each: their `<pad>` starts a translation. The ids are the same in both
vocabularies, because a configuration has one id of each."""
_PAD, _END = (list(_SPECIAL).index(one) for one in ("<pad>", "</s>"))
_IDS = {
    "decoder_start_token_id": _PAD,
    "pad_token_id": _PAD,
    "eos_token_id": _END,
    "forced_eos_token_id": _END,
}
_USUAL_POSITIONS = 512
_FREE = {
    "hidden_size", "feed_forward_size", "num_heads", "num_encoder_layers", "num_decoder_layers", "positions",
    "activation", "biases", "tie",
}  # fmt: skip


def export_huggingface(model: ModelFile, out: Path, probes: list[str]) -> Parity | None:
    """Write an imported model as a MarianMTModel folder; return how it translates there, where installed."""
    options = _checked(model.options)
    files = sentencepiece_models(model.tokenizers)
    if getattr(model.tokenizers.target.options, "bytes", False):
        raise ConfigError("a MarianMTModel cannot express pieces that are bytes")
    vocabularies = [
        _json({piece: id for id, piece in enumerate([*_SPECIAL, *one.pieces[NUM_RESERVED:]])})
        for one in (model.tokenizers.source, model.tokenizers.target)
    ]
    files["vocab.json"] = vocabularies[0]
    if options.tie != "all":
        files["target_vocab.json"] = vocabularies[1]
    num_positions = _num_positions(model, options)
    files["config.json"] = _json(_config(model, options) | {"max_position_embeddings": num_positions})
    search = {"num_beams": BeamOptions().beam_size, "max_length": num_positions, "bad_words_ids": [[_PAD]]}
    files["generation_config.json"] = _json(search | _IDS)
    files["tokenizer_config.json"] = _json(
        {
            "tokenizer_class": "MarianTokenizer",
            "source_lang": model.source_language,
            "target_lang": model.target_language,
            "separate_vocabs": vocabularies[0] != vocabularies[1],
            "model_max_length": num_positions,
        }
    )
    tensors = {name: np.ascontiguousarray(one, np.float32) for name, one in _tensors(model, options)}
    files["README.md"] = readme(model, ["library_name: transformers"], _use(model))
    files["use.py"] = _use(model).encode()
    with writing_folder(out, MARK) as folder:
        for name, data in files.items():
            (folder / name).write_bytes(data)
        safetensors.numpy.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
        parity = compare_with_transformers(model, folder, probes, [*_SPECIAL.values()])
        (folder / MARK).write_text(about(model, parity), encoding="utf-8")
    return parity


def _checked(options: ModelOptions) -> TransformerOptions:
    """Return the options of a model that a MarianMTModel can express; raise an error for any other."""
    found = refuse_unless_like(options, TransformerOptions(norm="post"), _FREE, "a MarianMTModel")
    if found.positions.kind not in ("sinusoidal", "learned"):
        raise ConfigError(f"a MarianMTModel cannot express positions.kind = {found.positions.kind!r}")
    return found


def _num_positions(model: ModelFile, options: TransformerOptions) -> int:
    """Return the most tokens that the folder reads; sinusoids are computed for any number."""
    if isinstance(options.positions, LearnedPositions):
        return options.positions.max_positions
    return max(_USUAL_POSITIONS, (model.split_above or 0) + 1)


def _config(model: ModelFile, options: TransformerOptions) -> dict[str, Any]:
    tokenizers = model.tokenizers
    sizes = {
        side: len(_SPECIAL) + one.vocab_size - NUM_RESERVED
        for side, one in (("source", tokenizers.source), ("target", tokenizers.target))
    }
    config = {
        "_name_or_path": name_of(model),
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "dtype": "float32",
        "d_model": options.hidden_size,
        "activation_function": options.activation,
        "scale_embedding": True,
        "static_position_embeddings": True,
        "normalize_before": False,
        "normalize_embedding": False,
        "add_final_layer_norm": False,
        "vocab_size": sizes["source"],
        "decoder_vocab_size": sizes["target"],
        "share_encoder_decoder_embeddings": options.tie == "all",
        "tie_word_embeddings": options.tie != "none",
        **_IDS,
    }
    for side, depth in (("encoder", options.num_encoder_layers), ("decoder", options.num_decoder_layers)):
        config[f"{side}_layers"] = depth
        config[f"{side}_attention_heads"] = options.num_heads
        config[f"{side}_ffn_dim"] = options.feed_forward_size
    return config


def _tensors(model: ModelFile, options: TransformerOptions) -> Iterator[tuple[str, Floats]]:
    """Yield the weights with their names, their ids, and all sines of a position before all cosines."""
    weights, size = model.weights, options.hidden_size
    order_H = np.argsort(halves_to_turns(size))

    def rows(name: str) -> Floats:
        table: Floats = _rows(weights[name]).take(order_H, axis=1)
        return table

    if options.tie == "all":
        yield "model.shared.weight", rows("source.weight")
    else:
        yield "model.encoder.embed_tokens.weight", rows("source.weight")
        yield "model.decoder.embed_tokens.weight", rows("target.weight")
    if options.tie == "none":
        yield "lm_head.weight", rows("W_o")
    yield "final_logits_bias", _output_bias(model)[None]
    for side, ours in (("encoder", "source_positions"), ("decoder", "target_positions")):
        if ours in weights:
            yield f"model.{side}.embed_positions.weight", weights[ours].take(order_H, axis=1)
    for side, depth in (("encoder", options.num_encoder_layers), ("decoder", options.num_decoder_layers)):
        for layer in range(depth):
            name, theirs = f"{side}.{layer}", f"model.{side}.layers.{layer}"
            matrices = np.split(weights[f"{name}.own.W_QKV"], 3)
            yield from _attention(f"{theirs}.self_attn", matrices, f"{name}.own", weights, order_H)
            yield from _norm(f"{theirs}.self_attn_layer_norm", f"{name}.own_sum.norm", weights, order_H)
            if side == "decoder":
                matrices = [weights[f"{name}.cross.W_Q"], *np.split(weights[f"{name}.cross.W_KV"], 2)]
                yield from _attention(f"{theirs}.encoder_attn", matrices, f"{name}.cross", weights, order_H)
                norm = f"{theirs}.encoder_attn_layer_norm"
                yield from _norm(norm, f"{name}.cross_sum.norm", weights, order_H)
            inner = f"{name}.feed_forward"
            yield f"{theirs}.fc1.weight", weights[f"{inner}.W_1"].take(order_H, axis=1)
            yield f"{theirs}.fc1.bias", weights[f"{inner}.b_1"]
            yield f"{theirs}.fc2.weight", weights[f"{inner}.W_2"][order_H]
            yield f"{theirs}.fc2.bias", weights[f"{inner}.b_2"][order_H]
            yield from _norm(f"{theirs}.final_layer_norm", f"{inner}_sum.norm", weights, order_H)


def _attention(
    theirs: str, matrices: list[Floats], ours: str, weights: Mapping[str, Floats], order_H: Ids
) -> Iterator[tuple[str, Floats]]:
    """Yield an attention; keys and values have no biases, as they are part of others."""
    none_H = np.zeros(len(order_H), np.float32)
    for letter, matrix in zip("qkv", matrices, strict=True):
        yield f"{theirs}.{letter}_proj.weight", matrix.take(order_H, axis=1)
        yield f"{theirs}.{letter}_proj.bias", weights.get(f"{ours}.b_Q", none_H) if letter == "q" else none_H
    yield f"{theirs}.out_proj.weight", weights[f"{ours}.W_O"][order_H]
    yield f"{theirs}.out_proj.bias", weights.get(f"{ours}.b_O", none_H)[order_H]


def _norm(
    theirs: str, ours: str, weights: Mapping[str, Floats], order_H: Ids
) -> Iterator[tuple[str, Floats]]:
    for name in ("weight", "bias"):
        yield f"{theirs}.{name}", weights[f"{ours}.{name}"][order_H]


def _rows(table: Floats) -> Floats:
    """Return the rows of the ids that they have, in their order."""
    return np.concatenate([table[[*_SPECIAL.values()]], table[NUM_RESERVED:]])


def _output_bias(model: ModelFile) -> Floats:
    """Return the bias of the output.

    An import gives the start the least bias of all and NEVER together. Here it has the least bias alone, so
    that the next import gives ours again, to the last bit. It is never said because of `bad_words_ids`.
    """
    bias_V = model.weights.get("b_o")
    if bias_V is None:
        return np.zeros(len(_SPECIAL) + model.tokenizers.target.vocab_size - NUM_RESERVED, np.float32)
    theirs_V = _rows(bias_V)
    theirs_V[_PAD] -= np.float32(NEVER)
    return theirs_V


def _use(model: ModelFile) -> str:
    """Return a program that translates a sentence."""
    return _USE.replace('"Bonjour."', f'"{model.tokenizers.source.before}Bonjour."')


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=False).encode("utf-8", "surrogatepass")
