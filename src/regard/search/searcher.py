"""`Searcher`: from the ids of a source to hypotheses. Translating knows engines by this protocol only.

`StepSearcher` searches with any engine of the contract, step by step. Another engine may search by itself.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.alignment.reading import Reading
from regard.contract import Engine, Ids, Ragged, Source, num_source_tokens, source_batch
from regard.errors import ModelFileError
from regard.options.search import BeamOptions, RiskOptions, SampleOptions
from regard.search.beam import beam
from regard.search.risk import by_risk
from regard.search.rules import MakeRule, NoRepeat, Prefix
from regard.search.scores import target_log_probs
from regard.search.task import LENGTH_PENALTY, Found, Hypothesis, Task, length_factor
from regard.search.terms import Terms, beam_with_terms
from regard.search.tree import Tree
from regard.search.walk import greedy, sample
from regard.text.tokenizer import Tokenizer

Search = BeamOptions | SampleOptions | RiskOptions
Row = NDArray[np.integer]  # the ids of one sentence


@dataclass(frozen=True, slots=True)
class Query:
    """A source to search, ids or features; the ids its translation begins with, and its terms, if any."""

    source: Source
    prefix: Ids | None = None
    terms: Terms | None = None


class Searcher(Protocol):
    """Finds translations of a few sources, side by side."""

    @property
    def max_tokens(self) -> int | None:
        """The longest source or target, `</s>` counted, or None if there is no limit."""
        ...

    @property
    def steps(self) -> "StepSearcher":
        """The searcher of the same model that takes one step at a time."""
        ...

    def watched_by(self, engine: Engine[Any]) -> "Searcher":
        """Return the searcher whose steps are taken by another engine, one that watches its own."""
        ...

    def search(self, queries: Sequence[Query], options: Search, num_best: int = 1) -> list[Found]:
        """Return what is found for each query, best first."""
        ...

    def force(self, sources: Sequence[Source], targets: Sequence[Row]) -> list[Hypothesis]:
        """Return given translations with the scores and the attention the model gives them."""
        ...


@dataclass(frozen=True, slots=True)
class StepSearcher:
    """Searches with an engine that takes one step at a time, and reads the alignment from its attention."""

    engine: Engine[Any]
    reading: Reading
    target: Tokenizer  # minimum Bayes risk compares texts

    @property
    def max_tokens(self) -> int | None:
        """The longest source or target of the engine."""
        return self.engine.max_tokens

    @property
    def steps(self) -> "StepSearcher":
        """This one."""
        return self

    def watched_by(self, engine: Engine[Any]) -> "StepSearcher":
        """Return the searcher with another engine."""
        return replace(self, engine=engine)

    def search(
        self, queries: Sequence[Query], options: Search, num_best: int = 1, tree: Tree | None = None
    ) -> list[Found]:
        """Return what is found for each query, best first; a beam search of one query fills a tree.

        Where no translation holds the terms, that without them is found.
        """
        if any(query.terms is not None for query in queries):
            return self._with_terms(queries, options, num_best)
        sources = [query.source for query in queries]
        batch = source_batch(sources, None, np.arange(len(sources)))
        num_source_B = batch.source_real_BS.sum(axis=1)
        limit_B = (options.max_ratio * num_source_B).astype(np.int64) + options.extra_tokens
        prefixes = None
        if any(query.prefix is not None for query in queries):
            prefixes = [np.empty(0, np.int64) if one.prefix is None else one.prefix for one in queries]
            limit_B += [len(prefix) for prefix in prefixes]
        rules = usual_rules(prefixes, options.no_repeat_ngram)
        task = Task(batch, limit_B, self.reading.looks, rules, tree)
        with np.errstate(over="ignore", invalid="ignore"):  # of weights too large: found below
            found = self._found(task, options, sources, num_best)
        if not all(one.hypotheses and math.isfinite(one.hypotheses[0].log_prob) for one in found):
            raise ModelFileError(
                "the model computes scores that are not finite, so its weights are damaged or far too large; "
                "train it again"
            )
        return found

    def _with_terms(self, queries: Sequence[Query], options: Search, num_best: int) -> list[Found]:
        """Return what is found for queries of which some have terms."""
        found: dict[int, Found] = {}
        held = [n for n, query in enumerate(queries) if query.terms is not None]
        if isinstance(options, BeamOptions):
            some = self._holding([queries[n] for n in held], options, num_best)
            found = {n: one for n, one in zip(held, some, strict=True) if _holds(one)}
        left = [n for n in range(len(queries)) if n not in found]
        plain = [replace(queries[n], terms=None) for n in left]
        if plain:
            found |= zip(left, self.search(plain, options, num_best), strict=True)
        return [found[n] for n in range(len(queries))]

    def _holding(self, queries: Sequence[Query], options: BeamOptions, num_best: int) -> list[Found]:
        """Return what a beam finds that holds the terms."""
        batch = source_batch([query.source for query in queries], None, np.arange(len(queries)))
        terms = [Terms() if query.terms is None else query.terms for query in queries]
        prefixes = [np.empty(0, np.int64) if one.prefix is None else one.prefix for one in queries]
        limit_B = (options.max_ratio * batch.source_real_BS.sum(axis=1)).astype(np.int64)
        added = [len(prefix) + one.num_ids for prefix, one in zip(prefixes, terms, strict=True)]
        limit_B += options.extra_tokens + np.array(added)
        rules = usual_rules(prefixes if any(map(len, prefixes)) else None, options.no_repeat_ngram)
        task = Task(batch, limit_B, self.reading.looks, rules)
        with np.errstate(over="ignore", invalid="ignore"):
            return beam_with_terms(
                self.engine,
                task,
                options,
                terms,
                target=self.target,
                is_shifted=self.reading.shifted,
                num_prefix=list(map(len, prefixes)),
                num_best=num_best,
            )

    def _found(self, task: Task, options: Search, sources: Sequence[Source], num_best: int) -> list[Found]:
        if isinstance(options, BeamOptions):
            if is_greedy(options):
                return greedy(self.engine, task, options.length_penalty)
            return beam(self.engine, task, options, num_best)
        keys = [_key(options.seed, source) for source in sources]
        num_samples = options.num_samples if isinstance(options, RiskOptions) else num_best
        drawn = sample(self.engine, task, options, keys, num_samples)
        return [self._ranked(one, options) for one in drawn]

    def _ranked(self, drawn: Found, options: SampleOptions | RiskOptions) -> Found:
        """Return samples best first: by their risk, if that is what was asked for, or by their score."""
        if isinstance(options, RiskOptions):
            texts = [self.target.decode(one.ids) for one in drawn.hypotheses]
            return Found(tuple(drawn.hypotheses[n] for n in by_risk(texts)), drawn.margin)
        ranked = sorted(drawn.hypotheses, key=lambda one: -one.score)
        gaps = [before.score - after.score for before, after in pairwise(ranked) if before.ids != after.ids]
        return Found(tuple(ranked), min([math.inf if drawn.margin is None else drawn.margin, *gaps]))

    def force(self, sources: Sequence[Source], targets: Sequence[Row]) -> list[Hypothesis]:
        """Return given translations with the scores and the attention the model gives them."""
        batch = source_batch(sources, Ragged.of(targets), np.arange(len(sources)))
        forced = self.engine.force(batch)
        assert batch.target_out_BT is not None
        log_prob_BT = target_log_probs(forced.logits_BTV, batch.target_out_BT)
        found = []
        for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
            log_probs = log_prob_BT[row, : len(target) + 1].tolist()
            total = math.fsum(log_probs)
            score = total / length_factor(len(log_probs), LENGTH_PENALTY)
            origin_TS = None if forced.origin_BTS is None else forced.origin_BTS[row, : len(target) + 1]
            looks_TS = self.reading.look(forced.attention_BTLNS[row, : len(target) + 1], origin_TS)
            looks_TS = looks_TS[:, : num_source_tokens(source)]
            found.append(Hypothesis(tuple(target.tolist()), total, score, tuple(log_probs), looks_TS, True))
        return found


def _holds(found: Found) -> bool:
    """Tell whether a search has found a whole translation that holds the terms."""
    return any(math.isfinite(one.log_prob) and one.complete for one in found.hypotheses[:1])


def is_greedy(options: Search) -> bool:
    """Tell whether a search keeps one hypothesis only, without anything that needs a beam."""
    return isinstance(options, BeamOptions) and options.beam_size == 1 and not options.coverage_penalty


def num_rows(options: Search, num_best: int) -> int:
    """Return how many hypotheses of a sentence are searched at once."""
    if isinstance(options, BeamOptions):
        return options.beam_size
    return num_best if isinstance(options, SampleOptions) else options.num_samples


def usual_rules(prefixes: Sequence[Ids] | None, no_repeat_ngram: int | None) -> tuple[MakeRule, ...]:
    """Return the rules that the options of a search ask for; a prefix may repeat itself."""
    rules: list[MakeRule] = []
    if no_repeat_ngram is not None:
        rules.append(partial(NoRepeat, no_repeat_ngram))
    if prefixes is not None:
        rules.append(lambda num_rows: Prefix(prefixes))
    return tuple(rules)


def _key(seed: int, source: Source) -> int:
    """Return the key to a source's random numbers: the same source draws the same in any batch."""
    numbers = source.astype("<i8" if source.ndim == 1 else "<f4")
    digest = hashlib.sha256(numbers.tobytes() + seed.to_bytes(8, "little")).digest()
    return int.from_bytes(digest[:8], "little")
