"""Traces as people look at them: words, heat maps, cards of a step, captions."""

import json
import re
from dataclasses import replace
from importlib import resources
from itertools import product

import numpy as np
import pytest
from traces import (
    AFTER,
    EVERY,
    GIVEN,
    LOOKING,
    SUBWORDS,
    TEXT,
    TRANSFORMERS,
    N,
    R,
    Short,
    cut_tracer_of,
    ending_of,
    model_of,
    tracer_of,
    translated,
)

from regard.alignment.reading import AFTERWARDS, Reading
from regard.draw.labels import spreadsheet_cell
from regard.errors import ConfigError, TraceError
from regard.options.text import SubwordOptions, WordOptions
from regard.text.tokenizer import TokenizerPair
from regard.trace.document import HeadOff
from regard.trace.make import MAX_PIECES_WITH_STATES
from regard.trace.mechanics import cards, step_lines
from regard.trace.views import Trace, Which, load_trace
from regard.vocabulary import BOS, RESERVED


def test_words_of_several_pieces_are_merged_as_by_hand():
    """Sum over the pieces of a source word, mean over those of a target word."""
    tracer = Short.of(model_of(N, SUBWORDS), "subwords")
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
    trace = Short.of(model_of(N, tokenizers), "m").trace(text, force="that he")
    assert trace.source.words[-2].pieces == trace.source.words[-1].pieces
    drawn = trace.heat_map()
    assert drawn.columns == (*wanted, "</s>")
    np.testing.assert_allclose(drawn.values_TS.sum(axis=1), 1, atol=2e-3)
    np.testing.assert_allclose(drawn.values_TS[:, -3], drawn.values_TS[:, -2], atol=1e-6)
    said = Short.of(model_of(N, tokenizers), "m").trace("a", force=text)
    assert said.heat_map().rows == (*wanted, "</s>")


def test_an_unknown_word_is_the_source_word_it_came_from():
    tokenizers = TokenizerPair.learn(
        ["le chat dort"], ["the cat sleeps"], WordOptions(vocab_size=300, joint=True, unknown="unk")
    )
    trace = Short.of(model_of(N, tokenizers), "m").trace("le zèbre dort", force="the zebra sleeps")
    assert "<unk>" in [piece.piece for piece in trace.target.pieces]
    assert "".join(piece.surface for piece in trace.target.pieces) == trace.target.text
    assert trace.target.text.split()[0] == "the" and "<unk>" not in trace.target.text


@LOOKING
@pytest.mark.parametrize("shifted", [False, True])
def test_the_alignment_is_that_of_translate_by_any_reading(name, shifted):
    reading = Reading(-1, 0, shifted)
    model = replace(ending_of(name), reading=reading)
    trace = Short.of(model, "m").trace(TEXT, beam_size=2)
    right = translated(model, TEXT, beam_size=2)
    np.testing.assert_allclose(trace.alignment_TS, right.attention_TS, atol=2e-4)
    cross = trace.attention("cross").weights_LNTS[-1, 0]
    np.testing.assert_allclose(trace.alignment_TS[:-1], cross[1:] if shifted else cross[:-1], atol=1e-6)
    assert trace.model.reading.layer == trace.attention("cross").log_weights.shape[0] - 1


@pytest.mark.parametrize("name", AFTER)
def test_the_posterior_attention_of_a_trace_is_that_of_translate(name):
    model = replace(ending_of(name), reading=AFTERWARDS)
    trace = Short.of(model, "m").trace(TEXT, beam_size=2)
    right = translated(model, TEXT, beam_size=2)
    np.testing.assert_allclose(trace.alignment_TS, right.attention_TS, atol=1e-3)
    before = translated(replace(model, reading=Reading(0, None, False)), TEXT, beam_size=2)
    assert before.text == right.text and np.abs(before.attention_TS - right.attention_TS).max() > 0.01
    assert "once the word is known" in trace.heat_map().caption
    assert (
        Trace.model_validate_json(trace.model_dump_json()).alignment_TS.tolist()
        == trace.alignment_TS.tolist()
    )
    broken = trace.model_copy(update={"states": {}})
    with pytest.raises(TraceError, match="which is missing"):
        broken.check()


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


def test_no_word_in_a_csv_is_a_formula_to_a_spreadsheet():
    import csv

    trace = tracer_of(R).trace("=ab @b -a -1", force="+c a")
    drawn = trace.heat_map()
    rows = list(csv.reader(trace.to_csv().splitlines()))
    for cell, name in zip(
        [*rows[0][1:], *(row[0] for row in rows[1:])], [*drawn.columns, *drawn.rows], strict=True
    ):
        assert cell.removeprefix("'") == name and not cell.startswith(("=", "+", "@"))
    assert any(cell.startswith("'") for cell in rows[0]) and any(row[0].startswith("'") for row in rows)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+x", "'+x"),
        ("-x", "'-x"),
        ("@x", "'@x"),
        ("-1.5", "-1.5"),
        ("+3", "+3"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_only_formulas_get_a_quote(text, cell):
    assert spreadsheet_cell(text) == cell


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
        symbols = {"attend-then-step": "s_{t-1}", "step-attend-step": "s'_t"}
        query, scored = (
            symbols.get(attention["kind"], "s_t"),
            next(one for one in shown if one.key == "score"),
        )
        assert scored.formula.count(query) == 1
        if attention["scorer"]["kind"] == "location":
            assert scored.formula == f"e_i = (W_a {query})_i, whatever stands at i"
            assert f"formula.{scored.formula.replace('1', '#')}" in korean


def test_every_warning_is_known_to_the_page():
    narrow = Short.of(replace(ending_of(R), split_above=4), "split")
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


def test_a_picture_says_whose_words_and_whose_looks_it_shows():
    tracer = Short.of(model_of("regard-small", reading=Reading(1, 0, True)), "m")
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
