"""From what a search found to a translation: decoded, edited, judged, and joined with its neighbours."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from regard.contract import Floats, Source
from regard.loaded import Loaded
from regard.search.searcher import Query, Search
from regard.search.task import Found, Hypothesis
from regard.search.terms import Terms
from regard.terms.glossary import Match
from regard.text.normalize import Normalized
from regard.text.protect import items, missing, written
from regard.text.tokenizer import TokenizerPair
from regard.text.words import Span, match_pieces, words
from regard.translate.edits import Edits, edited
from regard.translate.guard import Said, Verdict, hardly_seen, judge, judge_alone
from regard.translate.mend import Mended, mend
from regard.translate.result import Alternative, Part, Searched, TermUse, Translation
from regard.translate.retry import Attempt, Copied, put_back
from regard.translate.terms import num_missed, uses, without_terms
from regard.vocabulary import EOS, NUM_RESERVED, UNK

_MOST_UNKNOWN = 0.3  # share of pieces that are single bytes in a text the model was not made for


@dataclass(frozen=True, slots=True)
class Given:
    """A translation that is taken as it is, and its ids; none if the model cannot say it to its end."""

    target: Normalized
    ids: NDArray[np.int64] | None
    notes: tuple[str, ...] = ("memory",)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Source text that is searched in one go, its ids, and the ids its translation begins with, if any.

    The text of features is the names of their positions, and in the place of ids stand their vectors.
    """

    source: Normalized
    ids: Source
    prefix: NDArray[np.int64] | None = None
    matches: tuple[Match, ...] = ()
    """The terms of a glossary in the source."""
    terms: Terms | None = None
    given: Given | None = None
    """Its translation, if a translation memory has it."""

    @property
    def query(self) -> Query:
        """What a searcher is asked."""
        return Query(self.ids, self.prefix, self.terms)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A stretch or a whole segment, translated in one way."""

    text: str
    parts: tuple[Part, ...]
    score: float
    log_prob: float
    alternatives: tuple[Alternative, ...] = ()
    wrong: tuple[str, ...] = ()  # what looks wrong with it
    is_grave: bool = False  # whether a second try is worth its time
    notes: tuple[str, ...] = ()  # how it came about
    is_near: bool = False  # whether rounding in another batch could change flags or edits
    terms: tuple[TermUse, ...] = ()

    @property
    def rank(self) -> tuple[bool, int, int, float]:
        """The higher the better: nothing lost, fewer terms missed, fewer things wrong, then the score."""
        return "lost" not in self.wrong, -num_missed(self.terms), -len(self.wrong), self.score


def read_pieces(tokenizers: TokenizerPair, source: Normalized, ids: Source) -> list[tuple[str, int, Span]]:
    """Return the pieces that the encoder reads, `</s>` last, with their ids and spans in the original.

    Of features these are the positions, by name, without an end.
    """
    if ids.ndim == 2:
        ends = np.cumsum([len(name) + 1 for name in source.original.split(" ")]).tolist()
        starts = [0, *ends[:-1]]
        spans = [(start, end - 1) for start, end in zip(starts, ends, strict=True)]
        return [(source.original[slice(*span)], UNK, span) for span in spans]
    read = ids.tolist()
    spans = list(map(source.to_original, tokenizers.source.spans(read, source.text)))
    end = spans[-1][1] if spans else 0
    pieces = tokenizers.source.pieces
    return [(pieces[id], id, span) for id, span in zip((*read, EOS), (*spans, (end, end)), strict=True)]


def describe(
    model: Loaded, source: Normalized, ids: Source, said: Hypothesis, way: Attempt | None = None
) -> tuple[str, Part] | None:
    """Return the text of what was said, edited as the attempt asks, and where each of its pieces came from.

    None if the attempt's edits are not possible.
    """
    raw, spans = model.tokenizers.target.decode_spans(said.ids)
    edits = [] if way is None else way.edits(raw)
    if edits is None:
        return None
    read = read_pieces(model.tokenizers, source, ids)
    attention_TS = model.reading.align(said.attention_TS)
    if UNK in said.ids and model.feature_size is None:
        source_spans = [span for *_, span in read[:-1]]
        edits = [*edits, *_known(source, source_spans, said.ids, spans, attention_TS)]
    text = raw
    if edits:
        text, spans = edited(raw, edits, spans)
    if said.complete:
        spans.append((len(text), len(text)))
    pieces = model.tokenizers.target.pieces
    return text, Part(
        tuple(piece for piece, *_ in read),
        tuple(span for *_, span in read),
        tuple(pieces[id] for id in ((*said.ids, EOS) if said.complete else said.ids)),
        tuple(spans),
        said.log_probs,
        attention_TS,
        said.complete,
        (0, len(text)),
    )


def outcome_of(
    model: Loaded, stretch: Stretch, way: Attempt, found: Found, search: Search, *, num_best: int, mends: bool
) -> Outcome | None:
    """Return the outcome of a search, None if the attempt's edits are not possible.

    `mends` tells whether names, numbers and quotation marks are put right.
    """
    best, source, ids = found.hypotheses[0], stretch.source, stretch.ids
    described = describe(model, source, ids, best, way)
    if described is None:
        return None
    mended = Mended(*described)
    if mends and not way.capitals:
        mended = mend(model, source, *described, way.judged)
    used = uses(model, stretch.matches, source, mended.text)
    if used and mended.text != described[0]:
        before = uses(model, stretch.matches, source, described[0])
        if num_missed(before) < num_missed(used):  # a term is no invented name
            mended, used = Mended(*described), before
    text, part = mended.text, mended.part
    judged = way.judged or without_terms(written(source), stretch.matches)
    verdict = verdict_on(model, judged, ids, best.ids, text, part)
    notes = [] if way.flag is None else [way.flag]
    notes += mended.notes
    if UNK in best.ids:
        notes.append("unknown")
    if is_foreign(model, source.text, ids):
        notes.append("foreign")
    others: dict[str, Alternative] = {}
    for other in found.hypotheses[1:num_best]:
        if described := describe(model, source, ids, other, way):
            is_mended = mends and not way.capitals
            one = mend(model, source, *described, way.judged).text if is_mended else described[0]
            if one != text:
                others.setdefault(one, Alternative(one, other.score, other.log_prob))
    return Outcome(
        text,
        (replace(part, searched=Searched(source, ids, best.ids, search, stretch.prefix)),),
        best.score,
        best.log_prob,
        tuple(others.values()),
        verdict.flags,
        verdict.grave,
        tuple(notes),
        # Where an item or an unknown word is put is read from the attention, which has a batch's rounding.
        verdict.near or mended.is_near or "lost" in verdict.flags or UNK in best.ids,
        used,
    )


def outcome_given(model: Loaded, stretch: Stretch, said: Hypothesis | None) -> Outcome:
    """Return the outcome of a stretch whose translation is given; the model only says where it came from."""
    assert stretch.given is not None
    target, source = stretch.given.target, stretch.source
    text = target.original
    whole, start = (0, len(text)), source.origin[0][0]
    described = None if said is None else describe(model, source, stretch.ids, said)
    if said is None or described is None:
        span = (start, source.origin[-1][1])
        one_by_one = np.ones((1, 1), np.float32)
        part = Part((source.text,), (span,), (text,), (whole,), (0.0,), one_by_one, True, whole)
        score = log_prob = 0.0
    else:
        part, score, log_prob = described[1], said.score, said.log_prob
        part = replace(part, spans=tuple(map(target.to_original, part.spans)), span=whole)
    used = uses(model, stretch.matches, source, text)
    return Outcome(text, (part,), score, log_prob, notes=stretch.given.notes, terms=used)


def verdict_on(
    model: Loaded, source: str, ids: Source, said: Sequence[int], text: str, part: Part
) -> Verdict:
    """Return what looks wrong with a text that was said to a source, given as text and as read."""
    if not model.translates:
        return judge_alone(text, said, part.complete)
    information_S = model.tokenizers.source.information_V[ids]
    return judge(Said(source, text, ids.tolist(), information_S, said, part.attention_TS, part.complete))


def is_foreign(model: Loaded, source: str, ids: Source) -> bool:
    """Tell whether many pieces of a source are single bytes or unknown, items such as numbers aside."""
    if ids.ndim == 2:
        return False
    unknown = (ids >= UNK) & (ids < NUM_RESERVED)
    if np.count_nonzero(unknown) <= max(_MOST_UNKNOWN * len(ids), 3):
        return False
    kept = {place for item in items(source) for place in range(*item.span)}
    spans = model.tokenizers.source.spans(ids.tolist(), source)
    plain = np.array([not kept.issuperset(range(*span)) or span[0] == span[1] for span in spans])
    return bool(np.count_nonzero(unknown & plain) > max(_MOST_UNKNOWN * np.count_nonzero(plain), 3))


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


def with_items_back(source: Normalized, outcome: Outcome) -> Outcome:
    """Return an outcome with the items it has lost put where they belong, if its attention tells where."""
    (part,) = outcome.parts
    edits = put_back(source, outcome.text, part)
    if edits is None:
        return outcome
    text, spans = edited(outcome.text, edits, part.spans)
    if missing(written(source), text):
        return outcome
    return replace(
        outcome,
        text=text,
        parts=(replace(part, spans=tuple(spans), span=(0, len(text))),),
        alternatives=tuple(one for one in outcome.alternatives if not missing(written(source), one.text)),
        wrong=(),
        is_grave=False,
        notes=(*outcome.notes, "kept"),
    )


def side_by_side(way: Attempt, found: Sequence[Outcome | None]) -> Outcome | None:
    """Return the outcomes of an attempt's stretches as one, with the spaces that stand between these."""
    known = [one for one in found if one is not None]
    if len(known) < len(found) or not known:
        return None
    if len(known) == 1:
        return known[0]
    # What stood without a space in the source must not grow together with an item: 1990 and 5.
    joints = [
        " " if not joint and missing(_copied_text(pair), before.text + after.text) else joint
        for joint, pair, (before, after) in zip(
            way.joints, pairwise(way.stretches), pairwise(known), strict=True
        )
    ]
    return _put_together(known, joints)


