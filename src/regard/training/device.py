"""Where a training computes, and in which precision."""

import os

import torch

from regard.doctor import probe_precisions
from regard.errors import ConfigError
from regard.options.training import TrainOptions


def choose_device(name: str) -> torch.device:
    """Return the device of this name, or the best there is."""
    alone = os.environ.get("WORLD_SIZE", "1") == "1"
    if name == "auto":
        # Apple's GPUs have no messages between processes.
        name = "mps" if alone and torch.backends.mps.is_available() else "cpu"
        name = "cuda" if torch.cuda.is_available() else name
    if name == "cuda" and torch.cuda.is_available():
        name = f"cuda:{int(os.environ.get('LOCAL_RANK', '0')) % torch.cuda.device_count()}"
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"--device {name} cannot be used ({reason}); leave it out, or use cpu") from error
    if device.type == "cuda":
        torch.cuda.set_device(device)
    return device


def with_precision(options: TrainOptions, device: torch.device) -> TrainOptions:
    """Return the options with a precision that works here; bfloat16 is tried in another process first."""
    wanted = options.precision
    if wanted == "auto":
        has_it = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        wanted = "bfloat16" if has_it else "float32"
    elif wanted == "bfloat16" and device.type == "cpu":
        found = probe_precisions()["bfloat16"]
        if found != "works":
            raise ConfigError(f"train.precision = 'bfloat16' cannot be used on this machine: it {found}")
    return options.model_copy(update={"precision": wanted})
