"""Models of Marian itself give the scores that Marian gives, and damaged ones are refused."""

import io
import json
import random
import re
import shutil
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from regard import cli
from regard.contract import Ragged, make_batch
from regard.engines import NUMPY, Compute
from regard.errors import ForeignModelError, RegardError
from regard.fast.convert import unfit
from regard.importing.folder import Folder
from regard.importing.marian import _listed
from regard.importing.run import import_model, read_model
from regard.loaded import Loaded
from regard.modelfile import load_model
from regard.options.search import BeamOptions
from regard.runtime.build import build_engine
from regard.search.searcher import Query
from regard.vocabulary import BOS, EOS

GOLDEN = Path(__file__).parent / "golden" / "marian-npz"  # made by Marian, see make_marian_npz.py
SETTINGS = "special:model.yml"


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(GOLDEN / "post", tmp_path / "opus-mt-fr-en")
    return tmp_path / "opus-mt-fr-en"


def change(folder, arrays=None, **settings):
    """Write other arrays or settings into a model."""
    path = folder / "model.npz"
    with np.load(path) as file:
        whole = dict(file) | (arrays or {})
    lines = whole[SETTINGS].tobytes().decode().rstrip("\0").splitlines()
    given = {key.replace("_", "-"): value for key, value in settings.items()}
    lines = [line for line in lines if line.partition(":")[0] not in given]
    lines += [f"{key}: {value}" for key, value in given.items()]
    whole[SETTINGS] = np.frombuffer("\n".join(lines).encode() + b"\0", np.int8)
    np.savez(path, **{name: one for name, one in whole.items() if one is not None})


@pytest.mark.parametrize("name", ["post", "pre", "ssru"])
def test_an_imported_model_gives_the_scores_of_marian(name):
    model = read_model(GOLDEN / name)
    assert (model.options.norm, model.options.tie) == (
        ("pre", "all") if name == "pre" else ("post", "target")
    )
    assert (unfit(model.options) is not None) == (name == "ssru")
    assert model.options.decoder_self == ("ssru" if name == "ssru" else "attention")
    assert not model.weights.get("target.weight", model.weights["source.weight"])[BOS].any()
    for one in json.loads((GOLDEN / name / "expected.json").read_text()):
        # Marian prints five decimals, and 1e-9 stands in its layer norm where ours has 1e-5.
        np.testing.assert_allclose(word_scores(model, one), one["scores"], atol=1e-4)


def word_scores(model, one):
    """The log-probabilities of the words of a pair of texts."""
    (read,), (said,) = (
        tokenizer.encode_batch([one[side]])
        for side, tokenizer in (("source", model.tokenizers.source), ("target", model.tokenizers.target))
    )
    engine = build_engine(model.options, model.weights)
    forced = engine.force(make_batch(Ragged.of([read]), Ragged.of([said]), np.arange(1)))
    logits_TV = forced.logits_BTV[0].astype(float)
    log_probs = logits_TV - np.log(np.exp(logits_TV).sum(axis=1, keepdims=True))
    return [log_probs[step, id] for step, id in enumerate([*said.tolist(), EOS])]


@pytest.mark.parametrize(("name", "tie"), [("amun", "none"), ("s2s", "target")])
def test_a_recurrent_model_gives_the_scores_of_marian(name, tie):
    model = read_model(GOLDEN / name)
    options = model.options
    assert (options.tie, options.layer_norm, options.attention.kind) == (
        tie,
        name == "s2s",
        "step-attend-step",
    )
    for one in json.loads((GOLDEN / name / "expected.json").read_text()):
        np.testing.assert_allclose(word_scores(model, one), one["scores"], atol=1e-5)


def test_a_model_of_nematus_itself_is_imported(tmp_path):
    shutil.copytree(GOLDEN / "amun", tmp_path / "amun")
    path, whole = tmp_path / "amun" / "model.npz", read_model(GOLDEN / "amun")
    with np.load(path) as file:
        arrays = {
            name: one[0] if one.shape[0] == 1 else one for name, one in file.items() if name != SETTINGS
        }
    arrays["ff_logit_W"] = arrays.pop("decoder_ff_logit_l2_Wt").T
    np.savez(path, **arrays)
    model = read_model(path)
    assert model.options == whole.options and model.weights.keys() == whole.weights.keys()
    assert all(np.array_equal(one, whole.weights[name]) for name, one in model.weights.items())
    for name, why in (
        ("encoder_W_lns", "of gru-nematus is not supported"),
        ("decoder_U_nl_drt_1", "has more than two transitions in a step"),
    ):
        np.savez(path, **arrays, **{name: np.ones(3)})
        with pytest.raises(ForeignModelError, match=why):
            read_model(path)