def _copied_text(stretches: Iterable[Normalized | Copied]) -> str:
    return " ".join(stretch.source.text for stretch in stretches if isinstance(stretch, Copied))


def _put_together(outcomes: Sequence[Outcome], joints: Sequence[str]) -> Outcome:
    """Return the outcomes one after the other, with something between each two."""
    text, parts = "", []
    for outcome, joint in zip(outcomes, ["", *joints], strict=True):
        text += joint if text else ""
        parts += [part.moved(len(text)) for part in outcome.parts]
        text += outcome.text
    return Outcome(
        text,
        tuple(parts),
        sum(outcome.score for outcome in outcomes) / len(outcomes),
        sum(outcome.log_prob for outcome in outcomes),
        (),
        tuple(dict.fromkeys(flag for outcome in outcomes for flag in outcome.wrong)),
        any(outcome.is_grave for outcome in outcomes),
        tuple(dict.fromkeys(note for outcome in outcomes for note in outcome.notes)),
        terms=tuple(one for outcome in outcomes for one in outcome.terms),
    )


def _alternatives(
    whole: Outcome, segments: Sequence[Outcome], joints: Sequence[str], num_best: int
) -> tuple[Alternative, ...]:
    """Return the best texts in which one segment has an alternative translation."""
    found: dict[str, Alternative] = {}
    for place, segment in enumerate(segments):
        for other in segment.alternatives:
            texts = [one.text if n != place else other.text for n, one in enumerate(segments)]
            text = "".join(chain.from_iterable(zip(texts, [*joints, ""], strict=True)))
            score = whole.score + (other.score - segment.score) / len(segments)
            log_prob = whole.log_prob + other.log_prob - segment.log_prob
            found.setdefault(text, Alternative(text, score, log_prob))
    ranked = sorted(found.values(), key=lambda one: -one.score)
    return tuple(one for one in ranked if one.text != whole.text)[: num_best - 1]


