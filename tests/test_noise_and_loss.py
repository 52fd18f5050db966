from itertools import combinations
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402

from regard.model.loss import CHUNK_ROWS, smoothed_cross_entropy  # noqa: E402
from regard.model.noise import Noise, dropout  # noqa: E402


def correlation(first: Any, second: Any) -> float:
    return float(np.corrcoef(first.flatten().numpy(), second.flatten().numpy())[0, 1])


def test_the_same_seed_step_and_rank_draw_the_same_numbers_in_turn() -> None:
    first, again = Noise(7, 3, 1), Noise(7, 3, 1)
    assert first.step == 3
    for shape, prob in (((40, 50), 0.1), ((7,), 0.3), ((3, 2, 5), 0.5)):
        assert torch.equal(first.keep(shape, prob), again.keep(shape, prob))
        assert torch.equal(first.coin(shape, prob), again.coin(shape, prob))


def test_other_seeds_steps_ranks_and_calls_draw_unrelated_numbers() -> None:
    size = 200_000
    noise = Noise(0, 0)
    drawn = [noise.coin((size,), 0.3).double() for _ in range(3)]
    drawn += [Noise(*key).coin((size,), 0.3).double() for key in ((1, 0), (0, 1), (0, 0, 1), (2**64, 0))]
    for first, second in combinations(drawn, 2):
        assert abs(correlation(first, second)) < 5 / size**0.5


def test_no_random_state_outside_the_noise_is_used() -> None:
    torch.manual_seed(1)
    state = torch.random.get_rng_state()
    Noise(1, 1).dropout(torch.ones(1000), 0.3)
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("prob", [0.0, 0.001, 0.1, 0.3, 0.5, 0.7, 0.9, 0.998, 1.0])
@pytest.mark.parametrize("size", [3, 1_000_000])
def test_a_coin_shows_true_as_often_as_asked(prob: float, size: int) -> None:
    noise = Noise(1, 2)
    num_calls = 1 if size > 3 else 3_000
    num_true = sum(int(noise.coin((size,), prob).sum()) for _ in range(num_calls))
    num = num_calls * size
    assert abs(num_true - num * prob) <= 5 * (num * prob * (1 - prob)) ** 0.5


@pytest.mark.parametrize("prob", [0.002, 0.1, 0.3])
def test_the_number_of_trues_varies_as_that_of_independent_coins(prob: float) -> None:
    noise, size, num_calls = Noise(1, 3), 2_000, 1_000
    counts = [int(noise.coin((size,), prob).sum()) for _ in range(num_calls)]
    assert np.var(counts) == pytest.approx(size * prob * (1 - prob), rel=5 * (2 / num_calls) ** 0.5)


@pytest.mark.parametrize("prob", [0.1, 0.5])
def test_neighbours_are_unrelated(prob: float) -> None:
    size = 1_000_000
    coins = Noise(5, 5).coin((size,), prob).double()
    for lag in (1, 2, 3, 4, 7, 8, 16, 64, 512, 4096):
        assert abs(correlation(coins[:-lag], coins[lag:])) < 5 / (size - lag) ** 0.5


@pytest.mark.parametrize("prob", [0.1, 0.3, 0.5])
def test_what_is_kept_is_scaled_to_keep_the_mean(prob: float) -> None:
    kept = Noise(1, 1).keep((1000, 100), prob)
    assert kept.dtype == torch.float32
    assert torch.equal(kept.unique(), torch.tensor([0, 1 / (1 - prob)]))
    assert torch.equal(kept == 0, Noise(1, 1).coin((1000, 100), prob))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_dropout_and_its_gradient_multiply_by_the_mask(dtype: Any) -> None:
    x = torch.randn(30, 20, dtype=dtype, requires_grad=True)
    kept = Noise(1, 1).keep((30, 20), 0.3).to(dtype)
    dropped = Noise(1, 1).dropout(x, 0.3)
    dropped.sum().backward()
    assert dropped.dtype == dtype
    assert torch.equal(dropped, x * kept)
    assert torch.equal(x.grad, kept)


