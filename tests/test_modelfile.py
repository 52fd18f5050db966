"""One file is the model: what is loaded is what was saved, and nothing damaged is ever loaded."""

import hashlib
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small import pairs_of, random_weights, shrink

from regard.errors import ModelFileError, OutputError
from regard.model.presets import PRESETS
from regard.modelfile import FORMAT, ModelFile, load_model, save_model
from regard.options.model import FeatureSource, RecurrentOptions, TransformerOptions
from regard.options.text import CharacterOptions, WordOptions
from regard.runtime.shapes import weight_shapes
from regard.text.tokenizer import TokenizerPair
from regard.translate.translator import Translator

SOURCES, TARGETS = ["ab ba", "abba", "a b"], ["cd dc", "cddc", "c d"]
JOINT = TokenizerPair.learn(SOURCES, TARGETS, CharacterOptions(joint=True))
APART = TokenizerPair.learn(SOURCES, TARGETS, WordOptions(vocab_size=265))


SMALL = shrink(PRESETS["regard-small"])


def model_of(options=SMALL, tokenizers=JOINT):
    weights = random_weights(options, tokenizers.source.vocab_size, tokenizers.target.vocab_size)
    config = {"seed": 1, "train": {"rate": 0.25, "note": "É"}}
    return ModelFile(options, weights, tokenizers, "fr", None, config, {"pairs": 3, "bleu": None})


def sealed(path, tensors, about):
    """Write a file whose hashes are right, whatever is in it."""
    parts = {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in tensors.items()}
    about = about | {"parts": parts, "header_sha256": "0" * 64}
    data = safetensors.numpy.save(tensors, {"regard": json.dumps(about)})
    end = 8 + int.from_bytes(data[:8], "little")
    path.write_bytes(
        data[:end].replace(b"0" * 64, hashlib.sha256(data[:end]).hexdigest().encode()) + data[end:]
    )


