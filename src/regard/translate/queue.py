"""Stretches of source waiting to be searched, in batches of like lengths, and what becomes of them.

A second try is a new entry in the queue, so nothing waits for a whole round to end. The queue has no threads
and does no searching: `take` gives the next batch, `give` brings back what was found for it.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from regard.loaded import Loaded
from regard.options.search import BeamOptions, SampleOptions
from regard.search.searcher import Query, Search, num_rows
from regard.search.task import Found
from regard.text.conventions import CONVENTIONS
from regard.text.markup import Marked
from regard.text.markup import read as read_markup
from regard.text.normalize import Normalized
from regard.text.words import Span
from regard.translate.language import is_other_language
from regard.translate.markup import with_tags
from regard.translate.memory import look_up, with_memory
from regard.translate.outcome import (
    Outcome,
    Stretch,
    copied,
    outcome_given,
    outcome_of,
    side_by_side,
    translation_of,
    with_items_back,
)
from regard.translate.plan import Plan, plan_requests
from regard.translate.request import Request
from regard.translate.result import Translation
from regard.translate.retry import Attempt, Copied, attempts, first_attempt, in_capitals, spelt_out
from regard.translate.terms import matches_in, num_missed, terms_of
from regard.vocabulary import NUM_RESERVED, UNK

# Second tries of a segment may cost as much as the first one, and a short segment this much: without a limit
# a text that makes no sense costs several times as much as one that does.
_RETRY_TOKENS = 120
_MIN_SHARE = 16
"""Fewer entries are not worth a worker of their own: a step takes as long for a few rows as for many."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a searcher does in one go; it can be sent to another process."""

    queries: tuple[Query, ...]
    search: Search
    num_best: int
    given: NDArray[np.int64] | None = None
    """The translation of its only query, if that is known already."""


@dataclass(slots=True, eq=False)
class _Text:
    """A request, and the outcomes of its segments as they come."""

    number: int
    request: Request
    plan: Plan
    outcomes: list[Outcome | None]
    num_left: int
    marked: Marked | None = None
    is_dropped: bool = False


