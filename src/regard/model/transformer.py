"""The Transformer (Vaswani et al. 2017): attention within the source, within the target, and between them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.contract import Probe, check_length, unseen
from regard.model.embed import Embedding, build_source, sinusoids
from regard.model.noise import Noise, add_dropout, dropout
from regard.model.output import Said
from regard.options.model import TransformerOptions
from regard.vocabulary import EOS


@dataclass(frozen=True, slots=True)
class LayerState:
    """What one decoder layer keeps: keys and values of the target so far, and of the source."""

    own_keys_RNTD: Tensor
    own_values_RNTD: Tensor
    source_keys_RNSD: Tensor
    source_values_RNSD: Tensor
    cell_RH: Tensor
    """With SSRU, what the layer remembers in place of keys and values of the target."""

    def select(self, rows_R: Tensor) -> "LayerState":
        """Return the state of these rows."""
        return LayerState(
            self.own_keys_RNTD[rows_R],
            self.own_values_RNTD[rows_R],
            self.source_keys_RNSD[rows_R],
            self.source_values_RNSD[rows_R],
            self.cell_RH[rows_R],
        )


@dataclass(frozen=True, slots=True)
class DecoderState:
    """All the decoder remembers between two steps."""

    layers: tuple[LayerState, ...]
    step: int
    real_RS: Tensor

    def select(self, rows_R: Tensor) -> "DecoderState":
        """Return the state of these rows."""
        layers = tuple(layer.select(rows_R) for layer in self.layers)
        return replace(self, layers=layers, real_RS=self.real_RS[rows_R])


@dataclass(frozen=True, slots=True)
class LayerOutput:
    """What a decoder layer gives: the next layer's input, its attention to the source, its state."""

    x_RTH: Tensor
    weights_RNTS: Tensor
    state: LayerState


@dataclass(frozen=True, slots=True)
class Decoded:
    """What the decoder gives for some words: readouts, each layer's attention to the source, the state."""

    readout_RTQ: Tensor
    weights: tuple[Tensor, ...]
    state: DecoderState


