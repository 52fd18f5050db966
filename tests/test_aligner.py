"""Word alignments learnt by counting: the equations by hand and against plain loops, and what is learnt."""

import math
from itertools import pairwise, product

import numpy as np
import pytest

from regard.alignment.gold import GoldLinks, score_links
from regard.alignment.statistical.evidence import evidence, relatedness
from regard.alignment.statistical.learn import SMOOTHING, Aligner, learn_both
from regard.alignment.statistical.pairs import PairFile, WordIds, blocks
from regard.alignment.statistical.posteriors import MAX_JUMP, NULL_PROB, hmm, ibm1, jump_probs
from regard.alignment.statistical.table import TableKeys
from regard.contract import Ragged
from regard.errors import CorpusError
from regard.sample import read_sample
from regard.text.words import words

BITS = 18
HOUSES = [(["das", "haus"], ["the", "house"]), (["das", "buch"], ["the", "book"])]


def split(text):
    return [text[start:end] for start, end in words(text)]


def sample_corpus(num_pairs):
    pairs = read_sample(num_pairs)
    return [(split(pair.source), split(pair.target)) for pair in pairs], [pair.links for pair in pairs]


def one_block(num_given, said_lengths, seed=0):
    """A block of random words, with p(said | given) for each of them."""
    dice = np.random.default_rng(seed)
    given = Ragged.of([dice.integers(0, 9, num_given) for _ in said_lengths])
    said = Ragged.of([dice.integers(0, 9, length) for length in said_lengths])
    (block,) = blocks(given, said)
    said_MS = dice.uniform(0.001, 1, (len(block.said_M), num_given)).astype(np.float32)
    return block, said_MS, dice.uniform(0.001, 1, len(block.said_M)).astype(np.float32)


# Equations.


def table_prob(aligner, said, given):
    """p(said | given) as it stands in the table."""
    one, other = aligner.source_words.ranks([given])[0], aligner.target_words.ranks([said])[0]
    place = aligner.keys.given[one] ^ aligner.keys.said[other]
    return float(aligner.parameters.table[place] * aligner.parameters.per_given[one])


def test_the_first_round_of_model_1_by_hand():
    """Each word said is a third from each given word and the empty one: c(the|das) = 2/3, c(the|haus) = 1/3."""
    aligner = Aligner.learn(HOUSES, rounds=("ibm1",), table_bits=BITS)
    for said, given, count, total in (
        ("the", "das", 2 / 3, 4 / 3),
        ("house", "das", 1 / 3, 4 / 3),
        ("the", "haus", 1 / 3, 2 / 3),
        ("book", "haus", 0, 2 / 3),
    ):
        expected = (count + SMOOTHING) / (total + 3 * SMOOTHING)
        assert table_prob(aligner, said, given) == pytest.approx(expected, rel=1e-5)
    null = dict(zip(aligner.target_words.words(), aligner.parameters.null, strict=False))
    assert null["the"] == pytest.approx((2 / 3 + SMOOTHING) / (4 / 3 + 3 * SMOOTHING), rel=1e-5)


def test_the_second_round_of_model_1_by_hand():
    """Without smoothing: t(the|das) = t(the|haus) = t(the|null) = 1/2, t(house|haus) = 1/2, of das and null 1/4.

    So of `house` a half comes from haus and a quarter from das, of `the` a third from each.
    """
    smoothing = 1e-7
    aligner = Aligner.learn(HOUSES, rounds=("ibm1", "ibm1"), table_bits=BITS, smoothing=smoothing)
    assert table_prob(aligner, "house", "haus") == pytest.approx((1 / 2) / (1 / 2 + 1 / 3), rel=1e-4)
    assert table_prob(aligner, "house", "das") == pytest.approx((1 / 4) / (2 / 3 + 2 / 4), rel=1e-4)
    # The mean log probability of a word in that round: the sum over places, over three places.
    the, house = (1 / 2 * 3) / 3, (1 / 2 + 1 / 4 + 1 / 4) / 3
    assert aligner.reports[1].log_prob_per_word == pytest.approx(
        (math.log(the) + math.log(house)) / 2, rel=1e-4
    )


def test_model_1_equals_plain_loops():
    _, said_MS, null_M = one_block(4, [3, 2])
    found = ibm1(said_MS, null_M)
    for word in range(len(null_M)):
        total = sum(float(prob) for prob in said_MS[word]) + float(null_M[word])
        for place in range(4):
            assert found.words_MS[word, place] == pytest.approx(said_MS[word, place] / total, rel=1e-5)
        assert found.null_M[word] == pytest.approx(null_M[word] / total, rel=1e-5)
        assert found.log_probs_M[word] == pytest.approx(math.log(total / 5), rel=1e-5)


