"""Beam search for translations that hold given terms and avoid others.

The beam is shared out among hypotheses that hold different numbers of terms (Post & Vilar 2018, with few
places for terms that are begun). So a term is begun where it costs least, whatever the rest of the
beam prefers. We depart from the paper in one point: attention on the source words of a term counts against
every piece that is not part of the term. So the term takes the place of its own source words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.contract import Engine, Floats, Ids
from regard.options.search import BeamOptions
from regard.search.beam import Kept, found_by
from regard.search.rules import Rules
from regard.search.scores import Totals, best_ids, log_normaliser
from regard.search.task import Found, Record, Task, length_factor
from regard.text.tokenizer import Tokenizer
from regard.vocabulary import BOS, EOS

ELSEWHERE = 3.0
"""What attention on the source words of a term costs a piece that is not part of the term. Chosen on a few
sentences; benchmarks/glossary.py --elsewhere compares others."""
_MOST = 2.0
"""What an id of a term may cost. A term may be improbable everywhere; then it would stand where it harms the
rest least by chance, and not where its source words are translated."""
_MIN_SIZE = 5  # narrower beams find no good place for a term
_BEGUN = 2  # hypotheses with the same number of ids of a term
_MAX_BEGUN = 8

Form = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Forms:
    """The ways to say one term, in ids.

    `after_space` may be said anywhere, `joined` only after a sign such as an apostrophe or a bracket, and
    `at_start` only as the beginning of a translation.
    """

    after_space: tuple[Form, ...]
    joined: tuple[Form, ...] = ()
    at_start: tuple[Form, ...] = ()

    @property
    def num_ids(self) -> int:
        """The length of the longest form."""
        return max(map(len, (*self.after_space, *self.joined, *self.at_start)), default=0)

    def allowed(self, step: int, is_joined: bool) -> Iterator[Form]:
        """Yield the forms that may begin here."""
        yield from self.after_space
        if is_joined:
            yield from self.joined
        if step == 0:
            yield from self.at_start


@dataclass(frozen=True, slots=True)
class Wanted:
    """A term that a translation must hold, and the source pieces whose translation it is."""

    forms: Forms
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """What one translation must hold, each once more, and what it must not."""

    wanted: tuple[Wanted, ...] = ()
    forbidden: tuple[Forms, ...] = ()

    @property
    def num_ids(self) -> int:
        """How many ids the terms may add to a translation."""
        return sum(one.forms.num_ids for one in self.wanted)


@dataclass(frozen=True, slots=True)
class _Begun:
    """A form of a wanted or forbidden term, of which so many ids were said."""

    term: int
    form: Form
    num_said: int


@dataclass(frozen=True, slots=True)
class _Progress:
    """What a hypothesis has said of its terms.

    `held` and `belongs` are sets of terms, as bits: those it holds, and those that its last id may be part
    of. A `finished` term counts only if no letter follows it.
    """

    held: int = 0
    belongs: int = 0
    begun: tuple[_Begun, ...] = ()
    finished: int = 0
    forbidden: tuple[_Begun, ...] = ()
    must_go_on: bool = False  # it ends in a forbidden term, which must become another word
    is_joined: bool = False
    spared: float = 0.0  # of what the ids of held terms cost
    begun_spared: float = 0.0  # of what the ids of a begun or just finished term cost


class _Follow:
    """The terms of one sentence, and what each id does to a hypothesis."""

    def __init__(self, terms: Terms, ends_word: Sequence[bool], joins: Sequence[bool]) -> None:
        self.terms = terms
        self.all = (1 << len(terms.wanted)) - 1
        self._ends_word, self._joins = ends_word, joins
        every = (*(one.forms for one in terms.wanted), *terms.forbidden)
        self._first = {form[0] for one in every for form in (*one.after_space, *one.joined, *one.at_start)}

    def next_ids(self, now: _Progress, step: int) -> set[int]:
        """Return the ids that begin a missing term or go on with one."""
        found = {one.form[one.num_said] for one in now.begun}
        for term, one in enumerate(self.terms.wanted):
            if not now.held >> term & 1:
                found.update(form[0] for form in one.forms.allowed(step, now.is_joined))
        return found

    def afterwards(self, now: _Progress, step: int, offers: Sequence[tuple[int, float]]) -> list[_Progress]:
        """Return `after` for each id and its log-probability; most ids belong to no term, and are alike."""
        own = self._first | {one.form[one.num_said] for one in (*now.begun, *now.forbidden)}
        others: dict[tuple[bool, bool], _Progress] = {}
        found = []
        for id, log_prob in offers:
            kind = self._ends_word[id], self._joins[id]
            after = None if id in own else others.get(kind)
            if after is None:
                after = self.after(now, id, log_prob, step)
                if id not in own:
                    others[kind] = after
            found.append(after)
        return found

    def after(self, now: _Progress, id: int, log_prob: float, step: int) -> _Progress:
        """Return what is said of the terms once the id is said, which has this log-probability."""
        is_undone = now.finished and not self._ends_word[id]
        held = now.held & ~now.finished if is_undone else now.held
        spared = now.spared - now.begun_spared if is_undone else now.spared
        begun = [_Begun(one.term, one.form, one.num_said + 1) for one in now.begun if _goes_on(one, id)]
        begun_spared = now.begun_spared if begun else 0.0
        for term, wanted in enumerate(self.terms.wanted):
            if not held >> term & 1:
                may_begin = wanted.forms.allowed(step, now.is_joined)
                begun += [_Begun(term, form, 1) for form in may_begin if form[0] == id]
        belongs, finished, claimed = 0, 0, set()
        for one in begun:
            belongs |= 1 << one.term
            # Of two equal terms, said once, one is held.
            if one.num_said == len(one.form) and not held >> one.term & 1 and one.form not in claimed:
                claimed.add(one.form)
                finished |= 1 << one.term
        begun_spared = begun_spared + max(0.0, -_MOST - log_prob) if begun else 0.0
        forbidden = [
            _Begun(one.term, one.form, one.num_said + 1) for one in now.forbidden if _goes_on(one, id)
        ]
        for number, forms in enumerate(self.terms.forbidden):
            allowed = forms.allowed(step, now.is_joined)
            forbidden += [_Begun(number, form, 1) for form in allowed if form[0] == id]
        held |= finished
        return _Progress(
            held,
            belongs,
            tuple(one for one in begun if one.num_said < len(one.form) and not held >> one.term & 1),
            finished,
            tuple(one for one in forbidden if one.num_said < len(one.form)),
            any(one.num_said == len(one.form) for one in forbidden),
            self._joins[id],
            spared + begun_spared if finished else spared,
            begun_spared,
        )

    def spared(self, now: _Progress) -> float:
        """Return what the ids of terms would cost more if they were chosen and not given."""
        return now.spared if now.finished else now.spared + now.begun_spared

    def bank(self, now: _Progress) -> tuple[int, int]:
        """Return with which others a hypothesis competes: as many terms held, as much of one begun."""
        return now.held.bit_count(), max((one.num_said for one in now.begun), default=0)

    def cost(self, now: _Progress, look_S: Floats) -> float:
        """Return what it costs that the last id looked at source words of terms it is no part of."""
        return sum(
            float(look_S[list(one.columns)].sum())
            for term, one in enumerate(self.terms.wanted)
            if not now.belongs >> term & 1
        )


def _goes_on(one: _Begun, id: int) -> bool:
    return one.form[one.num_said] == id


@dataclass(slots=True)
class _Row:
    """An open hypothesis."""

    log_prob: float
    bonus: float
    now: _Progress


@dataclass(frozen=True, slots=True)
class _Offer:
    """A continuation: of which row (of the batch), by which id, and its score at its present length."""

    score: float
    row: int
    id: int
    log_prob: float
    bonus: float
    now: _Progress


class _Sentence:
    """One sentence of the batch and its part of the beam."""

    def __init__(self, follow: _Follow, beam_size: int, num_prefix: int) -> None:
        self.follow = follow
        self.num_prefix = num_prefix
        self.beam_size = beam_size
        self.width = 2 * max(beam_size, _MIN_SIZE)
        self.kept = Kept(beam_size)
        self.rows = [_Row(0.0, 0.0, _Progress())]
        self.margin = np.inf

    def choose(self, offers: list[_Offer], step: int, at_limit: bool) -> list[_Offer]:
        """Keep what is finished, and return the continuations that stay open, none if the search ends."""
        offers.sort(key=lambda one: (-one.score, one.row, one.id))
        banks: dict[tuple[int, int], list[_Offer]] = {}
        for one in offers:
            banks.setdefault(self.follow.bank(one.now), []).append(one)
        stay: dict[tuple[int, int], list[_Offer]] = {}
        for number, bank in banks.items():
            stay[number] = [one for one in bank if one.id != EOS]
            edge = [one.score for one in bank[self.width - 1 : self.width + 1]]
            for place, one in enumerate(bank):
                if one.id != EOS and not at_limit:
                    continue
                if place < self.width or (one.id == EOS and at_limit):
                    self.kept.add(one.score, step, one.row, one.id, one.log_prob)
                if len(edge) == 2:
                    other = edge[1] if place < self.width else edge[0]
                    self.margin = min(self.margin, abs(one.score - other))
        if at_limit:
            return []
        taken = self._shares({number: len(bank) for number, bank in stay.items()})
        for number, count in taken.items():
            if 0 < count < len(stay[number]):
                self.margin = min(self.margin, stay[number][count - 1].score - stay[number][count].score)
        chosen = [one for number, count in taken.items() for one in stay[number][:count]]
        if not chosen:
            return []
        ahead = max(one.score for one in chosen) - self.kept.worst
        self.margin = min(self.margin, abs(ahead))
        return chosen if ahead > 0 else []

    def _shares(self, sizes: dict[tuple[int, int], int]) -> dict[tuple[int, int], int]:
        """Return how many of each bank stay open.

        Terms that are begun have a few places for each number of ids: a term of many unlikely ids would lose
        against one that was just begun. The others share out the width in turns, most terms first.
        """
        taken = dict.fromkeys(sorted(sizes, reverse=True), 0)
        left = _MAX_BEGUN
        for number in taken:
            if number[1]:
                taken[number] = min(sizes[number], _BEGUN, left)
                left -= taken[number]
        whole = [number for number in taken if not number[1]]
        left = self.width
        while left and any(taken[number] < sizes[number] for number in whole):
            for number in whole:
                if left and taken[number] < sizes[number]:
                    taken[number] += 1
                    left -= 1
        return taken


def beam_with_terms(
    engine: Engine[Any],
    task: Task,
    options: BeamOptions,
    terms: Sequence[Terms],
    *,
    target: Tokenizer,
    is_shifted: bool,
    num_prefix: Sequence[int],
    num_best: int = 1,
) -> list[Found]:
    """Return the best translations that hold their terms; one that is cut holds only some of them.

    `num_prefix` says how many ids of each translation are given. If attention `is_shifted`, each step shows
    where the id that it reads came from.
    """
    ends_word_V = target.ends_word_V
    ends_word, joins = ends_word_V.tolist(), target.joins_V.tolist()
    sentences = [
        _Sentence(_Follow(one, ends_word, joins), options.beam_size, given)
        for one, given in zip(terms, num_prefix, strict=True)
    ]
    record, rules = Record(engine, task), Rules(task.rules, len(sentences))
    open_sentences = list(range(len(sentences)))
    parent_R = np.arange(len(sentences))
    read_R = np.full(len(sentences), BOS, np.int64)
    before_RS: Floats | None = None
    state = engine.start(task.batch)
    for step in range(record.num_steps):
        said = engine.step(state, read_R)
        look_RS = task.look(said)(np.arange(len(read_R)))
        rows = [(number, row) for number in open_sentences for row in sentences[number].rows]
        record.add(read_R, parent_R, np.array([row.log_prob for _, row in rows]), look_RS.__getitem__)
        came_from_RS = look_RS if is_shifted else before_RS
        if step and came_from_RS is not None and came_from_RS.shape[1]:
            for (number, row), look_S in zip(rows, came_from_RS, strict=True):
                row.bonus -= ELSEWHERE * sentences[number].follow.cost(row.now, look_S)
        bound_RV = rules.bind(said.logits_RV, np.array([number for number, _ in rows]))
        factor = length_factor(step + 1, options.length_penalty)
        offers = _offers(sentences, rows, (said.logits_RV, bound_RV, ends_word_V), step, factor)
        chosen: list[_Offer] = []
        still_open = []
        for number in open_sentences:
            sentence = sentences[number]
            at_limit = int(record.limit_B[number]) == step + 1
            stays = sentence.choose(offers.get(number, []), step, at_limit)
            sentence.rows = [_Row(one.log_prob, one.bonus, one.now) for one in stays]
            chosen += stays
            still_open += [number] * bool(stays)
        if not chosen:
            break
        open_sentences = still_open
        parent_R = np.array([one.row for one in chosen])
        read_R = np.array([one.id for one in chosen], np.int64)
        before_RS = look_RS[parent_R]
        rules.follow(parent_R, read_R)
        state = said.state.select(parent_R)
    margins = [min(float(one.margin), one.kept.margin(num_best)) for one in sentences]
    return found_by([one.kept for one in sentences], record, margins, num_best)


def _offers(
    sentences: Sequence[_Sentence],
    rows: Sequence[tuple[int, _Row]],
    scores: tuple[Floats, Floats, NDArray[np.bool_]],
    step: int,
    factor: float,
) -> dict[int, list[_Offer]]:
    """Return the continuations of each sentence: the likeliest of each row, and those that its terms need."""
    logits_RV, bound_RV, ends_word_V = scores
    normaliser_R: Totals = log_normaliser(logits_RV)
    bound_RV = bound_RV.copy()
    wanted: list[set[int]] = []
    for place, (number, row) in enumerate(rows):
        follow = sentences[number].follow
        wanted.append(follow.next_ids(row.now, step) if step >= sentences[number].num_prefix else set())
        if row.now.held != follow.all:
            bound_RV[place, EOS] = -np.inf
        if row.now.must_go_on:
            bound_RV[place, ends_word_V] = -np.inf
    widest = max(sentences[number].width for number, _ in rows)
    num_best = widest + 2 + max(map(len, wanted))
    best_RK: Ids = best_ids(bound_RV, num_best)
    found: dict[int, list[_Offer]] = {}
    for place, (number, row) in enumerate(rows):
        follow, num_own = sentences[number].follow, sentences[number].width + 2 + len(wanted[place])
        start = row.log_prob - float(normaliser_R[place])
        free = [(id, float(bound_RV[place, id])) for id in best_RK[place, :num_own].tolist()]
        # A term may be said even if a rule forbids it, such as that against repetition.
        others = wanted[place].difference(id for id, logit in free if logit > -np.inf)
        forced = [(id, float(logits_RV[place, id])) for id in sorted(others)]
        offers = [
            (id, start + logit)
            for id, logit in (*free, *forced)
            if logit > -np.inf and not (row.now.must_go_on and ends_word_V[id])
        ]
        progress = follow.afterwards(row.now, step, [(id, total - row.log_prob) for id, total in offers])
        for (id, total), now in zip(offers, progress, strict=True):
            score = (total + follow.spared(now)) / factor + row.bonus
            found.setdefault(number, []).append(_Offer(score, place, id, total, row.bonus, now))
    return found
