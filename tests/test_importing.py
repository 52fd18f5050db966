"""Imported models compute what the program they come from computes, and damaged ones are refused."""

import io
import json
import os
import pickle
import random
import re
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from small import greedy

import regard
from regard import cli
from regard.alignment.reading import Reading
from regard.contract import Ragged, make_batch
from regard.engines import Compute
from regard.errors import ForeignModelError, RegardError
from regard.importing.pickled import PickledTensors
from regard.importing.run import import_model, read_model
from regard.loaded import Loaded
from regard.modelfile import load_model
from regard.runtime.build import build_engine
from regard.starter import bundled
from regard.text.tokenizer import Tokenizer
from regard.vocabulary import BOS, EOS, NUM_RESERVED, PAD, UNK

MARIAN = Path(__file__).parent / "golden" / "marian"  # made by transformers, see make_marian.py
EXPECTED = json.loads((MARIAN / "expected.json").read_text())
VOCAB = json.loads((MARIAN / "vocab.json").read_text())


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(MARIAN, tmp_path / "opus-mt-fr-en")
    return tmp_path / "opus-mt-fr-en"


def tensors_of(folder):
    return safetensors.numpy.load_file(folder / "model.safetensors")


def change(folder, tensors=None, **config):
    """Write other weights or options into a folder."""
    if tensors is not None:
        safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    given = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(given | config))


def their_ids(tokenizer):
    """Their id for each of ours."""
    named = {EOS: "</s>", UNK: "<unk>"} | dict(enumerate(tokenizer.pieces[NUM_RESERVED:], NUM_RESERVED))
    return {ours: VOCAB[piece] for ours, piece in named.items()}


def assert_computes_what_transformers_computes(model):
    source, target = model.tokenizers.source, model.tokenizers.target
    doubles = {name: one.astype(np.float64) for name, one in model.weights.items()}  # as in make_marian.py
    theirs, engine = their_ids(target), build_engine(model.options, doubles)
    for one in EXPECTED:
        read, said = source.encode_batch([one["source"]])[0], target.encode_batch([one["target"]])[0]
        assert [theirs[id] for id in (*read.tolist(), EOS)] == one["source_ids"]
        assert [theirs[id] for id in (*said.tolist(), EOS)] == one["target_ids"]
        batch = make_batch(Ragged.of([read]), Ragged.of([said]), np.arange(1))
        (logits_TV,) = engine.force(batch).logits_BTV
        wanted_TV = np.array(one["logits"])
        np.testing.assert_allclose(logits_TV[:, list(theirs)], wanted_TV[:, list(theirs.values())], atol=1e-5)
        never = [PAD, BOS, *range(UNK + 1, NUM_RESERVED)]
        assert logits_TV[:, never].max() < wanted_TV.min() - 50


def test_an_imported_model_computes_what_transformers_computes():
    model = read_model(MARIAN)
    assert_computes_what_transformers_computes(model)
    theirs, engine = their_ids(model.tokenizers.target), build_engine(model.options, model.weights)
    for one in EXPECTED:
        read = model.tokenizers.source.encode_batch([one["source"]])
        (said,) = greedy(engine, make_batch(Ragged.of(read), None, np.arange(1)), 6)
        wanted = one["greedy"]
        assert [theirs[id] for id in said] == [id for id in wanted if id != VOCAB["</s>"]]


def test_separate_and_untied_and_unscaled_embeddings_are_imported(folder):
    tensors = tensors_of(folder)
    shared = tensors.pop("model.shared.weight")
    separate = {f"model.{side}.embed_tokens.weight": shared for side in ("encoder", "decoder")}
    change(folder, tensors | separate, share_encoder_decoder_embeddings=False)
    for _ in range(2):  # with one vocabulary, then with one for each side
        model = read_model(folder)
        assert model.options.tie == "target"
        assert_computes_what_transformers_computes(model)
        shutil.copy(folder / "vocab.json", folder / "target_vocab.json")

    change(folder, tensors | {"model.shared.weight": shared, "lm_head.weight": shared},
           share_encoder_decoder_embeddings=True, tie_word_embeddings=False)  # fmt: skip
    model = read_model(folder)
    assert model.options.tie == "none"
    assert_computes_what_transformers_computes(model)

    scaled = shared * np.float32(np.sqrt(8))
    change(folder, tensors | {"model.shared.weight": scaled, "lm_head.weight": shared}, scale_embedding=False)
    assert_computes_what_transformers_computes(read_model(folder))


