"""Which pairs a model was trained on: kept in little room, found in a test set, and told."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors

import regard
import regard.corpus.seen
from regard.corpus.seen import Overlap, SeenPairs
from regard.errors import ModelFileError
from regard.modelfile import load_model, save_model

GOLDEN = Path(__file__).parent / "golden" / "model-1.regard"
PAIRS = [("Le chat dort.", "The cat sleeps."), ("Il pleut.", "It rains."), ("3", "3")]


def numbered(first, last):
    return [
        (f"source {number:b}".replace("0", "a").replace("1", "b"), "target") for number in range(first, last)
    ]


def test_pairs_are_found_whatever_their_signs_and_case():
    seen = SeenPairs.of(PAIRS)
    assert seen.overlap([("le chat dort", "THE CAT SLEEPS!"), ("3", "3")]) == Overlap(2, 2)
    assert seen.overlap([("Le chat dort.", "It rains."), ("4", "4")]) == Overlap(0, 2)
    assert SeenPairs.of([]).overlap(PAIRS) == Overlap(0, 3)


def test_of_many_pairs_a_part_is_kept_and_a_part_is_checked(monkeypatch):
    monkeypatch.setattr(regard.corpus.seen, "MAX_HASHES", 200)
    monkeypatch.setattr(regard.corpus.seen, "_CHUNK", 64)
    seen = SeenPairs.of(numbered(0, 2000))
    (inside, checked), (outside, others) = (
        (found.num_seen, found.num_checked)
        for found in (seen.overlap(numbered(0, 1000)), seen.overlap(numbered(2000, 3000)))
    )
    assert inside == checked and 60 < checked < 140
    assert outside == 0 and 60 < others < 140
    both = SeenPairs.of(numbered(0, 1500)) | SeenPairs.of(numbered(1400, 2000))
    assert np.array_equal(both.hashes_M, seen.hashes_M)


def test_an_evaluation_warns_of_pairs_that_a_model_was_trained_on(tmp_path):
    model, test = tmp_path / "m.regard", tmp_path / "test.tsv"
    save_model(model, replace(load_model(GOLDEN), seen_pairs=SeenPairs.of(PAIRS[:2])))
    with safetensors.safe_open(model, framework="numpy") as file:  # the page reads bytes, not such integers
        assert file.get_tensor("seen.pairs").dtype == np.uint8
    test.write_text("Il pleut\tit rains\nIl neige\tit snows\n", "utf-8")
    found = regard.evaluate({"old": GOLDEN, "new": model}, test)
    (warning,) = found.warnings
    assert "new was trained on 1 of 2 test pairs" in warning
    assert warning in " ".join(str(found).split()) and found.to_json()["warnings"] == [warning]
    assert "warnings" not in regard.evaluate(GOLDEN, test).to_json()


@pytest.mark.parametrize("hashes", [np.array([2, 1], np.uint32), np.array([], np.uint32).reshape(0, 4)])
def test_what_are_no_hashes_is_a_damaged_file(tmp_path, hashes):
    model, damaged = load_model(GOLDEN), SeenPairs.of(PAIRS)
    object.__setattr__(damaged, "hashes_M", hashes)
    save_model(tmp_path / "m.regard", replace(model, seen_pairs=damaged))
    with pytest.raises(ModelFileError, match="not a complete model"):
        load_model(tmp_path / "m.regard")
