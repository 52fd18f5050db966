"""Every option of every model is switched on here, found by looking at the option classes."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from small import SIZES, VOCAB, all_of, greedy, pairs_of, random_batch  # noqa: E402

from regard.contract import Ragged, make_feature_batch  # noqa: E402
from regard.errors import ConfigError  # noqa: E402
from regard.model.build import build_model, export_arrays  # noqa: E402
from regard.model.engine import TorchEngine, batch_loss  # noqa: E402
from regard.model.noise import Noise  # noqa: E402
from regard.model.presets import preset  # noqa: E402
from regard.options.model import (  # noqa: E402
    AttendThenStep,
    NoAttention,
    RecurrentOptions,
    StepAttendStep,
    StepThenAttend,
    TransformerOptions,
)
from regard.runtime.build import build_engine  # noqa: E402

LOOKS = [
    look for kind in (AttendThenStep, StepThenAttend, StepAttendStep, NoAttention) for look in all_of(kind)
]


def batch_for(options, seed=0):
    batch = random_batch(seed)
    if options.source.kind == "tokens":
        return batch
    rng = np.random.default_rng(seed)
    features = [rng.standard_normal((n, SIZES["feature_size"])).astype("f4") for n in (5, 2, 1, 4)]
    targets = [ids[ids > 3] for ids in batch.target_in_BT]
    return make_feature_batch(features, Ragged.of(targets), np.arange(4))


def builds_trains_and_translates(options):
    model = build_model(options, VOCAB, VOCAB)
    batch = batch_for(options)
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    batch_loss(model, batch, Noise(1, 5), 0.1).smoothed.backward()
    assert all(parameter.grad is not None for parameter in model.parameters()), "a weight takes no part"
    optimiser.step()
    engine = build_engine(options, export_arrays(model))
    assert greedy(engine, batch, 4) == greedy(TorchEngine(model), batch, 4)
    loss = batch_loss(model, batch, None, 0.0).nll.item()
    log_prob_BTV = torch.from_numpy(engine.force(batch).logits_BTV).log_softmax(-1)
    real_BT = torch.from_numpy(batch.target_out_BT != 0)
    chosen_BT = log_prob_BTV.gather(-1, torch.from_numpy(batch.target_out_BT)[..., None])[..., 0]
    assert -chosen_BT[real_BT].sum().item() == pytest.approx(loss, rel=1e-4)


def test_there_are_eighteen_looks_in_each_order_and_two_designs_without():
    assert len(LOOKS) == 18 + 2 * 18 + 18 + 2


@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_every_score_works_in_every_window_and_order(look):
    builds_trains_and_translates(
        RecurrentOptions(attention=look, embedding_size=6, hidden_size=8, reading="both")
    )


@pytest.mark.slow
@pytest.mark.parametrize("reading", ["forward", "reversed", "both"])
@pytest.mark.parametrize("cell", ["rnn", "gru", "gru-after", "lstm"])
def test_every_score_works_with_every_cell_and_reading(cell, reading):
    for look in LOOKS:
        options = RecurrentOptions(
            attention=look, cell=cell, reading=reading, embedding_size=6, hidden_size=8, num_layers=2
        )
        builds_trains_and_translates(options)


@pytest.mark.parametrize("cls", [RecurrentOptions, TransformerOptions])
def test_every_pair_of_option_values_builds_trains_and_translates(cls):
    designs = list(pairs_of(cls))
    assert len(designs) > 10
    for options in designs:
        builds_trains_and_translates(options)


def test_a_misspelt_preset_names_the_nearest():
    with pytest.raises(ConfigError, match=r"preset 'bahdanau' does not exist; did you mean 'bahdanau2015'\?"):
        preset("bahdanau")


def test_tying_all_needs_one_vocabulary():
    with pytest.raises(
        ConfigError, match=r"model\.tie = 'all' needs one vocabulary.*have 300 and 400 entries"
    ):
        build_model(TransformerOptions(), 300, 400)


def test_a_sentence_longer_than_the_learnt_positions_is_refused():
    options = TransformerOptions(
        hidden_size=8, num_heads=2, positions={"kind": "learned", "max_positions": 4}, tie="target"
    )
    model = build_model(options, VOCAB, VOCAB)
    for engine in (TorchEngine(model), build_engine(options, export_arrays(model))):
        assert engine.max_tokens == 4
        with pytest.raises(ConfigError, match="a sequence of 7 tokens is longer than the 4 positions"):
            engine.start(random_batch(longest=6))


def test_the_same_seed_gives_the_same_weights():
    options = TransformerOptions(hidden_size=8, num_heads=2)
    first, same, other = (export_arrays(build_model(options, VOCAB, VOCAB, seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(first[name], same[name]) for name in first)
    assert not np.array_equal(first["encoder.0.own.W_QKV"], other["encoder.0.own.W_QKV"])


def test_a_process_without_rows_has_no_loss_and_zero_gradients():
    for options in (
        RecurrentOptions(embedding_size=6, hidden_size=8),
        TransformerOptions(hidden_size=8, num_heads=2),
    ):
        model = build_model(options, VOCAB, VOCAB)
        empty = random_batch(rows=1).shard(1, 2)
        loss = batch_loss(model, empty, Noise(1, 1, 1), 0.1)
        loss.smoothed.backward()
        assert loss.smoothed.item() == 0
        assert all(not parameter.grad.any() for parameter in model.parameters())
