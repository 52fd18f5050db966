"""The weights of another program's Transformer, with our names, our order and our ids."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.contract import Floats, Ids
from regard.errors import ForeignModelError
from regard.options.model import TransformerOptions
from regard.vocabulary import BOS, EOS, FIRST_BYTE, NUM_RESERVED, RESERVED, UNK

Side = Literal["encoder", "decoder"]
Which = Literal["own", "cross"]

_BYTES = {RESERVED[id]: id for id in range(FIRST_BYTE, NUM_RESERVED)}

MAX_SPLIT = 256
"""The most tokens of a source before it is split: models are trained on sentences."""

MAX_LAYERS = 1000
"""The most layers of an encoder or decoder."""

NEVER = -100.0
"""The logit of an id that the other program does not have, below the least of its biases: a probability of 0
in 32 bits."""


@dataclass(frozen=True, slots=True)
class Linear:
    """W x + b."""

    W: Floats
    b: Floats


@dataclass(frozen=True, slots=True)
class Attention:
    """The four matrices of an attention."""

    q: Linear
    k: Linear
    v: Linear
    o: Linear


@dataclass(frozen=True, slots=True)
class Norm:
    """Gain and bias of a layer norm."""

    gain: Floats
    bias: Floats


class Layers(Protocol):
    """What a file of another program gives: its layers by our names."""

    def attention(self, side: Side, layer: int, which: Which) -> Attention:
        """Return an attention."""

    def feed_forward(self, side: Side, layer: int) -> tuple[Linear, Linear]:
        """Return the two matrices of a feed-forward network."""

    def norm(self, side: Side, layer: int, which: Literal["own", "cross", "feed_forward"]) -> Norm:
        """Return the layer norm of a sub-layer."""

    def last_norm(self, side: Side) -> Norm:
        """Return the layer norm after the last layer, if norms come before sub-layers."""


def layer_weights(options: TransformerOptions, layers: Layers, order_H: Ids) -> Iterator[tuple[str, Floats]]:
    """Yield the weights of all layers with our names; number n of the hidden vector becomes what was at
    `order_H[n]`.

    The bias of the keys cancels in the softmax, and that of the values becomes part of the output's.
    """
    depths: tuple[tuple[Side, int], ...] = (
        ("encoder", options.num_encoder_layers),
        ("decoder", options.num_decoder_layers),
    )
    for side, depth in depths:
        for layer in range(depth):
            name = f"{side}.{layer}"
            if side == "encoder" or options.decoder_self == "attention":
                own = layers.attention(side, layer, "own")
                matrices = [one.W.take(order_H, axis=1) for one in (own.q, own.k, own.v)]
                yield f"{name}.own.W_QKV", np.concatenate(matrices)
                yield from _ends(f"{name}.own", own, order_H)
            yield from _norm(f"{name}.own_sum.norm", layers.norm(side, layer, "own"), order_H)
            if side == "decoder":
                cross = layers.attention(side, layer, "cross")
                yield f"{name}.cross.W_Q", cross.q.W.take(order_H, axis=1)
                matrices = [one.W.take(order_H, axis=1) for one in (cross.k, cross.v)]
                yield f"{name}.cross.W_KV", np.concatenate(matrices)
                yield from _ends(f"{name}.cross", cross, order_H)
                yield from _norm(f"{name}.cross_sum.norm", layers.norm(side, layer, "cross"), order_H)
            inner, outer = layers.feed_forward(side, layer)
            yield f"{name}.feed_forward.W_1", inner.W.take(order_H, axis=1)
            yield f"{name}.feed_forward.b_1", inner.b
            yield f"{name}.feed_forward.W_2", outer.W[order_H]
            yield f"{name}.feed_forward.b_2", outer.b[order_H]
            norm = layers.norm(side, layer, "feed_forward")
            yield from _norm(f"{name}.feed_forward_sum.norm", norm, order_H)
        if options.norm == "pre":
            yield from _norm(f"{side}_norm", layers.last_norm(side), order_H)


def _ends(name: str, attention: Attention, order_H: Ids) -> Iterator[tuple[str, Floats]]:
    output = attention.o
    yield f"{name}.W_O", output.W[order_H]
    yield f"{name}.b_Q", attention.q.b
    yield f"{name}.b_O", (output.b + output.W @ attention.v.b)[order_H]


def _norm(name: str, norm: Norm, order_H: Ids) -> Iterator[tuple[str, Floats]]:
    yield f"{name}.weight", norm.gain[order_H]
    yield f"{name}.bias", norm.bias[order_H]


def halves_to_turns(size: int) -> Ids:
    """Return the order that turns positions with all sines before all cosines into ours, sine and cosine in
    turns."""
    return np.arange(size).reshape(2, size // 2).T.ravel()


def other_sinusoids(first: int, num_positions: int, size: int) -> Floats:
    """Return sin(p w_i), then cos of the same, with w_i = 10000^(-i/(size/2 - 1)).

    So tensor2tensor, OpenNMT-tf and Marian compute positions: the last wavelength is exactly 10000 * 2 pi.
    """
    speed = np.exp(np.arange(size // 2) * (-np.log(10_000) / (size // 2 - 1)))
    angle = np.arange(first, first + num_positions)[:, None] * speed
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=1).astype(np.float32)


@dataclass(frozen=True)
class Vocabulary:
    """Their pieces by id, with the ids of those that have a meaning; `start` is what the decoder begins with,
    None for a vector of zeros. A source may have no `end`."""

    pieces: Sequence[str]
    start: int | None
    end: int | None
    unknown: int
    other: tuple[int, ...] = ()
    """Ids that are neither read nor said, such as that of padding."""

    @cached_property
    def reserved(self) -> dict[int, int]:
        """Their id for each of our reserved ids that they have."""
        special = {BOS: self.start, EOS: self.end, UNK: self.unknown}
        found = {ours: theirs for ours, theirs in special.items() if theirs is not None}
        of_bytes = {_BYTES[piece]: id for id, piece in enumerate(self.pieces) if piece in _BYTES}
        return found | of_bytes if len(of_bytes) == len(_BYTES) else found

    @property
    def has_bytes(self) -> bool:
        """Whether they have a piece for each byte, for characters that no piece has."""
        return FIRST_BYTE in self.reserved

    @cached_property
    def learnt_ids(self) -> list[int]:
        """Their ids of the pieces that follow our reserved ids."""
        special = {*self.reserved.values(), *self.other}
        return [id for id in range(len(self.pieces)) if id not in special]

    @property
    def learnt(self) -> list[str]:
        """The pieces that follow our reserved ids."""
        return [self.pieces[id] for id in self.learnt_ids]

    def rows(self, table: Floats, nothing: float = 0.0) -> Floats:
        """Return a table with a row for each of our ids, from one with a row for each of theirs.

        Of ids that they do not have the row is `nothing`.
        """
        learnt = self.learnt_ids
        placed = np.full((NUM_RESERVED + len(learnt), *table.shape[1:]), nothing, np.float32)
        placed[NUM_RESERVED:] = table[learnt]
        for ours, theirs in self.reserved.items():
            placed[ours] = table[theirs]
        return placed

    def biases(self, bias: Floats) -> Floats:
        """Return the output bias for each of our ids.

        It is very small for ids that they do not have, and for that of the start, which they never say.
        """
        never = float(bias[self.learnt_ids].min(initial=0)) + NEVER
        placed = self.rows(bias, never)
        placed[BOS] = never
        return placed


def frozen_start(weights: Mapping[str, Floats]) -> dict[str, NDArray[np.bool_]]:
    """Return the row of zeros that a decoder starts from, if it does: further training leaves it as it is."""
    name = "target.weight" if "target.weight" in weights else "source.weight"
    return {} if weights[name][BOS].any() else {name: np.arange(len(weights[name])) == BOS}


def check_shape(what: str, array: Floats, *shape: int) -> Floats:
    """Return an array if it has this shape."""
    if array.shape != shape:
        raise ForeignModelError(f"{what} has shape {array.shape} and should have {shape}; is it complete?")
    return array


def as_floats(what: str, array: NDArray[Any], copy: bool = True) -> Floats:
    """Return numbers of any type as 32-bit ones, if all of them are finite."""
    with np.errstate(all="ignore"):
        numbers = array.astype(np.float32, copy=copy)
    if not np.isfinite(numbers).all():
        raise ForeignModelError(f"{what} has values that are not finite; it may be damaged")
    return numbers
