"""Small models with opinions, their tracers, and a separate forward pass to hold traces against."""

import functools
import json
import math
from itertools import product

import numpy as np
import pytest
from small import SAME_BUT_FOR_SIZE, random_weights, shrink

from regard.contract import Ragged, make_batch
from regard.model.presets import PRESETS
from regard.modelfile import ModelFile
from regard.options.model import (
    AttendThenStep,
    ContentScorer,
    GlobalWindow,
    LearnedPositions,
    LocalWindow,
    LocationScorer,
    NoAttention,
    RecurrentOptions,
    StepAttendStep,
    StepThenAttend,
    TransformerOptions,
)
from regard.options.text import CharacterOptions, SubwordOptions
from regard.probes import Recorder, together
from regard.runtime.build import build_engine
from regard.text.tokenizer import TokenizerPair
from regard.trace.arrays import Array
from regard.trace.make import Tracer
from regard.translate.translator import Translator
from regard.vocabulary import BOS, EOS, NUM_RESERVED, PAD

SOURCES = ["le chat dort ici.", "l'ami a un chat", "où ?"]
TARGETS = ["the cat sleeps here.", "a cat", "where ?"]
LETTERS = TokenizerPair.learn(SOURCES, TARGETS, CharacterOptions(joint=True))
SUBWORDS = TokenizerPair.learn(
    SOURCES * 9, TARGETS * 9, SubwordOptions(kind="bpe", vocab_size=330, joint=True)
)
TEXT, GIVEN = "l'ami dort", "a cat"
NUM = len(LETTERS.source.encode(TEXT).ids) + 1
R, N = "bahdanau2015", "regard-small"


def _recurrent(order, scorer, window, cell):
    scorer = LocationScorer() if scorer == "location" else ContentScorer(kind=scorer)
    window = GlobalWindow() if window == "global" else LocalWindow(kind=window)
    return RecurrentOptions(
        cell=cell,
        reading="reversed" if order is StepThenAttend else "forward",
        num_layers=1 + (cell == "lstm"),
        attention=order(scorer=scorer, window=window),
    )


_LOOKS = product(
    (AttendThenStep, StepThenAttend),
    ("additive", "dot", "scaled-dot", "general", "scaled-general", "location"),
    ("global", "local-m", "local-p"),
)
DESIGNS = {name: shrink(options) for name, options in PRESETS.items() if name not in SAME_BUT_FOR_SIZE}
DESIGNS |= {
    f"{order.__name__}-{scorer}-{window}": shrink(
        _recurrent(order, scorer, window, ("gru", "lstm", "rnn")[number % 3]), max_positions=12
    )
    for number, (order, scorer, window) in enumerate(_LOOKS)
}
DESIGNS |= {
    f"StepAttendStep-{scorer}-{cell}": shrink(
        RecurrentOptions(
            cell=cell,
            num_layers=1 + (cell == "lstm"),
            attention=StepAttendStep(scorer=ContentScorer(kind=scorer)),
            readout="tanh",
            layer_norm=cell == "gru-after",
        )
    )
    for scorer, cell in (("additive", "gru-after"), ("dot", "lstm"))
}
DESIGNS["transformer-ssru"] = shrink(TransformerOptions(decoder_self="ssru", norm="post"))
DESIGNS |= {
    f"none-{context}-{cell}": shrink(RecurrentOptions(cell=cell, attention=NoAttention(context=context)))
    for context, cell in (("start", "gru"), ("every", "lstm"), ("start", "rnn"))
}
DESIGNS |= {
    f"transformer-{norm}-learned": shrink(
        TransformerOptions(
            norm=norm, positions=LearnedPositions(), num_encoder_layers=1, num_decoder_layers=2
        )
    )
    for norm in ("pre", "post")
}
FAMILIES = [
    "sutskever2014",
    "cho2014",
    "bahdanau2015",
    "luong2015",
    "vaswani2017",
    "regard-rnn",
    "regard-small",
]
# The quick set has every scorer, window, order and cell, but not each with each.
_RARE = [name for name in DESIGNS if "-local-" in name and ("additive" in name) == ("-m" in name[-2:])]
EVERY = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in _RARE else name for name in DESIGNS]
)
AFTER = ["luong2015", "bahdanau2015", "regard-rnn", "StepAttendStep-additive-gru-after"]
"""Designs that have a posterior attention."""
EACH_FAMILY = pytest.mark.parametrize("name", FAMILIES)
LOOKING = pytest.mark.parametrize("name", ["bahdanau2015", "luong2015", "vaswani2017", "regard-small"])
TRANSFORMERS = pytest.mark.parametrize("name", ["vaswani2017", "regard-small", "transformer-post-learned"])
SEARCHES = {
    "greedy": {"beam_size": 1},
    "beam": {"beam_size": 3},
    "beam with all": {"beam_size": 3, "coverage_penalty": 0.2, "diversity": 0.5, "no_repeat_ngram": 2},
    "sample": {"kind": "sample", "top_p": 0.9, "seed": 4},
    "risk": {"kind": "risk", "num_samples": 4},
}


