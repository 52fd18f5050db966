"""CTranslate2 folders and Argos packages are read as CTranslate2 reads them, and damaged ones are refused."""

import io
import json
import random
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
import sentencepiece
from small import random_weights
from test_importing import EXPECTED, MARIAN

from regard import cli
from regard.alignment.reading import USUAL_READING
from regard.contract import Ragged, make_batch
from regard.engines import NUMPY, Compute
from regard.errors import ForeignModelError, RegardError
from regard.fast.convert import convert
from regard.importing.binary import read_variables
from regard.importing.export import export_ctranslate2
from regard.importing.run import import_model, read_model
from regard.loaded import Loaded
from regard.modelfile import load_model
from regard.options.model import TransformerOptions
from regard.options.search import BeamOptions
from regard.runtime.build import build_engine
from regard.search.searcher import Query
from regard.text.imported import ImportedTokenizer
from regard.text.tokenizer import Tokenizer
from regard.vocabulary import EOS, NUM_RESERVED

PIECES = ["<blank>", "<s>", "</s>", *"abcdefg"]
KINDS = {"float32": 0, "int8": 1, "int16": 2, "float16": 4, "uint16": 5}  # the last are bfloat16
OLD_NAMES = (
    ("embeddings/weight", "w_embs"), ("weight", "kernel"), ("layer_norm", "LayerNorm"),
    ("projection", "dense"), ("linear_0", "conv1d"), ("linear_", "conv1d_"),
)  # fmt: skip


def text(word):
    return struct.pack("<H", len(word) + 1) + word.encode() + b"\0"


def old_name(name):
    """A name as in the first version."""
    own = "multi_head" if "encoder" in name else "masked_multi_head"
    for new, old in (("self_attention", own), ("/attention", "/multi_head"), *OLD_NAMES):
        name = name.replace(new, old)
    return f"transformer/{name}:0"


def model_bin(version, arrays, spec="TransformerSpec", revision=7, aliases=()):
    """The bytes of a `model.bin`."""
    head = struct.pack("<I", version) + (text(spec) + struct.pack("<I", revision) if version > 1 else b"")
    chunks = [head, struct.pack("<I", len(arrays))]
    for name, array in arrays.items():
        size = array.dtype.itemsize
        kind = (KINDS[array.dtype.name], array.nbytes) if version > 3 else (size, array.size)
        shape = struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
        chunks += [text(name), shape, struct.pack("<BI", *kind), array.tobytes()]
    if version > 2:
        chunks += [struct.pack("<I", len(aliases)), *(text(one) for pair in aliases for one in pair)]
    return b"".join(chunks)


def quantised(name, array, kind):
    """An array in another type, with its scale where it needs one."""
    if kind == "float16":
        return {name: array.astype(np.float16)}
    if kind == "uint16":
        return {name: (np.ascontiguousarray(array).view(np.uint32) >> 16).astype(np.uint16)}
    if array.ndim < 2 or not name.endswith("weight"):
        return {name: array}
    if kind == "int16":  # without a scale it is 1000
        return {name: np.rint(array * 1000).astype(np.int16)}
    scale = (127 / np.abs(array).max(axis=1)).astype(np.float32)
    return {name: np.rint(array * scale[:, None]).astype(np.int8), f"{name}_scale": scale}


