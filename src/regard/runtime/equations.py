"""The equations of the papers, one function each, on float32 arrays.

`w` holds the learnt weights of one part of a model by their names in the paper; `linear(x, W, b)` is W x + b.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from regard.contract import Floats, Ids, Probe

Weights = Mapping[str, Floats]


def under(prefix: str, weights: Weights) -> Weights:
    """Return the weights whose names start with a prefix, without it."""
    return {name[len(prefix) :]: value for name, value in weights.items() if name.startswith(prefix)}


_FEW_ROWS = 5  # products with one vector each are faster, up to three times
_BLOCK = 64  # rows of W in a block
_SMALL_PRODUCT = 1_000_000  # multiplications for which OpenBLAS has kernels that copy nothing first
_LARGE = 200_000  # a matrix of so many weights is kept in blocks
_LARGE_BLOCK = 1024 * _BLOCK  # with more weights, too few rows fit into a small product to divide many rows
_AVX512 = {"SkylakeX", "Cooperlake", "SapphireRapids"}


@cache
def has_small_kernels() -> bool:
    """Return whether NumPy multiplies by OpenBLAS with AVX-512, which has kernels for small products."""
    import threadpoolctl  # type: ignore[import-untyped]  # here: it looks through all libraries

    libraries = threadpoolctl.threadpool_info()
    return any(one["internal_api"] == "openblas" and one.get("architecture") in _AVX512 for one in libraries)


def by_column(weights: Weights) -> Weights:
    """Return the weights with each matrix stored as its products want it: by column, large ones in blocks.

    Tables of embeddings and positions stay, since their rows are looked up; so do matrices that an engine
    stores by itself.
    """
    others = ("source.weight", "target.weight", "_positions", "W_a", "W_KV", "W_o")
    return {
        name: W if name.endswith(others) else np.asfortranarray(W) if len(W) % _BLOCK else in_blocks(W)
        for name, W in weights.items()
    }


def in_blocks(W: Floats) -> Floats:
    """Return a large matrix (V, H) as blocks (X, H, 64), the last one filled with zeros; others by column.

    OpenBLAS copies all of W for each product unless the product is small. With a block at a time every
    product is small, and takes down to a fifth of the time.
    """
    if W.ndim != 2 or W.size < _LARGE or not has_small_kernels():
        return np.asfortranarray(W)
    num_blocks = -(-len(W) // _BLOCK)
    blocks_XHB = np.zeros((num_blocks, W.shape[1], _BLOCK), W.dtype)
    for block_HB, first in zip(blocks_XHB, range(0, len(W), _BLOCK), strict=True):
        some = W[first : first + _BLOCK]
        block_HB[:, : len(some)] = some.T
    return blocks_XHB


def linear(x: Floats, W: Floats, b: Floats | None = None) -> Floats:
    """W x + b for each x in the last axis, in one product: NumPy makes one for each of a stack."""
    rows = x.reshape(-1, x.shape[-1])
    if W.ndim == 3:
        product = _by_block(rows, W)
        product = product if b is None else product[:, : len(b)]
    elif 1 < len(rows) <= _FEW_ROWS and not has_small_kernels():
        product = np.matmul(rows[:, None], W.T)[:, 0]
    else:
        product = rows.dot(W.T)  # a microsecond less than with `@`
    if b is not None:
        product += b
    return product.reshape(*x.shape[:-1], product.shape[1])


def _by_block(x_RH: Floats, W_XHB: Floats) -> Floats:
    """W x for a matrix in blocks, of so many rows at a time that each product is small."""
    if len(x_RH) == 1:  # two take less time: they are no product with a vector
        return _by_block(x_RH.repeat(2, axis=0), W_XHB)[:1]
    num_rows, (num_blocks, size, width) = len(x_RH), W_XHB.shape
    y_RV = np.empty((num_rows, num_blocks * width), x_RH.dtype)
    y_XRB = y_RV.reshape(num_rows, num_blocks, width).swapaxes(0, 1)
    fitting = _SMALL_PRODUCT // (size * width) or 1
    if size * width > _LARGE_BLOCK and num_rows > 4 * fitting:
        fitting = num_rows
    for first in range(0, num_rows, fitting):
        np.matmul(x_RH[first : first + fitting], W_XHB, out=y_XRB[:, first : first + fitting])
    return y_RV


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(-x)), written with tanh so that no x overflows."""
    return 0.5 * (np.tanh(0.5 * x) + 1)


