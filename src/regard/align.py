"""Word alignments: which attention tells them, from pieces to words, to links, and Pharaoh files."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from regard.contract import Floats
from regard.text.words import PieceWords

Link = tuple[int, int]  # (source word, target word), both counted from 0


@dataclass(frozen=True, slots=True)
class Reading:
    """Which attention of a model tells which source piece became which.

    That of one layer (counted from the last if negative), of one of its heads or the mean of all; and if
    `shifted`, at the step that reads a piece instead of the one that says it (SHIFT-ATT, Chen et al. 2020).
    """

    layer: int
    head: int | None
    shifted: bool

    def look(self, attention_RLNS: Floats) -> Floats:
        """Return the chosen weights of each row (R, S), none if the model has no attention."""
        num_rows, num_layers = attention_RLNS.shape[:2]
        if not num_layers:
            return np.empty((num_rows, 0), np.float32)
        layer = self.layer if self.layer >= 0 else max(num_layers + self.layer, 0)
        heads_RNS = attention_RLNS[:, layer]
        look_RS: Floats = heads_RNS.mean(axis=1) if self.head is None else heads_RNS[:, self.head]
        return look_RS

    def align(self, looks_TS: Floats) -> Floats:
        """Return for each piece said where it came from, given where each step looked.

        The last piece is read by no step and keeps its own.
        """
        return np.concatenate([looks_TS[1:], looks_TS[-1:]]) if self.shifted else looks_TS


USUAL_READING = Reading(-2, None, False)
"""Where nothing was learnt about a model: the last layer but one, the mean of its heads. In Transformers its
weights align best (Garg et al. 2019, section 4.1)."""


@dataclass(frozen=True, slots=True)
class WordWeights:
    """How much of each target word came from each source word, and how much from no word (mostly `</s>`)."""

    words_TS: Floats
    elsewhere_T: Floats


def to_words(attention_TS: Floats, source: PieceWords, target: PieceWords) -> WordWeights:
    """Return the weights from words to words: the sum over a source word's pieces, the mean over a target's.

    A source piece that touches two words gives half of its weight to each.
    """
    num_words = len(source.pieces_of_word)
    gather_SX: Floats = np.zeros((attention_TS.shape[1], num_words + 1), np.float32)
    for piece in range(len(gather_SX)):
        touched = source.words_of_piece[piece] or (num_words,)
        for word in touched:
            gather_SX[piece, word] = 1 / len(touched)
    mean_XT: Floats = np.zeros((len(target.pieces_of_word), len(attention_TS)), np.float32)
    for word, pieces in enumerate(target.pieces_of_word):
        for piece in pieces:
            mean_XT[word, piece] = 1 / len(pieces)
    weights_TX: Floats = np.matmul(np.matmul(mean_XT, attention_TS), gather_SX)
    return WordWeights(weights_TX[:, :num_words], weights_TX[:, num_words])


def hard_links(weights: WordWeights) -> tuple[Link, ...]:
    """Return for each target word the source word with the most weight, unless no word at all has more."""
    if not weights.words_TS.size:
        return ()
    best_T = weights.words_TS.argmax(axis=1)
    linked_T = weights.words_TS.max(axis=1) > weights.elsewhere_T
    return tuple((int(best_T[word]), int(word)) for word in np.flatnonzero(linked_T))


def to_pharaoh(links: Iterable[Link]) -> str:
    """Return the links in order as `i-j i-j ...`; no links give an empty string."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def from_pharaoh(line: str) -> frozenset[Link]:
    """Return the links of one line written `i-j i-j ...`."""
    links = set()
    for field in line.split():
        source, dash, target = field.partition("-")
        if not (dash and source.isdecimal() and target.isdecimal()):
            raise ValueError(f"{field!r} is not a link; write source-target counted from 0, such as 3-4")
        links.add((int(source), int(target)))
    return frozenset(links)
