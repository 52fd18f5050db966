"""The effect of each source word is what separate passes without it, or looking only there, say."""

from itertools import product

import numpy as np
import pytest
from traces import (
    DESIGNS,
    EACH_FAMILY,
    EVERY,
    GIVEN,
    LETTERS,
    TEXT,
    TRANSFORMERS,
    Stepped,
    cut_tracer_of,
    engine_of,
    erasures,
    ids_of,
    looking,
    said_of,
    stepped_again,
    tracer_of,
)

from regard.probes import Recorder
from regard.vocabulary import EOS


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
