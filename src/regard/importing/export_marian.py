"""A model of ours as a folder of Marian: an `.npz` with its settings, vocabularies and `decoder.yml`."""

import json
import zipfile
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from regard.contract import Floats, Ids
from regard.errors import ConfigError
from regard.files import writing_folder
from regard.importing.export import MARK, about, readme, refuse_unless_like, sentencepiece_models
from regard.importing.marian_file import SETTINGS, Arrays
from regard.importing.marian_recurrent import OUTPUT as RECURRENT_OUTPUT
from regard.importing.marian_recurrent import recurrent_arrays
from regard.importing.marian_transformer import (
    ACTIVATIONS,
    NORMS,
    OUTPUT,
    order_of_hidden,
    transformer_arrays,
)
from regard.importing.weights import other_sinusoids
from regard.modelfile import ModelFile
from regard.options.model import ModelOptions, RecurrentOptions, StepAttendStep, TransformerOptions
from regard.options.search import BeamOptions
from regard.text.imported import ImportedTokenizer
from regard.text.tokenizer import Tokenizer
from regard.verification.parity import Parity, compare_with_marian
from regard.vocabulary import BOS, EOS, FIRST_BYTE, NUM_RESERVED, UNK

DECODER = "decoder.yml"
_MODEL, _VOCABULARIES = "model.npz", ("source.yml", "target.yml")
_USE = """from pymarian import Translator
import sentencepiece
source = sentencepiece.SentencePieceProcessor(model_file="source.spm")
target = sentencepiece.SentencePieceProcessor(model_file="target.spm")
pieces = " ".join(BEFORE + source.encode("Bonjour.", out_type=str))
print(target.decode(Translator(config="decoder.yml", quiet=True).translate(pieces).split()))
"""
_USE_WORDS = """from pymarian import Translator
print(Translator(config="decoder.yml", quiet=True).translate("PIECES"))
"""
_FREE = {
    "hidden_size", "feed_forward_size", "num_heads", "num_encoder_layers", "num_decoder_layers",
    "decoder_self", "norm", "positions", "activation", "biases", "tie", "embedding_size", "layer_norm",
}  # fmt: skip
_USUAL: dict[str, ModelOptions] = {
    "transformer": TransformerOptions(),
    "recurrent": RecurrentOptions(
        cell="gru-after", attention=StepAttendStep(), readout="tanh", layer_norm=True
    ),
}
_LIKE_MARIANS = 1e-3
"""The largest difference of positions that come from the same formula, computed in 32 bits."""
# Marian asks for all of these, whatever the type.
_SETTINGS: dict[str, Any] = {
    "dec-cell": "gru", "dec-cell-base-depth": 2, "dec-cell-high-depth": 1, "dim-rnn": 1024, "enc-cell": "gru",
    "enc-cell-depth": 1, "enc-type": "bidirectional", "factors-combine": "sum", "factors-dim-emb": 0,
    "input-types": [], "layer-normalization": False, "lemma-dependency": "", "lemma-dim-emb": 0,
    "output-omit-bias": False, "right-left": False, "skip": False, "tied-embeddings-src": False,
    "transformer-attention-mask": "default", "transformer-decoder-autoreg": "self-attention",
    "transformer-decoder-dim-ffn": 0, "transformer-decoder-ffn-depth": 0,
    "transformer-disable-position-embeddings": False, "transformer-ffn-depth": 2,
    "transformer-guided-alignment-layer": "last", "transformer-no-affine": False,
    "transformer-no-bias": False,
    "transformer-no-projection": False, "transformer-pool": False, "transformer-postprocess-emb": "d",
    "transformer-rnn-projection": False, "transformer-tied-layers": [],
    "transformer-train-position-embeddings": False, "ulr": False, "ulr-dim-emb": 0,
    "ulr-trainable-transformation": False, "version": "v1.12.0",
}  # fmt: skip


def export_marian(model: ModelFile, out: Path, probes: list[str]) -> Parity | None:
    """Write an imported model as a folder of Marian; return how it translates there, where installed.

    The pieces of a text are separated by spaces, as in the folders of OPUS-MT.
    """
    _check(model)
    sides = (model.tokenizers.source, model.tokenizers.target)
    by_spaces = all(isinstance(one, ImportedTokenizer) and not one.model for one in sides)
    files = {} if by_spaces else sentencepiece_models(model.tokenizers)
    target = model.weights.get("target.weight", model.weights["source.weight"])
    kept = [_ids(model.weights["source.weight"]), _ids(target)]
    for name, one, ids in zip(_VOCABULARIES, sides, kept, strict=True):
        files[name] = _vocabulary(one, ids)
    files[DECODER] = _yaml(
        {
            "relative-paths": True,
            "models": [_MODEL],
            "vocabs": [*_VOCABULARIES],
            "beam-size": BeamOptions().beam_size,
            "normalize": 1,
            "cpu-threads": 1,
        }
    )
    use = _use(model, by_spaces)
    files |= {"use.py": use.encode(), "README.md": readme(model, ["tags: [marian]"], use)}
    with writing_folder(out, MARK) as folder:
        for name, data in files.items():
            (folder / name).write_bytes(data)
        _write_arrays(folder / _MODEL, _settings(model.options, kept), _arrays(model, kept))
        parity = compare_with_marian(model, folder / DECODER, probes)
        (folder / MARK).write_text(about(model, parity), encoding="utf-8")
    return parity