def taken_apart(path):
    """The tensors and the description of a file, read as any other program would."""
    with safetensors.safe_open(path, framework="numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, json.loads(file.metadata()["regard"])  # noqa: SIM118


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("tokenizers", [JOINT, APART], ids=["joint", "apart"])
def test_what_is_loaded_is_what_was_saved(tmp_path, name, tokenizers):
    options = shrink(PRESETS[name])
    if options.tie == "all" and tokenizers is APART:
        options = options.model_copy(update={"tie": "target"})
    saved, path = model_of(options, tokenizers), tmp_path / "model.regard"
    save_model(path, saved)
    loaded = load_model(path)
    assert loaded.options == saved.options
    assert loaded.weights.keys() == saved.weights.keys()
    assert all((loaded.weights[name] == saved.weights[name]).all() for name in saved.weights)
    assert loaded.tokenizers.source.sha256 == tokenizers.source.sha256
    assert loaded.tokenizers.target.sha256 == tokenizers.target.sha256
    assert (loaded.tokenizers.source is loaded.tokenizers.target) == (tokenizers is JOINT)
    assert (loaded.source_language, loaded.target_language) == ("fr", None)
    assert (loaded.config, loaded.card) == (saved.config, saved.card)


def test_the_same_model_gives_the_same_bytes(tmp_path):
    model = model_of()
    turned_round = {name: model.weights[name] for name in reversed(model.weights)}
    save_model(tmp_path / "a", model)
    save_model(
        tmp_path / "b", replace(model, weights=turned_round, config=dict(reversed(model.config.items())))
    )
    save_model(tmp_path / "c", load_model(tmp_path / "a"))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()


@pytest.mark.parametrize("name", PRESETS)
def test_a_packed_model_is_a_quarter_as_large_and_nearly_the_same(tmp_path, name):
    saved = model_of(shrink(PRESETS[name], hidden_size=64, embedding_size=64, feed_forward_size=64))
    small, large = tmp_path / "small.regard", tmp_path / "large.regard"
    save_model(small, saved, packed=True)
    save_model(large, saved)
    loaded = load_model(small)
    header = 12_000  # names and hashes of all parts, which small models notice
    assert small.stat().st_size < large.stat().st_size / 3.5 + header
    assert loaded.options == saved.options and loaded.weights.keys() == saved.weights.keys()
    for key, weight in saved.weights.items():
        found = loaded.weights[key]
        assert found.dtype == np.float32 and found.shape == weight.shape
        if weight.ndim == 1:
            assert np.array_equal(found, weight)
        else:
            assert (np.abs(found - weight).max(axis=1) <= np.abs(weight).max(axis=1) / 253).all()
    save_model(large, loaded, packed=True)
    again = load_model(large)
    assert all(np.array_equal(array, again.weights[key]) for key, array in loaded.weights.items())


def test_a_row_of_zeros_stays_one_in_a_packed_model(tmp_path):
    saved = model_of()
    name, weight = next((name, weight) for name, weight in saved.weights.items() if weight.ndim == 2)
    weight[1] = 0
    save_model(tmp_path / "m.regard", saved, packed=True)
    assert (load_model(tmp_path / "m.regard").weights[name][1] == 0).all()


def test_bytes_without_a_fitting_scale_are_refused_by_name(tmp_path):
    path = tmp_path / "m.regard"
    save_model(path, model_of(), packed=True)
    tensors, about = taken_apart(path)
    name = next(name for name in tensors if name.startswith("scale."))
    for wrong in (None, tensors[name][:-1], tensors[name].astype(np.float64)):
        changed = {key: array for key, array in tensors.items() if key != name}
        sealed(path, changed if wrong is None else changed | {name: wrong}, about)
        with pytest.raises(ModelFileError, match=f"weight {name.removeprefix('scale.')!r} is int8 of shape"):
            load_model(path)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_what_is_not_a_number_is_neither_loaded_nor_saved(tmp_path, value):
    path, model = tmp_path / "m.regard", model_of()
    save_model(path, model, packed=True)
    tensors, about = taken_apart(path)
    name = next(name for name in tensors if name.startswith("scale."))
    tensors[name][0] = value
    sealed(path, tensors, about)
    with pytest.raises(ModelFileError, match="has values that are not finite"):
        load_model(path)
    model.weights[name.removeprefix("scale.")][0] = value if value != 3e38 else np.nan
    with pytest.raises(ModelFileError, match="has values that are not finite"):
        save_model(tmp_path / "n.regard", model)


def test_a_scale_of_no_weight_is_refused(tmp_path):
    path = tmp_path / "m.regard"
    save_model(path, model_of())
    tensors, about = taken_apart(path)
    sealed(path, tensors | {"scale.bogus": np.ones(2, np.float32)}, about)
    with pytest.raises(ModelFileError, match="a scale of no weight, 'bogus'"):
        load_model(path)


def test_a_flipped_bit_anywhere_is_found(tmp_path):
    """In the length, the header, its padding, a weight or a tokenizer."""
    path = tmp_path / "model.regard"
    options = shrink(PRESETS["regard-small"], hidden_size=2, feed_forward_size=1, num_heads=1)
    one_layer = options.model_copy(update={"num_encoder_layers": 1, "num_decoder_layers": 1})
    save_model(path, model_of(one_layer))
    data = bytearray(path.read_bytes())
    end = 8 + int.from_bytes(data[:8], "little")
    bits = np.random.default_rng(1).integers(0, 8, len(data)).tolist()
    for place in [
        *range(16),
        *range(16, end, 29),
        *range(end - 16, end),
        *range(end, len(data), 101),
        len(data) - 1,
    ]:
        data[place] ^= 1 << bits[place]
        path.write_bytes(data)
        with pytest.raises(ModelFileError, match=r"model\.regard"):
            load_model(path)
        data[place] ^= 1 << bits[place]
    path.write_bytes(data)
    load_model(path)


def test_a_file_cut_short_or_grown_is_found(tmp_path):
    path = tmp_path / "model.regard"
    save_model(path, model_of())
    data = path.read_bytes()
    for end in [*range(12), len(data) // 2, *range(len(data) - 9, len(data))]:
        path.write_bytes(data[:end])
        with pytest.raises(ModelFileError, match="download it again"):
            load_model(path)
    path.write_bytes(data + b" ")
    with pytest.raises(ModelFileError, match="download it again"):
        load_model(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"hello, world, this is text", b"\xff" * 64, b"PK\x03\x04" * 9, (2).to_bytes(8, "little") + b"{}"],
)
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    path = tmp_path / "model.regard"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="is not a regard model"):
        load_model(path)


