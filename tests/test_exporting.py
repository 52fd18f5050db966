"""A model exported to Hugging Face's format is imported again bit for bit, and transformers computes the same."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from regard import cli
from regard.errors import ConfigError
from regard.importing.export_huggingface import export_huggingface
from regard.importing.run import import_model, read_model
from regard.modelfile import load_model, save_model
from regard.options.model import FeatureSource, RecurrentOptions
from regard.starter import bundled
from regard.vocabulary import BOS

MARIAN = Path(__file__).parent / "golden" / "marian"
EXPECTED = json.loads((MARIAN / "expected.json").read_text())
SHARED = "model.shared.weight"


def separate(folder, tensors, table):
    """Two vocabularies, the second without its last piece but one, each with its own vectors."""
    vocab = json.loads((folder / "vocab.json").read_text())
    dropped = sorted(vocab.values())[-2]
    kept = [id for id in vocab.values() if id != dropped]
    target = {piece: id - (id > dropped) for piece, id in vocab.items() if id != dropped}
    (folder / "target_vocab.json").write_text(json.dumps(target))
    start = {"decoder_start_token_id": target["<pad>"], "share_encoder_decoder_embeddings": False}
    own = {
        "model.encoder.embed_tokens.weight": table,
        "model.decoder.embed_tokens.weight": table[sorted(kept)] + 1,
        "final_logits_bias": tensors["final_logits_bias"][:, sorted(kept)],
    }
    return start, own


def untied(folder, tensors, table):
    return {"tie_word_embeddings": False}, {SHARED: table, "lm_head.weight": table * 2}


def unscaled(folder, tensors, table):
    return {"scale_embedding": False}, {SHARED: table}


def with_positions(folder, tensors, table):
    random = np.random.default_rng(1).normal(size=(2, 200, table.shape[1])).astype(np.float32)
    sides = dict(zip(("encoder", "decoder"), random, strict=True))
    positions = {f"model.{side}.embed_positions.weight": one for side, one in sides.items()}
    return {"max_position_embeddings": 200}, {SHARED: table, **positions}


def as_it_is(folder, tensors, table):
    return {}, {SHARED: table}


KINDS = [as_it_is, separate, untied, unscaled, with_positions]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def imported(request, tmp_path):
    """A model file from a folder of each kind."""
    folder = tmp_path / "opus-mt-fr-en"
    shutil.copytree(MARIAN, folder)
    (folder / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n")
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    config, changed = request.param(folder, tensors, tensors.pop(SHARED))
    safetensors.numpy.save_file(tensors | changed, folder / "model.safetensors")
    given = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(given | config))
    import_model(folder, tmp_path / "a.regard")
    return tmp_path / "a.regard"


def test_what_is_exported_is_imported_again_bit_for_bit(imported, tmp_path):
    export_huggingface(load_model(imported), tmp_path / "hf", [])
    model, again = load_model(imported), read_model(tmp_path / "hf")
    assert model.weights.keys() == again.weights.keys() and model.options == again.options
    for name, weight in model.weights.items():
        assert np.array_equal(weight, again.weights[name]), name
    for one, other in zip(
        (model.tokenizers.source, model.tokenizers.target),
        (again.tokenizers.source, again.tokenizers.target),
        strict=True,
    ):
        assert list(one.pieces) == list(other.pieces) and one.model == other.model
    assert (again.source_language, again.target_language) == ("fr", "en")
    assert again.card["imported"]["licence"] == "cc-by-4.0"
    assert again.card["imported"]["name"] == "opus-mt-fr-en"


def test_transformers_translates_what_is_exported_alike(imported, tmp_path, capsys):
    for name in ("torch", "transformers"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    probes = tmp_path / "probes.fr"
    probes.write_text("".join(f"{one['source']}\n" for one in EXPECTED), "utf-8")
    words = ["export", str(imported), "--to", "huggingface", "--out", str(tmp_path / "hf")]
    assert cli.run([*words, "--probes", str(probes)]) == 0
    assert "3 of 3 translations by greedy search identical" in capsys.readouterr().out
    assert json.loads((tmp_path / "hf" / "regard.json").read_text())["parity"]["largest_difference"] < 1e-3


def test_what_a_marian_model_cannot_express_is_refused_in_one_line(tmp_path, capsys):
    import_model(MARIAN, tmp_path / "a.regard", languages=["fr", "en"])
    model, out = load_model(tmp_path / "a.regard"), tmp_path / "hf"
    for options, why in (
        (RecurrentOptions(), "cannot express kind = 'recurrent'"),
        (model.options.model_copy(update={"norm": "pre"}), "cannot express norm = 'pre'"),
        (model.options.model_copy(update={"source": FeatureSource()}), "cannot express source = "),
    ):
        with pytest.raises(ConfigError, match=why):
            export_huggingface(replace(model, options=options), out, [])
        assert not out.exists()
    for name in {"fr-en", "fr-en-rnn"} & bundled().keys():
        assert cli.run(["export", name, "--to", "huggingface", "--out", str(tmp_path / "x")]) == 2
        assert capsys.readouterr().err.count("\n") == 1 and not (tmp_path / "x").exists()


def test_a_fine_tuned_start_is_exported_too(tmp_path):
    """Training may move the bias of an id that is never said; it is still never said."""
    model = import_model(MARIAN, tmp_path / "a.regard").model
    model.weights["b_o"][BOS] += 0.25
    save_model(tmp_path / "a.regard", model)
    export_huggingface(load_model(tmp_path / "a.regard"), tmp_path / "hf", [])
    again = read_model(tmp_path / "hf").weights["b_o"]
    assert np.array_equal(again[260:], model.weights["b_o"][260:]) and again[BOS] < again[260:].min() - 50
