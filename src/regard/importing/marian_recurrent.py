"""A recurrent model of Marian (`amun`, `nematus`, `s2s`): the design of Nematus (Sennrich et al. 2017).

Its gates are [r, z], and its z is the share of the old state, so ours is 1 - z: the weights of z change their
sign. The bias of the candidate of the second cell stands inside the reset. Its layer norms add 1e-9 to the
variance where ours add 1e-5; what enters them is made 100 times as large, which comes to the same.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from regard.contract import Floats, Ids
from regard.errors import ConfigError
from regard.importing.marian_file import NEMATUS, Arrays, Export, MarianFile
from regard.importing.weights import Vocabulary
from regard.options.model import RecurrentOptions, StepAttendStep

_NEEDED = {
    "enc-type": ("bidirectional", "bi-unidirectional", "alternating"),
    "enc-cell": ("gru", "gru-nematus"),
    "dec-cell": ("gru", "gru-nematus"),
    "enc-depth": ("1",),
    "dec-depth": ("1",),
    "enc-cell-depth": ("1",),
    "dec-cell-base-depth": ("2",),
    "skip": ("false",),
}
OUTPUT = "decoder_ff_logit_l2"
"""The output layer."""
_INPUTS = ("V_o", "U_o", "C_o")  # the last word, the state and the context, in the order of their numbers
_SCALE = 100.0


def read_recurrent(
    file: MarianFile, source: Vocabulary, target: Vocabulary
) -> tuple[RecurrentOptions, dict[str, Floats]]:
    """Return the options of a model and its weights with our names."""
    file.refuse_unless(_NEEDED)
    if NEMATUS in file.npz.names:
        file = replace(file, renamed=dict(_names_of_nematus()))
    embedding, size = file.whole("dim-emb")[0], file.whole("dim-rnn")[0]
    if size < 2 or embedding < 1:
        file.npz.refuse(f"dim-emb = {embedding} and dim-rnn = {size} are not possible")
    normed = file.word("layer-normalization", "false") == "true"
    if normed and "gru-nematus" in (file.word("enc-cell", ""), file.word("dec-cell", "")):
        file.npz.refuse("layer-normalization of gru-nematus is not supported; only that of gru is")
    tables = file.tables(source, target, embedding, OUTPUT)
    options = RecurrentOptions(
        cell="gru-after",
        embedding_size=embedding,
        hidden_size=size,
        reading="both",
        attention=StepAttendStep(),
        readout="tanh",
        layer_norm=normed,
        tie=file.tie(tables),
    )
    b_o = target.biases(file.bias(f"{OUTPUT}_b", len(target.pieces)))
    return options, tables | {"b_o": b_o} | dict(_weights(file, options))


def _weights(file: MarianFile, options: RecurrentOptions) -> Iterator[tuple[str, Floats]]:
    """Yield all weights but embeddings and output."""
    size, embedding, normed = options.hidden_size, options.embedding_size, options.layer_norm
    yield from _cell(file, "encoder_bi", "encoder.layers.0.rightward", embedding, options)
    yield from _cell(file, "encoder_bi_r", "encoder.layers.0.leftward", embedding, options)
    yield from _cell(file, "decoder_cell1", "decoder.cells.0", embedding, options)
    yield from _cell(file, "decoder_cell2", "decoder.second", 2 * size, options, inside=True)
    yield "decoder.W_s.0", _turned(file, "decoder_ff_state_W", 2 * size, size, normed)
    b_s = file.bias("decoder_ff_state_b", size)
    if normed:
        yield from _norm("decoder.norms_of_start.0", file.row("decoder_ff_state_gamma", size), b_s)
    else:
        yield "decoder.b_s.0", b_s
    name, width = "decoder.attention.scorer", 2 * size
    yield f"{name}.W_a", _turned(file, "decoder_W_comb_att", size, width, normed)
    yield f"{name}.U_a", _turned(file, "decoder_Wc_att", width, width, normed)
    yield f"{name}.v_a", file.floats("decoder_U_att", width, 1)[:, 0]
    b_a = file.bias("decoder_b_att", width)
    if normed:
        yield from _norm(f"{name}.norm_of_keys", file.row("decoder_att_gamma1", width), b_a)
        yield from _norm(f"{name}.norm_of_query", file.row("decoder_att_gamma2", width), np.zeros_like(b_a))
    else:
        yield f"{name}.b_a", b_a
    b_m = np.zeros(embedding, np.float32)
    for number, (ours, inputs) in enumerate(zip(_INPUTS, (embedding, size, 2 * size), strict=True)):
        theirs = "decoder_ff_logit_l1"
        yield f"readout.{ours}", _turned(file, f"{theirs}_W{number}", inputs, embedding, normed)
        bias = file.bias(f"{theirs}_b{number}", embedding)
        if normed:
            yield from _norm(f"readout.norms.{ours}", file.row(f"{theirs}_gamma{number}", embedding), bias)
        b_m += bias
    if not normed:
        yield "readout.b_m", b_m


def _cell(
    file: MarianFile, theirs: str, ours: str, inputs: int, options: RecurrentOptions, inside: bool = False
) -> Iterator[tuple[str, Floats]]:
    """Yield the weights of a cell; the bias of its candidate may stand inside the reset."""
    size, normed = options.hidden_size, options.layer_norm
    order, sign = _order(size), _sign(size)
    for part, kind, width in (("W", "W", inputs), ("U", "U.0", size)):
        gates = _turned(file, f"{theirs}_{part}", width, 2 * size, normed)
        matrix = np.concatenate([gates, _turned(file, f"{theirs}_{part}x", width, size, normed)])[order]
        yield f"{ours}.{kind}", matrix if normed else matrix * sign[:, None]
    b_x = file.bias(f"{theirs}_bx", size)
    b = np.concatenate([file.bias(f"{theirs}_b", 2 * size), np.zeros_like(b_x) if inside else b_x])
    b, b_U = b[order] * sign, b_x if inside else np.zeros_like(b_x)
    if not normed:
        yield f"{ours}.b", b
        yield f"{ours}.b_U", b_U
        return
    gains = [file.row(f"{theirs}_gamma{number}", 3 * size)[order] * sign for number in (1, 2)]
    yield from _norm(f"{ours}.norms.0", gains[0], b)
    yield from _norm(f"{ours}.norms.1", gains[1], np.concatenate([np.zeros(2 * size, np.float32), b_U]))


def _order(size: int) -> Ids:
    """Return the order that turns their gates [r, z, candidate] into ours [z, r, candidate], and back."""
    order: Ids = np.r_[size : 2 * size, :size, 2 * size : 3 * size]
    return order


def _sign(size: int) -> Floats:
    """Return -1 for our z, and 1 for the others."""
    return np.repeat(np.array([-1, 1, 1], np.float32), size)


def _turned(file: MarianFile, name: str, inputs: int, outputs: int, normed: bool) -> Floats:
    """Return a matrix, which they multiply from the right; a layer norm may follow."""
    W = np.ascontiguousarray(file.floats(name, inputs, outputs).T)
    return W * np.float32(_SCALE) if normed else W


def _norm(name: str, gain: Floats, bias: Floats) -> Iterator[tuple[str, Floats]]:
    yield f"{name}.weight", gain
    yield f"{name}.bias", bias


def _names_of_nematus() -> Iterator[tuple[str, str]]:
    """Yield for names of `s2s` those of Nematus."""
    yield from {"encoder_Wemb": "Wemb", "decoder_Wemb": "Wemb_dec"}.items()
    for part in ("U", "Ux", "W", "Wx", "b", "bx", "gamma1", "gamma2"):
        yield f"encoder_bi_{part}", f"encoder_{part}"
        yield f"encoder_bi_r_{part}", f"encoder_r_{part}"
        if not part.startswith("gamma"):
            yield f"decoder_cell1_{part}", f"decoder_{part}"
            second = part.replace("W", "Wc") if "W" in part else f"{part}_nl"
            yield f"decoder_cell2_{part}", f"decoder_{second}"
    for number, name in enumerate(("prev", "lstm", "ctx")):
        for part in "Wb":
            yield f"decoder_ff_logit_l1_{part}{number}", f"ff_logit_{name}_{part}"
        yield f"decoder_ff_logit_l1_gamma{number}", f"ff_logit_l1_gamma{number}"
    for part in "Wb":
        yield f"decoder_ff_logit_l2_{part}", f"ff_logit_{part}"
    for part in ("W", "b", "gamma"):
        yield f"decoder_ff_state_{part}", f"ff_state_{part}"


def export_recurrent(options: RecurrentOptions, weights: Mapping[str, Floats]) -> Export:
    """Return a model for Marian, as `s2s`."""
    settings = {
        "type": "s2s",
        "dim-emb": options.embedding_size,
        "dim-rnn": options.hidden_size,
        "enc-depth": 1,
        "dec-depth": 1,
        "layer-normalization": options.layer_norm,
    }
    return Export(OUTPUT, np.arange(options.embedding_size), settings, _arrays(options, weights))


def _arrays(options: RecurrentOptions, weights: Mapping[str, Floats]) -> Arrays:
    """Yield all arrays but embeddings and output with the names of `s2s`: an import undone."""
    normed, name = options.layer_norm, "decoder.attention.scorer"
    yield from _cell_arrays("encoder_bi", "encoder.layers.0.rightward", options, weights)
    yield from _cell_arrays("encoder_bi_r", "encoder.layers.0.leftward", options, weights)
    yield from _cell_arrays("decoder_cell1", "decoder.cells.0", options, weights)
    yield from _cell_arrays("decoder_cell2", "decoder.second", options, weights, inside=True)
    yield "decoder_ff_state_W", _returned(weights["decoder.W_s.0"], normed)
    yield "decoder_W_comb_att", _returned(weights[f"{name}.W_a"], normed)
    yield "decoder_Wc_att", _returned(weights[f"{name}.U_a"], normed)
    yield "decoder_U_att", weights[f"{name}.v_a"][:, None]
    if normed:
        yield "decoder_ff_state_gamma", weights["decoder.norms_of_start.0.weight"][None]
        yield "decoder_ff_state_b", weights["decoder.norms_of_start.0.bias"][None]
        yield "decoder_att_gamma1", weights[f"{name}.norm_of_keys.weight"][None]
        yield "decoder_att_gamma2", weights[f"{name}.norm_of_query.weight"][None]
        keys, query = (weights[f"{name}.norm_of_{one}.bias"] for one in ("keys", "query"))
        yield "decoder_b_att", (keys + query)[None]
    else:
        yield "decoder_ff_state_b", weights["decoder.b_s.0"][None]
        yield "decoder_b_att", weights[f"{name}.b_a"][None]
    for number, ours in enumerate(_INPUTS):
        theirs = "decoder_ff_logit_l1"
        yield f"{theirs}_W{number}", _returned(weights[f"readout.{ours}"], normed)
        if normed:
            yield f"{theirs}_gamma{number}", weights[f"readout.norms.{ours}.weight"][None]
            yield f"{theirs}_b{number}", weights[f"readout.norms.{ours}.bias"][None]
        else:
            b_m = weights["readout.b_m"][None]
            yield f"{theirs}_b{number}", np.zeros_like(b_m) if number else b_m


def _cell_arrays(
    theirs: str, ours: str, options: RecurrentOptions, weights: Mapping[str, Floats], inside: bool = False
) -> Arrays:
    """Yield the arrays of a cell; the bias of its candidate may stand inside the reset."""
    size, normed = options.hidden_size, options.layer_norm
    order, sign = _order(size), _sign(size)
    for part, kind in (("W", "W"), ("U", "U.0")):
        matrix = weights[f"{ours}.{kind}"]
        gates_3H = _returned((matrix if normed else matrix * sign[:, None])[order], normed)
        yield f"{theirs}_{part}", gates_3H[:, : 2 * size]
        yield f"{theirs}_{part}x", gates_3H[:, 2 * size :]
    if normed:
        both = [weights[f"{ours}.norms.{number}.bias"] for number in (0, 1)]
    else:
        both = [weights[f"{ours}.b"], np.pad(weights[f"{ours}.b_U"], (2 * size, 0))]
    b, b_U = ((one * sign)[order] for one in both)
    here, elsewhere = (b_U, b) if inside else (b, b_U)
    if elsewhere[2 * size :].any():
        raise ConfigError(
            "a GRU of Marian has one bias in its candidate, and this one has two, because it was trained on"
        )
    yield f"{theirs}_b", (b + b_U)[None, : 2 * size]
    yield f"{theirs}_bx", here[None, 2 * size :]
    if normed:
        for number in (1, 2):
            gain = weights[f"{ours}.norms.{number - 1}.weight"]
            yield f"{theirs}_gamma{number}", (gain * sign)[order][None]


def _returned(W: Floats, normed: bool) -> Floats:
    """Return a matrix as they have it; the quotient times the scale is the same number again."""
    turned: Floats = W.T / np.float32(_SCALE) if normed else W.T
    return turned