def every_path(num_given, said_TS, null_T, jumps):
    """Posteriors, probability and jumps of one pair by going through all paths of states."""
    probs = jump_probs(jumps, num_given).astype(np.float64)
    num_said = len(null_T)
    words_TS, null, total = np.zeros((num_said, num_given)), np.zeros(num_said), 0.0
    made = np.zeros(2 * MAX_JUMP + 1)
    states = [(place, real) for place in range(num_given) for real in (True, False)]
    for path in product(states, repeat=num_said):
        prob, before = 1.0, -1
        jumped = []
        for time, (place, real) in enumerate(path):
            if real:
                prob *= (1 - NULL_PROB) * probs[before + 1, place] * said_TS[time, place]
                jumped.append(place - before)
            elif time == 0:  # nothing to keep in mind yet: any place as likely as another
                prob *= NULL_PROB / num_given * null_T[time]
            else:
                prob *= NULL_PROB * null_T[time] if place == before else 0.0
            before = place
        total += prob
        for width in jumped:
            made[width + MAX_JUMP] += prob
        for time, (place, real) in enumerate(path):
            if real:
                words_TS[time, place] += prob
            else:
                null[time] += prob
    return words_TS / total, null / total, math.log(total), made / total


@pytest.mark.parametrize(("num_given", "lengths"), [(3, [4, 2, 2, 1]), (1, [3, 1]), (4, [1]), (2, [5])])
def test_the_markov_model_equals_all_paths(num_given, lengths):
    block, said_MS, null_M = one_block(num_given, lengths)
    jumps = np.random.default_rng(5).uniform(0.1, 1, 2 * MAX_JUMP + 1)
    found = hmm(block, said_MS, null_M, jumps)
    made = np.zeros(2 * MAX_JUMP + 1)
    for row in range(len(lengths)):
        places = block.places(row)
        words_TS, null_T, log_prob, jumped = every_path(num_given, said_MS[places], null_M[places], jumps)
        made += jumped
        np.testing.assert_allclose(found.words_MS[places], words_TS, rtol=2e-4, atol=1e-6)
        np.testing.assert_allclose(found.null_M[places], null_T, rtol=2e-4, atol=1e-6)
        assert found.log_probs_M[places].sum() == pytest.approx(log_prob, rel=1e-4)
    np.testing.assert_allclose(found.jumps, made, rtol=1e-3, atol=1e-5)


def test_posteriors_sum_to_one_and_long_pairs_do_not_underflow():
    block, said_MS, null_M = one_block(60, [300, 150])
    found = hmm(block, said_MS * np.float32(1e-6), null_M * np.float32(1e-6), np.ones(2 * MAX_JUMP + 1))
    np.testing.assert_allclose(found.words_MS.sum(axis=1) + found.null_M, 1, rtol=1e-3)
    assert np.isfinite(found.log_probs_M).all()


def test_jumps_within_a_sentence_sum_to_one():
    for num_given in (1, 2, 7, 120):
        probs = jump_probs(np.random.default_rng(1).uniform(0, 1, 2 * MAX_JUMP + 1), num_given)
        assert probs.shape == (num_given + 1, num_given)
        np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=1e-5)


# Pairs and tables.


def test_blocks_hold_every_word_once():
    dice = np.random.default_rng(3)
    given_rows = [dice.integers(0, 99, dice.integers(0, 7)) for _ in range(80)]
    said_rows = [dice.integers(0, 99, dice.integers(0, 7)) for _ in range(80)]
    seen = {}
    for block in blocks(Ragged.of(given_rows), Ragged.of(said_rows), max_cells=60):
        for row, pair in enumerate(block.pairs_B.tolist()):
            assert pair not in seen
            assert (block.row_M[block.places(row)] == row).all()
            seen[pair] = (block.given_BS[row].tolist(), block.said_M[block.places(row)].tolist())
    both = list(zip(given_rows, said_rows, strict=True))
    assert seen == {
        number: (given.tolist(), said.tolist())
        for number, (given, said) in enumerate(both)
        if len(given) and len(said)
    }


def test_frequent_pairs_have_a_place_of_their_own_and_rare_ones_stay_out_of_it():
    keys = TableKeys.make(1000, 1000, 14)  # regions of 2 ** 12: 64 frequent words on each side
    frequent = keys.given[:64, None] ^ keys.said[None, :64]
    assert len(np.unique(frequent)) == 64 * 64 and frequent.max() < 1 << 12
    rare = (keys.given[64:, None] ^ keys.said[None, 64:]).ravel()
    mixed = np.concatenate([(keys.given[64:, None] ^ keys.said[:64]).ravel(), (keys.given[:64, None] ^ keys.said[64:]).ravel()])  # fmt: skip
    assert mixed.min() >= 1 << 12 and mixed.max() < 3 << 12 <= rare.min() and rare.max() < 4 << 12
    for places in (mixed, rare):  # spread over all there is, evenly
        counts = np.bincount(places - places.min())
        assert counts.min() > 0 and counts.max() < 4 * counts.mean()


