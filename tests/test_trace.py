"""The trace: every number in it is that of a separate forward pass, and what cannot be true is refused."""

import base64
import copy
import functools
import json
import math
import re
import tracemalloc
import zlib
from dataclasses import replace
from importlib import resources
from itertools import product

import jsonschema
import numpy as np
import pytest
import regard.translate.decode
from hypothesis import given, settings
from hypothesis import strategies as st
from searches import forced
from small import SIZES, random_weights, shrink

from regard.alignment.reading import Reading
from regard.contract import Ragged, make_batch
from regard.errors import ConfigError, SourceError, TraceError
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
    StepThenAttend,
    TransformerOptions,
)
from regard.options.text import CharacterOptions, SubwordOptions, WordOptions
from regard.probes import Recorder, together
from regard.runtime.build import build_engine
from regard.text.tokenizer import TokenizerPair
from regard.trace.arrays import Array
from regard.trace.document import HeadOff, LookSo, MaskOff, PositionsOff, schema
from regard.trace.make import MAX_PIECES_WITH_STATES, Tracer
from regard.trace.mechanics import cards, step_lines
from regard.trace.views import Which, load_trace
from regard.translate.translator import Translator
from regard.vocabulary import BOS, EOS, NUM_RESERVED, PAD, RESERVED

SOURCES = ["le chat dort ici.", "l'ami a un chat", "où ?"]
TARGETS = ["the cat sleeps here.", "a cat", "where ?"]
LETTERS = TokenizerPair.learn(SOURCES, TARGETS, CharacterOptions(joint=True))
SUBWORDS = TokenizerPair.learn(
    SOURCES * 9, TARGETS * 9, SubwordOptions(kind="bpe", vocab_size=330, joint=True)
)
TEXT, GIVEN = "l'ami dort", "a cat"


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
DESIGNS = {name: shrink(options) for name, options in PRESETS.items() if name != "regard-base"}
DESIGNS |= {
    f"{order.__name__}-{scorer}-{window}": shrink(
        _recurrent(order, scorer, window, ("gru", "lstm", "rnn")[number % 3]), max_positions=12
    )
    for number, (order, scorer, window) in enumerate(_LOOKS)
}
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