def relu(x: Floats) -> Floats:
    """max(0, x)."""
    return np.maximum(x, 0)


def swish(x: Floats) -> Floats:
    """x σ(x) (Ramachandran et al. 2017), also called SiLU."""
    return x * sigmoid(x)


_erf = np.frompyfunc(math.erf, 1, 1)  # NumPy has none; a tenth of a microsecond for each number


def gelu(x: Floats) -> Floats:
    """x Φ(x) with Φ of the normal distribution (Hendrycks and Gimpel 2016)."""
    return 0.5 * x * (1 + _erf(x * math.sqrt(0.5)).astype(x.dtype))


ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {"relu": relu, "swish": swish, "gelu": gelu}


def softmax(scores: Floats, seen: NDArray[np.bool_]) -> Floats:
    """Return exp(e_i) / Σ exp(e_j) over the last axis, over what is seen only; 0 elsewhere."""
    if not seen.all():
        scores = scores.copy(order="K")  # unlike `np.where` it keeps the axes as they are in memory
        np.copyto(scores, -np.inf, where=~seen)
    exponents: Floats = scores - scores.max(-1, keepdims=True)
    np.exp(exponents, out=exponents)
    exponents /= exponents.sum(-1, keepdims=True)
    return exponents


def products(q_BNTD: Floats, k_BNSD: Floats) -> Floats:
    """Q K^T: every query times every key (Vaswani et al. 2017, eq. 1)."""
    batch, num_heads, steps, _ = q_BNTD.shape
    # With S the first axis in memory a softmax over it goes along long rows, in a third of the time.
    scores_SBNT = np.empty((k_BNSD.shape[2], batch, num_heads, steps), q_BNTD.dtype)
    return np.matmul(q_BNTD, k_BNSD.swapaxes(-1, -2), out=scores_SBNT.transpose(1, 2, 3, 0))


@cache
def _shares(size: int, dtype: np.dtype[np.float32]) -> Floats:
    """Return 1/n for each of n values: a product with them is a mean, only faster."""
    return np.full(size, 1 / size, dtype)


def layer_norm(x: Floats, weight: Floats, bias: Floats) -> Floats:
    """Ba et al. 2016, eqs. 3-4: (x - mean) / deviation, times a gain, plus a bias."""
    shares = _shares(x.shape[-1], x.dtype)
    centred: Floats = x - (x @ shares)[..., None]
    centred /= np.sqrt((centred * centred) @ shares + 1e-5)[..., None]
    centred *= weight
    centred += bias
    return centred


def plain_cell(gates_RG: Floats, h_RH: Floats, w: Weights, probe: Probe, name: str) -> Floats:
    """h_t = tanh(W x_t + U h_{t-1} + b) (Elman 1990)."""
    return np.tanh(normed(gates_RG, "norms.0", w) + _recurrent(0, h_RH, w))


def gated_cell(
    gates_RG: Floats, s_RH: Floats, w: Weights, probe: Probe, name: str, late_RG: Floats | None = None
) -> Floats:
    """Bahdanau et al. 2015, A.1.1 and A.2.2.

    z = σ(W_z x + U_z s), r = σ(W_r x + U_r s), s~ = tanh(W x + U (r s)), s_t = (1 - z) s + z s~.
    With C c given apart as `late_RG`, Cho et al. 2014, A.1.2: s~ = tanh(W x + r (U s + C c)).
    """
    size = s_RH.shape[-1]
    input_RG = normed(gates_RG, "norms.0", w)
    sums_RG = input_RG[:, : 2 * size] + _recurrent(0, s_RH, w)
    zr_RG = sigmoid(sums_RG if late_RG is None else sums_RG + late_RG[:, : 2 * size])
    z_RH = probe(f"{name}.update", zr_RG[:, :size])
    r_RH = probe(f"{name}.reset", zr_RG[:, size:])
    if late_RG is None:
        inner_RH = _recurrent(1, r_RH * s_RH, w)
    else:
        inner_RH = r_RH * (_recurrent(1, s_RH, w) + late_RG[:, 2 * size :])
    candidate_RH = probe(f"{name}.candidate", np.tanh(input_RG[:, 2 * size :] + inner_RH))
    return s_RH + z_RH * (candidate_RH - s_RH)


