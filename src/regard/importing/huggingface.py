"""A `MarianMTModel` folder of Hugging Face's transformers: most OPUS-MT models are published so."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn, Protocol

import numpy as np

from regard.contract import Floats, Ids
from regard.errors import ForeignModelError
from regard.importing.folder import Folder, languages_of, origin
from regard.importing.pickled import PickledTensors
from regard.importing.weights import (
    MAX_LAYERS,
    MAX_SPLIT,
    Attention,
    Linear,
    Norm,
    Side,
    Vocabulary,
    Which,
    as_floats,
    check_shape,
    frozen_start,
    halves_to_turns,
    layer_weights,
)
from regard.modelfile import ModelFile
from regard.options.model import LearnedPositions, SinusoidalPositions, TransformerOptions
from regard.runtime.equations import sinusoids
from regard.text.tokenizer import TokenizerPair

_SIDES: tuple[Side, Side] = ("encoder", "decoder")
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_ACTIVATIONS: dict[str, Literal["relu", "swish", "gelu"]] = {
    "relu": "relu", "swish": "swish", "silu": "swish", "gelu": "gelu",
}  # fmt: skip


class Tensors(Protocol):
    """The tensors of a file by name, each read when it is asked for."""

    def names(self) -> Sequence[str]:
        """Return the names of all tensors."""

    def get(self, name: str) -> Floats:
        """Return a tensor as 32-bit numbers."""


class _SafeTensors:
    def __init__(self, path: Path) -> None:
        import safetensors

        self._path = path
        try:
            self._file: Any = safetensors.safe_open(path, framework="numpy")
        except (OSError, safetensors.SafetensorError) as error:
            raise ForeignModelError(f"{path}: no safetensors file, or damaged ({error!s:.80})") from None

    def names(self) -> Sequence[str]:
        return list(self._file.keys())

    def get(self, name: str) -> Floats:
        try:
            array = np.asarray(self._file.get_tensor(name))
        except Exception as error:  # bfloat16 is a TypeError, a damaged file another one
            raise ForeignModelError(f"{self._path}: {name} cannot be read ({error!s:.80})") from None
        if array.dtype.kind != "f":
            raise ForeignModelError(f"{self._path}: {name} has whole numbers ({array.dtype}) and should not")
        return array.astype(np.float32, copy=False)


def is_marian_folder(folder: Path) -> bool:
    """Tell whether a folder looks like one that transformers saved."""
    return (folder / "config.json").is_file() and any((folder / name).is_file() for name in WEIGHTS)


def read_marian_folder(folder: Path) -> ModelFile:
    """Return the model of a folder with `config.json`, weights, `source.spm`, `target.spm`, `vocab.json`."""
    folder_ = _Folder(folder)
    source, target = _vocabularies(folder_)
    weights_path = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if weights_path is None:
        folder_.refuse("config.json", f"there are no weights beside it ({' or '.join(WEIGHTS)})")
    tensors: Tensors
    tensors = (
        _SafeTensors(weights_path) if weights_path.suffix == ".safetensors" else PickledTensors(weights_path)
    )
    layers = _Layers(weights_path, tensors, folder_.size("d_model"), folder_.size("encoder_ffn_dim"))
    options, weights = _converted(folder_, layers, source, target)
    joint = source is target
    tokenizers = TokenizerPair(
        folder_.tokenizer("source.spm", source, joint), folder_.tokenizer("target.spm", target, joint)
    )
    languages = _languages(folder_)
    most = folder_.size("max_position_embeddings")
    return ModelFile(
        options=options,
        weights=weights,
        tokenizers=tokenizers,
        source_language=languages[0],
        target_language=languages[1],
        config={"imported": dict(folder_.config)},
        card=_card(folder_, weights_path, options),
        split_above=min(most - 1, MAX_SPLIT),
        frozen=frozen_start(weights),
    )


class _Folder(Folder):
    """The small files of a folder."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.config: Mapping[str, Any] = self.json("config.json")
        kind = self.config.get("model_type")
        if kind != "marian":
            self.refuse("config.json", f"model_type is {kind!r:.40} and only 'marian' can be imported")
        wanted = {"normalize_embedding": False, "normalize_before": False, "add_final_layer_norm": False}
        for name, value in wanted.items():
            if self.config.get(name, value) != value:
                self.refuse("config.json", f"{name} = {self.config[name]!r:.40} is not supported")

    def size(self, name: str) -> int:
        """Return a positive whole number of the configuration."""
        value = self.config.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= 1 << 20:
            self.refuse("config.json", f"{name} = {value!r:.40} is no size")
        return value