@pytest.fixture(autouse=True, scope="module")
def _short():
    """Random models seldom come to an end by themselves: let their limit be lower."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regard.translate.decode, "_FREE_TOKENS", 0)
        yield


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
        translate = functools.partial(Translator.of(model).translate, [TEXT], guard=False, max_ratio=1.0)
        if all(one.complete and len(one.pieces) >= 3 for size in (1, 3) for one in translate(beam_size=size)):
            return model
    return model_of(name)


@functools.cache
def tracer_of(name):
    return Tracer.of(ending_of(name), f"{name}.regard")


@functools.cache
def cut_tracer_of(name):
    """The tracer of a model that never ends by itself."""
    return Tracer.of(model_of(name, ends=0.0), "endless.regard")


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


# Every number is that of a separate forward pass.


@EVERY
def test_every_number_is_that_of_a_separate_forward_pass(name):
    tracer = tracer_of(name)
    trace = tracer.trace(TEXT, beam_size=1, gates=True)
    assert len(trace.target.pieces) >= 3
    assert_numbers_are_those_of(trace, stepped_again(tracer, trace))


@EVERY
def test_every_number_of_a_given_translation_is_that_of_a_separate_forward_pass(name):
    tracer = tracer_of(name)
    trace = tracer.trace(TEXT, force=GIVEN)
    assert trace.target.text == GIVEN
    assert_numbers_are_those_of(trace, stepped_again(tracer, trace))


@EACH_FAMILY
def test_every_number_of_a_translation_that_was_cut_is_that_of_a_separate_forward_pass(name):
    tracer = cut_tracer_of(name)
    trace = tracer.trace(TEXT, beam_size=2, gates=True)
    assert not trace.target.complete and trace.target.pieces[-1].id != EOS
    assert any("cut" in warning for warning in trace.warnings)
    assert_numbers_are_those_of(trace, stepped_again(tracer, trace))


@pytest.mark.parametrize("name", ["transformer-pre-learned", "transformer-post-learned"])
def test_a_translation_that_was_cut_by_the_positions_a_model_has_is_traced(name):
    tracer = cut_tracer_of(name)
    trace = tracer.trace("le chat dort i", beam_size=1, max_ratio=10.0)
    assert len(trace.target.pieces) == SIZES["max_positions"] and not trace.target.complete
    assert_numbers_are_those_of(trace, stepped_again(tracer, trace))


@EACH_FAMILY
def test_all_that_a_model_computes_can_be_recorded(name):
    tracer = tracer_of(name)
    trace = tracer.trace(TEXT, beam_size=1, record=["*"])
    right = stepped_again(tracer, trace)
    computed = {*right.start, *right.steps[0]}
    assert set(trace.states) == computed
    for one in sorted(computed):
        if (
            one.endswith((".seen", ".self.scores", ".self.weights", ".self.keys", ".self.values"))
            and "decoder" in one
        ):
            continue  # grow with each step; those of attention are compared elsewhere
        if one.endswith(".seen"):
            continue
        shown, value = trace.states[one].unpack(), right.state(one)
        assert shown.shape == value.shape, one
        np.testing.assert_allclose(shown, value, rtol=1e-3, atol=2e-3, err_msg=one)


def test_a_translation_of_nothing_but_its_end_has_rows_for_one_step():
    """Also of quantities that have a row for each source token at each step."""
    name = "bahdanau2015"
    model = model_of(name)
    model = replace(
        model,
        weights=model.weights
        | {"b_o": model.weights["b_o"] + 50 * np.eye(len(model.weights["b_o"]), dtype=np.float32)[EOS]},
    )
    tracer = Tracer.of(model, "mute")
    trace = tracer.trace(TEXT, beam_size=1, record=["attention.inner", "attention.weights"], effects=True)
    assert said_of(trace) == [EOS] and trace.target.text == ""
    right = stepped_again(tracer, trace)
    for one in ("attention.inner", "attention.weights", "attention.context", "readout"):
        shown, value = trace.states[one].unpack(), right.state(one)
        assert shown.shape == value.shape, one
        np.testing.assert_allclose(shown, value, rtol=1e-3, atol=1e-3)
    assert trace.target.words == [] and trace.heat_map().rows == ("</s>",)
    assert trace.to_svg() and trace.to_html() and trace.to_csv() and trace.lines()


@pytest.mark.parametrize(
    ("name", "gates"),
    [
        ("bahdanau2015", {"update", "reset", "candidate"}),
        ("luong2015", {"input", "forget", "output", "candidate", "memory"}),
        ("AttendThenStep-scaled-dot-local-p", None),
        ("regard-small", set()),
    ],
)
def test_gates_are_kept_on_request_only(name, gates):
    """That of every layer and direction; their numbers are compared above."""
    tracer = tracer_of(name)
    if gates is None:
        gates = set() if tracer.model.options.cell == "rnn" else {"update", "reset", "candidate"}
    without, with_them = (tracer.trace(TEXT, force=GIVEN, gates=one) for one in (False, True))
    more = set(with_them.states) - set(without.states)
    assert {one.rpartition(".")[2] for one in more} == gates
    if gates:
        layers = tracer.model.options.num_layers
        assert {one.split(".")[1] for one in more} == set(map(str, range(layers)))


# Every way to search.


@EACH_FAMILY
@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_what_is_traced_is_what_translate_says(name, search):
    tracer = tracer_of(name)
    trace = tracer.trace(TEXT, **search)
    (right,) = Translator.of(tracer.model).translate([TEXT], guard=False, **search)
    assert trace.target.text == right.text
    assert tuple(piece.piece for piece in trace.target.pieces) == right.pieces
    assert [(piece.start, piece.end) for piece in trace.target.pieces] == list(right.parts[0].spans)
    assert [(piece.start, piece.end) for piece in trace.source.pieces] == list(right.parts[0].source_spans)
    assert trace.target.complete == right.complete
    assert trace.target.log_prob == pytest.approx(right.log_prob, abs=1e-3)
    assert trace.target.score == pytest.approx(right.score, abs=1e-3)
    np.testing.assert_allclose(
        [piece.log_prob for piece in trace.target.pieces], np.log(right.probs), atol=1e-3
    )
    np.testing.assert_allclose(trace.alignment_TS, right.attention_TS, atol=2e-4)
    assert set(trace.target.flags) <= {*right.flags, "uncovered"}
    assert not any(piece.forced for piece in trace.target.pieces)
    wanted = search.get("kind", "greedy" if search.get("beam_size") == 1 else "beam")
    assert trace.request.mode == wanted and (trace.beam is not None) == (wanted == "beam")
    assert_numbers_are_those_of(trace, stepped_again(tracer, trace))


@EACH_FAMILY
def test_a_given_translation_is_what_force_makes_of_it(name):
    tracer = tracer_of(name)
    trace = tracer.trace(TEXT, force="  a  cat ")
    (right,) = Translator.of(tracer.model).force([TEXT], [GIVEN])
    assert trace.target.text == right.text == GIVEN and trace.request.mode == "forced"
    assert trace.request.search == {} and trace.beam is None
    np.testing.assert_allclose(
        [piece.log_prob for piece in trace.target.pieces], np.log(right.probs), atol=1e-4
    )
    assert trace.target.log_prob == pytest.approx(right.log_prob, abs=1e-4)
    assert trace.target.score == pytest.approx(right.score, abs=1e-4)
    np.testing.assert_allclose(trace.alignment_TS, right.attention_TS, atol=2e-4)
    assert all(piece.forced for piece in trace.target.pieces)


@EACH_FAMILY
@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_prefix_is_marked_and_what_follows_is_what_translate_says(name, beam_size):
    tracer = tracer_of(name)
    trace = tracer.trace(TEXT, prefix="the c", beam_size=beam_size)
    (right,) = Translator.of(tracer.model).translate(
        [TEXT], prefixes=["the c"], guard=False, beam_size=beam_size
    )
    assert trace.target.text == right.text and right.text.startswith("the c")
    given = len(LETTERS.target.encode("the c").ids)
    assert [piece.forced for piece in trace.target.pieces] == [
        step < given for step in range(len(trace.target.pieces))
    ]
    assert len(trace.target.pieces) > given and trace.request.prefix == "the c"
    np.testing.assert_allclose(
        [piece.log_prob for piece in trace.target.pieces], np.log(right.probs), atol=1e-3
    )
    assert_numbers_are_those_of(trace, stepped_again(tracer, trace))


def test_the_same_request_gives_the_same_trace_and_another_one_another_id():
    tracer = tracer_of("bahdanau2015")
    first, again = (tracer.trace(TEXT, beam_size=2, effects=True) for _ in range(2))
    unlike = {"created": None, "timing": None}
    assert first.model_copy(update=unlike) == again.model_copy(update=unlike)
    others = [
        tracer.trace(TEXT, beam_size=3),
        tracer.trace(TEXT, force=GIVEN),
        tracer.trace("le", beam_size=2, effects=True),
        Tracer.of(model_of("bahdanau2015", seed=77), "bahdanau2015.regard").trace(
            TEXT, beam_size=2, effects=True
        ),
    ]
    assert len({first.id, *(one.id for one in others)}) == 5


# The tree of a beam search.


def path_of(beam, number):
    """The ids that a node says, first to last."""
    ids = []
    while number is not None:
        ids.insert(0, beam.nodes[number].id)
        number = beam.nodes[number].parent
    return tuple(ids)


@EACH_FAMILY
@pytest.mark.parametrize("cut", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_node_has_the_log_probability_of_forcing_its_path(name, cut):
    tracer = cut_tracer_of(name) if cut else tracer_of(name)
    trace = tracer.trace(TEXT, beam_size=3, max_ratio=0.8)
    beam, engine, source = trace.beam, engine_of(tracer), ids_of(tracer, TEXT)
    assert len(beam.nodes) > 10
    for number, node in enumerate(beam.nodes):
        ids = path_of(beam, number)
        assert len(ids) == node.step + 1
        ended = ids[-1] == EOS
        log_probs, _ = forced(engine, source, ids[:-1] if ended else ids)
        total = log_probs.sum() if ended else log_probs[:-1].sum()
        assert node.log_prob == pytest.approx(total, abs=2e-3, rel=1e-5)
        assert node.score == pytest.approx(total / ((5 + len(ids)) / 6), abs=2e-3, rel=1e-5)
        assert node.piece == LETTERS.target.pieces[node.id]


def limit_of(trace):
    positions = trace.model.options.get("positions", {}).get("max_positions", math.inf)
    return min(int(trace.request.search["max_ratio"] * len(trace.source.pieces)), positions)


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


@EACH_FAMILY
@pytest.mark.parametrize("beam_size", [2, 4])
def test_the_tree_is_that_of_an_obvious_search(name, beam_size):
    tracer = tracer_of(name)
    trace = tracer.trace(TEXT, beam_size=beam_size)
    assert_the_tree_is_that_of_an_obvious_search(tracer, trace)
    beam = trace.beam
    assert beam.size == beam_size
    assert [beam.nodes[number].id for number in beam.best] == said_of(trace)
    assert [path_of(beam, number) for number in beam.best] == [
        tuple(said_of(trace)[: step + 1]) for step in range(len(beam.best))
    ]
    assert [beam.nodes[number].fate for number in beam.best] == ["open"] * (len(beam.best) - 1) + ["finished"]
    assert beam.nodes[beam.best[-1]].log_prob == pytest.approx(trace.target.log_prob, abs=1e-3)
    for step in range(len(beam.best)):
        assert sum(node.step == step and node.fate == "open" for node in beam.nodes) <= beam_size


@EACH_FAMILY
def test_the_tree_of_a_search_that_was_cut_is_that_of_an_obvious_one(name):
    trace = cut_tracer_of(name).trace(TEXT, beam_size=3, max_ratio=0.5)
    assert_the_tree_is_that_of_an_obvious_search(cut_tracer_of(name), trace)
    last = [node for node in trace.beam.nodes if node.step + 1 == limit_of(trace)]
    assert last and {node.fate for node in last} == {"finished", "dropped"}
    assert sum(node.fate == "finished" for node in last) == 3


def test_a_beam_of_one_with_a_penalty_is_a_beam_and_greedy_has_no_tree():
    tracer = tracer_of("bahdanau2015")
    assert tracer.trace(TEXT, beam_size=1).beam is None
    trace = tracer.trace(TEXT, beam_size=1, coverage_penalty=0.1)
    assert trace.request.mode == "beam" and trace.beam.size == 1
    fates = [node.fate for node in trace.beam.nodes]
    assert (
        fates.count("open") == len(trace.target.pieces) - trace.target.complete
        or fates.count("finished") >= 1
    )
    assert_numbers_are_those_of(trace, stepped_again(tracer, trace))


# Effects.


def erasures(tracer, trace, **more):
    """What `erasure` should be, one word and one step at a time."""
    whole = stepped_again(tracer, trace, **more)
    with np.errstate(invalid="ignore"):
        without = [stepped_again(tracer, trace, erased=word.pieces, **more) for word in trace.source.words]
    return np.stack([one.said_T - whole.said_T for one in without], axis=1)


@EVERY
def test_erasure_is_what_a_pass_over_a_source_without_the_word_says(name):
    """A word that is all that a local attention can see leaves nothing to compare with: see below."""
    tracer = tracer_of(name)
    trace = tracer.trace("a ici", force=GIVEN, effects=True)
    assert [trace.source.text[word.start : word.end] for word in trace.source.words] == ["a", "ici"]
    right = erasures(tracer, trace)
    known = np.isfinite(right)
    assert known.any() and (np.abs(right[known]) > 1e-3).any()
    if "local" not in name and name != "luong2015":
        assert known.all()
    np.testing.assert_allclose(np.array(trace.effects.erasure)[known], right[known], atol=5e-4)


@pytest.mark.parametrize("window", ["local-m", "local-p"])
@pytest.mark.parametrize("order", ["AttendThenStep", "StepThenAttend"])
@pytest.mark.parametrize("scorer", ["additive", "location"])
def test_a_word_that_is_all_a_local_attention_sees_has_effects_like_any_other(order, scorer, window):
    tracer = tracer_of(f"{order}-{scorer}-{window}")
    trace = tracer.trace("l'ami dort ici", force="a cat sleeps", effects=True)
    assert np.isfinite(trace.effects.erasure).all() and np.isfinite(trace.effects.only_log_prob).all()


@TRANSFORMERS
def test_in_a_transformer_erasure_is_hiding_the_word_from_everybody(name):
    tracer = tracer_of(name)
    trace = tracer.trace(TEXT, force=GIVEN, effects=True)
    whole = stepped_again(tracer, trace)
    for place, word in enumerate(trace.source.words):

        def hide(step, pieces=tuple(word.pieces)):
            def probe(name, value):
                if not name.endswith((".cross.seen", ".self.seen")) or value.ndim != 4:
                    return value
                changed = np.array(value)
                changed[..., list(pieces)] = False
                return changed

            return probe

        hidden = stepped_again(tracer, trace, probe=hide)
        change = np.array(trace.effects.erasure)[:, place]
        np.testing.assert_allclose(change, hidden.said_T - whole.said_T, atol=5e-4)


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


@pytest.mark.parametrize(
    "name",
    [one for one in DESIGNS if DESIGNS[one].kind == "transformer" or DESIGNS[one].attention.kind != "none"],
)
def test_only_looks_say_what_stepping_so_far_and_looking_there_says(name):
    tracer = tracer_of(name)
    trace = tracer.trace("a ou", force="cat", effects=True)
    engine, source, said = engine_of(tracer), ids_of(tracer, "a ou"), said_of(trace)
    clean = stepped_again(tracer, trace)
    for step, (place, word) in product(range(len(said)), enumerate(trace.source.words)):
        share = clean.looks_TLNS[step].mean(axis=(0, 1))[word.pieces] + 1e-6
        row = np.zeros(len(source) + 1)
        row[word.pieces] = share / share.sum()
        changed = Stepped(
            engine,
            source,
            said[: step + 1],
            probe=lambda number, row=row, step=step: looking(row) if number == step else Recorder("none"),
        )
        log_prob_V = changed.log_prob_TV[step]
        id, log_prob = trace.effects.only_id[step][place], trace.effects.only_log_prob[step][place]
        assert log_prob == pytest.approx(log_prob_V[EOS:].max(), abs=5e-4)
        assert log_prob_V[id] == pytest.approx(log_prob, abs=5e-4)
        assert trace.effects.only_piece[step][place] == LETTERS.target.pieces[id]


@EACH_FAMILY
def test_effects_of_a_translation_that_was_cut(name):
    tracer = cut_tracer_of(name)
    trace = tracer.trace("a ou", beam_size=1, effects=True)
    assert not trace.target.complete
    right = erasures(tracer, trace)
    known = np.isfinite(right)
    np.testing.assert_allclose(np.array(trace.effects.erasure)[known], right[known], atol=5e-4)
    if trace.effects.only_id is not None:
        assert np.shape(trace.effects.only_id) == right.shape


def test_a_model_without_attention_has_erasure_and_no_looks():
    trace = tracer_of("sutskever2014").trace(TEXT, force=GIVEN, effects=True)
    assert trace.effects.erasure and trace.effects.only_id is trace.effects.only_piece is None
    assert trace.metrics.coverage is None and trace.attentions == [] and trace.model.reading is None
    assert trace.alignment_TS.shape == (len(trace.target.pieces), 0)


# Metrics.


@LOOKING
def test_metrics_are_those_of_the_attention_that_aligns(name):
    tracer = tracer_of(name)
    trace = tracer.trace(TEXT, force=GIVEN)
    right = stepped_again(tracer, trace)
    reading = trace.model.reading
    looks_TS = right.looks_TLNS[:, reading.layer].mean(axis=1).astype(float)
    coverage = looks_TS.sum(axis=0)
    np.testing.assert_allclose(trace.metrics.coverage, coverage, atol=1e-3)
    assert trace.metrics.coverage_penalty == pytest.approx(
        sum(math.log(min(max(one, 1e-4), 1)) for one in coverage), abs=1e-2
    )
    assert trace.metrics.coverage_deviation == pytest.approx(
        -np.mean([math.log(1 + (1 - one) ** 2) for one in coverage]), abs=1e-3
    )
    out = [-sum(one * math.log(one) for one in row if one > 0) for row in looks_TS]
    assert trace.metrics.entropy_out == pytest.approx(np.mean(out), abs=1e-3)
    into = [
        -sum(one * math.log(one) for one in column / max(column.sum(), 1e-12) if one > 0)
        for column in looks_TS.T
    ]
    assert trace.metrics.entropy_in == pytest.approx(np.mean(into), abs=1e-3)
    assert trace.metrics.perplexity == pytest.approx(math.exp(-right.said_T.mean()), rel=1e-3)


# Interventions.


def row_of(num, *places):
    row = [0.0] * num
    for place in places:
        row[place] = 1 / len(places)
    return row


@pytest.mark.parametrize(
    "name",
    [one for one in DESIGNS if DESIGNS[one].kind == "transformer" or DESIGNS[one].attention.kind != "none"],
)
def test_a_forced_row_changes_its_step_and_nothing_before_it(name):
    tracer, step = tracer_of(name), 2
    clean = tracer.trace(TEXT, force=GIVEN)
    row = row_of(len(clean.source.pieces), 1, 4)
    trace = tracer.trace(TEXT, force=GIVEN, interventions=[LookSo(step=step, weights=row)])
    weights = trace.attention("cross").weights_LNTS
    np.testing.assert_allclose(
        weights[:, :, step], np.broadcast_to(row, weights[:, :, step].shape), atol=1e-6
    )
    np.testing.assert_allclose(
        weights[:, :, :step], clean.attention("cross").weights_LNTS[:, :, :step], atol=1e-4
    )
    for t, (one, other) in enumerate(zip(trace.target.pieces, clean.target.pieces, strict=True)):
        if t < step:
            assert one.log_prob == pytest.approx(other.log_prob, abs=1e-5)
    assert trace.target.pieces[step].log_prob != pytest.approx(clean.target.pieces[step].log_prob, abs=1e-5)
    right = stepped_again(
        tracer, trace, probe=lambda number: looking(row) if number == step else Recorder("none")
    )
    assert_numbers_are_those_of(trace, right)
    assert trace.request.interventions == [LookSo(step=step, weights=row)]


@TRANSFORMERS
def test_a_forced_row_may_be_that_of_one_layer_and_head(name):
    tracer, step = tracer_of(name), 1
    clean = tracer.trace(TEXT, force=GIVEN)
    row = row_of(len(clean.source.pieces), 3)
    trace = tracer.trace(TEXT, force=GIVEN, interventions=[LookSo(step=step, weights=row, layer=1, head=0)])
    weights, before = (one.attention("cross").weights_LNTS for one in (trace, clean))
    np.testing.assert_allclose(weights[1, 0, step], row, atol=1e-6)
    np.testing.assert_allclose(
        weights[0], before[0], atol=1e-4
    )  # the layer below looks as it did, at its step
    np.testing.assert_allclose(weights[1, 1, step], before[1, 1, step], atol=1e-4)
    right = stepped_again(
        tracer, trace, probe=lambda number: looking(row, 1, 0) if number == step else Recorder("none")
    )
    assert_numbers_are_those_of(trace, right)


@LOOKING
def test_greedy_search_goes_on_from_a_forced_row_as_stepping_by_hand_does(name):
    tracer, engine = tracer_of(name), engine_of(tracer_of(name))
    source = ids_of(tracer, TEXT)
    row = row_of(len(source) + 1, 0)
    trace = tracer.trace(TEXT, beam_size=1, interventions=[LookSo(step=1, weights=row)])
    state, id, said = engine.start(make_batch(Ragged.of([source]), None, np.arange(1))), BOS, []
    while id != EOS and len(said) < limit_of(trace):
        step = engine.step(state, np.array([id]), *([looking(row)] if len(said) == 1 else []))
        state, id = step.state, int(step.logits_RV[0, EOS:].argmax()) + EOS
        said.append(id)
    assert said_of(trace) == said


@LOOKING
def test_beam_search_forces_the_row_on_every_hypothesis_of_the_step(name):
    tracer = tracer_of(name)
    row = row_of(len(ids_of(tracer, TEXT)) + 1, 2)
    trace = tracer.trace(TEXT, beam_size=3, interventions=[LookSo(step=0, weights=row)])
    assert_the_tree_is_that_of_an_obvious_search(
        tracer, trace, probe=lambda number: looking(row) if number == 0 else Recorder("none")
    )
    clean = tracer.trace(TEXT, beam_size=3)
    assert trace.beam != clean.beam


@TRANSFORMERS
@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder"])
@pytest.mark.parametrize("beam_size", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_head_that_is_off_says_nothing(name, kind, beam_size):
    tracer = tracer_of(name)
    part = {"cross": "decoder.0.cross", "encoder": "encoder.0.self", "decoder": "decoder.0.self"}[kind]
    off = HeadOff(kind=kind, layer=0, head=1)
    trace = tracer.trace(TEXT, beam_size=beam_size, interventions=[off], record=[f"{part}.heads"])
    heads = trace.states[f"{part}.heads"].unpack()
    assert not heads[1].any() and heads[0].any()

    def silence(step):
        def probe(name, value):
            if name != f"{part}.heads":
                return value
            changed = np.array(value)
            changed[:, 1] = 0
            return changed

        return probe

    right = stepped_again(tracer, trace, probe=silence)
    assert_numbers_are_those_of(trace, right)
    whole = stepped_again(tracer, trace)
    assert np.abs(whole.said_T - right.said_T).max() > 1e-5
    if beam_size == 2:
        assert_the_tree_is_that_of_an_obvious_search(tracer, trace, probe=silence)


@TRANSFORMERS
def test_without_its_mask_a_decoder_looks_at_words_to_come(name):
    tracer = tracer_of(name)
    clean = tracer.trace(TEXT, force=GIVEN)
    trace = tracer.trace(TEXT, force=GIVEN, interventions=[MaskOff()])
    attention = trace.attention("decoder")
    assert clean.attention("decoder").causal and not attention.causal
    assert np.triu(attention.weights_LNTS, 1).max() > 0.01
    np.testing.assert_allclose(attention.weights_LNTS.sum(axis=-1), 1, atol=2e-3)
    assert np.isfinite(attention.scores_LNTS).all()
    assert trace.target.log_prob != pytest.approx(clean.target.log_prob, abs=1e-3)
    # The first layer's scores know nothing of the mask; only what may be seen is other.
    lower = np.tri(len(trace.target.pieces), dtype=bool)
    np.testing.assert_allclose(
        attention.scores_LNTS[0][:, lower], clean.attention("decoder").scores_LNTS[0][:, lower], atol=5e-3
    )
    shown = attention.heads[0][0]
    assert trace.heat_map(Which("decoder", 0, 0)).values_TS.shape == (len(trace.target.pieces),) * 2
    assert not np.isnan(trace.heat_map(Which("decoder", 0, 0)).values_TS).any() and shown.entropy > 0


@TRANSFORMERS
def test_a_translation_that_was_cut_can_be_read_without_a_mask(name):
    trace = cut_tracer_of(name).trace("a ou", beam_size=1, interventions=[MaskOff()])
    assert not trace.target.complete
    np.testing.assert_allclose(trace.attention("decoder").weights_LNTS.sum(axis=-1), 1, atol=2e-3)


@TRANSFORMERS
def test_without_positions_the_order_of_the_source_does_not_matter(name):
    tracer = tracer_of(name)
    one, other = (tracer.trace(text, force=GIVEN, interventions=[PositionsOff()]) for text in ("ca", "ac"))
    # In "▁ca" and "▁ac" the letters have changed places.
    assert one.target.log_prob == pytest.approx(other.target.log_prob, abs=1e-3)
    clean, moved = (tracer.trace(text, force=GIVEN) for text in ("ca", "ac"))
    assert clean.target.log_prob != pytest.approx(moved.target.log_prob, abs=1e-3)
    right = stepped_again(
        tracer,
        one,
        probe=lambda step: lambda name, value: np.zeros_like(value) if name.endswith("positions") else value,
    )
    assert_numbers_are_those_of(one, right)


def test_several_interventions_act_together_and_on_the_effects():
    tracer = tracer_of("regard-small")
    row = row_of(len(ids_of(tracer, TEXT)) + 1, 1)
    changes = [PositionsOff(), HeadOff(layer=1, head=0), LookSo(step=1, weights=row, layer=0)]
    trace = tracer.trace(TEXT, force=GIVEN, interventions=changes, effects=True)

    def tampering(step):
        def probe(name, value):
            if name.endswith("positions"):
                return np.zeros_like(value)
            if name == "decoder.1.cross.heads":
                value = np.array(value)
                value[:, 0] = 0
            return looking(row, 0)(name, value) if step == 1 else value

        return probe

    assert_numbers_are_those_of(trace, stepped_again(tracer, trace, probe=tampering))
    np.testing.assert_allclose(trace.effects.erasure, erasures(tracer, trace, probe=tampering), atol=5e-4)


NUM = len(LETTERS.source.encode(TEXT).ids) + 1


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("bahdanau2015", LookSo(step=0, weights=[1.0]), rf"1 weights for step 1 .* has {NUM} pieces"),
        ("regard-small", LookSo(step=0, weights=[]), "0 weights for step 1"),
        ("bahdanau2015", LookSo(step=0, weights=[0.5] * NUM), f"sum to {NUM / 2:.4g}"),
        ("regard-small", LookSo(step=0, weights=[0.0] * NUM), "sum to 0"),
        ("regard-small", LookSo(step=0, weights=[2.0, -1.0] + [0.0] * (NUM - 2)), "smallest is -1"),
        ("regard-small", LookSo(step=90, weights=row_of(NUM, 0)), "no step 91: the translation has"),
        ("regard-small", LookSo(step=0, weights=row_of(NUM, 0), layer=2), "no layer 3.* 2 layers of 2 heads"),
        ("regard-small", LookSo(step=0, weights=row_of(NUM, 0), head=2), "head 3"),
        ("bahdanau2015", LookSo(step=0, weights=row_of(NUM, 0), head=0), "no heads"),
        ("bahdanau2015", LookSo(step=0, weights=row_of(NUM, 0), layer=1), "no layer 2"),
        ("sutskever2014", LookSo(step=0, weights=row_of(NUM, 0)), "no attention to force"),
        ("regard-small", HeadOff(kind="encoder", layer=2, head=0), "no layer 3"),
        ("regard-small", HeadOff(kind="cross", layer=0, head=2), "head 3"),
        ("bahdanau2015", HeadOff(layer=0, head=0), "no heads to switch off"),
        ("luong2015", MaskOff(), "no mask to switch off"),
        ("cho2014", PositionsOff(), "no positions to switch off"),
    ],
)
def test_an_intervention_that_does_not_fit_is_refused(name, change, told):
    with pytest.raises(ConfigError, match=told):
        tracer_of(name).trace(TEXT, beam_size=1, interventions=[change])


def test_a_forced_row_just_beyond_the_end_is_refused_and_the_last_one_is_not():
    tracer = tracer_of("bahdanau2015")
    num = len(tracer.trace(TEXT, force=GIVEN).target.pieces)
    tracer.trace(TEXT, force=GIVEN, interventions=[LookSo(step=num - 1, weights=row_of(NUM, 0))])
    with pytest.raises(ConfigError, match=f"no step {num + 1}: the translation has {num} steps"):
        tracer.trace(TEXT, force=GIVEN, interventions=[LookSo(step=num, weights=row_of(NUM, 0))])


# The document: its schema, and back from a file.


def test_the_schema_in_the_package_is_that_of_the_classes():
    assert (resources.files("regard.trace") / "schema.json").read_text("utf-8") == schema()


@functools.cache
def _validator():
    plain = json.loads(schema())
    jsonschema.Draft202012Validator.check_schema(plain)
    return jsonschema.Draft202012Validator(plain)


@EVERY
def test_a_file_gives_a_trace_back(name, tmp_path):
    trace = tracer_of(name).trace(TEXT, force=GIVEN, gates=True)
    trace.save(tmp_path / "a.json")
    again = load_trace(tmp_path / "a.json")
    assert again == trace and again.to_json() == trace.to_json()
    np.testing.assert_array_equal(again.alignment_TS, trace.alignment_TS)


@pytest.mark.parametrize("name", [*FAMILIES, "StepThenAttend-location-local-m", "transformer-pre-learned"])
def test_the_schema_validates_every_trace(name):
    trace = tracer_of(name).trace(TEXT, beam_size=2, gates=True)
    _validator().validate(json.loads(trace.to_json()))


@pytest.mark.parametrize(
    "how",
    [
        {"force": GIVEN, "effects": True},
        {"kind": "sample"},
        {"kind": "risk", "num_samples": 2},
        {"prefix": "th", "beam_size": 2},
        {"force": GIVEN, "interventions": [MaskOff(), PositionsOff(), HeadOff(layer=0, head=0)]},
        {"force": GIVEN, "interventions": [LookSo(step=1, weights=row_of(NUM, 2))], "effects": True},
        {"beam_size": 2, "record": ["*"]},
    ],
    ids=lambda how: "-".join(how),
)
def test_the_schema_validates_every_kind_of_request(how, tmp_path):
    trace = tracer_of("regard-small").trace(TEXT, **how)
    _validator().validate(json.loads(trace.to_json()))
    trace.save(tmp_path / "a.json")
    assert load_trace(tmp_path / "a.json") == trace


def test_the_schema_refuses_what_is_not_a_trace():
    plain = json.loads(tracer_of("bahdanau2015").trace(TEXT, force=GIVEN).to_json())
    for change in ({"more": 1}, {"format": "regard-trace/2"}, {"source": None}, {"states": {"a": 1}}):
        assert not _validator().is_valid(plain | change)
    assert not _validator().is_valid({key: value for key, value in plain.items() if key != "target"})


# What must hold, and is refused where it does not.


@functools.cache
def _good(name):
    tracer = tracer_of(name)
    how = {"beam_size": 2} if name != "luong2015" else {"force": GIVEN}
    effects = "luong" not in name  # a local attention may see nothing without a word
    return tracer.trace(TEXT, effects=effects, **how).to_json()


def good(name):
    """A sound trace as plain values, to be spoilt."""
    return json.loads(_good(name))


def unpacked(array):
    return np.array(Array.model_validate(array).unpack())


def packed(values, dtype="f4"):
    return json.loads(Array.of(np.asarray(values), dtype).model_dump_json())


def kind_of(trace, kind):
    return next(one for one in trace["attentions"] if one["kind"] == kind)


def with_weights(kind, change):
    def tamper(trace):
        attention = kind_of(trace, kind)
        logs = unpacked(attention["log_weights"])
        weights = np.exp(logs)
        change(weights)
        attention["weights"] = packed(weights)

    return tamper


def _at(*path, value):
    def tamper(trace):
        for key in path[:-1]:
            trace = trace[key]
        trace[path[-1]] = value(trace[path[-1]]) if callable(value) else value

    return tamper


def _spoil(array, index, value):
    values = unpacked(array)
    values[index] = value
    return packed(values)


def _set(index, value):
    def change(weights):
        weights[index] = value

    return change


def _sum_and_more(weights):
    weights[0, 0, 1] *= 1.02


def _sum_and_less(weights):
    weights[0, 0, 1] *= 0.98


def _ahead(weights):
    weights[0, 0, 0] = 0
    weights[0, 0, 0, 1] = 1


def _drop_row(array):
    return packed(unpacked(array)[:-1])


def _rename(trace):
    trace["attentions"].append(copy.deepcopy(kind_of(trace, "cross")))


def _wide(trace):
    nodes = trace["beam"]["nodes"]
    first = [node for node in nodes if node["step"] == 1]
    for node in first:
        node["fate"] = "open"
    assert len(first) > trace["beam"]["size"]


R, N = "bahdanau2015", "regard-small"
SPOILT = {
    "source surfaces": (N, _at("source", "pieces", 1, "surface", value="zz"), "surfaces of the source"),
    "target surfaces": (N, _at("target", "text", value=lambda text: text + "x"), "surfaces of the target"),
    "source text": (R, _at("source", "text", value="something else"), "surfaces of the source"),
    "no source": (R, _at("source", "pieces", value=[]), "source has no pieces"),
    "no target": (R, _at("target", "pieces", value=[]), "target has no pieces"),
    "span beyond": (N, _at("source", "pieces", 1, "end", value=99), "piece of the source lies outside"),
    "span before": (N, _at("target", "pieces", 0, "start", value=-1), "piece of the target lies outside"),
    "span turned": (N, _at("source", "pieces", -2, value=lambda one: one | {"start": 9, "end": 8}), "lies outside"),
    "word beyond": (N, _at("source", "words", 0, "end", value=99), "source word lies outside"),
    "word empty": (N, _at("source", "words", 0, value=lambda one: one | {"end": one["start"]}), "source word lies outside"),
    "word of what": (N, _at("target", "words", 0, "pieces", value=[999]), "target word has pieces"),
    "word of minus": (N, _at("source", "words", 0, "pieces", value=[-1]), "source word has pieces"),
    "above 1": (N, _at("target", "pieces", 0, "log_prob", value=0.5), "probability is above 1"),
    "sum": (N, _at("target", "log_prob", value=lambda one: one - 0.5), "do not sum to that"),
    "candidates short": (N, _at("target", "pieces", 0, "candidates", "ids", value=[5]), "different lengths"),
    "candidates order": (
        N, _at("target", "pieces", 0, "candidates", "log_probs", 0, value=-50.0), "order of their probability",
    ),
    "two probabilities": (
        R, _at("target", "pieces", 0, "candidates", value=lambda one: {key: values[::-1] if key == "ids" else values for key, values in one.items()}), "two different",
    ),
    "shape": (R, _at("attentions", 0, "log_weights", value=lambda one: packed(np.zeros((1, 1, 2, 2)))), "has shape"),
    "shape of three": (R, _at("attentions", 0, "log_weights", value=lambda one: packed(np.zeros((2, 2, 2)))), "has shape"),
    "no heads": (R, _at("attentions", 0, "log_weights", value=lambda one: packed(np.zeros((1, 0, 2, 2)))), "has shape"),
    "not logarithms": (R, _at("attentions", 0, "log_weights", value=lambda one: packed(unpacked(one))), "sums of shape|has"),
    "shape of sums": (R, _at("attentions", 0, "log_sums", value=_drop_row), "sums of shape|cannot"),
    "shape of weights": (R, _at("attentions", 0, "weights", value=lambda one: packed(np.ones((1, 1, 1, 1)))), "weights of shape"),
    "heads untold": (N, _at("attentions", 0, "heads", value=[]), "each of its heads"),
    "not a number": (R, with_weights("cross", _set((0, 0, 0, 0), np.nan)), "numbers that are none"),
    "sums not a number": (R, _at("attentions", 0, "log_sums", value=lambda one: _spoil(one, (0, 0, 0), np.inf)), "numbers that are none"),
    "negative": (N, with_weights("encoder", _set((0, 0, 0, slice(2)), [-0.5, 1.5])), "more than 1 or less than 0"),
    "row above 1": (N, with_weights("cross", _sum_and_more), "more than 1"),
    "row below 1": (N, with_weights("cross", _sum_and_less), "does not sum to 1"),
    "words to come": (N, with_weights("decoder", _ahead), "words to come"),
    "twice": (N, _rename, "comes twice"),
    "reading without attention": (R, _at("attentions", value=[]), "do not go together"),
    "attention without reading": (R, _at("model", "reading", value=None), "do not go together"),
    "reading of no layer": (N, _at("model", "reading", "layer", value=7), "no layer and head"),
    "reading of minus": (N, _at("model", "reading", "layer", value=-1), "no layer and head"),
    "reading of no head": (N, _at("model", "reading", "head", value=2), "no layer and head"),
    "state NaN": (N, _at("states", "readout", value=lambda one: _spoil(one, (0, 0), np.nan)), "'readout' has numbers"),
    "state infinite": (R, _at("states", "memory", value=lambda one: _spoil(one, (0, 0), np.inf)), "'memory' has numbers"),
    "context": (R, _at("states", "attention.context", value=lambda one: _spoil(one, (1, 0), 3.0)), "not the weights times the memory"),
    "context by memory": (R, _at("states", "memory", value=lambda one: packed(-unpacked(one))), "not the weights times the memory"),
    "context by weights": (R, with_weights("cross", lambda weights: weights.__imul__(0) is weights.__setitem__((..., 0), 1)), "not the weights times"),
    "context short": (R, _at("states", "attention.context", value=_drop_row), "do not fit together"),
    "memory short": (R, _at("states", "memory", value=_drop_row), "do not fit together"),
    "beam parent": (N, _at("beam", "nodes", -1, "parent", value=0), "does not follow its parent"),
    "beam parent to come": (N, _at("beam", "nodes", -1, "parent", value=10**6), "does not follow its parent"),
    "beam parent below": (N, _at("beam", "nodes", -1, "parent", value=-1), "does not follow its parent"),
    "beam orphan": (N, _at("beam", "nodes", -1, "parent", value=None), "no place in the tree"),
    "beam root": (N, _at("beam", "nodes", 0, "parent", value=0), "no place in the tree"),
    "beam step": (N, _at("beam", "nodes", 0, "step", value=-1), "no place in the tree"),
    "beam width": (N, _wide, "more hypotheses are open"),
    "beam best": (N, _at("beam", "best", value=lambda best: best[:-1]), "does not say the translation"),
    "beam best of what": (N, _at("beam", "best", 0, value=10**6), "nodes that are not there"),
    "beam best of minus": (N, _at("beam", "best", 0, value=-1), "nodes that are not there"),
    "beam says other": (N, lambda trace: trace["beam"]["nodes"][trace["beam"]["best"][0]].update(id=5), "does not say the translation"),
    "effects rows": (N, _at("effects", "erasure", value=lambda rows: rows[:-1]), "no erasure for each"),
    "effects columns": (R, _at("effects", "only_id", 0, value=lambda row: row[:-1]), "no only_id for each"),
    "effects pieces": (R, _at("effects", "only_piece", 0, value=[]), "no only_piece for each"),
    "effects log-probs": (R, _at("effects", "only_log_prob", value=[]), "no only_log_prob for each"),
    "coverage": (R, _at("metrics", "coverage", value=lambda one: one[:-1]), "the coverage of"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "tamper", "told"), SPOILT.values(), ids=SPOILT)
def test_what_cannot_be_is_refused_by_its_name(name, tamper, told, write):
    trace = good(name)
    tamper(trace)
    path = write("spoilt.json", json.dumps(trace))
    with pytest.raises(TraceError, match=rf"(?s)spoilt\.json: .*({told})"):
        load_trace(path)


@pytest.mark.parametrize("name", [R, N, "luong2015"])
def test_what_is_spoilt_above_is_sound_before(name, write):
    load_trace(write("good.json", _good(name)))


def test_the_best_path_of_the_beam_must_be_a_path(write):
    """Nodes that say the same ids, but do not follow each other, are no path."""
    trace = good(N)
    nodes, best = trace["beam"]["nodes"], trace["beam"]["best"]
    for number, node in enumerate(nodes):
        if node["step"] == 0 and number != best[0]:
            node["id"], node["fate"] = nodes[best[0]]["id"], "dropped"
            best[0] = number
            break
    with pytest.raises(TraceError, match="best path"):
        load_trace(write("spoilt.json", json.dumps(trace)))


def test_a_word_without_pieces_is_refused(write):
    trace = good(N)
    trace["source"]["words"][0]["pieces"] = []
    with pytest.raises(TraceError, match="word"):
        load_trace(write("spoilt.json", json.dumps(trace)))


def _array(**change):
    def tamper(trace):
        trace["states"]["readout"] |= change

    return tamper


def _deflated(data):
    return base64.b64encode(zlib.compress(data)).decode()


DAMAGED = {
    "no base64": (_array(data="*** not base64 ***"), "damaged"),
    "cut base64": (_array(data="abcde"), "damaged"),
    "not deflated": (_array(data=base64.b64encode(b"hello there").decode()), "damaged"),
    "nothing": (_array(data=""), "bytes of numbers"),
    "too few": (_array(data=_deflated(b"\0\0")), "2 bytes of numbers"),
    "too many": (_array(data=_deflated(b"\0" * 99_999)), "bytes of numbers"),
    "negative": (_array(shape=[-1, 8]), "cannot be"),
    "two negative": (_array(shape=[-1, -8]), "cannot be"),
    "huge": (_array(shape=[10**9, 10**9]), "cannot be"),
    "beyond any number": (_array(shape=[10**40]), "cannot be"),
    "none of very many": (_array(shape=[0, 10**40], data=_deflated(b"")), "cannot be|dimension"),
    "five axes": (_array(shape=[1, 1, 1, 1, 1]), "states.readout.shape"),
    "other kind": (_array(dtype="f8"), "states.readout.dtype"),
    "pickled": (_array(dtype="O"), "states.readout.dtype"),
    "no scale": (_array(dtype="u2"), "scale of None"),
    "scale of 0": (_array(dtype="u2", scale=0.0), "scale of 0"),
    "negative scale": (_array(dtype="u2", scale=-1.0), "scale of -1"),
    "scale of nothing": (_array(dtype="u2", scale=float("nan")), "scale"),
    "endless scale": (_array(dtype="u2", scale=float("inf")), "scale"),
    "more": (_array(code="print(1)"), "states.readout.code"),
}


@pytest.mark.parametrize(("tamper", "told"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_numbers_are_refused(tamper, told, write):
    trace = good(N)
    tamper(trace)
    with pytest.raises(TraceError, match=f"({told})"):
        load_trace(write("damaged.json", json.dumps(trace)))


def test_any_end_that_is_missing_of_packed_numbers_is_found(write):
    trace = good(N)
    data = base64.b64decode(trace["states"]["readout"]["data"])
    for size in (0, 1, 2, 10, len(data) // 2, len(data) - 5, len(data) - 4, len(data) - 1):
        trace["states"]["readout"]["data"] = base64.b64encode(data[:size]).decode()
        with pytest.raises(TraceError, match=r"damaged|bytes of numbers"):
            load_trace(write("cut.json", json.dumps(trace)))


def _peak(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _bomb(num_megabytes):
    """Deflated zeros, made without ever having them: all blocks but the first are the same bytes."""
    deflate, megabyte = zlib.compressobj(), bytes(1_000_000)
    first, again = (deflate.compress(megabyte) + deflate.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    whole = first + again * (num_megabytes - 1) + b"\x03\x00"  # an empty block is the last
    checksum = 1 + (num_megabytes * 1_000_000 % 65521 << 16)  # Adler-32 of so many zeros
    return base64.b64encode(whole + checksum.to_bytes(4, "big")).decode()


def test_the_bomb_below_is_one():
    assert zlib.decompress(base64.b64decode(_bomb(3))) == bytes(3_000_000)


def test_what_inflates_to_gigabytes_is_refused_without_inflating_it(write):
    trace = good(N)
    trace["states"]["readout"]["data"] = _bomb(3000)
    path = write("bomb.json", json.dumps(trace))
    assert path.stat().st_size < 6_000_000

    def load():
        with pytest.raises(TraceError, match="bytes of numbers"):
            load_trace(path)

    assert _peak(load) < 60_000_000


def test_many_states_that_inflate_together_are_not_all_inflated(write):
    """None of them has a row for each piece; a thousand would be 80 GB in a file of 40 MB."""
    trace = good(N)
    bomb = {"dtype": "f2", "shape": [20_000_000], "data": _bomb(40)}
    trace["states"] |= {f"bomb.{number}": bomb for number in range(4)}
    path = write("bombs.json", json.dumps(trace))

    def load():
        with pytest.raises(TraceError):
            load_trace(path)

    assert _peak(load) < 200_000_000


def test_a_beam_of_very_many_steps_is_refused_without_counting_them(write):
    trace = good(N)
    trace["beam"]["nodes"][-1]["step"] = 50_000_000
    path = write("deep.json", json.dumps(trace))

    def load():
        with pytest.raises(TraceError, match="beam"):
            load_trace(path)

    assert _peak(load) < 60_000_000


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("", "no JSON"),
        ("{", "no JSON"),
        (b"\xff\xfe\0\0", "no JSON"),
        ("[" * 100_000 + "]" * 100_000, "no JSON"),
        ('{"a":' * 100_000, "no JSON"),
        ("9" * 10_000, "no JSON"),
        ("null", "not a trace"),
        ("[]", "not a trace"),
        ('"regard-trace/1"', "not a trace"),
        ("{}", "not a trace"),
        ('{"format": 1}', "not a trace"),
        ('{"format": "else/1"}', "not a trace"),
        ('{"format": "regard-trace/2"}', r"'regard-trace/2' and this version of regard reads 'regard-trace/1'"),
        ('{"format": "regard-trace/1"}', "id: Field required"),
        ('{"format": "regard-trace/1", "id": NaN}', "id: "),
    ],
    ids=lambda data: str(data)[:30],
)  # fmt: skip
def test_what_is_no_trace_is_refused(data, told, write):
    with pytest.raises(TraceError, match=rf"other\.json: .*{told}"):
        load_trace(write("other.json", data))


def test_what_cannot_be_read_is_named(tmp_path):
    with pytest.raises(TraceError, match=r"missing\.json: cannot be read \(No such file"):
        load_trace(tmp_path / "missing.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(TraceError, match=r"folder\.json: cannot be read"):
        load_trace(tmp_path / "folder.json")


def test_a_file_larger_than_any_trace_is_not_even_read(tmp_path):
    path = tmp_path / "large.json"
    with path.open("wb") as stream:
        stream.truncate(100_000_001)
    with pytest.raises(TraceError, match="larger than any trace"):
        load_trace(path)


def test_numbers_that_are_none_are_refused_everywhere(write):
    for place in (("target", "score"), ("metrics", "perplexity"), ("timing", "search")):
        for value in (float("nan"), float("inf")):
            trace = good(N)
            trace[place[0]][place[1]] = value
            with pytest.raises(TraceError, match=rf"{place[0]}\.{place[1]}: .*finite"):
                load_trace(write("none.json", json.dumps(trace)))


@pytest.mark.parametrize("size", [0.1, 0.5, 0.9, 0.999])
def test_a_file_that_lost_its_end_is_refused(size, write):
    data = _good(N).encode()
    with pytest.raises(TraceError, match="damaged"):
        load_trace(write("cut.json", data[: int(size * len(data))]))


@pytest.mark.parametrize("name", [R, N])
def test_a_design_that_cannot_be_is_refused_or_shown_all_the_same(name, write):
    """Whatever `model.options` says: no other error than one of ours."""
    for options in (
        {},
        {"attention": 1, "num_layers": 1},
        {"kind": "\ud800"},
        {"attention": {"kind": "none"}, "num_layers": 10**9},
    ):
        plain = good(name)
        plain["model"]["options"] = options
        try:
            trace = load_trace(write("odd.json", json.dumps(plain)))
        except TraceError:
            continue
        trace.to_json(), trace.to_html(), trace.to_svg(), trace.lines()


# Packing.


def test_packed_weights_are_as_exact_as_is_promised():
    rng = np.random.default_rng(3)
    logs = np.concatenate([-rng.exponential(1, 500), -rng.uniform(0, 60, 500), [0.0, -1e-9, -np.inf]])
    again = Array.of_logs(logs.reshape(17, 59)).unpack().reshape(-1)
    assert (np.isinf(again) == np.isinf(logs)).all() and (again <= 0).all()
    seen = np.isfinite(logs)
    np.testing.assert_allclose(np.exp(again), np.exp(logs), atol=5e-5)
    lowest = -logs[seen].min()
    assert np.abs(again[seen] - logs[seen]).max() <= lowest / 65534


def test_large_states_are_kept_whole():
    values = np.array([[1.0, -2.5], [65504.0, 1e5]])
    assert np.isinf(Array.of(values, "f2").unpack()).any()
    np.testing.assert_array_equal(Array.of(values, "f4").unpack(), values.astype(np.float32))


def test_the_states_of_a_model_with_large_numbers_are_kept_whole():
    model = ending_of("bahdanau2015")
    loud = replace(model, weights=model.weights | {"source.weight": 1e6 * model.weights["source.weight"]})
    tracer = Tracer.of(loud, "loud")
    trace = tracer.trace(TEXT, force=GIVEN)
    assert trace.states["source.embedded"].dtype == "f4"
    assert np.abs(trace.states["source.embedded"].unpack()).max() > 65504
    assert_numbers_are_those_of(trace, stepped_again(tracer, trace))


def test_a_translation_that_is_all_but_impossible_is_traced():
    model = ending_of("bahdanau2015")
    sure = replace(model, weights=model.weights | {"W_o": 1e6 * model.weights["W_o"]})
    trace = Tracer.of(sure, "sure").trace(TEXT, force=GIVEN)
    assert trace.target.log_prob < -1e4 and np.isfinite(trace.metrics.perplexity)


# Bad input.


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u00a0\u2003", "\ufeff"])
def test_a_blank_text_is_refused(text):
    with pytest.raises(SourceError, match="blank"):
        tracer_of(R).trace(text)


@pytest.mark.parametrize("name", [R, N])
def test_three_hundred_words_are_refused(name):
    with pytest.raises(SourceError, match=r"the text has .* pieces and a picture shows no more than 200"):
        tracer_of(name).trace("le chat " * 150)


def test_a_model_that_reads_less_says_so():
    with pytest.raises(SourceError, match="no more than 16"):
        tracer_of("transformer-pre-learned").trace("le chat dort ici")
    with pytest.raises(SourceError, match=r"the given translation has .* no more than 16"):
        tracer_of("transformer-pre-learned").trace("le", force="the cat sleeps here")


def test_a_script_the_model_does_not_know_is_shown_with_a_warning():
    trace = tracer_of(R).trace("Ελλάδα και", beam_size=1)
    assert any("unlike what the model has learnt" in one for one in trace.warnings)
    assert not any("unlike" in one for one in tracer_of(R).trace(TEXT, beam_size=1).warnings)


@pytest.mark.parametrize("given", ["", "  ", "\n"])
def test_a_blank_given_translation_is_refused(given):
    with pytest.raises(SourceError, match="given translation is blank"):
        tracer_of(R).trace(TEXT, force=given)


def test_a_given_translation_or_a_prefix_that_is_too_long_is_refused():
    with pytest.raises(SourceError, match="the given translation has"):
        tracer_of(R).trace(TEXT, force="the cat " * 150)
    with pytest.raises(SourceError, match="the prefix has"):
        tracer_of(R).trace(TEXT, prefix="the cat " * 150)


def test_a_given_translation_is_not_searched():
    for more in ({"prefix": "a"}, {"beam_size": 2}, {"kind": "sample"}):
        with pytest.raises(ConfigError, match="leave the prefix and the search out"):
            tracer_of(R).trace(TEXT, force=GIVEN, **more)


def test_what_a_model_does_not_compute_is_refused_by_its_name():
    for wrong in ("attention.weight", "decoder.9.state", ""):
        with pytest.raises(ConfigError, match=f"nothing named '{wrong}'"):
            tracer_of(R).trace(TEXT, force=GIVEN, record=["memory", wrong])


def test_an_unknown_option_of_the_search_is_refused():
    with pytest.raises(ConfigError, match="beam_sise"):
        tracer_of(R).trace(TEXT, beam_sise=2)


ODD = [
    "!",
    "\ud800",
    "a\udfffb",
    " a\tb\nc ",
    "👩\u200d👩\u200d👧 👍🏽",
    "한국어 문장입니다",
    "\u1112\u1161\u11ab a",
    "שלום עולם",
    "“l’ami”",
    "cafe\u0301",
    "▁a▁",
    "a\u00ad\ufeffb",
    "<unk> </s> <pad>",
    "</script><img onerror=x>",
]


@pytest.mark.parametrize("text", ODD)
@pytest.mark.parametrize("name", [R, N])
def test_odd_texts_are_traced(name, text, tmp_path):
    trace = tracer_of(name).trace(text, beam_size=2, effects=True, max_ratio=3.0)
    assert_is_sound(trace, text)
    trace.save(tmp_path / "odd.json")
    assert load_trace(tmp_path / "odd.json") == trace


def assert_is_sound(trace, text):
    assert len(trace.source.text) == len(text)
    for side in (trace.source, trace.target):
        assert "".join(piece.surface for piece in side.pieces) == side.text
        covered = {piece for word in side.words for piece in word.pieces}
        for number, piece in enumerate(side.pieces):
            visible = side.text[piece.start : piece.end].strip()
            assert number in covered or not visible
    for by in ("words", "pieces"):
        drawn = trace.heat_map(by=by)
        assert drawn.values_TS.shape == (len(drawn.rows), len(drawn.columns))
        np.testing.assert_allclose(drawn.values_TS.sum(axis=1), 1, atol=3e-3)
    assert json.loads(trace.to_json())["source"]["text"] == trace.source.text


@settings(max_examples=25, deadline=None)
@given(
    st.text(
        st.sampled_from("ab’”“ \t\u00a0\u0301\u1112\u1161\u11ab日👍🏽\u200d\ufeffΩא한\ud800▁\n.1"),
        max_size=12,
    ),
    st.sampled_from([R, N]),
)
def test_any_text_gives_a_sound_trace(text, name):
    tracer = tracer_of(name)
    (translation,) = Translator.of(tracer.model).translate([text], beam_size=1, guard=False)
    if not translation.parts:
        with pytest.raises(SourceError, match="blank"):
            tracer.trace(text, beam_size=1)
        return
    trace = tracer.trace(text, beam_size=1)
    assert_is_sound(trace, text)
    assert trace.target.text == "".join(
        "�" if 0xD800 <= ord(one) < 0xE000 else one for one in translation.text
    )


def test_a_long_text_has_its_attention_and_no_states():
    tracer = tracer_of("regard-small")
    short = "le chat " * 8
    text = "le chat " * 8 + "ici a le chat"
    exact = "a" * (MAX_PIECES_WITH_STATES - 2)
    assert len(ids_of(tracer, exact)) + 1 == MAX_PIECES_WITH_STATES
    trace = tracer.trace(exact, force=GIVEN, effects=True)
    assert trace.states and trace.effects and not any("only the attention" in one for one in trace.warnings)
    for long, how in ((text, {"beam_size": 1}), ("a" + exact, {"force": GIVEN}), ("a", {"force": short})):
        trace = tracer.trace(long, effects=True, record=["logits"], **how)
        assert trace.states == {} and trace.effects is None
        assert any("only the attention is kept" in one for one in trace.warnings)
        assert len(trace.attentions) == 3
        trace.to_svg(), trace.to_html(), trace.lines()


def test_a_model_that_splits_says_that_translate_would():
    tracer = Tracer.of(replace(ending_of(R), split_above=4), "split")
    assert any("`translate` would split" in one for one in tracer.trace(TEXT, beam_size=1).warnings)


def test_a_name_that_is_no_utf8_can_be_a_model():
    """As Linux allows it for files."""
    trace = Tracer.of(ending_of(R), "caf\udce9.regard").trace(TEXT, force=GIVEN)
    assert trace.model.label.startswith("caf") and json.loads(trace.to_json())


# Words.


def test_words_of_several_pieces_are_merged_as_by_hand():
    """Sum over the pieces of a source word, mean over those of a target word."""
    tracer = Tracer.of(model_of(N, SUBWORDS), "subwords")
    trace = tracer.trace("l'ami dort", force="a cat")
    assert [piece.piece for piece in trace.source.pieces] == ["▁l", "'", "ami", "▁dort", "</s>"]
    weights_TS = trace.alignment_TS
    drawn = trace.heat_map()
    assert drawn.columns == ("l'", "ami", "dort", "</s>") and drawn.rows == ("a", "cat", "</s>")
    said = [piece.piece for piece in trace.target.pieces]
    assert said == ["▁a", "▁cat", "</s>"]
    by_hand = [[row[0] + row[1], row[2], row[3], row[4]] for row in weights_TS]
    np.testing.assert_allclose(drawn.values_TS, by_hand, atol=1e-6)
    np.testing.assert_allclose(drawn.values_TS.sum(axis=1), 1, atol=1e-3)
    letters = tracer_of(N).trace("a ou", force="at a")
    assert [piece.piece for piece in letters.target.pieces] == ["▁", "a", "t", "▁", "a", "</s>"]
    assert [word.pieces for word in letters.target.words] == [[0, 1, 2], [3, 4]]
    assert [word.pieces for word in letters.source.words] == [[0, 1], [2, 3, 4]]
    rows = letters.alignment_TS
    merged = np.stack([rows[:3].mean(axis=0), rows[3:5].mean(axis=0), rows[5]])
    merged = np.stack([merged[:, :2].sum(axis=1), merged[:, 2:5].sum(axis=1), merged[:, 5]], axis=1)
    np.testing.assert_allclose(letters.heat_map().values_TS, merged, atol=1e-6)
    probs = np.exp([piece.log_prob for piece in letters.target.pieces])
    np.testing.assert_allclose(
        letters.heat_map().probs_T, [probs[:3].prod(), probs[3:5].prod(), probs[5]], rtol=1e-4
    )


@pytest.mark.parametrize(("text", "wanted"), [("(a).", ("(", "a", ")", ".")), ("日本", ("日", "本"))])
def test_two_words_of_one_piece_keep_their_names_and_share_its_weight(text, wanted):
    tokenizers = TokenizerPair.learn(
        ["(a). 日本"] * 50, ["that he"] * 50, SubwordOptions(kind="bpe", vocab_size=290, joint=True)
    )
    trace = Tracer.of(model_of(N, tokenizers), "m").trace(text, force="that he")
    assert trace.source.words[-2].pieces == trace.source.words[-1].pieces
    drawn = trace.heat_map()
    assert drawn.columns == (*wanted, "</s>")
    np.testing.assert_allclose(drawn.values_TS.sum(axis=1), 1, atol=2e-3)
    np.testing.assert_allclose(drawn.values_TS[:, -3], drawn.values_TS[:, -2], atol=1e-6)
    said = Tracer.of(model_of(N, tokenizers), "m").trace("a", force=text)
    assert said.heat_map().rows == (*wanted, "</s>")


def test_an_unknown_word_is_the_source_word_it_came_from():
    tokenizers = TokenizerPair.learn(
        ["le chat dort"], ["the cat sleeps"], WordOptions(vocab_size=300, joint=True, unknown="unk")
    )
    trace = Tracer.of(model_of(N, tokenizers), "m").trace("le zèbre dort", force="the zebra sleeps")
    assert "<unk>" in [piece.piece for piece in trace.target.pieces]
    assert "".join(piece.surface for piece in trace.target.pieces) == trace.target.text
    assert trace.target.text.split()[0] == "the" and "<unk>" not in trace.target.text


@LOOKING
@pytest.mark.parametrize("shifted", [False, True])
def test_the_alignment_is_that_of_translate_by_any_reading(name, shifted):
    reading = Reading(-1, 0, shifted)
    model = replace(ending_of(name), reading=reading)
    trace = Tracer.of(model, "m").trace(TEXT, beam_size=2)
    (right,) = Translator.of(model).translate([TEXT], guard=False, beam_size=2)
    np.testing.assert_allclose(trace.alignment_TS, right.attention_TS, atol=2e-4)
    cross = trace.attention("cross").weights_LNTS[-1, 0]
    np.testing.assert_allclose(trace.alignment_TS[:-1], cross[1:] if shifted else cross[:-1], atol=1e-6)
    assert trace.model.reading.layer == trace.attention("cross").log_weights.shape[0] - 1


@TRANSFORMERS
def test_the_heat_map_of_each_attention_is_its_weights(name):
    trace = tracer_of(name).trace(TEXT, force=GIVEN, effects=True)
    fed = (RESERVED[BOS], *(piece.piece for piece in trace.target.pieces[:-1]))
    names = {
        "cross": (
            tuple(piece.piece for piece in trace.target.pieces),
            tuple(piece.piece for piece in trace.source.pieces),
        ),
        "encoder": (tuple(piece.piece for piece in trace.source.pieces),) * 2,
        "decoder": (fed, fed),
    }
    for kind, (rows, columns) in names.items():
        weights = trace.attention(kind).weights_LNTS
        layers, heads = weights.shape[:2]
        for layer, head in product((None, *range(layers)), (None, *range(heads))):
            drawn = trace.heat_map(Which(kind, layer, head), by="pieces")
            chosen = weights if layer is None else weights[layer : layer + 1]
            right = (chosen if head is None else chosen[:, head : head + 1]).mean(axis=(0, 1))
            assert (drawn.rows, drawn.columns) == (rows, columns)
            if kind == "decoder":
                upper = ~np.tri(len(rows), dtype=bool)
                assert np.isnan(drawn.values_TS[upper]).all()
                right = np.where(upper, np.nan, right)
            np.testing.assert_allclose(drawn.values_TS, right, atol=1e-6)
        scores = trace.heat_map(Which(kind, 0, 0), measure="scores")
        assert scores.signed and scores.rows == rows
        np.testing.assert_allclose(scores.values_TS, trace.attention(kind).scores_LNTS[0, 0], atol=1e-4)
    by_words = trace.heat_map(Which("encoder", 0, 0))
    assert by_words.rows == by_words.columns == ("l'", "ami", "dort", "</s>")
    np.testing.assert_allclose(by_words.values_TS.sum(axis=1), 1, atol=2e-3)
    drawn = trace.heat_map(measure="erasure", by="pieces")
    np.testing.assert_allclose(drawn.values_TS, trace.effects.erasure, atol=1e-6)
    assert drawn.signed and drawn.columns == ("l'", "ami", "dort")
    merged = trace.heat_map(measure="erasure")
    assert merged.rows == ("a", "cat", "</s>")
    np.testing.assert_allclose(
        merged.values_TS[1], np.array(trace.effects.erasure)[2:6].sum(axis=0), atol=1e-4
    )


@pytest.mark.parametrize(
    ("name", "which", "told"),
    [
        (R, Which("encoder"), "no attention of kind 'encoder'"),
        (R, Which("cross", 1), "no layer 2"),
        (R, Which("cross", 0, 1), "head 2"),
        (N, Which("decoder", 2), "no layer 3"),
        (N, Which("cross", 0, 2), "head 3"),
        (N, Which("cross", -1), "no layer 0"),
        (N, Which("cross", 0, -1), "head 0"),
        ("cho2014", Which("cross"), "no attention"),
    ],
)
def test_an_attention_that_is_not_there_is_not_drawn(name, which, told):
    with pytest.raises(ConfigError, match=told):
        tracer_of(name).trace(TEXT, force=GIVEN).heat_map(which)


def test_effects_that_were_not_asked_for_cannot_be_drawn():
    with pytest.raises(ConfigError, match="no effects"):
        tracer_of(R).trace(TEXT, force=GIVEN).heat_map(measure="erasure")


def test_the_numbers_of_a_heat_map_are_those_of_its_csv():
    import csv

    trace = tracer_of(R).trace('l\'ami "a, b"', force=GIVEN)
    rows = list(csv.reader(trace.to_csv().splitlines()))
    drawn = trace.heat_map()
    assert tuple(rows[0][1:]) == drawn.columns and tuple(row[0] for row in rows[1:]) == drawn.rows
    np.testing.assert_allclose(np.array([row[1:] for row in rows[1:]], float), drawn.values_TS, atol=5e-5)


@EVERY
def test_every_step_has_its_formula_with_the_right_query(name):
    made = tracer_of(name).trace(TEXT, force="ab")
    shown = cards(made)
    korean = json.loads((resources.files("regard.viewer") / "static/i18n/ko.json").read_text("utf-8"))
    assert [card.number for card in shown if card.number] == list(
        range(1, 1 + max(card.number or 0 for card in shown))
    )
    assert all(f"card.{card.key}" in korean and "{s}" not in card.formula for card in shown)
    attention = made.model.options.get("attention", {"kind": "none"})
    if attention["kind"] != "none":
        query = "s_{t-1}" if attention["kind"] == "attend-then-step" else "s_t"
        assert shown[0].formula.count(query) == 1
        if attention["scorer"]["kind"] == "location":
            assert shown[0].formula == f"e_i = (W_a {query})_i, whatever stands at i"
            assert f"formula.{shown[0].formula.replace('1', '#')}" in korean


def test_every_warning_is_known_to_the_page():
    narrow = Tracer.of(replace(ending_of(R), split_above=4), "split")
    warned = [
        *narrow.trace("ж" * MAX_PIECES_WITH_STATES, force="жжжж").warnings,
        *cut_tracer_of(R).trace(TEXT, beam_size=1).warnings,
    ]
    kinds = {re.sub(r"\d+", "#", one) for one in warned}
    assert len(kinds) == 5
    for language in ("en", "ko"):
        texts = resources.files("regard.viewer") / f"static/i18n/{language}.json"
        assert not {f"warning.{kind}" for kind in kinds} - set(json.loads(texts.read_text("utf-8")))


def test_a_written_trace_shows_its_steps_whole(tmp_path):
    made = tracer_of("regard-small").trace(TEXT)
    made.save(tmp_path / "a.json")
    again = load_trace(tmp_path / "a.json")
    for layer in range(2):
        lines = step_lines(again, 0, 100, layer, 1)
        assert not any("not recorded" in line for line in lines) and lines == step_lines(
            made, 0, 100, layer, 1
        )


def test_gates_are_shown_where_they_are_kept():
    tracer = tracer_of("bahdanau2015")
    without, with_gates = (step_lines(tracer.trace(TEXT, gates=gates), 0, 100) for gates in (False, True))
    assert not any(line.startswith("   z =") for line in without)
    assert any(line.startswith("   z =") for line in with_gates)


LIES = {
    "no mask": (lambda t: kind_of(t, "decoder").update(causal=False), "masked as the request says"),
    "no sums": (lambda t: kind_of(t, "cross").update(normalised=False), "normalised as the design says"),
    "fewer heads": (lambda t: t["model"]["options"].update(num_heads=1), "layers of 1 heads"),
    "another kind": (lambda t: t["model"].update(kind="recurrent"), "another kind"),
    "a kind less": (lambda t: t["attentions"].pop(), "do not go together"),
    "spans": (lambda t: t["source"]["pieces"][1].update(start=0, end=0), "where the pieces are"),
    "a piece twice": (lambda t: t["source"]["words"][0].update(pieces=[0, 0]), "twice"),
    "perplexity": (lambda t: t["metrics"].update(perplexity=0.5), "perplexity"),
    "rank": (lambda t: t["target"]["pieces"][0].update(rank=-3), "rank"),
    "complete": (lambda t: t["target"].update(complete=not t["target"]["complete"]), "complete"),
    "id": (lambda t: t.update(id="0" * 64), "its id"),
    "coverage": (lambda t: t["metrics"]["coverage"].__setitem__(0, 9.0), "sum of the weights"),
    "rows": (
        lambda t: t["states"].update(readout=packed(np.zeros((len(t["target"]["pieces"]) + 1, 8)))),
        "no row",
    ),
}


@pytest.mark.parametrize(("lie", "told"), LIES.values(), ids=LIES)
def test_a_trace_that_lies_about_itself_is_refused(lie, told, write):
    trace = good("regard-small")
    lie(trace)
    with pytest.raises(TraceError, match=told):
        load_trace(write("lie.json", json.dumps(trace)))


def test_a_picture_says_whose_words_and_whose_looks_it_shows():
    tracer = Tracer.of(model_of("regard-small", reading=Reading(1, 0, True)), "m")
    given = tracer.trace(TEXT, force="ab", interventions=[HeadOff(layer=0, head=1)])
    note = given.heat_map().caption
    assert "layer 2, head 1" in note and "one after it was said" in note
    assert "the translation was given" in note and "cross, layer 1, head 2 is off" in note
    assert "it had to begin with 'a'" in tracer.trace(TEXT, prefix="a").heat_map().caption
    scores = given.heat_map(measure="scores")
    assert scores.kind == "scores" and "layer 2, head 1, scores" in scores.title
    assert "scores highest" in given.to_svg(measure="scores")


def test_printing_steers_no_terminal():
    made = tracer_of("regard-small").trace("a\x1b[31mb\u202e", force="ab")
    assert "\x1b" not in str(made) and "\u202e" not in str(made)
    assert all("\x1b" not in text for text in made._repr_mimebundle_().values())
