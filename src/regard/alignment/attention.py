"""Aligned words of given translations: by the attention of one model, or of two that read both ways."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from regard.alignment.links import Link, Symmetrisation, agreed_links, hard_links, symmetrise, to_words
from regard.contract import Floats
from regard.draw.heatmap import HeatMap, heat_maps_svg
from regard.draw.labels import printable
from regard.draw.notebook import mime_bundle
from regard.draw.terminal import USUAL_WIDTH, heat_map_lines
from regard.errors import ConfigError
from regard.text.normalize import normalize, trace_normalize
from regard.text.words import Cut, Span, cut_words, match_pieces
from regard.translate.translator import Translator

CHUNK = 500  # pairs that are read together; shards are a multiple of it, so that their links are the same


@dataclass(frozen=True, eq=False)
class Alignment:
    """Two texts and which of their words belong together, words as characters of each text.

    `weights_TS` says how much of each target word came from each source word: by the model, by the geometric
    mean of two, or, where links are all that is known, 1 for each link.
    """

    source: str
    target: str
    source_words: tuple[Span, ...]
    target_words: tuple[Span, ...]
    links: frozenset[Link]
    weights_TS: Floats

    @property
    def heat_map(self) -> HeatMap:
        """The picture of it."""
        return HeatMap(
            "",
            tuple(self.target[start:end] for start, end in self.target_words),
            tuple(self.source[start:end] for start, end in self.source_words),
            self.weights_TS.astype(float),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the texts, where their words stand, and the links as plain values."""
        return {
            "source": self.source,
            "target": self.target,
            "source_words": [list(span) for span in self.source_words],
            "target_words": [list(span) for span in self.target_words],
            "links": [list(link) for link in sorted(self.links)],
        }

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        lines = [printable(f"{self.source} → {self.target}"), *heat_map_lines(self.heat_map, USUAL_WIDTH)]
        return mime_bundle("\n".join(lines), heat_maps_svg([self.heat_map]))


def align_pairs(
    pairs: Iterable[tuple[str, str]],
    forward: Translator,
    backward: Translator | None = None,
    how: Symmetrisation | None = None,
    cut: Cut = "spaces",
    first_number: int = 1,
) -> Iterator[Alignment]:
    """Yield the alignment of each pair, a source and its translation, however many there are.

    `backward` translates from the target language to the source language; with both, two words are linked
    if both models together give them enough weight, or, with `how`, the two alignments become one by a rule.
    A pair with a blank side has no links. Errors name pairs by their numbers, the first by `first_number`.
    """
    left = iter(pairs)
    while chunk := list(islice(left, CHUNK)):
        there = _forced(forward, chunk, first_number)
        turned = [(target, source) for source, target in chunk]
        back = None if backward is None else _forced(backward, turned, first_number)
        first_number += len(chunk)
        for number, (source, target) in enumerate(chunk):
            spans = cut_words(source, cut), cut_words(target, cut)
            links, weights_TS = _links(there[number], *spans)
            if back is not None:
                flipped, weights_ST = _links(back[number], *spans[::-1])
                if how is not None:
                    links = symmetrise(links, {(b, a) for a, b in flipped}, how)
                    yield drawn_links(source, target, links, cut)
                    continue
                links = agreed_links(weights_TS, weights_ST.T)
                weights_TS = np.sqrt(weights_TS * weights_ST.T)
            yield Alignment(source, target, *spans, frozenset(links), weights_TS)


def drawn_links(source: str, target: str, links: frozenset[Link], cut: Cut = "spaces") -> Alignment:
    """Return links that are given as an alignment, to be drawn."""
    source_words, target_words = cut_words(source, cut), cut_words(target, cut)
    weights_TS = np.zeros((len(target_words), len(source_words)), np.float32)
    for a, b in links:
        weights_TS[b, a] = 1
    return Alignment(source, target, source_words, target_words, links, weights_TS)


@dataclass(frozen=True, slots=True)
class _Forced:
    """A pair as a model sees it: where each piece of the target came from, pieces as characters."""

    source_spans: Sequence[Span]
    target_spans: Sequence[Span]
    attention_TS: Floats


def _forced(
    translator: Translator, pairs: Sequence[tuple[str, str]], first_number: int
) -> list[_Forced | None]:
    """Return the pairs as the model sees them, None for one with a blank side."""
    whole = {number: pair for number, pair in enumerate(pairs, first_number) if all(map(normalize, pair))}
    sources, targets = [source for source, _ in whole.values()], [target for _, target in whole.values()]
    said = iter(translator.force(sources, targets, numbers=list(whole)))
    tokenizer = translator.model.tokenizers.target
    found: list[_Forced | None] = []
    for number, (_, target) in enumerate(pairs, first_number):
        if number not in whole:
            found.append(None)
            continue
        (part,) = next(said).parts
        if not part.attention_TS.shape[1]:
            raise ConfigError(
                "this model has no attention; use another model, or no model for the statistical aligner"
            )
        # In the text that was given: what a translation says for an unknown word is another one.
        clean = trace_normalize(target)
        spans = tokenizer.spans(tokenizer.encode_batch([clean.text])[0].tolist(), clean.text)
        found.append(_Forced(part.source_spans, list(map(clean.to_original, spans)), part.attention_TS))
    return found


def _links(
    forced: _Forced | None, source_words: Sequence[Span], target_words: Sequence[Span]
) -> tuple[frozenset[Link], Floats]:
    """Return the links of a pair and their weights."""
    if forced is None:
        return frozenset(), np.zeros((len(target_words), len(source_words)), np.float32)
    said_TS = forced.attention_TS[: len(forced.target_spans)]  # without `</s>`
    source = match_pieces(forced.source_spans, source_words)
    weights = to_words(said_TS, source, match_pieces(forced.target_spans, target_words))
    return frozenset(hard_links(weights)), weights.words_TS