def test_a_recurrent_model_translates_shows_and_aligns(tmp_path, capsys):
    out = tmp_path / "out.regard"
    for side, language in (("source", "le chat dort\n"), ("target", "the cat sleeps\n")):
        (tmp_path / side).write_text(language)
    pairs = [str(tmp_path / side) for side in ("source", "target")]
    assert cli.run(["import", str(GOLDEN / "amun"), "--out", str(out), "--pairs", *pairs]) == 0
    assert "1 layer of gru-after 12, additive attention, step-attend-step" in capsys.readouterr().out
    assert cli.run(["translate", str(out), "le chat dort"]) == 0
    said = capsys.readouterr().out.strip()
    assert cli.run(["show", str(out), "le chat dort", "--step", "1"]) == 0
    shown = capsys.readouterr().out
    assert said.split()[0] in shown and "second step, with the context" in shown
    assert cli.run(["align", str(out), *pairs]) == 0
    assert "-" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"enc_cell": "lstm"}, "enc-cell = 'lstm' is not supported"),
        ({"dec_depth": "2"}, "dec-depth = '2' is not supported"),
        ({"dim_rnn": "16"}, r"has shape \(8, 24\) and should have \(8, 32\)"),
        ({"layer_normalization": "true", "dec_cell": "gru-nematus"}, "of gru-nematus is not supported"),
        ({"layer_normalization": "true"}, "has no 'encoder_gamma1'"),
    ],
)
def test_what_cannot_be_imported_of_a_recurrent_model_is_named(tmp_path, settings, why):
    shutil.copytree(GOLDEN / "amun", tmp_path / "amun")
    change(tmp_path / "amun", **settings)
    with pytest.raises(ForeignModelError, match=why) as caught:
        read_model(tmp_path / "amun")
    assert str(tmp_path / "amun" / "model.npz") in str(caught.value) and "\n" not in str(caught.value)


def write_bin(folder, code=None):
    """Write the model of a folder as marian-conv does: in 32 bits, or its matrices in 8 with this code."""
    with np.load(folder / "model.npz") as file:
        arrays = dict(file)
    (folder / "model.npz").unlink()
    items = []
    for name, one in arrays.items():
        kind, data = (0x101 if name == SETTINGS else 0x404), one.tobytes()
        embeds = name.endswith("_Wemb")
        if code is not None and (re.search(r"_W.?$", name) or (embeds and code == 0x4101)):
            factor = np.float32(127 / np.abs(one).max())
            kind, small = code, np.rint(one * factor).astype(np.int8)
            data = (small if embeds else small.T).tobytes() + factor.tobytes()
        items.append((name.encode() + b"\0", kind, one.shape, data))
    head = struct.pack("<QQ", 1, len(items))
    for name, kind, shape, data in items:
        head += struct.pack("<4Q", len(name), kind, len(shape), len(data))
    head += b"".join(item[0] for item in items)
    head += b"".join(struct.pack(f"<{len(item[2])}i", *item[2]) for item in items)
    padding = -(len(head) + 8) % 256
    whole = head + struct.pack("<Q", padding) + bytes(padding) + b"".join(item[3] for item in items)
    (folder / "model.bin").write_bytes(whole)
    return whole


@pytest.mark.parametrize("code", [None, 0x10001, 0x4101], ids=["float32", "marian", "bergamot"])
def test_a_bin_file_has_the_weights_of_the_npz_file(tmp_path, code):
    shutil.copytree(GOLDEN / "ssru", tmp_path / "ssru")
    whole = read_model(tmp_path / "ssru")
    write_bin(tmp_path / "ssru", code)
    (tmp_path / "ssru" / "model.npz.decoder.yml").unlink()
    for name, theirs in (("source", "srcvocab"), ("target", "trgvocab")):  # as Firefox calls them
        (tmp_path / "ssru" / f"{name}.yml").rename(tmp_path / "ssru" / f"{theirs}.yml")
    model = read_model(tmp_path / "ssru")
    assert model.options == whole.options and model.weights.keys() == whole.weights.keys()
    for name, one in whole.weights.items():
        if code is None:
            assert np.array_equal(model.weights[name], one), name
        elif not name.endswith(".b_O"):  # in it is a product of a matrix
            np.testing.assert_allclose(model.weights[name], one, atol=0.501 * np.abs(one).max() / 127)


