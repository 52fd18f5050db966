"""A Transformer of Marian itself: an `.npz` file, its vocabularies, and SentencePiece models if it has any.

The options of the model are in its array `special:model.yml`. Positions are not quite those of the paper, and
the decoder starts from a vector of zeros.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import sentencepiece

from regard.contract import Floats
from regard.errors import ForeignModelError
from regard.importing.folder import Folder, languages_of, origin
from regard.importing.npz import Npz
from regard.importing.weights import (
    MAX_SPLIT,
    Attention,
    Linear,
    Norm,
    Side,
    Vocabulary,
    Which,
    layer_weights,
    other_sinusoids,
)
from regard.modelfile import ModelFile
from regard.options.model import LearnedPositions, TransformerOptions
from regard.text.tokenizer import TokenizerPair

_SETTINGS = "special:model.yml"
_NUM_POSITIONS = 1024
_ACTIVATIONS: dict[str, Any] = {"relu": "relu", "swish": "swish"}  # its gelu is another function
_NORMS: dict[tuple[str, ...], Literal["pre", "post"]] = {("", "dan", ""): "post", ("n", "da", "n"): "pre"}
_NEEDED: dict[str, tuple[str, ...]] = {
    "transformer-decoder-autoreg": ("self-attention",),
    "transformer-ffn-depth": ("2",),
    "transformer-decoder-ffn-depth": ("0", "2"),
    "transformer-postprocess-emb": ("d", ""),
    "transformer-no-projection": ("false",),
    "transformer-no-bias": ("false",),
    "transformer-no-affine": ("false",),
    "transformer-pool": ("false",),
    "transformer-disable-position-embeddings": ("false",),
    "transformer-train-position-embeddings": ("false",),
    "transformer-train-positions": ("false",),
    "transformer-attention-mask": ("default",),
    "right-left": ("false",),
    "ulr": ("false",),
    "factors-dim-emb": ("0",),
    "lemma-dim-emb": ("0",),
}
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")
_ESCAPED = dict(zip("0abtnvfreN_LP", "\0\a\b\t\n\v\f\r\x1b\x85\xa0\u2028\u2029", strict=True))

Settings = dict[str, list[str]]


def find_npz(path: Path) -> Path | None:
    """Return the model that a path names: an `.npz` file, or that of a folder; None if there is none."""
    if path.suffix == ".npz" and path.is_file():
        return path
    found = [one for one in sorted(path.glob("*.npz")) if ".optimizer." not in one.name]
    if len(found) > 1:
        raise ForeignModelError(f"{path}: has {len(found)} models; name one, such as {found[0]}")
    return found[0] if found else None


def read_marian_npz(path: Path) -> ModelFile:
    """Return the model of an `.npz` file; its vocabularies must be in the same folder."""
    folder, npz = Folder(path.parent), Npz(path)
    settings = _settings(npz.raw(_SETTINGS).tobytes().rstrip(b"\0").decode("utf-8", "replace"))
    layers = _Layers(npz, settings, *_sizes(npz, settings))
    names = _vocabulary_files(folder, path.name)
    source, target = (
        _vocabulary(folder, name, size)
        for name, size in zip(names, layers.whole("dim-vocabs", 2), strict=True)
    )
    options, weights = _converted(layers, source, target)
    joint = source.pieces == target.pieces
    tokenizers = []
    for name, own, vocabulary in zip(names, ("source.spm", "target.spm"), (source, target), strict=True):
        spm = name if name.endswith(".spm") else own if folder.has(own) else None
        tokenizers.append(folder.tokenizer(spm, vocabulary, joint))
    languages = languages_of(str(path.resolve())) or (None, None)
    converted = ["ids in our order", "biases of keys and values folded", "positions as a table"]
    return ModelFile(
        options=options,
        weights=weights,
        tokenizers=TokenizerPair(*tokenizers),
        source_language=languages[0],
        target_language=languages[1],
        config={"imported": settings},
        card=origin(folder, path.name, "Marian", path.name, folder.licence(), converted),
        split_above=MAX_SPLIT,
    )


def _settings(text: str) -> Settings:
    """Return the values of each key of a YAML file of keys with one value or a list."""
    found: Settings = {}
    values: list[str] = []
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and line[:1] not in (" ", "-", "#"):
            values = found[key] = []
        else:
            value = line.strip().removeprefix("-")
        value = value.strip()
        if value.startswith("[") and value.endswith("]"):
            values += [_plain(one.strip()) for one in value[1:-1].split(",") if one.strip()]
        elif value:
            values.append(_plain(value))
    return found


def _plain(text: str) -> str:
    """Return a YAML text without its quotation marks and escapes."""
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) < 2 or not text[0] == text[-1] == '"':
        return text
    return _ESCAPE.sub(lambda one: _character(one[1]), text[1:-1])


def _character(code: str) -> str:
    if len(code) == 1:
        return _ESCAPED.get(code, code)
    number = int(code[1:], 16)
    return chr(number) if number < 0x110000 else "\ufffd"


def _vocabulary_files(folder: Folder, model: str) -> list[str]:
    """Return the names of both vocabularies, as a file beside the model names them, or what is there."""
    for name in (f"{model}.decoder.yml", "decoder.yml", f"{model}.yml"):
        if folder.has(name):
            named = [re.split(r"[/\\]", one)[-1] for one in _settings(folder.text(name)).get("vocabs", [])]
            if len(named) == 2 and all(map(str.isprintable, named)):
                return named
            folder.refuse(name, f"names {len(named)} vocabularies and should name 2")
    own = ("source.spm", "target.spm")
    found = [
        one.name
        for one in sorted(folder.path.iterdir())
        if one.name not in own and (one.suffix == ".spm" or re.search(r"vocab.*\.(yml|yaml|json)$", one.name))
    ]
    if len(found) != 1:
        folder.refuse("decoder.yml", f"is missing, and there are {len(found)} vocabularies; name both in it")
    return found * 2


def _vocabulary(folder: Folder, name: str, size: int) -> Vocabulary:
    """Return a vocabulary of so many pieces; ids without a piece are never said."""
    if not folder.has(name):
        folder.refuse(name, "is missing; put the vocabularies of the model beside it")
    if name.endswith(".spm"):
        try:
            model = sentencepiece.SentencePieceProcessor(model_proto=folder.bytes(name))
        except (RuntimeError, ValueError, OSError) as error:
            folder.refuse(name, f"is no SentencePiece model ({error!s:.60})")
        pieces = [model.id_to_piece(id) for id in range(model.vocab_size())]
        end, unknown = model.eos_id(), model.unk_id()
    else:
        pieces = _listed(folder, name)
        end, unknown = (
            pieces.index(piece) if piece in pieces else old_id if pieces[old_id : old_id + 1] in old else -1
            for piece, old_id, old in (("</s>", 0, (["eos"], [""])), ("<unk>", 1, (["UNK"], [""])))
        )
    pieces = (pieces + [""] * size)[:size]
    if not (0 <= end < size and 0 <= unknown < size):
        folder.refuse(name, "has no </s> or no <unk>")
    other = tuple(id for id, piece in enumerate(pieces) if piece in ("", "<s>", "<pad>"))
    return Vocabulary(pieces, None, end, unknown, other)


def _listed(folder: Folder, name: str) -> list[str]:
    """Return the pieces of a vocabulary by id: of a JSON or YAML file of pieces with ids, or a list."""
    text = folder.text(name)
    if not name.endswith((".yml", ".yaml", ".json")):
        return text.removesuffix("\n").split("\n")
    if text.lstrip().startswith("{"):
        pairs = [*folder.json(name).items()]
    else:
        entries = text.replace("\r\n", "\n").replace("\n: ", ": ").split("\n")
        pairs = [_pair(entry) for entry in entries if entry not in ("", "---")]
    ids: dict[str, int] = {}
    for piece, id in pairs:
        if not re.fullmatch(r"\d{1,6}", str(id)):
            folder.refuse(name, f"is no list of pieces with ids (at {piece!r:.40})")
        ids[piece] = int(id)
    pieces = [""] * (max(ids.values(), default=-1) + 1)
    for piece, number in ids.items():
        pieces[number] = piece
    return pieces


def _pair(entry: str) -> tuple[str, str]:
    """Return piece and id of an entry of YAML; a long piece follows a question mark."""
    piece, colon, id = entry.removeprefix("? ").rpartition(":")
    return (_plain(piece.strip()), id.strip()) if colon else (entry, "")


def _sizes(npz: Npz, settings: Settings) -> tuple[int, int]:
    """Return the widths of the model and of its feed-forward networks, of a model that can be imported."""
    given = {key: values[0] if values else "" for key, values in settings.items()}
    if given.get("type") != "transformer":
        npz.refuse(f"its type is {given.get('type', '?')!r:.40} and only 'transformer' can be imported")
    for key, needed in _NEEDED.items():
        if key in given and given[key] not in needed:
            npz.refuse(f"{key} = {given[key]!r:.40} is not supported")
    sizes = given.get("dim-emb", ""), given.get("transformer-dim-ffn", "")
    if given.get("transformer-decoder-dim-ffn", "0") not in ("0", sizes[1]):
        npz.refuse("transformer-decoder-dim-ffn differs from transformer-dim-ffn")
    if not all(re.fullmatch(r"\d{1,5}", one) for one in sizes):
        npz.refuse(f"dim-emb or transformer-dim-ffn is no size ({sizes[0]!r:.20}, {sizes[1]!r:.20})")
    return int(sizes[0]), int(sizes[1])


def _converted(
    layers: "_Layers", source: Vocabulary, target: Vocabulary
) -> tuple[TransformerOptions, dict[str, Floats]]:
    """Return the options of a model and its weights with our names."""
    npz, size = layers.npz, layers.size
    heads, *depths = (layers.whole(key)[0] for key in ("transformer-heads", "enc-depth", "dec-depth"))
    if size % 2 or size < 4 or heads < 1 or size % heads or not all(0 < one <= 1000 for one in depths):
        npz.refuse(f"dim-emb = {size}, transformer-heads = {heads}, depths {depths} are not possible")
    activation = layers.word("transformer-ffn-activation", "swish")
    if activation not in _ACTIVATIONS:
        npz.refuse(f"transformer-ffn-activation = {activation!r:.40} is none of {', '.join(_ACTIVATIONS)}")
    norms = tuple(
        layers.word(f"transformer-{key}", "") for key in ("preprocess", "postprocess", "postprocess-top")
    )
    if norms not in _NORMS:
        npz.refuse(
            f"transformer-preprocess, -postprocess and -postprocess-top = {norms!r:.60} are not supported"
        )
    tables = layers.tables(source, target)
    options = TransformerOptions(
        hidden_size=size,
        feed_forward_size=layers.inner,
        num_heads=heads,
        num_encoder_layers=depths[0],
        num_decoder_layers=depths[1],
        norm=_NORMS[norms],
        positions=LearnedPositions(max_positions=_NUM_POSITIONS),
        activation=_ACTIVATIONS[activation],
        biases=True,
        tie="none" if "W_o" in tables else "target" if "target.weight" in tables else "all",
    )
    positions = other_sinusoids(0, _NUM_POSITIONS, size)
    weights = tables | {"source_positions": positions, "target_positions": positions.copy()}
    weights["b_o"] = target.biases(layers.bias("decoder_ff_logit_out_b", len(target.pieces)))
    return options, weights | dict(layer_weights(options, layers, np.arange(size)))


@dataclass(frozen=True)
class _Layers:
    """The layers of a Marian model by our names."""

    npz: Npz
    settings: Settings
    size: int
    inner: int

    def word(self, key: str, default: str) -> str:
        """Return a setting."""
        return next(iter(self.settings.get(key, [])), default)

    def whole(self, key: str, count: int = 1) -> list[int]:
        """Return a setting of so many whole numbers."""
        values = self.settings.get(key, [])
        if len(values) != count or not all(re.fullmatch(r"\d{1,7}", one) for one in values):
            self.npz.refuse(f"{key} = {values!r:.40} is not {count} whole number{'s' * (count > 1)}")
        return list(map(int, values))

    def tables(self, source: Vocabulary, target: Vocabulary) -> dict[str, Floats]:
        """Return the embeddings and the output matrix, where it is another one, for our ids."""
        names, size = self.npz.names, self.size
        own = ["Wemb" if "Wemb" in names else f"{side}_Wemb" for side in ("encoder", "decoder")]
        tables = {"source.weight": source.rows(self.npz.floats(own[0], len(source.pieces), size))}
        if own[0] != own[1] or source.pieces != target.pieces:
            tables["target.weight"] = target.rows(self.npz.floats(own[1], len(target.pieces), size))
        output, turned = "decoder_ff_logit_out_W", "decoder_ff_logit_out_Wt"
        if output in names:
            W_o = target.rows(self.npz.floats(output, size, len(target.pieces)).T)
        elif turned in names:
            W_o = target.rows(self.npz.floats(turned, len(target.pieces), size))
        else:
            return tables
        tables.setdefault("target.weight", tables["source.weight"])
        return tables | {"W_o": W_o}

    def bias(self, name: str, size: int) -> Floats:
        """Return a bias; where there is none it is 0."""
        return self.npz.floats(name, 1, size)[0] if name in self.npz.names else np.zeros(size, np.float32)

    def linear(self, name: str, part: str, inputs: int, outputs: int) -> Linear:
        """Return a matrix, which they multiply from the right, and its bias."""
        W = np.ascontiguousarray(self.npz.floats(f"{name}_W{part}", inputs, outputs).T)
        return Linear(W, self.bias(f"{name}_b{part}", outputs))

    def layer(self, side: Side, layer: int) -> str:
        """Return the name of a layer; those of the decoder may share their weights."""
        tied = self.settings.get("transformer-tied-layers", []) if side == "decoder" else []
        return f"{side}_l{tied[layer] if layer < len(tied) else layer + 1}"

    def attention(self, side: Side, layer: int, which: Which) -> Attention:
        """Return an attention."""
        name = f"{self.layer(side, layer)}_{'self' if which == 'own' else 'context'}"
        q, k, v, o = (self.linear(name, part, self.size, self.size) for part in "qkvo")
        return Attention(q, k, v, o)

    def feed_forward(self, side: Side, layer: int) -> tuple[Linear, Linear]:
        """Return a feed-forward network."""
        name = f"{self.layer(side, layer)}_ffn"
        return self.linear(name, "1", self.size, self.inner), self.linear(name, "2", self.inner, self.size)

    def norm(self, side: Side, layer: int, which: Literal["own", "cross", "feed_forward"]) -> Norm:
        """Return a layer norm, before or after a sub-layer."""
        theirs = {"own": "self_Wo", "cross": "context_Wo", "feed_forward": "ffn_ffn"}[which]
        end = "" if self.word("transformer-preprocess", "") == "" else "_pre"
        return self._norm(f"{self.layer(side, layer)}_{theirs}", end)

    def last_norm(self, side: Side) -> Norm:
        """Return the layer norm after the last layer."""
        return self._norm(f"{side}_top", "")

    def _norm(self, name: str, end: str) -> Norm:
        found = (self.npz.floats(f"{name}_ln_{part}{end}", 1, self.size)[0] for part in ("scale", "bias"))
        return Norm(*found)
