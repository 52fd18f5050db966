"""Any text can be traced; blank, long and contradictory requests are refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traces import GIVEN, TEXT, N, R, Short, ending_of, ids_of, tracer_of, translated

from regard.errors import ConfigError, SourceError
from regard.trace.make import MAX_PIECES_WITH_STATES
from regard.trace.views import load_trace


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
    translation = translated(tracer.model, text, beam_size=1)
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
    tracer = Short.of(replace(ending_of(R), split_above=4), "split")
    assert any("`translate` would split" in one for one in tracer.trace(TEXT, beam_size=1).warnings)


def test_a_name_that_is_no_utf8_can_be_a_model():
    """As Linux allows it for files."""
    trace = Short.of(ending_of(R), "caf\udce9.regard").trace(TEXT, force=GIVEN)
    assert trace.model.label.startswith("caf") and json.loads(trace.to_json())
