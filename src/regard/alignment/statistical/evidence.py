"""Do the sides of a pair belong together? What the other pairs of a corpus say about its words."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from regard.alignment.statistical.learn import Aligner, TwoWayAligner, learn_both, map_chunks
from regard.alignment.statistical.pairs import MAX_WORDS, WordIds, WordPair
from regard.contract import Floats, Ids
from regard.progress import Progress, unshown
from regard.text.words import words

_COMMON = 0.01  # a word that is so large a share of all words tells nothing
_MIN_MET = 2  # a word must have been met in another pair
_MIN_WEIGHT = 20.0  # nats that the words of a pair must weigh together: some three rare words


def relatedness(read: Callable[[], Iterable[tuple[str, str]]], on_progress: Progress = unshown) -> Floats:
    """Learn word translations from pairs of texts, and return how far those of each pair bear it out.

    0: no word of the pair is ever translated by one of the other side elsewhere; NaN: its words are too few,
    or too rare, to tell. `read` gives the same pairs each time it is called, twice.
    """
    aligner = learn_both(map(_words, read()), on_progress=on_progress)
    found = []
    for score in evidence(aligner, map(_words, read())):
        found.append(score)
        on_progress("comparing the sides", len(found), 0)
    return np.array(found, np.float32)


def evidence(aligner: TwoWayAligner, pairs: Iterable[WordPair]) -> Iterator[float]:
    """Yield for each pair the mean score of its words: of each the best with a word of the other side.

    A score is the geometric mean of how often each word came from the other. The pair itself has taught the
    aligner, so one time is taken off. Words weigh the more, the rarer they are.
    """
    yield from map_chunks(partial(_score_chunk, aligner), pairs)


def _words(pair: tuple[str, str]) -> WordPair:
    source, target = ([text[start:end] for start, end in words(text)] for text in pair)
    return source, target


def _score_chunk(aligner: TwoWayAligner, chunk: Sequence[WordPair]) -> list[float]:
    sides = aligner.forward.source_words, aligner.forward.target_words
    weights = [_weights(side) for side in sides]
    found = []
    for pair in chunk:
        source, target = (
            np.array(side.ranks(text), np.int64) for side, text in zip(sides, pair, strict=True)
        )
        weight_S, weight_T = weights[0][source], weights[1][target]
        total = float(weight_S.sum() + weight_T.sum())
        if total < _MIN_WEIGHT or not (0 < len(source) <= MAX_WORDS and 0 < len(target) <= MAX_WORDS):
            found.append(np.nan)
            continue
        there_ST = _shares_elsewhere(aligner.forward, source[:, None], target)
        back_ST = _shares_elsewhere(aligner.backward, target, source[:, None])
        scores_ST = np.sqrt(there_ST * back_ST)
        found.append(float(weight_S @ scores_ST.max(axis=1) + weight_T @ scores_ST.max(axis=0)) / total)
    return found


def _weights(words: WordIds) -> Floats:
    """Return what each word weighs by rank, the last of them a word never met."""
    counts = np.array([*words.counts(), 0])
    rarity = np.log(_COMMON * counts.sum() / np.maximum(counts, 1))
    return np.where(counts >= _MIN_MET, np.maximum(rarity, 0), 0).astype(np.float32)


def _shares_elsewhere(aligner: Aligner, given: Ids, said: Ids) -> Floats:
    """Return which share of all that came from given words, this time aside, are the words said."""
    counts, met = aligner.expected(given, said)
    shares: Floats = np.clip((counts - 1) / np.maximum(met, 1), 0, 1)
    return shares
