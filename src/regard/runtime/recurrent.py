"""The recurrent family in NumPy; options choose the paper."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from regard.contract import (
    Batch,
    Floats,
    Forced,
    Ids,
    Looks,
    Probe,
    Step,
    check_source,
    force_by_steps,
    unseen,
)
from regard.options.model import RecurrentOptions, TransformerOptions
from regard.runtime.equations import (
    CELLS,
    PREPARE,
    SCORES,
    Weights,
    by_column,
    gaussian,
    in_blocks,
    linear,
    maxout,
    monotonic_place,
    normed,
    predicted_place,
    softmax,
    under,
)

_NUM_PLACES = 8  # of the source that the posterior attention weighs
_NUM_RIVALS = 64  # words that the word said is compared with


def tells_posterior(options: RecurrentOptions | TransformerOptions) -> bool:
    """Tell whether a model has a posterior attention: the context must be an input of its readout."""
    if options.kind == "transformer" or options.attention.kind == "none":
        return False
    return (options.attention.kind == "step-then-attend") == (options.readout == "linear")


@dataclass(frozen=True, slots=True)
class Memories:
    """Read sources: the memories h, what the scorer made of them, which are real, and how many."""

    h_RSH: Floats
    keys_RSA: Floats
    real_RS: NDArray[np.bool_]
    length_R: Ids

    def select(self, rows: Ids) -> "Memories":
        """Return the memories of these rows."""
        return Memories(self.h_RSH[rows], self.keys_RSA[rows], self.real_RS[rows], self.length_R[rows])


@dataclass(frozen=True, slots=True)
class Before:
    """What the posterior attention needs of a step once its word is known.

    The `places_RP` where it looked most with their weights, what all but the context adds to the readout, and
    the ids K that were likely.
    """

    places_RP: Ids
    weights_RP: Floats
    rest_RQ: Floats
    rivals_RK: Ids

    def select(self, rows: Ids) -> "Before":
        """Return what is known of these rows."""
        return Before(self.places_RP[rows], self.weights_RP[rows], self.rest_RQ[rows], self.rivals_RK[rows])


@dataclass(frozen=True, slots=True)
class RecurrentState:
    """All the decoder remembers between two steps."""

    layers: tuple[Floats, ...]
    step: int
    sentence_R: Ids
    num_source: int
    memories: Memories | None
    fed_RH: Floats | None
    """What enters every step beside the word: the fixed vector (Cho) or the last attentional one (Luong)."""
    shares_BSQ: Floats | None = None
    """What each memory adds to the readout if attention sees it alone; only for the posterior attention."""
    before: Before | None = None

    def select(self, rows: Ids) -> "RecurrentState":
        """Return the state with these rows; memories stay in place while every row keeps its sentence."""
        sentence_R = self.sentence_R[rows]
        memories = self.memories
        if memories is not None and not np.array_equal(sentence_R, self.sentence_R):
            memories = memories.select(rows)
        return replace(
            self,
            layers=tuple(state_RX[rows] for state_RX in self.layers),
            sentence_R=sentence_R,
            memories=memories,
            fed_RH=None if self.fed_RH is None else self.fed_RH[rows],
            before=None if self.before is None else self.before.select(rows),
        )


class RecurrentEngine:
    """A recurrent model ready to translate; with `posterior` it tells where the ids it reads came from."""

    max_tokens: int | None = None

    def __init__(
        self, options: RecurrentOptions, weights: Mapping[str, Floats], *, posterior: bool = False
    ) -> None:
        self.options = options
        self.posterior = posterior
        self.attention = None if options.attention.kind == "none" else options.attention
        self.cell = CELLS[options.cell]
        self.resets_late = options.cell == "gru" and "decoder.V" in weights
        self.E = weights["target.weight"] if "target.weight" in weights else weights["source.weight"]
        self.words_VQ = weights.get("W_o", self.E)
        self.W_o = in_blocks(self.words_VQ)
        weights = by_column(weights)
        self.encoder = [self._directions(weights, layer) for layer in range(options.num_layers)]
        self.decoder = under("decoder.", weights)
        self.cells = [under(f"decoder.cells.{layer}.", weights) for layer in range(options.num_layers)]
        self.second = under("decoder.second.", weights)
        self.scorer = under("decoder.attention.scorer.", weights)
        self.place = under("decoder.attention.place.", weights)
        self.readout = under("readout.", weights)
        self.source = under("source.", weights)
        self.b_o = weights["b_o"]

    def _directions(self, weights: Weights, layer: int) -> dict[str, Weights]:
        """Return the weights of one encoder layer, for each direction it reads in."""
        both = {name: under(f"encoder.layers.{layer}.{name}.", weights) for name in ("rightward", "leftward")}
        return {name: w for name, w in both.items() if w}

    def start(self, batch: Batch, probe: Probe = unseen) -> RecurrentState:
        """Read the sources; the state has a row for each."""
        check_source(self.options.source, batch)
        real_BS = batch.source_real_BS
        if batch.features_BSF is None:
            embedded_BSE = self.source["weight"][batch.source_BS]
        else:
            embedded_BSE = linear(batch.features_BSF, self.source["W_f"], self.source["b_f"])
        below_BSX = probe("source.embedded", embedded_BSE)
        finals: list[Floats] = []
        ends: list[Floats] = []
        for layer, directions in enumerate(self.encoder):
            outputs, lasts = [], []
            for direction, w in directions.items():
                name = f"encoder.{layer}.{direction}"
                states_BSX = self._read(below_BSX, real_BS, direction == "leftward", w, probe, name)
                outputs.append(probe(f"{name}.states", self._hidden(states_BSX)))
                lasts.append(states_BSX[:, 0 if direction == "leftward" else -1])
            output_BSH = np.concatenate(outputs, axis=-1)
            below_BSX = output_BSH + below_BSX if self.options.residual and layer else output_BSH
            finals.append(lasts[-1])
            ends.append(np.concatenate([self._hidden(last_BX) for last_BX in lasts], axis=-1))
        h_BSH = probe("memory", below_BSX)
        return self._begin(h_BSH, finals, ends, real_BS, probe)

    def _read(
        self,
        x_BSX: Floats,
        real_BS: NDArray[np.bool_],
        leftward: bool,
        w: Weights,
        probe: Probe,
        name: str,
    ) -> Floats:
        """Return the state after each token, read in one direction (Bahdanau et al. 2015, A.2.1)."""
        gates_BSG = linear(x_BSX, w["W"], w.get("b"))
        num_rows, num_tokens = real_BS.shape
        width = self.options.hidden_size * (2 if self.options.cell == "lstm" else 1)
        state_BX = np.zeros((num_rows, width), gates_BSG.dtype)
        states_BSX = np.empty((num_rows, num_tokens, width), gates_BSG.dtype)
        for i in reversed(range(num_tokens)) if leftward else range(num_tokens):
            after_BX = self.cell(gates_BSG[:, i], state_BX, w, probe, name)
            real_B = real_BS[:, i]
            state_BX = after_BX if real_B.all() else np.where(real_B[:, None], after_BX, state_BX)
            states_BSX[:, i] = state_BX
        return states_BSX

    def _begin(
        self,
        h_BSH: Floats,
        finals: list[Floats],
        ends: list[Floats],
        real_BS: NDArray[np.bool_],
        probe: Probe,
    ) -> RecurrentState:
        """Return the decoder's state before the first word."""
        w, size = self.decoder, self.options.hidden_size
        fed_BH = None
        if "V" in w:  # Cho et al. 2014, A.1: c = tanh(V h_N)
            fed_BH = probe("decoder.summary", np.tanh(linear(ends[-1], w["V"])))
        layers = []
        for layer, state_BX in enumerate(finals):
            if self.second:  # Sennrich et al. 2017: s_0 = tanh(W_s mean(h) + b_s)
                real_BS1 = real_BS[:, :, None]
                mean_BH = (h_BSH * real_BS1).sum(1) / np.maximum(real_BS1.sum(1), 1).astype(h_BSH.dtype)
                sums_BH = linear(mean_BH, w[f"W_s.{layer}"], w.get(f"b_s.{layer}"))
                s_BH = np.tanh(normed(sums_BH, f"norms_of_start.{layer}", w))
                state_BX = np.concatenate([s_BH, state_BX[:, size:]], axis=-1)
            elif f"W_s.{layer}" in w:  # Bahdanau et al. 2015, A.2.2: s_0 = tanh(W_s h←_1); Cho: tanh(V' c)
                seen_BH = ends[layer] if self.attention is None else state_BX[:, :size]
                if fed_BH is not None:
                    seen_BH = fed_BH
                s_BH = np.tanh(linear(seen_BH, w[f"W_s.{layer}"]))
                state_BX = np.concatenate([s_BH, state_BX[:, size:]], axis=-1)
            layers.append(probe(f"decoder.{layer}.start", state_BX))
        memories = shares_BSQ = None
        if self.attention is not None:
            scorer = self.attention.scorer
            if scorer.kind == "location":
                real_BS = real_BS & (np.arange(real_BS.shape[1]) < scorer.max_positions)
            keys_BSA = probe("attention.keys", PREPARE[scorer.kind](h_BSH, self.scorer, size))
            shares_BSQ = self._shares(h_BSH) if self.posterior else None
            memories = Memories(h_BSH, keys_BSA, real_BS, real_BS.sum(1))
            if self.attention.kind == "step-then-attend" and self.attention.input_feeding:
                fed_BH = np.zeros((len(h_BSH), size), h_BSH.dtype)
        rows = np.arange(len(h_BSH))
        return RecurrentState(tuple(layers), 0, rows, h_BSH.shape[1], memories, fed_BH, shares_BSQ)

    def step(self, state: RecurrentState, ids_R: Ids, probe: Probe = unseen) -> Step[RecurrentState]:
        """Read one more target id in each row."""
        w = self.decoder
        y_RE = probe("target.embedded", self.E[ids_R])
        gates_RG = linear(y_RE, self.cells[0]["W"], self.cells[0].get("b"))
        context_RH, weights_RS = (state.fed_RH if "V" in w else None), None
        entering_RH = state.fed_RH
        if self.attention is not None and self.attention.kind == "attend-then-step":
            context_RH, weights_RS = self._attend(self._hidden(state.layers[-1]), state, probe)
            entering_RH = context_RH
        late: tuple[Floats, ...] = ()
        if "C" in w and entering_RH is not None:
            extra_RG = linear(entering_RH, w["C"])
            if self.resets_late:
                late = (extra_RG,)
            else:
                gates_RG = gates_RG + extra_RG
        layers: list[Floats] = []
        top_RH = gates_RG
        for layer, cell in enumerate(self.cells):
            below_RH = top_RH
            if layer:
                gates_RG = linear(below_RH, cell["W"], cell.get("b"))
            extra = () if layer else late
            state_RX = self.cell(gates_RG, state.layers[layer], cell, probe, f"decoder.{layer}", *extra)
            if self.second and not layer:  # Sennrich et al. 2017: attend with s'_t, then a second step
                context_RH, weights_RS = self._attend(self._hidden(state_RX), state, probe)
                gates_RG = linear(context_RH, self.second["W"], self.second.get("b"))
                state_RX = self.cell(gates_RG, state_RX, self.second, probe, "decoder.second")
            layers.append(probe(f"decoder.{layer}.state", state_RX))
            top_RH = self._hidden(layers[-1])
            if self.options.residual and layer:
                top_RH = top_RH + below_RH
        fed_RH, state_RH = state.fed_RH, top_RH
        if self.attention is not None and self.attention.kind == "step-then-attend":
            context_RH, weights_RS = self._attend(top_RH, state, probe)
            both_RH = np.concatenate([context_RH, top_RH], axis=-1)
            top_RH = probe("attentional", np.tanh(linear(both_RH, w["W_c"])))  # Luong et al. 2015, eq. 5
            fed_RH = top_RH if self.attention.input_feeding else None
        readout_RQ = self._read_out(top_RH, y_RE, context_RH, probe)
        logits_RV = probe("logits", linear(readout_RQ, self.W_o, self.b_o))
        after = replace(state, layers=tuple(layers), step=state.step + 1, fed_RH=fed_RH)
        if weights_RS is None:
            return Step(logits_RV, np.empty((len(ids_R), 0, 0, state.num_source), np.float32), after)
        if not self.posterior:
            return Step(logits_RV, weights_RS[:, None, None], after)
        origins = self._origins(state, ids_R)
        if probe is not unseen:
            origins = probe("attention.posterior", origins(np.arange(len(ids_R)))).__getitem__
        before = self._before(weights_RS, state_RH, y_RE, logits_RV)
        return Step(logits_RV, weights_RS[:, None, None], replace(after, before=before), origins)

    def force(self, batch: Batch, probe: Probe = unseen) -> Forced:
        """Read the batch's own targets."""
        return force_by_steps(self, batch, probe)

    def _attend(self, s_RQ: Floats, state: RecurrentState, probe: Probe) -> tuple[Floats, Floats]:
        """Return the context c = Σ α_i h_i and its weights α (Bahdanau et al. 2015, eqs. 5-6)."""
        assert self.attention is not None and state.memories is not None
        memories, window = state.memories, self.attention.window
        s_RQ = probe("attention.query", s_RQ)
        scores_RS = SCORES[self.attention.scorer.kind](s_RQ, memories.keys_RSA, self.scorer, probe)
        scores_RS = probe("attention.scores", scores_RS)
        if window.kind == "global":
            seen_RS = probe("attention.seen", memories.real_RS)
            weights_RS = softmax(scores_RS, seen_RS)
        else:
            if window.kind == "local-m":
                place_R = monotonic_place(state.step, memories.length_R)
            else:
                place_R = predicted_place(s_RQ, memories.length_R, self.place)
            # Wherever a probe puts it, some source token is in view.
            place_R = np.clip(probe("attention.place", place_R), 0, memories.length_R)
            offset_RS = np.arange(scores_RS.shape[1], dtype=np.float32) - place_R[:, None]
            seen_RS = memories.real_RS & (np.abs(offset_RS) <= window.half_width)
            seen_RS = probe("attention.seen", seen_RS)
            blind_R1 = ~seen_RS.any(axis=1, keepdims=True)  # where all that is in view was erased
            weights_RS = softmax(scores_RS, seen_RS | blind_R1) * ~blind_R1
            if window.kind == "local-p":
                weights_RS = weights_RS * gaussian(offset_RS, window.half_width)
        weights_RS = probe("attention.weights", weights_RS)
        context_RH = np.matmul(weights_RS[:, None], memories.h_RSH)[:, 0]
        return probe("attention.context", context_RH), weights_RS

    def _read_out(self, s_RH: Floats, y_RE: Floats, c_RH: Floats | None, probe: Probe) -> Floats:
        """Return the vector that meets the output matrix (Bahdanau et al. 2015, A.2.2, eq. 4's s_t)."""
        w, t_RQ = self.readout, s_RH
        if "U_o" in w:
            sums_RQ = normed(linear(s_RH, w["U_o"], w.get("b_m")), "norms.U_o", w)
            sums_RQ = sums_RQ + normed(linear(y_RE, w["V_o"]), "norms.V_o", w)
            if c_RH is not None:
                sums_RQ = sums_RQ + normed(linear(c_RH, w["C_o"]), "norms.C_o", w)
            t_RQ = maxout(sums_RQ) if self.options.readout == "maxout" else np.tanh(sums_RQ)
        if "P_o" in w:
            t_RQ = linear(t_RQ, w["P_o"])
        return probe("readout", t_RQ)

    def _shares(self, h_BSH: Floats) -> Floats:
        """Return what each memory adds to the sums of the readout, seen alone."""
        if "W_c" in self.decoder:
            return linear(h_BSH, self.decoder["W_c"][:, : h_BSH.shape[-1]])
        return normed(linear(h_BSH, self.readout["C_o"]), "norms.C_o", self.readout)

    def _before(self, weights_RS: Floats, s_RH: Floats, y_RE: Floats, logits_RV: Floats) -> Before:
        """Return what `_origins` needs of this step at the next one."""
        w, num_places = self.readout, min(_NUM_PLACES, weights_RS.shape[1])
        places_RP = np.argpartition(-weights_RS, num_places - 1, axis=1)[:, :num_places]
        if "W_c" in self.decoder:
            rest_RQ = linear(s_RH, self.decoder["W_c"][:, -s_RH.shape[-1] :])
        else:
            rest_RQ = normed(linear(s_RH, w["U_o"], w.get("b_m")), "norms.U_o", w)
            rest_RQ = rest_RQ + normed(linear(y_RE, w["V_o"]), "norms.V_o", w)
        num_rivals = min(_NUM_RIVALS, logits_RV.shape[1])
        classes_RXK = logits_RV[:, : logits_RV.shape[1] // num_rivals * num_rivals]
        classes_RXK = classes_RXK.reshape(len(logits_RV), -1, num_rivals)
        rivals_RK = classes_RXK.argmax(axis=1) * num_rivals + np.arange(num_rivals)
        weights_RP = weights_RS[np.arange(len(weights_RS))[:, None], places_RP]
        return Before(places_RP, weights_RP, rest_RQ, rivals_RK)

    def _origins(self, state: RecurrentState, ids_R: Ids) -> Looks:
        """Return what gives the places that the ids of some rows came from; `<s>` came from nowhere."""
        assert state.memories is not None
        if state.before is None:
            real_RS = state.memories.real_RS
            return (real_RS / np.maximum(real_RS.sum(1, keepdims=True), 1)).astype(np.float32).__getitem__
        # Without the memories, which would be kept as long as this.
        before, sentence_R, shares_BSQ = state.before, state.sentence_R, state.shares_BSQ
        return lambda rows: self._origin(before.select(rows), shares_BSQ, sentence_R[rows], ids_R[rows])

    def _origin(self, before: Before, shares_BSQ: Floats | None, sentence_R: Ids, ids_R: Ids) -> Floats:
        """Return where the ids came from: α_i p(y | s, h_i) over its sum (Shankar and Sarawagi 2019).

        p(y | s, h_i) is what the readout says if attention sees only h_i. Its softmax is over y and the best
        of every 64th id, and i over the eight places with most attention.
        """
        assert shares_BSQ is not None
        sums_RPQ = shares_BSQ[sentence_R[:, None], before.places_RP] + before.rest_RQ[:, None]
        t_RPQ = maxout(sums_RPQ) if self.options.readout == "maxout" else np.tanh(sums_RPQ)
        if "P_o" in self.readout:
            t_RPQ = linear(t_RPQ, self.readout["P_o"])
        ids_RK = np.concatenate([ids_R[:, None], before.rivals_RK], axis=1)
        logits_RPK = np.matmul(t_RPQ, self.words_VQ[ids_RK].swapaxes(1, 2)) + self.b_o[ids_RK][:, None]
        exponents_RPK = np.exp(logits_RPK - logits_RPK.max(axis=-1, keepdims=True))
        once_RK = ids_RK != ids_R[:, None]  # not again, if it is among its own rivals
        once_RK[:, 0] = True
        sums_RP = np.matmul(exponents_RPK, once_RK.astype(np.float32)[..., None])[..., 0]
        joint_RP = before.weights_RP * exponents_RPK[..., 0] / sums_RP
        joint_RP /= np.maximum(joint_RP.sum(axis=1, keepdims=True), np.float32(1e-30))
        origin_RS = np.zeros((len(ids_R), shares_BSQ.shape[1]), np.float32)
        np.put_along_axis(origin_RS, before.places_RP, joint_RP, axis=1)
        return origin_RS

    def _hidden(self, state_X: Floats) -> Floats:
        """Return h of a state, which for an LSTM is [h; c]."""
        return state_X[..., : self.options.hidden_size]