def test_half_precision_and_stored_positions_are_imported(folder):
    tensors = tensors_of(folder)
    halves = {name: one.astype(np.float16) for name, one in tensors.items()}
    change(folder, halves)
    found = read_model(folder).weights
    change(folder, {name: one.astype(np.float32) for name, one in halves.items()})
    assert all(np.array_equal(found[name], one) for name, one in read_model(folder).weights.items())
    position = np.arange(64)[:, None] / 10_000 ** (np.arange(4) / 4)
    waves = np.concatenate([np.sin(position), np.cos(position)], 1).astype(np.float32)
    names = [f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")]
    change(folder, tensors | dict.fromkeys(names, waves))
    model = read_model(folder)
    assert model.options.positions.kind == "sinusoidal"
    assert_computes_what_transformers_computes(model)
    change(folder, tensors | dict.fromkeys(names, waves + 1))
    assert read_model(folder).options.positions.kind == "learned"


def test_the_weights_of_a_pickle_are_read_without_torch(folder):
    torch = pytest.importorskip("torch")
    tensors = tensors_of(folder)
    state = {name: torch.nn.Parameter(torch.from_numpy(one)) for name, one in tensors.items()}
    name = "model.encoder.layers.0.fc1.weight"
    state[name] = torch.from_numpy(tensors[name].T.copy()).T  # not contiguous
    torch.save(state, folder / "pytorch_model.bin")
    found = PickledTensors(folder / "pytorch_model.bin")
    assert sorted(found.names()) == sorted(tensors)
    assert all(np.array_equal(found.get(name), tensors[name]) for name in tensors)
    (folder / "model.safetensors").unlink()
    assert_computes_what_transformers_computes(read_model(folder))


def archive(path, program, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file:
        file.writestr("archive/data.pkl", program)
        file.writestr("archive/data/0", bytes(64))


class Evil:
    def __reduce__(self):
        return Path.touch, (Path("evil"),)


def test_a_pickle_that_runs_code_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "pytorch_model.bin"
    for program, why in (
        (pickle.dumps(Evil(), 2), "it wants to use '__builtin__.getattr'"),
        (b"\x80\x02cos\nsystem\n(X\x04\x00\x00\x00evilo.", "it wants to use 'os.system'"),
        (pickle.dumps(Evil(), 4), "it has the opcode STACK_GLOBAL"),
        (b"\x80\x02ctorch\nFloatStorage\n)R.", "it calls what is no function"),
        (b"\x80\x02K\x01.", "does not hold tensors by name"),
        (b"\x80\x02", "damaged"),
    ):
        archive(path, program)
        with pytest.raises(ForeignModelError, match=why) as caught:
            PickledTensors(path)
        assert str(caught.value).startswith(f"{path}: ") and "safe_serialization" in str(caught.value)
    assert not Path("evil").exists()
    archive(path, bytes(1 << 24), zipfile.ZIP_DEFLATED)
    with pytest.raises(ForeignModelError, match="compressed or too large") as caught:
        PickledTensors(path)
    assert str(caught.value).count(str(path)) == 1
    path.write_bytes(pickle.dumps({}))
    with pytest.raises(ForeignModelError, match="not a zip archive of PyTorch"):
        PickledTensors(path)


def test_a_tensor_beyond_its_data_is_refused(tmp_path):
    torch = pytest.importorskip("torch")
    stream = io.BytesIO()
    torch.save({"a": torch.arange(16.0)}, stream)
    with zipfile.ZipFile(stream) as file:
        name = next(one for one in file.namelist() if one.endswith("data.pkl"))
        program = file.read(name)
    for lie in (b"K\x11\x85", b"J\x00\x00\x00\x7f\x85"):
        archive(tmp_path / "a.bin", program.replace(b"K\x10\x85", lie, 1))
        with pytest.raises(ForeignModelError, match="a is larger than its data"):
            PickledTensors(tmp_path / "a.bin").get("a")


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"model_type": "bart"}, "model_type is 'bart' and only 'marian'"),
        ({"activation_function": "tanh"}, "activation_function = 'tanh' is none of relu, swish"),
        ({"d_model": 16}, r"shape \(\d+, 8\) and should have"),
        ({"d_model": "big"}, "d_model = 'big' is no size"),
        ({"encoder_attention_heads": 3, "decoder_attention_heads": 3}, "no multiple of the 3 heads"),
        ({"encoder_layers": 10**6}, "encoder_layers, decoder_layers = .* is more than 1000"),
        ({"encoder_layers": 2}, r"has no model\.encoder\.layers\.1"),
        ({"normalize_embedding": True}, "normalize_embedding = True is not supported"),
        ({"decoder_start_token_id": 9999}, "decoder_start_token_id = 9999 is not in vocab.json"),
    ],
)
def test_what_cannot_be_imported_is_named(folder, config, why):
    change(folder, **config)
    with pytest.raises(ForeignModelError, match=why) as caught:
        read_model(folder)
    assert str(folder) in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_or_wrong_file_is_named(folder, tmp_path):
    with pytest.raises(ForeignModelError, match="no such file or folder"):
        read_model(tmp_path / "nothing")
    (tmp_path / "checkpoint.pt").touch()
    with pytest.raises(ForeignModelError, match="only the program that wrote it can open"):
        read_model(tmp_path / "checkpoint.pt")
    for name in ("vocab.json", "source.spm"):
        kept = (folder / name).read_bytes()
        (folder / name).unlink()
        with pytest.raises(ForeignModelError, match=f"{name}: cannot be read"):
            read_model(folder)
        (folder / name).write_bytes(b"{}" + kept)
        with pytest.raises(ForeignModelError, match=name):
            read_model(folder)
        (folder / name).write_bytes(kept)
    spm = (folder / "source.spm").read_bytes()
    (folder / "source.spm").write_bytes(b"")
    with pytest.raises(ForeignModelError, match=r"source\.spm: is empty"):
        read_model(folder)
    (folder / "source.spm").unlink()
    os.mkfifo(folder / "source.spm")
    with pytest.raises(ForeignModelError, match=r"source\.spm: is no regular file"):
        read_model(folder)
    (folder / "source.spm").unlink()
    (folder / "source.spm").write_bytes(spm)
    (folder / "vocab.json").write_text(json.dumps({"<pad>": 0, "</s>": 1, "<unk>": 1}))
    with pytest.raises(ForeignModelError, match="ids are not 0, 1, 2"):
        read_model(folder)


