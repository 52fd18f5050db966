"""A validation set that training has not seen: no sentence of it, nor of its paraphrases, stays behind."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import regex

from regard.corpus.read import Pair, sample_pairs
from regard.text.normalize import normalize

_NOT_LETTERS = regex.compile(r"[^\p{L}\p{M}]+")

Reading = Callable[[], Iterable[Pair]]  # the pairs of a corpus, from the start at each call


@dataclass(frozen=True)
class Split:
    """Pairs for validation, and what must therefore not be trained on."""

    validation: tuple[Pair, ...]
    _held_out: frozenset[int]

    def keep(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield the pairs that share no side with the validation pairs or with their paraphrases."""
        return (pair for pair in pairs if not self._held_out & _keys(pair))


def split_off(readings: Sequence[Reading], num_pairs: int, seed: int) -> Split:
    """Choose validation pairs from the first corpus at random; what they hold out goes for all of them.

    Sides are compared by their letters alone, so that punctuation, case and figures make no difference.
    A pair that shares a side with a validation pair is a paraphrase of it, and one that shares a side with
    that paraphrase is held out as well: a corpus with many translations of a sentence would otherwise ask
    in validation what it has answered in training. What is kept in memory grows with the validation set only.
    """
    validation = sample_pairs(readings[0](), num_pairs, seed)
    chosen = frozenset().union(*map(_keys, validation))
    held_out = set(chosen)
    for reading in readings:
        for pair in reading():
            if chosen & (keys := _keys(pair)):
                held_out |= keys
    return Split(tuple(validation), frozenset(held_out))


def letters(text: str) -> str:
    """Return the letters of a text, in one case; the text itself if it has none."""
    return _NOT_LETTERS.sub("", text.casefold()) or text


def _keys(pair: Pair) -> set[int]:
    """Return a number for each side, of its letters if it has any; different features may have one text."""
    source = _key(0, normalize(pair.source))
    return {source} if pair.features is not None else {source, _key(1, normalize(pair.target))}


def _key(side: int, text: str) -> int:
    data = letters(text).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8, salt=bytes([side])).digest())
