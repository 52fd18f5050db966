"""Teaching attention to align: it looks where the statistical aligner links the pieces.

A second loss, the cross-entropy between attention and the links of an aligner, makes an alignment of it
(Chen et al. 2016). In a recurrent model it is the attention of the step that says a piece. Of a Transformer
no head aligns all words by itself; as in Garg et al. 2019 a head of the last layer but one is taught. There a
second pass reads the whole target; here it is taught at the step that reads a piece and so knows it
(compare Chen et al. 2020). A piece without a link is taught to look at the `</s>` of the source, which stands
for no word.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product, tee
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.alignment.links import Link
from regard.alignment.reading import Reading
from regard.alignment.statistical.learn import TwoWayAligner, learn_both
from regard.alignment.statistical.pairs import WordPair
from regard.contract import Batch, Ids
from regard.corpus.batches import PieceLinks
from regard.corpus.store import Store, add_links
from regard.design import design
from regard.options.model import RecurrentOptions, TransformerOptions
from regard.options.training import TrainOptions
from regard.progress import Progress
from regard.text.scripts import HANGUL_RANGES, UNSPACED_RANGES
from regard.text.tokenizer import Tokenizer, TokenizerPair
from regard.text.words import Span
from regard.vocabulary import EOS, PAD, SPACE

_CHUNK = 4096
_ALONE = re.compile(f"[{UNSPACED_RANGES}{HANGUL_RANGES}]")
_LEAST_WEIGHT = 1e-9  # a weight of 0 has no logarithm


def taught_reading(model: TransformerOptions | RecurrentOptions, train: TrainOptions) -> Reading | None:
    """Return which attention is taught, and at which step; none if nothing is to be taught."""
    return design(model).taught if train.guidance else None


class Looks:
    """A probe that keeps, with their gradients, the weights of the attention that is taught."""

    def __init__(self, reading: Reading) -> None:
        self._names = "attention.weights", f"decoder.{reading.layer}.cross.weights"
        self._head = reading.head
        self._seen: list[Tensor] = []

    def __call__(self, name: str, value: Any) -> Any:
        """Keep the weights and hand them back."""
        if name in self._names:
            self._seen.append(value)
        return value

    @property
    def weights_BTS(self) -> Tensor:
        """The weights of all steps."""
        first = self._seen[0]
        if first.dim() == 2:  # one step after the other
            return torch.stack(self._seen, dim=1)
        return first if self._head is None else first[:, self._head]


@dataclass(frozen=True, slots=True)
class Guide:
    """What the taught attention is to learn: the links of any pairs, and how much that counts."""

    links: Callable[[Ids], PieceLinks]
    weight: float
    reading: Reading

    def loss(self, weights_BTS: Tensor, batch: Batch) -> Tensor:
        """Return -log of the weight on the right places: their mean for each piece, summed over pieces."""
        wanted = _wanted(self.links(batch.pairs_B), batch)
        device = weights_BTS.device
        step_L = wanted.links.target_L + self.reading.shifted  # what is said is read a step later
        places = (wanted.links.row_L, step_L, wanted.links.source_L)
        found_L = weights_BTS[tuple(torch.from_numpy(index).to(device) for index in places)].float()
        share_L = torch.from_numpy(wanted.share_L).to(found_L)
        return -(share_L * found_L.clamp_min(_LEAST_WEIGHT).log()).sum() * self.weight


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Where the pieces of a batch are to look, and which share of a piece each place has."""

    links: PieceLinks
    share_L: NDArray[np.float64]


def _wanted(links: PieceLinks, batch: Batch) -> _Wanted:
    assert batch.target_out_BT is not None
    num_BT = np.zeros(batch.target_out_BT.shape, np.int64)
    np.add.at(num_BT, (links.row_L, links.target_L), 1)
    said_BT = (batch.target_out_BT != PAD) & (batch.target_out_BT != EOS)
    aligned_B1 = num_BT.any(axis=1, keepdims=True)  # of a pair without any link nothing is known
    row, target = np.nonzero(said_BT & (num_BT == 0) & aligned_B1)
    end_B = batch.source_real_BS.sum(axis=1) - 1
    whole = PieceLinks(
        np.concatenate([links.row_L, row]),
        np.concatenate([links.source_L, end_B[row]]),
        np.concatenate([links.target_L, target]),
    )
    return _Wanted(whole, 1 / np.maximum(num_BT, 1)[whole.row_L, whole.target_L])