class Short(Tracer):
    """A tracer of the plain search, whose limit is lower than usual.

    Random models seldom come to an end by themselves.
    """

    def traces(self, text, **asked):
        searched = {} if asked.get("force") is not None else {"extra_tokens": 0}
        return super().traces(text, **({"raw": True} | searched | asked))


def translated(model, text, **how):
    """What `translate` says of a text under the same limit."""
    (translation,) = Translator.of(model).translate([text], **({"guard": False, "extra_tokens": 0} | how))
    return translation


@functools.cache
def model_of(name, tokenizers=LETTERS, seed=0, ends=4.0, reading=None):
    """A small model with opinions, that likes to say letters and, by `ends`, to end."""
    options = DESIGNS[name]
    weights = random_weights(options, tokenizers.source.vocab_size, tokenizers.target.vocab_size, seed)
    output = next(one for one in ("W_o", "target.weight", "source.weight") if one in weights)
    weights[output][EOS] *= ends
    weights[output][EOS + 1 : NUM_RESERVED] *= 0.3
    return ModelFile(options, weights, tokenizers, "fr", "en", {}, {}, reading)


@functools.cache
def ending_of(name):
    """The first of some small models whose translations of the text come to an end, and not at once.

    Some designs have none among the first: they stay with one letter until they are cut.
    """
    late = {"regard-rnn": 26, "regard-small": 113, "transformer-pre-learned": 129}.get(name)
    for seed in range(25) if late is None else [late]:
        model = model_of(name, seed=seed)
        said = [translated(model, TEXT, max_ratio=1.0, beam_size=size) for size in (1, 3)]
        if all(one.complete and len(one.pieces) >= 3 for one in said):
            return model
    return model_of(name)


@functools.cache
def tracer_of(name):
    return Short.of(ending_of(name), f"{name}.regard")


@functools.cache
def cut_tracer_of(name):
    """The tracer of a model that never ends by itself."""
    return Short.of(model_of(name, ends=0.0), "endless.regard")


def engine_of(tracer):
    """An engine of the same model that the tracer knows nothing of."""
    return build_engine(tracer.model.options, tracer.model.weights)


def ids_of(tracer, text):
    return tracer.model.tokenizers.source.encode_batch([text])[0].astype(np.int64)


class Stepped:
    """A separate forward pass, one `step` at a time: what each step gives and all that was recorded of it."""

    def __init__(self, engine, source, said, probe=None, erased=()):
        batch = make_batch(Ragged.of([np.asarray(source, np.int64)]), None, np.arange(1))
        batch.source_BS[0, list(erased)] = PAD
        self.start, self.steps, logits, looks = Recorder(), [], [], []
        state = engine.start(batch, together(*([probe(None)] if probe else []), self.start))
        for number, id in enumerate([BOS, *said[:-1]]):
            recorder = Recorder()
            step = engine.step(state, np.array([id]), together(*([probe(number)] if probe else []), recorder))
            state = step.state
            self.steps.append(recorder)
            logits.append(step.logits_RV[0].astype(float))
            looks.append(step.attention_RLNS[0])
        logits_TV = np.stack(logits)
        self.log_prob_TV = logits_TV - np.log(np.exp(logits_TV).sum(axis=1, keepdims=True))
        self.said_T = self.log_prob_TV[np.arange(len(said)), said]
        self.looks_TLNS = np.stack(looks)

    def attention(self, kind, what, num_layers):
        """The weights, scores or what is seen, as (L, N, T, S)."""
        if kind == "encoder":
            layers = [self.start[f"encoder.{layer}.self.{what}"][0][0] for layer in range(num_layers)]
            return np.stack(
                [np.broadcast_to(one, (one.shape[0], layers[0].shape[-1], one.shape[-1])) for one in layers]
            )
        if "attention.weights" in self.steps[0]:
            return np.stack([step[f"attention.{what}"][0][0] for step in self.steps])[None, None]
        name = "cross" if kind == "cross" else "self"
        layers = []
        for layer in range(num_layers):
            rows = []
            for step in self.steps:
                value = step[f"decoder.{layer}.{name}.{what}"][0]
                row = value if value.ndim == 2 else value[0, :, 0]  # the decoder's mask has no heads
                rows.append(
                    np.pad(row, [(0, 0), (0, len(self.steps) - row.shape[1])]) if kind == "decoder" else row
                )
            layers.append(np.stack(rows, axis=1))
        return np.stack(layers)

    def state(self, name):
        """A quantity by its name, a row for each source token or each step."""
        if name in self.start:
            seen = self.start[name]
            if len(seen) > 1:
                return np.concatenate(seen[::-1] if "leftward" in name else seen)
            return seen[0] if name.endswith(".positions") else seen[0][0]
        seen = [step[name][0] for step in self.steps]
        if name.endswith(".positions"):
            return np.concatenate(seen)
        if seen[0].ndim == 4:
            of_source = ".cross." in name and name.endswith((".keys", ".values"))
            return seen[0][0] if of_source else np.concatenate([one[0][:, -1:] for one in seen], axis=1)
        return np.stack(
            [one[0, 0] if one.ndim == 3 and name != "attention.inner" else one[0] for one in seen]
        )


