"""Sentences to try a model with, where the user gives none: in its language, or of its own words."""

from dataclasses import dataclass

import numpy as np

from regard.contract import Features
from regard.corpus.language_codes import matches
from regard.modelfile import ModelFile
from regard.options.model import feature_size
from regard.sample import read_sample
from regard.text.tokenizer import Tokenizer
from regard.vocabulary import NUM_RESERVED, SPACE

_NUM_SENTENCES = 16
_LONGEST = 16  # words of a made sentence
_MANY_WORDS = 100


@dataclass(frozen=True, slots=True)
class Sentences:
    """Sources for a model, and in words where they come from."""

    sources: list[str | Features]
    origin: str

    @property
    def texts(self) -> list[str]:
        """Those that are texts."""
        return [one for one in self.sources if isinstance(one, str)]


def sentences_for(model: ModelFile) -> Sentences:
    """Return sentences of the sample grammar in the model's source language, or made of its vocabulary.

    A model that reads feature vectors gets random ones. The same model gets the same sentences every time.
    """
    size, language = feature_size(model.options.source), model.source_language
    if size is not None:
        random = np.random.default_rng(1)
        lengths = range(1, _NUM_SENTENCES // 2)
        return Sentences(
            [Features(random.normal(size=(length, size)).astype(np.float32)) for length in lengths],
            "random feature vectors",
        )
    for known, side in (("fr", "source"), ("en", "target")):
        if language is not None and matches(language, known):
            pairs = read_sample(_NUM_SENTENCES)
            return Sentences([getattr(pair, side) for pair in pairs], "sentences of the sample grammar")
    return Sentences([*_made(model.tokenizers.source)], "made of words of the vocabulary")


def _made(tokenizer: Tokenizer) -> list[str]:
    """Return sentences of 1, 2, 3 and more words that the tokenizer has as one piece."""
    pieces = tokenizer.pieces
    words = [id for id in range(NUM_RESERVED, len(pieces)) if pieces[id].strip(SPACE).isalpha()]
    whole = [id for id in words if pieces[id].startswith(SPACE)]
    chosen = (whole if len(whole) >= _MANY_WORDS else words) or list(range(NUM_RESERVED, len(pieces)))
    random = np.random.default_rng(1)
    lengths = (1 + number % _LONGEST for number in range(_NUM_SENTENCES))
    texts = [tokenizer.decode(random.choice(chosen, length).tolist()) for length in lengths]
    return [text for text in texts if text.strip()]