def write_links(
    stores: Sequence[Store], tokenizers: TokenizerPair, max_tokens: int, progress: Progress
) -> list[Store]:
    """Align the words of all pairs and write which pieces belong together into the stores.

    Pairs with more than `max_tokens` on a side are in no batch, and get no links.
    """
    cutters = _WordCutter(tokenizers.source), _WordCutter(tokenizers.target)
    aligner = learn_both(
        (pair.words for store in stores for pair in _cut_pairs(store, cutters, max_tokens)),
        on_progress=lambda what, done, of: progress(f"aligning words: {what}", done, of),
    )
    return [add_links(store, _piece_links(aligner, store, cutters, max_tokens, progress)) for store in stores]


def _piece_links(
    aligner: TwoWayAligner, store: Store, cutters: "_Cutters", max_tokens: int, progress: Progress
) -> Iterator[frozenset[Link]]:
    """Yield the links of each pair: all pieces of a word with all of those that translate it."""
    pairs, again = tee(_cut_pairs(store, cutters, max_tokens))
    aligned = aligner.align_many(pair.words for pair in pairs)
    for number, (pair, links) in enumerate(zip(again, aligned, strict=True), 1):
        if number % _CHUNK == 0 or number == len(store):
            progress("aligning words", number, len(store))
        yield frozenset(
            link
            for a, b in links
            for link in product(range(*pair.source.spans[a]), range(*pair.target.spans[b]))
        )


@dataclass(frozen=True, slots=True)
class _Cut:
    """The words of a sentence, and from which piece to which each of them goes."""

    words: list[str]
    spans: list[Span]


@dataclass(frozen=True, slots=True)
class _CutPair:
    source: _Cut
    target: _Cut

    @property
    def words(self) -> WordPair:
        return self.source.words, self.target.words


class _WordCutter:
    """Joins pieces to words, of which an aligner needs fewer examples, from the pieces alone.

    Letters that stand next to each other, marks among them, are a word, and so is any other piece. Pieces of
    scripts that put no space between words are words of their own, and so are Korean ones: a Korean word is a
    stem with its endings. A space alone is part of what follows.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        texts = [piece.replace(SPACE, "") for piece in tokenizer.pieces]
        self._texts = texts
        self._is_space = [not text for text in texts]
        self._goes_on = [
            piece[:1] != SPACE and _joins(text[:1])
            for piece, text in zip(tokenizer.pieces, texts, strict=True)
        ]
        self._stays_open = [_joins(text[-1:]) for text in texts]

    def cut(self, ids: Sequence[int]) -> _Cut:
        """Return the words of a sentence."""
        words: list[str] = []
        starts: list[int] = []
        is_open = False
        for place, id in enumerate(ids):
            if (is_open and self._goes_on[id]) or (words and self._is_space[ids[place - 1]]):
                words[-1] += self._texts[id]
            else:
                words.append(self._texts[id])
                starts.append(place)
            is_open = self._stays_open[id]
        return _Cut(words, list(pairwise([*starts, len(ids)])))


_Cutters = tuple[_WordCutter, _WordCutter]
_EMPTY = _CutPair(_Cut([], []), _Cut([], []))


def _joins(character: str) -> bool:
    """Whether letters beside this one may belong to its word."""
    return unicodedata.category(character or " ")[0] in "LM" and not _ALONE.match(character)


def _cut_pairs(store: Store, cutters: _Cutters, max_tokens: int) -> Iterator[_CutPair]:
    """Yield the words of each pair; none of one that is in no batch."""
    for start in range(0, len(store), _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, len(store)))
        sides = [
            np.split(found.flat, np.cumsum(found.lengths_B)[:-1])
            for found in (store.source.fetch(rows), store.target.fetch(rows))
        ]
        store.release()
        for source, target in zip(*sides, strict=True):
            if max(len(source), len(target)) < max_tokens:  # with `</s>`
                yield _CutPair(cutters[0].cut(source.tolist()), cutters[1].cut(target.tolist()))
            else:
                yield _EMPTY
