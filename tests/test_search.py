"""Search finds what it should: greedy, beam and trying every sequence agree where they must."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from searches import (
    EVERY,
    FEW_IDS,
    SMALL,
    Chain,
    assert_clear_margins_can_be_trusted,
    forced,
    read,
    sources_of,
    task_of,
)
from small import VOCAB, random_engine

from regard.alignment.reading import USUAL_READING
from regard.options.model import LearnedPositions
from regard.options.search import BeamOptions, SampleOptions
from regard.search.beam import beam as beam_search
from regard.search.scores import best_ids, best_two, log_normaliser
from regard.search.task import length_factor
from regard.search.walk import greedy as greedy_search
from regard.search.walk import sample
from regard.vocabulary import BOS, EOS, PAD


def greedy(engine, batch, max_tokens, **rules):
    """The one hypothesis that greedy search finds for each sentence."""
    return [one.hypotheses[0] for one in greedy_search(engine, task_of(batch, max_tokens, **rules))]


def beam(engine, batch, max_tokens, beam_size, alpha=1.0, rules=None, **options):
    """The hypotheses that beam search finds for each sentence, best first."""
    wanted = BeamOptions(beam_size=beam_size, length_penalty=alpha, **options)
    found = beam_search(engine, task_of(batch, max_tokens, **(rules or {})), wanted, beam_size)
    return [list(one.hypotheses) for one in found]


def repeats(ids, ngram):
    """Whether the last `ngram` ids have been said before."""
    runs = [tuple(ids[n : n + ngram]) for n in range(len(ids) - ngram + 1)]
    return runs[-1:] != [] and runs[-1] in runs[:-1]


def penalty(attention_TS, beta):
    """Wu et al. 2016, eq. 14: β Σ_i log min(Σ_t α_ti, 1), where what was never looked at counts 1e-4."""
    return beta * sum(np.log(min(max(seen, 1e-4), 1.0)) for seen in np.sum(attention_TS, axis=0))


def every_sequence(engine, source, max_tokens, vocab_size, alpha, beta=0.0, ngram=None):
    """The slow twin: all complete translations of one sentence with their scores, best first."""
    ids = [id for id in range(vocab_size) if id not in (PAD, BOS, EOS)]
    found = []
    for length in range(max_tokens):
        for sequence in product(ids, repeat=length):
            if ngram and any(repeats(sequence[:n], ngram) for n in range(length + 1)):
                continue
            log_probs, attention_TS = forced(engine, source, sequence)
            score = log_probs.sum() / ((5 + length + 1) / 6) ** alpha + penalty(attention_TS, beta)
            found.append((score, sequence))
    return sorted(found, reverse=True)


@EVERY
@pytest.mark.parametrize(
    "alpha, beta, ngram, num_sequences",
    [
        (0.0, 0.0, None, 1 + 3 + 9 + 27),
        (1.0, 0.0, None, 1 + 3 + 9 + 27),
        (1.0, 0.5, None, 1 + 3 + 9 + 27),
        (0.6, 0.2, 1, 1 + 3 + 3 * 2 + 3 * 2 * 1),
        (1.0, 0.0, 2, 1 + 3 + 9 + 24),  # aaa, bbb and ccc say two alike twice
    ],
)
def test_a_wide_beam_finds_what_trying_every_sequence_finds(options, alpha, beta, ngram, num_sequences):
    vocab_size, max_tokens = 6, 4
    engine = random_engine(options, vocab_size, vocab_size, seed=2)
    source = np.array([4, 5, 3])
    right = every_sequence(engine, source, max_tokens, vocab_size, alpha, beta, ngram)
    found = beam(
        engine, read([source]), max_tokens, 150, alpha, {"no_repeat_ngram": ngram}, coverage_penalty=beta
    )[0]
    complete = [one for one in found if one.complete]
    assert len(complete) == len(right) == num_sequences
    assert [one.ids for one in complete] == [sequence for _, sequence in right]
    np.testing.assert_allclose([one.score for one in complete], [score for score, _ in right], rtol=1e-4)


def slow_beam(engine, source, limit, options, prefix=(), ngram=None):
    """The slow twin of beam search: one sentence, one hypothesis after another, lists that are sorted.

    Returns (score, ids, complete), best first.
    """
    finished = []
    opened = [(0.0, (), np.zeros((0, len(source) + 1)), engine.start(read([source])))]
    for num_said in range(1, limit + 1):
        factor = ((5 + num_said) / 6) ** options.length_penalty
        candidates = []
        for log_prob, ids, looked_TS, state in opened:
            step = engine.step(state, np.array([ids[-1] if ids else BOS]))
            logits = step.logits_RV[0].astype(float)
            log_probs = logits - np.log(np.exp(logits).sum())
            look_RS = USUAL_READING.look(step.attention_RLNS)
            seen_TS = np.concatenate([looked_TS, look_RS]) if look_RS.shape[1] else looked_TS[:, :0]
            if num_said <= len(prefix):
                allowed = [prefix[num_said - 1]]
            else:
                allowed = [id for id in range(EOS, len(logits)) if not (ngram and repeats((*ids, id), ngram))]
            siblings = sorted(allowed, key=lambda one: -log_probs[one])
            for rank, id in enumerate(siblings):
                total = log_prob + log_probs[id]
                key = total - options.diversity * rank
                candidates.append((key, total, (*ids, id), seen_TS, step.state))
        candidates.sort(key=lambda candidate: -candidate[0])
        for _, total, ids, seen_TS, _ in candidates[: options.beam_size]:
            if ids[-1] == EOS or num_said == limit:
                score = total / factor + penalty(seen_TS, options.coverage_penalty)
                finished.append((ids[-1] == EOS, score, ids))
        finished = sorted(finished, key=lambda one: one[:2], reverse=True)[: options.beam_size]
        opened = [one[1:] for one in candidates if one[2][-1] != EOS][: options.beam_size]
        if not opened:
            break
        best_open = max(one[0] for one in opened) / factor
        if len(finished) == options.beam_size and best_open <= finished[-1][1]:
            break
    return [(score, ids[:-1] if complete else ids, complete) for complete, score, ids in finished]


BEAMS = {
    "plain": (BeamOptions(beam_size=5), False, None),
    "no length penalty": (BeamOptions(beam_size=3, length_penalty=0), False, None),
    "coverage": (BeamOptions(beam_size=3, length_penalty=0.6, coverage_penalty=0.4), False, None),
    "diversity": (BeamOptions(beam_size=5, diversity=0.7), False, None),
    "no repetition": (BeamOptions(beam_size=3), False, 2),
    "prefix": (BeamOptions(beam_size=2), True, None),
    "all": (BeamOptions(beam_size=2, length_penalty=2, coverage_penalty=0.2, diversity=0.2), True, 1),
}


@EVERY
@pytest.mark.parametrize("wanted, forces_prefix, ngram", BEAMS.values(), ids=BEAMS)
def test_a_narrow_beam_finds_what_its_slow_twin_finds(options, wanted, forces_prefix, ngram):
    compared = 0
    for seed in (1, 2):
        engine = random_engine(options, FEW_IDS, FEW_IDS, seed)
        sources, limits = sources_of(seed, 5), np.array([8, 1, 6, 9, 3])
        prefixes = [np.array(ids, np.int64) for ids in ((), (4,), (5, 5), (3, 4, 6), (6, 5))]
        task = task_of(
            read(sources), limits, prefixes=prefixes if forces_prefix else None, no_repeat_ngram=ngram
        )
        found = beam_search(engine, task, wanted, wanted.beam_size)
        for one, source, limit, prefix in zip(found, sources, limits, prefixes, strict=True):
            if one.margin < 1e-5:
                continue  # another order of summing would find something else
            right = slow_beam(engine, source, limit, wanted, prefix if forces_prefix else (), ngram)
            assert [(best.ids, best.complete) for best in one.hypotheses] == [best[1:] for best in right]
            np.testing.assert_allclose(
                [best.score for best in one.hypotheses], [best[0] for best in right], atol=1e-4
            )
            compared += 1
    assert compared >= 8  # of 10


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
            np.testing.assert_allclose(beams[0].attention_TS, single.attention_TS, atol=1e-6)


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
                log_probs, attention_TS = forced(engine, source, one.ids)
                num_said = len(one.ids) + one.complete
                assert num_said <= limit and (one.complete or num_said == limit)
                np.testing.assert_allclose(one.log_probs, log_probs[:num_said], atol=1e-4)
                np.testing.assert_allclose(one.attention_TS, attention_TS[:num_said], atol=1e-5)
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


SEARCHES = {
    "greedy": lambda engine, task: greedy_search(engine, task),
    "beam": lambda engine, task: beam_search(engine, task, BeamOptions(beam_size=4), 4),
    "sampling": lambda engine, task: sample(
        engine, task, SampleOptions(), list(range(len(task.max_tokens_B))), 4
    ),
}
EACH_SEARCH = pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)


@EVERY
@EACH_SEARCH
def test_a_prefix_is_said_with_the_probabilities_the_model_gives_it(options, search):
    sources = sources_of(4, 5)
    prefixes = [np.array(ids, np.int64) for ids in ((), (4,), (5, 5, 5, 5), (6, 3), (3, 4, 3, 4, 3, 4))]
    engine = random_engine(options, FEW_IDS, FEW_IDS, seed=1)
    for ngram in (None, 1, 2):
        found = search(engine, task_of(read(sources), 9, prefixes=prefixes, no_repeat_ngram=ngram))
        for source, prefix, one in zip(sources, prefixes, found, strict=True):
            for said in one.hypotheses:
                assert said.ids[: len(prefix)] == tuple(prefix)
            said = one.hypotheses[-1]
            log_probs, attention_TS = forced(engine, source, said.ids)
            num_said = len(said.ids) + said.complete
            np.testing.assert_allclose(said.log_probs, log_probs[:num_said], atol=1e-4)
            np.testing.assert_allclose(said.attention_TS, attention_TS[:num_said], atol=1e-5)


@EACH_SEARCH
def test_a_prefix_longer_than_the_limit_is_cut_there(search):
    engine = random_engine(SMALL["regard-small"], FEW_IDS, FEW_IDS)
    (found,) = search(engine, task_of(read([np.array([4])]), 2, prefixes=[np.array([5, 6, 4])]))
    assert {(one.ids, one.complete) for one in found.hypotheses} == {((5, 6), False)}


@EVERY
@EACH_SEARCH
@pytest.mark.parametrize("ngram", [1, 2, 3])
def test_no_run_is_said_twice_but_in_a_prefix(options, search, ngram):
    prefix = np.array([4, 4, 4, 4])
    broken = 0
    for seed in (1, 2):
        engine = random_engine(options, FEW_IDS, FEW_IDS, seed)
        sources = sources_of(seed, 6)
        prefixes = [prefix[: 4 * (n % 2)] for n in range(6)]
        for rule in (None, ngram):
            found = search(engine, task_of(read(sources), 14, prefixes=prefixes, no_repeat_ngram=rule))
            for start, one in zip(prefixes, found, strict=True):
                for said in one.hypotheses:
                    own = range(len(start) + 1, len(said.ids) + 1)
                    repeated = any(repeats(said.ids[:end], ngram) for end in own)
                    assert rule is None or not repeated
                    broken += repeated
    assert broken  # without the rule it happens


@EVERY
def test_n_best_translations_are_all_different_and_the_best_comes_first(options):
    for wanted in (
        BeamOptions(beam_size=5),
        BeamOptions(beam_size=5, coverage_penalty=0.5),
        BeamOptions(beam_size=5, diversity=1.0),
    ):
        engine = random_engine(options, FEW_IDS, FEW_IDS, 3)
        for found in beam_search(engine, task_of(read(sources_of(3, 6)), 9), wanted, 5):
            said = [(one.ids, one.complete) for one in found.hypotheses]
            assert len(set(said)) == len(said) == 5
            scores = [one.score for one in found.hypotheses if one.complete]
            assert scores == sorted(scores, reverse=True)


def test_siblings_pay_for_their_rank_and_only_at_the_step():
    """Worked out by hand: 3 has 0.6 x (0.5, 0.5) and 4 has 0.4 x 0.7; without diversity both children of 3 stay,
    with it the second one pays and the only child of 4 stays instead; what they paid is in no score."""
    engine = Chain(
        {(BOS, 3): 0.6, (BOS, 4): 0.4}
        | {(3, 5): 0.51, (3, 6): 0.49, (4, 7): 0.7, (4, EOS): 0.3}
        | {(5, EOS): 1.0, (6, EOS): 1.0, (7, EOS): 1.0}
    )
    for diversity, right in ((0.0, {(3, 5): 0.306, (3, 6): 0.294}), (0.2, {(3, 5): 0.306, (4, 7): 0.28})):
        (found,) = beam(engine, read([np.array([3])]), 9, 2, diversity=diversity)
        assert {one.ids: float(np.exp(one.log_prob)) for one in found} == pytest.approx(right)
        assert found[0].score == pytest.approx(np.log(0.306) / (8 / 6))


def test_coverage_decides_between_equally_likely_translations():
    """Wu et al. 2016, eq. 14, by hand: both translations have 0.5; one looks at half of the source only."""

    class Looking(Chain):
        def step(self, state, ids_R):
            said = super().step(state, ids_R)
            looks = {BOS: (0.5, 0.5), 3: (0.0, 0.2), 4: (0.5, 0.5)}
            attention_RS = np.array([looks.get(id, (0.0, 0.0)) for id in ids_R.tolist()], np.float32)
            return type(said)(said.logits_RV, attention_RS[:, None, None], said.state)

    engine = Looking({(BOS, 3): 0.5, (BOS, 4): 0.5, (3, EOS): 1.0, (4, EOS): 1.0})
    (found,) = beam(engine, read([np.array([3])]), 9, 2, 0.0, coverage_penalty=0.3)
    assert [one.ids for one in found] == [(4,), (3,)]
    assert found[0].score == pytest.approx(np.log(0.5))
    assert found[1].score == pytest.approx(np.log(0.5) + 0.3 * (np.log(0.5) + np.log(0.7)))
    assert found[1].log_prob == pytest.approx(np.log(0.5))


def test_the_margin_of_greedy_search_is_its_closest_choice():
    engine = Chain({(BOS, 3): 0.6, (BOS, 4): 0.4, (3, 5): 0.55, (3, EOS): 0.45, (5, EOS): 0.9, (5, 3): 0.1})
    (found,) = greedy_search(engine, task_of(read([np.array([3])]), 9))
    assert found.hypotheses[0].ids == (3, 5)
    assert found.margin == pytest.approx(np.log(0.55 / 0.45))
    (found,) = greedy_search(engine, task_of(read([np.array([3])]), 9, prefixes=[np.array([3, 5])]))
    assert found.margin == pytest.approx(np.log(0.9 / 0.1))  # a prefix is no choice


MARGINS = {
    # 4 stays open by 0.31 : 0.29 before 5; later all is clear.
    "staying open": (
        {(BOS, 3): 0.4, (BOS, 4): 0.31, (BOS, 5): 0.29, (3, EOS): 1.0, (4, EOS): 1.0},
        {"length_penalty": 0},
        np.log(0.31 / 0.29),
    ),
    # 3 wins by 0.5 : 0.4 over 4, which had stayed open by 0.4 : 0.1.
    "being first": (
        {(BOS, 3): 0.5, (BOS, 4): 0.4, (BOS, 5): 0.1, (3, EOS): 1.0, (4, EOS): 1.0},
        {"length_penalty": 0},
        np.log(0.5 / 0.4),
    ),
    # 4 would be finished if its 0.18 came before the 0.22 of 4 5.
    "finishing": (
        {
            (BOS, 3): 0.6,
            (BOS, 4): 0.4,
            (3, 5): 0.8,
            (3, EOS): 0.2,
            (4, 5): 0.55,
            (4, EOS): 0.45,
            (5, EOS): 1.0,
        },
        {"length_penalty": 0},
        np.log(0.22 / 0.18),
    ),
    # 3 3 is open with 0.24 when 4 has finished with 0.28, both of two tokens.
    "going on": (
        {(BOS, 3): 0.6, (BOS, 4): 0.4, (3, EOS): 0.6, (3, 3): 0.4, (4, EOS): 0.7, (4, 3): 0.3},
        {"length_penalty": 1},
        np.log(0.28 / 0.24) / (7 / 6),
    ),
    # If 5 came before 4, not 5 but 4 would pay twice.
    "siblings": (
        {(BOS, 3): 0.4, (BOS, 4): 0.32, (BOS, 5): 0.28, (3, EOS): 1.0, (4, EOS): 1.0},
        {"length_penalty": 0, "diversity": 1},
        np.log(0.32 / 0.28),
    ),
}


@pytest.mark.parametrize("probs, wanted, right", MARGINS.values(), ids=MARGINS)
def test_the_margin_of_a_beam_is_its_closest_choice(probs, wanted, right):
    task = task_of(read([np.array([3])]), 9)
    (found,) = beam_search(Chain(probs), task, BeamOptions(beam_size=2, **wanted))
    assert found.margin == pytest.approx(right, rel=1e-5)


def test_the_margin_of_the_last_of_the_best_is_that_to_the_first_that_was_lost():
    """`</s>` has 0.25 and 3 has 0.21; 3 5 has lost with 0.196, and 3 5 3 with 0.294 because it was cut."""
    engine = Chain(
        {(BOS, 3): 0.7, (BOS, EOS): 0.25, (BOS, 4): 0.05, (4, EOS): 1.0}
        | {(3, 5): 0.7, (3, EOS): 0.3, (5, 3): 0.6, (5, EOS): 0.4}
    )
    for num_best, right in ((1, np.log(0.25 / 0.21)), (2, np.log(0.21 / 0.196))):
        task = task_of(read([np.array([3])]), 3)
        (found,) = beam_search(engine, task, BeamOptions(beam_size=2, length_penalty=0), num_best)
        assert [one.ids for one in found.hypotheses] == [(), (3,)][:num_best]
        assert found.margin == pytest.approx(right, rel=1e-5)


def test_what_greedy_search_finds_by_a_clear_margin_it_finds_again():
    assert_clear_margins_can_be_trusted(
        lambda engine, batch: greedy_search(engine, task_of(batch, 5)),
        jitter=5e-5,  # two scores may come nearer to each other by twice that in each of two runs
    )


@pytest.mark.parametrize("num_best", [1, 3])
@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"length_penalty": 0.0},
        {"coverage_penalty": 0.3},
        {"diversity": 0.5},
        {"diversity": 0.05, "coverage_penalty": 0.1},
    ],
    ids=str,
)
def test_what_a_beam_finds_by_a_clear_margin_it_finds_again(wanted, num_best):
    options = BeamOptions(beam_size=3, **wanted)
    assert_clear_margins_can_be_trusted(
        lambda engine, batch: beam_search(engine, task_of(batch, 5), options, num_best),
        jitter=5e-6,  # at each of 5 steps the scores and normalisers of two hypotheses, in each of two runs
        num_best=num_best,
    )


@settings(deadline=None)
@given(st.integers(3, 400), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_the_best_ids_are_those_of_sorting_the_whole_row(vocab_size, num_best, seed):
    logits_RV = np.random.default_rng(seed).standard_normal((3, vocab_size)).astype("f4") * 10
    right = [[id for id in np.argsort(-row).tolist() if id not in (PAD, BOS)][:num_best] for row in logits_RV]
    assert best_ids(logits_RV, num_best).tolist() == right
    given_RV = logits_RV.copy()
    ids_R, gap_R = best_two(logits_RV)
    assert ids_R.tolist() == [row[0] for row in right]
    second = [
        max([row[id] for id in range(EOS, vocab_size) if id != best], default=-np.inf)
        for row, best in zip(logits_RV, ids_R, strict=True)
    ]
    np.testing.assert_allclose(
        gap_R, [row[best] - two for row, best, two in zip(logits_RV, ids_R, second, strict=True)], rtol=1e-5
    )
    np.testing.assert_array_equal(logits_RV, given_RV)  # it is left as it was
    logits_RV.flags.writeable = False
    again_R, same_gap_R = best_two(logits_RV)
    np.testing.assert_array_equal(again_R, ids_R)
    np.testing.assert_array_equal(same_gap_R, gap_R)
    np.testing.assert_array_equal(logits_RV, given_RV)


def test_the_normaliser_makes_probabilities_sum_to_one_without_overflow():
    logits_RV = np.random.default_rng(1).standard_normal((70, VOCAB)).astype("f4") * 300
    log_prob_RV = logits_RV - log_normaliser(logits_RV)[:, None]
    np.testing.assert_allclose(np.exp(log_prob_RV).sum(1), 1, rtol=1e-4)
