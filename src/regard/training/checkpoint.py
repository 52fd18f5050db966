"""Training state on disk: whole, hashed, and found again after any interruption.

A checkpoint is one safetensors file, `step-00001200.<hash>.checkpoint`: tensors, and the rest as JSON in its
header. The hash of the whole file is its name, so a flipped bit or a missing end is always seen.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import safetensors.torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from regard.errors import CheckpointError, OutputError
from regard.files import writing
from regard.training.folder import ANOTHER_VERSION
from regard.training.history import CHECKPOINT_NAME

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Facts = TypeVar("Facts", bound=DataclassInstance)

_FORMAT = "regard-checkpoint/1"
_KEPT = 2  # the newest, and one more in case a disk loses it


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything a run is, between two updates."""

    step: int
    tensors: dict[str, Tensor]
    facts: dict[str, Any]  # plain JSON values


class _DamagedError(CheckpointError):
    """A checkpoint that is not what was written; the one before it may still be."""


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
        except _DamagedError as error:
            damaged.append(str(error))
            continue
        return checkpoint, damaged
    if damaged:
        raise CheckpointError(f"{damaged[0]}, and so is every other; remove {folder} to start again")
    return None, []


def _found(folder: Path) -> Iterator[tuple[int, Path]]:
    for path in folder.glob("step-*.checkpoint"):
        if match := CHECKPOINT_NAME.fullmatch(path.name):
            yield int(match[1]), path


def _read(step: int, path: Path) -> Checkpoint:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _DamagedError(f"{path}: cannot be read ({error.strerror})") from error
    if _hash(data) not in path.name:
        raise _DamagedError(f"{path}: is damaged (its hash does not match its name)")
    length = int.from_bytes(data[:8], "little")
    try:
        header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["regard"])
        format_, facts = header["format"], dict(header["facts"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{path}: is no checkpoint of a training; {ANOTHER_VERSION}") from error
    if format_ != _FORMAT:
        raise CheckpointError(f"{path}: has format {format_!r}, not {_FORMAT!r}; {ANOTHER_VERSION}")
    return Checkpoint(step, safetensors.torch.load(data), facts)


def facts_as(cls: "type[Facts]", values: Any) -> "Facts":
    """Return the dataclass with these JSON values: each of its fields and no others, none of another type.

    Whole files are hashed, so other facts than ours can only be those of another version.
    """
    if not isinstance(values, dict):
        raise CheckpointError(f"{cls.__name__} is {type(values).__name__}")
    known = {field.name for field in fields(cls)}
    for name in sorted(known ^ values.keys()):
        raise CheckpointError(f"{name!r} is {'missing' if name in known else 'unknown'}")
    try:
        return TypeAdapter(cls).validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise CheckpointError(f"{'.'.join(map(str, first['loc']))!r} is {first['input']!r}") from error


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
                    f"{folder}: another training is running in it; wait for it, or choose another --out"
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
