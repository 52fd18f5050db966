"""Probes for engines: what to keep of a translation, and what to change in it.

An engine hands every quantity it computes to its probe under a name, listed in `docs/models.md`,
and goes on with what the probe returns.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.contract import Floats, Probe, unseen


class Recorder:
    """A probe that keeps what it sees; `recorder[name]` is a list with one array for each time it was seen.

    `patterns` such as `attention.*` say which names to keep; without any, all.
    """

    def __init__(self, *patterns: str) -> None:
        self._patterns = patterns or ("*",)
        self._seen: dict[str, list[NDArray[Any]]] = {}

    def __call__(self, name: str, value: Any) -> Any:
        """Keep a copy and hand the value back."""
        if any(fnmatchcase(name, pattern) for pattern in self._patterns):
            self._seen.setdefault(name, []).append(np.array(value))
        return value

    def __getitem__(self, name: str) -> list[NDArray[Any]]:
        return self._seen[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen)


def together(*probes: Probe) -> Probe:
    """Return a probe that passes each value through several, in this order."""

    def probe(name: str, value: Any) -> Any:
        for one in probes:
            value = one(name, value)
        return value

    return probe if probes else unseen


def force_weights(name: str, weights_S: ArrayLike, head: int | None = None) -> Probe:
    """Return a probe under which every row looks exactly so.

    `name` is that of the weights, `attention.weights` or such as `decoder.2.cross.weights`;
    in the latter one head may be chosen.
    """
    row_S = np.asarray(weights_S, np.float64)
    if row_S.ndim != 1 or not (row_S >= 0).all() or abs(row_S.sum() - 1) > 1e-3:
        raise ValueError(
            f"weights to force must be one row, none negative, that sums to 1; this is {row_S.tolist()}"
        )

    def probe(seen: str, value: Any) -> Any:
        if seen != name:
            return value
        changed = np.array(value)
        if row_S.shape != changed.shape[-1:]:
            raise ValueError(
                f"{name} has {changed.shape[-1]} source tokens, and {len(row_S)} weights were given"
            )
        if head is None:
            changed[...] = row_S
        elif changed.ndim == 4:
            changed[:, head] = row_S
        else:
            raise ValueError(f"{name} has no heads to choose one of")
        return changed

    return probe


def switch_off_head(name: str, head: int) -> Probe:
    """Return a probe under which one head of an attention, such as `decoder.2.cross`, says nothing."""

    def probe(seen: str, value: Any) -> Any:
        if seen != f"{name}.heads":
            return value
        changed: Floats = np.array(value)
        changed[:, head] = 0
        return changed

    return probe


def remove_positions(name: str, value: Any) -> Any:
    """Be a probe under which a Transformer does not know where its tokens stand."""
    return np.zeros_like(value) if name in ("source.positions", "target.positions") else value


def lift_mask(name: str, value: Any) -> Any:
    """Be a probe under which, in `force`, a Transformer's decoder sees the words to come."""
    masked = name.startswith("decoder.") and name.endswith(".self.seen")
    return np.ones_like(value) if masked else value