def said_of(trace):
    return [piece.id for piece in trace.target.pieces]


def stepped_again(tracer, trace, **more):
    return Stepped(engine_of(tracer), ids_of(tracer, trace.source.text), said_of(trace), **more)


def assert_numbers_are_those_of(trace, right):
    """Compare all that a trace holds of a forward pass."""
    pieces = trace.target.pieces
    np.testing.assert_allclose([one.log_prob for one in pieces], right.said_T, atol=2e-4, rtol=1e-5)
    assert trace.target.log_prob == pytest.approx(right.said_T.sum(), abs=1e-3)
    entropies = -(np.exp(right.log_prob_TV) * right.log_prob_TV).sum(axis=1)
    np.testing.assert_allclose([one.entropy for one in pieces], entropies, atol=1e-4)
    for piece, log_prob_V in zip(pieces, right.log_prob_TV, strict=True):
        likelier = np.count_nonzero(log_prob_V > log_prob_V[piece.id] + 1e-5)
        as_likely = np.count_nonzero(log_prob_V > log_prob_V[piece.id] - 1e-5)
        assert likelier < piece.rank <= max(as_likely, 1)
        best = piece.candidates
        assert len(best.ids) == len(set(best.ids)) == 10 and not {PAD, BOS} & set(best.ids)
        np.testing.assert_allclose(best.log_probs, log_prob_V[best.ids], atol=2e-4, rtol=1e-5)
        highest = np.sort(log_prob_V[EOS:])[::-1][:10]
        np.testing.assert_allclose(best.log_probs, highest, atol=2e-4, rtol=1e-5)
    for attention in trace.attentions:
        assert_attention_is_that_of(attention, right)
    for name, packed in trace.states.items():
        value = right.state(name)
        assert packed.shape == list(value.shape), name
        np.testing.assert_allclose(packed.unpack(), value, rtol=1e-3, atol=1e-3, err_msg=name)


def assert_attention_is_that_of(attention, right):
    num_layers = attention.log_weights.shape[0]
    weights = right.attention(attention.kind, "weights", num_layers)
    assert attention.weights_LNTS.shape == weights.shape
    np.testing.assert_allclose(attention.weights_LNTS, weights, atol=1e-4)
    seen = np.broadcast_to(right.attention(attention.kind, "seen", num_layers).astype(bool), weights.shape)
    scores = right.attention(attention.kind, "scores", num_layers)
    shown = attention.scores_LNTS
    assert (np.isfinite(shown) == seen).all()
    # Logarithms of weights below -100 are written as -100.
    hidden = np.where(seen, scores.astype(float), -np.inf)
    top = hidden.max(axis=-1, keepdims=True)
    least = top + np.log(np.exp(hidden - top).sum(axis=-1, keepdims=True)) - 100
    np.testing.assert_allclose(shown[seen], np.maximum(scores, least)[seen], atol=2e-3, rtol=1e-5)
    for layer, heads in enumerate(attention.heads):
        for head, told in enumerate(heads):
            rows = weights[layer, head].astype(float)
            entropy = -(rows * np.log(np.where(rows > 0, rows, 1))).sum(axis=1).mean()
            assert told.entropy == pytest.approx(entropy, abs=1e-3)


