"""From gradients to weights: optimisers, schedules and averages, each with a state that can be saved."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from regard.model.embed import Embedding
from regard.options.training import (
    AdadeltaOptions,
    AdamOptions,
    AverageOptions,
    OptimiserOptions,
    ScheduleOptions,
    SgdOptions,
)

_MOST_WARMUP = 0.1  # of a run


def make_optimiser(model: nn.Module, options: OptimiserOptions) -> torch.optim.Optimizer:
    """Return the optimiser of a model's weights; its rate is set anew before each update."""
    parameters = list(model.parameters())
    if isinstance(options, AdadeltaOptions):
        return torch.optim.Adadelta(parameters, options.rate, options.rho, options.epsilon)
    if isinstance(options, SgdOptions):
        return torch.optim.SGD(parameters, options.rate, options.momentum)
    assert isinstance(options, AdamOptions)
    cls = torch.optim.Adam if options.kind == "adam" else torch.optim.AdamW
    # Embeddings are left out of the decay: rows that a batch does not have would shrink, frozen ones too.
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, Embedding)}
    shrunk = [p for p in parameters if p.dim() > 1 and id(p) not in embeddings]
    others = [p for p in parameters if p.dim() <= 1 or id(p) in embeddings]
    groups = [
        {"params": shrunk, "weight_decay": options.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    betas = (options.beta1, options.beta2)
    return cls(groups, options.rate, betas, options.epsilon, fused=True)


def optimiser_state(model: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return all the optimiser remembers, as `parameter|quantity`."""
    return {
        f"{name}|{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimiser.state[parameter].items()
        if value is not None
    }


def load_optimiser_state(
    model: nn.Module, optimiser: torch.optim.Optimizer, state: Mapping[str, Tensor]
) -> None:
    """Make the optimiser remember what `optimiser_state` returned."""
    parameters = dict(model.named_parameters())
    for path, value in state.items():
        name, _, key = path.partition("|")
        parameter = parameters[name]
        # Unless the optimiser is fused, its count of updates lives on the CPU.
        on_cpu = key == "step" and not optimiser.defaults.get("fused")
        optimiser.state[parameter][key] = value if on_cpu else value.to(parameter.device)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run stands when an update is about to be made."""

    step: int  # of this update, from 1
    epochs: float  # gone by
    share: float | None  # of the whole run that is gone by; none if its end is not known


def rate_factor(schedule: ScheduleOptions, place: Place, plateau_factor: float = 1.0) -> float:
    """Return what the highest learning rate is multiplied by."""
    match schedule.kind:
        case "trapezoid":
            left = 1.0 if place.share is None else max(0.0, 1 - place.share)
            # A short run goes up in its first tenth.
            warm = max(place.step / max(1, schedule.warmup_steps), (place.share or 0.0) / _MOST_WARMUP)
            return min(1.0, warm, left / schedule.descent)
        case "inverse-sqrt":
            return min(place.step / schedule.warmup_steps, math.sqrt(schedule.warmup_steps / place.step))
        case "cosine":
            warm = min(1.0, place.step / max(1, schedule.warmup_steps))
            return warm * (0.5 + 0.5 * math.cos(math.pi * min(1.0, place.share or 0.0)))
        case "plateau":
            return plateau_factor
        case "halving":
            past = place.epochs - schedule.first_epoch
            return 1.0 if past < 0 else 0.5 ** (1 + math.floor(past / schedule.every_epochs))
    return 1.0


class Average(Protocol):
    """Which weights are validated and kept: a mean over some of those the run went through."""

    def after_update(self, step: int) -> None:
        """Take in the weights after an update."""

    def at_validation(self) -> None:
        """Take in the weights at a validation."""

    def weights(self) -> Sequence[Tensor]:
        """Return the averaged weights, in the order of the parameters."""

    def state(self) -> dict[str, Tensor]:
        """Return all it remembers."""

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Remember what `state` returned."""


class _Moving:
    """Exponential moving average; in the first updates the mean of nearly all."""

    def __init__(self, parameters: Sequence[Tensor], decay: float) -> None:
        self._parameters = parameters
        self._decay = decay
        self._mean = [parameter.detach().clone() for parameter in parameters]

    @torch.no_grad()
    def after_update(self, step: int) -> None:
        decay = min(self._decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(self._mean, list(self._parameters), 1 - decay)

    def at_validation(self) -> None:
        pass

    def weights(self) -> Sequence[Tensor]:
        return self._mean

    def state(self) -> dict[str, Tensor]:
        return {str(number): mean for number, mean in enumerate(self._mean)}

    def load(self, state: Mapping[str, Tensor]) -> None:
        for number, mean in enumerate(self._mean):
            mean.copy_(state[str(number)])


class _Snapshots:
    """The mean of the weights at the last validations."""

    def __init__(self, parameters: Sequence[Tensor], num_snapshots: int, frozen: Sequence[Embedding]) -> None:
        self._parameters = parameters
        self._frozen = frozen
        self._snapshots: deque[list[Tensor]] = deque(maxlen=num_snapshots)

    def after_update(self, step: int) -> None:
        pass

    def at_validation(self) -> None:
        self._snapshots.append([parameter.detach().clone() for parameter in self._parameters])

    def weights(self) -> Sequence[Tensor]:
        means = [torch.stack(several).mean(dim=0) for several in zip(*self._snapshots, strict=True)]
        for embedding in self._frozen:  # the mean of equal numbers can differ from them in the last bit
            place = next(n for n, parameter in enumerate(self._parameters) if parameter is embedding.weight)
            means[place] = torch.where(embedding.frozen_V1, embedding.weight.detach(), means[place])
        return means

    def state(self) -> dict[str, Tensor]:
        return {
            f"{number}.{place}": tensor
            for number, snapshot in enumerate(self._snapshots)
            for place, tensor in enumerate(snapshot)
        }

    def load(self, state: Mapping[str, Tensor]) -> None:
        self._snapshots.clear()
        for number in range(len(state) // len(self._parameters)):
            self._snapshots.append(
                [
                    state[f"{number}.{place}"].to(parameter.device)
                    for place, parameter in enumerate(self._parameters)
                ]
            )


def make_average(model: nn.Module, options: AverageOptions) -> Average:
    """Return the average of a model's weights; one snapshot is the weights as they are."""
    parameters = list(model.parameters())
    if options.kind == "moving":
        return _Moving(parameters, options.decay)
    embeddings = [module for module in model.modules() if isinstance(module, Embedding)]
    frozen = [embedding for embedding in embeddings if embedding.has_frozen_rows]
    return _Snapshots(parameters, options.num_snapshots if options.kind == "snapshots" else 1, frozen)
