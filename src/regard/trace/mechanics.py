"""The mechanics of one step, card by card, in the order of each paper and with its symbols.

A card says what is computed and which recorded numbers show it; it holds no numbers itself. So the terminal
and the page show the same cards, for any step.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from regard.contract import Floats
from regard.draw.labels import cut, display_width, folded, pad_right, printable
from regard.errors import ConfigError
from regard.options.model import RecurrentOptions, TransformerOptions
from regard.trace.document import Document
from regard.vocabulary import BOS, RESERVED

Form = Literal["vector", "vectors", "weighted", "products", "scores", "weights", "candidates"]

_BAR = 24
_NUM_SHOWN = 5  # of the candidates; and of a vector's numbers at its start
_MAX_LABEL = 18


@dataclass(frozen=True, slots=True)
class Show:
    """Numbers of a card: a `vector` of this step, `vectors` of all source pieces, the same `weighted` by the
    attention, or numbers of the attention: one for each source piece.

    `name` is that of the state; `{l}` in it is the layer, and its first axis are then the heads.
    """

    symbol: str
    form: Form
    name: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """One thing that is computed. `key` names it in every language; `number` is None outside of the paper's
    own count."""

    key: str
    number: int | None
    title: str
    formula: str
    shows: tuple[Show, ...]


_SCORES = {
    "dot": "e_i = {s} · h_i",
    "scaled-dot": "e_i = {s} · h_i / √n",
    "general": "e_i = {s} · W_a h_i",
    "scaled-general": "e_i = {s} · W_a h_i / √n",
    "additive": "e_i = v_a · tanh(W_a {s} + U_a h_i + b_a)",
    "location": "e_i = (W_a {s})_i, whatever stands at i",
}
_WINDOWS = {
    "global": "α_i = exp(e_i) / Σ_j exp(e_j)",
    "local-m": "α_i = softmax over |i - p_t| ≤ D, with p_t = t",
    "local-p": "α_i = softmax over |i - p_t| ≤ D, times exp(-(i - p_t)² / 2σ²)",
}
_CELLS = {
    "gru": "s_t = (1 - z) s_{t-1} + z s~",
    "lstm": "c_t = f c_{t-1} + i g, s_t = o tanh(c_t)",
    "rnn": "s_t = tanh(W x + U s_{t-1})",
}


_GATES = {
    "gru": {"z": "update", "r": "reset", "s~": "candidate"},
    "lstm": {"i": "input", "f": "forget", "o": "output", "g": "candidate", "c_t": "memory"},
    "rnn": {},
}


def cards(trace: Document) -> list[Card]:
    """Return the cards of the model: Luong's six steps, Bahdanau's four, the Transformer's six."""
    if trace.model.kind == "transformer":
        return _transformer()
    options = trace.model.options
    attention, last = options["attention"], options["num_layers"] - 1
    state = Show("s_t", "vector", f"decoder.{last}.state")
    says = Card("says", None, "the next word", "p = softmax(W_o readout)", (Show("p", "candidates"),))
    fed = Show("e(y_{t-1})", "vector", "target.embedded")
    gates = tuple(
        Show(symbol, "vector", name)
        for symbol, gate in _GATES[options["cell"]].items()
        if (name := f"decoder.{last}.{gate}") in trace.states
    )
    if attention["kind"] == "none":
        context = Show("c", "vector", "decoder.summary")
        return [
            Card(
                "fixed",
                1,
                "one vector for the whole sentence",
                "c = the encoder's last state, the same at every step",
                (context, Show("s_0", "vector", f"decoder.{last}.start")),
            ),
            Card("cell", 2, "step", _CELLS[options["cell"]], (fed, *gates, state)),
            says,
        ]
    query = "s_{t-1}" if attention["kind"] == "attend-then-step" else "s_t"
    score = Card(
        "score",
        1,
        "score every source state",
        _SCORES[attention["scorer"]["kind"]].format(s=query),
        (
            Show(
                "s_{t-1}" if attention["kind"] == "attend-then-step" else "s_t", "vector", "attention.query"
            ),
            Show("h_i", "vectors", "memory"),
            Show("e_i", "scores"),
        ),
    )
    weigh = Card(
        "softmax",
        2,
        "turn scores into weights",
        _WINDOWS[attention["window"]["kind"]],
        (Show("α_i", "weights"),),
    )
    mix = Card(
        "context", 3, "mix the states by their weights", "c_t = Σ_i α_i h_i",
        (Show("c_t", "vector", "attention.context"),),
    )  # fmt: skip
    if attention["kind"] == "attend-then-step":
        step = Card(
            "cell_with_context",
            4,
            "step, with the context beside the last word",
            _CELLS[options["cell"]] + ", x = [e(y_{t-1}); c_t]",
            (fed, *gates, state),
        )
        return [score, weigh, mix, step, says]
    both = Card(
        "concat", 4, "put context and state end to end", "v_t = [c_t; s_t]",
        (Show("c_t", "vector", "attention.context"), Show("s_t", "vector", "attention.query")),
    )  # fmt: skip
    squeeze = Card(
        "attentional", 5, "the attentional vector", "s~_t = tanh(W_c v_t)",
        (Show("s~_t", "vector", "attentional"),),
    )  # fmt: skip
    output = Card("output", 6, "the next word", "y_t = softmax(W_o s~_t + b_o)", (Show("p", "candidates"),))
    return [score, weigh, mix, both, squeeze, output]


