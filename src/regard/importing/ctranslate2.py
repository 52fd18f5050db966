"""A CTranslate2 folder, and the packages of Argos Translate, which contain one."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from regard.contract import Floats, Ids
from regard.fast.convert import ACTIVATIONS
from regard.importing.binary import Variables, read_variables
from regard.importing.folder import Folder, languages_of, open_package, origin
from regard.importing.weights import (
    MAX_LAYERS,
    MAX_SPLIT,
    Attention,
    Linear,
    Norm,
    Side,
    Vocabulary,
    Which,
    frozen_start,
    halves_to_turns,
    layer_weights,
    other_sinusoids,
)
from regard.modelfile import ModelFile
from regard.options.model import LearnedPositions, SinusoidalPositions, TransformerOptions
from regard.runtime.equations import sinusoids
from regard.text.tokenizer import TokenizerPair

MODEL, PACKAGE = "model.bin", "metadata.json"
_SIDES: tuple[Side, Side] = ("encoder", "decoder")
_NUM_HEADS = {"": 8, "TransformerBase": 8, "TransformerBig": 16, "TransformerSpec": 0}  # of old models
_ACTIVATIONS: dict[float, Any] = {number: name for name, number in ACTIVATIONS.items()}
_MAX_SIZE, _MAX_POSITIONS = 1 << 14, 1024
_EPSILON = 1e-5  # of our layer norm; a smaller one differs by rounding
_SPECIAL = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
_PADDING = ("<blank>", "<pad>")

# Which head aligns is chosen anew; one table of embeddings needs no merging; the last is for ALiBi only.
_UNUSED = re.compile(r"(.*/)?(alignment_(layer|heads)|embeddings_merge|alibi_use_positive_positions)")

# The first names were those of OpenNMT-tf.
_OLD_NAMES = (
    ("transformer/", ""), (":0", ""), ("w_embs", "embeddings/weight"), ("kernel", "weight"),
    ("LayerNorm", "layer_norm"), ("dense", "projection"), ("conv1d_", "linear_"), ("conv1d", "linear_0"),
)  # fmt: skip


def read_ctranslate2_folder(path: Path) -> ModelFile:
    """Return the model of a folder with `model.bin`, vocabularies, and SentencePiece models if it has any."""
    folder = Folder(path)
    found = [
        next(filter(folder.has, (f"{side}.spm", "sentencepiece.model")), None)
        for side in ("source", "target")
    ]
    return _read(folder, folder, (found[0], found[1]), {"name": path.resolve().name})


def read_argos_package(path: Path) -> ModelFile:
    """Return the model of an `.argosmodel`, or of the folder that Argos Translate makes of one."""
    whole = Folder(path) if path.is_dir() else open_package(path, PACKAGE)
    about = whole.json(PACKAGE)
    if about.get("type", "translate") != "translate" or about.get("target_prefix"):
        whole.refuse(PACKAGE, "only packages of type 'translate' without a target_prefix can be imported")
    spm = "sentencepiece.model"
    if not whole.has(spm):
        whole.refuse(
            spm, "is missing; packages with a bpe.model need the rules of Moses and cannot be imported"
        )
    return _read(whole, whole.below("model"), (spm, spm), {"name": path.name, **about})


def _read(
    whole: Folder, folder: Folder, spm: tuple[str | None, str | None], about: Mapping[str, Any]
) -> ModelFile:
    """Return the model of a folder; its tokenizers and licence are in `whole`."""
    binary = read_variables(folder.path / MODEL, folder.data(MODEL))
    if binary.spec not in _NUM_HEADS:
        binary.refuse(f"its architecture is {binary.spec!r:.40}, not a Transformer that translates")
    if binary.revision == 1:
        binary = _renamed(binary)
    config = folder.json("config.json") if folder.has("config.json") else {}
    tokens = _Tokens.of(binary, config)
    source, target = tokens.vocabulary(folder, "source"), tokens.vocabulary(folder, "target")
    epsilon = config.get("layer_norm_epsilon") or _EPSILON
    if not isinstance(epsilon, float) or not 0 < epsilon <= 1.001 * _EPSILON:
        folder.refuse("config.json", f"layer_norm_epsilon = {epsilon!r:.20} is above {_EPSILON}")
    options, weights = _converted(binary, source, target, tokens.ends_source)
    joint = source.pieces == target.pieces
    codes = about.get("from_code"), about.get("to_code")
    languages = languages_of(str(about["name"])) or (None, None)
    if isinstance(codes[0], str) and isinstance(codes[1], str):
        languages = codes[0], codes[1]
    most = options.positions.max_positions if options.positions.kind == "learned" else _MAX_POSITIONS
    form = "Argos Translate" if "from_code" in about else "CTranslate2"
    converted = ["ids in our order", "biases of keys and values folded", "weights in 32 bits"]
    return ModelFile(
        options=options,
        weights=weights,
        tokenizers=TokenizerPair(
            whole.tokenizer(spm[0], source, joint), whole.tokenizer(spm[1], target, joint)
        ),
        source_language=languages[0],
        target_language=languages[1],
        config={"imported": dict(config)},
        card=origin(folder, MODEL, form, str(about["name"]), whole.licence(), converted),
        split_above=min(most - 1, MAX_SPLIT),
        frozen=frozen_start(weights),
    )


def _renamed(binary: Variables) -> Variables:
    """Return the variables of the first revision with the names of later ones."""
    arrays = {}
    for old_name, array in binary.arrays.items():
        name = old_name
        own = "multi_head" if "encoder" in name else "masked_multi_head"
        for old, new in (*_OLD_NAMES, (own, "self_attention"), ("multi_head", "attention")):
            name = name.replace(old, new, 1)
        arrays[name] = array
    return Variables(binary.path, binary.version, binary.spec, binary.revision, arrays)


@dataclass(frozen=True)
class _Tokens:
    """The tokens that have a meaning; `start` is None if the decoder starts from zeros."""

    unknown: str
    begin: str
    end: str
    start: str | None
    ends_source: bool

    @classmethod
    def of(cls, binary: Variables, config: Mapping[str, Any]) -> "_Tokens":
        """Return the tokens of a model, which before version 6 are among its variables."""
        from_zeros = bool(binary.number("decoder/start_from_zero_embedding", 0))
        if binary.version < 6:
            unknown, begin, end = (binary.word(key, usual) for key, usual in _SPECIAL.items())
            is_begin, is_free = (
                binary.number("with_target_bos", 1),
                binary.number("user_decoder_start_tokens", 0),
            )
            start = None if is_free else begin if is_begin else end
            flags = [bool(binary.number(f"with_source_{key}", 0)) for key in ("bos", "eos")]
        else:
            unknown, begin, end = (str(config.get(key, usual)) for key, usual in _SPECIAL.items())
            start = config.get("decoder_start_token", begin)
            flags = [bool(config.get(f"add_source_{key}")) for key in ("bos", "eos")]
        if not isinstance(start, str):
            binary.refuse("the user has to give the first token of each translation, which is not supported")
        if flags[0]:
            binary.refuse(f"{begin!r:.20} before each source is not supported")
        # Models that start from zeros are Marian's. Their users end sources in `</s>` themselves.
        return cls(unknown, begin, end, None if from_zeros else start, flags[1] or from_zeros)

    def vocabulary(self, folder: Folder, side: str) -> Vocabulary:
        """Return the vocabulary of a side."""
        name, pieces = _pieces(folder, side)
        if self.unknown not in pieces:
            pieces.append(self.unknown)
        ids = {piece: id for id, piece in enumerate(pieces)}
        needed = [self.end] if self.ends_source or side == "target" else []
        if self.start is not None and side == "target":
            needed.append(self.start)
        for token in needed:
            if token not in ids:
                folder.refuse(name, f"has no {token!r:.20}")
        start = None if self.start is None else ids.get(self.start)
        other = tuple(ids[token] for token in (*_PADDING, self.begin) if token in ids)
        return Vocabulary(pieces, start, ids.get(self.end), ids[self.unknown], other)


def _pieces(folder: Folder, side: str) -> tuple[str, list[str]]:
    """Return the name of the file of a vocabulary, and its pieces."""
    names = [f"{one}_vocabulary.{kind}" for one in ("shared", side) for kind in ("json", "txt")]
    name = next(filter(folder.has, names), None)
    if name is None:
        folder.refuse(f"{side}_vocabulary.json", "is missing, and so is shared_vocabulary.json or .txt")
    if name.endswith(".json"):
        pieces = folder.any_json(name)
        if not isinstance(pieces, list) or not all(isinstance(one, str) for one in pieces):
            folder.refuse(name, "is not a list of pieces")
        return name, pieces
    lines = folder.text(name).removesuffix("\n").split("\n")
    from_windows = all(line.endswith("\r") for line in lines)
    return name, [line[:-1] for line in lines] if from_windows else lines


def _converted(
    binary: Variables, source: Vocabulary, target: Vocabulary, source_end: bool
) -> tuple[TransformerOptions, dict[str, Floats]]:
    """Return the options of a model and its weights with our names."""
    layers = _Layers(binary, *_sizes(binary))
    size, activation = layers.size, layers.same("activation", 0)
    if activation not in _ACTIVATIONS:
        binary.refuse(f"its activation function has number {activation:.0f}, which is not supported")
    heads = int(layers.same("num_heads", _NUM_HEADS[binary.spec]))
    if size % 2 or size < 4 or heads < 1 or size % heads:
        binary.refuse(f"width {size} is odd, or no multiple of the {heads} heads")
    depths = [_depth(binary, side) for side in _SIDES]
    positions, order_H = _positions(layers)
    tables = _tables(layers, source, target)
    options = TransformerOptions(
        hidden_size=size,
        feed_forward_size=layers.inner,
        num_heads=heads,
        num_encoder_layers=depths[0],
        num_decoder_layers=depths[1],
        norm="pre" if layers.same("pre_norm", 1) else "post",
        positions=LearnedPositions(max_positions=len(positions[0])) if positions else SinusoidalPositions(),
        activation=_ACTIVATIONS[activation],
        biases=True,
        source_end=source_end,
        tie="none" if "W_o" in tables else "target" if "target.weight" in tables else "all",
    )
    weights = {name: tables.pop(name).take(order_H, axis=1) for name in [*tables]}
    if positions:
        weights["source_positions"], weights["target_positions"] = positions
    weights["b_o"] = target.biases(layers.bias("decoder/projection/bias", len(target.pieces)))
    weights |= layer_weights(options, layers, order_H)
    for name in sorted(binary.arrays.keys() - binary.asked):
        array = binary.arrays[name]
        if not _UNUSED.fullmatch(name) and (array.ndim or array.any()):  # a flag of 0 is off
            binary.refuse(f"has {name!r:.60}, which is no part of a Transformer of regard")
    return options, weights


def _sizes(binary: Variables) -> tuple[int, int]:
    """Return the width of the model and that inside its feed-forward networks."""
    found = []
    for name, axis in (("decoder/embeddings/weight", 1), ("encoder/layer_0/ffn/linear_0/weight", 0)):
        array = binary.arrays.get(name)
        if array is None or array.ndim != 2 or not 0 < array.shape[axis] <= _MAX_SIZE:
            binary.refuse(f"has no {name}, or one of another shape; is it a whole Transformer?")
        found.append(array.shape[axis])
    return found[0], found[1]


def _depth(binary: Variables, side: Side) -> int:
    """Return the number of layers."""
    depth = 0
    while f"{side}/layer_{depth}/ffn/linear_0/weight" in binary.arrays:
        depth += 1
    if not 0 < depth <= MAX_LAYERS:
        binary.refuse(f"its {side} has {depth} layers")
    return depth


def _tables(layers: "_Layers", source: Vocabulary, target: Vocabulary) -> dict[str, Floats]:
    """Return the embeddings and the output matrix, where it is another one, for our ids."""
    binary, size, num_target = layers.binary, layers.size, len(target.pieces)
    names = ["encoder/embeddings/weight", "encoder/embeddings_0/weight"]
    scales = [np.float32(layers.scale(side) / np.sqrt(size)) for side in _SIDES]
    tables = {"target.weight": target.rows(binary.floats("decoder/embeddings/weight", num_target, size))}
    tables["target.weight"] *= scales[1]
    output = target.rows(binary.floats("decoder/projection/weight", num_target, size))
    if not np.array_equal(tables["target.weight"], output):
        tables["W_o"] = output
    del output  # each table may be a third of the model
    read = source.rows(binary.floats(names[names[0] not in binary.arrays], len(source.pieces), size))
    read *= scales[0]
    alike = source.pieces == target.pieces and np.array_equal(read, tables["target.weight"])
    if alike and "W_o" not in tables:
        del tables["target.weight"]
    tables["source.weight"] = read
    return tables


def _positions(layers: "_Layers") -> tuple[tuple[Floats, Floats] | None, Ids]:
    """Return the position vectors of both sides, None if they are those of the paper, and the order of the
    hidden vector in which they are so."""
    found, size = [], layers.size
    for side in _SIDES:
        name = f"{side}/position_encodings/encodings"
        array = layers.binary.arrays.get(name)
        if array is None:
            found.append(other_sinusoids(1, _MAX_POSITIONS, size))
        else:
            found.append(layers.binary.floats(name, len(array) if array.ndim else 0, size)[:_MAX_POSITIONS])
    most = min(map(len, found))
    usual = sinusoids(0, most, size)
    for order_H in (np.arange(size), halves_to_turns(size)):
        if all(np.abs(one[:most, order_H] - usual).max(initial=0) < 1e-2 for one in found):
            return None, order_H
    return (found[0][:most], found[1][:most]), np.arange(size)


@dataclass(frozen=True)
class _Layers:
    """The layers of a CTranslate2 model by our names."""

    binary: Variables
    size: int
    inner: int

    def same(self, name: str, default: float) -> float:
        """Return an attribute that encoder and decoder must share; old models have it once."""
        found = {self.binary.number(f"{side}/{name}", self.binary.number(name, default)) for side in _SIDES}
        if len(found) > 1:
            self.binary.refuse(f"encoder/{name} and decoder/{name} differ")
        return found.pop()

    def scale(self, side: Side) -> float:
        """Return what embeddings are multiplied by: usually the root of the width."""
        names = [f"{side}/scale_embeddings", f"{side}/embeddings/multiply_by_sqrt_depth"]
        name = names[names[0] not in self.binary.arrays]
        root = float(np.sqrt(self.size))
        given = self.binary.number(name, 1)
        is_flag = name not in self.binary.arrays or self.binary.arrays[name].dtype == np.int8
        return (root if given else 1.0) if is_flag else given

    def bias(self, name: str, size: int) -> Floats:
        """Return a bias; where there is none it is 0."""
        if name not in self.binary.arrays:
            return np.zeros(size, np.float32)
        return self.binary.floats(name, size)

    def linear(self, name: str, outputs: int, inputs: int) -> Linear:
        """Return a matrix and its bias."""
        return Linear(
            self.binary.floats(f"{name}/weight", outputs, inputs), self.bias(f"{name}/bias", outputs)
        )

    def attention(self, side: Side, layer: int, which: Which) -> Attention:
        """Return an attention; the matrices of keys and values, or of all three, are one."""
        name, size = f"{side}/layer_{layer}/{'self_attention' if which == 'own' else 'attention'}", self.size
        num_first = 3 if which == "own" else 1
        found = [*self._parts(f"{name}/linear_0", num_first)]
        if which == "cross":
            found += self._parts(f"{name}/linear_1", 2)
        q, k, v = found
        return Attention(q, k, v, self.linear(f"{name}/linear_{1 if which == 'own' else 2}", size, size))

    def _parts(self, name: str, count: int) -> list[Linear]:
        whole = self.linear(name, count * self.size, self.size)
        return [*map(Linear, np.split(whole.W, count), np.split(whole.b, count))]

    def feed_forward(self, side: Side, layer: int) -> tuple[Linear, Linear]:
        """Return a feed-forward network."""
        name = f"{side}/layer_{layer}/ffn/linear"
        return self.linear(f"{name}_0", self.inner, self.size), self.linear(
            f"{name}_1", self.size, self.inner
        )

    def norm(self, side: Side, layer: int, which: Literal["own", "cross", "feed_forward"]) -> Norm:
        """Return a layer norm."""
        theirs = {"own": "self_attention", "cross": "attention", "feed_forward": "ffn"}[which]
        return self._norm(f"{side}/layer_{layer}/{theirs}/layer_norm")

    def last_norm(self, side: Side) -> Norm:
        """Return the layer norm after the last layer."""
        return self._norm(f"{side}/layer_norm")

    def _norm(self, name: str) -> Norm:
        return Norm(
            self.binary.floats(f"{name}/gamma", self.size), self.binary.floats(f"{name}/beta", self.size)
        )
