"""Schedules, averages and the objective, by hand and against obvious code."""

import math

import pytest

torch = pytest.importorskip("torch", reason="training needs torch")

from small import batch_of, shrink  # noqa: E402

from regard.model.build import build_model  # noqa: E402
from regard.model.engine import batch_loss, forced_logits  # noqa: E402
from regard.model.noise import Noise  # noqa: E402
from regard.model.presets import preset  # noqa: E402
from regard.options.training import (  # noqa: E402
    AdamOptions,
    CosineSchedule,
    HalvingSchedule,
    InverseSqrtSchedule,
    MovingAverage,
    NoAverage,
    PlateauSchedule,
    SnapshotAverage,
    TrapezoidSchedule,
)
from regard.training.objective import objective  # noqa: E402
from regard.training.optimise import Place, make_average, make_optimiser, rate_factor  # noqa: E402
from regard.vocabulary import NUM_RESERVED  # noqa: E402


def at(step, share=None, epochs=0.0):
    return Place(step, epochs, share)


def test_trapezoid_goes_up_stays_and_comes_down():
    schedule = TrapezoidSchedule(warmup_steps=10, descent=0.5)
    assert rate_factor(schedule, at(5, 0.01)) == 0.5
    assert rate_factor(schedule, at(1, 0.05)) == 0.5  # of a short run
    assert rate_factor(schedule, at(20, 0.4)) == 1
    assert rate_factor(schedule, at(30, 0.75)) == 0.5
    assert rate_factor(schedule, at(40, 1.0)) == 0
    assert rate_factor(schedule, at(1000, None)) == 1


def test_inverse_square_root_is_that_of_vaswani():
    """Eq. 3 there: d^-0.5 min(step^-0.5, step warmup^-1.5), of which the highest is at `warmup`."""
    schedule = InverseSqrtSchedule(warmup_steps=100)
    for step in (1, 50, 100, 400, 10_000):
        wanted = min(step**-0.5, step * 100**-1.5) / 100**-0.5
        assert rate_factor(schedule, at(step)) == pytest.approx(wanted)


def test_cosine_ends_at_zero():
    schedule = CosineSchedule(warmup_steps=0)
    assert rate_factor(schedule, at(1, 0.0)) == 1
    assert rate_factor(schedule, at(1, 0.5)) == pytest.approx(0.5)
    assert rate_factor(schedule, at(1, 1.0)) == pytest.approx(0)


def test_halving_follows_the_epochs():
    schedule = HalvingSchedule(first_epoch=5, every_epochs=0.5)
    factors = [rate_factor(schedule, at(1, None, epochs)) for epochs in (0, 4.9, 5, 5.49, 5.5, 7.0)]
    assert factors == [1, 1, 0.5, 0.5, 0.25, 0.5**5]


def test_plateau_is_the_factor_the_run_has_come_to():
    assert rate_factor(PlateauSchedule(), at(7), plateau_factor=0.25) == 0.25


@pytest.fixture
def model():
    return build_model(shrink(preset("regard-small")), NUM_RESERVED + 10, NUM_RESERVED + 10)


def set_all(model, value):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(value)


def test_moving_average_forgets_slowly(model):
    average = make_average(model, MovingAverage(decay=0.5))
    set_all(model, 0.0)
    average.after_update(1)
    for step in range(100, 104):
        average.after_update(step)
    before = average.weights()[0].flatten()[0].item()
    set_all(model, 8.0)
    average.after_update(200)
    assert average.weights()[0].flatten()[0].item() == pytest.approx((before + 8) / 2)


def test_the_first_updates_are_hardly_averaged(model):
    average = make_average(model, MovingAverage(decay=0.999))
    set_all(model, 1.0)
    start = average.weights()[0].flatten()[0].item()
    average.after_update(1)
    # (1 + 1) / (10 + 1) of the old average stays.
    assert average.weights()[0].flatten()[0].item() == pytest.approx(start * 2 / 11 + 9 / 11)


def test_snapshots_are_the_mean_of_the_last(model):
    average = make_average(model, SnapshotAverage(num_snapshots=2))
    for value in (1.0, 2.0, 6.0):
        set_all(model, value)
        average.at_validation()
    assert all((weight == 4.0).all() for weight in average.weights())


def test_no_average_is_the_weights_themselves(model):
    average = make_average(model, NoAverage())
    average.at_validation()
    assert all(torch.equal(w, p) for w, p in zip(average.weights(), model.parameters(), strict=True))


def test_weight_decay_leaves_embeddings_and_biases_alone(model):
    optimiser = make_optimiser(model, AdamOptions(kind="adamw", rate=0.1, weight_decay=0.5))
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimiser.step()
    embeddings = {id(model.source.weight), id(model.target.weight)}
    for name, parameter in model.named_parameters():
        shrinks = parameter.dim() > 1 and id(parameter) not in embeddings
        wanted = before[name] * (0.95 if shrinks else 1)
        assert torch.allclose(parameter, wanted), name


def some_batch():
    return batch_of(("abc", "dabi"), ("hhfga", "ca"))


def test_r_drop_without_dropout_is_the_plain_loss():
    options = shrink(preset("regard-small")).model_copy(
        update={"dropout": 0.0, "attention_dropout": 0.0, "feed_forward_dropout": 0.0}
    )
    model = build_model(options, NUM_RESERVED + 10, NUM_RESERVED + 10).double()
    batch = some_batch()
    plain = batch_loss(model, batch, None, 0.1)
    both = objective(model, batch, Noise(1, 1), 0.1, r_drop=5.0)
    assert both.smoothed.item() == pytest.approx(plain.smoothed.item())
    assert both.nll.item() == pytest.approx(plain.nll.item())


def test_r_drop_adds_the_mean_of_both_divergences(model):
    model = model.double()
    batch = some_batch()
    from regard.training.objective import _twice

    probs = torch.softmax(forced_logits(model, _twice(batch), Noise(1, 1)), -1).detach().numpy()
    real = batch.target_out_BT != 0
    kl = 0.0
    for row, column in zip(*real.nonzero(), strict=True):
        p, q = probs[row, column], probs[row + 2, column]
        kl += sum(a * math.log(a / b) + b * math.log(b / a) for a, b in zip(p, q, strict=True)) / 2
    without, with_it = (objective(model, batch, Noise(1, 1), 0.1, weight).smoothed for weight in (1e-9, 2.0))
    assert kl > 1e-4
    assert with_it.item() - without.item() == pytest.approx(2 * kl)
