"""The Transformer in NumPy (Vaswani et al. 2017)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from regard.contract import Batch, Floats, Forced, Ids, Probe, Step, check_length, check_source, unseen
from regard.options.model import TransformerOptions
from regard.runtime.equations import (
    ACTIVATIONS,
    Weights,
    by_column,
    in_blocks,
    layer_norm,
    linear,
    products,
    relu,
    sigmoid,
    sinusoids,
    softmax,
    under,
)
from regard.vocabulary import EOS

_ROOM = 16  # steps there is room for at first
_SINUSOIDS = 256  # positions worked out once and for all


class Past:
    """The keys and values that every decoder layer has of the target so far, with room for more.

    A state and those that follow it share the array. Each reads its own steps only; the one that has them all
    writes the next into it, any other goes on in a copy.
    """

    def __init__(self, kept_TL2RH: Floats, num_steps: int) -> None:
        self.kept_TL2RH = kept_TL2RH
        self.num_steps = num_steps

    def lengthened(self, first: int, last: int) -> "Past":
        """Return what has the first steps and, for the caller to write, those up to the last."""
        if self.num_steps == first and last <= len(self.kept_TL2RH):
            self.num_steps = last
            return self
        longer_TL2RH = np.empty(
            (max(last, 2 * first, _ROOM), *self.kept_TL2RH.shape[1:]), self.kept_TL2RH.dtype
        )
        longer_TL2RH[:first] = self.kept_TL2RH[:first]
        return Past(longer_TL2RH, last)

    def select(self, num_steps: int, rows: Ids) -> "Past":
        """Return the first steps of these rows, with as much room."""
        shape = self.kept_TL2RH.shape
        chosen_TL2RH = np.empty((*shape[:3], len(rows), shape[4]), self.kept_TL2RH.dtype)
        # `clip` writes straight into `out`; the usual mode fills a copy of it first.
        self.kept_TL2RH[:num_steps].take(rows, axis=3, out=chosen_TL2RH[:num_steps], mode="clip")
        return Past(chosen_TL2RH, num_steps)


@dataclass(frozen=True, slots=True)
class TransformerState:
    """All the decoder remembers between two steps.

    Every source has so many rows, side by side, which share its keys and values.
    """

    past: Past
    step: int
    source_L2BSH: Floats
    real_BS: NDArray[np.bool_]
    rows_per_source: int
    cells_LRH: Floats | None = None
    """With SSRU, what each layer remembers in place of the past."""

    def select(self, rows: Ids) -> "TransformerState":
        """Return the state with these rows; the source's part stays while rows keep their sentence."""
        past, num_rows = self.past.select(self.step, rows), len(rows)
        cells_LRH = None if self.cells_LRH is None else self.cells_LRH[:, rows]
        chosen_B = _shared(rows // self.rows_per_source)
        source_L2BSH, real_BS = self.source_L2BSH, self.real_BS
        if not np.array_equal(chosen_B, np.arange(len(real_BS))):
            source_L2BSH, real_BS = source_L2BSH.take(chosen_B, axis=2), real_BS[chosen_B]
        rows_per_source = num_rows // max(len(chosen_B), 1)
        return TransformerState(past, self.step, source_L2BSH, real_BS, rows_per_source, cells_LRH)

    def spread(self) -> "TransformerState":
        """Return the state with the source's part once for each row."""
        source_R = np.repeat(np.arange(len(self.real_BS)), self.rows_per_source)
        source_L2BSH = self.source_L2BSH.take(source_R, axis=2)
        return replace(self, source_L2BSH=source_L2BSH, real_BS=self.real_BS[source_R], rows_per_source=1)


def _shared(source_R: Ids) -> Ids:
    """Return the sources of rows that stand in groups of one size, each of one source; else of every row."""
    changes = np.flatnonzero(np.diff(source_R))
    size = int(changes[0]) + 1 if len(changes) else max(len(source_R), 1)
    if len(source_R) % size == 0:
        source_BK = source_R.reshape(-1, size)
        if (source_BK == source_BK[:, :1]).all():
            return source_BK[:, 0]
    return source_R


class TransformerEngine:
    """A Transformer ready to translate."""

    def __init__(self, options: TransformerOptions, weights: Mapping[str, Floats]) -> None:
        self.options = options
        positions = options.positions
        self.max_tokens = positions.max_positions if positions.kind == "learned" else None
        weights = by_column(weights)
        self.encoder = [_parts(f"encoder.{layer}.", weights) for layer in range(options.num_encoder_layers)]
        self.decoder = [_parts(f"decoder.{layer}.", weights) for layer in range(options.num_decoder_layers)]
        size = options.hidden_size
        W_KV_L2HH = np.stack([w["cross"]["W_KV"].reshape(2, size, size) for w in self.decoder])
        self.W_KV_L2HH = np.ascontiguousarray(W_KV_L2HH.swapaxes(2, 3)).swapaxes(2, 3)  # by column
        self.encoder_norm, self.decoder_norm = (
            under("encoder_norm.", weights),
            under("decoder_norm.", weights),
        )
        self.positions = {side: weights.get(f"{side}_positions") for side in ("source", "target")}
        self.first_sinusoids = sinusoids(0, _SINUSOIDS, size).astype(W_KV_L2HH.dtype)
        self.source = under("source.", weights)
        self.E = weights["target.weight"] if "target.weight" in weights else weights["source.weight"]
        words_VH = weights.get("W_o", self.E)
        self.W_o, self.b_o = in_blocks(words_VH), weights.get("b_o")
        if self.b_o is None and self.W_o.size > words_VH.size:
            # Their number tells `linear` how many ids there are besides what fills the last block.
            self.b_o = np.zeros(len(words_VH), words_VH.dtype)
        self.activation = ACTIVATIONS[options.activation]

    def start(self, batch: Batch, probe: Probe = unseen) -> TransformerState:
        """Read the sources; the state has a row for each."""
        check_source(self.options.source, batch)
        if batch.features_BSF is None:
            embedded_BSH = self.source["weight"][batch.source_BS] * math.sqrt(self.options.hidden_size)
        else:
            embedded_BSH = linear(batch.features_BSF, self.source["W_f"], self.source["b_f"])
        real_BS = batch.source_real_BS
        if not self.options.source_end:
            seen_BS = real_BS & (batch.source_BS != EOS)
            real_BS = np.where(seen_BS.any(1, keepdims=True), seen_BS, real_BS)  # a softmax needs one token
        x_BSH = self._place("source", embedded_BSH, 0, probe)
        for layer, w in enumerate(self.encoder):
            name = f"encoder.{layer}"
            inner_BSH = self._enter(x_BSH, w["own_sum.norm"])
            q_BSH, k_BSH, v_BSH = np.split(linear(inner_BSH, w["own"]["W_QKV"]), 3, axis=-1)
            mixed_BSH, _ = self._attend(
                q_BSH, k_BSH, v_BSH, real_BS[:, None, None], w["own"], probe, f"{name}.self"
            )
            x_BSH = probe(f"{name}.self.sum", self._leave(x_BSH, mixed_BSH, w["own_sum.norm"]))
            x_BSH = probe(f"{name}.states", self._feed_forward(x_BSH, w, probe, f"{name}.feed_forward"))
        memory_BSH = probe("memory", layer_norm(x_BSH, **self.encoder_norm) if self.encoder_norm else x_BSH)
        num_layers, size = len(self.decoder), self.options.hidden_size
        kv_L2XH = memory_BSH.reshape(-1, size) @ self.W_KV_L2HH.swapaxes(2, 3)
        source_L2BSH = kv_L2XH.reshape(num_layers, 2, *memory_BSH.shape)
        recurs = self.options.decoder_self == "ssru"
        past = Past(np.empty((0, num_layers, 2, len(real_BS), 0 if recurs else size), memory_BSH.dtype), 0)
        cells_LRH = np.zeros((num_layers, len(real_BS), size), memory_BSH.dtype) if recurs else None
        return TransformerState(past, 0, source_L2BSH, real_BS, 1, cells_LRH)

    def step(self, state: TransformerState, ids_R: Ids, probe: Probe = unseen) -> Step[TransformerState]:
        """Read one more target id in each row."""
        forced, after = self._decode(state, ids_R[:, None], probe)
        return Step(forced.logits_BTV[:, 0], forced.attention_BTLNS[:, 0], after)

    def force(self, batch: Batch, probe: Probe = unseen) -> Forced:
        """Read the batch's own targets, all positions at once."""
        return self._decode(self.start(batch, probe), batch.forced_in_BT, probe)[0]

    def _decode(self, state: TransformerState, ids_RT: Ids, probe: Probe) -> tuple[Forced, TransformerState]:
        """Read the next ids of each row; return what the model says to them, and the state after them."""
        if probe is not unseen:  # who looks is shown the keys and values of every row
            state = state.spread()
        (num_rows, num_steps), size = ids_RT.shape, self.options.hidden_size
        num_sources, first, last = len(state.real_BS), state.step, state.step + num_steps
        past = state.past.lengthened(first, last)
        seen_TT = np.arange(last) <= np.arange(first, last)[:, None]
        x_RTH = self._place("target", self.E[ids_RT] * math.sqrt(size), first, probe)
        weights, cells = [], []
        for layer, w in enumerate(self.decoder):
            name = f"decoder.{layer}"
            inner_RTH = self._enter(x_RTH, w["own_sum.norm"])
            if state.cells_LRH is not None:
                c_RH = state.cells_LRH[layer]
                mixed_RTH, after_RH = self._recur(inner_RTH, c_RH, w["own"], probe, f"{name}.self")
                cells.append(after_RH)
            else:
                qkv_RTX = linear(inner_RTH, w["own"]["W_QKV"])
                q_RTH = qkv_RTX[..., :size]
                kv_RT2H = qkv_RTX[..., size:].reshape(num_rows, num_steps, 2, size)
                past.kept_TL2RH[first:last, layer] = kv_RT2H.transpose(1, 2, 0, 3)
                k_RTH, v_RTH = past.kept_TL2RH[:last, layer].transpose(1, 2, 0, 3)
                mixed_RTH, _ = self._attend(q_RTH, k_RTH, v_RTH, seen_TT, w["own"], probe, f"{name}.self")
            x_RTH = probe(f"{name}.self.sum", self._leave(x_RTH, mixed_RTH, w["own_sum.norm"]))
            q_RTH = linear(self._enter(x_RTH, w["cross_sum.norm"]), w["cross"]["W_Q"])
            k_BSH, v_BSH = state.source_L2BSH[layer]
            # To a source all queries of its rows are like those of one row.
            mixed_BXH, weights_BNXS = self._attend(
                q_RTH.reshape(num_sources, state.rows_per_source * num_steps, size),
                k_BSH,
                v_BSH,
                state.real_BS[:, None, None],
                w["cross"],
                probe,
                f"{name}.cross",
            )
            x_RTH = probe(
                f"{name}.cross.sum", self._leave(x_RTH, mixed_BXH.reshape(x_RTH.shape), w["cross_sum.norm"])
            )
            x_RTH = probe(f"{name}.states", self._feed_forward(x_RTH, w, probe, f"{name}.feed_forward"))
            weights.append(weights_BNXS)
        readout_RTQ = probe("readout", layer_norm(x_RTH, **self.decoder_norm) if self.decoder_norm else x_RTH)
        logits_RTV = probe("logits", linear(readout_RTQ, self.W_o, self.b_o))
        weights_BXLNS = np.stack(weights, axis=1).transpose(0, 3, 1, 2, 4)
        attention_RTLNS = weights_BXLNS.reshape(num_rows, num_steps, *weights_BXLNS.shape[2:])
        after = replace(state, past=past, step=last, cells_LRH=np.stack(cells) if cells else None)
        return Forced(logits_RTV, attention_RTLNS), after

    def _place(self, side: str, embedded_BTH: Floats, first: int, probe: Probe) -> Floats:
        """Return the embeddings, √d times those of words (section 3.4), plus the positions (section 3.5)."""
        size, last = embedded_BTH.shape[2], first + embedded_BTH.shape[1]
        embedded_BTH = probe(f"{side}.embedded", embedded_BTH)
        learned = self.positions[side]
        if learned is None and last <= len(self.first_sinusoids):
            positions_TH = self.first_sinusoids[first:last]
        elif learned is None:
            positions_TH = sinusoids(first, last - first, size).astype(embedded_BTH.dtype)
        else:
            check_length(last, len(learned))
            positions_TH = learned[first:last]
        return embedded_BTH + probe(f"{side}.positions", positions_TH)

    def _heads(self, x_BTH: Floats) -> Floats:
        """Return the last axis cut into heads."""
        batch, steps, size = x_BTH.shape
        num_heads = self.options.num_heads
        return x_BTH.reshape(batch, steps, num_heads, size // num_heads).transpose(0, 2, 1, 3)

    def _attend(
        self,
        q_BTH: Floats,
        k_BSH: Floats,
        v_BSH: Floats,
        seen: NDArray[np.bool_],
        w: Weights,
        probe: Probe,
        name: str,
    ) -> tuple[Floats, Floats]:
        """Return Concat(heads) W_O with head = softmax(Q K^T / √d_k) V (eq. 1), and the weights."""
        if self.options.biases:
            q_BTH = q_BTH + w["b_Q"]
        q_BNTD, k_BNSD = probe(f"{name}.query", self._heads(q_BTH)), probe(f"{name}.keys", self._heads(k_BSH))
        v_BNSD = probe(f"{name}.values", self._heads(v_BSH))
        scaled_BNTD = q_BNTD * (1 / math.sqrt(q_BNTD.shape[-1]))
        scores_BNTS = probe(f"{name}.scores", products(scaled_BNTD, k_BNSD))
        weights_BNTS = probe(f"{name}.weights", softmax(scores_BNTS, probe(f"{name}.seen", seen)))
        heads_BNTD = probe(f"{name}.heads", weights_BNTS @ v_BNSD)
        concat_BTH = heads_BNTD.transpose(0, 2, 1, 3).reshape(q_BTH.shape)
        return probe(f"{name}.output", linear(concat_BTH, w["W_O"], w.get("b_O"))), weights_BNTS

    def _recur(
        self, x_RTH: Floats, c_RH: Floats, w: Weights, probe: Probe, name: str
    ) -> tuple[Floats, Floats]:
        """Return ReLU(c_t) of each step, and the last c: the simpler simple recurrent unit (Kim et al. 2019).

        c_t = f c_{t-1} + (1 - f) W x with f = σ(W_f x + b_f).
        """
        size = c_RH.shape[-1]
        sums_RTX = linear(x_RTH, w["W_CF"])
        new_RTH = probe(f"{name}.candidate", sums_RTX[..., :size])
        f_RTH = probe(f"{name}.forget", sigmoid(sums_RTX[..., size:] + w["b_F"]))
        c_RTH = np.empty_like(new_RTH)
        for step in range(x_RTH.shape[1]):
            c_RTH[:, step] = c_RH = new_RTH[:, step] + f_RTH[:, step] * (c_RH - new_RTH[:, step])
        c_RTH = probe(f"{name}.memory", c_RTH)
        return probe(f"{name}.output", relu(c_RTH)), c_RTH[:, -1]

    def _feed_forward(self, x_BTH: Floats, w: Mapping[str, Weights], probe: Probe, name: str) -> Floats:
        """Return the sub-layer f(x W_1 + b_1) W_2 + b_2 (eq. 2, where f is max(0, x)) and its residual."""
        inner_BTH = self._enter(x_BTH, w["feed_forward_sum.norm"])
        f = w["feed_forward"]
        inner_BTX = probe(f"{name}.inner", self.activation(linear(inner_BTH, f["W_1"], f["b_1"])))
        output_BTH = probe(f"{name}.output", linear(inner_BTX, f["W_2"], f["b_2"]))
        return self._leave(x_BTH, output_BTH, w["feed_forward_sum.norm"])

    def _enter(self, x_BTH: Floats, norm: Weights) -> Floats:
        """Return what a sub-layer is given: x, or LayerNorm(x) before each sub-layer."""
        return layer_norm(x_BTH, **norm) if self.options.norm == "pre" else x_BTH

    def _leave(self, x_BTH: Floats, output_BTH: Floats, norm: Weights) -> Floats:
        """Return x + Sublayer, normalised after it as in section 3.1 if not before."""
        sum_BTH = x_BTH + output_BTH
        return sum_BTH if self.options.norm == "pre" else layer_norm(sum_BTH, **norm)


def _parts(prefix: str, weights: Weights) -> dict[str, Weights]:
    """Return the weights of each part of a layer."""
    inner = under(prefix, weights)
    parts = {name.rpartition(".")[0] for name in inner}
    return {part: under(f"{part}.", inner) for part in parts}