def copied(item: Copied) -> Outcome:
    """Return something that is its own translation, with the backticks it was written with."""
    source, text = item.source, written(item.source)
    span = (source.origin[0][0], source.origin[-1][1])
    whole = (0, len(text))
    one_by_one = np.ones((1, 1), np.float32)
    part = Part((source.text,), (span,), (text,), (whole,), (0.0,), one_by_one, True, whole)
    return Outcome(text, (part,), 0.0, 0.0)


def translation_of(
    text: str, segments: Sequence[Outcome], joints: Sequence[str], num_best: int = 1, is_split: bool = False
) -> Translation:
    """Return the translation of a text from those of its segments; that of a blank text is blank."""
    if not segments:
        return Translation(text, "", 0.0, 0.0, ())
    whole = segments[0]
    if len(segments) > 1:
        whole = _put_together(segments, joints)
        whole = replace(whole, alternatives=_alternatives(whole, segments, joints, num_best))
    if is_split:
        whole = replace(whole, notes=("split", *whole.notes))
    flags = dict.fromkeys((*whole.wrong, *whole.notes))
    uncovered = _uncovered(text, whole.parts) if "uncovered" in flags else ()
    if not uncovered:  # nothing but signs and parts of words
        flags.pop("uncovered", None)
    if num_missed(whole.terms):
        flags["terms"] = None
    return Translation(
        text,
        whole.text,
        whole.score,
        whole.log_prob,
        whole.parts,
        whole.alternatives,
        tuple(flags),
        uncovered,
        whole.terms,
    )


def _uncovered(text: str, parts: Sequence[Part]) -> tuple[Span, ...]:
    """Return the source words of which every piece was hardly looked at; signs are no words here."""
    found = []
    source_words = words(text)
    for part in parts:
        unseen = set(hardly_seen(part.attention_TS))
        touched = match_pieces(part.source_spans, source_words).pieces_of_word
        found += [
            word
            for word, pieces in zip(source_words, touched, strict=True)
            if pieces and unseen.issuperset(pieces) and any(map(str.isalnum, text[slice(*word)]))
        ]
    return tuple(found)
