"""A head that is taught to align: what it is told, what that costs, and that it learns it."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from small import batch_of, shrink, with_dropout
from test_training import request_for, run

import regard
from regard.alignment.attention import align_pairs, cut_words
from regard.alignment.gold import GoldLinks, score_links
from regard.alignment.reading import AFTERWARDS, Reading
from regard.corpus.batches import Batches, PieceLinks, Share
from regard.corpus.read import Pair
from regard.corpus.store import Store, add_links, build_store
from regard.errors import ConfigError, CorpusError
from regard.model.build import build_model
from regard.model.engine import TorchEngine, batch_loss
from regard.model.noise import Noise
from regard.model.presets import preset
from regard.modelfile import load_model
from regard.options.parse import parse
from regard.options.text import BatchOptions, SubwordOptions
from regard.options.training import TrainOptions
from regard.sample import read_sample
from regard.text.tokenizer import TokenizerPair
from regard.text.words import match_pieces
from regard.training.guide import Guide, _WordCutter, taught_reading, write_links
from regard.training.objective import objective
from regard.training.recipes import merged
from regard.training.workers import Workers
from regard.vocabulary import NUM_RESERVED

SAMPLE = read_sample(400, seed=5)
PAIRS = [Pair(number, pair.source, pair.target) for number, pair in enumerate(SAMPLE, 1)]


@pytest.fixture(scope="module")
def tokenizers():
    return TokenizerPair.learn(
        [pair.source for pair in PAIRS], [pair.target for pair in PAIRS], SubwordOptions(vocab_size=700)
    )


def links_of(*links):
    row, source, target = np.array(links, np.int64).reshape(-1, 3).T
    return PieceLinks(row, source, target)


def test_the_loss_is_that_of_the_step_that_reads_a_piece():
    batch = batch_of(("abc", "dabi"), ("hh", "ca"))  # rows of 3 and 2 source pieces, 4 and 2 target pieces
    weights = torch.softmax(torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(1)), -1).double()
    # Row 0: piece 0 comes from 2, piece 1 from 0 and 1, pieces 2 and 3 from nowhere. Row 1: nothing known.
    guide = Guide(lambda pairs: links_of((0, 2, 0), (0, 0, 1), (0, 1, 1)), 0.5, Reading(0, 0, True))
    wanted = (
        math.log(weights[0, 1, 2])
        + (math.log(weights[0, 2, 0]) + math.log(weights[0, 2, 1])) / 2
        + math.log(weights[0, 3, 3])  # `</s>` of the source
        + math.log(weights[0, 4, 3])
    )
    assert guide.loss(weights, batch).item() == pytest.approx(-0.5 * wanted)


def test_a_weight_of_nothing_costs_much_but_not_infinitely_much():
    batch = batch_of(("ab", "d"))
    weights = torch.tensor([[[1.0, 0, 0], [0, 1.0, 0]]], requires_grad=True)
    loss = Guide(lambda pairs: links_of((0, 0, 0)), 1.0, Reading(0, 0, True)).loss(weights, batch)
    assert 10 < loss.item() < 100
    loss.backward()
    assert torch.isfinite(weights.grad).all()


def test_the_loss_of_a_recurrent_model_is_that_of_the_step_that_says_a_piece():
    batch = batch_of(("ab", "d"))
    weights = torch.tensor([[[0.2, 0.5, 0.3], [0.1, 0.6, 0.3]]])
    loss = Guide(lambda pairs: links_of((0, 1, 0)), 1.0, Reading(0, None, False)).loss(weights, batch)
    assert loss.item() == pytest.approx(-math.log(0.5))


LUONG = {"attention": {"kind": "step-then-attend", "scorer": {"kind": "dot"}}}


@pytest.mark.parametrize(
    ("name", "changes", "wanted"),
    [
        ("regard-small", {}, Reading(0, 0, True)),  # of two layers the last but one
        ("regard-rnn", {}, Reading(0, None, False)),
        ("regard-rnn", LUONG, Reading(0, None, False)),  # each step is fed by the one before
        ("regard-rnn", merged(LUONG, {"attention": {"input_feeding": False}}), Reading(0, None, False)),
        ("luong2015", {}, Reading(0, None, False)),  # a window
        ("regard-rnn", {"teacher": {"kind": "constant", "gold_prob": 1 - 1e-12}}, Reading(0, None, False)),
    ],
)
def test_what_is_trained_is_both_losses_and_only_one_attention_is_asked(name, changes, wanted):
    options = parse("model", merged(preset(name).model_dump(), changes))
    options = with_dropout(shrink(options), 0.0)
    model = build_model(options, NUM_RESERVED + 10, NUM_RESERVED + 10).double()
    batch = batch_of(("abc", "dabi"), ("hhfga", "ca"))
    reading = taught_reading(options, TrainOptions(guidance=0.1))
    assert taught_reading(options, TrainOptions()) is None
    assert reading == wanted
    guide = Guide(lambda pairs: links_of((0, 0, 0), (1, 4, 1)), 2.0, reading)
    both = objective(model, batch, Noise(1, 1), 0.1, 0.0, guide)
    plain = batch_loss(model, batch, None, 0.1)
    attention = TorchEngine(model).force(batch).attention_BTLNS
    taught = guide.loss(torch.from_numpy(attention[:, :, 0, 0]), batch)
    assert both.smoothed.item() == pytest.approx(plain.smoothed.item() + taught.item())
    assert both.nll.item() == pytest.approx(plain.nll.item())


def test_links_come_back_for_any_pairs_of_any_corpus(tokenizers, tmp_path):
    stores, told = [], []
    for name, pairs in (("a", PAIRS[:30]), ("b", PAIRS[30:50])):
        store = build_store(pairs, tokenizers, tmp_path / name, num_threads=1)
        links = [frozenset({(number % 3, 0), (0, number % 2)}) for number in range(len(pairs))]
        links[4] = frozenset()
        links[5] = frozenset({(70_000, 0)})  # more than the file can hold
        stores.append(add_links(store, links))
        told += [*links[:5], frozenset(), *links[6:]]
    batches = Batches([Share(store) for store in stores], BatchOptions(batch_tokens=200), 1)
    wanted = np.array([31, 4, 5, 0, 49, 17])
    found = batches.links(wanted)
    for row, pair in enumerate(wanted.tolist()):
        mine = found.row_L == row
        assert (
            set(zip(found.source_L[mine].tolist(), found.target_L[mine].tolist(), strict=True)) == told[pair]
        )


def test_a_corpus_that_is_not_aligned_or_damaged_says_so(tokenizers, tmp_path):
    store = build_store(PAIRS[:10], tokenizers, tmp_path / "a", num_threads=1)
    with pytest.raises(ConfigError, match="not aligned"):
        Batches([Share(store)], BatchOptions(), 1).links(np.array([0]))
    aligned = add_links(store, [frozenset({(0, 0)})] * 10)
    file = aligned.folder / "links.ids"
    file.write_bytes(file.read_bytes()[:-2])
    with pytest.raises(CorpusError, match=r"links\.ids: damaged"):
        Store(aligned.folder)


def test_pairs_that_are_in_no_batch_are_not_aligned(tokenizers, tmp_path):
    long = Pair(0, " ".join([PAIRS[0].source] * 40), " ".join([PAIRS[0].target] * 40))
    store = build_store([*PAIRS, long], tokenizers, tmp_path / "a", num_threads=1)
    (aligned,) = write_links([store], tokenizers, 100, lambda what, done, of: None)
    found = Batches([Share(aligned)], BatchOptions(), 1).links(np.array([0, len(PAIRS)]))
    assert (found.row_L == 0).any() and not (found.row_L == 1).any()


def test_workers_and_empty_shards_sum_to_the_same_gradients():
    options = with_dropout(shrink(preset("regard-small")), 0.0)
    model = build_model(options, NUM_RESERVED + 10, NUM_RESERVED + 10).double()
    batch = batch_of(("abc", "dabi"), ("hhfga", "ca"))
    train = TrainOptions(guidance=1.0)

    def links(pairs):
        told = {0: (0, 0), 1: (4, 1)}
        return links_of(*((row, *told[pair]) for row, pair in enumerate(pairs.tolist())))

    guide, gradients = Guide(links, 1.0, taught_reading(options, train)), []
    for num_workers in (1, 2, 3):  # of three workers one has no row
        loss = Workers(model, train, 1, num_workers, guide=guide).set_gradients([batch], 7, 1)
        gradients.append(([parameter.grad.clone() for parameter in model.parameters()], loss))
    for others, loss in gradients[1:]:
        assert loss.loss == pytest.approx(gradients[0][1].loss)
        assert all(torch.allclose(a, b) for a, b in zip(gradients[0][0], others, strict=True))


def test_pieces_are_joined_to_words(tokenizers):
    text = "Nous l'avons achetée 12 fois, 학교에서"
    ids = tokenizers.source.encode_batch([text])[0].tolist()
    cut = _WordCutter(tokenizers.source).cut(ids)
    joined = " ".join(word for word in cut.words if not word.startswith("<0x"))
    assert joined.startswith("Nous l ' avons achetée ") and " fois ," in joined
    assert [start for start, _ in cut.spans[1:]] == [end for _, end in cut.spans[:-1]]
    assert "" not in cut.words
    assert cut.spans[-1][1] == len(ids) and _WordCutter(tokenizers.source).cut([]).words == []


def test_the_links_of_pieces_are_those_of_the_words_they_stand_in(tokenizers, tmp_path):
    store = build_store(PAIRS, tokenizers, tmp_path / "a", num_threads=1)
    (aligned,) = write_links([store], tokenizers, 256, lambda what, done, of: None)
    found = Batches([Share(aligned)], BatchOptions(), 1).links(np.arange(len(PAIRS)))
    words = []
    for row, pair in enumerate(PAIRS):
        source, target = (
            match_pieces(tokenizers.source.encode(text).spans, cut_words(text, "words")).words_of_piece
            for text in (pair.source, pair.target)
        )
        mine = found.row_L == row
        links = zip(found.source_L[mine], found.target_L[mine], strict=True)
        words.append({link for a, b in links for link in product(source[a], target[b])})
    assert score_links(words, list(map(gold_of, SAMPLE))).aer < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "size", "taught"),
    [
        ("transformer", {"hidden_size": 64, "feed_forward_size": 128, "num_heads": 4}, Reading(0, 0, True)),
        ("bahdanau", {"hidden_size": 32, "embedding_size": 32}, AFTERWARDS),
    ],
)
def test_taught_attention_aligns_better_than_the_best_that_is_not(corpus, tmp_path, family, size, taught):
    error = {}
    # As short as the corpus, which has the first of them.
    gold = [pair for pair in read_sample(seed=3) if len(pair.source.split()) <= 8][-100:]
    for name, weight in (("taught", 2.0), ("untaught", 0.0)):
        request = request_for(
            corpus,
            tmp_path / f"{name}.regard",
            family,
            steps=300,
            guidance=weight,
            valid_steps=300,
            average="none",
            optimiser={"kind": "adam", "rate": 0.008},
        )
        run(replace(request, options=request.options | {"model": request.options["model"] | size}))
        model = load_model(request.out)
        found = align_pairs(
            [(pair.source, pair.target) for pair in gold], regard.load(request.out), cut="words"
        )
        error[name] = score_links([one.links for one in found], [gold_of(pair) for pair in gold]).aer
        assert name == "untaught" or model.reading == taught
        if family == "transformer":  # of whose many heads another is found where none is taught
            assert (model.reading == taught) is (name == "taught")
    assert error["taught"] < error["untaught"] - 0.2, error


def gold_of(pair):
    return GoldLinks(frozenset(pair.links), frozenset(pair.links))


@pytest.mark.parametrize(
    ("family", "options", "message"),
    [
        ("transformer", {"r_drop": 1.0}, "train.guidance and train.r_drop exclude each other"),
        ("transformer", {"subword_sampling": 0.1}, "train.guidance and train.subword_sampling exclude"),
        ("sutskever", {}, "trains attention, and this model has none"),
    ],
)
def test_what_cannot_be_taught_is_said_before_anything_is_read(corpus, tmp_path, family, options, message):
    with pytest.raises(ConfigError, match=message):
        run(request_for(corpus, tmp_path / "m.regard", family, guidance=0.1, **options))
    assert not list(tmp_path.iterdir())