def late_gated_cell(gates_RG: Floats, s_RH: Floats, w: Weights, probe: Probe, name: str) -> Floats:
    """A gated cell that resets after the product, which is then one for all gates (Marian, cuDNN, PyTorch).

    s~ = tanh(W x + b + r (U s + b_U)); the rest is that of `gated_cell`.
    """
    size = s_RH.shape[-1]
    input_RG, state_RG = normed(gates_RG, "norms.0", w), _recurrent(0, s_RH, w)
    zr_RG = sigmoid(input_RG[:, : 2 * size] + state_RG[:, : 2 * size])
    z_RH = probe(f"{name}.update", zr_RG[:, :size])
    r_RH = probe(f"{name}.reset", zr_RG[:, size:])
    inner_RH = r_RH * (state_RG[:, 2 * size :] + w.get("b_U", 0))
    candidate_RH = probe(f"{name}.candidate", np.tanh(input_RG[:, 2 * size :] + inner_RH))
    return s_RH + z_RH * (candidate_RH - s_RH)


def long_short_term_cell(gates_RG: Floats, hc_RX: Floats, w: Weights, probe: Probe, name: str) -> Floats:
    """[i f o g] = [σ σ σ tanh](W x + U h), c_t = f c + i g, h_t = o tanh(c_t) (Zaremba et al. 2014)."""
    size = hc_RX.shape[-1] // 2
    sums_RG = normed(gates_RG, "norms.0", w) + _recurrent(0, hc_RX[:, :size], w)
    gates_RG = sigmoid(sums_RG[:, : 3 * size])
    i_RH = probe(f"{name}.input", gates_RG[:, :size])
    f_RH = probe(f"{name}.forget", gates_RG[:, size : 2 * size])
    o_RH = probe(f"{name}.output", gates_RG[:, 2 * size :])
    g_RH = probe(f"{name}.candidate", np.tanh(sums_RG[:, 3 * size :]))
    c_RH = probe(f"{name}.memory", f_RH * hc_RX[:, size:] + i_RH * g_RH)
    seen_RH = normed(c_RH, "norm_of_memory", w)
    return np.concatenate([o_RH * np.tanh(seen_RH), c_RH], axis=-1)


CELLS: dict[str, Callable[..., Floats]] = {
    "rnn": plain_cell,
    "gru": gated_cell,
    "gru-after": late_gated_cell,
    "lstm": long_short_term_cell,
}


def _recurrent(index: int, h_RH: Floats, w: Weights) -> Floats:
    """Return U h, normalised if layers are."""
    return normed(linear(h_RH, w[f"U.{index}"]), f"norms.{1 + index}", w)


def normed(x: Floats, name: str, w: Weights) -> Floats:
    """Return x after the layer norm of this name, if the model has it."""
    gain = w.get(f"{name}.weight")
    return x if gain is None else layer_norm(x, gain, w[f"{name}.bias"])


def prepare_dot(h_BSH: Floats, w: Weights, query_size: int) -> Floats:
    """Return the keys of `dot`: h, or the sum of its two directions."""
    directions = h_BSH.shape[2] // query_size
    return h_BSH.reshape(*h_BSH.shape[:2], directions, query_size).sum(-2)


def prepare_scaled_dot(h_BSH: Floats, w: Weights, query_size: int) -> Floats:
    """Return the keys of `scaled-dot`: those of `dot` over √n."""
    return prepare_dot(h_BSH, w, query_size) * (1 / math.sqrt(query_size))