def test_safetensors_of_others_and_deep_json_are_refused(tmp_path):
    path = tmp_path / "model.regard"
    for metadata in ({}, {"regard": "[" * 100_000}, {"regard": "[]"}, {"regard": '{"format": 1}'}):
        path.write_bytes(safetensors.numpy.save({"x": np.zeros(2, "f4")}, metadata))
        with pytest.raises(ModelFileError, match="is not a regard model"):
            load_model(path)


def test_a_missing_file_or_a_folder_is_one_line(tmp_path):
    for path in (tmp_path / "nowhere.regard", tmp_path):
        with pytest.raises(ModelFileError, match="cannot be read"):
            load_model(path)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        save_model(tmp_path / "file" / "model.regard", model_of())


def test_a_file_of_another_version_says_so(tmp_path):
    path = tmp_path / "model.regard"
    save_model(path, model_of())
    tensors, about = taken_apart(path)
    sealed(path, tensors, about)
    load_model(path)  # the hashes of this test are those of the format
    sealed(path, tensors, about | {"format": "regard-model/2"})
    with pytest.raises(ModelFileError, match=f"'regard-model/2' and this version of regard reads '{FORMAT}'"):
        load_model(path)


def test_a_format_of_others_and_keys_that_stand_twice_are_refused(tmp_path):
    path = tmp_path / "model.regard"
    save_model(path, model_of())
    tensors, about = taken_apart(path)
    sealed(path, tensors, about | {"format": "anything"})
    with pytest.raises(ModelFileError, match="has format 'anything'"):
        load_model(path)
    text = json.dumps(about | {"parts": {}, "header_sha256": "0" * 64})
    data = safetensors.numpy.save(tensors, {"regard": text[:-1] + ', "card": {}}'})
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match="not a regard model, or is damaged"):
        load_model(path)


def test_what_a_file_declares_is_checked_before_any_of_it_is_read(tmp_path):
    """Each of these cost gigabytes or minutes before it was refused."""
    path = tmp_path / "model.regard"
    save_model(path, model_of())
    tensors, about = taken_apart(path)
    forged = {}
    for key in ("num_decoder_layers", "num_encoder_layers"):
        sealed(tmp_path / f"{key}.regard", tensors, about | {"model": about["model"] | {key: 10**9}})
        forged[key] = tmp_path / f"{key}.regard"
    many = {f"k{number}": number for number in range(2_000_000)}
    sealed(tmp_path / "keys.regard", tensors, about | {"card": many})
    sparse = tmp_path / "sparse.regard"
    header = {"weight.x": {"dtype": "F32", "shape": [2**30], "data_offsets": [0, 2**32]}}
    text = json.dumps({"__metadata__": {"regard": json.dumps(about | {"header_sha256": "0" * 64})}} | header)
    start = len(text).to_bytes(8, "little") + text.encode()
    start = start.replace(b"0" * 64, hashlib.sha256(start).hexdigest().encode(), 1)
    with sparse.open("wb") as file:
        file.write(start)
        file.truncate(len(start) + 2**32)
    code = """
import resource, sys
from pathlib import Path
from regard.errors import ModelFileError
from regard.modelfile import load_model
resource.setrlimit(resource.RLIMIT_DATA, (1_000_000_000,) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))  # seconds; beyond, the process is killed and says nothing
for path in sys.argv[1:]:
    try:
        load_model(Path(path))
    except ModelFileError as error:
        print(str(error).count(chr(10)) == 0)
"""
    paths = [*forged.values(), tmp_path / "keys.regard", sparse]
    run = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=False)
    assert (run.stdout.split(), run.stderr) == (["True"] * len(paths), "")


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**12), 10**12), st.floats(), st.text(max_size=5)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_forged_header_is_one_line_or_a_model_that_translates(tmp_path_factory, data):
    """The hashes are recomputed: only the values are wrong."""
    path = tmp_path_factory.mktemp("forged") / "model.regard"
    save_model(path, model_of())
    tensors, about = taken_apart(path)
    section = data.draw(st.sampled_from(["", "model", "reading", "card"]))
    inner = about if not section else about[section]
    if not isinstance(inner, dict):
        inner = {}
    keys = st.sampled_from(sorted(inner)) if inner else st.text(max_size=5)
    changed = inner | {data.draw(keys | st.text(max_size=5)): data.draw(JSON)}
    sealed(path, tensors, changed if not section else about | {section: changed})
    try:
        model = load_model(path)
    except ModelFileError as error:
        assert "\n" not in str(error) and len(str(error)) < 500
    else:
        Translator.of(model).translate(["ab ba"], beam_size=1)


