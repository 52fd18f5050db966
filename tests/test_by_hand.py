"""Numbers small enough to work out on paper: each equation at width 2, in NumPy and in PyTorch.

The weights are chosen so that every expected value is a short formula in exp and tanh.
"""

import math
from math import exp, sqrt, tanh

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from small import VOCAB, batch_of, shrink  # noqa: E402

from regard.contract import unseen  # noqa: E402
from regard.model.attention import Attention  # noqa: E402
from regard.model.build import build_model, export_arrays  # noqa: E402
from regard.model.cells import CELLS, Recurrent  # noqa: E402
from regard.model.embed import sinusoids as torch_sinusoids  # noqa: E402
from regard.model.engine import TorchEngine  # noqa: E402
from regard.model.presets import PRESETS  # noqa: E402
from regard.model.scorers import build_scorer  # noqa: E402
from regard.options.model import RecurrentOptions, StepAttendStep  # noqa: E402
from regard.options.parse import parse  # noqa: E402
from regard.runtime import equations  # noqa: E402
from regard.runtime.build import build_engine  # noqa: E402

NEMATUS = RecurrentOptions(cell="gru-after", attention=StepAttendStep(), readout="tanh", tie="none")
IDENTITY = [[1.0, 0.0], [0.0, 1.0]]
SWAP = [[0.0, 1.0], [1.0, 0.0]]


def sigmoid(x):
    return 1 / (1 + exp(-x))


def set_weights(module, **weights):
    """Set every weight of a PyTorch module, all of which must be named."""
    assert {name.replace(".", "_") for name, _ in module.named_parameters()} == set(weights)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(torch.tensor(weights[name.replace(".", "_")], dtype=torch.float64))
    return module.double()


def one_step(kind, gates, state, **weights):
    """The state after one step, of NumPy and of PyTorch."""
    cell = set_weights(CELLS[kind](2, 2, layer_norm=False).double(), **weights)
    recurrent = Recurrent(tuple(cell.U), None)
    by_torch = cell(
        torch.tensor([gates], dtype=torch.float64),
        torch.tensor([state], dtype=torch.float64),
        recurrent,
        unseen,
        "cell",
    )
    arrays = {name: parameter.detach().numpy() for name, parameter in cell.named_parameters()}
    by_numpy = equations.CELLS[kind](np.array([gates]), np.array([state]), arrays, unseen, "cell")
    np.testing.assert_allclose(by_numpy, by_torch.detach().numpy(), atol=1e-15)
    return by_numpy[0]


@pytest.mark.parametrize("has_small_kernels", [False, True])
def test_few_rows_and_many_are_multiplied_alike(has_small_kernels, monkeypatch):
    monkeypatch.setattr(equations, "has_small_kernels", lambda: has_small_kernels)
    random = np.random.default_rng(1)
    x, W, b = (random.integers(-9, 9, shape).astype(np.float32) for shape in ((8, 5), (3, 5), (3,)))
    stored = equations.by_column({"W": W, "source.weight": W})
    assert stored["W"].flags.f_contiguous and stored["source.weight"] is W
    for num_rows in range(9):
        expected = [[sum(W[i] * one) + b[i] for i in range(3)] for one in x[:num_rows]]
        for weight in (W, stored["W"]):
            np.testing.assert_array_equal(
                equations.linear(x[:num_rows], weight, b), np.reshape(expected, (-1, 3))
            )


