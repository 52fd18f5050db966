"""The Transformer in NumPy (Vaswani et al. 2017)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from regard.config import TransformerOptions
from regard.contract import Batch, Floats, Forced, Ids, Probe, Step, check_length, check_source, unseen
from regard.runtime.equations import Weights, layer_norm, linear, sinusoids, softmax, under


@dataclass(frozen=True, slots=True)
class LayerState:
    """What one decoder layer keeps: keys and values of the target so far, and of the source."""

    own_keys_RNTD: Floats
    own_values_RNTD: Floats
    source_keys_RNSD: Floats
    source_values_RNSD: Floats


@dataclass(frozen=True, slots=True)
class TransformerState:
    """All the decoder remembers between two steps."""

    layers: tuple[LayerState, ...]
    step: int
    sentence_R: Ids
    real_RS: NDArray[np.bool_]

    def select(self, rows: Ids) -> "TransformerState":
        """Return the state with these rows; the source's part stays while rows keep their sentence."""
        sentence_R = self.sentence_R[rows]
        moved = not np.array_equal(sentence_R, self.sentence_R)
        layers = tuple(
            LayerState(
                layer.own_keys_RNTD[rows],
                layer.own_values_RNTD[rows],
                layer.source_keys_RNSD[rows] if moved else layer.source_keys_RNSD,
                layer.source_values_RNSD[rows] if moved else layer.source_values_RNSD,
            )
            for layer in self.layers
        )
        return TransformerState(layers, self.step, sentence_R, self.real_RS[rows] if moved else self.real_RS)


