import json
import subprocess
import sys
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.contract import Ragged, make_batch
from regard.corpus.batches import Batches, Permutation, Position, Share, resample
from regard.corpus.read import Pair
from regard.corpus.store import Store, build_store
from regard.errors import ConfigError, CorpusError, OutputError
from regard.options.text import BatchOptions, SubwordOptions, WordOptions
from regard.sample import read_sample
from regard.text.normalize import normalize
from regard.text.tokenizer import TokenizerPair
from regard.vocabulary import BOS, EOS, PAD

PAIRS = [Pair(10 + 3 * number, pair.source, pair.target) for number, pair in enumerate(read_sample(3000))]


@pytest.fixture(scope="module")
def tokenizers():
    sources, targets = [pair.source for pair in PAIRS], [pair.target for pair in PAIRS]
    return TokenizerPair.learn(sources, targets, SubwordOptions(vocab_size=800))


@pytest.fixture(scope="module")
def store(tokenizers, tmp_path_factory):
    return build_store(PAIRS, tokenizers, tmp_path_factory.mktemp("store") / "store", num_threads=1)


@pytest.fixture(scope="module")
def small_store(tokenizers, tmp_path_factory):
    return build_store(PAIRS[:100], tokenizers, tmp_path_factory.mktemp("store") / "small", num_threads=1)


def one_epoch(batches, epoch=0):
    return list(islice((batch for _, batch in batches.iterate(Position(epoch))), batches.num_batches(epoch)))


def same(batch, other):
    return all(
        np.array_equal(getattr(batch, name), getattr(other, name))
        for name in ("source_BS", "target_in_BT", "target_out_BT", "pairs_B")
    )


def test_a_store_gives_back_every_sentence_and_its_line(store, tokenizers):
    assert len(store) == len(PAIRS)
    numbers = np.array([0, 2999, 17, 1234])
    sources, targets = store.source.fetch(numbers), store.target.fetch(numbers)
    for row, number in enumerate(numbers):
        start = int(sources.lengths_B[:row].sum())
        ids = sources.flat[start : start + int(sources.lengths_B[row])]
        assert tokenizers.source.decode(ids.tolist()) == normalize(PAIRS[number].source, fold_quotes=True)
    assert len(targets.flat) == targets.lengths_B.sum()
    assert store.lines(numbers).tolist() == [PAIRS[number].line for number in numbers]


def test_two_threads_and_one_write_the_same_bytes(store, tokenizers, tmp_path):
    build_store(PAIRS, tokenizers, tmp_path / "two", num_threads=2)
    for path in sorted(store.folder.iterdir()):
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def test_empty_sentences_and_an_empty_store_survive(tokenizers, tmp_path):
    store = build_store([Pair(1, "", "a"), Pair(2, "", "")], tokenizers, tmp_path / "s", num_threads=1)
    assert store.source.fetch(np.array([1, 0])).lengths_B.tolist() == [0, 0]
    assert len(build_store([], tokenizers, tmp_path / "none", num_threads=1)) == 0


def test_separate_vocabularies_have_their_own_ids(tmp_path):
    sources, targets = [pair.source for pair in PAIRS[:200]], [pair.target for pair in PAIRS[:200]]
    pair = TokenizerPair.learn(sources, targets, WordOptions(vocab_size=500))
    store = build_store(PAIRS[:200], pair, tmp_path / "s", num_threads=2)
    ids = store.target.fetch(np.array([5])).flat.tolist()
    assert pair.target.decode(ids) == targets[5]


def test_a_failed_build_leaves_nothing_behind_and_the_old_store_untouched(tokenizers, tmp_path):
    build_store(PAIRS[:10], tokenizers, tmp_path / "s", num_threads=1)

    def breaking():
        yield from PAIRS[:5000]
        raise CorpusError("a.fr:5001: broken")

    with pytest.raises(CorpusError):
        build_store(breaking(), tokenizers, tmp_path / "s", num_threads=1)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
    assert len(Store(tmp_path / "s")) == 10


def test_a_damaged_store_is_named(store, tokenizers, tmp_path):
    build_store(PAIRS[:10], tokenizers, tmp_path / "s", num_threads=1)
    ids = tmp_path / "s" / "source.ids"
    ids.write_bytes(ids.read_bytes()[:-1])
    with pytest.raises(CorpusError, match=r"source\.ids: damaged"):
        Store(tmp_path / "s")
    meta = tmp_path / "s" / "store.json"
    meta.write_text(json.dumps(json.loads(meta.read_text()) | {"format": "other/9"}))
    with pytest.raises(CorpusError, match="other/9"):
        Store(tmp_path / "s")
    for broken in ("[]", "{}", "null", '{"format": "regard-store/1"}'):
        meta.write_text(broken)
        with pytest.raises(CorpusError, match="not a store"):
            Store(tmp_path / "s")
    with pytest.raises(CorpusError, match="not a store"):
        Store(tmp_path)


@given(size=st.integers(1, 3000), seed=st.integers(0, 2**31))
def test_a_permutation_visits_every_number_once(size, seed):
    assert sorted(Permutation(size, seed)(np.arange(size)).tolist()) == list(range(size))