@pytest.mark.parametrize("axis", [0, 1, 2, -2])
def test_a_shared_mask_is_the_same_along_its_axis(axis: int) -> None:
    dropped = Noise(1, 1).dropout(torch.ones(20, 30, 40), 0.5, shared=axis)
    assert torch.equal(dropped, dropped.select(axis, 0).unsqueeze(axis).expand_as(dropped))
    assert 0 < float((dropped == 0).double().mean()) < 1


def test_without_noise_or_probability_nothing_is_dropped_or_copied() -> None:
    x = torch.randn(5, 5)
    assert dropout(x, 0.5, None) is x
    assert dropout(x, 0.0, Noise(1, 1)) is x
    assert torch.equal(dropout(x, 0.5, Noise(1, 1), shared=0), Noise(1, 1).dropout(x, 0.5, shared=0))


def test_empty_shapes_and_single_numbers_can_be_drawn() -> None:
    assert Noise(1, 1).keep((0, 4), 0.1).shape == (0, 4)
    assert Noise(1, 1).coin((), 0.1).shape == ()


def test_impossible_probabilities_are_refused() -> None:
    with pytest.raises(ValueError, match="dropout of 1 is not valid"):
        Noise(1, 1).keep((2,), 1)
    with pytest.raises(ValueError, match=r"probability 1\.5 is not valid"):
        Noise(1, 1).coin((2,), 1.5)


def plain_loss(readout_MQ: Any, weight_VQ: Any, bias_V: Any, targets_M: Any, smoothing: float) -> Any:
    log_prob_MV = functional.log_softmax(functional.linear(readout_MQ, weight_VQ, bias_V), 1)
    wanted_MV = torch.full_like(log_prob_MV, smoothing / len(weight_VQ))
    wanted_MV[torch.arange(len(targets_M)), targets_M] += 1 - smoothing
    return -(wanted_MV * log_prob_MV).sum()


def example(num_rows: int, *, bias: bool = True, dtype: Any = torch.float64) -> list[Any]:
    torch.manual_seed(num_rows)
    readout_MQ, weight_VQ, bias_V = (
        torch.randn(*shape, dtype=dtype, requires_grad=True) for shape in ((num_rows, 5), (11, 5), (11,))
    )
    return [readout_MQ, weight_VQ, bias_V if bias else None, torch.randint(0, 11, (num_rows,))]


@pytest.mark.parametrize(
    "num_rows", [0, 1, 7, CHUNK_ROWS - 1, CHUNK_ROWS, CHUNK_ROWS + 1, 2 * CHUNK_ROWS + 3]
)
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_loss_and_gradients_are_those_of_plain_torch(
    num_rows: int, smoothing: float, bias: bool, dtype: Any
) -> None:
    inputs = example(num_rows, bias=bias, dtype=dtype)
    learned = [tensor for tensor in inputs[:3] if tensor is not None]
    loss = smoothed_cross_entropy(*inputs, smoothing)
    plain = plain_loss(*inputs, smoothing)
    close = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 1e-9, "atol": 1e-9}
    torch.testing.assert_close(loss.smoothed, plain, **close)
    torch.testing.assert_close(loss.nll, plain_loss(*inputs, 0.0).detach(), **close)
    assert not loss.nll.requires_grad
    ours = torch.autograd.grad(3 * loss.smoothed, learned)
    theirs = torch.autograd.grad(3 * plain, learned)
    for grad, wanted in zip(ours, theirs, strict=True):
        torch.testing.assert_close(grad, wanted, **close)


