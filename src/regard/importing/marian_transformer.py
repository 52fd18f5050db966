"""A Transformer of Marian: its positions are not quite those of the paper."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from regard.contract import Floats
from regard.importing.marian_file import MarianFile
from regard.importing.weights import (
    Attention,
    Linear,
    Norm,
    Side,
    Vocabulary,
    Which,
    layer_weights,
    other_sinusoids,
)
from regard.options.model import LearnedPositions, TransformerOptions

_NUM_POSITIONS = 1024
_ACTIVATIONS: dict[str, Any] = {"relu": "relu", "swish": "swish"}  # its gelu is another function
_NORMS: dict[tuple[str, ...], Literal["pre", "post"]] = {("", "dan", ""): "post", ("n", "da", "n"): "pre"}
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
    if size % 2 or size < 4 or heads < 1 or size % heads or not all(0 < one <= 1000 for one in depths):
        npz.refuse(f"dim-emb = {size}, transformer-heads = {heads}, depths {depths} are not possible")
    recurs = file.word("transformer-decoder-autoreg", "self-attention") == "rnn"
    if recurs:
        file.refuse_unless({"dec-cell": ("ssru",), "layer-normalization": ("false",)})
    activation = file.word("transformer-ffn-activation", "swish")
    if activation not in _ACTIVATIONS:
        npz.refuse(f"transformer-ffn-activation = {activation!r:.40} is none of {', '.join(_ACTIVATIONS)}")
    norms = tuple(
        file.word(f"transformer-{key}", "") for key in ("preprocess", "postprocess", "postprocess-top")
    )
    if norms not in _NORMS:
        npz.refuse(
            f"transformer-preprocess, -postprocess and -postprocess-top = {norms!r:.60} are not supported"
        )
    tables = file.tables(source, target, size, "decoder_ff_logit_out")
    options = TransformerOptions(
        hidden_size=size,
        feed_forward_size=inner,
        num_heads=heads,
        num_encoder_layers=depths[0],
        num_decoder_layers=depths[1],
        decoder_self="ssru" if recurs else "attention",
        norm=_NORMS[norms],
        positions=LearnedPositions(max_positions=_NUM_POSITIONS),
        activation=_ACTIVATIONS[activation],
        biases=True,
        tie=file.tie(tables),
    )
    positions = other_sinusoids(0, _NUM_POSITIONS, size)
    weights = tables | {"source_positions": positions, "target_positions": positions.copy()}
    weights["b_o"] = target.biases(file.bias("decoder_ff_logit_out_b", len(target.pieces)))
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
        theirs = {"own": "self_Wo", "cross": "context_Wo", "feed_forward": "ffn_ffn"}[which]
        end = "" if self.file.word("transformer-preprocess", "") == "" else "_pre"
        if which == "own" and side == "decoder" and self.recurs:
            theirs = "rnn" if end else "rnn_ffn"
        return self._norm(f"{self.layer(side, layer)}_{theirs}", end)

    def last_norm(self, side: Side) -> Norm:
        """Return the layer norm after the last layer."""
        return self._norm(f"{side}_top", "")

    def _norm(self, name: str, end: str) -> Norm:
        found = (self.file.floats(f"{name}_ln_{part}{end}", 1, self.size)[0] for part in ("scale", "bias"))
        return Norm(*found)
