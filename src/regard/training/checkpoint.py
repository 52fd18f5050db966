"""Training state on disk: whole, hashed, and found again after any interruption.

A checkpoint is one safetensors file, `step-00001200.<hash>.checkpoint`: tensors, and the rest as JSON in its
header. The hash of the whole file is its name, so a flipped bit or a missing end is always seen.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import safetensors.torch
from torch import Tensor

from regard.errors import CheckpointError, OutputError
from regard.files import writing
from regard.training.history import CHECKPOINT_NAME

_FORMAT = "regard-checkpoint/1"
_KEPT = 2  # the newest, and one more in case a disk loses it


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything a run is, between two updates."""

    step: int
    tensors: dict[str, Tensor]
    facts: dict[str, Any]  # plain JSON values


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint whole or not at all, and remove those that are no longer needed."""
    # One key: several would be written in an order that changes from process to process.
    header = {"regard": json.dumps({"format": _FORMAT, "facts": checkpoint.facts}, sort_keys=True)}
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in checkpoint.tensors.items()}
    data = safetensors.torch.save(tensors, header)
    path = folder / f"step-{checkpoint.step:08}.{_hash(data)}.checkpoint"
    with writing(path) as (file,):
        file.write(data)
    sync_folder(folder)
    # A file of a later step can only be a damaged one, which this run has passed over.
    before = sorted((found for found in _found(folder) if found[0] <= checkpoint.step), reverse=True)
    for _, old in before[_KEPT:]:
        old.unlink(missing_ok=True)


def newest_checkpoint(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """Return the newest checkpoint that is whole, and a line about each newer one that is damaged.

    If there are only damaged ones, that is an error: to begin anew would throw away what they can still tell.
    """
    damaged: list[str] = []
    for step, path in sorted(_found(folder), reverse=True):
        try:
            checkpoint = _read(step, path)
        except CheckpointError as error:
            damaged.append(str(error))
            continue
        return checkpoint, damaged
    if damaged:
        raise CheckpointError(f"{damaged[0]}, and so is every other; remove {folder} to begin anew")
    return None, []


def _found(folder: Path) -> Iterator[tuple[int, Path]]:
    for path in folder.glob("step-*.checkpoint"):
        if match := CHECKPOINT_NAME.fullmatch(path.name):
            yield int(match[1]), path


def _read(step: int, path: Path) -> Checkpoint:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from error
    if _hash(data) not in path.name:
        raise CheckpointError(f"{path}: is damaged (its hash is another than its name says)")
    length = int.from_bytes(data[:8], "little")
    header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["regard"])
    if header["format"] != _FORMAT:
        raise CheckpointError(f"{path}: has format {header['format']!r}; this version reads {_FORMAT!r}")
    return Checkpoint(step, safetensors.torch.load(data), header["facts"])


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def sync_folder(folder: Path) -> None:
    """Have the system write down the names in a folder; a rename alone may be lost with the power."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a run folder to this process; the lock ends with the process, however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("a+b")
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror}); choose another --out") from error
    mine = False
    try:
        with file:
            try:
                _lock(file)
            except OSError as error:
                raise OutputError(
                    f"{folder}: another training is at work in it; wait for it, or choose another --out"
                ) from error
            mine = True
            yield
    finally:
        if mine and [path.name for path in folder.iterdir()] == ["lock"]:  # nothing came of it
            (folder / "lock").unlink()
            folder.rmdir()


def _lock(file: IO[bytes]) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