@dataclass(slots=True, eq=False)
class _Segment:
    """A sentence, or as much of one as the model reads in one go, and the attempt that is under way."""

    text: _Text
    place: int  # among the segments of the text
    round: int
    stretch: Stretch
    way: Attempt
    found: list[Outcome | None] = field(default_factory=list)  # of each stretch of the attempt
    num_missing: int = 0
    best: Outcome | None = None
    free: Outcome | None = None
    """The first translation, if it was searched without the terms of the glossary and misses some."""
    budget: int = 0  # source tokens that may still be searched in second tries
    others: Iterator[Attempt] = field(default_factory=lambda: iter(()))  # attempts to come


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """A stretch of an attempt, waiting."""

    segment: _Segment
    place: int  # among the stretches of the attempt
    stretch: Stretch
    search: Search

    @property
    def group(self) -> tuple[int, Search, int]:
        """Entries of one group can be searched together; groups of earlier rounds come first."""
        return self.segment.round, self.search, self.segment.text.request.num_best

    @property
    def is_dropped(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.segment.text.is_dropped


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Entries that are searched together."""

    entries: tuple[_Entry, ...]

    @property
    def is_dropped(self) -> bool:
        """Whether nobody waits for any of them any more."""
        return all(entry.is_dropped for entry in self.entries)

    @property
    def places(self) -> tuple[int, ...]:
        """Which segment of its text each entry is of."""
        return tuple(entry.segment.place for entry in self.entries)

    @property
    def numbers(self) -> set[int]:
        """The numbers of the requests it is for."""
        return {entry.segment.text.number for entry in self.entries}

    @property
    def job(self) -> Job:
        """What a searcher needs to know."""
        first = self.entries[0]
        queries = tuple(entry.stretch.query for entry in self.entries)
        given = first.stretch.given
        num_best = first.segment.text.request.num_best
        return Job(queries, first.search, num_best, None if given is None else given.ids)


class Queue:
    """Requests in, translations out, in whatever order they are done.

    A batch has at most `batch_tokens` source tokens in all rows; a sentence has as many rows as the beam is
    wide.
    """

    def __init__(self, model: Loaded, batch_tokens: int) -> None:
        self.model = model
        self.batch_tokens = batch_tokens
        self._round = 0
        # On their own: those decoded again because of rounding, and those whose translation is given.
        self._alone: deque[_Entry] = deque()
        self._waiting: dict[tuple[int, Search, int], list[_Entry]] = {}
        self._texts: dict[int, _Text] = {}

    @property
    def first_round(self) -> int | None:
        """The earliest round of what waits, None if nothing does."""
        return min(
            (round for round, *_ in chain(self._waiting, (one.group for one in self._alone))), default=None
        )

    @property
    def num_tokens(self) -> int:
        """The source tokens waiting, in all rows."""
        groups = self._waiting.items()
        return sum(num_rows(search, best) * _size(entries) for (_, search, best), entries in groups)

    def put(
        self, requests: Sequence[tuple[int, Request]], turn: Callable[[int], int] | None = None
    ) -> list[tuple[int, Translation]]:
        """Add requests, each with a number of its own; return the translations that need no search.

        What is put in later waits until what came before has been taken. `turn` may choose the round of each
        segment instead, from its number of tokens: entries of earlier rounds come first.
        """
        blank = []
        read = [None if one.markup is None else read_markup(one.text, one.markup) for _, one in requests]
        plain = [
            one if marked is None else replace(one, text=marked.text)
            for (_, one), marked in zip(requests, read, strict=True)
        ]
        plans = plan_requests(self.model, plain)
        for (number, asked), request, marked, planned in zip(requests, plain, read, plans, strict=True):
            plan = look_up(self.model, request, planned)
            stretches = plan.stretches
            if not stretches:
                nothing_said = translation_of(request.text, [], [])
                as_it_was = asked.text if marked is not None else None
                blank.append((number, replace(nothing_said, marked=as_it_was)))
                continue
            if request.prefix is not None:
                stretches[0] = self._beginning(stretches[0], request.prefix)
            nothing: list[Outcome | None] = [None] * len(stretches)
            text = self._texts[number] = _Text(number, request, plan, nothing, len(stretches), marked)
            for place, stretch in enumerate(stretches):
                if stretch.given is not None and stretch.given.ids is None:
                    text.outcomes[place] = outcome_given(
                        self.model, self._with_terms(stretch, request, holds=False), None
                    )
                    text.num_left -= 1
                    continue
                spans = [one.span for one in matches_in(request.glossary, stretch.source)]
                if stretch.given is None and self._tries_again(request):
                    stretch = self._spelt_out(stretch, spans)
                    spans = [one.span for one in matches_in(request.glossary, stretch.source)]
                way = first_attempt(stretch.source, self._tries_again(request), spans)
                round = self._round if turn is None else turn(len(stretch.ids))
                if stretch.given is not None:
                    way = Attempt((stretch.source,))
                self._start(_Segment(text, place, round, stretch, way))
            if not text.num_left:
                blank.append((number, self._finished(text)))
        self._round += 1
        return blank

    def _beginning(self, stretch: Stretch, prefix: str) -> Stretch:
        tokenizers = self.model.tokenizers
        (ids,) = tokenizers.target.encode_batch([tokenizers.clean_target(prefix)])
        return Stretch(stretch.source, stretch.ids, ids.astype(np.int64))

    def _spelt_out(self, stretch: Stretch, terms: Sequence[Span]) -> Stretch:
        """Return the stretch without `&` if the model has no piece for it: it would make something up."""
        tokenizer, language = self.model.tokenizers.source, self.model.source_language
        convention = CONVENTIONS.get(language or "")
        if convention is None or "&" not in stretch.source.text:
            return stretch
        (pieces,) = tokenizer.encode_batch(["&"])
        if not any(UNK <= id < NUM_RESERVED for id in pieces):
            return stretch
        source = spelt_out(stretch.source, convention.ampersand, terms)
        (ids,) = tokenizer.encode_batch([source.text])
        return replace(stretch, source=source, ids=ids)

    def _start(self, segment: _Segment) -> None:
        """Put the stretches of the segment's attempt in line."""
        way, whole = segment.way, segment.stretch
        segment.found = [copied(one) if isinstance(one, Copied) else None for one in way.stretches]
        fresh = [
            (place, source)
            for place, source in enumerate(way.stretches)
            if isinstance(source, Normalized) and source is not whole.source
        ]
        ids = self.model.tokenizers.source.encode_batch([source.text for _, source in fresh])
        stretches = {place: Stretch(source, one) for (place, source), one in zip(fresh, ids, strict=True)}
        stretches |= {place: whole for place, one in enumerate(way.stretches) if one is whole.source}
        segment.num_missing = len(stretches)
        request = segment.text.request
        search = _search(request.search, way)
        for place, stretch in stretches.items():
            with_matches = self._with_terms(stretch, request, holds=self._holds_terms(segment))
            entry = _Entry(segment, place, with_matches, search)
            if stretch.given is not None:
                self._alone.append(entry)
            else:
                self._waiting.setdefault(entry.group, []).append(entry)

    def _with_terms(self, stretch: Stretch, request: Request, *, holds: bool) -> Stretch:
        """Return the stretch with the terms of the glossary in it, which its translation must hold or not."""
        matches = matches_in(request.glossary, stretch.source)
        if not matches:
            return stretch
        terms = terms_of(self.model, matches, stretch.source.text, stretch.ids) if holds else None
        return replace(stretch, matches=tuple(matches), terms=terms)

    def _holds_terms(self, segment: _Segment) -> bool:
        """Tell whether a search must hold the terms: only once one without them has missed some.

        Alternatives must hold them too, so they are searched with the terms from the beginning.
        """
        return segment.text.request.num_best > 1 or segment.free is not None

    def drop(self, number: int) -> None:
        """Forget a request; what is under way for it comes to nothing."""
        text = self._texts.pop(number, None)
        if text is None:
            return
        text.is_dropped = True
        self._alone = deque(entry for entry in self._alone if not entry.is_dropped)
        for group, entries in list(self._waiting.items()):
            entries[:] = [entry for entry in entries if not entry.is_dropped]
            if not entries:
                del self._waiting[group]

    def take(self, num_idle: int = 1) -> Batch | None:
        """Return the next batch, None if nothing waits.

        Of the earliest round the group with the most to do comes first, longest sources first. So second
        tries gather until they are worth a batch, or until nothing else is left. The batch leaves something
        for other idle workers, if that is not too little.
        """
        if self._alone:
            return Batch((self._alone.popleft(),))
        if not self._waiting:
            return None
        first = min(round for round, *_ in self._waiting)
        group = max(
            (one for one in self._waiting if one[0] == first), key=lambda one: _size(self._waiting[one])
        )
        entries = self._waiting[group]
        entries.sort(key=lambda entry: len(entry.stretch.ids))
        limit = self.batch_tokens // num_rows(group[1], group[2])
        longest = len(entries[-1].stretch.ids) + 1
        share = max(-(-len(entries) // num_idle), _MIN_SHARE)
        size = max(1, min(len(entries), share, limit // longest))
        batch = Batch(tuple(entries[-size:][::-1]))
        del entries[-size:]
        if not entries:
            del self._waiting[group]
        return batch

    def give(self, batch: Batch, found: Sequence[Found]) -> list[tuple[int, Translation]]:
        """Take in what was found for a batch, and return the translations that are done now."""
        done = []
        for entry, one in zip(batch.entries, found, strict=True):
            segment = entry.segment
            if entry.is_dropped:
                continue
            outcome = self._outcome(entry, one)
            # If rounding could have decided, the result is the one of the stretch on its own.
            doubted = one.in_doubt or (outcome is not None and outcome.is_near)
            if len(batch.entries) > 1 and one.margin is not None and doubted:
                self._alone.append(entry)
                continue
            segment.found[entry.place] = outcome
            segment.num_missing -= 1
            if not segment.num_missing and self._settle(segment):
                text = segment.text
                text.outcomes[segment.place] = segment.best
                text.num_left -= 1
                if not text.num_left:
                    done.append((text.number, self._finished(text)))
        return done

    def _outcome(self, entry: _Entry, found: Found) -> Outcome | None:
        request = entry.segment.text.request
        if entry.stretch.given is not None:
            return outcome_given(self.model, entry.stretch, found.hypotheses[0])
        return outcome_of(
            self.model,
            entry.stretch,
            entry.segment.way,
            found,
            entry.search,
            num_best=request.num_best,
            mends=self._tries_again(request),
        )

    def _finished(self, text: _Text) -> Translation:
        """Return the translation of a text whose segments are all done, and forget it."""
        del self._texts[text.number]
        request, plan = text.request, text.plan
        outcomes = [outcome for outcome in text.outcomes if outcome is not None]
        joined = translation_of(request.text, outcomes, plan.joints, request.num_best, plan.is_split)
        if self._tries_again(request) and is_other_language(self.model, joined):
            joined = replace(joined, flags=(*joined.flags, "language"))
        joined = with_memory(joined, plan.memory)
        return joined if text.marked is None else with_tags(text.marked, joined)

    def _settle(self, segment: _Segment) -> bool:
        """Take in a finished attempt. Return whether the segment is done; otherwise start the next one."""
        while True:
            tried = side_by_side(segment.way, segment.found)
            if segment.best is None:
                if tried is None:  # a stand-in was lost: the text as it is
                    segment.way = Attempt((segment.stretch.source,))
                    self._start(segment)
                    return False
                if (
                    segment.stretch.given is None
                    and not self._holds_terms(segment)
                    and num_missed(tried.terms)
                ):
                    segment.free = tried
                    self._start(segment)
                    return False
                if segment.free is not None:
                    tried = max(tried, segment.free, key=lambda one: (-num_missed(one.terms), one.rank))
                if self._keep_first(segment, tried):
                    return True
            elif tried is not None and tried.text != segment.best.text:
                if tried.rank > segment.best.rank:
                    segment.best = tried
                if not tried.is_grave:  # the mildest way that helps is the one to take
                    return True
            way = next(segment.others, None)
            while way is not None and not self._affords(segment, way):
                way = next(segment.others, None)
            if way is None:
                return True
            segment.way = way
            self._start(segment)
            if segment.num_missing:
                return False

    def _affords(self, segment: _Segment, way: Attempt) -> bool:
        """Tell whether a second try is within the budget of the segment, and take it from there.

        To translate around the items of a text is always possible: then nothing of them is lost.
        """
        cost = len(segment.stretch.ids)
        if way.flag != "around":
            if cost > segment.budget:
                return False
            segment.budget -= cost
        return True

    def _tries_again(self, request: Request) -> bool:
        """Tell whether what looks wrong is tried again; a sample and a prefix are taken as they come."""
        takes_all = request.prefix is None and not isinstance(request.search, SampleOptions)
        return request.guard and self.model.translates and takes_all

    def _keep_first(self, segment: _Segment, outcome: Outcome) -> bool:
        """Keep the outcome of the first attempt; return whether no second one is wanted."""
        segment.best, source = outcome, segment.stretch.source
        if segment.stretch.given is not None or not self._tries_again(segment.text.request):
            return True
        if outcome.wrong == ("lost",):
            segment.best = with_items_back(source, outcome)
        if not segment.best.is_grave and not in_capitals(source.text):
            return True
        spans = [one.span for one in matches_in(segment.text.request.glossary, source)]
        segment.others = attempts(source, segment.best.wrong, spans)
        segment.budget = max(_RETRY_TOKENS, len(segment.stretch.ids))
        return False


def _size(entries: Sequence[_Entry]) -> int:
    return sum(len(entry.stretch.ids) for entry in entries)


def _search(asked: Search, way: Attempt) -> Search:
    """Return how to search for an attempt; a stricter search is as wide as the user's."""
    if way.search is None:
        return asked
    width = asked.beam_size if isinstance(asked, BeamOptions) else 1
    wanted = {"beam_size": max(way.search.beam_size, width), "extra_tokens": asked.extra_tokens}
    return way.search.model_copy(update=wanted)