def test_damaged_bin_files_end_in_one_line_and_no_file(tmp_path):
    shutil.copytree(GOLDEN / "ssru", tmp_path / "ssru")
    whole, out, noise = write_bin(tmp_path / "ssru", 0x4101), tmp_path / "out.regard", random.Random(1)
    path, num_refused = tmp_path / "ssru" / "model.bin", 0
    (tmp_path / "ssru" / "model.npz.decoder.yml").rename(tmp_path / "ssru" / "decoder.yml")
    for number in range(80):
        data = bytearray(whole if number % 4 else whole[: noise.randrange(9, len(whole))])
        for _ in range(2):
            data[noise.randrange(8, min(len(data), 3000))] = noise.randrange(256)
        path.write_bytes(data)
        tracemalloc.start()
        try:
            import_model(path, out)
        except RegardError as error:
            num_refused += 1
            assert "\n" not in str(error) and not out.exists()
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
        tracemalloc.stop()
        out.unlink(missing_ok=True)
    assert num_refused > 40
    path.write_bytes(whole.replace(struct.pack("<Q", 0x4101), struct.pack("<Q", 0x801)))
    with pytest.raises(ForeignModelError, match="has type 0x801; convert the model with --gemm-type float32"):
        read_model(path)


def test_both_engines_translate_alike(tmp_path):
    pytest.importorskip("ctranslate2", reason="the extra [fast] is not installed")
    model = read_model(GOLDEN / "pre")
    fast, slow = (Loaded.of(model, compute=one).searcher for one in (Compute("ctranslate2"), NUMPY))
    queries = [Query(ids) for ids in model.tokenizers.source.encode_batch(["le chat dort", "un chien"])]
    found = [one.search(queries, BeamOptions(beam_size=2)) for one in (fast, slow)]
    assert [one.hypotheses[0].ids for one in found[0]] == [one.hypotheses[0].ids for one in found[1]]


def test_an_npz_file_is_imported_and_translates(folder, tmp_path, capsys):
    out = tmp_path / "out.regard"
    (folder / "model.npz.optimizer.npz").touch()  # as Marian leaves it
    (folder / "README.md").write_text("license: cc-by-4.0\n")
    assert cli.run(["import", str(folder / "model.npz"), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "model.npz, fr to en, 1 + 2 layers, width 8, 2 heads" in said and "licence: cc-by-4.0" in said
    assert cli.run(["translate", str(out), "le chat dort"]) == 0
    model = load_model(out)
    assert all(np.array_equal(model.weights[key], one) for key, one in read_model(folder).weights.items())


def test_weights_may_be_shared_or_untied_or_in_16_bits(folder):
    model = read_model(folder)
    with np.load(folder / "model.npz") as file:
        table, arrays = file["decoder_Wemb"], dict(file)
    change(folder, {"decoder_ff_logit_out_W": np.asfortranarray(table.T), "decoder_l2_self_Wq": None},
           transformer_tied_layers="[1, 1]")  # fmt: skip
    untied = read_model(folder)
    assert untied.options.tie == "none"
    assert np.array_equal(untied.weights["W_o"], untied.weights["target.weight"])
    assert np.array_equal(untied.weights["decoder.1.own.W_QKV"], model.weights["decoder.0.own.W_QKV"])
    np.savez(folder / "model.npz", **{
        name: one if name == SETTINGS else one.astype(np.float16) for name, one in arrays.items()
    })  # fmt: skip
    np.testing.assert_allclose(
        read_model(folder).weights["source.weight"], model.weights["source.weight"], rtol=1e-3
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yml", '</s>: 0\n"\\":": 5\n\'it\'\'s\': 2\n<unk>: 1\n? "long\\x85\\u2014"\n: 4\nà la:3\n'),
        ("a.json", '{"</s>": 0, "<unk>": 1, "it\'s": 2, "à la": 3, "long\\u0085—": 4, "\\":": 5}'),
        ("a.txt", "</s>\n<unk>\nit's\nà la\nlong\x85—\n\":\n"),
    ],
)
def test_vocabularies_are_read_in_each_of_their_forms(name, text, tmp_path):
    (tmp_path / name).write_text(text, "utf-8", newline="")
    assert _listed(Folder(tmp_path), name) == ["</s>", "<unk>", "it's", "à la", "long\x85—", '":']


