"""The words of the target side of a training text, for the model file: what is none of them may be a name."""

import numpy as np

from regard.modelfile import ModelFile
from regard.text.known import KnownWords
from regard.text.words import words
from regard.training.prepare import Prepared

_CHUNK_PAIRS = 4096


def known_words(prepared: Prepared, start: ModelFile | None) -> KnownWords:
    """Return the words that a model was trained on, and those that the model it began with knows."""
    found: set[str] = set()
    decode = prepared.tokenizers.target.decode
    for share in prepared.shares:
        for first in range(0, len(share.store), _CHUNK_PAIRS):
            pairs_B = np.arange(first, min(first + _CHUNK_PAIRS, len(share.store)))
            for ids in share.store.target.fetch(pairs_B).rows():
                text = decode(ids.tolist())
                found.update(text[begin:end] for begin, end in words(text))
    known = KnownWords.of(found)
    return known if start is None or start.known_words is None else known | start.known_words
