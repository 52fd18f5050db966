"""The facts of a model family, from its options alone. No torch is needed.

Which attentions a model has and under which names they are recorded, what an intervention can switch off,
which states a trace keeps, which attention guidance teaches, and the steps that explain it. Only this module
and the engines (`model/`, `runtime/`, `fast/` and the page's own) ask which family a model is of.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from regard.alignment.reading import Reading
from regard.errors import ConfigError
from regard.options.model import AttentionOptions, RecurrentOptions, TransformerOptions

Kind = Literal["cross", "encoder", "decoder"]
"""Which attention: from the decoder to the source, within the encoder, within the decoder."""
Part = Literal["heads", "mask", "positions"]
"""A part of a model that an intervention can switch off."""
Form = Literal["vector", "vectors", "weighted", "scores", "weights", "candidates"]

_MAX_INTERNAL_WIDTH = 768  # of all layers together; of wider models a trace keeps q, k and v of one layer
_TAUGHT_HEAD = 0


@dataclass(frozen=True, slots=True)
class Show:
    """Numbers of a card: a `vector` of this step, `vectors` of all source pieces, the same `weighted` by the
    attention, or the attention's `scores` (times `scale`) or `weights`.

    `name` is that of the recorded state; `{l}` in it is the layer, and its first axis is then the heads. An
    optional state is shown only if it was recorded.
    """

    symbol: str
    form: Form
    name: str = ""
    scale: float = 1.0
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Card:
    """One computation of a step. `key` is the same in every language; `number` is its number in the paper, or
    None."""

    key: str
    number: int | None
    title: str
    formula: str
    shows: tuple[Show, ...]


@dataclass(frozen=True, slots=True)
class Design:
    """What a model is made of."""

    description: str
    """Sizes and attention in one line."""
    attentions: Mapping[Kind, tuple[str, ...]]
    """For each kind of attention the model has, the recorded name of each layer."""
    num_heads: int
    rows_sum_to_one: bool
    """Whether the weights of a row sum to 1; a Gaussian window scales them (Luong et al. 2015, eq. 10)."""
    parts: frozenset[Part]
    """What an intervention can switch off."""
    max_positions: int | None
    """The longest sequence, if positions are learnt."""
    embedding_option: Literal["hidden_size", "embedding_size"]
    """The option that sets the width of a word's vector."""
    states: tuple[str, ...]
    """Names and patterns of the states that every trace keeps."""
    internals: tuple[str, ...]
    """What a layer of attention records beside its weights, for cards and matrices."""
    internal_width: int
    gates: tuple[str, ...]
    """Patterns of the gates of its cells."""
    taught: Reading | None
    """Which attention guidance teaches; None without attention."""
    cards: tuple[Card, ...]
    """The computations of one step, in the order and with the symbols of the paper."""

    @property
    def has_attention(self) -> bool:
        """Whether the decoder looks at the source."""
        return "cross" in self.attentions

    def size(self, kind: Kind) -> tuple[int, int]:
        """Return how many layers and heads an attention has: none, if the model lacks it."""
        num_layers = len(self.attentions.get(kind, ()))
        return num_layers, self.num_heads if num_layers else 0

    def check_head(self, kind: Kind, layer: int | None, head: int | None) -> None:
        """Raise an error if the model has no such attention, layer or head; None stands for all of them."""
        layers, heads = self.size(kind)
        if not layers:
            raise ConfigError(f"this model has no attention of kind {kind!r}")
        if layer not in (None, *range(layers)) or head not in (None, *range(heads)):
            raise ConfigError(
                f"there is no layer {(layer or 0) + 1}, head {(head or 0) + 1}: "
                f"this model has {layers} layers of {heads} heads"
            )

    def states_inside(self, layers: Iterable[int], kind: Kind = "cross") -> tuple[str, ...]:
        """Return the names of what some layers of an attention record for the cards and matrices."""
        names = self.attentions.get(kind, ())
        return tuple(f"{names[layer]}.{inside}" for layer in layers for inside in self.internals)

    def states_kept(self, read_layer: int) -> tuple[str, ...]:
        """Return the states a trace keeps; of a wide model, q, k and v of one layer each."""
        kept = list(self.states)
        chosen: dict[Kind, int] = {"cross": read_layer, "encoder": 0}
        for kind, only in chosen.items():
            num_layers, _ = self.size(kind)
            narrow = num_layers * self.internal_width <= _MAX_INTERNAL_WIDTH
            if num_layers:
                kept += self.states_inside(range(num_layers) if narrow else [only], kind)
        return tuple(kept)