@pytest.mark.parametrize("size", [128, 1100])  # small products of many rows, and of too few to be worth it
def test_products_by_block_are_those_of_the_whole_matrix(size, monkeypatch):
    monkeypatch.setattr(equations, "has_small_kernels", lambda: True)
    random = np.random.default_rng(1)
    x, W, b = (
        random.integers(-9, 9, shape).astype(np.float32) for shape in ((300, size), (1600, size), (1600,))
    )
    stored = equations.by_column({"W": W, "W_odd": W[:1590], "W_o": W})
    assert stored["W"].shape == (25, size, 64)
    assert stored["W_odd"].flags.f_contiguous and stored["W_odd"].shape == (1590, size) and stored["W_o"] is W
    filled = equations.in_blocks(W[:1590])
    assert filled.shape == (25, size, 64)
    for num_rows in (0, 1, 2, 40, 300):
        some, expected = x[:num_rows], x[:num_rows].astype(int) @ W.T.astype(int)
        np.testing.assert_array_equal(equations.linear(some, stored["W"]), expected)
        np.testing.assert_array_equal(equations.linear(some, stored["W"], b), expected + b)
        np.testing.assert_array_equal(equations.linear(some, filled, b[:1590]), expected[:, :1590] + b[:1590])
    halves = equations.linear(x.reshape(3, 100, size)[..., : size // 2], stored["W"][:, : size // 2])
    expected = (x[:, : size // 2].astype(int) @ W[:, : size // 2].T.astype(int)).reshape(3, 100, 1600)
    np.testing.assert_array_equal(halves, expected)


def test_a_plain_cell():
    state = one_step("rnn", [1.0, -1.0], [0.5, 2.0], W=IDENTITY, b=[0, 0], U_0=SWAP)
    np.testing.assert_allclose(state, [tanh(1 + 2), tanh(-1 + 0.5)])


def test_a_gated_cell():
    # U_z is 0, so z = σ(input); U_r is the identity; U swaps what the reset gate lets through.
    gates = [0.0, 2.0, 0.0, -1.0, 0.3, 0.7]
    zeros = [[0.0, 0.0], [0.0, 0.0]]
    state = one_step(
        "gru", gates, [1.0, -2.0], W=np.zeros((6, 2)), b=np.zeros(6), U_0=zeros + IDENTITY, U_1=SWAP
    )
    z = [0.5, sigmoid(2)]
    r = [sigmoid(0 + 1), sigmoid(-1 - 2)]
    candidate = [tanh(0.3 + r[1] * -2), tanh(0.7 + r[0] * 1)]
    np.testing.assert_allclose(
        state, [(1 - z[0]) * 1 + z[0] * candidate[0], (1 - z[1]) * -2 + z[1] * candidate[1]]
    )


def test_a_gated_cell_that_resets_after_its_matrix():
    gates = [0.0, 2.0, 0.0, -1.0, 0.3, 0.7]
    zeros, b_U = [[0.0, 0.0], [0.0, 0.0]], [0.25, -0.5]
    state = one_step(
        "gru-after",
        gates,
        [1.0, -2.0],
        W=np.zeros((6, 2)),
        b=np.zeros(6),
        U_0=zeros + IDENTITY + SWAP,
        b_U=b_U,
    )
    z, r = [0.5, sigmoid(2)], [sigmoid(0 + 1), sigmoid(-1 - 2)]
    candidate = [tanh(0.3 + r[0] * (-2 + 0.25)), tanh(0.7 + r[1] * (1 - 0.5))]
    np.testing.assert_allclose(
        state, [(1 - z[0]) * 1 + z[0] * candidate[0], (1 - z[1]) * -2 + z[1] * candidate[1]]
    )


def test_a_long_short_term_cell():
    # Only the candidate sees the last h: g = tanh(input + swap h).
    gates = [0.0, 1.0, 0.0, -1.0, 2.0, 0.0, 0.1, 0.2]
    zeros = [[0.0, 0.0], [0.0, 0.0]]
    state = one_step(
        "lstm", gates, [0.5, -0.5, 3.0, 1.0], W=np.zeros((8, 2)), b=np.zeros(8), U_0=zeros * 3 + SWAP
    )
    c = [
        0.5 * 3 + 0.5 * tanh(0.1 - 0.5),
        sigmoid(-1) * 1 + sigmoid(1) * tanh(0.2 + 0.5),
    ]
    np.testing.assert_allclose(state, [sigmoid(2) * tanh(c[0]), 0.5 * tanh(c[1]), *c])


QUERY = [1.0, 2.0]
MEMORY = [[3.0, 0.0], [0.0, -1.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    ("scorer", "weights", "expected"),
    [
        ("dot", {}, [3, -2, 3]),
        ("scaled-dot", {}, [3 / sqrt(2), -2 / sqrt(2), 3 / sqrt(2)]),
        ("general", {"W_a": [[0.0, 2.0], [1.0, 0.0]]}, [1 * 0 + 2 * 3, 1 * -2 + 0, 1 * 2 + 2 * 1]),
        ("scaled-general", {"W_a": [[0.0, 2.0], [1.0, 0.0]]}, [6 / sqrt(2), -2 / sqrt(2), 4 / sqrt(2)]),
        (
            "additive",
            {"W_a": SWAP, "U_a": IDENTITY, "b_a": [0.0, 0.5], "v_a": [1.0, -2.0]},
            [
                tanh(2 + 3) - 2 * tanh(1 + 0 + 0.5),
                tanh(2 + 0) - 2 * tanh(1 - 1 + 0.5),
                tanh(2 + 1) - 2 * tanh(1 + 1 + 0.5),
            ],
        ),
        ("location", {"W_a": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [9.0, 9.0]]}, [1, 2, 3]),
    ],
)
def test_every_score(scorer, weights, expected):
    options = {"kind": scorer} | ({"max_positions": 4} if scorer == "location" else {})
    options = parse("model", {"kind": "recurrent", "attention": {"scorer": options}}).attention.scorer
    module = set_weights(build_scorer(options, 2, 2), **weights)
    memory_BSH = torch.tensor([MEMORY], dtype=torch.float64)
    scores = module(torch.tensor([[QUERY]], dtype=torch.float64), module.prepare(memory_BSH), unseen)
    np.testing.assert_allclose(scores[0, 0].detach(), expected)
    arrays = {name: np.array(value) for name, value in weights.items()}
    keys = equations.PREPARE[scorer](np.array([MEMORY]), arrays, 2)
    np.testing.assert_allclose(equations.SCORES[scorer](np.array([QUERY]), keys, arrays, unseen)[0], expected)


def test_a_dot_with_two_directions_meets_both():
    options = parse("model", {"kind": "recurrent", "attention": {"scorer": "dot"}}).attention.scorer
    module = build_scorer(options, 2, 4)
    keys = module.prepare(torch.tensor([[[1.0, 2.0, 10.0, 20.0]]]))
    assert module(torch.tensor([[[1.0, 3.0]]]), keys, unseen).item() == (1 + 6) + (10 + 60)


def look(query, memory, step=0, **attention):
    """Weights and context of one look through a PyTorch `Attention` with dot scores."""
    options = parse("model", {"kind": "recurrent", "attention": {"scorer": "dot", **attention}}).attention
    module = Attention(options, 2, 2).double()
    if module.place is not None:
        set_weights(module.place, W_p=IDENTITY, v_p=[1.0, 1.0])
    memory_BSH = torch.tensor([memory], dtype=torch.float64)
    memories = module.prepare(memory_BSH, torch.ones(1, len(memory), dtype=torch.bool), unseen)
    attended = module(torch.tensor([[query]], dtype=torch.float64), memories, step, unseen)
    return attended.weights_BTS[0, 0].detach().numpy(), attended.context_BTH[0, 0].detach().numpy()


def test_a_global_look():
    weights, context = look([1.0, 0.0], [[0.0, 5.0], [math.log(3), 1.0]])
    np.testing.assert_allclose(weights, [1 / 4, 3 / 4])
    np.testing.assert_allclose(context, [0.75 * math.log(3), 0.25 * 5 + 0.75])


FIVE = [[0.0, 0.0], [math.log(2), 0.0], [math.log(3), 0.0], [math.log(4), 0.0], [0.0, 0.0]]


def test_a_local_look_at_the_steps_own_number():
    window = {"kind": "local-m", "half_width": 1}
    np.testing.assert_allclose(look([1, 0], FIVE, 2, window=window)[0], [0, 2 / 9, 3 / 9, 4 / 9, 0])
    np.testing.assert_allclose(look([1, 0], FIVE, 0, window=window)[0], [1 / 3, 2 / 3, 0, 0, 0])
    np.testing.assert_allclose(look([1, 0], FIVE, 99, window=window)[0], [0, 0, 0, 4 / 5, 1 / 5])


def test_a_local_look_at_a_predicted_place():
    # p = 5 σ(tanh 1 + tanh 0) = 3.4085...; D = 2, so σ of the Gaussian is 1, and 2 to 5 are in view.
    place = 5 * sigmoid(tanh(1))
    expected = [0, 0] + [score / 8 * exp(-((i - place) ** 2) / 2) for i, score in ((2, 3), (3, 4), (4, 1))]
    window = {"kind": "local-p", "half_width": 2}
    np.testing.assert_allclose(look([1, 0], FIVE, window=window)[0], expected)
    np.testing.assert_allclose(
        equations.predicted_place(
            np.array([[1.0, 0.0]]), np.array([5]), {"W_p": np.array(IDENTITY), "v_p": np.ones(2)}
        ),
        [place],
    )
    np.testing.assert_allclose(
        equations.gaussian(np.array([[2 - place]]), 2), [[exp(-((2 - place) ** 2) / 2)]]
    )


def test_softmax_leaves_out_what_is_not_seen():
    scores = np.array([[1000.0, 1000.0 + math.log(3), 5000.0]])
    np.testing.assert_allclose(equations.softmax(scores, np.array([[True, True, False]])), [[0.25, 0.75, 0]])


def test_maxout_takes_the_larger_of_two_neighbours():
    np.testing.assert_array_equal(equations.maxout(np.array([[1.0, 2.0, -3.0, -4.0]])), [[2, -3]])


def test_layer_norm():
    gain, bias = np.array([2.0, 1.0]), np.array([0.0, 1.0])
    deviation = sqrt(1 + 1e-5)
    np.testing.assert_allclose(
        equations.layer_norm(np.array([[3.0, 5.0]]), gain, bias), [[-2 / deviation, 1 + 1 / deviation]]
    )


def test_sinusoids():
    expected = [
        [0, 1, 0, 1],
        [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)],
        [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)],
    ]
    np.testing.assert_allclose(equations.sinusoids(0, 3, 4), expected)
    np.testing.assert_allclose(torch_sinusoids(0, 3, 4), expected)
    np.testing.assert_allclose(equations.sinusoids(2, 1, 4), expected[2:])


# The presets at width 2, each worked out with single numbers and nothing but sums, products, exp and tanh.


def times(W, x):
    return [sum(w * v for w, v in zip(row, x, strict=True)) for row in W]


def plus(*vectors):
    return [sum(values) for values in zip(*vectors, strict=True)]


def shares(scores):
    total = sum(map(exp, scores))
    return [exp(score) / total for score in scores]


def mixture(weights, vectors):
    return [sum(a * v[k] for a, v in zip(weights, vectors, strict=True)) for k in range(len(vectors[0]))]


def gated(w, cell, x, s, C_c=None, late=False):
    n = len(s)
    g = plus(times(w[f"{cell}.W"], x), w[f"{cell}.b"])
    if C_c is not None and not late:
        g = plus(g, C_c)
    u = times(w[f"{cell}.U.0"], s)
    if late:
        u = plus(u, C_c[: 2 * n])
    z = [sigmoid(g[k] + u[k]) for k in range(n)]
    r = [sigmoid(g[n + k] + u[n + k]) for k in range(n)]
    if late:
        inner = [r[k] * v for k, v in enumerate(plus(times(w[f"{cell}.U.1"], s), C_c[2 * n :]))]
    else:
        inner = times(w[f"{cell}.U.1"], [r[k] * s[k] for k in range(n)])
    return [(1 - z[k]) * s[k] + z[k] * tanh(g[2 * n + k] + inner[k]) for k in range(n)]


def remembering(w, cell, x, h, c, fed=None):
    n = len(h)
    g = plus(times(w[f"{cell}.W"], x), w[f"{cell}.b"], times(w[f"{cell}.U.0"], h))
    if fed is not None:
        g = plus(g, fed)
    i, f, o = ([sigmoid(v) for v in g[k * n : (k + 1) * n]] for k in range(3))
    c = [f[k] * c[k] + i[k] * tanh(g[3 * n + k]) for k in range(n)]
    return [o[k] * tanh(c[k]) for k in range(n)], c


def larger_of_two(values):
    return [max(values[k], values[k + 1]) for k in range(0, len(values), 2)]


def cho_by_hand(w, source, target):
    h = [0.0, 0.0]
    for id in source:
        h = gated(w, "encoder.layers.0.rightward", w["source.weight"][id], h)
    c = [tanh(v) for v in times(w["decoder.V"], h)]
    s = [tanh(v) for v in times(w["decoder.W_s.0"], c)]
    for id in target:
        y = w["target.weight"][id]
        s = gated(w, "decoder.cells.0", y, s, times(w["decoder.C"], c), late=True)
        t = plus(
            times(w["readout.U_o"], s),
            times(w["readout.V_o"], y),
            times(w["readout.C_o"], c),
            w["readout.b_m"],
        )
        yield plus(times(w["W_o"], times(w["readout.P_o"], larger_of_two(t))), w["b_o"]), None


def bahdanau_by_hand(w, source, target):
    embedded = [w["source.weight"][id] for id in source]
    right, left, s = [], [], [0.0, 0.0]
    for x in embedded:
        s = gated(w, "encoder.layers.0.rightward", x, s)
        right.append(s)
    s = [0.0, 0.0]
    for x in reversed(embedded):
        s = gated(w, "encoder.layers.0.leftward", x, s)
        left.insert(0, s)
    h = [a + b for a, b in zip(right, left, strict=True)]
    s = [tanh(v) for v in times(w["decoder.W_s.0"], left[0])]
    scorer = "decoder.attention.scorer"
    for id in target:
        y, query = w["target.weight"][id], times(w[f"{scorer}.W_a"], s)
        scores = [
            sum(
                v * tanh(e)
                for v, e in zip(
                    w[f"{scorer}.v_a"],
                    plus(query, times(w[f"{scorer}.U_a"], m), w[f"{scorer}.b_a"]),
                    strict=True,
                )
            )
            for m in h
        ]
        alpha = shares(scores)
        c = mixture(alpha, h)
        s = gated(w, "decoder.cells.0", y, s, times(w["decoder.C"], c))
        t = plus(
            times(w["readout.U_o"], s),
            times(w["readout.V_o"], y),
            times(w["readout.C_o"], c),
            w["readout.b_m"],
        )
        yield plus(times(w["W_o"], larger_of_two(t)), w["b_o"]), [[alpha]]


def reset_after(w, cell, x, s):
    n = len(s)
    g, u = plus(times(w[f"{cell}.W"], x), w[f"{cell}.b"]), times(w[f"{cell}.U.0"], s)
    z, r = ([sigmoid(g[k] + u[k]) for k in range(at, at + n)] for at in (0, n))
    candidate = [tanh(g[2 * n + k] + r[k] * (u[2 * n + k] + b)) for k, b in enumerate(w[f"{cell}.b_U"])]
    return [(1 - z[k]) * s[k] + z[k] * candidate[k] for k in range(n)]


def sennrich_by_hand(w, source, target):
    embedded, h = [w["source.weight"][id] for id in source], [[] for _ in source]
    for direction, order in (("rightward", range(len(h))), ("leftward", reversed(range(len(h))))):
        s = [0.0, 0.0]
        for i in order:
            s = reset_after(w, f"encoder.layers.0.{direction}", embedded[i], s)
            h[i] = h[i] + s
    mean = [sum(column) / len(h) for column in zip(*h, strict=True)]
    s = [tanh(v) for v in plus(times(w["decoder.W_s.0"], mean), w["decoder.b_s.0"])]
    W_a, U_a, b_a, v_a = (w[f"decoder.attention.scorer.{name}"] for name in ("W_a", "U_a", "b_a", "v_a"))
    for id in target:
        y = w["target.weight"][id]
        s = reset_after(w, "decoder.cells.0", y, s)
        inner = [[tanh(e) for e in plus(times(W_a, s), times(U_a, m), b_a)] for m in h]
        alpha = shares([sum(v * e for v, e in zip(v_a, one, strict=True)) for one in inner])
        c = mixture(alpha, h)
        s = reset_after(w, "decoder.second", c, s)
        t = plus(times(w["readout.U_o"], s), times(w["readout.V_o"], y), times(w["readout.C_o"], c))
        t = [tanh(v) for v in plus(t, w["readout.b_m"])]
        yield plus(times(w["W_o"], t), w["b_o"]), [[alpha]]


def backwards_by_hand(w, source):
    """Two layers of LSTM over the reversed source: the memories of the upper one, and all last states."""
    states, memories = [([0.0, 0.0], [0.0, 0.0])] * 2, []
    for id in reversed(source):
        x = w["source.weight"][id]
        for layer in range(2):
            states[layer] = remembering(w, f"encoder.layers.{layer}.leftward", x, *states[layer])
            x = states[layer][0]
        memories.insert(0, x)
    return memories, states


def sutskever_by_hand(w, source, target):
    _, states = backwards_by_hand(w, source)
    for id in target:
        x = w["target.weight"][id]
        for layer in range(2):
            states[layer] = remembering(w, f"decoder.cells.{layer}", x, *states[layer])
            x = states[layer][0]
        yield plus(times(w["W_o"], x), w["b_o"]), None


def luong_by_hand(w, source, target):
    h, states = backwards_by_hand(w, source)
    fed, D = [0.0, 0.0], 1
    for id in target:
        x = w["target.weight"][id]
        for layer in range(2):
            entering = times(w["decoder.C"], fed) if layer == 0 else None
            states[layer] = remembering(w, f"decoder.cells.{layer}", x, *states[layer], entering)
            x = states[layer][0]
        inner = [tanh(v) for v in times(w["decoder.attention.place.W_p"], x)]
        place = len(h) * sigmoid(
            sum(v * e for v, e in zip(w["decoder.attention.place.v_p"], inner, strict=True))
        )
        seen = [i for i in range(len(h)) if abs(i - place) <= D]
        keys = {i: times(w["decoder.attention.scorer.W_a"], h[i]) for i in seen}
        within = dict(
            zip(
                seen, shares([sum(a * b for a, b in zip(x, keys[i], strict=True)) for i in seen]), strict=True
            )
        )
        alpha = [within.get(i, 0) * exp(-((i - place) ** 2) / (2 * (D / 2) ** 2)) for i in range(len(h))]
        fed = [tanh(v) for v in times(w["decoder.W_c"], mixture(alpha, h) + x)]
        yield plus(times(w["W_o"], fed), w["b_o"]), [[alpha]]


def vaswani_by_hand(w, source, target):
    def norm(name, x):
        mean = sum(x) / 2
        deviation = sqrt(sum((v - mean) ** 2 for v in x) / 2 + 1e-5)
        return [
            (v - mean) / deviation * g + b
            for v, g, b in zip(x, w[f"{name}.weight"], w[f"{name}.bias"], strict=True)
        ]

    def embedded(ids):
        for p, id in enumerate(ids):
            yield plus([sqrt(2) * v for v in w["source.weight"][id]], [math.sin(p), math.cos(p)])

    def attend(query, keys, values, W_O):
        """Two heads of width 1, so √d_k is 1."""
        weights = [shares([query[n] * k[n] for k in keys]) for n in range(2)]
        heads = [mixture(weights[n], values)[n] for n in range(2)]
        return times(W_O, heads), weights

    def feed_forward(name, x):
        inner = [max(0, v) for v in plus(times(w[f"{name}.W_1"], x), w[f"{name}.b_1"])]
        return plus(times(w[f"{name}.W_2"], inner), w[f"{name}.b_2"])

    xs = list(embedded(source))
    for layer in range(2):
        qkv = [times(w[f"encoder.{layer}.own.W_QKV"], x) for x in xs]
        keys, values = [v[2:4] for v in qkv], [v[4:] for v in qkv]
        W_O = w[f"encoder.{layer}.own.W_O"]
        xs = [
            norm(f"encoder.{layer}.own_sum.norm", plus(x, attend(v[:2], keys, values, W_O)[0]))
            for x, v in zip(xs, qkv, strict=True)
        ]
        xs = [
            norm(
                f"encoder.{layer}.feed_forward_sum.norm",
                plus(x, feed_forward(f"encoder.{layer}.feed_forward", x)),
            )
            for x in xs
        ]
    memory, ys = xs, list(embedded(target))
    looked = [[] for _ in target]
    for layer in range(2):
        name = f"decoder.{layer}"
        qkv = [times(w[f"{name}.own.W_QKV"], y) for y in ys]
        kv = [times(w[f"{name}.cross.W_KV"], m) for m in memory]
        after = []
        for t, y in enumerate(ys):
            keys, values = [v[2:4] for v in qkv[: t + 1]], [v[4:] for v in qkv[: t + 1]]
            z, _ = attend(qkv[t][:2], keys, values, w[f"{name}.own.W_O"])
            y = norm(f"{name}.own_sum.norm", plus(y, z))
            query = times(w[f"{name}.cross.W_Q"], y)
            z, weights = attend(query, [v[:2] for v in kv], [v[2:] for v in kv], w[f"{name}.cross.W_O"])
            looked[t].append(weights)
            y = norm(f"{name}.cross_sum.norm", plus(y, z))
            after.append(
                norm(f"{name}.feed_forward_sum.norm", plus(y, feed_forward(f"{name}.feed_forward", y)))
            )
        ys = after
    for t, y in enumerate(ys):
        yield times(w["source.weight"], y), looked[t]


@pytest.mark.parametrize(
    ("name", "by_hand"),
    [
        ("sutskever2014", sutskever_by_hand),
        ("cho2014", cho_by_hand),
        ("bahdanau2015", bahdanau_by_hand),
        ("luong2015", luong_by_hand),
        ("nematus", sennrich_by_hand),
        ("vaswani2017", vaswani_by_hand),
    ],
)
def test_each_paper_at_width_2(name, by_hand):
    sizes = {"hidden_size": 2, "embedding_size": 2, "feed_forward_size": 3, "num_heads": 2, "half_width": 1}
    options = shrink((PRESETS | {"nematus": NEMATUS})[name], **sizes)
    model = build_model(options, VOCAB, VOCAB).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    arrays = export_arrays(model)
    batch = batch_of(("abca", "bcd"))
    w = {key: value.tolist() for key, value in arrays.items()}
    steps = list(by_hand(w, batch.source_BS[0].tolist(), batch.target_in_BT[0].tolist()))
    assert len(steps) == 4
    for engine in (TorchEngine(model), build_engine(options, arrays)):
        forced = engine.force(batch)
        for t, (logits, attention) in enumerate(steps):
            np.testing.assert_allclose(forced.logits_BTV[0, t], logits, rtol=1e-9)
            if attention is not None:
                np.testing.assert_allclose(forced.attention_BTLNS[0, t], attention, rtol=1e-9, atol=1e-15)