def _transformer() -> list[Card]:
    query = Show("q", "vector", "decoder.{l}.cross.query")
    keys, values = (
        Show("k_i", "vectors", "decoder.{l}.cross.keys"),
        Show("v_i", "vectors", "decoder.{l}.cross.values"),
    )
    return [
        Card(
            "qkv",
            1,
            "query, keys and values",
            "q = W_Q x, k_i = W_K h_i, v_i = W_V h_i",
            (query, keys, values),
        ),
        Card("product", 2, "score: query times each key", "q · k_i", (Show("q · k_i", "products"),)),
        Card(
            "scale", 3, "divide by the root of their width", "e_i = q · k_i / √d_k", (Show("e_i", "scores"),)
        ),
        Card(
            "softmax",
            4,
            "turn scores into weights",
            "α_i = exp(e_i) / Σ_j exp(e_j)",
            (Show("α_i", "weights"),),
        ),
        Card(
            "weigh_values",
            5,
            "multiply each value by its weight",
            "α_i v_i",
            (Show("α_i v_i", "weighted", "decoder.{l}.cross.values"),),
        ),
        Card("sum", 6, "sum them up", "z = Σ_i α_i v_i", (Show("z", "vector", "decoder.{l}.cross.heads"),)),
        Card(
            "heads_and_output",
            None,
            "all heads, all layers, the next word",
            "[z_1; …; z_N] W_O, then the layers above, then p = softmax(W_o readout)",
            (Show("readout", "vector", "readout"), Show("p", "candidates")),
        ),
    ]


def internals(options: RecurrentOptions | TransformerOptions, layers: Iterable[int]) -> tuple[str, ...]:
    """Return what the cards of some layers show beside the usual states."""
    if options.kind != "transformer":
        return ()
    names = ("query", "keys", "values", "heads")
    return tuple(f"decoder.{layer}.cross.{name}" for layer in layers for name in names)


def cards_json(trace: Document) -> list[dict[str, Any]]:
    """Return the cards as plain values, for the page."""
    return [asdict(card) for card in cards(trace)]


def step_lines(
    trace: Document, step: int, width: int, layer: int | None = None, head: int | None = None
) -> list[str]:
    """Return the mechanics of one step (counted from 0) with its numbers."""
    pieces = trace.target.pieces
    if not 0 <= step < len(pieces):
        raise ConfigError(
            f"there is no step {step + 1}: the translation has {len(pieces)} steps, `</s>` among them"
        )
    reading = trace.model.reading
    layer = (reading.layer if reading else 0) if layer is None else layer
    if head is None:  # one must be shown, and where nothing tells which it is the first
        head = (reading.head or 0) if reading and reading.layer == layer else 0
    cross = trace.attention("cross")
    if cross is not None and not (
        layer in range(cross.log_weights.shape[0]) and head in range(cross.log_weights.shape[1])
    ):
        raise ConfigError(f"there is no layer {layer + 1}, head {head + 1} in this model")
    fed = RESERVED[BOS] if step == 0 else pieces[step - 1].piece
    where = f", layer {layer + 1}, head {head + 1}" if trace.model.kind == "transformer" else ""
    lines = [
        f"step {step + 1} of {len(pieces)}{where}: reads {printable(fed)!r}, says "
        f"{printable(pieces[step].piece)!r} with probability {np.exp(pieces[step].log_prob):.3f}"
    ]
    if reading is not None and reading.shifted:
        lines.append(
            f"(the heat map has for this piece the look of step {min(step + 2, len(pieces))}, which reads it)"
        )
    lines = [part for line in lines for part in folded(line, width)]
    for card in cards(trace):
        number = "   " if card.number is None else f"{card.number}. "
        lines += ["", *folded(f"{number}{card.title}: {card.formula}", width)]
        for show in card.shows:
            lines += [f"   {line}" for line in _shown(trace, show, step, layer, head, width - 3)]
    return [cut(line, width) for line in lines]


