"""The words of a training text in little room: a Bloom filter (Bloom 1970) of the words in lower case."""

import hashlib
from collections.abc import Iterable, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

_NUM_HASHES = 6
_BITS_PER_WORD = 8  # at least; the number of bits is a power of two, so that filters can be united
_MIN_BITS = 1 << 10
MAX_BYTES = 1 << 24


@dataclass(frozen=True)
class KnownWords:
    """Words to ask for: a word that was put in is found, another one is found by mistake in 2 of 100 cases.

    `bits_U` has eight bits in each of its bytes.
    """

    bits_U: NDArray[np.uint8]

    def __post_init__(self) -> None:
        """Raise an error for what cannot be a filter."""
        size = self.bits_U.size
        if self.bits_U.dtype != np.uint8 or self.bits_U.ndim != 1 or not 0 < size <= MAX_BYTES:
            raise ValueError(f"known words are {self.bits_U.dtype} of shape {self.bits_U.shape}")
        if size & (size - 1):
            raise ValueError(f"known words have {size} bytes, which is no power of two")

    @classmethod
    def of(cls, words: Iterable[str]) -> "KnownWords":
        """Return the filter of these words."""
        unique: Set[str] = {word.lower() for word in words}
        num_bits = _MIN_BITS
        while num_bits < _BITS_PER_WORD * len(unique) and num_bits < 8 * MAX_BYTES:
            num_bits *= 2
        is_set = np.zeros(num_bits, np.bool_)
        for word in unique:
            is_set[_places(word, num_bits)] = True
        return cls(np.packbits(is_set))

    def __contains__(self, word: str) -> bool:
        """Tell whether a word, in whatever case, was put in."""
        return all(
            self._bytes[place >> 3] & 128 >> (place & 7) for place in _places(word.lower(), self._num_bits)
        )

    def __or__(self, other: "KnownWords") -> "KnownWords":
        """Return the filter of the words of both."""
        size = max(self.bits_U.size, other.bits_U.size)
        # A place in a larger filter is one in the smaller, modulo its size.
        mine, others = (np.tile(one.bits_U, size // one.bits_U.size) for one in (self, other))
        return KnownWords(mine | others)

    @cached_property
    def _bytes(self) -> bytes:
        return self.bits_U.tobytes()

    @property
    def _num_bits(self) -> int:
        return 8 * self.bits_U.size


@lru_cache(maxsize=1 << 14)  # most words of a text come again
def _places(word: str, num_bits: int) -> list[int]:
    """Return the bits of a word (double hashing, Kirsch and Mitzenmacher 2006)."""
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    first, second = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little") | 1
    return [(first + number * second) % num_bits for number in range(_NUM_HASHES)]
