"""Sampling draws what it should as often as it should, and the same wherever a sentence stands."""

from collections import Counter

import numpy as np
import pytest
from searches import (
    EVERY,
    FEW_IDS,
    Chain,
    assert_clear_margins_can_be_trusted,
    forced,
    read,
    sources_of,
    task_of,
)
from small import random_engine

from regard.options.search import RiskOptions, SampleOptions
from regard.search.walk import greedy, sample
from regard.vocabulary import BOS, EOS

# Of surprises 0.92, 1.20, 1.61 and 2.30, and an entropy of 1.28: the most typical is 4, then 5, 3 and 6.
FOUR = {(BOS, 3): 0.4, (BOS, 4): 0.3, (BOS, 5): 0.2, (BOS, 6): 0.1} | {(id, EOS): 1.0 for id in (3, 4, 5, 6)}
SOURCE = np.array([3])


def draw(engine, options, num_samples, key=1, limit=9):
    """All that is drawn for one sentence."""
    (found,) = sample(engine, task_of(read([SOURCE]), limit), options, [key], num_samples)
    return found.hypotheses


def assert_drawn_as_likely_as(counts, probs):
    """Within five standard deviations of the binomial distribution, and nothing else at all."""
    num = sum(counts.values())
    assert set(counts) <= set(probs) and sum(probs.values()) == pytest.approx(1)
    for ids, prob in probs.items():
        assert abs(counts[ids] - num * prob) <= 5 * (num * prob * (1 - prob)) ** 0.5


def test_whole_translations_are_drawn_as_often_as_they_are_likely():
    engine = Chain(
        {(BOS, 3): 0.6, (BOS, 4): 0.3, (BOS, EOS): 0.1}
        | {(3, 4): 0.75, (3, EOS): 0.25, (4, EOS): 0.8, (4, 5): 0.2, (5, EOS): 1.0}
    )
    right = {(): 0.1, (3,): 0.15, (4,): 0.24, (4, 5): 0.06, (3, 4): 0.36, (3, 4, 5): 0.09}
    drawn = draw(engine, SampleOptions(), 3000)
    assert_drawn_as_likely_as(Counter(one.ids for one in drawn), right)
    for one in drawn:
        assert np.exp(one.log_prob) == pytest.approx(right[one.ids], rel=1e-5)


def test_other_keys_draw_as_often_too():
    task = task_of(read([SOURCE] * 3000), 9)
    found = sample(Chain(FOUR), task, SampleOptions(), list(range(3000)), 1)
    counts = Counter(one.hypotheses[0].ids for one in found)
    assert_drawn_as_likely_as(counts, {(3,): 0.4, (4,): 0.3, (5,): 0.2, (6,): 0.1})


@pytest.mark.parametrize(
    "wanted, weights",
    [
        ({"top_k": 2}, {3: 4, 4: 3}),
        ({"top_k": 100}, {3: 4, 4: 3, 5: 2, 6: 1}),
        ({"top_p": 0.39}, {3: 1}),
        ({"top_p": 0.6}, {3: 4, 4: 3}),
        ({"top_p": 0.8}, {3: 4, 4: 3, 5: 2}),
        ({"top_p": 1.0}, {3: 4, 4: 3, 5: 2, 6: 1}),
        ({"typical_p": 0.29}, {4: 1}),
        ({"typical_p": 0.45}, {4: 3, 5: 2}),
        ({"typical_p": 0.8}, {4: 3, 5: 2, 3: 4}),
        ({"top_k": 3, "top_p": 0.6}, {3: 4, 4: 3}),
        ({"top_k": 2, "top_p": 0.8}, {3: 4, 4: 3}),
        ({"top_k": 2, "typical_p": 0.45}, {4: 3, 3: 4}),  # 5 is gone, so 3 must make up 0.45
        ({"top_k": 1, "typical_p": 0.2}, {3: 1}),  # the most typical is gone
        ({"temperature": 0.5}, {3: 16, 4: 9, 5: 4, 6: 1}),
        ({"temperature": 2.0}, {3: 4**0.5, 4: 3**0.5, 5: 2**0.5, 6: 1}),
        ({"temperature": 0.5, "top_p": 0.6}, {3: 16, 4: 9}),  # at 16/30 it is not yet 0.6
        ({"temperature": 0.5, "top_p": 0.5}, {3: 1}),  # at 16/30 it is
    ],
    ids=str,
)
@pytest.mark.parametrize("cls", [SampleOptions, RiskOptions])
def test_options_leave_the_choice_worked_out_by_hand(cls, wanted, weights):
    drawn = draw(Chain(FOUR), cls(**wanted), 1000)
    total = sum(weights.values())
    assert_drawn_as_likely_as(
        Counter(one.ids for one in drawn), {(id,): weight / total for id, weight in weights.items()}
    )
    for one in drawn:  # the model's own, whatever was left of them
        assert np.exp(one.log_prob) == pytest.approx(FOUR[BOS, one.ids[0]], rel=1e-5)


