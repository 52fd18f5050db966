"""What the model file keeps of a training text: its words, and hashes of its pairs."""

from collections.abc import Iterator

import numpy as np

from regard.corpus.seen import SeenPairs
from regard.modelfile import ModelFile
from regard.text.known import KnownWords
from regard.text.words import words
from regard.training.prepare import Prepared
from regard.training.request import Side

_CHUNK_PAIRS = 4096


def known_words(prepared: Prepared, start: ModelFile | None) -> KnownWords:
    """Return the words of the target side, and those that the model it began with knows.

    What is none of them may be a name.
    """
    found: set[str] = set()
    for text in _texts(prepared, "target"):
        found.update(text[begin:end] for begin, end in words(text))
    known = KnownWords.of(found)
    return known if start is None or start.known_words is None else known | start.known_words


def seen_pairs(prepared: Prepared, start: ModelFile | None) -> SeenPairs | None:
    """Return the hashes of the pairs, with those of the model it began with; none for features."""
    if prepared.validation_store.feature_size is not None:
        return None
    pairs = zip(_texts(prepared, "source"), _texts(prepared, "target"), strict=True)
    seen = SeenPairs.of(pairs)
    return seen if start is None or start.seen_pairs is None else seen | start.seen_pairs


def _texts(prepared: Prepared, side: Side) -> Iterator[str]:
    """Yield the texts of one side of the pairs that were trained on."""
    decode = getattr(prepared.tokenizers, side).decode
    for share in prepared.shares:
        for first in range(0, len(share.store), _CHUNK_PAIRS):
            pairs_B = np.arange(first, min(first + _CHUNK_PAIRS, len(share.store)))
            for ids in getattr(share.store, side).fetch(pairs_B).rows():
                yield decode(ids.tolist())