def design(options: RecurrentOptions | TransformerOptions) -> Design:
    """Return the facts of a model with these options."""
    return _transformer(options) if options.kind == "transformer" else _recurrent(options)


def _transformer(options: TransformerOptions) -> Design:
    num_layers, width, num_heads = options.num_decoder_layers, options.hidden_size, options.num_heads
    encoder, decoder = range(options.num_encoder_layers), range(num_layers)
    recurs = options.decoder_self == "ssru"
    attentions: dict[Kind, tuple[str, ...]] = {
        "cross": tuple(f"decoder.{layer}.cross" for layer in decoder),
        "encoder": tuple(f"encoder.{layer}.self" for layer in encoder),
        "decoder": tuple(f"decoder.{layer}.self" for layer in decoder),
    }
    if recurs:
        del attentions["decoder"]
    layers = f"{len(encoder)} + {num_layers} layers{' with SSRU' * recurs}"
    return Design(
        description=f"{layers}, width {width}, {num_heads} heads",
        attentions=attentions,
        num_heads=num_heads,
        rows_sum_to_one=True,
        parts=frozenset({"heads", "positions"} if recurs else {"heads", "mask", "positions"}),
        max_positions=options.positions.max_positions if options.positions.kind == "learned" else None,
        embedding_option="hidden_size",
        states=("memory", f"decoder.{num_layers - 1}.cross.output", "readout"),
        internals=("query", "keys", "values", "heads"),
        internal_width=width,
        gates=(),
        # No head aligns all words by itself; one of the last layer but one is taught (Garg et al. 2019), at
        # the step that reads a piece and so knows it (compare Chen et al. 2020).
        taught=Reading(max(0, num_layers - 2), _TAUGHT_HEAD, shifted=True),
        cards=_transformer_cards((width / num_heads) ** 0.5),
    )


def _transformer_cards(root: float) -> tuple[Card, ...]:
    """Return the six steps of an attention of Vaswani et al. 2017; `root` is that of the width of a head."""
    name = "decoder.{l}.cross"
    qkv = (
        Show("q", "vector", f"{name}.query"),
        Show("k_i", "vectors", f"{name}.keys"),
        Show("v_i", "vectors", f"{name}.values"),
    )
    product, score = Show("q · k_i", "scores", scale=root), Show("e_i", "scores")
    weighted = Show("α_i v_i", "weighted", f"{name}.values")
    end = (Show("readout", "vector", "readout"), Show("p", "candidates"))
    layers = "[z_1; …; z_N] W_O, then the layers above, then p = softmax(W_o readout)"
    return (
        Card("qkv", 1, "query, keys and values", "q = W_Q x, k_i = W_K h_i, v_i = W_V h_i", qkv),
        Card("product", 2, "score: query times each key", "q · k_i", (product,)),
        Card("scale", 3, "divide by the root of their width", "e_i = q · k_i / √d_k", (score,)),
        Card("softmax", 4, "turn scores into weights", _WINDOWS["global"], (Show("α_i", "weights"),)),
        Card("weigh_values", 5, "multiply each value by its weight", "α_i v_i", (weighted,)),
        Card("sum", 6, "sum them up", "z = Σ_i α_i v_i", (Show("z", "vector", f"{name}.heads"),)),
        Card("heads_and_output", None, "all heads, all layers, the next word", layers, end),
    )


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
    "gru-after": "s_t = (1 - z) s_{t-1} + z s~",
    "lstm": "c_t = f c_{t-1} + i g, s_t = o tanh(c_t)",
    "rnn": "s_t = tanh(W x + U s_{t-1})",
}
_GATES = {
    "gru": {"z": "update", "r": "reset", "s~": "candidate"},
    "gru-after": {"z": "update", "r": "reset", "s~": "candidate"},
    "lstm": {"i": "input", "f": "forget", "o": "output", "g": "candidate", "c_t": "memory"},
    "rnn": {},
}


