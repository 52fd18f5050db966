"""A model with its tokenizers: from a clean source to what it says, piece by piece, and where it looked."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.alignment.reading import Reading
from regard.contract import Engine, Floats, Ragged, make_batch
from regard.options.search import BeamOptions, RiskOptions, SampleOptions
from regard.search.beam import beam
from regard.search.risk import by_risk
from regard.search.scores import target_log_probs
from regard.search.task import LENGTH_PENALTY, Found, Hypothesis, Task, length_factor
from regard.search.tree import Tree
from regard.search.walk import greedy, sample
from regard.text.normalize import Normalized
from regard.text.protect import items
from regard.text.segment import Ids
from regard.text.tokenizer import TokenizerPair
from regard.text.words import Span, match_pieces, words
from regard.translate.result import Part
from regard.vocabulary import EOS, NUM_RESERVED, UNK

Search = BeamOptions | SampleOptions | RiskOptions

Edits = list[tuple[Span, str]]
"""What is to stand in the place of some characters of a text."""

_MOST_UNKNOWN = 0.3  # share of pieces that are single bytes in a text the model was not made for
_FREE_TOKENS = 20  # a translation may have so many more than its source allows it


@dataclass(frozen=True, slots=True)
class Decoder:
    """An engine, its tokenizers, and which of its attention to read."""

    engine: Engine[Any]
    tokenizers: TokenizerPair
    reading: Reading

    def search(
        self,
        sources: Sequence[Ids],
        options: Search,
        num_best: int = 1,
        prefixes: Sequence[NDArray[np.int64]] | None = None,
        tree: Tree | None = None,
    ) -> list[Found]:
        """Return what is found for each of a few sources, searched side by side; best first.

        What a beam search tries for a single source is added to a tree.
        """
        batch = make_batch(Ragged.of(sources), None, np.arange(len(sources)))
        limit_B = (options.max_ratio * batch.source_real_BS.sum(axis=1)).astype(np.int64) + _FREE_TOKENS
        if prefixes is not None:
            limit_B += [len(prefix) for prefix in prefixes]
        task = Task(batch, limit_B, self.reading.look, prefixes, options.no_repeat_ngram, tree)
        if isinstance(options, BeamOptions):
            if options.beam_size == 1 and not options.coverage_penalty:
                return greedy(self.engine, task, options.length_penalty)
            return beam(self.engine, task, options, num_best)
        keys = [_key(options.seed, source) for source in sources]
        num_samples = options.num_samples if isinstance(options, RiskOptions) else num_best
        drawn = sample(self.engine, task, options, keys, num_samples)
        return [self._ranked(one, options) for one in drawn]

    def _ranked(self, drawn: Found, options: SampleOptions | RiskOptions) -> Found:
        """Return samples best first: by their risk, if that is what was asked for, or by their score."""
        if isinstance(options, RiskOptions):
            texts = [self.tokenizers.target.decode(one.ids) for one in drawn.hypotheses]
            return Found(tuple(drawn.hypotheses[n] for n in by_risk(texts)), drawn.margin)
        ranked = sorted(drawn.hypotheses, key=lambda one: -one.score)
        gaps = [before.score - after.score for before, after in pairwise(ranked) if before.ids != after.ids]
        return Found(tuple(ranked), min([drawn.margin, *gaps]))

    def force(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[Hypothesis]:
        """Return given translations as if the model had said them, of a few pairs side by side."""
        batch = make_batch(Ragged.of(sources), Ragged.of(targets), np.arange(len(sources)))
        forced = self.engine.force(batch)
        assert batch.target_out_BT is not None
        log_prob_BT = target_log_probs(forced.logits_BTV, batch.target_out_BT)
        found = []
        for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
            log_probs = log_prob_BT[row, : len(target) + 1].tolist()
            total = math.fsum(log_probs)
            score = total / length_factor(len(log_probs), LENGTH_PENALTY)
            looks_TS = self.reading.look(forced.attention_BTLNS[row, : len(target) + 1])[:, : len(source) + 1]
            found.append(Hypothesis(tuple(target.tolist()), total, score, tuple(log_probs), looks_TS, True))
        return found

    def describe(
        self, source: Normalized, ids: Ids, said: Hypothesis, edits: Edits, offset: int = 0
    ) -> tuple[str, Part]:
        """Return the text of what was said, mended by the edits, and where each of its pieces came from.

        The spans of the pieces are those in a text in which this one stands at `offset`.
        """
        source_pieces, pieces = self.tokenizers.source.pieces, self.tokenizers.target.pieces
        read = ids.tolist()
        source_spans = list(map(source.to_original, self.tokenizers.source.spans(read, source.text)))
        end = source_spans[-1][1] if source_spans else 0
        raw, spans = self.tokenizers.target.decode_spans(said.ids)
        attention_TS = self.reading.align(said.attention_TS)
        if UNK in said.ids:
            edits = [*edits, *_known(source, source_spans, said.ids, spans, attention_TS)]
        text = raw
        if edits:
            text, spans = mended(raw, edits, spans)
        if said.complete:
            spans.append((len(text), len(text)))
        part = Part(
            tuple(source_pieces[id] for id in (*read, EOS)),
            (*source_spans, (end, end)),
            tuple(pieces[id] for id in ((*said.ids, EOS) if said.complete else said.ids)),
            tuple((first + offset, last + offset) for first, last in spans) if offset else tuple(spans),
            said.log_probs,
            attention_TS,
            said.complete,
        )
        return text, part

    def is_foreign(self, source: str, ids: Ids) -> bool:
        """Tell whether many pieces of a source are single bytes, or unknown; those of items aside."""
        unknown = (ids >= UNK) & (ids < NUM_RESERVED)
        if np.count_nonzero(unknown) <= max(_MOST_UNKNOWN * len(ids), 3):
            return False
        kept = {place for item in items(source) for place in range(*item.span)}
        spans = self.tokenizers.source.spans(ids.tolist(), source)
        plain = np.array([not kept.issuperset(range(*span)) or span[0] == span[1] for span in spans])
        return bool(np.count_nonzero(unknown & plain) > max(_MOST_UNKNOWN * np.count_nonzero(plain), 3))


def _key(seed: int, source: Ids) -> int:
    """Return the key to a source's random numbers: the same source draws the same wherever it stands."""
    digest = hashlib.sha256(source.astype("<i8").tobytes() + seed.to_bytes(8, "little")).digest()
    return int.from_bytes(digest[:8], "little")