def test_permutations_look_random_and_differ_by_seed():
    first, second = (Permutation(10_000, seed)(np.arange(10_000)) for seed in (1, 2))
    assert (first == second).mean() < 0.01
    assert abs(np.corrcoef(np.arange(10_000), first)[0, 1]) < 0.05
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.05


def ragged(*rows):
    return Ragged.of([np.array(row, np.int64) for row in rows])


def test_padding_by_hand():
    batch = make_batch(ragged([7], [8, 9]), ragged([5, 6, 7], []), np.array([4, 2]))
    assert batch.source_BS.tolist() == [[7, EOS, PAD], [8, 9, EOS]]
    assert batch.target_in_BT.tolist() == [[BOS, 5, 6, 7], [BOS, PAD, PAD, PAD]]
    assert batch.target_out_BT.tolist() == [[5, 6, 7, EOS], [EOS, PAD, PAD, PAD]]
    assert batch.source_real_BS.tolist() == [[True, True, False], [True, True, True]]
    assert batch.num_target_tokens == 5


def test_an_epoch_has_every_pair_once_within_the_budget_and_little_padding(store):
    batches = Batches([Share(store)], BatchOptions(batch_tokens=1024), seed=1)
    epoch = one_epoch(batches)
    assert sorted(np.concatenate([batch.pairs_B for batch in epoch]).tolist()) == list(range(len(PAIRS)))
    for batch in epoch:
        assert max(batch.source_BS.size, batch.target_out_BT.size) <= 1024
    real = sum((batch.source_BS != PAD).sum() + batch.num_target_tokens for batch in epoch)
    padded = sum(batch.source_BS.size + batch.target_out_BT.size for batch in epoch)
    # Three thousand pairs of 3 to 60 words cannot be packed as tightly as a real corpus: see test_real_corpora.py.
    assert 1 - real / padded < 0.1


def test_the_order_is_a_function_of_seed_epoch_and_step(store):
    batches = Batches([Share(store)], BatchOptions(batch_tokens=512), seed=5)
    first = one_epoch(batches)
    assert all(map(same, first, one_epoch(Batches([Share(store)], BatchOptions(batch_tokens=512), seed=5))))
    others = (
        one_epoch(batches, epoch=1),
        one_epoch(Batches([Share(store)], BatchOptions(batch_tokens=512), seed=6)),
    )
    for other in others:
        assert not all(map(same, first, other))


@pytest.mark.parametrize("step", [0, 1, 17, 10_000])
def test_a_run_can_go_on_from_any_position(store, step):
    def make():
        return Batches([Share(store)], BatchOptions(batch_tokens=700), seed=2, window_pairs=700)

    batches = make()
    step = min(step, batches.num_batches(0))
    whole = list(islice(batches.iterate(), step + 40))
    position = whole[step - 1][0] if step else Position()
    rest = islice(make().iterate(position), 40)
    for (expected_position, expected), (position, batch) in zip(whole[step:], rest, strict=True):
        assert position == expected_position and same(batch, expected)


def test_windows_do_not_lose_or_repeat_pairs(store):
    epoch = one_epoch(Batches([Share(store)], BatchOptions(), seed=1, window_pairs=700))
    assert sorted(np.concatenate([batch.pairs_B for batch in epoch]).tolist()) == list(range(len(PAIRS)))


def test_ranks_share_a_batch_without_overlap(store):
    _, batch = next(Batches([Share(store)], BatchOptions(), seed=1).iterate())
    parts = [batch.shard(rank, 3) for rank in range(3)]
    assert sorted(np.concatenate([part.pairs_B for part in parts]).tolist()) == sorted(batch.pairs_B.tolist())
    assert sum(part.num_target_tokens for part in parts) == batch.num_target_tokens


def test_corpora_are_mixed_by_weight(store, small_store):
    shares = [Share(store), Share(small_store, 3.0)]
    batches = Batches(shares, BatchOptions(), seed=1)
    seen = Counter(np.concatenate([batch.pairs_B for batch in one_epoch(batches)]).tolist())
    assert batches.epoch_pairs == 3300
    assert all(seen[number] == 1 for number in range(3000))
    assert all(seen[number] == 3 for number in range(3000, 3100))


def test_a_weight_of_a_half_takes_turns(store, small_store):
    batches = Batches([Share(small_store, 0.5)], BatchOptions(), seed=1)
    halves = [
        np.concatenate([batch.pairs_B for batch in one_epoch(batches, epoch)]).tolist() for epoch in (0, 1)
    ]
    assert len(halves[0]) == len(halves[1]) == 50
    assert sorted(halves[0] + halves[1]) == list(range(100))


def test_a_mixed_batch_holds_the_text_of_its_pairs(store, small_store, tokenizers):
    batches = Batches([Share(small_store, 2.0), Share(store)], BatchOptions(), seed=3)
    everything = PAIRS[:100] + PAIRS
    for batch in one_epoch(batches):
        for row, number in zip(batch.source_BS.tolist(), batch.pairs_B.tolist(), strict=True):
            assert tokenizers.source.decode(row) == normalize(everything[number].source, fold_quotes=True)
        folder, line = batches.lines(batch.pairs_B)[0]
        first = int(batch.pairs_B[0])
        assert (folder, line) == ((small_store if first < 100 else store).folder, everything[first].line)


