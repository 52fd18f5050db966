"""Plain results of translating: the text, and with it where each word came from and how sure the model is."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import resources
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.alignment.links import Link, hard_links, to_words
from regard.contract import Source
from regard.draw.heatmap import HeatMap, heat_maps_svg
from regard.draw.labels import printable
from regard.draw.notebook import mime_bundle
from regard.draw.terminal import USUAL_WIDTH, heat_map_lines
from regard.search.searcher import Search
from regard.text.normalize import Normalized
from regard.text.words import PieceWords, Span, match_pieces, words

Floats = NDArray[np.float32]


_MAX_CELLS = 10_000  # of the attention by words, which grows with the square of the text
_QUALITY = (0.19, 0.83, 0.23)  # by benchmarks/quality_estimate.py
FORMAT = "regard-translation/1"
"""The schema of `Translation.to_json()`; `schema()` returns it."""


@dataclass(frozen=True, slots=True, eq=False)
class Searched:
    """How a part was found: what the model read, how it was searched, and what it said before any edit."""

    source: Normalized
    source_ids: Source
    ids: tuple[int, ...]
    search: Search
    prefix: NDArray[np.int64] | None


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What was translated in one go: a whole text, or a stretch of one that was split.

    `source_pieces` end in `</s>`, and so do `pieces` unless a limit has cut the translation and it is not
    `complete`. Spans lie in the strings of the whole `Translation`; that of `</s>` is empty. `log_probs` has
    one entry and `attention_TS` one row for each of the `pieces`, with a column for each of the
    `source_pieces`, or none at all if the model has no attention. `span` is where the part's text lies in the
    translation. `searched` is None for what was copied from the source, or given.
    """

    source_pieces: tuple[str, ...]
    source_spans: tuple[Span, ...]
    pieces: tuple[str, ...]
    spans: tuple[Span, ...]
    log_probs: tuple[float, ...]
    attention_TS: Floats
    complete: bool
    span: Span
    searched: Searched | None = None

    @property
    def source_span(self) -> Span:
        """Where what was read lies in the source."""
        return self.source_spans[0][0], self.source_spans[-1][1]

    def moved(self, offset: int) -> "Part":
        """Return the same part so many characters further on in the translation."""
        spans = tuple((start + offset, end + offset) for start, end in self.spans)
        return replace(self, spans=spans, span=(self.span[0] + offset, self.span[1] + offset))


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another translation of the same text."""

    text: str
    score: float
    log_prob: float


Status = Literal["used", "unused", "impossible", "avoided", "forbidden"]


@dataclass(frozen=True, slots=True)
class TermUse:
    """What became of a term of the glossary.

    It is `used` or `unused`, or `impossible` if the model cannot say it. A forbidden translation is
    `avoided`, or `forbidden` if it is there. The span is that of the source term in the source.
    """

    source: str
    target: str
    span: Span
    status: Status


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """A unit of the translation memory for a part of the source, and how similar it is.

    With a score of 1 its target was taken as it is; otherwise it is for the reader to compare. The span is
    that of the part in the source.
    """

    source: str
    target: str
    score: float
    span: Span


@dataclass(frozen=True, eq=False)
class Translation:
    """A translated text.

    `score` is the log-probability over the length penalty, by which translations of one text are compared.
    `flags` says what the reader should know, each a name in `docs/translating.md`: that something was left
    out, that it loops, that the text was split. A blank source has no parts.
    """

    source: str
    text: str
    score: float
    log_prob: float
    parts: tuple[Part, ...]
    alternatives: tuple[Alternative, ...] = ()
    flags: tuple[str, ...] = ()
    uncovered: tuple[Span, ...] = field(default=())
    """Source words that the translation does not seem to hold, as characters of the source."""
    terms: tuple[TermUse, ...] = ()
    """What became of each term of the glossary."""
    marked: str | None = None
    """The translation with its tags, where mark-up was asked for; `source` and `text` have none."""
    memory: tuple[MemoryUse, ...] = ()
    """The same or similar sources in the translation memory."""

    @property
    def complete(self) -> bool:
        """Whether the model came to an end by itself."""
        return all(part.complete for part in self.parts)

    @property
    def source_pieces(self) -> tuple[str, ...]:
        """The source in pieces."""
        return tuple(piece for part in self.parts for piece in part.source_pieces)

    @property
    def pieces(self) -> tuple[str, ...]:
        """The translation in pieces."""
        return tuple(piece for part in self.parts for piece in part.pieces)

    @property
    def probs(self) -> tuple[float, ...]:
        """How likely the model found each piece."""
        return tuple(math.exp(log_prob) for part in self.parts for log_prob in part.log_probs)

    @cached_property
    def attention_TS(self) -> Floats:
        """Where each piece came from: a row for each of the `pieces`, a column for each `source_pieces`."""
        if len(self.parts) == 1:
            return self.parts[0].attention_TS
        return _diagonal([part.attention_TS for part in self.parts])

    @cached_property
    def source_words(self) -> tuple[Span, ...]:
        """The words of the source, as characters of it."""
        return tuple(words(self.source))

    @cached_property
    def words(self) -> tuple[Span, ...]:
        """The words of the translation, as characters of it."""
        return tuple(words(self.text))

    @cached_property
    def confidence(self) -> tuple[float, ...]:
        """How likely the model found each word: the product of the probabilities of its pieces."""
        log_probs = [log_prob for part in self.parts for log_prob in part.log_probs]
        touched = match_pieces([span for part in self.parts for span in part.spans], self.words)
        return tuple(math.exp(sum(log_probs[piece] for piece in word)) for word in touched.pieces_of_word)

    @cached_property
    def quality(self) -> float:
        """How good the translation probably is, from 0 to 1: the chrF to expect of it.

        A line through the mean confidence of its words and the mean log-probability of its pieces, fitted to
        the bundled model `fr-en` on everyday sentences and speeches; see docs/translating.md.
        """
        log_probs = [log_prob for part in self.parts for log_prob in part.log_probs]
        if not log_probs:
            return 1.0
        if not self.confidence:
            return 0.0
        sure, log_prob = sum(self.confidence) / len(self.confidence), sum(log_probs) / len(log_probs)
        bias, per_sure, per_log_prob = _QUALITY
        return min(1.0, max(0.0, bias + per_sure * sure + per_log_prob * log_prob))

    @cached_property
    def surprise(self) -> tuple[float, ...]:
        """How much each word surprised the model, in bits: the logarithm of one in so many."""
        return tuple(-math.log2(max(prob, 1e-300)) for prob in self.confidence)

    @cached_property
    def word_attention_TS(self) -> Floats:
        """Where each word came from: a row for each of the `words`, a column for each of `source_words`."""
        weights_TS = np.zeros((len(self.words), len(self.source_words)), np.float32)
        for _, rows, columns, part_TS in self.blocks:
            weights_TS[rows, columns] += part_TS
        return weights_TS

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Which words are linked, as (source word, target word), both counted from 0."""
        return tuple(sorted({link for links, *_ in self.blocks for link in links}))

    @cached_property
    def blocks(self) -> list[tuple[list[Link], slice, slice, Floats]]:
        """The links and weights of each part, and which words they are of; a long text has only blocks."""
        found = []
        for part in self.parts:
            if not part.attention_TS.shape[1]:
                continue
            source = match_pieces(part.source_spans, self.source_words)
            target = match_pieces(part.spans, self.words)
            columns, rows = _used(source), _used(target)
            weights = to_words(part.attention_TS, _within(source, columns), _within(target, rows))
            links = [(link[0] + columns.start, link[1] + rows.start) for link in hard_links(weights)]
            found.append((links, rows, columns, weights.words_TS))
        return found

    @property
    def heat_map(self) -> HeatMap:
        """The picture of where each word came from."""
        looks = any(part.attention_TS.shape[1] for part in self.parts)
        return HeatMap(
            "",
            tuple(self.text[start:end] for start, end in self.words),
            tuple(self.source[start:end] for start, end in self.source_words) if looks else (),
            self.word_attention_TS.astype(float)[:, : len(self.source_words) if looks else 0],
            self.confidence,
            caption=f"flags: {', '.join(self.flags)}" if self.flags else "",
        )

    def __str__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Be shown in a notebook: the text and where each of its words came from."""
        if not self.words:
            return {"text/plain": self.text}
        plain = [printable(f"{self.source} → {self.text}"), *heat_map_lines(self.heat_map, USUAL_WIDTH)]
        return mime_bundle("\n".join(plain), heat_maps_svg([self.heat_map]))

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON values, as `schema()` describes them."""
        return {
            "format": FORMAT,
            "source": self.source,
            "text": self.text,
            **({} if self.marked is None else {"marked": self.marked}),
            "score": self.score,
            "log_prob": self.log_prob,
            "quality": _short(self.quality),
            "flags": list(self.flags),
            "uncovered": [list(span) for span in self.uncovered],
            "terms": [
                {"source": one.source, "target": one.target, "span": list(one.span), "status": one.status}
                for one in self.terms
            ],
            **({"memory": [_memory_json(one) for one in self.memory]} if self.memory else {}),
            "source_words": [list(span) for span in self.source_words],
            "words": [list(span) for span in self.words],
            "confidence": [_short(prob) for prob in self.confidence],
            "links": [list(link) for link in self.links],
            "word_attention": [_shorts(row) for row in self.word_attention_TS]
            if len(self.words) * len(self.source_words) <= _MAX_CELLS
            else None,
            "parts": [
                {
                    "source_pieces": list(part.source_pieces),
                    "source_spans": [list(span) for span in part.source_spans],
                    "pieces": list(part.pieces),
                    "spans": [list(span) for span in part.spans],
                    "log_probs": _shorts(part.log_probs),
                    "attention": [_shorts(row) for row in part.attention_TS],
                    "complete": part.complete,
                }
                for part in self.parts
            ],
            "alternatives": [
                {"text": one.text, "score": one.score, "log_prob": one.log_prob} for one in self.alternatives
            ],
        }


