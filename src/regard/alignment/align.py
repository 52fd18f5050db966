"""Aligned words of given translations: by a model's attention, or by what the pairs teach."""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from regard.alignment.attention import Alignment, align_pairs, drawn_links
from regard.alignment.links import Symmetrisation
from regard.alignment.statistical.learn import TwoWayAligner, learn_both
from regard.alignment.statistical.pairs import WordPair
from regard.progress import Progress, unshown
from regard.text.words import Cut, cut_words
from regard.translate.translator import Translator

Pairs = Iterable[tuple[str, str]]


def align(
    pairs: Pairs,
    model: str | Path | Translator | None = None,
    *,
    back: str | Path | Translator | None = None,
    how: Symmetrisation | None = None,
    cut: Cut = "spaces",
    more: Pairs = (),
    on_progress: Progress = unshown,
) -> Iterator[Alignment]:
    """Yield the alignment of each pair: a source and its translation.

    `model` aligns by its attention, with `back`, which translates the other way, by what both agree on.
    Without a model a statistical aligner learns from the pairs, which are then read twice, and from `more`.
    `how` is the rule by which two directions become one; None: two words are linked to which both give enough
    weight. `cut` says which words links count.
    """
    if model is not None:
        backward = None if back is None else _translator(back)
        return align_pairs(pairs, _translator(model), backward, how, cut)
    aligner = learn_words(chain(pairs, more), cut, on_progress)
    return align_by_words(aligner, pairs, how, cut)


def learn_words(pairs: Pairs, cut: Cut = "spaces", on_progress: Progress = unshown) -> TwoWayAligner:
    """Return a statistical aligner that has learnt from these pairs of texts."""
    return learn_both((_words(pair, cut) for pair in pairs), on_progress=on_progress)


def align_by_words(
    aligner: TwoWayAligner, pairs: Pairs, how: Symmetrisation | None = None, cut: Cut = "spaces"
) -> Iterator[Alignment]:
    """Yield the alignment of each pair of texts by a statistical aligner; `pairs` are read twice."""
    links = aligner.align_many((_words(pair, cut) for pair in pairs), how)
    for (source, target), found in zip(pairs, links, strict=True):
        yield drawn_links(source, target, found, cut)


def _translator(model: str | Path | Translator) -> Translator:
    return model if isinstance(model, Translator) else Translator.open(model)


def _words(pair: tuple[str, str], cut: Cut) -> WordPair:
    source, target = ([text[start:end] for start, end in cut_words(text, cut)] for text in pair)
    return source, target