def _check(model: ModelFile) -> None:
    """Raise an error for a model that Marian cannot express."""
    options, weights = model.options, model.weights
    refuse_unless_like(options, _USUAL[options.kind], _FREE, "Marian")
    target = weights.get("target.weight", weights["source.weight"])
    if target[BOS].any():
        raise ConfigError(
            "a decoder of Marian starts from zeros, and that of this model from a vector of its own"
        )
    if not isinstance(options, TransformerOptions):
        return
    if options.activation not in ACTIVATIONS:
        raise ConfigError(f"Marian cannot express activation = {options.activation!r}")
    for name in ("source_positions", "target_positions") if options.positions.kind == "learned" else ():
        table = weights[name]
        if np.abs(table - other_sinusoids(0, *table.shape)).max() > _LIKE_MARIANS:
            raise ConfigError("Marian computes positions by a formula, and those of this model are learnt")


def _ids(table: Floats) -> list[int]:
    """Return our ids of the pieces in Marian's vocabulary, in its order."""
    of_bytes = range(FIRST_BYTE, NUM_RESERVED)
    return [EOS, UNK, *(of_bytes if table[of_bytes].any() else ()), *range(NUM_RESERVED, len(table))]


def _arrays(model: ModelFile, kept: list[list[int]]) -> Arrays:
    """Yield all arrays of a model with Marian's names."""
    options, weights = model.options, model.weights
    if isinstance(options, TransformerOptions):
        output, order = OUTPUT, order_of_hidden(options)
        rest = transformer_arrays(options, weights)
    else:
        output, order = RECURRENT_OUTPUT, np.arange(options.embedding_size)
        rest = recurrent_arrays(options, weights)
    names = ["Wemb"] if options.tie == "all" else ["encoder_Wemb", "decoder_Wemb"]
    for name, side, ids in zip(names, ("source", "target"), kept, strict=False):
        yield name, _rows(weights[f"{side}.weight"], ids, order)
    if options.tie == "none":
        yield f"{output}_W", _rows(weights["W_o"], kept[1], order).T
    yield f"{output}_b", weights["b_o"][kept[1]][None]
    yield from rest


def _rows(table: Floats, ids: list[int], order: Ids) -> Floats:
    rows: Floats = table[ids].take(order, axis=1)
    return rows


def _settings(options: ModelOptions, kept: list[list[int]]) -> bytes:
    """Return the settings of a model as they stand in its `.npz`."""
    found = _SETTINGS | {
        "type": "s2s",
        "dim-vocabs": [len(ids) for ids in kept],
        "tied-embeddings": options.tie == "target",
        "tied-embeddings-all": options.tie == "all",
    }
    if isinstance(options, TransformerOptions):
        norms = next(theirs for theirs, ours in NORMS.items() if ours == options.norm)
        found |= dict(
            zip(
                ("transformer-preprocess", "transformer-postprocess", "transformer-postprocess-top"),
                norms,
                strict=True,
            )
        )
        found |= {
            "type": "transformer",
            "dim-emb": options.hidden_size,
            "enc-depth": options.num_encoder_layers,
            "dec-depth": options.num_decoder_layers,
            "transformer-heads": options.num_heads,
            "transformer-dim-ffn": options.feed_forward_size,
            "transformer-ffn-activation": options.activation,
        }
        if options.decoder_self == "ssru":
            found |= {"transformer-decoder-autoreg": "rnn", "dec-cell": "ssru"}
    else:
        found |= {
            "dim-emb": options.embedding_size,
            "dim-rnn": options.hidden_size,
            "enc-depth": 1,
            "dec-depth": 1,
            "layer-normalization": options.layer_norm,
        }
    return _yaml(found)


def _write_arrays(path: Path, settings: bytes, arrays: Arrays) -> None:
    """Write an `.npz`, one array after the other."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in chain(arrays, [(SETTINGS, np.frombuffer(settings + b"\0", np.int8))]):
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as stream:
                np.lib.format.write_array(stream, np.ascontiguousarray(array), (1, 0))


def _vocabulary(tokenizer: Tokenizer, ids: list[int]) -> bytes:
    """Return a vocabulary as YAML, a piece with its id on each line."""
    pieces = {EOS: "</s>", UNK: "<unk>"}
    lines = (f"{_quoted(pieces.get(id, tokenizer.pieces[id]))}: {n}\n" for n, id in enumerate(ids))
    return "".join(lines).encode("utf-8", "surrogatepass")


def _quoted(text: str) -> str:
    """Return a text with quotation marks and the escapes of YAML."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one.isprintable() else rf"\U{ord(one):08X}" for one in escaped) + '"'


def _yaml(settings: dict[str, Any]) -> bytes:
    """Return settings as YAML; what JSON writes on a line is YAML too."""
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in sorted(settings.items())).encode()


def _use(model: ModelFile, by_spaces: bool) -> str:
    """Return a program that translates a sentence."""
    source = model.tokenizers.source
    if by_spaces:
        return _USE_WORDS.replace("PIECES", " ".join(source.pieces[NUM_RESERVED : NUM_RESERVED + 3]))
    return _USE.replace("BEFORE + ", f"[{source.before!r}] + " if source.before else "")
