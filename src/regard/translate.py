"""Text in, translations out: the one road that users, servers and validation take."""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.contract import Engine, Floats, Ragged, make_batch
from regard.errors import ConfigError, SourceError
from regard.modelfile import ModelFile, load_model
from regard.result import Translation
from regard.runtime.build import build_engine
from regard.search.beam import Hypothesis, beam, greedy
from regard.text.segment import Ids
from regard.text.tokenizer import TokenizerPair
from regard.vocabulary import EOS

# Source tokens of all rows decoded together; a sentence has as many rows as the beam is wide.
# Half as many took 8 % longer, four times as many 22 % (regard-small, beam of 5, one core).
_BATCH_TOKENS = 4096


class Translator:
    """A model, of whatever kind and engine, with its tokenizers."""

    def __init__(self, engine: Engine[Any], tokenizers: TokenizerPair) -> None:
        self.engine = engine
        self.tokenizers = tokenizers

    @classmethod
    def of(cls, model: ModelFile) -> "Translator":
        """Return the translator of a model, computing in NumPy."""
        return cls(build_engine(model.options, model.weights), model.tokenizers)

    @classmethod
    def open(cls, path: Path) -> "Translator":
        """Return the translator of a model file."""
        return cls.of(load_model(path))

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam_size: int = 5,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[Translation]:
        """Return one translation for each text, in their order; that of a blank text is blank.

        `on_progress` is told how many texts are done. What a text becomes does not depend on the others.
        """
        if isinstance(texts, str):
            raise TypeError("translate() takes a list of texts; put the one text into brackets")
        if beam_size < 1:
            raise ConfigError(f"beam_size = {beam_size} is not valid; 1 is greedy search, 5 is usual")
        ids = self.tokenizers.source.encode_batch([self.tokenizers.clean_source(text) for text in texts])
        self._check_lengths(texts, ids)
        found = [_blank(text) for text in texts]
        progress = on_progress or (lambda num_done: None)
        progress(num_done := sum(not len(one) for one in ids))
        for numbers in _batches([len(one) for one in ids], beam_size):
            said = self._search([ids[number] for number in numbers], beam_size)
            for number, hypothesis in zip(numbers, said, strict=True):
                found[number] = self._describe(texts[number], ids[number], hypothesis)
            progress(num_done := num_done + len(numbers))
        return found

    def _check_lengths(self, texts: Sequence[str], ids: Sequence[Ids]) -> None:
        """Raise an error, before anything is translated, if a text is longer than the model can read."""
        longest = self.engine.max_tokens
        for number, one in enumerate(ids):
            if longest is not None and len(one) + 1 > longest:
                shown = texts[number] if len(texts[number]) <= 60 else texts[number][:60] + "…"
                raise SourceError(
                    f"text {number + 1} has {len(one) + 1:,} tokens and this model reads no more than "
                    f"{longest:,}; split it: {shown!r}"
                )

    def _search(self, sources: list[Ids], beam_size: int) -> list[Hypothesis]:
        batch = make_batch(Ragged.of(sources), None, np.arange(len(sources)))
        limit_B = 2 * batch.source_real_BS.sum(axis=1) + 20
        if beam_size == 1:
            return greedy(self.engine, batch, limit_B)
        return [best[0] for best in beam(self.engine, batch, limit_B, beam_size)]

    def _describe(self, text: str, source: Ids, said: Hypothesis) -> Translation:
        source_pieces, pieces = self.tokenizers.source.pieces, self.tokenizers.target.pieces
        said_ids = (*said.ids, EOS) if said.complete else said.ids
        return Translation(
            text,
            self.tokenizers.target.decode(said.ids),
            said.score,
            said.log_prob,
            tuple(source_pieces[id] for id in (*source.tolist(), EOS)),
            tuple(pieces[id] for id in said_ids),
            tuple(map(math.exp, said.log_probs)),
            _readable(said.attention_TLNS),
            said.complete,
        )


def _batches(lengths: Sequence[int], beam_size: int) -> Iterator[list[int]]:
    """Yield the numbers of the texts that are searched together, longest first; blank ones are not."""
    batch: list[int] = []
    for number in sorted(filter(lengths.__getitem__, range(len(lengths))), key=lengths.__getitem__)[::-1]:
        if batch and (len(batch) + 1) * beam_size * (lengths[batch[0]] + 1) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def _readable(attention_TLNS: Floats) -> Floats:
    """Return the one matrix that best tells which source piece became which.

    Of several layers it is the last but one, the mean of its heads: in Transformers its weights align best
    (Garg et al. 2019, section 4.1).
    """
    num_tokens, num_layers = attention_TLNS.shape[:2]
    if not num_layers:
        return np.zeros((num_tokens, 0), np.float32)
    attention_TS: Floats = attention_TLNS[:, max(num_layers - 2, 0)].mean(axis=1)
    return attention_TS


def _blank(source: str) -> Translation:
    return Translation(source, "", 0.0, 0.0, (), (), (), np.zeros((0, 0), np.float32), True)