def schema() -> dict[str, Any]:
    """Return the JSON Schema of `Translation.to_json()`."""
    text = (resources.files("regard.translate") / "schema.json").read_text("utf-8")
    described: dict[str, Any] = json.loads(text)
    return described


def _memory_json(one: MemoryUse) -> dict[str, Any]:
    return {
        "source": one.source,
        "target": one.target,
        "score": _short(one.score),
        "span": list(one.span),
    }


def _used(touched: PieceWords) -> slice:
    """Return the words that any piece touches, from the first to the last."""
    used = [word for piece in touched.words_of_piece for word in piece]
    return slice(min(used), max(used) + 1) if used else slice(0, 0)


def _within(touched: PieceWords, wanted: slice) -> PieceWords:
    """Return the same for a range of words alone, counted from its first."""
    return PieceWords(
        tuple(tuple(word - wanted.start for word in piece) for piece in touched.words_of_piece),
        touched.pieces_of_word[wanted],
    )


def _diagonal(blocks: Sequence[Floats]) -> Floats:
    """Return one matrix with the blocks along its diagonal."""
    whole = np.zeros((sum(map(len, blocks)), sum(block.shape[1] for block in blocks)), np.float32)
    row = column = 0
    for block in blocks:
        whole[row : row + len(block), column : column + block.shape[1]] = block
        row, column = row + len(block), column + block.shape[1]
    return whole


def _short(number: float) -> float:
    """Return a number with as many digits as a reader can use."""
    return float(f"{number:.4g}")


def _shorts(numbers: Sequence[float] | Floats) -> list[float]:
    return [_short(float(number)) for number in numbers]