def _shown(trace: Document, show: Show, step: int, layer: int, head: int, width: int) -> list[str]:
    """Return the numbers of a card."""
    if show.form == "candidates":
        return _candidates(trace, step)
    if show.form in ("vector", "vectors", "weighted"):
        return _vectors(trace, show, step, layer, head, width)
    cross = trace.attention("cross")
    assert cross is not None
    names = [piece.piece for piece in trace.source.pieces]
    if show.form == "weights":
        values_S = cross.weights_LNTS[layer, head, step]
        return [*_bars(names, values_S, show.symbol), f"{'sum':>{_MAX_LABEL}} {values_S.sum():8.4f}"]
    values_S = cross.scores_LNTS[layer, head, step]
    if show.form == "products":
        options = trace.model.options
        values_S = values_S * np.float32(np.sqrt(options["hidden_size"] / options["num_heads"]))
    return _bars(names, values_S, show.symbol)


def _candidates(trace: Document, step: int) -> list[str]:
    best = trace.target.pieces[step].candidates
    if best is None:
        return []
    chosen = trace.target.pieces[step].id
    return [
        f"{pad_right(cut(printable(piece), _MAX_LABEL), _MAX_LABEL)} {np.exp(log_prob):7.4f} "
        f"{'█' * round(_BAR * float(np.exp(log_prob)))}{' ←' if id == chosen else ''}"
        for id, piece, log_prob in zip(
            best.ids[:_NUM_SHOWN], best.pieces[:_NUM_SHOWN], best.log_probs[:_NUM_SHOWN], strict=True
        )
    ]


def _bars(names: Sequence[str], values_S: Floats, symbol: str) -> list[str]:
    """Return a line with a bar for each source piece, longest for the highest."""
    known = values_S[np.isfinite(values_S)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    low = min(low, 0.0)
    room = min(_MAX_LABEL, max(display_width(printable(name)) for name in names))
    lines = []
    for name, value in zip(names, values_S.tolist(), strict=True):
        label = " " * (room - display_width(cut(printable(name), room))) + cut(printable(name), room)
        if not np.isfinite(value):
            lines.append(f"{label}        ·  not to be seen")
            continue
        bar = "█" * round(_BAR * (value - low) / ((high - low) or 1))
        lines.append(f"{label} {value:8.4f} {bar}")
    return [f"{symbol}:", *lines]


def _vectors(trace: Document, show: Show, step: int, layer: int, head: int, width: int) -> list[str]:
    name = show.name.format(l=layer)
    if name not in trace.states:
        return [] if name == "decoder.summary" else [f"{show.symbol}: not recorded ({name})"]
    value = trace.states[name].unpack()
    if "{l}" in show.name:
        value = value[head]
    if show.form == "vector":
        return [_vector(f"{show.symbol} =", value if value.ndim == 1 else value[step], width)]
    weights = trace.attention("cross")
    assert weights is not None
    weights_S = weights.weights_LNTS[layer, head, step]
    seen = np.argsort(-weights_S, kind="stable")[:3]
    if show.form == "weighted":
        value = value * weights_S[:, None]
    rest = len(value) - len(seen)
    names = [printable(trace.source.pieces[place].piece) for place in seen]
    lines = [
        _vector(f"{show.symbol} of {pad_right(cut(name, 10), 10)} =", value[place], width)
        for name, place in zip(names, seen, strict=True)
    ]
    return [*lines, f"… and of {rest} others"] if rest > 0 else lines


def _vector(name: str, values: Floats, width: int) -> str:
    """Return the first numbers of a vector, as many as fit, how many there are, and its length."""
    about = f"{len(values)} numbers, length {float(np.linalg.norm(values)):.3f}"
    for num_shown in range(min(_NUM_SHOWN, len(values)), 0, -1):
        shown = " ".join(f"{value:.3f}" for value in values[:num_shown])
        more = f" … {values[-1]:.3f}" if len(values) > num_shown else ""
        line = f"{name} [{shown}{more}]  {about}"
        if display_width(line) <= width:
            return line
    return f"{name} {about}"
