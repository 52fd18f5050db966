"""Several models say a word together; of several translations the one most like all others is found."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import CHRF
from searches import EVERY, FEW_IDS, SMALL, Chain, read, sources_of, task_of
from small import random_engine, shrink

from regard.contract import Ragged, make_batch
from regard.options.model import LearnedPositions
from regard.options.search import BeamOptions
from regard.search.beam import beam
from regard.search.ensemble import Ensemble
from regard.search.risk import by_risk, pairwise_chrf
from regard.search.walk import greedy
from regard.vocabulary import BOS, EOS

DESIGNS = list(SMALL.values())


def probs_of(logits):
    """The probabilities that scores stand for."""
    exponents = np.exp(logits.astype(float))
    return exponents / exponents.sum(axis=-1, keepdims=True)


def team_of(options):
    """Three models: one of this design, one of another, and another one of this."""
    other = DESIGNS[DESIGNS.index(options) - 1]
    return [random_engine(design, FEW_IDS, FEW_IDS, n) for n, design in enumerate((options, other, options))]


def targeted(seed, rows):
    """Sentences with translations."""
    return make_batch(
        Ragged.of(sources_of(seed, rows)), Ragged.of(sources_of(seed + 1, rows)), np.arange(rows)
    )


def test_two_models_say_the_mean_of_their_probabilities_by_hand():
    one = Chain({(BOS, 3): 0.9, (BOS, 4): 0.1, (3, EOS): 1.0, (4, EOS): 1.0})
    two = Chain({(BOS, 3): 0.2, (BOS, 4): 0.8, (3, EOS): 0.5, (3, 4): 0.5, (4, EOS): 1.0})
    (found,) = beam(Ensemble([one, two]), task_of(read([np.array([3])]), 9), BeamOptions(beam_size=3), 3)
    assert {best.ids: float(np.exp(best.log_prob)) for best in found.hypotheses} == pytest.approx(
        {(3,): 0.55 * 0.75, (4,): 0.45, (3, 4): 0.55 * 0.25}
    )


@EVERY
def test_the_probabilities_of_an_ensemble_are_the_mean_of_its_members(options):
    """Forced by each member all at once, by the ensemble step by step."""
    members, batch = team_of(options), targeted(1, 4)
    said = Ensemble(members).force(batch)
    alone = [member.force(batch) for member in members]
    right = np.mean([probs_of(one.logits_BTV) for one in alone], axis=0)
    np.testing.assert_allclose(np.exp(said.logits_BTV), right, atol=1e-5)
    np.testing.assert_allclose(said.attention_BTLNS, alone[0].attention_BTLNS, atol=1e-5)


@EVERY
def test_rows_of_an_ensemble_follow_a_selection(options):
    members, sources = team_of(options), sources_of(2, 4)
    ensemble, rows = Ensemble(members), np.array([3, 1, 1])
    first = ensemble.step(ensemble.start(read(sources)), np.full(4, BOS))
    chosen = ensemble.step(first.state.select(rows), np.array([4, 5, 6]))
    for row, (sentence, id) in enumerate(zip(rows, (4, 5, 6), strict=True)):
        alone = []
        for member in members:
            begun = member.step(member.start(read([sources[sentence]])), np.array([BOS]))
            alone.append(probs_of(member.step(begun.state, np.array([id])).logits_RV[0]))
        np.testing.assert_allclose(np.exp(chosen.logits_RV[row]), np.mean(alone, axis=0), atol=1e-5)


@EVERY
def test_a_model_with_itself_translates_as_it_does_alone(options):
    engine = random_engine(options, FEW_IDS, FEW_IDS, 3)
    task = task_of(read(sources_of(3, 6)), 8)
    for search in (greedy, lambda *given: beam(*given, BeamOptions(beam_size=4), 4)):
        twice, once = search(Ensemble([engine, engine]), task), search(engine, task)
        for one, right in zip(twice, once, strict=True):
            assert [best.ids for best in one.hypotheses] == [best.ids for best in right.hypotheses]
            for best, right_best in zip(one.hypotheses, right.hypotheses, strict=True):
                np.testing.assert_allclose(best.log_probs, right_best.log_probs, atol=1e-4)
                np.testing.assert_allclose(best.attention_TS, right_best.attention_TS, atol=1e-5)


def test_an_ensemble_reads_no_more_than_its_shortest_member():
    options = SMALL["regard-small"]

    def model(max_positions):
        positions = LearnedPositions(max_positions=max_positions)
        return random_engine(
            shrink(options.model_copy(update={"positions": positions}), max_positions=max_positions)
        )

    endless = random_engine(SMALL["bahdanau2015"])
    assert endless.max_tokens is None
    assert Ensemble([model(7), model(5), endless]).max_tokens == 5
    assert Ensemble([endless, endless]).max_tokens is None


TEXTS = [
    "",
    " ",
    "a",
    "ab",
    "the cat sat on the mat",
    "the cat sat on a mat.",
    "The  cat sat\ton the mat\n",
    "aaaaaaaaaa",
    "aaa",
    "고양이가 매트 위에 앉았다",
    "고양이는 매트 위에 앉아 있다",
    "猫\u3000が 座った",
    "猫が座った",
    "soft\u00adhyphen a\u00a0b",
    "e\u0301 é",
    "😀😀 ok",
]


def sacrebleu_chrf(texts):
    """The chrF of every text against every text, by sacreBLEU as it comes."""
    metric = CHRF()
    return np.array([[metric.sentence_score(text, [other]).score / 100 for other in texts] for text in texts])


def test_chrf_is_that_of_sacrebleu():
    np.testing.assert_allclose(pairwise_chrf(TEXTS), sacrebleu_chrf(TEXTS), atol=1e-12)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text("abc 가나\t\u3000.", max_size=14), min_size=1, max_size=4))
def test_chrf_is_that_of_sacrebleu_for_any_texts(texts):
    np.testing.assert_allclose(pairwise_chrf(texts), sacrebleu_chrf(texts), atol=1e-12)


def test_the_text_nearest_to_all_others_comes_first():
    texts = ["quite another", "the cat sat", "the cat sat here", "sat here", "nothing like it"]
    utility = sacrebleu_chrf(texts).sum(axis=1)
    assert by_risk(texts) == sorted(range(5), key=lambda n: -utility[n])
    assert by_risk(texts)[0] == 2  # it has all that 1 and 3 say


def test_what_was_drawn_often_counts_often():
    """Two that agree with nobody: the one drawn twice is nearer to all that was drawn, wherever it stands."""
    assert by_risk(["xyz", "abc"]) == [0, 1]
    assert by_risk(["xyz", "abc", "abc"]) == [1, 2, 0]
    assert by_risk(["abc", "xyz", "abc"]) == [0, 2, 1]
    texts = ["the cat sat here", "a dog", "a dog", "the cat sat there", "a dog"]
    utility = sacrebleu_chrf(texts).sum(axis=1)
    assert by_risk(texts) == sorted(range(5), key=lambda n: -utility[n])


def test_of_equals_the_first_comes_first():
    assert by_risk(["same"] * 4) == [0, 1, 2, 3]
    assert by_risk(["", "", ""]) == [0, 1, 2]
    letters = [chr(ord("a") + n) * 3 for n in range(20)]  # nothing in common with each other
    assert by_risk(letters) == list(range(20))
    assert by_risk(letters[::-1]) == list(range(20))
