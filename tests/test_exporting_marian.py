"""A model exported to Marian's format is imported again bit for bit; what Marian cannot express is refused.

`benchmarks/export_marian.py` compares with Marian itself, which is too large for a test.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_importing_marian import GOLDEN, change, word_scores

from regard import cli
from regard.errors import ConfigError
from regard.importing.export_marian import _quoted, export_marian
from regard.importing.folder import Folder
from regard.importing.marian import _listed
from regard.importing.run import import_model, read_model
from regard.importing.weights import halves_to_turns
from regard.modelfile import load_model
from regard.options.model import RecurrentOptions
from regard.runtime.equations import sinusoids
from regard.starter import bundled
from regard.vocabulary import BOS, FIRST_BYTE, NUM_RESERVED, RESERVED

OPUS = Path(__file__).parent / "golden" / "marian"


def as_it_is(folder):
    pass


def untied(folder):
    """An output matrix of its own, of a Transformer or of an RNN."""
    with np.load(folder / "model.npz") as file:
        output = next(name for name in file if name.endswith(("logit_out_b", "logit_l2_b")))
        change(folder, {f"{output[:-2]}_W": np.asfortranarray(file["decoder_Wemb"].T * 2)})


def with_bytes(folder):
    """A piece for each byte on the target side."""
    with np.load(folder / "model.npz") as file:
        own = {name: file[name] for name in ("decoder_Wemb", "decoder_ff_logit_out_b")}
    size, more = len(own["decoder_Wemb"]), np.random.default_rng(1).normal(size=(256, 9)).astype(np.float32)
    own["decoder_Wemb"] = np.concatenate([own["decoder_Wemb"], more[:, 1:]])
    own["decoder_ff_logit_out_b"] = np.append(own["decoder_ff_logit_out_b"], more[:, 0])[None]
    lines = [f"\n{RESERVED[FIRST_BYTE + n]}: {size + n}" for n in range(256)]
    (folder / "target.yml").write_text((folder / "target.yml").read_text() + "".join(lines))
    change(folder, own, dim_vocabs=f"[18, {size + 256}]")


KINDS = [(name, as_it_is) for name in ("post", "pre", "ssru", "amun", "s2s")]
KINDS += [("post", untied), ("s2s", untied), ("post", with_bytes)]


@pytest.mark.parametrize(("name", "changed"), KINDS, ids=[f"{name}-{one.__name__}" for name, one in KINDS])
def test_what_is_exported_is_imported_again_bit_for_bit(tmp_path, name, changed):
    folder, out = tmp_path / "opus-mt-fr-en", tmp_path / "back" / "opus-mt-fr-en"
    shutil.copytree(GOLDEN / name, folder)
    (folder / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n")
    changed(folder)
    import_model(folder, tmp_path / "a.regard")
    model = load_model(tmp_path / "a.regard")
    export_marian(model, out, [])
    again = read_model(out)
    assert model.options == again.options and model.weights.keys() == again.weights.keys()
    assert (model.options.tie == "none") == (changed is untied or name == "amun")
    assert model.weights["b_o"][FIRST_BYTE:NUM_RESERVED].max() > -50 or changed is not with_bytes
    for key, weight in model.weights.items():
        assert np.array_equal(weight, again.weights[key]), key
    for one, other in (
        (model.tokenizers.source, again.tokenizers.source),
        (model.tokenizers.target, again.tokenizers.target),
    ):
        assert list(one.pieces) == list(other.pieces) and one.model == other.model
    assert again.card["imported"]["licence"] == "cc-by-4.0"
    assert (again.source_language, again.target_language) == ("fr", "en")


def test_a_model_of_transformers_goes_to_marian_but_for_its_positions(tmp_path, capsys):
    assert cli.run(["import", str(OPUS), "--languages", "fr", "en", "--out", str(tmp_path / "a.regard")]) == 0
    words = ["export", str(tmp_path / "a.regard"), "--to", "marian", "--out", str(tmp_path / "marian")]
    assert cli.run(words) == 0
    assert "positions: by Marian's formula, which is not quite that of the paper" in capsys.readouterr().out
    assert {one.name for one in (tmp_path / "marian").iterdir()} == {
        "model.npz", "decoder.yml", "source.yml", "target.yml", "source.spm", "target.spm", "README.md",
        "use.py", "regard.json",
    }  # fmt: skip
    model, again = load_model(tmp_path / "a.regard"), read_model(tmp_path / "marian")
    table = again.weights["source_positions"]
    theirs = sinusoids(0, *table.shape)[:, np.argsort(halves_to_turns(table.shape[1]))]
    again.weights["source_positions"] = again.weights["target_positions"] = theirs.astype(np.float32)
    for one in json.loads((OPUS / "expected.json").read_text()):
        np.testing.assert_allclose(word_scores(model, one), word_scores(again, one), atol=1e-5)


def test_what_marian_cannot_express_is_refused_in_one_line(tmp_path, capsys):
    post, rnn = read_model(GOLDEN / "post"), read_model(GOLDEN / "amun")
    own_start = post.weights["target.weight"].copy()
    own_start[BOS] = 1
    cases = (
        (post, RecurrentOptions(), {}, "Marian cannot express cell = 'gru'"),
        (post, {"activation": "gelu"}, {}, "Marian cannot express activation = 'gelu'"),
        (post, {"source_end": False}, {}, "Marian cannot express source_end = False"),
        (post, {}, {"target.weight": own_start}, "starts from zeros, and that of this model from a vector"),
        (post, {}, {"source_positions": post.weights["source_positions"] + 0.1}, "this model are learnt"),
        (rnn, {}, {"decoder.cells.0.b_U": np.ones(12, np.float32)}, "one bias in its candidate"),
    )
    for model, options, weights, why in cases:
        changed = (
            options if isinstance(options, RecurrentOptions) else model.options.model_copy(update=options)
        )
        with pytest.raises(ConfigError, match=why) as caught:
            export_marian(
                replace(model, options=changed, weights=model.weights | weights), tmp_path / "x", []
            )
        assert not (tmp_path / "x").exists() and "\n" not in str(caught.value)
    for name in {"fr-en", "fr-en-rnn"} & bundled().keys():
        assert cli.run(["export", name, "--to", "marian", "--out", str(tmp_path / "x")]) == 2
        assert capsys.readouterr().err.count("\n") == 1 and not (tmp_path / "x").exists()


def test_pieces_of_any_characters_come_back(tmp_path):
    pieces = ["</s>", 'a"b', "\\", "é—", "\x85", "\u2028", "it's", "# : -", "\U0001f600", "a\u0301", "\ufeff"]
    lines = "".join(f"{_quoted(one)}: {id}\n" for id, one in enumerate(pieces))
    (tmp_path / "a.yml").write_text(lines, "utf-8", newline="")
    assert lines.isprintable() or all(line.isprintable() for line in lines.splitlines())
    assert _listed(Folder(tmp_path), "a.yml") == pieces


@pytest.mark.parametrize("origin", [GOLDEN / "pre", OPUS], ids=["Marian", "Hugging Face"])
def test_the_zeros_a_decoder_starts_from_stay_when_a_model_is_trained_on(tmp_path, origin):
    pytest.importorskip("torch", reason="the extra [train] is not installed")
    import_model(origin, tmp_path / "a.regard", languages=["fr", "en"])
    texts = {"text.fr": "le chat dort", "text.en": "the cat sleeps", "dev.fr": "un chien", "dev.en": "a dog"}
    for name, text in texts.items():
        (tmp_path / name).write_text(f"{text}\n" * 60)
    text_fr, text_en, *valid = (str(tmp_path / name) for name in texts)
    out = tmp_path / "b.regard"
    words = ["train", text_fr, text_en, "--valid", *valid, "--from", str(tmp_path / "a.regard")]
    fast = ["--set", "train.schedule.warmup_steps=1", "--set", "train.optimiser.rate=0.1"]
    words += ["--keep", "duplicate", *fast]
    assert cli.run([*words, "--out", str(out), "--steps", "3"]) == 0
    before, after = load_model(tmp_path / "a.regard"), load_model(out)
    assert not after.weights["source.weight"][BOS].any()
    assert not np.array_equal(before.weights["source.weight"], after.weights["source.weight"])
    if origin == OPUS:
        export_marian(after, tmp_path / "marian", [])
    else:
        with pytest.raises(ConfigError, match="those of this model are learnt"):
            export_marian(after, tmp_path / "marian", [])
