"""A model file that was written once and is kept: every later version reads it and translates as it did.

What `model-1.json` holds was printed by our own code, on purpose: see `golden/make.py`.
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from regard.alignment.reading import Reading
from regard.cli import run
from regard.errors import ModelFileError
from regard.modelfile import load_model, save_model
from regard.translate.translator import Translator

FOLDER = Path(__file__).parent / "golden"
MODEL = FOLDER / "model-1.regard"
RECORDED = json.loads((FOLDER / "model-1.json").read_text("utf-8"))


def test_it_is_small_and_loads_with_all_that_was_saved():
    assert MODEL.stat().st_size < 60_000
    model = load_model(MODEL)
    assert (model.source_language, model.target_language) == ("fr", "en")
    assert model.options.kind == "transformer" and model.options.hidden_size == 8
    assert model.reading == Reading(1, 0, True) and model.split_above == 40
    assert model.config["seed"] == 37 and model.card["data"] == {"num_pairs": 6, "num_read": 7}
    assert (
        model.tokenizers.source.decode(model.tokenizers.source.encode("où êtes-vous ?").ids)
        == "où êtes-vous ?"
    )


@pytest.mark.parametrize("number", range(len(RECORDED["translations"])))
def test_it_translates_as_it_did(number):
    wanted = RECORDED["translations"][number]
    (one,) = Translator.open(MODEL).translate([wanted["source"]], guard=False, **RECORDED["search"])
    assert one.text == wanted["text"]
    assert one.log_prob == pytest.approx(wanted["log_prob"], abs=0.01)
    assert [list(link) for link in one.links] == wanted["links"]


def test_what_is_recorded_is_worth_comparing():
    texts = [one["text"] for one in RECORDED["translations"]]
    assert len(set(texts)) == len(texts) == 3 and all(map(str.strip, texts))


def test_saved_again_it_is_the_same_file(tmp_path):
    save_model(tmp_path / "again.regard", load_model(MODEL))
    assert (tmp_path / "again.regard").read_bytes() == MODEL.read_bytes()


def test_info_shows_it(capsys):
    assert run(["info", str(MODEL)]) == 0
    shown = capsys.readouterr().out
    for words in (
        "fr to en",
        "every part verified",
        "regard-small",
        "width 8",
        "6 pairs of 7 read",
        "head 1",
    ):
        assert words in shown


def test_it_is_never_made_again():
    before = hashlib.sha256(MODEL.read_bytes()).hexdigest()
    done = subprocess.run([sys.executable, FOLDER / "make.py"], capture_output=True, text=True)
    assert done.returncode != 0 and "must stay as it is" in done.stderr
    assert hashlib.sha256(MODEL.read_bytes()).hexdigest() == before


def test_a_later_format_is_refused_by_its_name(tmp_path, capsys):
    """Whatever else a later version changes, its file says first which format it has."""
    data = MODEL.read_bytes()
    assert data.count(b"regard-model/1") == 1
    later = tmp_path / "later.regard"
    later.write_bytes(data.replace(b"regard-model/1", b"regard-model/7"))
    with pytest.raises(ModelFileError, match=r"later\.regard.*'regard-model/7'.*reads 'regard-model/1'"):
        load_model(later)
    assert run(["translate", str(later), "il pleut."]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1 and "regard-model/7" in told.err


def test_any_flipped_byte_is_found(tmp_path):
    data, path = MODEL.read_bytes(), tmp_path / "model.regard"
    rng = np.random.default_rng(5)
    places = {*range(12), len(data) - 1, *rng.integers(0, len(data), 300).tolist()}
    for place in places:
        changed = bytearray(data)
        changed[place] ^= int(rng.integers(1, 256))
        path.write_bytes(changed)
        with pytest.raises(ModelFileError):
            load_model(path)


def test_any_missing_end_is_found(tmp_path):
    data, path = MODEL.read_bytes(), tmp_path / "model.regard"
    for size in {*range(20), *np.random.default_rng(6).integers(0, len(data), 100).tolist(), len(data) - 1}:
        path.write_bytes(data[:size])
        with pytest.raises(ModelFileError):
            load_model(path)