def test_the_tables_and_the_reading_do_not_grow_with_the_corpus(tmp_path):
    """The same words in more pairs: tables of the same size, chunks of the same size, only the file grows."""
    sizes = []
    for num_pairs in (100, 1000):
        folder = tmp_path / str(num_pairs)
        folder.mkdir()
        file = PairFile(folder, chunk_pairs=10, chunks_read=5)
        file.fill(HOUSES[number % 2] for number in range(num_pairs))
        assert [len(source.lengths_B) for source, _ in file] == [50] * (num_pairs // 50)
        assert (folder / "source").stat().st_size == 4 * 2 * num_pairs  # 4 bytes a word
        aligner = Aligner.learn((HOUSES[number % 2] for number in range(num_pairs)), table_bits=BITS)
        parameters = aligner.parameters
        sizes.append([len(parameters.table), len(parameters.per_given), len(parameters.null)])
    assert sizes[0] == sizes[1] == [1 << BITS, 4, 4]


def test_words_beyond_the_limit_share_numbers():
    ids = WordIds(max_words=3)
    assert ids.add(["a", "b", "A", "c"]) == [0, 1, 0, 2]
    assert all(0 <= id < 3 for id in ids.add(["d", "e", "\ud800"])) and len(ids) == 3


def test_words_are_numbered_by_frequency_and_unknown_ones_come_last():
    ids = WordIds()
    ids.add(["a", "b", "b", "c", "c", "c"])
    assert ids.ranks(["c", "b", "a", "C", "d"]) == [0, 1, 2, 0, 3]
    assert ids.words() == ["c", "b", "a"]


# Learning.


@pytest.fixture(scope="module")
def learnt():
    pairs, links = sample_corpus(3000)
    return learn_both(pairs, table_bits=20), pairs, links


def aer(found, links):
    return score_links(list(found), [GoldLinks(one, one) for one in links]).aer


def test_the_grammar_is_aligned(learnt):
    """Its gold has links one word to many, which no single direction can say; hence not 0."""
    aligner, pairs, links = learnt
    agreed = aer(aligner.align_many(pairs[:300]), links[:300])
    assert agreed < 0.15
    assert aer(aligner.forward.align_many(pairs[:300]), links[:300]) < 0.2
    assert aer(aligner.backward.align_many(pairs[:300]), links[:300]) < 0.2
    # Beside it the diagonal, which is right where the order of words is the same.
    straight = [{(n, n) for n in range(min(len(a), len(b)))} for a, b in pairs[:300]]
    assert agreed < 0.4 * aer(straight, links[:300])


@pytest.mark.parametrize("how", ["intersection", "union", "grow-diag", "grow-diag-final-and"])
def test_symmetrised_links_lie_between_intersection_and_union(learnt, how):
    aligner, pairs, _ = learnt
    for pair, links in zip(pairs[:50], aligner.align_many(pairs[:50], how), strict=True):
        forward, backward = aligner.forward.align(*pair), aligner.backward.align(*pair)
        assert forward & backward <= links <= forward | backward


def test_each_direction_gives_a_word_one_origin_at_most(learnt):
    aligner, pairs, _ = learnt
    for pair in pairs[:50]:
        forward, backward = aligner.forward.align(*pair), aligner.backward.align(*pair)
        assert len({target for _, target in forward}) == len(forward)
        assert len({source for source, _ in backward}) == len(backward)


def test_the_probability_of_the_corpus_does_not_fall(learnt):
    aligner, _, _ = learnt
    for direction in (aligner.forward, aligner.backward):
        rounds = [report.log_prob_per_word for report in direction.reports]
        for name in ("ibm1", "hmm"):
            same = [report.log_prob_per_word for report in direction.reports if report.round == name]
            assert all(later > earlier - 1e-4 for earlier, later in pairwise(same))
        assert rounds[-1] > rounds[0] + 2


def test_translations_are_found(learnt):
    aligner, _, _ = learnt
    assert aligner.translations("chat", 1)[0][0] == "cat"
    assert aligner.translations("Chat", 1) == aligner.translations("chat", 1)
    scores = [score for _, score in aligner.translations("chat", 5)]
    assert scores == sorted(scores, reverse=True) and 0 < scores[-1] <= scores[0] <= 1
    assert aligner.translations("xyzzy") == []


def test_many_at_once_equal_one_by_one(learnt):
    aligner, pairs, _ = learnt
    assert list(aligner.align_many(pairs[:40])) == [aligner.align(*pair) for pair in pairs[:40]]


def test_many_pairs_keep_their_order_across_processes(learnt):
    aligner, pairs, _ = learnt
    whole = list(aligner.align_many(pairs[:60]))
    assert list(aligner.align_many(pairs[:60], chunk_pairs=7)) == whole


def test_learning_twice_gives_the_same_whatever_the_processes(learnt):
    pairs = learnt[1][:400]
    first = learn_both(pairs, table_bits=BITS, num_workers=1)
    again = learn_both(iter(pairs), table_bits=BITS, num_workers=2)
    alone = Aligner.learn(pairs, table_bits=BITS)
    for other in (again.forward, alone):
        assert (first.forward.parameters.table == other.parameters.table).all()
        assert (first.forward.parameters.jumps == other.parameters.jumps).all()
    assert (first.backward.parameters.table == again.backward.parameters.table).all()


def test_a_word_that_only_one_side_has_stays_free():
    """`um` stands anywhere and French has nothing like it."""
    verbs = "voir/see lire/read dire/say boire/drink manger/eat dormir/sleep jouer/play finir/finish"
    both = [verb.split("/") for verb in verbs.split()]
    pairs = [([french], ["um", english]) for french, english in both] * 20
    pairs += [([one, two], [first, "um", second]) for one, first in both for two, second in both]
    aligner = learn_both(pairs, table_bits=BITS)
    assert aligner.align(["lire"], ["um", "read"]) == {(0, 1)}
    assert aligner.align(["lire", "dire"], ["read", "um", "say"]) == {(0, 0), (1, 2)}


def test_sentences_of_one_word_are_learnt():
    aligner = learn_both([(["oui"], ["yes"]), (["non"], ["no"])] * 5, table_bits=BITS)
    assert aligner.align(["oui"], ["yes"]) == {(0, 0)}


def test_unknown_words_fall_between_their_neighbours(learnt):
    aligner, _, _ = learnt
    source, target = split("le chat voit le zorglub ."), split("the cat sees the zorglub .")
    assert {(1, 1), (4, 4), (5, 5)} <= aligner.align(source, target)


def test_empty_sides_are_skipped_and_counted_and_have_no_links():
    pairs = [*HOUSES * 3, ([], ["a"]), (["a"], []), ([], []), (["a"] * 401, ["b"])]
    aligner = learn_both(pairs, table_bits=BITS)
    assert aligner.skipped == {"empty side": 3, "over 400 words": 1}
    assert [bool(links) for links in aligner.align_many(pairs)][:9] == [True] * 6 + [False] * 3
    assert list(aligner.forward.align_many(pairs[6:8])) == [frozenset(), frozenset()]


def test_nothing_to_learn_from_is_an_error():
    with pytest.raises(CorpusError, match="of 2 pairs none has words on both sides"):
        learn_both([([], ["a"]), (["b"], [])], table_bits=BITS)


def test_progress_is_told():
    told = []
    learn_both(HOUSES, table_bits=BITS, on_progress=lambda *news: told.append(news))
    assert told[0] == ("reading", 2, 0) and told[-1] == ("learning", 7, 7)


# Evidence.


def test_a_pair_alone_is_no_evidence_for_itself():
    common = [(split("le chat dort ici"), split("the cat sleeps here"))] * 400
    odd = (split("zig zag zog zug") * 2, split("ping pang pong pung") * 2)
    twice = (split("bim bam bom bum") * 2, split("ding dang dong dung") * 2)
    aligner = learn_both([*common, odd, twice, twice], table_bits=BITS)
    alone, again, short = evidence(aligner, [odd, twice, (["zig"], ["ping"])])
    assert aligner.align(*odd)  # it is linked, for nothing else explains it
    assert 0 <= alone < again <= 1
    assert np.isnan(short)


def test_evidence_tells_pairs_from_mixed_ones(learnt):
    aligner, pairs, _ = learnt
    long = [pair for pair in pairs if min(map(len, pair)) > 15][:40]
    right = np.array(list(evidence(aligner, long)))
    mixed = [(source, target) for (source, _), (_, target) in zip(long, long[1:] + long[:1], strict=True)]
    wrong = np.array(list(evidence(aligner, mixed)))
    assert np.nanmin(right) > np.nanmax(wrong)


def test_of_texts_that_are_too_long_or_blank_nothing_is_said():
    texts = [("le chat dort", "the cat sleeps")] * 20 + [("a " * 500, "b " * 500), ("", "x y z")]
    assert np.isnan(relatedness(lambda: texts)[-2:]).all()