class TransformerEngine:
    """A Transformer ready to translate."""

    def __init__(self, options: TransformerOptions, weights: Mapping[str, Floats]) -> None:
        self.options = options
        positions = options.positions
        self.max_tokens = positions.max_positions if positions.kind == "learned" else None
        self.encoder = [_parts(f"encoder.{layer}.", weights) for layer in range(options.num_encoder_layers)]
        self.decoder = [_parts(f"decoder.{layer}.", weights) for layer in range(options.num_decoder_layers)]
        self.encoder_norm, self.decoder_norm = (
            under("encoder_norm.", weights),
            under("decoder_norm.", weights),
        )
        self.positions = {side: weights.get(f"{side}_positions") for side in ("source", "target")}
        self.source = under("source.", weights)
        self.E = weights["target.weight"] if "target.weight" in weights else weights["source.weight"]
        self.W_o = weights.get("W_o", self.E)

    def start(self, batch: Batch, probe: Probe = unseen) -> TransformerState:
        """Read the sources; the state has a row for each."""
        check_source(self.options.source, batch)
        if batch.features_BSF is None:
            embedded_BSH = self.source["weight"][batch.source_BS] * math.sqrt(self.options.hidden_size)
        else:
            embedded_BSH = linear(batch.features_BSF, self.source["W_f"], self.source["b_f"])
        real_BS = batch.source_real_BS
        x_BSH = self._place("source", embedded_BSH, 0, probe)
        for layer, w in enumerate(self.encoder):
            name = f"encoder.{layer}"
            inner_BSH = self._enter(x_BSH, w["own_sum.norm"])
            q, k, v = self._heads(linear(inner_BSH, w["own"]["W_QKV"]))
            mixed_BSH, _ = self._attend(q, k, v, real_BS[:, None, None], w["own"], probe, f"{name}.self")
            x_BSH = probe(f"{name}.self.sum", self._leave(x_BSH, mixed_BSH, w["own_sum.norm"]))
            x_BSH = probe(f"{name}.states", self._feed_forward(x_BSH, w, probe, f"{name}.feed_forward"))
        memory_BSH = probe("memory", layer_norm(x_BSH, **self.encoder_norm) if self.encoder_norm else x_BSH)
        layers = []
        for w in self.decoder:
            k, v = self._heads(linear(memory_BSH, w["cross"]["W_KV"]))
            layers.append(LayerState(k[:, :, :0], v[:, :, :0], k, v))
        return TransformerState(tuple(layers), 0, np.arange(len(real_BS)), real_BS)

    def step(self, state: TransformerState, ids_R: Ids, probe: Probe = unseen) -> Step[TransformerState]:
        """Read one more target id in each row."""
        forced, after = self._decode(state, ids_R[:, None], probe)
        return Step(forced.logits_BTV[:, 0], forced.attention_BTLNS[:, 0], after)

    def force(self, batch: Batch, probe: Probe = unseen) -> Forced:
        """Read the batch's own targets, all positions at once."""
        return self._decode(self.start(batch, probe), batch.forced_in_BT, probe)[0]

    def _decode(self, state: TransformerState, ids_RT: Ids, probe: Probe) -> tuple[Forced, TransformerState]:
        """Read the next ids of each row; return what the model says to them, and the state after them."""
        first, num_steps = state.step, ids_RT.shape[1]
        seen_TT = np.arange(first + num_steps) <= np.arange(first, first + num_steps)[:, None]
        x_RTH = self._place("target", self.E[ids_RT] * math.sqrt(self.options.hidden_size), first, probe)
        layers, weights = [], []
        for layer, (w, past) in enumerate(zip(self.decoder, state.layers, strict=True)):
            name = f"decoder.{layer}"
            q, k, v = self._heads(linear(self._enter(x_RTH, w["own_sum.norm"]), w["own"]["W_QKV"]))
            k = np.concatenate([past.own_keys_RNTD, k], axis=2)
            v = np.concatenate([past.own_values_RNTD, v], axis=2)
            mixed_RTH, _ = self._attend(q, k, v, seen_TT, w["own"], probe, f"{name}.self")
            x_RTH = probe(f"{name}.self.sum", self._leave(x_RTH, mixed_RTH, w["own_sum.norm"]))
            (q,) = self._heads(linear(self._enter(x_RTH, w["cross_sum.norm"]), w["cross"]["W_Q"]))
            mixed_RTH, weights_RNTS = self._attend(
                q,
                past.source_keys_RNSD,
                past.source_values_RNSD,
                state.real_RS[:, None, None],
                w["cross"],
                probe,
                f"{name}.cross",
            )
            x_RTH = probe(f"{name}.cross.sum", self._leave(x_RTH, mixed_RTH, w["cross_sum.norm"]))
            x_RTH = probe(f"{name}.states", self._feed_forward(x_RTH, w, probe, f"{name}.feed_forward"))
            layers.append(replace(past, own_keys_RNTD=k, own_values_RNTD=v))
            weights.append(weights_RNTS)
        readout_RTQ = probe("readout", layer_norm(x_RTH, **self.decoder_norm) if self.decoder_norm else x_RTH)
        logits_RTV = probe("logits", linear(readout_RTQ, self.W_o))
        attention_RTLNS = np.stack(weights, axis=1).transpose(0, 3, 1, 2, 4)
        after = replace(state, layers=tuple(layers), step=first + num_steps)
        return Forced(logits_RTV, attention_RTLNS), after

    def _place(self, side: str, embedded_BTH: Floats, first: int, probe: Probe) -> Floats:
        """Return the embeddings, √d times those of words (section 3.4), plus the positions (section 3.5)."""
        size, last = embedded_BTH.shape[2], first + embedded_BTH.shape[1]
        embedded_BTH = probe(f"{side}.embedded", embedded_BTH)
        learned = self.positions[side]
        if learned is None:
            positions_TH = sinusoids(first, last - first, size).astype(embedded_BTH.dtype)
        else:
            check_length(last, len(learned))
            positions_TH = learned[first:last]
        return embedded_BTH + probe(f"{side}.positions", positions_TH)

    def _heads(self, projected_BTX: Floats) -> list[Floats]:
        """Return each of the matrices side by side in the last axis as (B, N, T, D)."""
        size, num_heads = self.options.hidden_size, self.options.num_heads
        shape = (*projected_BTX.shape[:2], projected_BTX.shape[2] // size, num_heads, size // num_heads)
        return list(projected_BTX.reshape(shape).transpose(2, 0, 3, 1, 4))

    def _attend(
        self,
        q_BNTD: Floats,
        k_BNSD: Floats,
        v_BNSD: Floats,
        seen: NDArray[np.bool_],
        w: Weights,
        probe: Probe,
        name: str,
    ) -> tuple[Floats, Floats]:
        """Return Concat(heads) W_O with head = softmax(Q K^T / √d_k) V (eq. 1), and the weights."""
        q_BNTD, k_BNSD = probe(f"{name}.query", q_BNTD), probe(f"{name}.keys", k_BNSD)
        v_BNSD = probe(f"{name}.values", v_BNSD)
        scaled_BNTD = q_BNTD * (1 / math.sqrt(q_BNTD.shape[-1]))
        scores_BNTS = probe(f"{name}.scores", scaled_BNTD @ k_BNSD.swapaxes(-1, -2))
        weights_BNTS = probe(f"{name}.weights", softmax(scores_BNTS, probe(f"{name}.seen", seen)))
        heads_BNTD = probe(f"{name}.heads", weights_BNTS @ v_BNSD)
        batch, num_heads, steps, width = heads_BNTD.shape
        concat_BTH = heads_BNTD.transpose(0, 2, 1, 3).reshape(batch, steps, num_heads * width)
        return probe(f"{name}.output", linear(concat_BTH, w["W_O"])), weights_BNTS

    def _feed_forward(self, x_BTH: Floats, w: Mapping[str, Weights], probe: Probe, name: str) -> Floats:
        """Return the sub-layer max(0, x W_1 + b_1) W_2 + b_2 (eq. 2) and its residual."""
        inner_BTH = self._enter(x_BTH, w["feed_forward_sum.norm"])
        f = w["feed_forward"]
        inner_BTX = probe(f"{name}.inner", np.maximum(linear(inner_BTH, f["W_1"], f["b_1"]), 0))
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
