"""Which attention aligns is found out: of many looks the one that knows which word became which."""

import itertools
from functools import cache

import numpy as np
import pytest
from scripted import Scripted

from regard.alignment.reading import Reading
from regard.contract import Ragged, make_batch
from regard.training.reading import choose_reading, rank_readings

FIRST, NUM_WORDS = 4, 8
LAYERS, HEADS = 2, 2


def batches(num=6, rows=40, seed=1):
    """Sentences of eight words, each turned round and every word translated: w is w + 8."""
    rng = np.random.default_rng(seed)
    for _ in range(num):
        sources = [FIRST + rng.integers(0, NUM_WORDS, length) for length in rng.integers(3, 8, rows)]
        targets = [source[::-1] + NUM_WORDS for source in sources]
        yield make_batch(Ragged.of(sources), Ragged.of(targets), np.arange(rows))


@cache
def anywhere(source, step, layer, head):
    """A place that has nothing to do with what is said."""
    rng = np.random.default_rng([step, layer, head, *source])
    return int(rng.integers(0, len(source) + 1))


def engine_of(weights_of):
    """An engine whose head looks where `weights_of(layer, head, source, step)` says."""

    def look(source, said):
        return [
            [weights_of(layer, head, source, len(said)) for head in range(HEADS)] for layer in range(LAYERS)
        ]

    return Scripted(FIRST + 2 * NUM_WORDS, lambda source, said: {}, look)


def one_hot(place, source):
    weights = np.zeros(len(source) + 1)
    weights[place] = 1
    return weights


def true_place(source, step):
    """Where the word said at this step comes from; </s> from </s>."""
    return len(source) - 1 - step if 0 <= step < len(source) else len(source)


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize(("layer", "head"), [(0, 1), (1, 0)])
def test_the_one_head_that_aligns_is_found(layer, head, shifted):
    def weights_of(this_layer, this_head, source, step):
        if (this_layer, this_head) == (layer, head):
            # At the step that reads a word, the word is that of the step before.
            return one_hot(true_place(source, step - shifted), source)
        return one_hot(anywhere(source, step, this_layer, this_head), source)

    ranked = rank_readings(engine_of(weights_of), batches())
    assert len(ranked) == 2 * LAYERS * (HEADS + 1)
    assert ranked[0][0] == Reading(layer, head, shifted)
    told = [bits for _, bits in ranked]
    assert told == sorted(told, reverse=True)
    # Which of eight words it is: three bits, nearly all told where the link is always right, none but by
    # chance elsewhere. Ids that never occur take a little of the probabilities.
    assert 2.5 < told[0] < 3.3 and told[1] < told[0] - 0.5
    assert choose_reading(engine_of(weights_of), batches()) == ranked[0][0]


def test_the_mean_of_heads_is_found_where_each_head_alone_is_mostly_wrong():
    def weights_of(layer, head, source, step):
        wrong = one_hot(anywhere(source, step, layer, head), source)
        if layer == 0:
            return wrong
        return 0.45 * one_hot(true_place(source, step), source) + 0.55 * wrong

    assert choose_reading(engine_of(weights_of), batches()) == Reading(1, None, False)


def test_a_head_that_knows_nothing_tells_nothing():
    ranked = rank_readings(
        engine_of(lambda layer, head, source, step: one_hot(anywhere(source, step, layer, head), source)),
        batches(),
    )
    assert all(abs(bits) < 0.35 for _, bits in ranked)


def test_a_model_without_attention_has_no_reading():
    engine = Scripted(FIRST + 2 * NUM_WORDS, lambda source, said: {})
    assert rank_readings(engine, batches(1)) == []
    assert choose_reading(engine, batches(1)) is None


def test_no_pairs_tell_nothing():
    assert choose_reading(engine_of(lambda *_: None), iter(())) is None


def test_no_more_pairs_are_read_than_are_needed():
    engine = engine_of(lambda layer, head, source, step: one_hot(true_place(source, step), source))
    endless = itertools.chain.from_iterable(batches(1, seed=seed) for seed in itertools.count())
    assert choose_reading(engine, endless, max_tokens=500) == Reading(0, None, False)  # of equals the first
