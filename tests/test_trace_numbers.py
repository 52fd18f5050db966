"""Every number of a trace is that of a separate forward pass."""

import math
from dataclasses import replace

import numpy as np
import pytest
from small import SIZES
from traces import (
    EACH_FAMILY,
    EVERY,
    GIVEN,
    LOOKING,
    TEXT,
    Short,
    assert_numbers_are_those_of,
    cut_tracer_of,
    ending_of,
    model_of,
    said_of,
    stepped_again,
    tracer_of,
)

from regard.vocabulary import EOS, NUM_RESERVED


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
    tracer = Short.of(model, "mute")
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


def test_the_states_of_a_model_with_large_numbers_are_kept_whole():
    model = ending_of("bahdanau2015")
    loud = replace(model, weights=model.weights | {"source.weight": 1e6 * model.weights["source.weight"]})
    tracer = Short.of(loud, "loud")
    trace = tracer.trace(TEXT, force=GIVEN)
    assert trace.states["source.embedded"].dtype == "f4"
    assert np.abs(trace.states["source.embedded"].unpack()).max() > 65504
    assert_numbers_are_those_of(trace, stepped_again(tracer, trace))


def test_a_translation_that_is_all_but_impossible_is_traced():
    model = ending_of("bahdanau2015")
    sure = replace(model, weights=model.weights | {"W_o": 1e6 * model.weights["W_o"]})
    trace = Short.of(sure, "sure").trace(TEXT, force=GIVEN)
    assert trace.target.log_prob < -1e4 and np.isfinite(trace.metrics.perplexity)


@EACH_FAMILY
def test_nearest_pieces_are_those_with_the_largest_cosine(name):
    tracer = tracer_of(name)
    trace = tracer.trace(TEXT)
    table = tracer.model.weights["source.weight"].astype(float)
    pieces = tracer.model.tokenizers.source.pieces
    assert len(trace.source.nearest) == len(trace.source.pieces)
    for piece, near in zip(trace.source.pieces, trace.source.nearest, strict=True):
        own = table[piece.id]

        def cosine(id, own=own):
            return own @ table[id] / np.linalg.norm(own) / np.linalg.norm(table[id])

        others = [id for id in range(NUM_RESERVED, len(pieces)) if id != piece.id]
        assert near == [pieces[id] for id in sorted(others, key=cosine, reverse=True)[:8]]
