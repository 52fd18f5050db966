"""Word links: read from attention, written as Pharaoh lines, symmetrised from two directions."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from regard.contract import Floats
from regard.text.words import PieceWords

Link = tuple[int, int]  # (source word, target word), both counted from 0
Symmetrisation = Literal["intersection", "union", "grow-diag", "grow-diag-final-and"]

# In this order: first beside and above, then corner to corner (Koehn et al. 2005, figure 1).
_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


AGREEMENT = 0.25
"""The geometric mean of what both directions give to a pair of words, from which they are linked."""


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


def entropy_of_looks(weights_TS: Floats) -> Floats:
    """Return how scattered each row of weights is, in nats: 0 is one place, whatever the row adds up to.

    Weights of a local window (Luong et al. 2015, eq. 10) add up to less than 1.
    """
    share_TS = weights_TS / np.maximum(weights_TS.sum(axis=1, keepdims=True), 1e-12)
    entropy_T: Floats = -(share_TS * np.log(np.maximum(share_TS, 1e-12))).sum(axis=1)
    return entropy_T


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


def symmetrise(forward: Collection[Link], backward: Collection[Link], how: Symmetrisation) -> frozenset[Link]:
    """Return one alignment of two, both written (source, target), by a rule of Koehn et al. 2003 and 2005.

    `grow-diag` starts from the intersection and adds links of the union that touch one it has, also at a
    corner, and join a word that has none; `final-and` then adds those of the forward, then of the backward
    alignment, whose words both have none. As in the paper, links are taken in order of the source, then of
    the target word, and those added count at once.
    """
    both, either = frozenset(forward) & frozenset(backward), frozenset(forward) | frozenset(backward)
    if how == "intersection":
        return both
    if how == "union":
        return either
    grown = _Growing(both)
    in_order = sorted(either)
    num_before = -1
    while num_before < len(grown.links):
        num_before = len(grown.links)
        for source, target in in_order:
            if (source, target) in grown.links:
                for down, right in _NEIGHBOURS:
                    near = (source + down, target + right)
                    if near in either and not (near[0] in grown.sources and near[1] in grown.targets):
                        grown.add(near)
    if how == "grow-diag-final-and":
        for links in (forward, backward):
            for source, target in sorted(links):
                if source not in grown.sources and target not in grown.targets:
                    grown.add((source, target))
    return frozenset(grown.links)


def agreed_links(forward_TS: Floats, backward_TS: Floats) -> frozenset[Link]:
    """Return the words to which both directions together give enough (Liang et al. 2006 multiply, too).

    That is, the geometric mean of the share of a target word that came from a source word, and of the share
    of the source word that went into the target word, is above AGREEMENT.
    """
    targets, sources = np.nonzero(forward_TS * backward_TS > AGREEMENT**2)
    return frozenset(zip(sources.tolist(), targets.tolist(), strict=True))


class _Growing:
    """An alignment being grown, and the words that have a link."""

    def __init__(self, links: Iterable[Link]) -> None:
        self.links = set(links)
        self.sources = {source for source, _ in self.links}
        self.targets = {target for _, target in self.links}

    def add(self, link: Link) -> None:
        self.links.add(link)
        self.sources.add(link[0])
        self.targets.add(link[1])
