"""`FastSearcher`: greedy and beam search by CTranslate2, with the results of our own search.

Every sentence is a batch of its own, one for each core at a time: so its result does not depend on others. In
larger batches CTranslate2 4.8 gives wrong attention with a beam, and int8 rounds differently. Only greedy
search in float32 has batches: from the logits of each step we know by which margin every piece was chosen.
With a beam NumPy, which has batches, is faster from a few sentences on, and does them unless CTranslate2 was
asked for by name.
"""

import contextlib
import math
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

import numpy as np

from regard.contract import Engine, Source, num_source_tokens
from regard.fast.convert import Converted
from regard.options.search import BeamOptions
from regard.parallel import num_cores
from regard.search.scores import best_two, log_normaliser
from regard.search.searcher import Query, Row, Search, StepSearcher, is_greedy
from regard.search.task import Found, Hypothesis, length_factor
from regard.vocabulary import BOS, EOS, PAD

_PATIENCE = 2
"""CTranslate2 stops when so many times `beam_size` hypotheses are finished, our search when there are
`beam_size` and none that is open scores above the worst. That is sooner, but for about one sentence in a
thousand."""

_MANY = 16
"""From so many sentences on, greedy search in float32 has batches; fewer are searched one by one."""

_MANY_BEAMS = 8
"""From so many sentences on, NumPy is faster with a beam."""

_BATCH_SIZE = 32
_MAX_VOCAB = 16_000
"""With more pieces, batches are searched by NumPy, which does not keep the logits of all steps."""

_MAX_LOGITS = 1 << 25
"""The most logits that may be kept at once: 128 MB, if every translation were as long as it may be."""

_END = str(EOS)
_NEVER_SAID = {str(PAD), str(BOS)}


@dataclass(frozen=True, slots=True)
class Library:
    """CTranslate2 with a converted model, opened once in each process: its threads do not survive a fork."""

    converted: Converted
    precision: str
    num_threads: int | None = None
    """In the process that made it; None is one for each processor. A forked one has one."""
    _translators: dict[int, Any] = field(default_factory=dict)  # by process; none is closed after a fork
    _lock: Any = field(default_factory=threading.Lock)
    _process: int = field(default_factory=os.getpid)

    def open(self) -> Any:
        """Return CTranslate2's own translator of this process."""
        process = os.getpid()
        found = self._translators.get(process)
        if found is not None:
            return found
        import ctranslate2

        with self._lock if process == self._process else contextlib.nullcontext():
            if process not in self._translators:
                num_threads = (self.num_threads or num_cores()) if process == self._process else 1
                self._translators[process] = ctranslate2.Translator(
                    "regard",
                    files=self.converted.files,
                    compute_type=self.precision,
                    inter_threads=num_threads,
                    intra_threads=1,
                )
        return self._translators[process]


