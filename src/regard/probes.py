"""Probes for engines: what to keep of a translation, and what to change in it.

An engine hands every quantity it computes to its probe under a name, listed in `docs/models.md`,
and goes on with what the probe returns.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.contract import Batch, Engine, Floats, Forced, Ids, Probe, Step, unseen


class Recorder:
    """A probe that keeps what it sees; `recorder[name]` is a list with one array for each time it was seen.

    `patterns` such as `attention.*` say which names to keep; without any, all.
    """

    def __init__(self, *patterns: str) -> None:
        self._patterns = patterns or ("*",)
        self._seen: dict[str, list[NDArray[Any]]] = {}

    def __call__(self, name: str, value: Any) -> Any:
        """Keep a copy and hand the value back."""
        if self.wants(name):
            self._seen.setdefault(name, []).append(np.array(value))
        return value

    def wants(self, name: str) -> bool:
        """Tell whether a quantity of this name is kept."""
        return any(fnmatchcase(name, pattern) for pattern in self._patterns)

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


class Tampered:
    """An engine all of whose translations go through a probe, made anew for each batch it reads."""

    def __init__(self, engine: Engine[Any], make_probe: Callable[[], Probe]) -> None:
        self.engine = engine
        self.make_probe = make_probe
        self.probe = make_probe()
        self.max_tokens = engine.max_tokens

    def start(self, batch: Batch, probe: Probe = unseen) -> Any:
        """Read the sources."""
        self.probe = self.make_probe()
        return self.engine.start(batch, together(self.probe, probe))

    def step(self, state: Any, ids_R: Ids, probe: Probe = unseen) -> Step[Any]:
        """Read one more target id in each row."""
        return self.engine.step(state, ids_R, together(self.probe, probe))

    def force(self, batch: Batch, probe: Probe = unseen) -> Forced:
        """Read the batch's own targets."""
        return self.engine.force(batch, together(self.make_probe(), probe))


def force_weights(name: str, weights_S: ArrayLike, head: int | None = None, step: int | None = None) -> Probe:
    """Return a probe under which every row, or that of one step, looks exactly so.

    `name` is that of the weights, `attention.weights` or such as `decoder.2.cross.weights`, or a pattern
    such as `decoder.*.cross.weights`; where there are heads, one may be chosen. With a `step` the probe
    counts what it sees: it is good for one translation.
    """
    row_S = np.asarray(weights_S, np.float64)
    if row_S.ndim != 1 or not (row_S >= 0).all() or abs(row_S.sum() - 1) > 1e-3:
        raise ValueError(
            f"weights to force must be one row, none negative, that sums to 1; this is {row_S.tolist()}"
        )
    num_seen: Counter[str] = Counter()

    def probe(seen: str, value: Any) -> Any:
        if not fnmatchcase(seen, name):
            return value
        changed = np.array(value)
        if row_S.shape != changed.shape[-1:]:
            raise ValueError(
                f"{seen} has {changed.shape[-1]} source tokens, and {len(row_S)} weights were given"
            )
        if head is not None and changed.ndim != 4:
            raise ValueError(f"{seen} has no heads to choose one of")
        by_step = changed[:, None, None] if changed.ndim == 2 else changed  # (R, N, T, S)
        first, num_seen[seen] = num_seen[seen], num_seen[seen] + by_step.shape[2]
        steps = range(first, num_seen[seen]) if step is None else [step]
        heads = slice(None) if head is None else slice(head, head + 1)
        for wanted in steps:
            if first <= wanted < num_seen[seen]:
                by_step[:, heads, wanted - first] = row_S
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