def path_of(beam, number):
    """The ids that a node says, first to last."""
    ids = []
    while number is not None:
        ids.insert(0, beam.nodes[number].id)
        number = beam.nodes[number].parent
    return tuple(ids)


def limit_of(trace):
    positions = trace.model.options.get("positions", {}).get("max_positions", math.inf)
    search = trace.request.search
    return min(int(search["max_ratio"] * len(trace.source.pieces)) + search["extra_tokens"], positions)


def assert_the_tree_is_that_of_an_obvious_search(tracer, trace, probe=None):
    """At each step all continuations of all open hypotheses are tried, one after another, and sorted."""
    beam, engine = trace.beam, engine_of(tracer)
    size = trace.request.search["beam_size"]
    batch = make_batch(Ragged.of([ids_of(tracer, trace.source.text)]), None, np.arange(1))
    opened = [(0.0, (), engine.start(batch, *([probe(None)] if probe else [])))]
    by_step = {}
    for number, node in enumerate(beam.nodes):
        by_step.setdefault(node.step, []).append((path_of(beam, number), node.fate))
    steps = sorted(by_step)
    assert steps == list(range(len(steps)))
    best = None
    for step in steps:
        tried = []
        for log_prob, ids, state in opened:
            said = engine.step(state, np.array([ids[-1] if ids else BOS]), *([probe(step)] if probe else []))
            logits = said.logits_RV[0].astype(float)
            log_probs = logits - np.log(np.exp(logits).sum())
            tried += [(log_prob + log_probs[id], (*ids, id), said.state) for id in range(EOS, len(logits))]
        tried.sort(key=lambda one: -one[0])
        at_limit = step + 1 == limit_of(trace)
        finished = [one for one in tried[:size] if one[1][-1] == EOS or at_limit]
        opened = [] if at_limit else [one for one in tried if one[1][-1] != EOS][:size]
        told = {
            fate: [ids for ids, one in by_step[step] if one == fate]
            for fate in ("open", "finished", "dropped")
        }
        assert told["open"] == [ids for _, ids, _ in opened]
        assert told["finished"] == [ids for _, ids, _ in finished]
        kept = {ids for _, ids, _ in (*opened, *finished)}
        assert told["dropped"][:1] == [ids for _, ids, _ in tried if ids not in kept][:1]
        assert 1 <= len(told["dropped"]) <= 5 and not kept & set(told["dropped"])
        for total, ids, _ in finished:
            rank = (ids[-1] == EOS, total / ((5 + len(ids)) / 6))
            best = max(best or (rank, ids), (rank, ids))
    assert said_of(trace) == list(best[1])


def erasures(tracer, trace, **more):
    """What `erasure` should be, one word and one step at a time."""
    whole = stepped_again(tracer, trace, **more)
    with np.errstate(invalid="ignore"):
        without = [stepped_again(tracer, trace, erased=word.pieces, **more) for word in trace.source.words]
    return np.stack([one.said_T - whole.said_T for one in without], axis=1)


def looking(row, layer=None, head=None):
    """A probe under which the attention to the source is this row."""

    def probe(name, value):
        wanted = "decoder." if layer is None else f"decoder.{layer}."
        if name != "attention.weights" and not (name.startswith(wanted) and name.endswith(".cross.weights")):
            return value
        changed = np.array(value)
        if changed.ndim == 2 or head is None:
            changed[:] = row
        else:
            changed[:, head] = row
        return changed

    return probe


def row_of(num, *places):
    row = [0.0] * num
    for place in places:
        row[place] = 1 / len(places)
    return row


@functools.cache
def good_json(name):
    tracer = tracer_of(name)
    how = {"beam_size": 2} if name != "luong2015" else {"force": GIVEN}
    effects = "luong" not in name  # a local attention may see nothing without a word
    return tracer.trace(TEXT, effects=effects, **how).to_json()


def good(name):
    """A sound trace as plain values, to be spoilt."""
    return json.loads(good_json(name))


def unpacked(array):
    return np.array(Array.model_validate(array).unpack())


def packed(values, dtype="f4"):
    return json.loads(Array.of(np.asarray(values), dtype).model_dump_json())


def kind_of(trace, kind):
    return next(one for one in trace["attentions"] if one["kind"] == kind)