@pytest.mark.parametrize(
    ("value", "why"),
    [(np.float32(np.nan), "values that are not finite"), (np.int64(1), "whole numbers (int64)")],
)
def test_weights_that_are_none_are_named_as_the_file_names_them(folder, value, why, tmp_path):
    name = "model.encoder.layers.0.fc1.weight"
    tensors = tensors_of(folder)
    tensors[name] = np.full(tensors[name].shape, value)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    with pytest.raises(ForeignModelError, match=re.escape(f"model.safetensors: {name} has {why}")):
        import_model(folder, tmp_path / "out.regard")
    assert not (tmp_path / "out.regard").exists()


def test_damaged_folders_end_in_one_line_and_no_file(folder, tmp_path):
    noise = random.Random(4)
    names = ["config.json", "vocab.json", "source.spm", "model.safetensors"]
    torch = pytest.importorskip("torch")
    torch.save(
        {name: torch.from_numpy(one) for name, one in tensors_of(folder).items()}, tmp_path / "whole.bin"
    )
    num_refused = 0
    for _ in range(150):
        name = noise.choice([*names, "pytorch_model.bin"])
        path = folder / name
        pickled = name == "pytorch_model.bin"
        whole = (tmp_path / "whole.bin" if pickled else MARIAN / name).read_bytes()
        data = bytearray(whole[: noise.randrange(len(whole))] if noise.random() < 0.3 else whole)
        for _ in range(noise.randrange(1, 6)):
            # Most damage where a file says what it holds.
            data[noise.randrange(min(len(data), 3000)) : 0] = noise.randbytes(noise.randrange(3))
            if data:
                data[noise.randrange(min(len(data), 3000))] = noise.randrange(256)
        if pickled:
            (folder / "model.safetensors").unlink()
        path.write_bytes(data)
        out = tmp_path / "out.regard"
        try:
            import_model(folder, out)
        except RegardError as error:
            num_refused += 1
            assert "\n" not in str(error) and not out.exists()
        out.unlink(missing_ok=True)
        shutil.rmtree(folder)
        shutil.copytree(MARIAN, folder)
    assert num_refused > 75


