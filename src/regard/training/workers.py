"""The gradients of one update, from all cores of a machine at once.

Threads that share each matrix product wait for one another after every one of them. Here each worker has
sentences of its own, computes their gradients by itself, and they meet once in an update: on two cores
that is about a tenth faster (docs/experiments.md). What comes out depends on the number of workers,
in its last bits and in its dropout, and on nothing else.
"""

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.contract import Batch
from regard.model.build import Model
from regard.model.noise import Noise
from regard.options.training import TrainOptions
from regard.training.guide import Guide
from regard.training.objective import objective
from regard.training.processes import Processes

_MIN_TOKENS = 512  # of a batch that a worker must have: each of them goes through all the weights

Autocast = Callable[[], contextlib.AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True)
class Gathered:
    """Losses summed over the target tokens that the workers of this process had."""

    loss: float
    nll: float


def choose_num_workers(num_threads: int, batch_tokens: int) -> int:
    """Return into how many workers to divide the threads of a process."""
    fitting = (
        n for n in range(1, num_threads + 1) if num_threads % n == 0 and n * _MIN_TOKENS <= batch_tokens
    )
    return max(fitting, default=1)


class Workers:
    """Some threads, each with every so-many-th sentence of a batch."""

    def __init__(
        self,
        model: Model,
        options: TrainOptions,
        seed: int,
        num_workers: int,
        processes: Processes = Processes(),  # noqa: B008 - frozen
        autocast: Autocast = contextlib.nullcontext,
        guide: Guide | None = None,
    ) -> None:
        self._model = model
        self._parameters = list(model.parameters())
        self._options = options
        self._seed = seed
        self._autocast = autocast
        self._guide = guide
        self._first = processes.rank * num_workers
        self._num_places = processes.num_ranks * num_workers
        self._num_workers = num_workers
        self._pool = ThreadPoolExecutor(num_workers) if num_workers > 1 else None

    def set_gradients(self, group: Sequence[Batch], num_tokens: int, step: int) -> Gathered:
        """Give every weight its gradient of the loss of these batches, divided by `num_tokens`."""

        def work(worker: int) -> tuple[list[Tensor], Gathered]:
            return self._compute(group, num_tokens, step, self._first + worker)

        places = range(self._num_workers)
        done = list(self._pool.map(work, places) if self._pool else map(work, places))
        summed = done[0][0]
        for gradients, _ in done[1:]:
            torch._foreach_add_(summed, gradients)
        for parameter, gradient in zip(self._parameters, summed, strict=True):
            parameter.grad = gradient
        return Gathered(sum(one.loss for _, one in done), sum(one.nll for _, one in done))

    def _compute(
        self, group: Sequence[Batch], num_tokens: int, step: int, place: int
    ) -> tuple[list[Tensor], Gathered]:
        noise, smoothing = Noise(self._seed, step, place), self._options.label_smoothing
        summed: list[Tensor] = []
        loss = nll = 0.0
        for batch in group:
            shard = batch.shard(place, self._num_places)
            with self._autocast():
                found = objective(self._model, shard, noise, smoothing, self._options.r_drop, self._guide)
            gradients = torch.autograd.grad(
                found.smoothed / num_tokens, self._parameters, allow_unused=True, materialize_grads=True
            )
            if summed:
                torch._foreach_add_(summed, gradients)
            else:
                summed = list(gradients)
            loss += found.smoothed.item()
            nll += found.nll.item()
        return summed, Gathered(loss, nll)