def _vocabularies(folder: _Folder) -> tuple[Vocabulary, Vocabulary]:
    source = _vocabulary(folder, "vocab.json")
    if folder.config.get("share_encoder_decoder_embeddings", True):
        return source, source
    own = "target_vocab.json"  # separate embeddings can have the same vocabulary
    return source, _vocabulary(folder, own if folder.has(own) else "vocab.json")


def _vocabulary(folder: _Folder, name: str) -> Vocabulary:
    """Return a vocabulary in the order of its ids, which must be 0, 1, 2 and so on."""
    ids = folder.json(name)
    pieces = {id: piece for piece, id in ids.items() if type(id) is int}
    if sorted(pieces) != list(range(len(ids))):
        folder.refuse(name, "its ids are not 0, 1, 2 and so on, each once")
    special = []
    for token in ("<pad>", "</s>", "<unk>"):
        if token not in ids:
            folder.refuse(name, f"has no {token}")
        special.append(ids[token])
    pad, end, unknown = special
    start = folder.config.get("decoder_start_token_id", pad)
    if type(start) is not int or start not in pieces:
        folder.refuse("config.json", f"decoder_start_token_id = {start!r:.40} is not in {name}")
    return Vocabulary([pieces[id] for id in range(len(pieces))], start, end, unknown, (pad,))


@dataclass(frozen=True)
class _Layers:
    """The layers of a Marian model by our names."""

    path: Path
    tensors: Tensors
    size: int
    inner: int

    def get(self, name: str, *shape: int) -> Floats:
        """Return a tensor of this shape."""
        if name not in self.tensors.names():
            raise ForeignModelError(f"{self.path}: has no {name}; is it a whole MarianMTModel?")
        what = f"{self.path}: {name}"
        return as_floats(what, check_shape(what, self.tensors.get(name), *shape), copy=False)

    def linear(self, name: str, outputs: int, inputs: int) -> Linear:
        """Return a matrix and its bias."""
        return Linear(self.get(f"{name}.weight", outputs, inputs), self.get(f"{name}.bias", outputs))

    def attention(self, side: Side, layer: int, which: Which) -> Attention:
        """Return an attention."""
        name = f"model.{side}.layers.{layer}.{'self' if which == 'own' else 'encoder'}_attn"
        return Attention(
            *(self.linear(f"{name}.{one}_proj", self.size, self.size) for one in ("q", "k", "v", "out"))
        )

    def feed_forward(self, side: Side, layer: int) -> tuple[Linear, Linear]:
        """Return a feed-forward network."""
        name = f"model.{side}.layers.{layer}"
        return (
            self.linear(f"{name}.fc1", self.inner, self.size),
            self.linear(f"{name}.fc2", self.size, self.inner),
        )

    def norm(self, side: Side, layer: int, which: Literal["own", "cross", "feed_forward"]) -> Norm:
        """Return a layer norm."""
        theirs = {"own": "self_attn", "cross": "encoder_attn", "feed_forward": "final"}[which]
        name = f"model.{side}.layers.{layer}.{theirs}_layer_norm"
        return Norm(self.get(f"{name}.weight", self.size), self.get(f"{name}.bias", self.size))

    def last_norm(self, side: Side) -> NoReturn:
        """Raise an error: there is none in this architecture."""
        raise ForeignModelError(f"{self.path}: has no layer norm after the {side}")

    def positions(self, side: Side) -> Floats | None:
        """Return the position vectors, None if they are not in the file."""
        name = f"model.{side}.embed_positions.weight"
        return self.tensors.get(name) if name in self.tensors.names() else None