def test_pieces_and_spans_lie_in_the_text():
    tokenizer = read_model(MARIAN).tokenizers.source
    found = tokenizer.encode("le chat  noir☃")
    assert "".join(found.text[start:end] for start, end in found.spans).replace(" ", "") == "lechatnoir☃"
    assert found.ids.count(UNK) == 2  # n is no piece of the vocabulary, nor is the snowman
    assert tokenizer.decode(found.ids) == "le chat ⁇oir⁇"
    again = Tokenizer.from_bytes(tokenizer.to_bytes())
    assert again.encode("le chat") == tokenizer.encode("le chat") and again.sha256 == tokenizer.sha256


def test_a_multilingual_model_is_aimed_at_one_language(folder, tmp_path, capsys):
    pieces = {piece: id for piece, id in VOCAB.items() if piece not in ("</s>", "<unk>", "<pad>")}
    codes = dict(zip(list(pieces)[-2:], (">>fra<<", ">>ron<<"), strict=True))
    (folder / "vocab.json").write_text(
        json.dumps({codes.get(piece, piece): id for piece, id in VOCAB.items()})
    )
    out, any_out = tmp_path / "fra.regard", tmp_path / "any.regard"
    assert cli.run(["import", str(folder), "--out", str(any_out)]) == 0
    assert "multilingual: fra, ron; choose one with --to" in capsys.readouterr().out
    assert cli.run(["import", str(folder), "--out", str(out), "--to", "fra"]) == 0
    assert "fr to fra" in capsys.readouterr().out and load_model(out).target_language == "fra"
    aimed, free = (load_model(path).tokenizers.source for path in (out, any_out))
    assert np.array_equal(aimed.encode_batch(["le chat"])[0], free.encode_batch([">>fra<<le chat"])[0])
    assert aimed.encode(">>ron<<le chat").ids == free.encode(">>ron<<le chat").ids
    assert (
        aimed.encode("le chat").spans[0] == (0, 0)
        and aimed.information_V[aimed.encode("le chat").ids[0]] == 0
    )
    targets = [load_model(path).tokenizers.target.encode("the cat").ids for path in (out, any_out)]
    assert targets[0] == targets[1]
    capsys.readouterr()
    for words in ([str(out)], [str(any_out), "--to", "fra"]):
        assert cli.run(["translate", *words, "le chat noir. le chat dort."]) == 0
    said = capsys.readouterr().out.splitlines()
    assert (
        said[0]
        == said[1]
        == regard.load(any_out, to="fra").translate(["le chat noir. le chat dort."])[0].text
    )
    assert cli.run(["translate", "fr-en", "le chat", "--to", "fra"]) == 2
    assert "does not translate into 'fra', but into one language only" in capsys.readouterr().err
    for words in (
        ["translate", str(out), "le chat noir. le chat dort."],
        ["show", str(out), "le chat noir dort"],
    ):
        assert cli.run(words) == 0
    assert ">>fra<<" in capsys.readouterr().out
    export = ["export", str(out), "--to", "ctranslate2", "--out", str(tmp_path / "ct2")]
    assert cli.run(export) == 0 and "['>>fra<<'] + source" in (tmp_path / "ct2" / "use.py").read_text()
    assert cli.run(["export", str(out), "--to", "huggingface", "--out", str(tmp_path / "hf")]) == 0
    assert '">>fra<<Bonjour."' in (tmp_path / "hf" / "use.py").read_text()
    assert cli.run(["import", str(folder), "--out", str(out), "--to", "deu"]) == 2
    assert "does not translate into 'deu', but into fra, ron" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("licence", "forbidden"),
    [("cc-by-4.0", 0), ("cc-by-nc-4.0", 1), ("CC-BY-ND-4.0", 1), ("cc-by-nc-nd-4.0", 2), ("and-nc2", 0)],
)
def test_what_a_licence_forbids_is_said(folder, tmp_path, capsys, licence, forbidden):
    (folder / "README.md").write_text(f"---\nlicense: {licence}\n---\n")
    assert cli.run(["import", str(folder), "--out", str(tmp_path / "out.regard")]) == 0
    said = capsys.readouterr().out
    assert f"licence: {licence}\n" in said and said.count("this licence forbids") == forbidden


