"""Interventions change what they say and nothing before it; those that do not fit are refused."""

import numpy as np
import pytest
from traces import (
    DESIGNS,
    GIVEN,
    LOOKING,
    NUM,
    TEXT,
    TRANSFORMERS,
    assert_numbers_are_those_of,
    assert_the_tree_is_that_of_an_obvious_search,
    cut_tracer_of,
    engine_of,
    erasures,
    ids_of,
    limit_of,
    looking,
    row_of,
    said_of,
    stepped_again,
    tracer_of,
)

from regard.contract import Ragged, make_batch
from regard.errors import ConfigError
from regard.probes import Recorder
from regard.trace.document import HeadOff, LookSo, MaskOff, PositionsOff
from regard.trace.views import Which
from regard.vocabulary import BOS, EOS


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