def write_folder(folder, version, kind, **changed):
    """Write a random model, as that version of CTranslate2 had it; return its folder."""
    folder.mkdir()
    options = TransformerOptions(
        hidden_size=16, feed_forward_size=12, num_heads=8, num_encoder_layers=1, num_decoder_layers=2,
        tie="none", norm="post" if version == 6 else "pre", activation="gelu" if version == 6 else "relu",
        biases=True,
    )  # fmt: skip
    rows = len(PIECES) + 1  # `<unk>` comes after all others
    weights = random_weights(options)
    for name in ("source.weight", "target.weight", "W_o", "b_o"):
        weights[name] = weights[name][:rows]
    weights["b_o"][:2] = -50  # CTranslate2 might say `<blank>` and `<s>`
    data = convert(options, weights, USUAL_READING).files["model.bin"]
    arrays = read_variables(folder, np.frombuffer(data, np.uint8)).arrays
    if version < 6:  # attributes were given once, or not at all
        arrays = {name: one for name, one in arrays.items() if one.ndim}
        flags = {2: {"with_target_bos": 0}, 3: {"num_heads": 4, "with_source_eos": 1}, 4: {"num_heads": 2}}
        arrays |= {name: np.array(one, np.int8) for name, one in flags.get(version, {}).items()}
    if version < 4:
        arrays = {name: one for name, one in arrays.items() if "position" not in name}
    if version == 5:  # as models of Marian
        arrays |= {
            "num_heads": np.array(4, np.int8),
            "decoder/start_from_zero_embedding": np.array(1, np.int8),
        }
    aliases = []
    if version > 2:
        del arrays["decoder/projection/weight"]
        aliases = [("decoder/projection/weight", "decoder/embeddings/weight")]
    if kind != "float32":
        arrays = {
            key: value
            for name, one in arrays.items()
            for key, value in (quantised(name, one, kind) if one.dtype == np.float32 else {name: one}).items()
        }
    if version == 1:
        arrays = {old_name(name.replace("embeddings_0", "embeddings")): one for name, one in arrays.items()}
    spec = "TransformerBase" if version == 2 else "TransformerSpec"
    revision = {2: 2, 3: 3, 4: 4, 5: 4}.get(version, 7)
    (folder / "model.bin").write_bytes(model_bin(version, arrays | changed, spec, revision, aliases))
    (folder / "source_vocabulary.txt").write_text("".join(f"{one}\n" for one in PIECES))
    (folder / "target_vocabulary.json").write_text(json.dumps(PIECES))
    if version == 6:
        words = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "decoder_start_token": "<s>"}
        config = words | {"add_source_bos": False, "add_source_eos": True, "layer_norm_epsilon": 1e-6}
        (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(
    ("version", "kind"),
    [(1, "float32"), (2, "int16"), (3, "int8"), (4, "float16"), (5, "uint16"), (6, "int8"), (6, "float32")],
)
def test_a_folder_of_any_version_gives_the_probabilities_of_ctranslate2(version, kind, tmp_path):
    ctranslate2 = pytest.importorskip("ctranslate2", reason="the extra [fast] is not installed")
    folder = write_folder(tmp_path / "model", version, kind)
    theirs = ctranslate2.Translator(str(folder), compute_type="float32")
    model = read_model(folder)
    assert model.options.source_end == (version in (3, 5, 6))
    engine = build_engine(model.options, model.weights)
    for source, target in (("a b c d", "g f e"), ("zz a", "b b unknown"), ("a", "")):
        # Those who use a model of Marian put its `</s>` there themselves.
        read = [*source.split(), *(["</s>"] if version == 5 else [])]
        (scored,) = theirs.score_batch([read], [target.split()])
        sides = [
            model.tokenizers.source.encode_batch([source]),
            model.tokenizers.target.encode_batch([target]),
        ]
        said = [*sides[1][0].tolist(), EOS]
        forced = engine.force(make_batch(Ragged.of(sides[0]), Ragged.of(sides[1]), np.arange(1)))
        logits_TV = forced.logits_BTV[0].astype(float)
        log_probs = logits_TV - np.log(np.exp(logits_TV).sum(axis=1, keepdims=True))
        ours = [log_probs[step, id] for step, id in enumerate(said)]
        # Positions rounded to 16 bits are replaced by the exact ones.
        np.testing.assert_allclose(ours, scored.log_probs, atol=1e-3 if kind == "uint16" else 1e-4)


def test_nothing_of_a_source_without_end_is_read_at_its_end():
    options = TransformerOptions(source_end=False, hidden_size=8, num_heads=2, tie="none")
    weights = random_weights(options)
    batch = make_batch(
        Ragged.of([np.array([265, 266]), np.array([267]), np.array([], int)]), None, np.arange(3)
    )
    engine = build_engine(options, weights)
    step = engine.step(engine.start(batch), np.array([1, 1, 1]))
    assert not step.attention_RLNS[0, ..., 2].any() and not step.attention_RLNS[1, ..., 1:].any()
    assert np.isfinite(step.logits_RV).all()  # of an empty source too
    weights["source.weight"][EOS] += 1
    changed = build_engine(options, weights)
    again = changed.step(changed.start(batch), np.array([1, 1, 1]))
    assert np.array_equal(step.logits_RV[:2], again.logits_RV[:2])


def test_both_engines_translate_a_source_without_end_alike(tmp_path):
    pytest.importorskip("ctranslate2", reason="the extra [fast] is not installed")
    model = read_model(write_folder(tmp_path / "model", 4, "float32"))
    fast, slow = (Loaded.of(model, compute=one).searcher for one in (Compute("ctranslate2"), NUMPY))
    queries = [Query(ids) for ids in model.tokenizers.source.encode_batch(["a b c", "d", "", *["e f"] * 16])]
    for size in (1, 2):
        found = [one.search(queries, BeamOptions(beam_size=size)) for one in (fast, slow)]
        for a, b in zip(*found, strict=True):
            assert a.hypotheses[0].ids == b.hypotheses[0].ids
            np.testing.assert_allclose(a.hypotheses[0].attention_TS, b.hypotheses[0].attention_TS, atol=1e-4)


@pytest.fixture
def exported(tmp_path):
    """The folder that an imported model was exported to."""
    export_ctranslate2(read_model(MARIAN), tmp_path / "ct2", [])
    return tmp_path / "ct2"


def pack(exported, path, compression=zipfile.ZIP_DEFLATED, **about):
    """Make an Argos package of a folder."""
    about = {"from_code": "fr", "to_code": "en", "package_version": "1.0"} | about
    with zipfile.ZipFile(path, "w", compression) as file:
        file.writestr("translate-fr_en/metadata.json", json.dumps(about))
        file.write(exported / "source.spm", "translate-fr_en/sentencepiece.model")
        for one in exported.iterdir():
            file.write(one, f"translate-fr_en/model/{one.name}")
    return path


def test_an_import_an_export_and_an_import_give_the_same_weights(exported):
    first, again = read_model(MARIAN), read_model(exported)
    assert again.options == first.options
    assert all(np.array_equal(again.weights[name], one) for name, one in first.weights.items())
    for one in EXPECTED:
        sides = [model.tokenizers.source.encode(one["source"]) for model in (first, again)]
        assert sides[0] == sides[1]


def test_an_argos_package_is_imported(exported, tmp_path, capsys):
    path, out = pack(exported, tmp_path / "fr_en.argosmodel"), tmp_path / "out.regard"
    assert cli.run(["import", str(path), "--out", str(out)]) == 0
    assert "fr_en.argosmodel, fr to en" in capsys.readouterr().out
    model = load_model(out)
    assert (model.source_language, model.target_language) == ("fr", "en")
    assert model.card["imported"]["format"] == "Argos Translate"
    assert all(np.array_equal(model.weights[name], one) for name, one in read_model(MARIAN).weights.items())
    with zipfile.ZipFile(path) as file:  # as Argos Translate installs it
        file.extractall(tmp_path / "installed")
    installed = read_model(tmp_path / "installed" / "translate-fr_en")
    assert installed.tokenizers.sha256 == model.tokenizers.sha256


def test_characters_outside_the_vocabulary_become_bytes_where_it_has_them():
    stream = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["le chat dort", "la maison"] * 20), model_writer=stream, vocab_size=300,
        hard_vocab_limit=False, byte_fallback=True, minloglevel=2,
    )  # fmt: skip
    processor = sentencepiece.SentencePieceProcessor(model_proto=stream.getvalue())
    learnt = [processor.IdToPiece(id) for id in range(259, len(processor))]
    tokenizer = ImportedTokenizer(learnt, stream.getvalue(), True, True)
    for one in (tokenizer, Tokenizer.from_bytes(tokenizer.to_bytes())):
        found = one.encode("le ☃ chat")
        assert one.decode(found.ids) == "le ☃ chat"
        assert {found.text[start:end] for id, (start, end) in zip(found.ids, found.spans, strict=True)
                if 3 < id < NUM_RESERVED} <= {"☃", ""}  # fmt: skip