def test_pairs_that_are_too_long_are_left_out_and_counted(store):
    batches = Batches([Share(store)], BatchOptions(max_tokens=20), seed=1)
    left = np.concatenate([batch.pairs_B for batch in one_epoch(batches)])
    assert 0 < batches.num_too_long() == len(PAIRS) - len(left)
    assert all(batch.source_BS.shape[1] <= 20 for batch in one_epoch(batches))


def test_a_pair_longer_than_the_budget_has_a_batch_of_its_own(store):
    epoch = one_epoch(Batches([Share(store)], BatchOptions(batch_tokens=10), seed=1))
    assert all(
        len(batch.pairs_B) == 1 or max(batch.source_BS.size, batch.target_out_BT.size) <= 10
        for batch in epoch
    )
    assert sum(len(batch.pairs_B) for batch in epoch) == len(PAIRS)


def test_batches_of_nothing_are_refused(store, tokenizers, tmp_path):
    with pytest.raises(ConfigError, match="max_tokens"):
        next(Batches([Share(store)], BatchOptions(max_tokens=1), seed=1).iterate())
    for shares, seed in (([], 1), ([Share(store)], -1)):
        with pytest.raises(ConfigError):
            Batches(shares, BatchOptions(), seed)
    with pytest.raises(ConfigError, match="weight"):
        Batches([Share(store, -1.0)], BatchOptions(), seed=1)
    empty = build_store([], tokenizers, tmp_path / "none", num_threads=1)
    with pytest.raises(ConfigError, match="no pair"):
        Batches([Share(empty)], BatchOptions(), seed=1)


def test_stores_of_different_tokenizers_are_not_mixed(store, tokenizers, tmp_path):
    other = TokenizerPair.learn(
        [pair.source for pair in PAIRS[:300]], [pair.target for pair in PAIRS[:300]], WordOptions()
    )
    words = build_store(PAIRS[:100], other, tmp_path / "words")
    with pytest.raises(ConfigError, match="different tokenizers"):
        Batches([Share(store), Share(words)], BatchOptions(), seed=1)
    store.check(tokenizers)
    with pytest.raises(CorpusError, match="other tokenizers"):
        words.check(tokenizers)
    _, batch = next(Batches([Share(words)], BatchOptions(), seed=1).iterate())
    assert resample(batch, other, 0.2, seed=1) is batch


def test_a_folder_of_something_else_is_never_replaced_by_a_store(tokenizers, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(OutputError, match="not written by regard"):
        build_store(PAIRS[:10], tokenizers, tmp_path)
    assert (tmp_path / "thesis.txt").exists()


def test_resampled_batches_say_the_same_in_other_pieces(store, tokenizers):
    _, batch = next(Batches([Share(store)], BatchOptions(), seed=1).iterate())
    other = resample(batch, tokenizers, 0.2, seed=9)
    assert same(other, resample(batch, tokenizers, 0.2, seed=9))
    assert not np.array_equal(other.source_BS, batch.source_BS)
    for tokenizer, side in ((tokenizers.source, "source_BS"), (tokenizers.target, "target_out_BT")):
        before, after = getattr(batch, side).tolist(), getattr(other, side).tolist()
        assert list(map(tokenizer.decode, before)) == list(map(tokenizer.decode, after))


_MEASURE = """
import sys
from itertools import islice
from pathlib import Path
from regard.options.text import BatchOptions
from regard.corpus.batches import Batches, Share
from regard.corpus.read import Pair
from regard.corpus.store import build_store
from regard.text.tokenizer import Tokenizer, TokenizerPair
tokenizer = Tokenizer.from_bytes(Path(sys.argv[1]).read_bytes())
text = "Le chat noir dort sur la table de la cuisine."
pairs = (Pair(n, text, text) for n in range(int(sys.argv[3])))
store = build_store(pairs, TokenizerPair(tokenizer, tokenizer), Path(sys.argv[2]), num_threads=1)
batches = Batches([Share(store)], BatchOptions(), seed=1)
for _ in islice(batches.iterate(), batches.num_batches(0)):
    pass
# Not ru_maxrss: a process inherits that of the one that started it.
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_corpus(tokenizers, tmp_path):
    if not Path("/proc/self/status").exists():
        pytest.skip("this system does not report resident memory in /proc")
    (tmp_path / "tokenizer").write_bytes(tokenizers.source.to_bytes())

    def peak(num_pairs):
        arguments = [tmp_path / "tokenizer", tmp_path / f"store{num_pairs}", num_pairs]
        done = subprocess.run(
            [sys.executable, "-c", _MEASURE, *map(str, arguments)], capture_output=True, check=True
        )
        return int(done.stdout)

    index_kib = 16 * 300_000 / 1024  # mapped, and resident while it is being read; nothing else may grow
    assert peak(300_000) < 1.1 * peak(30_000) + index_kib
