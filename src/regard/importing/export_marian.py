"""A model of ours as a folder of Marian: an `.npz` with its settings, vocabularies and `decoder.yml`."""

import json
import zipfile
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from regard.contract import Floats, Ids
from regard.errors import ConfigError
from regard.files import writing_folder
from regard.importing.export import MARK, about, readme, refuse_unless_like, sentencepiece_models
from regard.importing.marian_file import SETTINGS, Arrays, Export
from regard.importing.marian_recurrent import export_recurrent
from regard.importing.marian_transformer import export_transformer
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
# The usual options of each family, and what writes it.
_FAMILIES: dict[str, tuple[ModelOptions, Callable[[Any, Mapping[str, Floats]], Export]]] = {
    "transformer": (TransformerOptions(), export_transformer),
    "recurrent": (
        RecurrentOptions(cell="gru-after", attention=StepAttendStep(), readout="tanh", layer_norm=True),
        export_recurrent,
    ),
}
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
    exported = _exported(model)
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
        settings = _settings(model.options.tie, kept, exported)
        _write_arrays(folder / _MODEL, settings, _arrays(model, kept, exported))
        parity = compare_with_marian(model, folder / DECODER, probes)
        (folder / MARK).write_text(about(model, parity), encoding="utf-8")
    return parity


def _exported(model: ModelFile) -> Export:
    """Return what is written of a model; raise an error for one that Marian cannot express."""
    usual, export = _FAMILIES[model.options.kind]
    refuse_unless_like(model.options, usual, _FREE, "Marian")
    target = model.weights.get("target.weight", model.weights["source.weight"])
    if target[BOS].any():
        raise ConfigError(
            "a decoder of Marian starts from zeros, and that of this model from a vector of its own"
        )
    return export(model.options, model.weights)


def _ids(table: Floats) -> list[int]:
    """Return our ids of the pieces in Marian's vocabulary, in its order."""
    of_bytes = range(FIRST_BYTE, NUM_RESERVED)
    return [EOS, UNK, *(of_bytes if table[of_bytes].any() else ()), *range(NUM_RESERVED, len(table))]


def _arrays(model: ModelFile, kept: list[list[int]], exported: Export) -> Arrays:
    """Yield all arrays of a model with Marian's names."""
    tie, weights = model.options.tie, model.weights
    names = ["Wemb"] if tie == "all" else ["encoder_Wemb", "decoder_Wemb"]
    for name, side, ids in zip(names, ("source", "target"), kept, strict=False):
        yield name, _rows(weights[f"{side}.weight"], ids, exported.order)
    if tie == "none":
        yield f"{exported.output}_W", _rows(weights["W_o"], kept[1], exported.order).T
    yield f"{exported.output}_b", weights["b_o"][kept[1]][None]
    yield from exported.layers


def _rows(table: Floats, ids: list[int], order: Ids) -> Floats:
    rows: Floats = table[ids].take(order, axis=1)
    return rows


def _settings(tie: str, kept: list[list[int]], exported: Export) -> bytes:
    """Return the settings of a model as they stand in its `.npz`."""
    vocabularies = {
        "dim-vocabs": [len(ids) for ids in kept],
        "tied-embeddings": tie == "target",
        "tied-embeddings-all": tie == "all",
    }
    return _yaml(_SETTINGS | vocabularies | exported.settings)


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