def test_what_cannot_be_imported_is_named(tmp_path):
    ones = np.ones((3, 2), np.float32)
    for number, (changed, why) in enumerate(
        (
            (
                {"encoder/layernorm_embedding/gamma": ones},
                "'encoder/layernorm_embedding/gamma', which is no part",
            ),
            ({"decoder/layer_0/ffn/linear_0/weight": ones}, r"has shape \(3, 2\) and should have \(12, 16\)"),
            ({"with_source_bos": np.array(1, np.int8)}, "before each source is not supported"),
            ({"user_decoder_start_tokens": np.array(1, np.int8)}, "the user has to give the first token"),
            ({"activation": np.array(4, np.int8)}, "activation function has number 4"),
            ({"num_heads": np.array(3, np.int8)}, "no multiple of the 3 heads"),
            ({"encoder/num_heads": np.array(4, np.int8)}, "encoder/num_heads and decoder/num_heads differ"),
        )
    ):
        folder = write_folder(tmp_path / str(number), 4, "float32", **changed)
        with pytest.raises(ForeignModelError, match=why) as caught:
            read_model(folder)
        assert str(folder) in str(caught.value)
    folder = write_folder(tmp_path / "whole", 6, "float32")
    whole = (folder / "model.bin").read_bytes()
    for data, why in (
        (whole.replace(b"TransformerSpec", b"WhisperSpecific"), "its architecture is 'WhisperSpecific'"),
        (struct.pack("<I", 7) + whole[4:], r"of a newer version \(7\)"),
        (whole[:-20], "ends early"),
        (b"", "ends early"),
        (whole.replace(struct.pack("<2I", 12, 16), struct.pack("<2I", 1 << 31, 1 << 31), 1), "the size of"),
        (model_bin(6, {}), "has no decoder/embeddings/weight"),
    ):
        (folder / "model.bin").write_bytes(data)
        with pytest.raises(ForeignModelError, match=why):
            read_model(folder)
    (folder / "model.bin").write_bytes(whole)
    (folder / "config.json").write_text(json.dumps({"decoder_start_token": "<go>"}))
    with pytest.raises(ForeignModelError, match=r"target_vocabulary.json: has no '<go>'"):
        read_model(folder)
    (folder / "source_vocabulary.txt").unlink()
    with pytest.raises(ForeignModelError, match=r"source_vocabulary.json: is missing"):
        read_model(folder)