def test_vocabularies_with_gaps_and_old_names_are_read(folder):
    (folder / "model.npz.decoder.yml").unlink()
    with pytest.raises(ForeignModelError, match=r"decoder.yml: is missing, and there are 0 vocabularies"):
        read_model(folder)
    (folder / "decoder.yml").write_text("vocabs: [../../source.yml, target.yml]\n")
    text = (folder / "target.yml").read_text()
    assert "the: " in text
    (folder / "target.yml").write_text(
        "".join(
            line for line in text.replace("</s>:", "eos:").splitlines(True) if not line.startswith("the:")
        )
    )
    model, whole = read_model(folder), read_model(GOLDEN / "post")
    assert model.tokenizers.target.vocab_size == whole.tokenizers.target.vocab_size - 1
    assert np.array_equal(model.weights["target.weight"][EOS], whole.weights["target.weight"][EOS])


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"type": "char-s2s"}, "its type is 'char-s2s', which is none of transformer, amun, nematus, s2s"),
        (
            {"transformer_decoder_autoreg": "average-attention"},
            "autoreg = 'average-attention' is not supported",
        ),
        ({"transformer_decoder_autoreg": "rnn", "dec_cell": "gru"}, "dec-cell = 'gru' is not supported"),
        ({"transformer_ffn_activation": "gelu"}, "activation = 'gelu' is none of relu, swish"),
        ({"transformer_preprocess": "n"}, "are not supported"),
        ({"transformer_heads": "3"}, "transformer-heads = 3"),
        ({"enc_depth": "2"}, "has no 'encoder_l2_self_Wq'"),
        ({"dim_emb": "16"}, r"encoder_Wemb has shape \(\d+, 8\) and should have \(\d+, 16\)"),
        ({"dim_vocabs": "[9]"}, "dim-vocabs = .* is not 2 whole numbers"),
        ({"right_left": "true"}, "right-left = 'true' is not supported"),
    ],
)
def test_what_cannot_be_imported_is_named(folder, settings, why):
    change(folder, **settings)
    with pytest.raises(ForeignModelError, match=why) as caught:
        read_model(folder)
    assert str(folder / "model.npz") in str(caught.value) and "\n" not in str(caught.value)


def header(**changed):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": "<f4", "fortran_order": False, "shape": (8, 8)} | changed
    )
    return stream.getvalue()


def test_hostile_archives_are_refused(folder, tmp_path):
    path = folder / "model.npz"
    settings = zipfile.ZipFile(path).read(f"{SETTINGS}.npy")
    for data, why in (
        (header(shape=(1 << 40, 1 << 40)), "the size of 'encoder_Wemb'"),
        (header(descr="|O"), "the size of 'encoder_Wemb'"),
        (header().replace(b"(8, 8)", b"[8, 8]"), "has a header that is none"),
        (bytes(100 << 20), "is 104,857,600 bytes from"),
    ):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr(f"{SETTINGS}.npy", settings)
            file.writestr("encoder_Wemb.npy", data)
        tracemalloc.start()
        with pytest.raises(ForeignModelError, match=why):
            import_model(folder, tmp_path / "out.regard")
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
        tracemalloc.stop()
    shutil.copy(path, folder / "other.npz")
    with pytest.raises(ForeignModelError, match="has 2 models; name one"):
        read_model(folder)


def test_damaged_models_end_in_one_line_and_no_file(folder, tmp_path):
    noise, num_refused, out = random.Random(6), 0, tmp_path / "out.regard"
    names = ["model.npz", "source.yml", "target.yml", "model.npz.decoder.yml"]
    for _ in range(120):
        path = folder / noise.choice([*names, "model.npz"])
        whole = path.read_bytes()
        data = bytearray(whole[: noise.randrange(len(whole))] if noise.random() < 0.2 else whole)
        if path.suffix == ".npz" and noise.random() < 0.7:
            with np.load(io.BytesIO(whole)) as file:
                arrays = dict(file)
            text = bytearray(arrays[SETTINGS].tobytes())
            for _ in range(3):
                text[noise.randrange(len(text))] = noise.randrange(128)
            stream = io.BytesIO()
            np.savez(stream, **arrays | {SETTINGS: np.frombuffer(text, np.int8)})
            data = stream.getvalue()
        else:
            for _ in range(noise.randrange(1, 6)):
                at = noise.randrange(max(1, len(data)))
                data[at : at + noise.randrange(2)] = noise.randbytes(noise.randrange(3))
        path.write_bytes(data)
        try:
            import_model(folder, out)
        except RegardError as error:
            num_refused += 1
            assert "\n" not in str(error) and not out.exists()
        out.unlink(missing_ok=True)
        path.write_bytes(whole)
    assert num_refused > 40
