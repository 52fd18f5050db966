"""Where a training computes, and in which precision."""

import os
from typing import Any

import torch

from regard.doctor import AVX512, probe_precisions, processor_words
from regard.errors import ConfigError
from regard.options.training import TrainOptions

# Of a product of 256 terms, beside its largest value; bfloat16 has a hundred times as much.
_FLOAT32_ERROR = 1e-5


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


def choose_kernels() -> None:
    """On AMD's processors with AVX-512, let torch multiply float32 matrices by oneDNN instead of MKL.

    MKL leaves AVX-512 unused on processors that are not Intel's. torch calls oneDNN if products may be
    rounded to bfloat16; without AMX, oneDNN has no faster instruction for that and computes in float32 all
    the same. If it rounds after all, MKL stays.
    """
    if not torch.backends.mkldnn.is_available() or not processor_words() >= {"AuthenticAMD", *AVX512}:
        return
    products: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before = products.fp32_precision
    products.fp32_precision = "bf16"
    if not _is_float32():
        products.fp32_precision = before


def _is_float32() -> bool:
    """Return whether a product of float32 matrices is as exact as float32 allows."""
    generator = torch.Generator().manual_seed(1)
    left, right = (torch.randn(256, 256, generator=generator) for _ in range(2))
    exact = left.double() @ right.double()
    return bool((left @ right - exact).abs().max() < _FLOAT32_ERROR * exact.abs().max())