def _recurrent(options: RecurrentOptions) -> Design:
    last, attention, gates = options.num_layers - 1, options.attention, _GATES[options.cell]
    layers = "1 layer" if options.num_layers == 1 else f"{options.num_layers} layers"
    looks = (
        "no attention" if attention.kind == "none" else f"{attention.scorer.kind} attention, {attention.kind}"
    )
    return Design(
        description=f"{layers} of {options.cell} {options.hidden_size}, {looks}",
        attentions={} if attention.kind == "none" else {"cross": ("attention",)},
        num_heads=1,
        rows_sum_to_one=attention.kind == "none" or attention.window.kind != "local-p",
        parts=frozenset(),
        max_positions=None,
        embedding_option="embedding_size",
        states=(
            "source.embedded",
            f"encoder.{last}.*.states",
            "memory",
            "decoder.summary",
            "decoder.*.start",
            "target.embedded",
            "decoder.*.state",
            "attention.query",
            "attention.place",
            "attention.context",
            "attentional",
            "readout",
        ),
        internals=(),
        internal_width=0,
        gates=tuple(f"{side}.*.{gate}" for side in ("encoder", "decoder") for gate in gates.values()),
        taught=None if attention.kind == "none" else Reading(0, None, shifted=False),
        cards=_recurrent_cards(options.cell, last, attention),
    )


def _gates(cell: str, name: str) -> tuple[Show, ...]:
    """Return the gates of a cell of the decoder."""
    gates = _GATES[cell].items()
    return tuple(Show(symbol, "vector", f"{name}.{gate}", optional=True) for symbol, gate in gates)


def _recurrent_cards(cell: str, last: int, attention: AttentionOptions) -> tuple[Card, ...]:
    """Return Bahdanau's four steps, Luong's six, Nematus's five, or those with one fixed vector."""
    state = Show("s_t", "vector", f"decoder.{last}.state")
    read = Show("e(y_{t-1})", "vector", "target.embedded")
    step = (read, *_gates(cell, f"decoder.{last}"), state)
    word = (Show("p", "candidates"),)
    says = Card("says", None, "the next word", "p = softmax(W_o readout)", word)
    if attention.kind == "none":
        fixed = (
            Show("c", "vector", "decoder.summary", optional=True),
            Show("s_0", "vector", f"decoder.{last}.start"),
        )
        same = "c = the encoder's last state, the same at every step"
        return (
            Card("fixed", 1, "one vector for the whole sentence", same, fixed),
            Card("cell", 2, "step", _CELLS[cell], step),
            says,
        )
    symbol = {"attend-then-step": "s_{t-1}", "step-attend-step": "s'_t"}.get(attention.kind, "s_t")
    query, context = Show(symbol, "vector", "attention.query"), Show("c_t", "vector", "attention.context")
    formula, window = _SCORES[attention.scorer.kind].format(s=symbol), _WINDOWS[attention.window.kind]
    scored = (query, Show("h_i", "vectors", "memory"), Show("e_i", "scores"))
    looks = (
        Card("score", 1, "score every source state", formula, scored),
        Card("softmax", 2, "turn scores into weights", window, (Show("α_i", "weights"),)),
        Card("context", 3, "mix the states by their weights", "c_t = Σ_i α_i h_i", (context,)),
    )
    if attention.kind == "attend-then-step":
        entered = f"{_CELLS[cell]}, x = [e(y_{{t-1}}); c_t]"
        title = "step, with the context beside the last word"
        return (*looks, Card("cell_with_context", 4, title, entered, step), says)
    if attention.kind == "step-attend-step":
        first = _CELLS[cell].replace("s_t", "s'_t").replace("c_t", "c'_t")
        second = _CELLS[cell].replace("s_{t-1}", "s'_t").replace("c_{t-1}", "c'_t")
        shown = (read, *_gates(cell, "decoder.0"), query)
        moved = (replace(card, number=number) for number, card in enumerate(looks, 2))
        return (
            Card("first_step", 1, "step, with the last word", f"{first}, x = e(y_{{t-1}})", shown),
            *moved,
            Card(
                "second_step",
                5,
                "second step, with the context",
                f"{second}, x = c_t",
                (*_gates(cell, "decoder.second"), state),
            ),
            says,
        )
    attentional = (Show("s~_t", "vector", "attentional"),)
    return (
        *looks,
        Card("concat", 4, "put context and state end to end", "v_t = [c_t; s_t]", (context, query)),
        Card("attentional", 5, "the attentional vector", "s~_t = tanh(W_c v_t)", attentional),
        Card("output", 6, "the next word", "y_t = softmax(W_o s~_t + b_o)", word),
    )
