"""Which pairs a model was trained on, in little room: the smallest of their hashes (Broder 1997).

Up to `MAX_HASHES` different pairs are all there. Of more pairs those with the smallest hashes are there, so a
part of any other text can be checked: the pairs whose hashes are as small.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from regard.corpus.split import letters
from regard.text.normalize import normalize

MAX_HASHES = 1 << 17
_CHUNK = 1 << 18


@dataclass(frozen=True, slots=True)
class Overlap:
    """How many pairs were seen in training, of how many that could be checked."""

    num_seen: int
    num_checked: int


@dataclass(frozen=True)
class SeenPairs:
    """Hashes of pairs, in order. Pairs are compared by the letters of both sides alone."""

    hashes_M: NDArray[np.uint32]

    def __post_init__(self) -> None:
        """Raise an error for what cannot be such hashes."""
        one = self.hashes_M
        if one.dtype != np.uint32 or one.ndim != 1 or one.size > MAX_HASHES:
            raise ValueError(f"hashes of pairs are {one.dtype} of shape {one.shape}")
        if (one[1:] <= one[:-1]).any():
            raise ValueError("hashes of pairs are not in order")

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> "SeenPairs":
        """Return the hashes of pairs, however many there are."""
        hashes = (_hash(source, target) for source, target in pairs)
        smallest = np.empty(0, np.uint32)
        while len(more := np.fromiter(islice(hashes, _CHUNK), np.uint32)):
            smallest = np.unique(np.concatenate([smallest, more]))[:MAX_HASHES]
        return cls(smallest)

    def __or__(self, other: "SeenPairs") -> "SeenPairs":
        """Return the hashes of the pairs of both."""
        return SeenPairs(np.unique(np.concatenate([self.hashes_M, other.hashes_M]))[:MAX_HASHES])

    def overlap(self, pairs: Iterable[tuple[str, str]]) -> Overlap:
        """Return how many of other pairs are among them."""
        hashes = np.array([_hash(source, target) for source, target in pairs], np.uint32)
        if len(self.hashes_M) == MAX_HASHES:
            hashes = hashes[hashes <= self.hashes_M[-1]]
        return Overlap(int(np.isin(hashes, self.hashes_M).sum()), len(hashes))


def _hash(source: str, target: str) -> int:
    sides = "\0".join(letters(normalize(side)) for side in (source, target))
    return int.from_bytes(blake2b(sides.encode("utf-8", "surrogatepass"), digest_size=4).digest())