def test_hostile_packages_are_refused(exported, tmp_path):
    path, out = tmp_path / "a.argosmodel", tmp_path / "out.regard"

    def refused(why):
        tracemalloc.start()
        with pytest.raises(ForeignModelError, match=why):
            import_model(path, out)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
        tracemalloc.stop()
        assert not out.exists() and not (tmp_path / "evil").exists()

    pack(exported, path, target_prefix="__es__")
    refused("without a target_prefix")
    for name, why in (
        ("../evil/x", "'../evil/x' leads out of the package"),
        ("a\\..\\..\\x", "leads out of the package"),
        ("/etc/evil", "leads out of the package"),
        ("metadata.json", "2 files"),
    ):
        pack(exported, path)
        with zipfile.ZipFile(path, "a") as file:
            file.writestr(name, "{}")
        refused(why)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("metadata.json", "{}")
        file.writestr("bpe.model", "#version: 0.2\na b\n")
    refused("packages with a bpe.model need the rules of Moses")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:  # a bomb
        for name in ("metadata.json", "sentencepiece.model"):
            file.writestr(name, "{}")
        file.writestr("model/model.bin", bytes(100 << 20))
    refused("'model/model.bin' is 104,857,600 bytes from")
    pack(exported, path, zipfile.ZIP_LZMA)
    refused("by another method than deflate")
    path.write_bytes(b"PK")
    refused("not a zip archive")


def test_damaged_folders_and_packages_end_in_one_line_and_no_file(exported, tmp_path):
    noise, num_refused, out = random.Random(5), 0, tmp_path / "out.regard"
    package = pack(exported, tmp_path / "a.argosmodel", zipfile.ZIP_STORED)
    names = ["model.bin", "config.json", "source_vocabulary.json", "source.spm"]
    wholes = {path: path.read_bytes() for path in (package, *(exported / name for name in names))}
    for _ in range(150):
        path = noise.choice([package, *(exported / name for name in names), exported / "model.bin"])
        whole = wholes[path]
        data = bytearray(whole[: noise.randrange(len(whole))] if noise.random() < 0.2 else whole)
        for _ in range(noise.randrange(1, 6)):
            at = noise.randrange(max(1, min(len(data), noise.choice((40, 3000, 1 << 30)))))
            data[at : at + noise.randrange(2)] = noise.randbytes(noise.randrange(3))
        path.write_bytes(data)
        try:
            import_model(package if path == package else exported, out)
        except RegardError as error:
            num_refused += 1
            assert "\n" not in str(error) and not out.exists()
        out.unlink(missing_ok=True)
        path.write_bytes(whole)
    assert num_refused > 75
