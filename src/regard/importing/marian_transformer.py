"""A Transformer of Marian: its positions are not quite those of the paper."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from regard.contract import Floats, Ids
from regard.errors import ConfigError
from regard.importing.marian_file import Arrays, Export, MarianFile
from regard.importing.weights import (
    MAX_LAYERS,
    Attention,
    Linear,
    Norm,
    Side,
    Vocabulary,
    Which,
    halves_to_turns,
    layer_weights,
    other_sinusoids,
)
from regard.options.model import LearnedPositions, TransformerOptions

OUTPUT = "decoder_ff_logit_out"
"""The output layer."""
_NUM_POSITIONS = 1024
_LIKE_MARIANS = 1e-3
"""The largest difference of positions that come from the same formula, computed in 32 bits."""
ACTIVATIONS: dict[str, Any] = {"relu": "relu", "swish": "swish"}
"""Ours by their name. Their gelu is another function."""
NORMS: dict[tuple[str, ...], Literal["pre", "post"]] = {("", "dan", ""): "post", ("n", "da", "n"): "pre"}
"""Ours by what they do before and after each sub-layer and after the last."""
_NEEDED: dict[str, tuple[str, ...]] = {
    "transformer-decoder-autoreg": ("self-attention", "rnn"),
    "transformer-rnn-projection": ("false",),
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
}


def read_transformer(
    file: MarianFile, source: Vocabulary, target: Vocabulary
) -> tuple[TransformerOptions, dict[str, Floats]]:
    """Return the options of a model and its weights with our names."""
    file.refuse_unless(_NEEDED)
    npz, size, inner = file.npz, file.whole("dim-emb")[0], file.whole("transformer-dim-ffn")[0]
    if file.word("transformer-decoder-dim-ffn", "0") not in ("0", str(inner)):
        npz.refuse("transformer-decoder-dim-ffn differs from transformer-dim-ffn")
    heads, *depths = (file.whole(key)[0] for key in ("transformer-heads", "enc-depth", "dec-depth"))
    if size % 2 or size < 4 or heads < 1 or size % heads or not all(0 < one <= MAX_LAYERS for one in depths):
        npz.refuse(f"dim-emb = {size}, transformer-heads = {heads}, depths {depths} are not possible")
    recurs = file.word("transformer-decoder-autoreg", "self-attention") == "rnn"
    if recurs:
        file.refuse_unless({"dec-cell": ("ssru",), "layer-normalization": ("false",)})
    activation = file.word("transformer-ffn-activation", "swish")
    if activation not in ACTIVATIONS:
        npz.refuse(f"transformer-ffn-activation = {activation!r:.40} is none of {', '.join(ACTIVATIONS)}")
    norms = tuple(
        file.word(f"transformer-{key}", "") for key in ("preprocess", "postprocess", "postprocess-top")
    )
    if norms not in NORMS:
        npz.refuse(
            f"transformer-preprocess, -postprocess and -postprocess-top = {norms!r:.60} are not supported"
        )
    tables = file.tables(source, target, size, OUTPUT)
    options = TransformerOptions(
        hidden_size=size,
        feed_forward_size=inner,
        num_heads=heads,
        num_encoder_layers=depths[0],
        num_decoder_layers=depths[1],
        decoder_self="ssru" if recurs else "attention",
        norm=NORMS[norms],
        positions=LearnedPositions(max_positions=_NUM_POSITIONS),
        activation=ACTIVATIONS[activation],
        biases=True,
        tie=file.tie(tables),
    )
    positions = other_sinusoids(0, _NUM_POSITIONS, size)
    weights = tables | {"source_positions": positions, "target_positions": positions.copy()}
    weights["b_o"] = target.biases(file.bias(f"{OUTPUT}_b", len(target.pieces)))
    layers = _Layers(file, size, inner, recurs)
    if recurs:
        for layer in range(depths[1]):
            name = f"{layers.layer('decoder', layer)}_rnn"
            new, forget = (layers.linear(name, part, size, size) for part in ("", "f"))
            weights[f"decoder.{layer}.own.W_CF"] = np.concatenate([new.W, forget.W])
            weights[f"decoder.{layer}.own.b_F"] = forget.b
    return options, weights | dict(layer_weights(options, layers, np.arange(size)))


@dataclass(frozen=True)
class _Layers:
    """The layers of a Marian model by our names."""

    file: MarianFile
    size: int
    inner: int
    recurs: bool

    def linear(self, name: str, part: str, inputs: int, outputs: int) -> Linear:
        """Return a matrix, which they multiply from the right, and its bias."""
        W = np.ascontiguousarray(self.file.floats(f"{name}_W{part}", inputs, outputs).T)
        return Linear(W, self.file.bias(f"{name}_b{part}", outputs))

    def layer(self, side: Side, layer: int) -> str:
        """Return the name of a layer; those of the decoder may share their weights."""
        tied = self.file.settings.get("transformer-tied-layers", []) if side == "decoder" else []
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
        is_pre = self.file.word("transformer-preprocess", "") != ""
        theirs = _name_of_norm(which, is_pre, self.recurs and side == "decoder")
        return self._norm(f"{self.layer(side, layer)}_{theirs}", "_pre" * is_pre)

    def last_norm(self, side: Side) -> Norm:
        """Return the layer norm after the last layer."""
        return self._norm(f"{side}_top", "")

    def _norm(self, name: str, end: str) -> Norm:
        found = (self.file.floats(f"{name}_ln_{part}{end}", 1, self.size)[0] for part in ("scale", "bias"))
        return Norm(*found)


def _name_of_norm(which: Literal["own", "cross", "feed_forward"], is_pre: bool, recurs: bool) -> str:
    """Return their name of the layer norm of a sub-layer, which may be an SSRU."""
    if which == "own" and recurs:
        return "rnn" if is_pre else "rnn_ffn"
    return {"own": "self_Wo", "cross": "context_Wo", "feed_forward": "ffn_ffn"}[which]


def export_transformer(options: TransformerOptions, weights: Mapping[str, Floats]) -> Export:
    """Return a model for Marian; raise an error for one that it cannot express."""
    if options.activation not in ACTIVATIONS:
        raise ConfigError(f"Marian cannot express activation = {options.activation!r}")
    for name in ("source_positions", "target_positions") if options.positions.kind == "learned" else ():
        table = weights[name]
        if np.abs(table - other_sinusoids(0, *table.shape)).max() > _LIKE_MARIANS:
            raise ConfigError("Marian computes positions by a formula, and those of this model are learnt")
    norms = next(theirs for theirs, ours in NORMS.items() if ours == options.norm)
    before_and_after = ("transformer-preprocess", "transformer-postprocess", "transformer-postprocess-top")
    settings = dict(zip(before_and_after, norms, strict=True)) | {
        "type": "transformer",
        "dim-emb": options.hidden_size,
        "enc-depth": options.num_encoder_layers,
        "dec-depth": options.num_decoder_layers,
        "transformer-heads": options.num_heads,
        "transformer-dim-ffn": options.feed_forward_size,
        "transformer-ffn-activation": options.activation,
    }
    if options.decoder_self == "ssru":
        settings |= {"transformer-decoder-autoreg": "rnn", "dec-cell": "ssru"}
    return Export(OUTPUT, _order_of_hidden(options), settings, _arrays(options, weights))


def _arrays(options: TransformerOptions, weights: Mapping[str, Floats]) -> Arrays:
    """Yield the arrays of all layers with Marian's names: an import undone.

    Marian has all sines of a position before all cosines.
    """
    writer = _Writer.of(options, weights)
    sides = (("encoder", options.num_encoder_layers), ("decoder", options.num_decoder_layers))
    for side, depth in sides:
        for layer in range(depth):
            yield from writer.layer(f"{side}.{layer}", f"{side}_l{layer + 1}")
        if writer.is_pre:
            yield from writer.norm(f"{side}_norm", f"{side}_top", "")


def _order_of_hidden(options: TransformerOptions) -> Ids:
    """Return where each number of their hidden vector is in ours."""
    size = options.hidden_size
    return np.arange(size) if options.positions.kind == "learned" else np.argsort(halves_to_turns(size))


@dataclass(frozen=True)
class _Writer:
    """Weights of ours as arrays of theirs."""

    weights: Mapping[str, Floats]
    order_H: Ids
    is_pre: bool

    @classmethod
    def of(cls, options: TransformerOptions, weights: Mapping[str, Floats]) -> "_Writer":
        return cls(weights, _order_of_hidden(options), options.norm == "pre")

    def layer(self, ours: str, theirs: str) -> Arrays:
        """Yield a layer."""
        recurs = f"{ours}.own.W_CF" in self.weights
        if recurs:
            new, forget = np.split(self.weights[f"{ours}.own.W_CF"], 2)
            yield f"{theirs}_rnn_W", new[np.ix_(self.order_H, self.order_H)].T
            yield f"{theirs}_rnn_Wf", forget[np.ix_(self.order_H, self.order_H)].T
            yield f"{theirs}_rnn_bf", self.weights[f"{ours}.own.b_F"][None, self.order_H]
        else:
            yield from self.attention(f"{ours}.own", f"{theirs}_self", ("W_QKV",))
        parts: list[Literal["own", "cross", "feed_forward"]] = ["own", "feed_forward"]
        if f"{ours}.cross.W_Q" in self.weights:
            yield from self.attention(f"{ours}.cross", f"{theirs}_context", ("W_Q", "W_KV"))
            parts.append("cross")
        inner, outer = (self.weights[f"{ours}.feed_forward.{name}"] for name in ("W_1", "W_2"))
        yield f"{theirs}_ffn_W1", inner[:, self.order_H].T
        yield f"{theirs}_ffn_b1", self.weights[f"{ours}.feed_forward.b_1"][None]
        yield f"{theirs}_ffn_W2", outer[self.order_H].T
        yield f"{theirs}_ffn_b2", self.weights[f"{ours}.feed_forward.b_2"][None, self.order_H]
        for part in parts:
            name = f"{theirs}_{_name_of_norm(part, self.is_pre, recurs)}"
            yield from self.norm(f"{ours}.{part}_sum.norm", name, "_pre" * self.is_pre)

    def attention(self, ours: str, theirs: str, matrices: tuple[str, ...]) -> Arrays:
        """Yield an attention; keys and values have no biases, as they are part of others."""
        whole = np.concatenate([self.weights[f"{ours}.{name}"] for name in matrices])
        none_H = np.zeros(len(self.order_H), np.float32)
        biases = {"q": self.weights.get(f"{ours}.b_Q", none_H)}
        for letter, matrix in zip("qkv", np.split(whole, 3), strict=True):
            yield f"{theirs}_W{letter}", matrix[:, self.order_H].T
            yield f"{theirs}_b{letter}", biases.get(letter, none_H)[None]
        yield f"{theirs}_Wo", self.weights[f"{ours}.W_O"][self.order_H].T
        yield f"{theirs}_bo", self.weights.get(f"{ours}.b_O", none_H)[None, self.order_H]

    def norm(self, ours: str, theirs: str, end: str) -> Arrays:
        """Yield a layer norm."""
        for part, name in (("scale", "weight"), ("bias", "bias")):
            yield f"{theirs}_ln_{part}{end}", self.weights[f"{ours}.{name}"][None, self.order_H]
