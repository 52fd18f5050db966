"""Several processes that learn as one, started by `torchrun`; alone, everything here does nothing."""

import contextlib
import datetime
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed

from regard.errors import TrainingError

# Long enough for one process to inspect and tokenise a large corpus while the others wait. A process that
# dies is noticed at once: its connections close, and torchrun ends the others.
_TIMEOUT = datetime.timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes of a run, and which of them this is."""

    rank: int = 0
    num_ranks: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process speaks for all: it prepares, validates, logs and saves."""
        return self.rank == 0

    def sum_gradients(self, parameters: Sequence[Tensor], numbers: Sequence[float]) -> list[float]:
        """Add up the gradients of all processes in place, and some numbers with them.

        A process whose share of the batch is empty has no gradients: zeros.
        """
        if self.num_ranks == 1:
            return list(numbers)
        gradients = [
            torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            for parameter in parameters
        ]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        extra = torch.tensor(numbers, dtype=torch.float64, device=flat.device)
        with _told():
            distributed.all_reduce(flat)
            distributed.all_reduce(extra)
        for parameter, summed in zip(
            parameters, flat.split([gradient.numel() for gradient in gradients]), strict=True
        ):
            parameter.grad = summed.view_as(parameter)
        return extra.tolist()

    def tell_all(self, value: Any) -> Any:
        """Return the first process's value in all of them."""
        if self.num_ranks == 1:
            return value
        box = [value]
        with _told():
            distributed.broadcast_object_list(box, src=0)
        return box[0]

    def end(self) -> None:
        """Take leave of the others."""
        if self.num_ranks > 1:
            distributed.destroy_process_group()


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Turn a message that fails into one line: the process at the other end is gone."""
    try:
        yield
    except RuntimeError as error:
        raise TrainingError("another process of this training has ended; its own message says why") from error


def join_processes(device: torch.device) -> Processes:
    """Join the processes `torchrun` has started, or be alone."""
    num_ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if num_ranks == 1:
        return Processes()
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=_TIMEOUT)
    return Processes(distributed.get_rank(), num_ranks)
