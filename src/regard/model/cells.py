"""The cells of recurrent networks: one step from input and last state to the next state.

What an input contributes to a cell is computed for all steps in one product (`project`);
a step adds what the last state contributes. The state of an LSTM is [h; c] side by side.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.contract import Probe
from regard.model.noise import Noise


@dataclass(frozen=True, slots=True)
class Recurrent:
    """What a cell uses at every step of one sequence: its recurrent weights, the mask of the last state."""

    weights: tuple[Tensor, ...]
    keep_BH: Tensor | None


class Cell(nn.Module):
    """A step of a recurrent network.

    `W` and `b` hold `num_gates` blocks of height H, in the order each class gives.
    """

    num_gates: int
    recurrent_blocks: tuple[int, ...]
    """The widths, in H, of the recurrent products that make up a step."""
    num_states = 1

    def __init__(self, input_size: int, hidden_size: int, layer_norm: bool) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.W = nn.Parameter(torch.empty(self.num_gates * hidden_size, input_size))
        # A layer norm has a bias of its own.
        self.b = None if layer_norm else nn.Parameter(torch.zeros(self.num_gates * hidden_size))
        self.U = nn.ParameterList(
            torch.empty(blocks * hidden_size, hidden_size) for blocks in self.recurrent_blocks
        )
        widths = [self.num_gates, *self.recurrent_blocks] if layer_norm else []
        self.norms = nn.ModuleList(nn.LayerNorm(blocks * hidden_size) for blocks in widths)

    @property
    def state_size(self) -> int:
        """The width of the state."""
        return self.num_states * self.hidden_size

    def project(self, input_X: Tensor) -> Tensor:
        """Return W x + b for any number of inputs at once."""
        return functional.linear(input_X, self.W, self.b)

    def recurrent(
        self, noise: Noise | None, num_rows: int, dropout: float, weight_dropout: float
    ) -> Recurrent:
        """Return what stays the same through one sequence; dropout is drawn here, once."""
        if noise is None:
            return Recurrent(tuple(self.U), None)
        weights = tuple(noise.dropout(U, weight_dropout) for U in self.U)
        keep_BH = noise.keep((num_rows, self.hidden_size), dropout).to(self.W) if dropout else None
        return Recurrent(weights, keep_BH)

    def hidden(self, state_BX: Tensor) -> Tensor:
        """Return the part of the state that others see: h."""
        return state_BX[..., : self.hidden_size]

    def _input(self, gates_BG: Tensor) -> Tensor:
        """Return the input's share, normalised if layers are."""
        return self.norms[0](gates_BG) if self.norms else gates_BG

    def _product(self, index: int, hidden_BH: Tensor, recurrent: Recurrent) -> Tensor:
        """Return U h, the state's share in one block of gates, normalised by itself if layers are.

        Ba et al. 2016 do so for the LSTM (eqs. 20-22); their gated unit resets after the norm, ours before.
        """
        product = functional.linear(hidden_BH, recurrent.weights[index])
        return self.norms[1 + index](product) if self.norms else product


class PlainCell(Cell):
    """h_t = tanh(W x_t + U h_{t-1} + b) (Elman 1990)."""

    num_gates = 1
    recurrent_blocks = (1,)

    def forward(
        self, gates_BG: Tensor, state_BX: Tensor, recurrent: Recurrent, probe: Probe, name: str
    ) -> Tensor:
        """Return the next state."""
        hidden_BH = _masked(state_BX, recurrent)
        return torch.tanh(self._input(gates_BG) + self._product(0, hidden_BH, recurrent))


class GatedCell(Cell):
    """The gated recurrent unit as in Bahdanau et al. 2015, A.1.1; its gates in the order z, r, candidate.

    Cho et al. 2014 write 1 - z where this has z.
    """

    num_gates = 3
    recurrent_blocks = (2, 1)

    def forward(
        self,
        gates_BG: Tensor,
        state_BX: Tensor,
        recurrent: Recurrent,
        probe: Probe,
        name: str,
        late_BG: Tensor | None = None,
    ) -> Tensor:
        """Return the next state: s_t = (1 - z) s_{t-1} + z tanh(W x + U (r s_{t-1})).

        The decoder of Cho et al. 2014, A.1.2, resets after U, and its fixed vector as well:
        tanh(W x + r (U s_{t-1} + C c)). There `late_BG` is C c.
        """
        last_BH = _masked(state_BX, recurrent)
        size = self.hidden_size
        input_BG = self._input(gates_BG)
        sums_BG = input_BG[:, : 2 * size] + self._product(0, last_BH, recurrent)
        gates_BG = torch.sigmoid(sums_BG if late_BG is None else sums_BG + late_BG[:, : 2 * size])
        update_BH = probe(f"{name}.update", gates_BG[:, :size])
        reset_BH = probe(f"{name}.reset", gates_BG[:, size:])
        if late_BG is None:
            inner_BH = self._product(1, reset_BH * last_BH, recurrent)
        else:
            inner_BH = reset_BH * (self._product(1, last_BH, recurrent) + late_BG[:, 2 * size :])
        candidate_BH = probe(f"{name}.candidate", torch.tanh(input_BG[:, 2 * size :] + inner_BH))
        return state_BX + update_BH * (candidate_BH - state_BX)


