"""What cannot be true in a trace is refused by its name."""

import copy
import json

import numpy as np
import pytest
from traces import N, R, good, good_json, kind_of, packed, unpacked

from regard.errors import TraceError
from regard.trace.views import load_trace


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
    "not a number": (R, with_weights("cross", _set((0, 0, 0, 0), np.nan)), "numbers that are not finite"),
    "sums not a number": (R, _at("attentions", 0, "log_sums", value=lambda one: _spoil(one, (0, 0, 0), np.inf)), "numbers that are not finite"),
    "negative": (N, with_weights("encoder", _set((0, 0, 0, slice(2)), [-0.5, 1.5])), "more than 1 or less than 0"),
    "row above 1": (N, with_weights("cross", _sum_and_more), "more than 1"),
    "row below 1": (N, with_weights("cross", _sum_and_less), "does not sum to 1"),
    "words to come": (N, with_weights("decoder", _ahead), "later words"),
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
    load_trace(write("good.json", good_json(name)))


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
