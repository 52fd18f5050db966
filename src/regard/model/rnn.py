"""The recurrent family: an encoder and a decoder made of cells, with attention or with one fixed vector.

Sutskever et al. 2014, Cho et al. 2014, Bahdanau et al. 2015 and Luong et al. 2015 are options here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.contract import Probe, unseen
from regard.model.attention import Attended, Attention, Memories
from regard.model.cells import CELLS, Cell, Recurrent
from regard.model.embed import Embedding, build_source
from regard.model.noise import Noise, dropout
from regard.model.output import Said
from regard.model.readout import Readout
from regard.options.model import RecurrentOptions, TeacherOptions
from regard.vocabulary import PAD

_DIRECTIONS = {"both": ("rightward", "leftward"), "forward": ("rightward",), "reversed": ("leftward",)}


@dataclass(frozen=True, slots=True)
class Encoded:
    """A read source: a memory for each token, and what each layer ended with."""

    memory_BSH: Tensor
    finals: tuple[Tensor, ...]
    """For each layer the last state of one direction, leftward if the encoder reads so."""
    ends: tuple[Tensor, ...]
    """For each layer the last hidden states of all directions, side by side."""


@dataclass(frozen=True, slots=True)
class DecoderState:
    """All the decoder remembers between two steps."""

    layers: tuple[Tensor, ...]
    step: int
    memories: Memories | None
    fed_RH: Tensor | None
    """What enters every step beside the word: the fixed vector (Cho) or the last attentional one (Luong)."""
    num_source: int

    def select(self, rows_R: Tensor) -> "DecoderState":
        """Return the state of these rows."""
        return replace(
            self,
            layers=tuple(state_RX[rows_R] for state_RX in self.layers),
            memories=None if self.memories is None else self.memories.select(rows_R),
            fed_RH=None if self.fed_RH is None else self.fed_RH[rows_R],
        )


@dataclass(frozen=True, slots=True)
class Stepped:
    """What a step hands on: the state (attentional, where there is such a vector), context and weights."""

    top_RH: Tensor
    context_RH: Tensor | None
    weights_RS: Tensor | None


@dataclass(frozen=True, slots=True)
class Constants:
    """What is drawn once for all steps of a batch."""

    recurrent: tuple[Recurrent, ...]
    """For each layer, and at the end for the second cell of the first layer, if it has one."""
    between: tuple[Tensor | None, ...]
    """For each layer the dropout mask of its input, if one mask serves all steps."""


class Encoder(nn.Module):
    """Reads the source forward, backward or both ways (Bahdanau et al. 2015, A.2.1)."""

    def __init__(self, options: RecurrentOptions) -> None:
        super().__init__()
        self.options = options
        self.directions = _DIRECTIONS[options.reading]
        self.memory_size = options.hidden_size * len(self.directions)
        self.layers = nn.ModuleList()
        for layer in range(options.num_layers):
            input_size = self.memory_size if layer else options.embedding_size
            cells = {name: _build_cell(options, input_size) for name in self.directions}
            self.layers.append(nn.ModuleDict(cells))

    def forward(self, embedded_BSE: Tensor, real_BS: Tensor, noise: Noise | None, probe: Probe) -> Encoded:
        """Read the source; padding changes no state."""
        options = self.options
        below_SBX = embedded_BSE.transpose(0, 1).contiguous()
        real_SB1 = None if bool(real_BS.all()) else real_BS.T[:, :, None]
        finals, ends = [], []
        for index, cells in enumerate(self.layers):
            input_SBX = below_SBX
            if index:
                shared = 0 if options.variational else None
                input_SBX = dropout(below_SBX, options.dropout, noise, shared=shared)
            outputs, lasts = [], []
            for direction, cell in cells.items():  # type: ignore[operator]
                recurrent = _constant(cell, options, noise, len(real_BS))
                name = f"encoder.{index}.{direction}"
                states = _run(cell, input_SBX, real_SB1, direction == "leftward", recurrent, probe, name)
                hidden_SBH = torch.stack([cell.hidden(state_BX) for state_BX in states])
                outputs.append(probe(f"{name}.states", hidden_SBH.transpose(0, 1)).transpose(0, 1))
                lasts.append(states[0] if direction == "leftward" else states[-1])
            finals.append(lasts[-1])
            ends.append(torch.cat([cell.hidden(last_BX) for last_BX in lasts], dim=-1))
            output_SBH = torch.cat(outputs, dim=-1)
            below_SBX = output_SBH + below_SBX if options.residual and index else output_SBH
        memory_BSH = probe("memory", below_SBX.transpose(0, 1).contiguous())
        return Encoded(memory_BSH, tuple(finals), tuple(ends))


class Decoder(nn.Module):
    """Says the target word by word: cells, and a look at the source before or after them."""

    def __init__(self, options: RecurrentOptions, memory_size: int) -> None:
        super().__init__()
        self.options = options
        attention, size, num_layers = options.attention, options.hidden_size, options.num_layers
        twice = attention.kind == "step-attend-step"
        self.attends_first = attention.kind == "attend-then-step"
        self.feeds = attention.kind == "step-then-attend" and attention.input_feeding
        self.summarises = attention.kind == "none" and attention.context == "every"
        self.resets_late = self.summarises and options.cell == "gru"
        cells = nn.ModuleList(
            _build_cell(options, size if layer else options.embedding_size) for layer in range(num_layers)
        )
        self.cells: Sequence[Cell] = cells  # type: ignore[assignment]
        self.second = _build_cell(options, memory_size) if twice else None
        num_gates = CELLS[options.cell].num_gates
        extra_size = memory_size if self.attends_first else size if self.feeds or self.summarises else None
        self.C = None if extra_size is None else nn.Parameter(torch.empty(num_gates * size, extra_size))
        self.attention = None
        if attention.kind != "none":
            self.attention = Attention(attention, size, memory_size, options.layer_norm)
        self.W_c = None
        if attention.kind == "step-then-attend":
            self.W_c = nn.Parameter(torch.empty(size, memory_size + size))
        self.V = nn.Parameter(torch.empty(size, memory_size)) if self.summarises else None
        self.W_s = None
        if options.reading == "both" or self.summarises or twice:
            sees_all = twice or (attention.kind == "none" and not self.summarises)
            seen_size = memory_size if sees_all else size
            self.W_s = nn.ParameterList(torch.empty(size, seen_size) for _ in range(num_layers))
        self.b_s = self.norms_of_start = None
        if twice and options.layer_norm:
            self.norms_of_start = nn.ModuleList(nn.LayerNorm(size) for _ in range(num_layers))
        elif twice:
            self.b_s = nn.ParameterList(torch.zeros(size) for _ in range(num_layers))
        self.context_size = memory_size if self.attention is not None else size if self.summarises else None

    def start(self, encoded: Encoded, real_BS: Tensor, probe: Probe) -> DecoderState:
        """Return the state before the first word."""
        summary_BH = None
        if self.V is not None:
            # Cho et al. 2014, appendix A.1: c = tanh(V h_N), the first state tanh(V' c).
            summary_BH = probe("decoder.summary", torch.tanh(functional.linear(encoded.ends[-1], self.V)))
        layers = []
        for index, final_BX in enumerate(encoded.finals):
            state_BX = final_BX
            if self.W_s is not None:
                # Bahdanau et al. 2015, A.2.2: s_0 = tanh(W_s h←_1), the state that has read the whole source;
                # where it is all the decoder gets to know, both directions go in.
                size = self.options.hidden_size
                seen_BH = final_BX[:, :size] if self.attention is not None else encoded.ends[index]
                if summary_BH is not None:
                    seen_BH = summary_BH
                if self.second is not None:  # Sennrich et al. 2017: s_0 = tanh(W_s mean(h) + b_s)
                    real_BS1 = real_BS[:, :, None]
                    seen_BH = (encoded.memory_BSH * real_BS1).sum(1) / real_BS1.sum(1).clamp(min=1)
                bias = None if self.b_s is None else self.b_s[index]
                sums_BH = functional.linear(seen_BH, self.W_s[index], bias)
                if self.norms_of_start is not None:
                    sums_BH = self.norms_of_start[index](sums_BH)
                hidden_BH = torch.tanh(sums_BH)
                state_BX = torch.cat([hidden_BH, final_BX[:, size:]], dim=-1)
            layers.append(probe(f"decoder.{index}.start", state_BX))
        memories = None
        if self.attention is not None:
            memories = self.attention.prepare(encoded.memory_BSH, real_BS, probe)
        fed_BH = torch.zeros_like(layers[0][:, : self.options.hidden_size]) if self.feeds else summary_BH
        return DecoderState(tuple(layers), 0, memories, fed_BH, encoded.memory_BSH.shape[1])

    def constants(self, noise: Noise | None, num_rows: int) -> Constants:
        """Return what stays the same through all steps of a batch."""
        options = self.options
        cells = self.cells if self.second is None else [*self.cells, self.second]
        recurrent = tuple(_constant(cell, options, noise, num_rows) for cell in cells)
        between: list[Tensor | None] = [None] * options.num_layers
        if noise is not None and options.variational and options.dropout:
            for layer in range(1, options.num_layers):
                keep_RH = noise.keep((num_rows, options.hidden_size), options.dropout)
                between[layer] = keep_RH.to(self.cells[layer].W)
        return Constants(recurrent, tuple(between))

    def advance(
        self,
        gates_RG: Tensor,
        state: DecoderState,
        constants: Constants,
        noise: Noise | None,
        probe: Probe,
        look: bool = True,
    ) -> tuple[Stepped, DecoderState]:
        """Take one step, the last word's share in the first cell's gates being given.

        Without `look` the attentional vector is left to the caller, who has all steps at once.
        """
        attended = None
        if self.attends_first:
            attended = self._attend(self.cells[-1].hidden(state.layers[-1]), state, probe)
        extra_RH = state.fed_RH if attended is None else attended[0]
        late: tuple[Tensor, ...] = ()
        if self.C is not None and extra_RH is not None:
            extra_RG = functional.linear(extra_RH, self.C)
            if self.resets_late:
                late = (extra_RG,)
            else:
                gates_RG = gates_RG + extra_RG
        layers: list[Tensor] = []
        top_RH = gates_RG
        for index, cell in enumerate(self.cells):
            below_RH = top_RH
            if index:
                keep_RH = constants.between[index]
                if keep_RH is not None:
                    input_RH = below_RH * keep_RH
                else:
                    prob = 0.0 if self.options.variational else self.options.dropout
                    input_RH = dropout(below_RH, prob, noise)
                gates_RG = cell.project(input_RH)
            name = f"decoder.{index}"
            extra = () if index else late
            state_RX = cell(gates_RG, state.layers[index], constants.recurrent[index], probe, name, *extra)
            if self.second is not None and not index:
                attended = self._attend(cell.hidden(state_RX), state, probe)
                gates_RG = self.second.project(attended[0])
                state_RX = self.second(gates_RG, state_RX, constants.recurrent[-1], probe, "decoder.second")
            layers.append(probe(f"{name}.state", state_RX))
            top_RH = cell.hidden(layers[-1])
            if self.options.residual and index:
                top_RH = top_RH + below_RH
        fed_RH = state.fed_RH
        if self.W_c is not None and look:
            attended = self._attend(top_RH, state, probe)
            top_RH = self.attentional(attended[0], top_RH, probe)
            fed_RH = top_RH if self.feeds else None
        after = replace(state, layers=tuple(layers), step=state.step + 1, fed_RH=fed_RH)
        context_RH = state.fed_RH if self.summarises else None
        if attended is None:
            return Stepped(top_RH, context_RH, None), after
        return Stepped(top_RH, *attended), after

    def _attend(self, query_RQ: Tensor, state: DecoderState, probe: Probe) -> tuple[Tensor, Tensor]:
        """Return the context of this step (R, H) and its weights (R, S)."""

        def of_one_step(name: str, value: Tensor) -> Tensor:
            seen: Tensor = probe(name, value[:, 0])
            return seen[:, None]

        watch = unseen if probe is unseen else of_one_step
        attended = self.look(query_RQ[:, None], state, state.step, watch)
        return attended.context_BTH[:, 0], attended.weights_BTS[:, 0]

    def look(self, query_BTQ: Tensor, state: DecoderState, first_step: int, probe: Probe) -> Attended:
        """Look at the source with the queries of several steps."""
        assert self.attention is not None and state.memories is not None
        attended: Attended = self.attention(query_BTQ, state.memories, first_step, probe)
        return attended

    def attentional(self, context: Tensor, top: Tensor, probe: Probe) -> Tensor:
        """Return the attentional vector tanh(W_c [c; s]) of one step or of all (Luong et al. 2015, eq. 5)."""
        assert self.W_c is not None
        both = torch.cat([context, top], dim=-1)
        return probe("attentional", torch.tanh(functional.linear(both, self.W_c)))


class RecurrentModel(nn.Module):
    """A recurrent encoder and decoder with their embeddings and output layer."""

    def __init__(self, options: RecurrentOptions, source_vocab: int, target_vocab: int) -> None:
        super().__init__()
        self.options = options
        self.source = build_source(options.source, source_vocab, options.embedding_size)
        self.target = Embedding(target_vocab, options.embedding_size)
        if options.tie == "all" and isinstance(self.source, Embedding):
            self.source = self.target
        self.encoder = Encoder(options)
        self.decoder = Decoder(options, self.encoder.memory_size)
        self.readout = Readout(options, self.decoder.context_size)
        tied = options.tie in ("target", "all")
        self.W_o = None if tied else nn.Parameter(torch.empty(target_vocab, self.readout.width))
        self.b_o: nn.Parameter | None = nn.Parameter(torch.zeros(target_vocab))

    @property
    def max_tokens(self) -> int | None:
        """Recurrent models read any length."""
        return None

    def output_weight(self) -> Tensor:
        """Return the matrix of the output layer, a row for each target id."""
        return self.target.table() if self.W_o is None else self.W_o

    def encode(self, source: Tensor, real_BS: Tensor, noise: Noise | None, probe: Probe) -> DecoderState:
        """Read the sources, ids or features, and return the state before the first word."""
        embedded_BSE = self.source(source)
        if noise is not None:
            embedded_BSE = embedded_BSE * self._keep_words(real_BS, noise)
        encoded = self.encoder(probe("source.embedded", embedded_BSE), real_BS, noise, probe)
        return self.decoder.start(encoded, real_BS, probe)

    def forward(
        self,
        source: Tensor,
        real_BS: Tensor,
        target_in_BT: Tensor,
        noise: Noise | None = None,
        probe: Probe = unseen,
    ) -> Tensor:
        """Return the readouts (B, T, Q) of all steps of the given targets.

        Unless something flows from one look to the next step, all steps look at once, and the probe sees
        them together.
        """
        state = self.encode(source, real_BS, noise, probe)
        constants = self.decoder.constants(noise, len(target_in_BT))
        if noise is None:
            return self._force(target_in_BT, state, constants, None, probe)
        keep_BTE = self._keep_words(target_in_BT, noise)
        keep_BTQ = self._keep(target_in_BT, self.readout.width, noise)
        gold_prob = gold_probability(self.options.teacher, noise.step)
        if gold_prob == 1:
            return self._force(target_in_BT, state, constants, noise, probe, keep_BTE) * keep_BTQ
        return self._sample(target_in_BT, state, constants, noise, probe, gold_prob, keep_BTE, keep_BTQ)

    def _force(
        self,
        target_in_BT: Tensor,
        state: DecoderState,
        constants: Constants,
        noise: Noise | None,
        probe: Probe,
        keep_BTE: Tensor | None = None,
    ) -> Tensor:
        """Return the readouts of all steps, each having read the right word."""
        embedded_BTE = self.target(target_in_BT)
        if keep_BTE is not None:
            embedded_BTE = embedded_BTE * keep_BTE
        gates_TBG = self.decoder.cells[0].project(embedded_BTE.transpose(0, 1).contiguous())
        looks = self.decoder.W_c is None or self.decoder.feeds
        outputs = []
        for gates_BG in gates_TBG.unbind():
            output, state = self.decoder.advance(gates_BG, state, constants, noise, probe, looks)
            outputs.append(output)
        top_BTH = torch.stack([output.top_RH for output in outputs], dim=1)
        context_BTH = _stack([output.context_RH for output in outputs])
        if not looks:
            context_BTH = self.decoder.look(top_BTH, state, 0, probe).context_BTH
            top_BTH = self.decoder.attentional(context_BTH, top_BTH, probe)
        return self.readout(top_BTH, embedded_BTE, context_BTH, probe)

    def step(self, state: DecoderState, ids_R: Tensor, probe: Probe = unseen) -> Said[DecoderState]:
        """Read one more word in each row."""
        constants = self.decoder.constants(None, len(ids_R))
        embedded_RE = probe("target.embedded", self.target(ids_R))
        gates_RG = self.decoder.cells[0].project(embedded_RE)
        output, state = self.decoder.advance(gates_RG, state, constants, None, probe)
        readout_RQ = self.readout(output.top_RH, embedded_RE, output.context_RH, probe)
        logits_RV = probe("logits", functional.linear(readout_RQ, self.output_weight(), self.b_o))
        if output.weights_RS is None:
            return Said(logits_RV, logits_RV.new_empty(len(ids_R), 0, 0, state.num_source), state)
        return Said(logits_RV, output.weights_RS[:, None, None], state)

    def force(self, state: DecoderState, ids_RT: Tensor, probe: Probe = unseen) -> Said[DecoderState]:
        """Read several words in each row, one after another."""
        logits, attention = [], []
        for ids_R in ids_RT.unbind(1):
            said = self.step(state, ids_R, probe)
            state = said.state
            logits.append(said.logits)
            attention.append(said.attention)
        return Said(torch.stack(logits, dim=1), torch.stack(attention, dim=1), state)

    def _sample(
        self,
        target_in_BT: Tensor,
        state: DecoderState,
        constants: Constants,
        noise: Noise,
        probe: Probe,
        gold_prob: float,
        keep_BTE: Tensor,
        keep_BTQ: Tensor,
    ) -> Tensor:
        """Return all readouts, each step having read the right word or, at times, the one it would say."""
        gold_BT = noise.coin(tuple(target_in_BT.shape), gold_prob).to(target_in_BT.device)
        ids_B = target_in_BT[:, 0]
        readouts: list[Tensor] = []
        for step in range(target_in_BT.shape[1]):
            if step:
                with torch.no_grad():
                    logits_BV = functional.linear(readouts[-1], self.output_weight(), self.b_o)
                    own_B = logits_BV.argmax(-1)
                gold_B = target_in_BT[:, step]
                ids_B = torch.where(gold_BT[:, step] | (gold_B == PAD), gold_B, own_B)
            embedded_BE = self.target(ids_B) * keep_BTE[:, step]
            gates_BG = self.decoder.cells[0].project(embedded_BE)
            output, state = self.decoder.advance(gates_BG, state, constants, noise, probe)
            readout_BQ = self.readout(output.top_RH, embedded_BE, output.context_RH, probe)
            readouts.append(readout_BQ * keep_BTQ[:, step])
        return torch.stack(readouts, dim=1)

    def _keep_words(self, ids_BT: Tensor, noise: Noise) -> Tensor:
        """Return the dropout masks of embeddings, of single values and of whole words."""
        keep_BTE = self._keep(ids_BT, self.options.embedding_size, noise)
        if not self.options.word_dropout:
            return keep_BTE
        return keep_BTE * noise.keep((*ids_BT.shape, 1), self.options.word_dropout).to(keep_BTE)

    def _keep(self, ids_BT: Tensor, width: int, noise: Noise) -> Tensor:
        """Return the dropout masks of all steps, one for all of them if dropout is variational."""
        rows, steps = ids_BT.shape
        if not self.options.dropout:
            return self.target.weight.new_ones(()).expand(rows, steps, width)
        masks = noise.keep((rows, 1 if self.options.variational else steps, width), self.options.dropout)
        return masks.to(self.target.weight).expand(rows, steps, width)


def gold_probability(options: TeacherOptions, step: int) -> float:
    """Return how often the decoder reads the right word at this update (Bengio et al. 2015, section 2.4)."""
    if options.kind == "constant":
        return options.gold_prob
    if options.kind == "linear":
        lowest = options.lowest_gold_prob
        return max(lowest, 1 - (1 - lowest) * step / options.decay_steps)
    if options.kind == "inverse-sigmoid":
        return options.decay_steps / (options.decay_steps + math.exp(min(step / options.decay_steps, 700)))
    return 1.0


def _build_cell(options: RecurrentOptions, input_size: int) -> Cell:
    return CELLS[options.cell](input_size, options.hidden_size, options.layer_norm)


def _constant(cell: Any, options: RecurrentOptions, noise: Noise | None, num_rows: int) -> Recurrent:
    recurrent: Recurrent = cell.recurrent(noise, num_rows, options.recurrent_dropout, options.weight_dropout)
    return recurrent


def _run(
    cell: Any,
    input_SBX: Tensor,
    real_SB1: Tensor | None,
    backward: bool,
    recurrent: Recurrent,
    probe: Probe,
    name: str,
) -> list[Tensor]:
    """Return the state at each position, having read the input in one direction."""
    gates_SBG = cell.project(input_SBX).unbind()
    num_steps = len(gates_SBG)
    state_BX = input_SBX.new_zeros(input_SBX.shape[1], cell.state_size)
    states: list[Tensor] = [state_BX] * num_steps
    for position in reversed(range(num_steps)) if backward else range(num_steps):
        after_BX = cell(gates_SBG[position], state_BX, recurrent, probe, name)
        if real_SB1 is not None:
            after_BX = torch.where(real_SB1[position], after_BX, state_BX)
        states[position] = state_BX = after_BX
    return states


def _stack(values: Sequence[Tensor | None]) -> Tensor | None:
    """Return the values of all steps side by side, if there are any."""
    present = [value for value in values if value is not None]
    return torch.stack(present, dim=1) if present else None
