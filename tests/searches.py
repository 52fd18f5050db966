"""What the tests of search share: sentences and tasks, and engines whose probabilities are written down."""

from dataclasses import dataclass

import numpy as np
import pytest
from small import SAME_BUT_FOR_SIZE, shrink

from regard.alignment.reading import USUAL_READING
from regard.contract import Ragged, Step, force_by_steps, make_batch, unseen
from regard.model.presets import PRESETS
from regard.search.searcher import usual_rules
from regard.search.task import Task
from regard.vocabulary import EOS, UNK

SMALL = {name: shrink(options) for name, options in PRESETS.items() if name not in SAME_BUT_FOR_SIZE}
FEW_IDS = 7  # so few that `</s>` is often said
EVERY = pytest.mark.parametrize("options", SMALL.values(), ids=SMALL)


def sources_of(seed, rows):
    """Random sentences of different lengths."""
    rng = np.random.default_rng(seed)
    return [rng.integers(UNK, FEW_IDS, length) for length in rng.integers(1, 8, rows)]


def read(sources):
    """The batch of these sentences."""
    return make_batch(Ragged.of(sources), None, np.arange(len(sources)))


def task_of(batch, max_tokens, prefixes=None, no_repeat_ngram=None):
    """What to search: these sentences, each up to so many tokens."""
    limit_B = np.broadcast_to(np.asarray(max_tokens, np.int64), len(batch.source_BS))
    return Task(batch, limit_B, USUAL_READING.looks, usual_rules(prefixes, no_repeat_ngram))


def forced(engine, source, ids):
    """What the engine says to one translation of one sentence, `</s>` counted: log-probabilities, attention."""
    said = engine.force(make_batch(Ragged.of([source]), Ragged.of([np.array(ids, np.int64)]), np.arange(1)))
    logits_TV = said.logits_BTV[0].astype(float)
    log_prob_TV = logits_TV - np.log(np.exp(logits_TV).sum(-1, keepdims=True))
    return log_prob_TV[np.arange(len(ids) + 1), [*ids, EOS]], USUAL_READING.look(said.attention_BTLNS[0])


class Chain:
    """An engine that looks at the last id only: the probability of each next one is written down here."""

    max_tokens = None

    def __init__(self, probs):
        self.log_prob_VV = np.full((8, 8), -np.inf, np.float32)
        for (last, id), prob in probs.items():
            self.log_prob_VV[last, id] = np.log(prob)
        self.log_prob_VV[np.isinf(self.log_prob_VV).all(axis=1), EOS] = 0  # never come to, and well-formed
        self.num_steps = 0

    def start(self, batch, probe=unseen):
        return self

    def select(self, rows):
        return self

    def step(self, state, ids_R, probe=unseen):
        self.num_steps += 1
        return Step(self.log_prob_VV[ids_R], np.empty((len(ids_R), 0, 0, 2), np.float32), self)

    def force(self, batch, probe=unseen):
        return force_by_steps(self, batch, probe)


@dataclass(frozen=True)
class Rows:
    """Which sentence each row translates."""

    sentences: np.ndarray

    def select(self, rows):
        return Rows(self.sentences[rows])


class NearTies:
    """An engine full of choices by a hair, and of equals: each sentence has tables of its own, by the last id."""

    max_tokens = None
    probs = (0.25, 0.25, 0.125, 0.125, 0.0625, 0.0625, 0.0625, 0.0625)

    def __init__(self, seed, num_sentences, num_source):
        rng = np.random.default_rng(seed)
        shape = (num_sentences, EOS + len(self.probs), len(self.probs))
        said_BVX = rng.permuted(np.broadcast_to(np.log(self.probs), shape), axis=2)
        said_BVX += rng.choice([0, 1e-5, 1e-4, 1e-3, 1e-2], shape) * rng.integers(-2, 3, shape)
        self.logits_BVV = np.concatenate([np.zeros((*shape[:2], EOS)), said_BVX], axis=2).astype(np.float32)
        self.attention_BVS = rng.dirichlet(np.full(num_source, 0.3), shape[:2]).astype(np.float32)

    def start(self, batch, probe=unseen):
        return Rows(batch.pairs_B)

    def step(self, state, ids_R, probe=unseen):
        attention_RS = self.attention_BVS[state.sentences, ids_R]
        return Step(self.logits_BVV[state.sentences, ids_R], attention_RS[:, None, None], state)


class Jittered:
    """An engine whose numbers are a little different at every call, as if in a batch of other sentences."""

    def __init__(self, engine, seed, size):
        self.engine, self.size = engine, size
        self.rng = np.random.default_rng(seed)
        self.max_tokens = engine.max_tokens

    def start(self, batch, probe=unseen):
        return self.engine.start(batch)

    def step(self, state, ids_R, probe=unseen):
        said = self.engine.step(state, ids_R)
        logits_RV = said.logits_RV + self.rng.uniform(-self.size, self.size, said.logits_RV.shape)
        attention_RLNS = said.attention_RLNS * self.rng.uniform(
            1 - self.size, 1 + self.size, said.attention_RLNS.shape
        )
        return Step(logits_RV.astype(np.float32), attention_RLNS.astype(np.float32), said.state)


CLEAR = 2e-4  # what translating takes for a clear margin


def assert_clear_margins_can_be_trusted(search, jitter, clear=CLEAR, num_best=1):
    """Whatever was found by a clear margin is found again when all numbers are a little different.

    And there are enough clear margins, and other findings without one, for this to mean something.
    """
    num_clear = num_other = 0
    num_sentences, num_source = 60, 3
    batch = read([np.full(num_source - 1, UNK)] * num_sentences)
    for seed in range(6):
        engine = NearTies(seed, num_sentences, num_source)
        runs = [search(Jittered(engine, 100 * seed + run, jitter), batch) for run in range(5)]
        for found in zip(*runs, strict=True):
            said = {tuple((one.ids, one.complete) for one in run.hypotheses[:num_best]) for run in found}
            if max(run.margin for run in found) > clear:
                num_clear += 1
                assert len(said) == 1
            else:
                num_other += len(said) > 1
    assert num_clear > 20 and num_other > 5
