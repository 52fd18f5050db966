"""The document: its schema, packed numbers, and back from a file."""

import functools
import json
from importlib import resources
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from traces import EVERY, FAMILIES, GIVEN, NUM, TEXT, row_of, tracer_of

from regard.trace.arrays import Array
from regard.trace.document import HeadOff, LookSo, MaskOff, PositionsOff, schema
from regard.trace.make import Tracer
from regard.trace.views import load_trace

GOLDEN = Path(__file__).parent / "golden"


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


def test_a_trace_of_an_earlier_version_is_read_and_is_what_the_model_does_now():
    """Written before traces had parts; the model beside it computes the same numbers."""
    kept = load_trace(GOLDEN / "trace-1.json")
    assert kept.whole is None and kept.request.part is None
    tracer = Tracer.open(GOLDEN / "model-1.regard")
    now = tracer.trace(
        kept.source.text, force=kept.target.text, effects=True, interventions=kept.request.interventions
    )
    assert now.id == kept.id
    for name, state in kept.states.items():  # traces of today keep more
        np.testing.assert_allclose(now.states[name].unpack(), state.unpack(), atol=2e-3)
    assert now.target.log_prob == pytest.approx(kept.target.log_prob, abs=1e-3)
    for one, other in zip(now.attentions, kept.attentions, strict=True):
        np.testing.assert_allclose(one.weights_LNTS, other.weights_LNTS, atol=1e-3)
    np.testing.assert_allclose(now.effects.erasure, kept.effects.erasure, atol=1e-3)
    assert kept.to_html() and kept.to_svg()
