"""What every engine is given, and the legend of the shape letters.

Names bound to arrays end in one capital per axis:

| letter | axis                  | letter | axis                |
|--------|-----------------------|--------|---------------------|
| `B`    | sentences             | `E`    | embedding width     |
| `S`    | source tokens         | `H`    | memory width        |
| `T`    | target tokens         | `Q`    | query width         |
| `R`    | rows being decoded    | `A`    | attention width     |
| `K`    | hypotheses            | `N`    | heads               |
| `V`    | target vocabulary     | `D`    | width of one head   |

A digit is an axis of that size.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.vocabulary import BOS, EOS, PAD

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentence pairs side by side, padded with `<pad>` on the right.

    Every source ends in `</s>`. `target_in_BT` is what the decoder reads (`<s>` first) and
    `target_out_BT` what it should say (`</s>` last); without targets they are `None`.
    `pairs_B` says which pairs of the corpus these are.
    """

    source_BS: Ids
    target_in_BT: Ids | None
    target_out_BT: Ids | None
    pairs_B: Ids

    @property
    def source_real_BS(self) -> NDArray[np.bool_]:
        """True where a source token is real."""
        return np.not_equal(self.source_BS, PAD)

    @property
    def num_target_tokens(self) -> int:
        """The number of real target tokens, `</s>` counted."""
        return 0 if self.target_out_BT is None else int((self.target_out_BT != PAD).sum())

    def shard(self, rank: int, num_ranks: int) -> "Batch":
        """Return the rows of one of several processes that share this batch; together they have them all.

        A batch of fewer rows than processes leaves some with none.
        """
        rows = slice(rank, None, num_ranks)
        target_in, target_out = self.target_in_BT, self.target_out_BT
        return Batch(
            self.source_BS[rows],
            None if target_in is None else target_in[rows],
            None if target_out is None else target_out[rows],
            self.pairs_B[rows],
        )


@dataclass(frozen=True, slots=True)
class Ragged:
    """Rows of different lengths, end to end: the ids of several sentences."""

    flat: NDArray[np.integer]
    lengths_B: Ids

    @classmethod
    def of(cls, rows: Sequence[NDArray[np.integer]]) -> "Ragged":
        """Return the rows as one."""
        flat = np.concatenate(rows) if rows else np.empty(0, np.int64)
        return cls(flat, np.array([len(row) for row in rows], np.int64))

    def padded(self, *, first: int | None = None, last: int | None = None) -> Ids:
        """Return one row a sentence, padded on the right, with an id put before or after its own."""
        head, tail = int(first is not None), int(last is not None)
        longest = int(self.lengths_B.max(initial=0))
        padded = np.full((len(self.lengths_B), head + longest + tail), PAD, np.int64)
        inner = padded[:, head : head + longest]
        inner[np.arange(longest) < self.lengths_B[:, None]] = self.flat
        if first is not None:
            padded[:, 0] = first
        if last is not None:
            padded[np.arange(len(padded)), head + self.lengths_B] = last
        return padded


def make_batch(sources: Ragged, targets: Ragged | None, pairs_B: Ids) -> Batch:
    """Return the batch of these sentences; training and translating both come through here."""
    return Batch(
        sources.padded(last=EOS),
        None if targets is None else targets.padded(first=BOS),
        None if targets is None else targets.padded(last=EOS),
        pairs_B,
    )