def _converted(
    folder: _Folder, layers: _Layers, source: Vocabulary, target: Vocabulary
) -> tuple[TransformerOptions, dict[str, Floats]]:
    """Return the options of the model and its weights with our names."""
    config, size = folder.config, layers.size
    activation = config.get("activation_function")
    if activation not in _ACTIVATIONS:
        folder.refuse(
            "config.json", f"activation_function = {activation!r:.40} is none of {', '.join(_ACTIVATIONS)}"
        )
    for name in ("attention_heads", "ffn_dim"):
        if folder.size(f"encoder_{name}") != folder.size(f"decoder_{name}"):
            folder.refuse("config.json", f"encoder_{name} and decoder_{name} differ")
    heads, depths = folder.size("encoder_attention_heads"), [folder.size(f"{side}_layers") for side in _SIDES]
    if max(depths) > MAX_LAYERS:
        folder.refuse("config.json", f"encoder_layers, decoder_layers = {depths} is more than {MAX_LAYERS}")
    if size % 2 or size % heads:
        folder.refuse("config.json", f"d_model = {size} is odd, or no multiple of the {heads} heads")
    order_H = halves_to_turns(size)
    tables = _tables(folder, layers, source, target)
    positions = _positions(layers, order_H)
    options = TransformerOptions(
        hidden_size=size,
        feed_forward_size=layers.inner,
        num_heads=heads,
        num_encoder_layers=depths[0],
        num_decoder_layers=depths[1],
        norm="post",
        positions=LearnedPositions(max_positions=len(positions[0])) if positions else SinusoidalPositions(),
        activation=_ACTIVATIONS[activation],
        biases=True,
        tie="none" if "W_o" in tables else "target" if "target.weight" in tables else "all",
    )
    weights = {name: tables.pop(name).take(order_H, axis=1) for name in [*tables]}
    if positions:
        weights["source_positions"], weights["target_positions"] = positions
    weights["b_o"] = target.biases(layers.get("final_logits_bias", 1, len(target.pieces))[0])
    weights |= layer_weights(options, layers, order_H)
    return options, weights


def _tables(folder: _Folder, layers: _Layers, source: Vocabulary, target: Vocabulary) -> dict[str, Floats]:
    """Return the embeddings and the output matrix, where it is another one, for our ids."""
    size, names = layers.size, set(layers.tensors.names())
    shared = "model.shared.weight"
    by_side = {"source": (source, "encoder"), "target": (target, "decoder")}
    found: dict[str, Floats] = {}
    for side, (vocabulary, theirs) in by_side.items():
        own = f"model.{theirs}.embed_tokens.weight"
        name = shared if shared in names and source is target else own
        found[side] = layers.get(name, len(vocabulary.pieces), size)
        if source is target:
            break
    tables = {f"{side}.weight": by_side[side][0].rows(table) for side, table in found.items()}
    scaled = folder.config.get("scale_embedding", False)
    tied = folder.config.get("tie_word_embeddings", True)
    if scaled and tied:
        return tables
    target_table = found.get("target", found["source"])
    output = target_table if tied else layers.get("lm_head.weight", len(target.pieces), size)
    tables.setdefault("target.weight", tables["source.weight"])
    if not scaled:
        tables = {name: table / np.float32(np.sqrt(size)) for name, table in tables.items()}
    return tables | {"W_o": target.rows(output)}


def _positions(layers: _Layers, order_H: Ids) -> tuple[Floats, Floats] | None:
    """Return the position vectors of both sides if they are not the sinusoids of the paper."""
    found = layers.positions("encoder"), layers.positions("decoder")
    sides = [one for one in found if one is not None]
    if len(sides) < 2:
        return None
    most, size = min(map(len, sides)), layers.size
    both = [
        check_shape(f"{layers.path}: embed_positions", one[:most], most, size)[:, order_H] for one in sides
    ]
    usual = sinusoids(0, most, size)
    if all(np.abs(one - usual).max(initial=0) < 1e-2 for one in both):  # or rounded to 16 bits
        return None
    return both[0], both[1]


def _languages(folder: _Folder) -> tuple[str | None, str | None]:
    """Return the languages that the folder names, in its tokenizer's configuration or in its name."""
    given: dict[str, Any] = {}
    if (folder.path / "tokenizer_config.json").is_file():
        given = folder.json("tokenizer_config.json")
    found = given.get("source_lang"), given.get("target_lang")
    for name in (str(folder.config.get("_name_or_path", "")), folder.path.resolve().name):
        if not all(map(_is_code, found)) and (named := languages_of(name)):
            found = named
    return (found[0], found[1]) if all(map(_is_code, found)) else (None, None)


def _is_code(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[a-z]{2,3}", value) is not None


def _card(folder: _Folder, weights: Path, options: TransformerOptions) -> dict[str, Any]:
    """Return where the model comes from and what was changed, for its card."""
    name = folder.config.get("_name_or_path")
    converted = ["ids in our order", "biases of keys and values folded"]
    if options.positions.kind == "sinusoidal":
        converted.append("sines and cosines of positions in turns")
    name = name if isinstance(name, str) and name else folder.path.resolve().name
    return origin(folder, weights.name, "Hugging Face MarianMTModel", name, folder.licence(), converted)