@EVERY
def test_a_temperature_near_zero_is_greedy(options):
    engine = random_engine(options, FEW_IDS, FEW_IDS, 3)
    task = task_of(read(sources_of(3, 6)), 8)
    cold = sample(engine, task, SampleOptions(temperature=1e-5), list(range(6)), 3)
    for drawn, best in zip(cold, greedy(engine, task), strict=True):
        assert {one.ids for one in drawn.hypotheses} == {best.hypotheses[0].ids}
        assert drawn.margin == pytest.approx(best.margin, abs=1e-3)  # in the scores of the model


@EVERY
def test_the_same_key_draws_the_same_in_any_company(options):
    engine = random_engine(options, FEW_IDS, FEW_IDS, 2)
    sources, limits = sources_of(7, 8), np.arange(3, 11)
    keys = [5 + 2**63, 6 + 2**63, *range(6)]
    wanted = SampleOptions(top_p=0.95)

    def said(chosen, num_samples):
        task = task_of(read([sources[n] for n in chosen]), limits[chosen])
        found = sample(engine, task, wanted, [keys[n] for n in chosen], num_samples)
        return [[one.ids for one in drawn.hypotheses] for drawn in found]

    together = said(list(range(8)), 4)
    assert said(list(range(8))[::-1], 4) == together[::-1]
    assert [said([n], 4)[0] for n in range(8)] == together
    assert said(list(range(8)), 2) == [drawn[:2] for drawn in together]


@EVERY
def test_other_keys_and_other_samples_draw_something_else(options):
    engine = random_engine(options, FEW_IDS, FEW_IDS, 2)
    task = task_of(read([np.array([4, 5])] * 3), 8)
    for keys in ((1, 2, 3), (2**63 + 1, 2**63 + 2, 2**63 + 3)):
        found = sample(engine, task, SampleOptions(temperature=5), keys, 4)
        drawn = [tuple(one.ids for one in found_one.hypotheses) for found_one in found]
        assert len(set(drawn)) == 3 and all(len(set(samples)) > 1 for samples in drawn)


@EVERY
def test_probabilities_of_samples_are_those_of_the_model(options):
    engine = random_engine(options, FEW_IDS, FEW_IDS, 4)
    sources = sources_of(4, 3)
    wanted = SampleOptions(temperature=2.5, top_k=4)
    task = task_of(read(sources), 7, no_repeat_ngram=2)
    for source, found in zip(sources, sample(engine, task, wanted, [1, 2, 3], 3), strict=True):
        for one in found.hypotheses:
            log_probs, attention_TS = forced(engine, source, one.ids)
            num_said = len(one.ids) + one.complete
            np.testing.assert_allclose(one.log_probs, log_probs[:num_said], atol=1e-4)
            np.testing.assert_allclose(one.attention_TS, attention_TS[:num_said], atol=1e-5)
            assert one.log_prob == pytest.approx(sum(one.log_probs), abs=1e-6)
            assert one.score == pytest.approx(one.log_prob / ((5 + num_said) / 6))


@pytest.mark.parametrize(
    "wanted",
    [
        {"top_k": 1},
        {"top_k": 3},
        {"top_p": 0.5},
        {"top_p": 0.6},
        {"typical_p": 0.5},
        {"typical_p": 0.75},
        {"top_k": 5, "typical_p": 0.5},
        {"top_p": 0.75, "typical_p": 0.5},
        {"top_p": 0.5, "typical_p": 0.3},  # whether 0.125 is in the first decides what is in the second
        {"temperature": 0.02, "top_k": 1},
        {"temperature": 0.1, "top_p": 0.5},
        {"temperature": 3.0, "top_k": 3},
    ],
    ids=str,
)
def test_what_is_drawn_by_a_clear_margin_is_drawn_again(wanted):
    keys = list(range(60))
    assert_clear_margins_can_be_trusted(
        lambda engine, batch: sample(engine, task_of(batch, 5), SampleOptions(**wanted), keys, 1),
        jitter=2e-5,  # of which a difference of two log-probabilities may get eight times, in two runs
    )


def test_the_margin_is_that_of_all_samples():
    options = SampleOptions(top_k=3)
    assert_clear_margins_can_be_trusted(
        lambda engine, batch: sample(engine, task_of(batch, 3), options, list(range(60)), 2),
        jitter=2e-5,
        num_best=2,
    )


@pytest.mark.parametrize("temperature", [0.05, 1.0, 3.0])
def test_draws_from_all_ids_can_be_trusted_at_any_temperature(temperature):
    """The noise makes near ties rare, so the jitter is large; a margin has the unit of the model's scores."""
    keys, options, jitter = list(range(60)), SampleOptions(temperature=temperature), 0.02 * temperature
    assert_clear_margins_can_be_trusted(
        lambda engine, batch: sample(engine, task_of(batch, 5), options, keys, 1), jitter, 4 * jitter
    )


def test_margins_of_samples_are_not_all_small():
    """Only what is near the edge of a choice is doubtful, or everything would be translated twice."""
    engine = Chain(FOUR)
    task = task_of(read([SOURCE] * 200), 9)
    for wanted in ({"top_k": 2}, {"top_p": 0.6}, {"typical_p": 0.45}, {"temperature": 0.01}):
        found = sample(engine, task, SampleOptions(**wanted), list(range(200)), 1)
        assert np.mean([one.margin > 1e-3 for one in found]) > 0.9