class Heads(nn.Module):
    """Several attentions side by side (section 3.2.2): Concat(head_1, ..., head_h) W_O."""

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.num_heads, self.prob = options.num_heads, options.attention_dropout
        self.W_O = nn.Parameter(torch.empty(options.hidden_size, options.hidden_size))
        self.b_Q = nn.Parameter(torch.zeros(options.hidden_size)) if options.biases else None
        self.b_O = nn.Parameter(torch.zeros(options.hidden_size)) if options.biases else None

    def split(self, projected_BTX: Tensor) -> tuple[Tensor, ...]:
        """Return each of the matrices side by side in the last axis as (B, N, T, D)."""
        size = len(self.W_O)
        parts = projected_BTX.unflatten(-1, (-1, self.num_heads, size // self.num_heads))
        # One copy here saves the products of `attend` three, and as many going backward.
        return parts.permute(2, 0, 3, 1, 4).contiguous().unbind()

    def attend(
        self,
        query_BNTD: Tensor,
        keys_BNSD: Tensor,
        values_BNSD: Tensor,
        seen_B1TS: Tensor,
        noise: Noise | None,
        probe: Probe,
        name: str,
    ) -> tuple[Tensor, Tensor]:
        """Return the mixture of values for each query, and its weights: softmax(Q K^T / √d_k) V (eq. 1)."""
        if self.b_Q is not None:
            query_BNTD = query_BNTD + self.b_Q.unflatten(0, (self.num_heads, 1, -1))
        query_BNTD = probe(f"{name}.query", query_BNTD)
        keys_BNSD, values_BNSD = probe(f"{name}.keys", keys_BNSD), probe(f"{name}.values", values_BNSD)
        scaled_BNTD = query_BNTD * (1 / math.sqrt(query_BNTD.shape[-1]))
        scores_BNTS = probe(f"{name}.scores", scaled_BNTD @ keys_BNSD.transpose(-1, -2))
        seen_B1TS = probe(f"{name}.seen", seen_B1TS)
        # A sum, not `masked_fill`: it has no backward to compute.
        hidden_B1TS = torch.zeros_like(seen_B1TS, dtype=scores_BNTS.dtype).masked_fill_(~seen_B1TS, -math.inf)
        weights_BNTS = torch.softmax(scores_BNTS + hidden_B1TS, dim=-1)
        weights_BNTS = probe(f"{name}.weights", weights_BNTS)
        heads_BNTD = probe(f"{name}.heads", dropout(weights_BNTS, self.prob, noise) @ values_BNSD)
        mixed_BTH = functional.linear(heads_BNTD.transpose(1, 2).flatten(2), self.W_O, self.b_O)
        return probe(f"{name}.output", mixed_BTH), weights_BNTS


class SelfAttention(Heads):
    """Each token looks at the others of its own sentence; W_QKV is W_Q, W_K and W_V in one product."""

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__(options)
        self.W_QKV = nn.Parameter(torch.empty(3 * options.hidden_size, options.hidden_size))

    def project(self, x_BTH: Tensor) -> tuple[Tensor, ...]:
        """Return queries, keys and values."""
        return self.split(functional.linear(x_BTH, self.W_QKV))


class CrossAttention(Heads):
    """Each target token looks at the source: queries from the decoder, keys and values from the encoder."""

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__(options)
        self.W_Q = nn.Parameter(torch.empty(options.hidden_size, options.hidden_size))
        self.W_KV = nn.Parameter(torch.empty(2 * options.hidden_size, options.hidden_size))

    def prepare(self, memory_BSH: Tensor) -> tuple[Tensor, ...]:
        """Return keys and values of the source, once per sentence."""
        return self.split(functional.linear(memory_BSH, self.W_KV))

    def project(self, x_BTH: Tensor) -> Tensor:
        """Return queries."""
        return self.split(functional.linear(x_BTH, self.W_Q))[0]


class Recurrence(nn.Module):
    """SSRU, a simpler simple recurrent unit (Kim et al. 2019); W_CF is W and W_f in one product."""

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.W_CF = nn.Parameter(torch.empty(2 * options.hidden_size, options.hidden_size))
        self.b_F = nn.Parameter(torch.zeros(options.hidden_size))

    def forward(self, x_RTH: Tensor, cell_RH: Tensor, probe: Probe, name: str) -> tuple[Tensor, Tensor]:
        """Return ReLU(c_t) of each step, with c_t = f c_{t-1} + (1 - f) W x, and the last c."""
        new_RTH, sums_RTH = functional.linear(x_RTH, self.W_CF).chunk(2, dim=-1)
        new_RTH = probe(f"{name}.candidate", new_RTH)
        forget_RTH = probe(f"{name}.forget", torch.sigmoid(sums_RTH + self.b_F))
        cells = []
        for new_RH, forget_RH in zip(new_RTH.unbind(1), forget_RTH.unbind(1), strict=True):
            cell_RH = new_RH + forget_RH * (cell_RH - new_RH)
            cells.append(cell_RH)
        cell_RTH = probe(f"{name}.memory", torch.stack(cells, dim=1))
        return probe(f"{name}.output", torch.relu(cell_RTH)), cell_RTH[:, -1]


_ACTIVATIONS = {"relu": torch.relu, "swish": functional.silu, "gelu": functional.gelu}


class FeedForward(nn.Module):
    """f(x W_1 + b_1) W_2 + b_2 (eq. 2, where f is max(0, x))."""

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.prob, self.activation = options.feed_forward_dropout, _ACTIVATIONS[options.activation]
        self.W_1 = nn.Parameter(torch.empty(options.feed_forward_size, options.hidden_size))
        self.b_1 = nn.Parameter(torch.zeros(options.feed_forward_size))
        self.W_2 = nn.Parameter(torch.empty(options.hidden_size, options.feed_forward_size))
        self.b_2 = nn.Parameter(torch.zeros(options.hidden_size))

    def forward(self, x_BTH: Tensor, noise: Noise | None, probe: Probe, name: str) -> Tensor:
        """Return the network's answer for each token by itself."""
        inner_BTX = probe(f"{name}.inner", self.activation(functional.linear(x_BTH, self.W_1, self.b_1)))
        outer_BTH = functional.linear(dropout(inner_BTX, self.prob, noise), self.W_2, self.b_2)
        return probe(f"{name}.output", outer_BTH)


class Residual(nn.Module):
    """A sub-layer's sum: LayerNorm(x + Sublayer(x)) (section 3.1), or x + Sublayer(LayerNorm(x))."""

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(options.hidden_size)
        self.pre, self.prob = options.norm == "pre", options.dropout

    def enter(self, x_BTH: Tensor) -> Tensor:
        """Return what the sub-layer is given."""
        return self.norm(x_BTH) if self.pre else x_BTH

    def leave(self, x_BTH: Tensor, output_BTH: Tensor, noise: Noise | None) -> Tensor:
        """Return the sum with the sub-layer's output."""
        sum_BTH = add_dropout(x_BTH, output_BTH, self.prob, noise)
        return sum_BTH if self.pre else self.norm(sum_BTH)


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward network."""

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.own, self.own_sum = SelfAttention(options), Residual(options)
        self.feed_forward, self.feed_forward_sum = FeedForward(options), Residual(options)

    def forward(
        self, x_BSH: Tensor, seen_B11S: Tensor, noise: Noise | None, probe: Probe, name: str
    ) -> Tensor:
        """Return the next layer's input."""
        query, keys, values = self.own.project(self.own_sum.enter(x_BSH))
        output_BSH, _ = self.own.attend(query, keys, values, seen_B11S, noise, probe, f"{name}.self")
        x_BSH = probe(f"{name}.self.sum", self.own_sum.leave(x_BSH, output_BSH, noise))
        inner_BSH = self.feed_forward_sum.enter(x_BSH)
        output_BSH = self.feed_forward(inner_BSH, noise, probe, f"{name}.feed_forward")
        x_BSH = self.feed_forward_sum.leave(x_BSH, output_BSH, noise)
        return probe(f"{name}.states", x_BSH)


class DecoderLayer(nn.Module):
    """Masked self-attention or SSRU, attention to the source, then a feed-forward network."""

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        own = SelfAttention if options.decoder_self == "attention" else Recurrence
        self.own, self.own_sum = own(options), Residual(options)
        self.cross, self.cross_sum = CrossAttention(options), Residual(options)
        self.feed_forward, self.feed_forward_sum = FeedForward(options), Residual(options)

    def start(self, memory_BSH: Tensor) -> LayerState:
        """Return the layer's state before the first word."""
        keys_BNSD, values_BNSD = self.cross.prepare(memory_BSH)
        nothing = keys_BNSD[:, :, :0]
        return LayerState(nothing, nothing, keys_BNSD, values_BNSD, torch.zeros_like(memory_BSH[:, 0]))

    def forward(
        self,
        x_RTH: Tensor,
        state: LayerState,
        seen_TT: Tensor,
        seen_R11S: Tensor,
        noise: Noise | None,
        probe: Probe,
        name: str,
    ) -> LayerOutput:
        """Read the words of some steps."""
        inner_RTH = self.own_sum.enter(x_RTH)
        if isinstance(self.own, Recurrence):
            output_RTH, cell_RH = self.own(inner_RTH, state.cell_RH, probe, f"{name}.self")
            state = replace(state, cell_RH=cell_RH)
        else:
            query, keys, values = self.own.project(inner_RTH)
            if state.own_keys_RNTD.shape[2]:
                keys = torch.cat([state.own_keys_RNTD, keys], dim=2)
                values = torch.cat([state.own_values_RNTD, values], dim=2)
            output_RTH, _ = self.own.attend(query, keys, values, seen_TT, noise, probe, f"{name}.self")
            state = replace(state, own_keys_RNTD=keys, own_values_RNTD=values)
        x_RTH = probe(f"{name}.self.sum", self.own_sum.leave(x_RTH, output_RTH, noise))
        output_RTH, weights_RNTS = self.cross.attend(
            self.cross.project(self.cross_sum.enter(x_RTH)),
            state.source_keys_RNSD,
            state.source_values_RNSD,
            seen_R11S,
            noise,
            probe,
            f"{name}.cross",
        )
        x_RTH = probe(f"{name}.cross.sum", self.cross_sum.leave(x_RTH, output_RTH, noise))
        inner_RTH = self.feed_forward_sum.enter(x_RTH)
        output_RTH = self.feed_forward(inner_RTH, noise, probe, f"{name}.feed_forward")
        x_RTH = probe(f"{name}.states", self.feed_forward_sum.leave(x_RTH, output_RTH, noise))
        return LayerOutput(x_RTH, weights_RNTS, state)


class TransformerModel(nn.Module):
    """Encoder, decoder, their embeddings and positions, and the output layer."""

    def __init__(self, options: TransformerOptions, source_vocab: int, target_vocab: int) -> None:
        super().__init__()
        self.options = options
        self.source = build_source(options.source, source_vocab, options.hidden_size)
        self.target = Embedding(target_vocab, options.hidden_size)
        if options.tie == "all" and isinstance(self.source, Embedding):
            self.source = self.target
        self.source_positions = self.target_positions = None
        if options.positions.kind == "learned":
            shape = (options.positions.max_positions, options.hidden_size)
            self.source_positions = nn.Parameter(torch.empty(shape))
            self.target_positions = nn.Parameter(torch.empty(shape))
        self.encoder = nn.ModuleList(EncoderLayer(options) for _ in range(options.num_encoder_layers))
        decoder = nn.ModuleList(DecoderLayer(options) for _ in range(options.num_decoder_layers))
        self.decoder: Sequence[DecoderLayer] = decoder  # type: ignore[assignment]
        pre = options.norm == "pre"
        self.encoder_norm = nn.LayerNorm(options.hidden_size) if pre else None
        self.decoder_norm = nn.LayerNorm(options.hidden_size) if pre else None
        self.W_o = (
            None if options.tie != "none" else nn.Parameter(torch.empty(target_vocab, options.hidden_size))
        )
        self.b_o = nn.Parameter(torch.zeros(target_vocab)) if options.biases else None

    @property
    def max_tokens(self) -> int | None:
        """The number of learnt positions, if they are learnt."""
        positions = self.options.positions
        return positions.max_positions if positions.kind == "learned" else None

    def output_weight(self) -> Tensor:
        """Return the matrix of the output layer, a row for each target id."""
        return self.target.table() if self.W_o is None else self.W_o

    def encode(self, source: Tensor, real_BS: Tensor, noise: Noise | None, probe: Probe) -> DecoderState:
        """Read the sources, ids or features, and return the state before the first word."""
        if not self.options.source_end and source.dim() == 2:
            seen_BS = real_BS & (source != EOS)
            real_BS = torch.where(seen_BS.any(1, keepdim=True), seen_BS, real_BS)  # a softmax needs one token
        embedded_BSH = self.source(source)
        if isinstance(self.source, Embedding):
            # Section 3.4; a table starts with vectors of length 1, projected features are longer.
            embedded_BSH = embedded_BSH * math.sqrt(self.options.hidden_size)
        x_BSH = self._place("source", embedded_BSH, self.source_positions, 0, noise, probe)
        for index, layer in enumerate(self.encoder):
            x_BSH = layer(x_BSH, real_BS[:, None, None], noise, probe, f"encoder.{index}")
        memory_BSH = probe("memory", x_BSH if self.encoder_norm is None else self.encoder_norm(x_BSH))
        return DecoderState(tuple(layer.start(memory_BSH) for layer in self.decoder), 0, real_BS)

    def forward(
        self,
        source: Tensor,
        real_BS: Tensor,
        target_in_BT: Tensor,
        noise: Noise | None = None,
        probe: Probe = unseen,
    ) -> Tensor:
        """Return the readouts (B, T, Q) of all steps of the given targets."""
        state = self.encode(source, real_BS, noise, probe)
        return self.decode(state, target_in_BT, noise, probe).readout_RTQ

    def step(self, state: DecoderState, ids_R: Tensor, probe: Probe = unseen) -> Said[DecoderState]:
        """Read one more word in each row."""
        said = self.force(state, ids_R[:, None], probe)
        return Said(said.logits[:, 0], said.attention[:, 0], said.state)

    def force(self, state: DecoderState, ids_RT: Tensor, probe: Probe = unseen) -> Said[DecoderState]:
        """Read several words in each row at once."""
        decoded = self.decode(state, ids_RT, None, probe)
        logits_RTV = probe("logits", functional.linear(decoded.readout_RTQ, self.output_weight(), self.b_o))
        attention_RTLNS = torch.stack(decoded.weights, dim=1).permute(0, 3, 1, 2, 4)
        return Said(logits_RTV, attention_RTLNS, decoded.state)

    def decode(self, state: DecoderState, ids_RT: Tensor, noise: Noise | None, probe: Probe) -> Decoded:
        """Read the next words of each row."""
        num_steps, device = ids_RT.shape[1], ids_RT.device
        position_T = torch.arange(state.step, state.step + num_steps, device=device)
        seen_TT = torch.arange(state.step + num_steps, device=device) <= position_T[:, None]
        seen_R11S = state.real_RS[:, None, None]
        embedded_RTH = self.target(ids_RT) * math.sqrt(self.options.hidden_size)
        x_RTH = self._place("target", embedded_RTH, self.target_positions, state.step, noise, probe)
        layers, weights = [], []
        for index, layer in enumerate(self.decoder):
            before, name = state.layers[index], f"decoder.{index}"
            output: LayerOutput = layer(x_RTH, before, seen_TT, seen_R11S, noise, probe, name)
            x_RTH = output.x_RTH
            layers.append(output.state)
            weights.append(output.weights_RNTS)
        readout_RTQ = probe("readout", x_RTH if self.decoder_norm is None else self.decoder_norm(x_RTH))
        after = replace(state, layers=tuple(layers), step=state.step + num_steps)
        return Decoded(readout_RTQ, tuple(weights), after)

    def _place(
        self,
        side: str,
        embedded_BTH: Tensor,
        learned: Tensor | None,
        first: int,
        noise: Noise | None,
        probe: Probe,
    ) -> Tensor:
        """Return the embeddings plus the positions (section 3.5)."""
        size, num_positions = embedded_BTH.shape[2], embedded_BTH.shape[1]
        embedded_BTH = probe(f"{side}.embedded", embedded_BTH)
        if noise is not None and self.options.word_dropout:
            keep_BT1 = noise.keep((*embedded_BTH.shape[:2], 1), self.options.word_dropout)
            embedded_BTH = embedded_BTH * keep_BT1.to(embedded_BTH)
        if learned is None:
            positions_TH = _sinusoids(first, num_positions, size).to(embedded_BTH)
        else:
            check_length(first + num_positions, len(learned))
            positions_TH = learned[first : first + num_positions]
        x_BTH = embedded_BTH + probe(f"{side}.positions", positions_TH)
        return dropout(x_BTH, self.options.dropout, noise)


@lru_cache(maxsize=256)
def _sinusoids(first: int, num_positions: int, size: int) -> Tensor:
    return sinusoids(first, num_positions, size)
