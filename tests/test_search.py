"""Search finds what it should: greedy, beam and trying every sequence agree where they must."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small import VOCAB, random_engine, shrink

from regard.config import LearnedPositions
from regard.contract import Ragged, Step, make_batch
from regard.model.presets import PRESETS
from regard.search.beam import beam, greedy, length_factor
from regard.search.scores import best_id, best_ids, log_normaliser
from regard.vocabulary import BOS, EOS, PAD, UNK

SMALL = {name: shrink(options) for name, options in PRESETS.items() if name != "regard-base"}
FEW_IDS = 7  # so few that `</s>` is often said
EVERY = pytest.mark.parametrize("options", SMALL.values(), ids=SMALL)


def sources_of(seed, rows):
    """Random sentences of different lengths."""
    rng = np.random.default_rng(seed)
    return [rng.integers(UNK, FEW_IDS, length) for length in rng.integers(1, 8, rows)]


def read(sources):
    """The batch of these sentences."""
    return make_batch(Ragged.of(sources), None, np.arange(len(sources)))


def forced(engine, source, ids):
    """What the engine says to one translation of one sentence, `</s>` counted: log-probabilities, attention."""
    said = engine.force(make_batch(Ragged.of([source]), Ragged.of([np.array(ids, np.int64)]), np.arange(1)))
    logits_TV = said.logits_BTV[0].astype(float)
    log_prob_TV = logits_TV - np.log(np.exp(logits_TV).sum(-1, keepdims=True))
    return log_prob_TV[np.arange(len(ids) + 1), [*ids, EOS]], said.attention_BTLNS[0]


def every_sequence(engine, source, max_tokens, vocab_size, alpha):
    """The slow twin: all complete translations of one sentence with their scores, best first."""
    ids = [id for id in range(vocab_size) if id not in (PAD, BOS, EOS)]
    found = []
    for length in range(max_tokens):
        for sequence in product(ids, repeat=length):
            log_prob = forced(engine, source, sequence)[0].sum()
            found.append((log_prob / ((5 + length + 1) / 6) ** alpha, sequence))
    return sorted(found, reverse=True)


@EVERY
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_wide_beam_finds_what_trying_every_sequence_finds(options, alpha):
    vocab_size, max_tokens = 6, 4
    engine = random_engine(options, vocab_size, vocab_size, seed=2)
    source = np.array([4, 5, 3])
    right = every_sequence(engine, source, max_tokens, vocab_size, alpha)
    complete = [one for one in beam(engine, read([source]), max_tokens, 150, alpha)[0] if one.complete]
    assert len(complete) == len(right) == 1 + 3 + 9 + 27
    assert [one.ids for one in complete] == [sequence for _, sequence in right]
    np.testing.assert_allclose([one.score for one in complete], [score for score, _ in right], rtol=1e-4)


@EVERY
def test_a_beam_of_one_is_greedy(options):
    for seed in (1, 2, 3):
        engine = random_engine(options, FEW_IDS, FEW_IDS, seed)
        batch = read(sources_of(seed, 7))
        one_by_one = greedy(engine, batch, 12)
        for beams, single in zip(beam(engine, batch, 12, 1), one_by_one, strict=True):
            assert [best.ids for best in beams] == [single.ids]
            assert (beams[0].complete, len(beams[0].log_probs)) == (single.complete, len(single.log_probs))
            np.testing.assert_allclose(beams[0].log_probs, single.log_probs, atol=1e-5)
            np.testing.assert_allclose(beams[0].attention_TLNS, single.attention_TLNS, atol=1e-6)


@EVERY
def test_what_a_hypothesis_says_of_itself_is_what_forcing_it_says(options):
    """Probabilities and attention follow the right rows through every reordering and every departure."""
    sources, limits = sources_of(5, 8), np.arange(3, 11)
    ways = set()
    for seed in (1, 2, 3):
        engine = random_engine(options, FEW_IDS, FEW_IDS, seed)
        for source, limit, found in zip(sources, limits, beam(engine, read(sources), limits, 4), strict=True):
            assert len({one.ids for one in found}) == len(found) == 4
            for one in found:
                log_probs, attention_TLNS = forced(engine, source, one.ids)
                num_said = len(one.ids) + one.complete
                assert num_said <= limit and (one.complete or num_said == limit)
                np.testing.assert_allclose(one.log_probs, log_probs[:num_said], atol=1e-4)
                np.testing.assert_allclose(one.attention_TLNS, attention_TLNS[:num_said], atol=1e-5)
                assert one.log_prob == pytest.approx(sum(one.log_probs), abs=1e-6)
                assert one.score == pytest.approx(one.log_prob / length_factor(num_said, 1.0))
                ways.add(one.complete)
    assert ways == {False, True}


@EVERY
@pytest.mark.parametrize(
    "search", [lambda *given: [[one] for one in greedy(*given)], lambda *given: beam(*given, 4)]
)
def test_a_sentence_says_the_same_alone_and_in_any_company(options, search):
    engine = random_engine(options, FEW_IDS, FEW_IDS)
    sources, limits = sources_of(6, 10), list(range(3, 13))

    def said(sources, limits):
        beams = search(engine, read(sources), np.array(limits))
        return [[(one.ids, one.complete) for one in found] for found in beams]

    together = said(sources, limits)
    assert said(sources[::-1], limits[::-1]) == together[::-1]
    assert [said([source], [limit])[0] for source, limit in zip(sources, limits, strict=True)] == together


@EVERY
def test_neither_padding_nor_the_beginning_is_ever_said(options):
    engine = random_engine(options, 8, 8)
    for found in beam(engine, read([np.array([4]), np.array([5, 6])]), 6, 30):
        assert not {PAD, BOS, EOS} & {id for one in found for id in one.ids}


def test_complete_translations_come_before_cut_ones_and_better_before_worse():
    engine = random_engine(SMALL["regard-small"], 8, 8)
    (found,) = beam(engine, read([np.array([4, 5])]), 3, 20)
    keys = [(one.complete, one.score) for one in found]
    assert len({one.complete for one in found}) == 2 and keys == sorted(keys, reverse=True)


def test_no_translation_is_longer_than_the_engine_can_read():
    options = SMALL["regard-small"].model_copy(update={"positions": LearnedPositions(max_positions=5)})
    engine = random_engine(options)
    assert engine.max_tokens == 5
    batch = read([np.array([7, 8, 9]), np.array([7])])
    said = [*greedy(engine, batch, 50), *(one for found in beam(engine, batch, 50, 3) for one in found)]
    assert max(len(one.ids) for one in said) == 5


class Chain:
    """An engine that looks at the last id only: the probability of each next one is written down here."""

    max_tokens = None

    def __init__(self, probs):
        self.log_prob_VV = np.full((6, 6), -100, np.float32)
        for (last, id), prob in probs.items():
            self.log_prob_VV[last, id] = np.log(prob)
        self.num_steps = 0

    def start(self, batch):
        return self

    def select(self, rows):
        return self

    def step(self, state, ids_R):
        self.num_steps += 1
        return Step(self.log_prob_VV[ids_R], np.empty((len(ids_R), 0, 0, 2), np.float32), self)


def test_a_search_ends_when_no_open_hypothesis_can_win():
    """Worked out by hand: 3 has 0.6 x 0.9 and 4 has 0.4; 3 3 is still open, with 0.06."""
    engine = Chain({(BOS, 3): 0.6, (BOS, 4): 0.4, (3, EOS): 0.9, (3, 3): 0.1, (4, EOS): 1.0})
    (found,) = beam(engine, read([np.array([3])]), 100, 2)
    assert [one.ids for one in found] == [(3,), (4,)]
    assert np.exp([one.log_prob for one in found]) == pytest.approx([0.54, 0.4])
    assert engine.num_steps == 2


def test_a_search_goes_on_while_an_open_hypothesis_can_win():
    """After two steps 4 has 0.1 and 3 has 0.045, but 3 5 is open with 0.855 and ends at the next."""
    engine = Chain({(BOS, 3): 0.9, (BOS, 4): 0.1, (3, EOS): 0.05, (3, 5): 0.95, (4, EOS): 1.0, (5, EOS): 1.0})
    (found,) = beam(engine, read([np.array([3])]), 100, 2, 0.0)
    assert [one.ids for one in found] == [(3, 5), (4,)]
    assert np.exp([one.log_prob for one in found]) == pytest.approx([0.855, 0.1])
    assert engine.num_steps == 3


def test_a_longer_translation_is_forgiven_a_smaller_probability():
    assert length_factor(1, 1.0) == 1.0
    assert length_factor(7, 1.0) == 2.0
    assert length_factor(7, 0.0) == 1.0


@settings(deadline=None)
@given(st.integers(3, 400), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_the_best_ids_are_those_of_sorting_the_whole_row(vocab_size, num_best, seed):
    logits_RV = np.random.default_rng(seed).standard_normal((3, vocab_size)).astype("f4") * 10
    right = [[id for id in np.argsort(-row).tolist() if id not in (PAD, BOS)][:num_best] for row in logits_RV]
    assert best_ids(logits_RV, num_best).tolist() == right
    assert best_id(logits_RV).tolist() == [row[0] for row in right]


def test_the_normaliser_makes_probabilities_sum_to_one_without_overflow():
    logits_RV = np.random.default_rng(1).standard_normal((70, VOCAB)).astype("f4") * 300
    log_prob_RV = logits_RV - log_normaliser(logits_RV)[:, None]
    np.testing.assert_allclose(np.exp(log_prob_RV).sum(1), 1, rtol=1e-4)
