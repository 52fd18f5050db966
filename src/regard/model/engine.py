"""Where NumPy batches meet PyTorch models: the loss for learning, the contract for translating."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from regard.contract import Batch, Forced, Ids, Probe, Step, check_source, unseen
from regard.model.build import Model
from regard.model.loss import Loss, smoothed_cross_entropy
from regard.model.noise import Noise
from regard.vocabulary import PAD


def batch_loss(
    model: Model, batch: Batch, noise: Noise | None, smoothing: float, probe: Probe = unseen
) -> Loss:
    """Return the loss of a batch with targets, summed over its real target tokens."""
    readout_BTQ = forced_readouts(model, batch, noise, probe)
    target_out_BT = _tensor(model, batch.target_out_BT)
    real_BT = target_out_BT != PAD
    readout_MQ = readout_BTQ[real_BT]
    return smoothed_cross_entropy(
        readout_MQ, model.output_weight(), model.b_o, target_out_BT[real_BT], smoothing
    )


def forced_readouts(model: Model, batch: Batch, noise: Noise | None, probe: Probe = unseen) -> Tensor:
    """Return the readouts (B, T, Q) of all steps of the batch's own targets."""
    source, real_BS = _source(model, batch)
    readout_BTQ: Tensor = model(source, real_BS, _tensor(model, batch.forced_in_BT), noise, probe)
    return readout_BTQ


@dataclass(frozen=True, slots=True)
class TorchState:
    """A model's own state, its rows chosen by NumPy indices."""

    inner: Any

    def select(self, rows: Ids) -> "TorchState":
        """Return the state with these rows."""
        return TorchState(self.inner.select(torch.from_numpy(np.ascontiguousarray(rows))))


class TorchEngine:
    """A PyTorch model behind the contract of all engines."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @property
    def max_tokens(self) -> int | None:
        """The longest source or target the model can read."""
        return self.model.max_tokens

    @torch.no_grad()
    def start(self, batch: Batch, probe: Probe = unseen) -> TorchState:
        """Read the sources; the state has a row for each."""
        source, real_BS = _source(self.model, batch)
        return TorchState(self.model.encode(source, real_BS, None, _through_numpy(probe)))

    @torch.no_grad()
    def step(self, state: TorchState, ids_R: Ids, probe: Probe = unseen) -> Step[TorchState]:
        """Read one more target id in each row."""
        said = self.model.step(state.inner, _tensor(self.model, ids_R), _through_numpy(probe))
        return Step(_array(said.logits), _array(said.attention), TorchState(said.state))

    @torch.no_grad()
    def force(self, batch: Batch, probe: Probe = unseen) -> Forced:
        """Read the batch's own targets."""
        ids_BT = _tensor(self.model, batch.forced_in_BT)
        said = self.model.force(self.start(batch, probe).inner, ids_BT, _through_numpy(probe))
        return Forced(_array(said.logits), _array(said.attention))


def forced_logits(model: Model, batch: Batch, noise: Noise | None = None) -> Tensor:
    """Return the scores (B, T, V) of every next word after the batch's own targets."""
    return functional.linear(forced_readouts(model, batch, noise), model.output_weight(), model.b_o)


def _source(model: Model, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return what the encoder reads, and which of it is real."""
    check_source(model.options.source, batch)
    real_BS = _tensor(model, batch.source_real_BS)
    if batch.features_BSF is None:
        return _tensor(model, batch.source_BS), real_BS
    features_BSF = _tensor(model, batch.features_BSF)
    return features_BSF.to(model.target.weight.dtype), real_BS


def _tensor(model: Model, array: Any) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(model.target.weight.device)


def _array(tensor: Tensor) -> NDArray[Any]:
    """Return a tensor as an array; NumPy knows no bfloat16."""
    tensor = tensor.cpu()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def _through_numpy(probe: Probe) -> Probe:
    """Return a probe of tensors from one of arrays."""
    if probe is unseen:
        return unseen

    def seen(name: str, value: Tensor) -> Tensor:
        array = _array(value)
        answer = probe(name, array)
        return value if answer is array else torch.from_numpy(answer).to(value)

    return seen
