"""`regard verify` passes what keeps the promises, and finds each promise that is broken."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from small import random_weights, shrink

from regard import cli
from regard.fast import choice
from regard.importing.run import import_model
from regard.modelfile import load_model, save_model
from regard.options.model import FeatureSource, TransformerOptions
from regard.search.searcher import StepSearcher
from regard.text.tokenizer import Tokenizer
from regard.translate.translator import Translator
from regard.verification import sentences
from regard.verification.run import verify
from regard.verification.sentences import sentences_for
from regard.vocabulary import EOS

GOLDEN = Path(__file__).parent / "golden"
MODEL = GOLDEN / "model-1.regard"
NAMES = ["file", "tokenizer", "batches", "engines", "steps", "alignment"]


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(sentences, "_NUM_SENTENCES", 6)


def statuses(certificate):
    return {one.name: one.status for one in certificate.promises}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """An imported model whose translations come to an end; of its language nothing is known."""
    folder = tmp_path_factory.mktemp("verify")
    shutil.copytree(GOLDEN / "marian", folder / "opus-mt-fr-en")
    one = import_model(folder / "opus-mt-fr-en", folder / "a.regard").model
    one.weights["b_o"][EOS] += 3
    save_model(folder / "a.regard", dataclasses.replace(one, source_language=None))
    return folder / "a.regard"


def test_a_sound_model_passes_and_gets_a_certificate(tmp_path, capsys, model):
    out = tmp_path / "certificate"
    assert cli.run(["verify", str(model), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert out.read_text("utf-8") == said and "0 fail" in said and "sentences/s" in said
    assert cli.run(["verify", str(model), "--json", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    found = json.loads(said)
    assert json.loads(out.read_text("utf-8")) == found and found["holds"]
    assert [one["name"] for one in found["promises"]] == NAMES
    assert all(one["status"] in ("pass", "not tried") for one in found["promises"])
    assert found["figures"]["sentences_per_second"] > 0 and found["subject"]["languages"] == "? to en"
    assert cli.run(["verify", str(model), "--out", str(model)]) == 2  # it would replace the model
    assert cli.run(["verify", str(tmp_path / "nothing.regard")]) == 2


def test_a_damaged_file_fails_and_nothing_more_is_tried(tmp_path, capsys):
    data = bytearray(MODEL.read_bytes())
    data[-10] ^= 1
    (tmp_path / "a.regard").write_bytes(data)
    assert cli.run(["verify", str(tmp_path / "a.regard")]) == 1
    said = capsys.readouterr().out
    assert "fail      file" in said and "1 fail, 5 not tried" in said


def text_of_batch(translate):
    def changed(self, texts, **how):
        found = translate(self, texts, **how)
        return [dataclasses.replace(one, text=f"{one.text} {len(texts)}") for one in found]

    return changed


def looks_twice(translate):
    def changed(self, texts, **how):
        found = translate(self, texts, **how)
        for one in found:
            for part in one.parts:
                part.attention_TS[:] *= 2
        return found

    return changed


def shifted(force):
    def changed(self, sources, targets):
        return [
            dataclasses.replace(one, log_probs=tuple(prob - 0.01 for prob in one.log_probs))
            for one in force(self, sources, targets)
        ]

    return changed


@pytest.mark.parametrize(
    ("broken", "owner", "name", "fault"),
    [
        ("tokenizer", Tokenizer, "decode", lambda decode: lambda self, ids: decode(self, ids)[1:]),
        ("batches", Translator, "translate", text_of_batch),
        ("steps", StepSearcher, "force", shifted),
        ("alignment", Translator, "translate", looks_twice),
    ],
)
def test_a_broken_promise_is_found(model, monkeypatch, broken, owner, name, fault):
    monkeypatch.setattr(owner, name, fault(getattr(owner, name)))
    found = verify(model)
    failed = {name for name, status in statuses(found).items() if status == "fail"}
    assert failed - {"engines"} == {broken} and not found.holds


def test_an_engine_that_finds_something_else_is_found(model, monkeypatch):
    pytest.importorskip("ctranslate2", reason="the extra [fast] is not installed")
    assert statuses(verify(model))["engines"] == "pass"
    convert = choice.convert

    def other(options, weights, reading):
        return convert(options, weights | {"b_o": weights["b_o"][::-1].copy()}, reading)

    monkeypatch.setattr(choice, "convert", other)
    assert statuses(verify(model))["engines"] == "fail"


def test_an_exported_folder_is_compared(model, tmp_path, capsys):
    pytest.importorskip("ctranslate2", reason="the extra [fast] is not installed")
    folder = tmp_path / "ct2"
    assert cli.run(["export", str(model), "--to", "ctranslate2", "--out", str(folder)]) == 0
    capsys.readouterr()
    assert cli.run(["verify", str(model), "--against", str(folder)]) == 0
    assert f"6 of 6 translations of {folder} identical" in capsys.readouterr().out
    other = load_model(model)
    other.weights["b_o"][260:] = other.weights["b_o"][260:][::-1].copy()
    save_model(tmp_path / "other.regard", other)
    assert cli.run(["verify", str(tmp_path / "other.regard"), "--against", str(folder)]) == 1
    (folder / "model.bin").write_bytes(b"x" * 100)
    assert cli.run(["verify", str(model), "--against", str(folder)]) == 1
    assert "CTranslate2 cannot use it" in capsys.readouterr().out
    assert cli.run(["verify", str(model), "--against", str(tmp_path)]) == 2
    assert cli.run(["verify", str(MODEL), "--against", str(folder)]) == 2
    err = capsys.readouterr().err
    assert "has no model.bin" in err and "only imported models can be compared" in err


def test_sentences_are_in_the_language_of_the_model_or_made_of_its_words():
    model = load_model(MODEL)
    french, english = (
        sentences_for(dataclasses.replace(model, source_language=one)).texts for one in ("fr-CA", "en")
    )
    assert len(french) == len(english) == 6 and french[0] != english[0]
    made = sentences_for(dataclasses.replace(model, source_language="ko"))
    source = model.tokenizers.source
    assert made.origin == "made of words of the vocabulary" and len(made.texts) == 6
    for text in made.texts:
        assert text.strip() and all(id >= 260 for id in source.encode(text).ids)
    assert made == sentences_for(dataclasses.replace(model, source_language=None))


def test_a_model_of_feature_vectors_is_verified(tmp_path):
    golden = load_model(MODEL)
    options = shrink(TransformerOptions(source=FeatureSource()))
    size = golden.tokenizers.target.vocab_size
    weights = {
        name: one / np.float32(2) for name, one in random_weights(options, size, size).items()
    }  # that attention is not all on one vector
    save_model(
        tmp_path / "a.regard",
        dataclasses.replace(golden, options=options, weights=weights, reading=None, frozen={}),
    )
    found = verify(tmp_path / "a.regard")
    assert found.holds and "random feature vectors" in found.sentences
    assert statuses(found)["engines"] == "not tried"
