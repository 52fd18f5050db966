"""Teaching one head of a Transformer to align: it looks where the statistical aligner links the pieces.

Without help the attention of a Transformer aligns only by the way, and no head does so for all words. A
second loss, the cross-entropy between a head's weights and the links of an aligner, makes an alignment of one
of them (Chen et al. 2016; Garg et al. 2019). As in Garg et al. it is a head of the last layer but one. There
a second pass reads the whole target; here the head is taught at the step that reads a piece and so knows it
(compare Chen et al. 2020). A piece without a link is taught to look at the `</s>` of the source, which stands
for no word.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product, tee

import numpy as np
import torch
from torch import Tensor

from regard.align import Link, Reading
from regard.aligner.learn import TwoWayAligner, learn_both
from regard.config import TransformerOptions
from regard.contract import Batch, Ids
from regard.corpus.batches import PieceLinks
from regard.corpus.store import Store, add_links
from regard.text.tokenizer import Tokenizer, TokenizerPair
from regard.text.words import Span
from regard.vocabulary import EOS, PAD, SPACE

Progress = Callable[[str, int, int], None]

_HEAD = 0
_CHUNK = 4096
# Thai to Myanmar, Khmer, kana, Han; and Hangul, whose words are long and cut into stems and endings.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)
_LEAST_WEIGHT = 1e-9  # a weight of 0 has no logarithm


def taught_reading(options: TransformerOptions) -> Reading:
    """Return which head is taught, and at which step."""
    return Reading(max(0, options.num_decoder_layers - 2), _HEAD, shifted=True)


@dataclass(frozen=True, slots=True)
class Guide:
    """What the taught head is to learn: the links of any pairs, and how much that counts."""

    links: Callable[[Ids], PieceLinks]
    weight: float
    reading: Reading

    def loss(self, weights_BTS: Tensor, batch: Batch) -> Tensor:
        """Return -log of the weight on the right places: their mean for each piece, summed over pieces."""
        row_K, step_K, source_K, share_K = _wanted(self.links(batch.pairs_B), batch)
        device = weights_BTS.device
        where = (torch.from_numpy(index).to(device) for index in (row_K, step_K, source_K))
        found_K = weights_BTS[tuple(where)].clamp_min(_LEAST_WEIGHT)
        return -(torch.from_numpy(share_K).to(weights_BTS) * found_K.log()).sum() * self.weight


def _wanted(links: PieceLinks, batch: Batch) -> tuple[Ids, Ids, Ids, np.ndarray]:
    """Return rows, steps that read a piece, the source places they are to look at, and the share of each."""
    assert batch.target_out_BT is not None
    num_BT = np.zeros(batch.target_out_BT.shape, np.int64)
    np.add.at(num_BT, (links.row_K, links.target_K), 1)
    said_BT = (batch.target_out_BT != PAD) & (batch.target_out_BT != EOS)
    aligned_B1 = num_BT.any(axis=1, keepdims=True)  # of a pair without any link nothing is known
    row_N, target_N = np.nonzero(said_BT & (num_BT == 0) & aligned_B1)
    end_B = (batch.source_BS != PAD).sum(axis=1) - 1
    row_K = np.concatenate([links.row_K, row_N])
    target_K = np.concatenate([links.target_K, target_N])
    source_K = np.concatenate([links.source_K, end_B[row_N]])
    return row_K, target_K + 1, source_K, 1 / np.maximum(num_BT, 1)[row_K, target_K]


def write_links(stores: Sequence[Store], tokenizers: TokenizerPair, progress: Progress) -> list[Store]:
    """Align the words of all pairs and write which pieces belong together into the stores."""
    cutters = _WordCutter(tokenizers.source), _WordCutter(tokenizers.target)
    aligner = learn_both(
        ((source.words, target.words) for store in stores for source, target in _cut_pairs(store, *cutters)),
        on_progress=lambda what, done, of: progress(f"aligning words: {what}", done, of),
    )
    return [add_links(store, _piece_links(aligner, store, cutters, progress)) for store in stores]


def _piece_links(
    aligner: TwoWayAligner, store: Store, cutters: tuple["_WordCutter", "_WordCutter"], progress: Progress
) -> Iterator[frozenset[Link]]:
    """Yield the links of each pair: all pieces of a word with all of those that translate it."""
    pairs, again = tee(_cut_pairs(store, *cutters))
    aligned = aligner.align_many((source.words, target.words) for source, target in pairs)
    for number, ((source, target), links) in enumerate(zip(again, aligned, strict=True), 1):
        if number % _CHUNK == 0 or number == len(store):
            progress("aligning words", number, len(store))
        yield frozenset(
            link for a, b in links for link in product(range(*source.spans[a]), range(*target.spans[b]))
        )


@dataclass(frozen=True, slots=True)
class _Cut:
    """The words of a sentence, and from which piece to which each of them goes."""

    words: list[str]
    spans: list[Span]


class _WordCutter:
    """Joins pieces to words, of which an aligner needs fewer examples.

    Letters that stand next to each other are a word, and so is any other piece; pieces of scripts that
    put no space between words are words of their own.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._texts = [piece.replace(SPACE, "") for piece in tokenizer.pieces]
        inner = [piece[:1] != SPACE for piece in tokenizer.pieces]
        self._goes_on = [within and _joins(text[:1]) for within, text in zip(inner, self._texts, strict=True)]
        self._stays_open = [not text or _joins(text[-1]) for text in self._texts]  # a space may stand alone

    def cut(self, ids: Sequence[int]) -> _Cut:
        """Return the words of a sentence."""
        words: list[str] = []
        starts: list[int] = []
        is_open = False
        for place, id in enumerate(ids):
            if is_open and self._goes_on[id]:
                words[-1] += self._texts[id]
            else:
                words.append(self._texts[id])
                starts.append(place)
            is_open = self._stays_open[id]
        return _Cut(words, list(pairwise([*starts, len(ids)])))


def _joins(character: str) -> bool:
    """Whether letters beside this one may belong to its word."""
    return character.isalpha() and not _UNSPACED.match(character)


def _cut_pairs(store: Store, source: _WordCutter, target: _WordCutter) -> Iterator[tuple[_Cut, _Cut]]:
    for start in range(0, len(store), _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, len(store)))
        sides = [
            np.split(found.flat, np.cumsum(found.lengths_B)[:-1])
            for found in (store.source.fetch(rows), store.target.fetch(rows))
        ]
        for source_ids, target_ids in zip(*sides, strict=True):
            yield source.cut(source_ids.tolist()), target.cut(target_ids.tolist())
    store.release()
