"""A trace shows what the search found: translations, prefixes, and the tree of a beam."""

import numpy as np
import pytest
from searches import forced
from traces import (
    EACH_FAMILY,
    GIVEN,
    LETTERS,
    SEARCHES,
    TEXT,
    Short,
    assert_numbers_are_those_of,
    assert_the_tree_is_that_of_an_obvious_search,
    cut_tracer_of,
    engine_of,
    ids_of,
    limit_of,
    model_of,
    path_of,
    said_of,
    stepped_again,
    tracer_of,
    translated,
)

from regard.translate.translator import Translator
from regard.vocabulary import EOS


@EACH_FAMILY
@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_what_is_traced_is_what_translate_says(name, search):
    tracer = tracer_of(name)
    trace = tracer.trace(TEXT, **search)
    right = translated(tracer.model, TEXT, **search)
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
    right = translated(tracer.model, TEXT, prefixes=["the c"], beam_size=beam_size)
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
        Short.of(model_of("bahdanau2015", seed=77), "bahdanau2015.regard").trace(
            TEXT, beam_size=2, effects=True
        ),
    ]
    assert len({first.id, *(one.id for one in others)}) == 5


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