def prepare_general(h_BSH: Floats, w: Weights, query_size: int) -> Floats:
    """Return the keys of `general`: W_a h."""
    return linear(h_BSH, w["W_a"])


def prepare_scaled_general(h_BSH: Floats, w: Weights, query_size: int) -> Floats:
    """Return the keys of `scaled-general`: those of `general` over √n."""
    return prepare_general(h_BSH, w, query_size) * (1 / math.sqrt(query_size))


def prepare_additive(h_BSH: Floats, w: Weights, query_size: int) -> Floats:
    """Return the keys of `additive`: U_a h + b_a."""
    return normed(linear(h_BSH, w["U_a"], w.get("b_a")), "norm_of_keys", w)


def prepare_location(h_BSH: Floats, w: Weights, query_size: int) -> Floats:
    """Return the keys of `location`: for position i row i of W_a, whatever stands there."""
    rows_SQ = w["W_a"][: h_BSH.shape[1]]
    padded_SQ = np.pad(rows_SQ, ((0, h_BSH.shape[1] - len(rows_SQ)), (0, 0)))
    return np.broadcast_to(padded_SQ, (len(h_BSH), *padded_SQ.shape))


PREPARE: dict[str, Callable[[Floats, Weights, int], Floats]] = {
    "dot": prepare_dot,
    "scaled-dot": prepare_scaled_dot,
    "general": prepare_general,
    "scaled-general": prepare_scaled_general,
    "additive": prepare_additive,
    "location": prepare_location,
}


def product_scores(s_RQ: Floats, keys_RSQ: Floats, w: Weights, probe: Probe) -> Floats:
    """e_i = s . key_i: `dot`, `general`, `location` (Luong et al. 2015, section 3.1), and those over √n."""
    return np.matmul(keys_RSQ, s_RQ[:, :, None])[:, :, 0]


def additive_scores(s_RQ: Floats, keys_RSA: Floats, w: Weights, probe: Probe) -> Floats:
    """e_i = v_a . tanh(W_a s + U_a h_i + b_a) (Bahdanau et al. 2015, A.1.2)."""
    query_RA = normed(linear(s_RQ, w["W_a"]), "norm_of_query", w)
    inner_RSA = probe("attention.inner", np.tanh(query_RA[:, None] + keys_RSA))
    return inner_RSA @ w["v_a"]


SCORES: dict[str, Callable[[Floats, Floats, Weights, Probe], Floats]] = {
    "dot": product_scores,
    "scaled-dot": product_scores,
    "general": product_scores,
    "scaled-general": product_scores,
    "additive": additive_scores,
    "location": product_scores,
}


def monotonic_place(step: int, length_R: Ids) -> Floats:
    """p_t = t, the last source token once the source has ended (Luong et al. 2015, local-m)."""
    return np.minimum(step, length_R - 1).astype(np.float32)


def predicted_place(s_RQ: Floats, length_R: Ids, w: Weights) -> Floats:
    """p_t = S sigmoid(v_p . tanh(W_p s)) (Luong et al. 2015, eq. 9)."""
    return length_R.astype(np.float32) * sigmoid(np.tanh(linear(s_RQ, w["W_p"])) @ w["v_p"])


def gaussian(offset_RS: Floats, half_width: int) -> Floats:
    """exp(-(i - p_t)² / 2σ²) with σ = D/2 (Luong et al. 2015, eq. 10)."""
    spread = half_width / 2
    return np.exp(-(offset_RS * offset_RS) / (2 * spread * spread))


def maxout(x: Floats) -> Floats:
    """Return the larger of each two neighbours (Goodfellow et al. 2013; Bahdanau et al. 2015, A.2.2)."""
    return np.maximum(x[..., 0::2], x[..., 1::2])


def sinusoids(first: int, num_positions: int, size: int) -> NDArray[np.float64]:
    """PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos of the same (Vaswani et al. 2017, section 3.5)."""
    angle = np.arange(first, first + num_positions)[:, None] / 10_000 ** (np.arange(0, size, 2) / size)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(num_positions, size)