class LateGatedCell(Cell):
    """A gated cell that resets after the product, one for all gates, as in Marian, cuDNN and PyTorch."""

    num_gates = 3
    recurrent_blocks = (3,)

    def __init__(self, input_size: int, hidden_size: int, layer_norm: bool) -> None:
        super().__init__(input_size, hidden_size, layer_norm)
        self.b_U = None if layer_norm else nn.Parameter(torch.zeros(hidden_size))

    def forward(
        self, gates_BG: Tensor, state_BX: Tensor, recurrent: Recurrent, probe: Probe, name: str
    ) -> Tensor:
        """Return the next state: s_t = (1 - z) s_{t-1} + z tanh(W x + b + r (U s_{t-1} + b_U))."""
        size = self.hidden_size
        input_BG = self._input(gates_BG)
        state_BG = self._product(0, _masked(state_BX, recurrent), recurrent)
        gates_BG = torch.sigmoid(input_BG[:, : 2 * size] + state_BG[:, : 2 * size])
        update_BH = probe(f"{name}.update", gates_BG[:, :size])
        reset_BH = probe(f"{name}.reset", gates_BG[:, size:])
        last_BH = state_BG[:, 2 * size :] if self.b_U is None else state_BG[:, 2 * size :] + self.b_U
        candidate_BH = torch.tanh(input_BG[:, 2 * size :] + reset_BH * last_BH)
        candidate_BH = probe(f"{name}.candidate", candidate_BH)
        return state_BX + update_BH * (candidate_BH - state_BX)


class LongShortTermCell(Cell):
    """Long short-term memory without peepholes (Zaremba et al. 2014); gates in the order i, f, o, g."""

    num_gates = 4
    recurrent_blocks = (4,)
    num_states = 2

    def __init__(self, input_size: int, hidden_size: int, layer_norm: bool) -> None:
        super().__init__(input_size, hidden_size, layer_norm)
        self.norm_of_memory = nn.LayerNorm(hidden_size) if layer_norm else None

    def forward(
        self, gates_BG: Tensor, state_BX: Tensor, recurrent: Recurrent, probe: Probe, name: str
    ) -> Tensor:
        """Return the next [h; c]: c_t = f c_{t-1} + i g, h_t = o tanh(c_t)."""
        size = self.hidden_size
        last_BH = _masked(state_BX[:, :size], recurrent)
        sums_BG = self._input(gates_BG) + self._product(0, last_BH, recurrent)
        gates_BG = torch.sigmoid(sums_BG[:, : 3 * size])
        input_BH = probe(f"{name}.input", gates_BG[:, :size])
        forget_BH = probe(f"{name}.forget", gates_BG[:, size : 2 * size])
        output_BH = probe(f"{name}.output", gates_BG[:, 2 * size :])
        candidate_BH = probe(f"{name}.candidate", torch.tanh(sums_BG[:, 3 * size :]))
        memory_BH = probe(f"{name}.memory", forget_BH * state_BX[:, size:] + input_BH * candidate_BH)
        seen_BH = memory_BH if self.norm_of_memory is None else self.norm_of_memory(memory_BH)
        return torch.cat([output_BH * torch.tanh(seen_BH), memory_BH], dim=-1)


CELLS: dict[str, type[Cell]] = {
    "rnn": PlainCell,
    "gru": GatedCell,
    "gru-after": LateGatedCell,
    "lstm": LongShortTermCell,
}


def _masked(state_BH: Tensor, recurrent: Recurrent) -> Tensor:
    return state_BH if recurrent.keep_BH is None else state_BH * recurrent.keep_BH