def test_an_imported_model_translates_shows_and_aligns(folder, tmp_path, capsys):
    (folder / "README.md").write_text("---\nlanguage: fr\nlicense: cc-by-4.0\n---\n")
    out, fr, en = tmp_path / "opus.regard", tmp_path / "a.fr", tmp_path / "a.en"
    fr.write_text("".join(f"{one['source']}\n" for one in EXPECTED) * 20, "utf-8")
    en.write_text("".join(f"{one['target']}\n" for one in EXPECTED) * 20, "utf-8")
    assert cli.run(["import", str(folder), "--out", str(out), "--pairs", str(fr), str(en)]) == 0
    said = capsys.readouterr().out
    assert "fr to en, 1 + 2 layers, width 8, 2 heads" in said and "licence: cc-by-4.0" in said
    model = load_model(out)
    assert isinstance(model.reading, Reading)
    assert_computes_what_transformers_computes(model)
    for words in (
        ["info", str(out)],
        ["translate", str(out), "le chat noir dort"],
        ["show", str(out), "le chat noir dort"],
        ["align", str(out), str(fr), str(en)],
    ):
        assert cli.run(words) == 0
        assert capsys.readouterr().out.strip()
    assert cli.run(["import", str(folder), "--out", str(out), "--text", str(fr)]) == 0
    assert cli.run(["import", str(tmp_path / "x"), "--out", str(out)]) == 2
    assert cli.run(["page", str(out), "--out", str(tmp_path / "page.html")]) == 2
    assert "has model.activation, which a page cannot compute" in capsys.readouterr().err


def test_both_engines_translate_an_imported_model_alike(tmp_path):
    pytest.importorskip("ctranslate2", reason="the extra [fast] is not installed")
    import_model(MARIAN, tmp_path / "a.regard")
    fast, slow = (
        Loaded.open(tmp_path / "a.regard", compute=Compute(engine)) for engine in ("ctranslate2", "numpy")
    )
    from regard.options.search import BeamOptions
    from regard.search.searcher import Query

    queries = [Query(ids) for ids in slow.tokenizers.source.encode_batch([one["source"] for one in EXPECTED])]
    for size in (1, 3):
        for a, b in zip(
            fast.searcher.search(queries, BeamOptions(beam_size=size)),
            slow.searcher.search(queries, BeamOptions(beam_size=size)),
            strict=True,
        ):
            assert a.hypotheses[0].ids == b.hypotheses[0].ids
            assert a.hypotheses[0].log_prob == pytest.approx(b.hypotheses[0].log_prob, abs=1e-4)


def test_an_exported_folder_translates_alike_in_ctranslate2(tmp_path, capsys):
    ctranslate2 = pytest.importorskip("ctranslate2", reason="the extra [fast] is not installed")
    model, out, probes = tmp_path / "a.regard", tmp_path / "ct2", tmp_path / "probes.fr"
    import_model(MARIAN, model)
    probes.write_text("".join(f"{one['source']}\n" for one in EXPECTED), "utf-8")
    words = ["export", str(model), "--to", "ctranslate2", "--out", str(out)]
    assert cli.run([*words, "--probes", str(probes)]) == 0
    assert "3 of 3 translations by greedy search identical" in capsys.readouterr().out
    assert json.loads((out / "regard.json").read_text())["parity"]["largest_difference"] < 1e-3
    names = {id: piece for piece, id in VOCAB.items()}
    translator = ctranslate2.Translator(str(out), compute_type="float32")
    for one in EXPECTED:
        read = [names[id] for id in one["source_ids"][:-1]]
        (found,) = translator.translate_batch([read], beam_size=1, max_decoding_length=6)
        assert found.hypotheses[0] == [names[id] for id in one["greedy"] if names[id] != "</s>"]
    assert cli.run(words) == 0  # one of ours is replaced
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "work.txt").touch()
    assert cli.run([*words[:-1], str(tmp_path / "other")]) == 2


@pytest.mark.parametrize("name", ["fr-en", "fr-en-rnn"])
def test_a_model_that_cannot_be_exported_is_refused(name, tmp_path, capsys):
    if name not in bundled():
        pytest.skip("the bundled models are not there")
    assert cli.run(["export", name, "--to", "ctranslate2", "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists() and capsys.readouterr().err.count("\n") == 1