def _known(
    source: Normalized,
    source_spans: list[Span],
    ids: Sequence[int],
    spans: list[Span],
    attention_TS: Floats,
) -> Edits:
    """Return for each `<unk>` the source word it looked at (Luong, Sutskever et al. 2015)."""
    if not attention_TS.shape[1]:
        return []
    source_words = words(source.original)
    touched = match_pieces(source_spans, source_words).words_of_piece
    edits: Edits = []
    for place, id in enumerate(ids):
        if id == UNK and (seen := touched[int(attention_TS[place, :-1].argmax())]):
            start, end = source_words[seen[0]]
            # `<unk>` has swallowed the space before its word.
            first = spans[place][0]
            if first > 0 and source.original[start - 1 : start].isspace():
                edits.append(((first, first), " "))
            edits.append((spans[place], source.original[start:end]))
    return edits


def mended(text: str, edits: Edits, spans: Sequence[Span]) -> tuple[str, list[Span]]:
    """Return the text after the edits, and where what stood in each span stands now."""
    pieces: list[str] = []
    places: list[Span] = []  # where each character of the old text is in the new one
    size = place = 0
    for (start, end), new in sorted(edits):
        places += [(size + k, size + k + 1) for k in range(start - place)]
        size += start - place
        pieces += [text[place:start], new]
        places += [(size, size + len(new))] * (end - start)
        size, place = size + len(new), end
    places += [(size + k, size + k + 1) for k in range(len(text) - place)]
    pieces.append(text[place:])
    mended = "".join(pieces)
    places.append((len(mended), len(mended)))
    return mended, [
        (places[start][0], places[end - 1][1]) if start < end else (places[start][0],) * 2
        for start, end in spans
    ]
