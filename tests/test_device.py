import pytest

torch = pytest.importorskip("torch")

from regard.doctor import AVX512  # noqa: E402
from regard.training import device  # noqa: E402

AMD = {"AuthenticAMD", *AVX512}


@pytest.fixture
def kernels():
    """Where torch keeps which kernels it uses, as it is at first."""
    settings = torch.backends.mkldnn.matmul
    before = settings.fp32_precision
    settings.fp32_precision = "none"
    yield settings
    settings.fp32_precision = before


@pytest.mark.parametrize("words", [{"GenuineIntel", *AVX512}, {"AuthenticAMD", "avx2"}, set()])
def test_other_processors_keep_the_kernels_of_torch(monkeypatch, kernels, words):
    monkeypatch.setattr(device, "processor_words", lambda: words)
    device.choose_kernels()
    assert kernels.fp32_precision == "none"


def test_products_stay_as_exact_as_float32(monkeypatch, kernels):
    monkeypatch.setattr(device, "processor_words", lambda: AMD)
    device.choose_kernels()
    assert device._is_float32()


def test_kernels_that_round_to_bfloat16_are_not_used(monkeypatch, kernels):
    monkeypatch.setattr(device, "processor_words", lambda: AMD)
    monkeypatch.setattr(device, "_is_float32", lambda: False)
    device.choose_kernels()
    assert kernels.fp32_precision == "none"


def test_products_of_bfloat16_are_recognised(monkeypatch):
    product = torch.Tensor.__matmul__

    def rounded(left, right):
        if left.dtype == torch.float32:
            left, right = left.bfloat16().float(), right.bfloat16().float()
        return product(left, right)

    assert device._is_float32()
    monkeypatch.setattr(torch.Tensor, "__matmul__", rounded)
    assert not device._is_float32()