def test_weights_that_are_finite_and_far_too_large_end_in_one_line(tmp_path):
    path = tmp_path / "model.regard"
    model = model_of()
    huge = {name: np.full_like(weight, 3e38) for name, weight in model.weights.items()}
    save_model(path, replace(model, weights=huge))
    for search in ({"beam_size": 1}, {"beam_size": 3}, {"kind": "sample"}):
        with pytest.raises(ModelFileError, match="scores that are not finite"):
            Translator.open(path).translate(["ab ba"], **search)


def test_weights_that_do_not_fit_the_design_are_refused_by_name(tmp_path):
    path = tmp_path / "model.regard"
    save_model(path, model_of())
    tensors, about = taken_apart(path)
    name, key = "decoder_norm.bias", "weight.decoder_norm.bias"
    for wrong, message in [
        (
            {key: tensors[key][:3].copy()},
            r"is float32 of shape \(3,\) and the model has float32 of shape \(8,\)",
        ),
        ({key: tensors[key].astype("f2")}, "is float16"),
        ({"weight.W_x": tensors[key]}, "weight 'W_x'.* no weight of this name"),
    ]:
        sealed(path, tensors | wrong, about)
        with pytest.raises(ModelFileError, match=message):
            load_model(path)
    sealed(path, {one: array for one, array in tensors.items() if one != key}, about)
    with pytest.raises(ModelFileError, match=f"weight '{name}' is missing"):
        load_model(path)


def test_a_tokenizer_or_an_option_that_is_no_such_thing_is_refused(tmp_path):
    path = tmp_path / "model.regard"
    save_model(path, model_of())
    tensors, about = taken_apart(path)
    for changed, other in [
        (tensors | {"tokenizer.source": np.arange(9, dtype=np.uint8)}, about),
        ({name: array for name, array in tensors.items() if name != "tokenizer.source"}, about),
        (tensors, about | {"model": about["model"] | {"hidden_sise": 8}}),
        (tensors, about | {"model": None}),
        (tensors, {name: value for name, value in about.items() if name != "card"}),
    ]:
        sealed(path, changed, other)
        with pytest.raises(ModelFileError, match=r"model\.regard: "):
            load_model(path)


def test_a_model_that_could_not_be_loaded_is_not_saved(tmp_path):
    path, model = tmp_path / "model.regard", model_of()
    with pytest.raises(ModelFileError, match="is missing"):
        save_model(path, replace(model, weights={}))
    with pytest.raises(ModelFileError, match=r"weight 'source\.weight' is float32 of shape"):
        save_model(
            path, replace(model, tokenizers=TokenizerPair.learn(["efghij"], ["k"], CharacterOptions()))
        )
    with pytest.raises(ValueError, match="JSON"):
        save_model(path, replace(model, card={"bleu": float("nan")}))
    assert not list(tmp_path.iterdir())


def test_one_matrix_for_both_sides_needs_one_vocabulary(tmp_path):
    other = TokenizerPair.learn(["efghij"], ["c"], CharacterOptions(joint=False))
    weights = random_weights(SMALL, other.source.vocab_size, other.target.vocab_size)
    with pytest.raises(ModelFileError, match="one matrix for both sides"):
        save_model(tmp_path / "m", replace(model_of(), tokenizers=other, weights=weights))


def test_the_shapes_of_every_design_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    from regard.model import build

    features = TransformerOptions(source=FeatureSource(feature_size=3), hidden_size=8)
    designs = [
        *map(shrink, PRESETS.values()),
        features,
        *pairs_of(RecurrentOptions),
        *pairs_of(TransformerOptions),
    ]
    for options in designs:
        target_vocab = 261 if options.tie == "all" else 262
        family = build.RecurrentModel if options.kind == "recurrent" else build.TransformerModel
        with torch.device("meta"):  # shapes without numbers
            model = family(options, 261, target_vocab)
        right = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
        assert weight_shapes(options, 261, target_vocab) == right, options


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_has_the_bytes_that_safetensors_writes(tmp_path, packed):
    path = tmp_path / "é.regard"
    save_model(path, replace(model_of(tokenizers=APART), card={"by": "Zoë\n\x1f\x7f\u2028"}), packed=packed)
    tensors, _ = taken_apart(path)
    with safetensors.safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    assert path.read_bytes() == safetensors.numpy.save(tensors, metadata)