@dataclass(frozen=True, slots=True)
class FastSearcher:
    """Searches with CTranslate2 what it can, and the rest with `steps`, the same model in NumPy."""

    steps: StepSearcher
    library: Library
    is_named: bool = False
    """Whether CTranslate2 was asked for by name: then it also does what NumPy would do sooner."""

    @property
    def max_tokens(self) -> int | None:
        """The longest source or target of the model."""
        return self.steps.max_tokens

    def watched_by(self, engine: Engine[Any]) -> "FastSearcher":
        """Return the searcher whose steps are taken by another engine; CTranslate2's cannot be watched."""
        return replace(self, steps=self.steps.watched_by(engine))

    def force(self, sources: Sequence[Source], targets: Sequence[Row]) -> list[Hypothesis]:
        """Return given translations with scores and attention, by NumPy: CTranslate2 gives no attention."""
        return self.steps.force(sources, targets)

    def score(self, pairs: Sequence[tuple[Source, Sequence[int] | Sequence[str]]]) -> list[Sequence[float]]:
        """Return the log-probability of each id of given translations and of `</s>`, by CTranslate2."""
        scored = self.library.open().score_batch(
            [self._tokens(source) for source, _ in pairs],
            [list(map(str, ids)) for _, ids in pairs],
            max_batch_size=1,
            max_input_length=0,
        )
        return [one.log_probs for one in scored]

    def search(self, queries: Sequence[Query], options: Search, num_best: int = 1) -> list[Found]:
        """Return what is found for each query, best first; a sentence that is not sure goes to NumPy."""
        found: dict[int, Found] = {}
        if isinstance(options, BeamOptions) and self._knows(options, len(queries), num_best):
            limits = {n: self._limit(query, options) for n, query in enumerate(queries)}
            limits = {n: limit for n, limit in limits.items() if limit}
            search = self._greedy if is_greedy(options) else self._beam
            found = search(queries, limits, options, num_best) if limits else {}
        left = [n for n in range(len(queries)) if n not in found]
        if left:
            found |= zip(left, self.steps.search([queries[n] for n in left], options, num_best), strict=True)
        return [found[n] for n in range(len(queries))]

    def _knows(self, options: BeamOptions, num_queries: int, num_best: int) -> bool:
        """Tell whether CTranslate2 can search so, and sooner: its own penalties and rules are others."""
        vocab_size = self.steps.target.vocab_size
        if not self.is_named and not is_greedy(options) and num_queries >= _MANY_BEAMS and num_best == 1:
            return False
        if is_greedy(options) and self._has_batches(num_queries) and vocab_size > _MAX_VOCAB:
            return False
        wide = 2 * _PATIENCE * options.beam_size > vocab_size
        return not (options.coverage_penalty or options.diversity or options.no_repeat_ngram or wide)

    def _has_batches(self, num_queries: int) -> bool:
        """Tell whether so many sentences are searched greedily in batches."""
        return num_queries >= _MANY and self.library.precision == "float32"

    def _limit(self, query: Query, options: BeamOptions) -> int:
        """Return the most ids that a translation may have, `</s>` counted; 0 for what NumPy searches."""
        num_source = num_source_tokens(query.source)
        limit = int(options.max_ratio * num_source) + options.extra_tokens
        if self.max_tokens is not None:
            limit = min(limit, self.max_tokens)
        fits = max(num_source, limit) <= self.library.converted.max_tokens
        is_plain = query.prefix is None and query.terms is None
        return limit if is_plain and fits else 0

    def _tokens(self, source: Source) -> list[str]:
        """Return what the model reads; of an empty source only `</s>` is there."""
        tokens = [*map(str, source.tolist())]
        return [*tokens, _END] if self.library.converted.end or not tokens else tokens

    def _translated(
        self, queries: Sequence[Query], limits: dict[int, int], batch_size: int = 1, **asked: Any
    ) -> list[Any]:
        return list(
            self.library.open().translate_batch(
                [self._tokens(queries[n].source) for n in limits],
                max_batch_size=batch_size,
                max_input_length=0,
                max_decoding_length=max(limits.values()),
                min_decoding_length=0,
                length_penalty=0,
                return_end_token=True,
                return_attention=True,
                **asked,
            )
        )

    def _greedy(
        self, queries: Sequence[Query], limits: dict[int, int], options: BeamOptions, num_best: int
    ) -> dict[int, Found]:
        """Return what greedy search finds, except where it is cut or says what is never said."""
        if self._has_batches(len(queries)):
            return self._greedy_in_batches(queries, limits, options)
        log_probs: list[list[float]] = [[] for _ in limits]

        def keep(step: Any) -> bool:
            log_probs[step.batch_id].append(step.log_prob)
            return False

        found = {}
        results = self._translated(queries, limits, beam_size=1, return_scores=True, callback=keep)
        for (n, limit), result, told in zip(limits.items(), results, log_probs, strict=True):
            (tokens,), (attention,) = result.hypotheses, result.attention
            if _is_whole(tokens, limit):
                hypothesis = _hypothesis(queries[n], tokens, told, attention, options)
                if math.isfinite(hypothesis.log_prob):
                    found[n] = Found((hypothesis,), None)
        return found

    def _greedy_in_batches(
        self, queries: Sequence[Query], limits: dict[int, int], options: BeamOptions
    ) -> dict[int, Found]:
        """Return the same with margins: a sentence in doubt is searched again alone, as with NumPy."""
        found = {}
        size = max(1, _MAX_LOGITS // (self.steps.target.vocab_size * max(limits.values())))
        for first in range(0, len(limits), size):
            some = dict(list(limits.items())[first : first + size])
            results = self._translated(queries, some, _BATCH_SIZE, beam_size=1, return_logits_vocab=True)
            for (n, limit), result in zip(some.items(), results, strict=True):
                (tokens,), (attention,) = result.hypotheses, result.attention
                if not _is_whole(tokens, limit):
                    continue
                logits_TV = np.stack([np.asarray(one) for one in result.logits[0]])
                ids_T, gap_T = best_two(logits_TV, first=0)
                log_prob_T = logits_TV[np.arange(len(ids_T)), ids_T] - log_normaliser(logits_TV)
                log_probs = log_prob_T.tolist()
                hypothesis = _hypothesis(queries[n], tokens, log_probs, attention, options)
                if math.isfinite(hypothesis.log_prob):
                    found[n] = Found((hypothesis,), float(gap_T.min()))
        return found

    def _beam(
        self, queries: Sequence[Query], limits: dict[int, int], options: BeamOptions, num_best: int
    ) -> dict[int, Found]:
        """Return what beam search finds, where it is sure that our search would find the same."""
        num_wanted = _PATIENCE * options.beam_size
        results = self._translated(
            queries,
            limits,
            beam_size=options.beam_size,
            patience=_PATIENCE,
            num_hypotheses=num_wanted,
            suppress_sequences=[[token] for token in sorted(_NEVER_SAID)],
            return_scores=True,
        )
        chosen: list[tuple[int, Sequence[str], Any]] = []
        for (n, limit), result in zip(limits.items(), results, strict=True):
            finished = [
                _Finished(tokens, total, _score(total, tokens, options), attention)
                for tokens, total, attention in zip(
                    result.hypotheses, result.scores, result.attention, strict=True
                )
                if tokens[-1:] == [_END] and len(tokens) < limit and math.isfinite(total)
            ]
            if len(finished) == num_wanted:
                finished.sort(key=lambda one: -one.score)
                if _is_sure(finished, options, num_best):
                    chosen += [(n, one.tokens, one.attention) for one in finished[:num_best]]
        scored = self.score([(queries[n].source, tokens[:-1]) for n, tokens, _ in chosen])
        hypotheses: dict[int, list[Hypothesis]] = {}
        for (n, tokens, attention), log_probs in zip(chosen, scored, strict=True):
            hypothesis = _hypothesis(queries[n], tokens, log_probs, attention, options)
            hypotheses.setdefault(n, []).append(hypothesis)
        return {
            n: Found(tuple(sorted(some, key=attrgetter("score"), reverse=True)), None)
            for n, some in hypotheses.items()
        }


@dataclass(frozen=True, slots=True)
class _Finished:
    """A hypothesis that CTranslate2 has finished: its tokens with `</s>`, log-probability and our score."""

    tokens: Sequence[str]
    log_prob: float
    score: float
    attention: Any


def _is_sure(finished: Sequence[_Finished], options: BeamOptions, num_best: int) -> bool:
    """Tell whether our search would have gone on until the first `num_best` of these were finished.

    Both searches have the same beam at every step and differ in when they stop. Ours goes on while fewer than
    `beam_size` are finished. After that it goes on if an open hypothesis scores above the worst of the best
    `beam_size`. One that is finished later was open, and at least as likely as it is at its end.
    """
    last = max(len(one.tokens) for one in finished[:num_best])
    enough = sorted(len(one.tokens) for one in finished)[options.beam_size - 1]
    for step in range(enough, last):
        scores = sorted((one.score for one in finished if len(one.tokens) <= step), reverse=True)
        open_log_prob = max(one.log_prob for one in finished if len(one.tokens) > step)
        factor = length_factor(step, options.length_penalty)
        if open_log_prob / factor <= scores[options.beam_size - 1]:
            return False
    return True


def _is_whole(tokens: Sequence[str], limit: int) -> bool:
    """Tell whether a translation ends within its limit, and says nothing that is never said."""
    return tokens[-1:] == [_END] and len(tokens) <= limit and not _NEVER_SAID & {*tokens}


def _score(log_prob: float, tokens: Sequence[str], options: BeamOptions) -> float:
    return log_prob / length_factor(len(tokens), options.length_penalty)


def _hypothesis(
    query: Query, tokens: Sequence[str], log_probs: Sequence[float], attention: Any, options: BeamOptions
) -> Hypothesis:
    """Return a complete hypothesis from its tokens with `</s>`."""
    total = math.fsum(log_probs)
    attention_TS = np.zeros((len(tokens), num_source_tokens(query.source)), np.float32)
    given_TS = np.array(attention, np.float32)
    attention_TS[:, : given_TS.shape[1]] = given_TS
    ids = tuple(map(int, tokens[:-1]))
    return Hypothesis(ids, total, _score(total, tokens, options), tuple(log_probs), attention_TS, True)