def test_the_smoothing_is_that_of_torch() -> None:
    readout_MQ, weight_VQ, bias_V, targets_M = example(20)
    logits_MV = functional.linear(readout_MQ, weight_VQ, bias_V)
    wanted = functional.cross_entropy(logits_MV, targets_M, label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(
        smoothed_cross_entropy(readout_MQ, weight_VQ, bias_V, targets_M, 0.1).smoothed, wanted
    )


def test_two_equal_words_share_the_probability() -> None:
    loss = smoothed_cross_entropy(torch.ones(3, 1), torch.ones(2, 1), None, torch.tensor([0, 1, 0]), 0.2)
    assert float(loss.nll) == pytest.approx(3 * np.log(2))
    assert float(loss.smoothed) == pytest.approx(3 * np.log(2))


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_gradients_pass_gradcheck(smoothing: float) -> None:
    *learned, targets_M = example(4)

    def loss(*learned: Any) -> Any:
        return smoothed_cross_entropy(*learned, targets_M, smoothing).smoothed

    assert torch.autograd.gradcheck(loss, learned)


def test_going_back_twice_gives_the_gradient_twice() -> None:
    inputs = example(4)
    loss = smoothed_cross_entropy(*inputs, 0.1).smoothed
    (once,) = torch.autograd.grad(5 * loss, inputs[1], retain_graph=True)
    (again,) = torch.autograd.grad(5 * loss, inputs[1])
    assert torch.equal(once, again)


class Watch(TorchFunctionMode):  # type: ignore[misc, unused-ignore]
    """The names of the torch functions called, and the number of elements in their largest result."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.largest = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.names.add(func.__name__)
        if isinstance(result, torch.Tensor):
            self.largest = max(self.largest, result.numel())
        return result


def test_only_the_gradients_asked_for_are_computed() -> None:
    inputs = example(9)
    computing = {"scatter_add_", "addmm_", "zeros_like"}
    with Watch() as trained:
        smoothed_cross_entropy(*inputs, 0.1)
    assert computing <= trained.names
    with torch.no_grad(), Watch() as evaluated:
        loss = smoothed_cross_entropy(*inputs, 0.1)
    assert not computing & evaluated.names
    assert not loss.smoothed.requires_grad
    with Watch() as frozen:
        readout_MQ, weight_VQ, bias_V, targets_M = inputs
        loss = smoothed_cross_entropy(readout_MQ, weight_VQ.detach(), bias_V.detach(), targets_M, 0.1)
    assert "addmm_" not in frozen.names
    torch.testing.assert_close(
        torch.autograd.grad(loss.smoothed, readout_MQ),
        torch.autograd.grad(plain_loss(*inputs, 0.1), readout_MQ),
    )


def test_never_more_scores_than_one_chunk_are_held() -> None:
    with Watch() as watch:
        smoothed_cross_entropy(*example(4 * CHUNK_ROWS), 0.1)
    assert watch.largest == max(CHUNK_ROWS * 11, 4 * CHUNK_ROWS * 5)


@pytest.mark.parametrize("scale", [100.0, 1e4])
def test_extreme_scores_give_finite_and_right_losses(scale: float) -> None:
    inputs = example(CHUNK_ROWS + 40, dtype=torch.float32)
    inputs[0] = (inputs[0] * scale).detach().requires_grad_()
    loss = smoothed_cross_entropy(*inputs, 0.1)
    exact = [tensor.double() for tensor in inputs[:3]]
    torch.testing.assert_close(loss.smoothed.double(), plain_loss(*exact, inputs[3], 0.1), rtol=1e-5, atol=0)
    torch.testing.assert_close(loss.nll.double(), plain_loss(*exact, inputs[3], 0.0), rtol=1e-5, atol=0)
    for grad in torch.autograd.grad(loss.smoothed, inputs[:3]):
        assert bool(grad.isfinite().all())


def test_a_target_outside_the_vocabulary_is_refused() -> None:
    readout_MQ, weight_VQ, bias_V, targets_M = example(3)
    with pytest.raises(RuntimeError, match="out of bounds"):
        smoothed_cross_entropy(readout_MQ, weight_VQ, bias_V, targets_M + 11, 0.1)
