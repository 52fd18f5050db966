"""One number for each pair of words, in a table whose size does not depend on the corpus.

The table has four regions of equal size. Frequent words with frequent words stand in the first, each pair in
a place of its own. All other pairs, rare with frequent, frequent with rare, rare with rare, are scattered
over the three others, where two pairs may fall on one place. So nothing collides with the great counts, such
as those of `de` and `of`, beside which a rare word would seem to be certain of anything.
"""

from dataclasses import dataclass

import numpy as np

from regard.contract import Ids

TABLE_BITS = 25  # of 4 bytes: 128 MB for the probabilities of a direction, and as much for its counts
_MULTIPLIERS = (0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35)  # odd, as in the finalisers of common hashes
_MASK = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class TableKeys:
    """The place of a pair of words is `given[one] ^ said[other]`; words are numbered by frequency."""

    given: Ids
    said: Ids

    @classmethod
    def make(cls, num_given: int, num_said: int, table_bits: int) -> "TableKeys":
        """Return the keys of all words of both sides, for a table of 2 ** `table_bits` places."""
        region_bits = table_bits - 2
        given_bits = region_bits // 2
        said_bits = region_bits - given_bits
        given, said = np.arange(num_given), np.arange(num_said)
        return cls(
            np.where(
                given < 1 << given_bits,
                given << said_bits,
                _scattered(given, region_bits, 0) | 1 << region_bits,
            ),
            np.where(said < 1 << said_bits, said, _scattered(said, region_bits, 1) | 2 << region_bits),
        )


def _scattered(ids: Ids, num_bits: int, side: int) -> Ids:
    """Return for each id a number of `num_bits` bits that looks like chance, and is always the same."""
    mixed = (2 * ids + side).astype(np.uint64)
    for multiplier in _MULTIPLIERS:
        mixed = mixed * np.uint64(multiplier) & _MASK
        mixed ^= mixed >> np.uint64(15)
    return (mixed >> np.uint64(32 - num_bits)).astype(np.int64)
