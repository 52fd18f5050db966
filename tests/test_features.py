"""Feature vectors as sources: read from files, trained on, captioned, shown and evaluated."""

import io
import json
import pickle
import random
import tracemalloc
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from regard.contract import Features, num_source_tokens, source_batch
from regard.corpus.batches import Batches, Share
from regard.corpus.clean import clean
from regard.corpus.features import feature_rows, holds_features, read_features
from regard.corpus.input_file import InputFile
from regard.corpus.inspect import inspect
from regard.corpus.read import open_corpus
from regard.corpus.split import split_off
from regard.corpus.store import build_store
from regard.errors import ConfigError, CorpusError, OutputError, RegardError, SourceError, UnequalError
from regard.options.text import BatchOptions, WordOptions
from regard.text.tokenizer import TokenizerPair
from regard.vocabulary import PAD

WIDTH = 4
RAGGED = [np.arange(12, dtype="f4").reshape(3, WIDTH), np.ones((1, WIDTH), "f4"), -np.ones((2, WIDTH), "f4")]
EQUAL = np.arange(24, dtype="f4").reshape(2, 3, WIDTH)


def vectors_of(path):
    return [features.vectors_SF for features in read_features(path)]


def assert_same(found, wanted):
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == np.float32
        np.testing.assert_array_equal(one, other)


def npz(path, *arrays, **named):
    np.savez(path, *arrays, **named)
    return path


def jsonl(path, items, **more):
    rows = [
        {"features": item.tolist()} | {key: values[n] for key, values in more.items()}
        for n, item in enumerate(items)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def parquet(path, items, **more):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as pq

    pq.write_table(pyarrow.table({"features": [item.tolist() for item in items], **more}), path)
    return path


# Reading


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", ">f4", "i2", "u1"])
def test_an_array_of_items_is_read_whatever_its_numbers(tmp_path, kind):
    assert_same(vectors_of(npz(tmp_path / "a.npz", np.abs(EQUAL).astype(kind))), EQUAL)


def test_items_of_different_lengths_are_read_in_the_order_they_were_saved(tmp_path):
    many = [np.full((1 + n % 3, WIDTH), n, "f4") for n in range(12)]  # arr_10 comes after arr_9
    assert_same(vectors_of(npz(tmp_path / "a.npz", *many)), many)
    np.savez_compressed(tmp_path / "b.npz", *many)
    assert_same(vectors_of(tmp_path / "b.npz"), many)


@pytest.mark.parametrize("write", [jsonl, parquet])
def test_lines_and_tables_give_the_same_items(tmp_path, write):
    ending = write.__name__
    assert_same(vectors_of(write(tmp_path / f"a.{ending}", RAGGED)), RAGGED)


@pytest.mark.parametrize("ending", ["npz", "jsonl", "parquet"])
def test_positions_have_names_or_numbers(tmp_path, ending):
    names = ["top left", "", "centre"]
    path = tmp_path / f"a.{ending}"
    if ending == "npz":
        npz(path, EQUAL, names=np.array(names))
    else:
        {"jsonl": jsonl, "parquet": parquet}[ending](path, EQUAL, names=[names, names])
    first, _ = read_features(path)
    assert first.names == ("top_left", "_", "centre") and first.text == "top_left _ centre"
    assert Features(EQUAL[0]).text == "1 2 3"


def test_what_holds_features_is_told_by_its_first_record(tmp_path):
    assert holds_features(npz(tmp_path / "a.npz", EQUAL)) and holds_features(
        jsonl(tmp_path / "a.jsonl", RAGGED)
    )
    (tmp_path / "b.jsonl").write_text('{"fr": "un", "en": "one"}\n')
    (tmp_path / "c.fr").write_text("un\n")
    (tmp_path / "d.jsonl").write_text("no JSON\n")
    assert not any(holds_features(tmp_path / name) for name in ("b.jsonl", "c.fr", "d.jsonl"))


class Harmful:
    def __reduce__(self):
        return exec, ("raise SystemExit('ran')",)


def raw_npz(path, header, data=b""):
    """An archive with an array whose header says anything."""
    text = repr(header).encode() + b"\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data)
    return path


def header(shape, descr="<f4", fortran_order=False):
    return {"descr": descr, "fortran_order": fortran_order, "shape": shape}


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: npz(path, np.array([Harmful()], dtype=object)), "holds object and no numbers"),
        (lambda path: npz(path, np.array([("a", 1)], dtype="U1,i4")), "no numbers"),
        (lambda path: npz(path, np.asfortranarray(EQUAL[0])), "ascontiguousarray"),
        (lambda path: npz(path, np.ones(3)), r"save one array \(items, positions, width\)"),
        (lambda path: npz(path, EQUAL, EQUAL), "save one array"),
        (lambda path: npz(path, EQUAL, EQUAL[0]), "save one array"),
        (lambda path: npz(path, np.ones((0, 3, 4))), "holds no features"),
        (lambda path: npz(path, np.ones((2, 0, 4))), r"item 1: shape \(0, 4\)"),
        (lambda path: npz(path, np.full((1, 2, 2), np.nan)), "item 1: a feature that is not a finite number"),
        (lambda path: npz(path, np.full((1, 2, 2), 1e300)), "not a finite number"),
        (lambda path: npz(path, np.ones((2, 3)), np.ones((2, 4))), "item 2: vectors of 4 numbers where the first have 3"),
        (lambda path: npz(path, EQUAL, names=np.array(["a"])), "item 1: 1 names for 3 positions"),
        (lambda path: npz(path, EQUAL, names=np.ones(3)), "names: must be an array of texts"),
        (lambda path: path.write_bytes(b"PK\x03\x04 no zip"), "cannot be read as .npz"),
        (lambda path: path.write_bytes(b"\x93NUMPY no zip"), "cannot be read as .npz"),
        (lambda path: raw_npz(path, header((10**6, 10**6))), "at most 16,777,216 numbers"),
        (lambda path: raw_npz(path, header((1, -2, 3))), "numbers are read"),
        (lambda path: raw_npz(path, header((10**15, 2, 2)), b"\0" * 64), "ends before its last item"),
        (lambda path: raw_npz(path, header((1, 2, 2), "|O"), pickle.dumps(Harmful())), "holds object"),
        (lambda path: raw_npz(path, "import os"), "cannot be read as .npz"),
    ],
)  # fmt: skip
def test_what_is_no_archive_of_features_is_one_line(tmp_path, write, message):
    path = tmp_path / "a.npz"
    write(path)
    with pytest.raises(CorpusError, match=message) as caught:
        vectors_of(path)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)


def test_an_archive_cut_anywhere_is_refused(tmp_path):
    stream = io.BytesIO()
    np.savez(stream, EQUAL)
    path = tmp_path / "a.npz"
    for size in range(1, len(stream.getvalue()), 37):
        path.write_bytes(stream.getvalue()[:size])
        with pytest.raises(CorpusError):
            vectors_of(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"features": [[1, 2], [3]]}', "item 2"),
        ('{"features": [["a"]]}', "item 2"),
        ('{"features": 3}', "2: 'features' must be there"),
        ('{"features": [[1, 2, 3, 4]], "names": 5}', "'names' must be a list of texts"),
        ("[]", "2: JSON, but not an object"),
        ("{", "2: not JSON"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, message):
    path = jsonl(tmp_path / "a.jsonl", RAGGED[:1])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(CorpusError, match=message):
        vectors_of(path)


@pytest.mark.parametrize("ending", ["npz", "jsonl", "parquet"])
def test_damage_anywhere_ends_in_features_or_in_our_own_error(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    if ending == "npz":
        np.savez_compressed(path, *RAGGED)
    else:
        {"jsonl": jsonl, "parquet": parquet}[ending](path, RAGGED, en=["a", "b", "c"])
    whole, chance = path.read_bytes(), random.Random(3)
    for _ in range(400):
        content = bytearray(whole)
        for _ in range(chance.choice((1, 1, 3, 10))):
            content[chance.randrange(len(content))] = chance.choice((0, 34, 91, 255, chance.randrange(256)))
        path.write_bytes(content)
        try:
            for features in read_features(path):
                assert np.isfinite(features.vectors_SF).all()
        except CorpusError as error:
            assert str(path) in str(error) and "\n" not in str(error)


def test_memory_does_not_grow_with_the_archive(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, np.zeros((400, 50, 500), "f4"))  # 40 MB of numbers in 40 kB
    tracemalloc.start()
    assert sum(1 for _ in read_features(path)) == 400
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4e6


# Corpora


def captions(number):
    return [f"picture {n % 5} of a thing" for n in range(number)]


@pytest.fixture
def pictures(tmp_path):
    """Sixty pictures in an archive, the last two alike, and a caption for each."""
    rng = np.random.default_rng(1)
    items = rng.normal(size=(60, 3, WIDTH)).astype("f4")
    items[59] = items[58]
    (tmp_path / "captions.en").write_text("".join(f"{text}\n" for text in captions(60)))
    return npz(tmp_path / "pictures.npz", items), tmp_path / "captions.en"


def test_an_archive_and_its_captions_are_a_corpus(pictures):
    corpus = open_corpus(pictures)
    pairs = list(corpus.pairs())
    assert corpus.feature_size == WIDTH and (corpus.source_language, corpus.target_language) == (None, "en")
    assert [pair.target for pair in pairs] == captions(60) and [pair.line for pair in pairs] == list(
        range(1, 61)
    )
    assert_same([pair.features.vectors_SF for pair in pairs], vectors_of(pictures[0]))
    keys = [pair.source for pair in pairs]
    assert keys[58] == keys[59] and len(set(keys)) == 59 and all(key.isalpha() for key in keys)


@pytest.mark.parametrize("write", [jsonl, parquet])
@pytest.mark.parametrize(("column", "language"), [("en", "en"), ("target", None), ("caption", None)])
def test_one_file_may_hold_both_sides(tmp_path, write, column, language):
    path = write(tmp_path / f"a.{write.__name__}", RAGGED, **{column: ["a", "b", "c"]})
    corpus = open_corpus([path])
    assert corpus.target_language == language
    assert [(pair.target, len(pair.features.vectors_SF)) for pair in corpus.pairs()] == [
        ("a", 3),
        ("b", 1),
        ("c", 2),
    ]


def test_sides_that_do_not_fit_are_named(tmp_path, pictures):
    archive, texts = pictures
    texts.write_text("".join(f"{text}\n" for text in captions(61)))
    with pytest.raises(UnequalError, match=r"pictures.npz has 60 items and .*captions.en has 61 lines"):
        list(open_corpus(pictures).pairs())
    with pytest.raises(CorpusError, match="features without texts; name a second file"):
        open_corpus([archive])
    with pytest.raises(CorpusError, match="features have no language, and 'fr' was given"):
        open_corpus(pictures, "fr", "en")
    two = jsonl(tmp_path / "two.jsonl", RAGGED, en=list("abc"), de=list("abc"))
    with pytest.raises(CorpusError, match="several fields could be the texts"):
        open_corpus([two])


def test_only_the_captions_are_checked(pictures):
    archive, texts = pictures
    lines = captions(60)
    lines[3], lines[4], lines[59] = "", "garÃ§on here", lines[58]
    texts.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    report = inspect(open_corpus(pictures))
    assert {problem.rule: problem.lines for problem in report.problems} == {
        "empty": (4,), "mojibake": (5,), "duplicate": (60,),
    }  # fmt: skip
    assert report.num_source_words == 0 and not report.unrelated
    with pytest.raises(OutputError, match="a clean copy of feature vectors cannot be written"):
        clean(open_corpus(pictures), report, archive.with_name("clean"))


def test_a_picture_is_validated_on_or_trained_on_and_a_caption_may_be_both(pictures):
    pairs = list(open_corpus(pictures).pairs())
    split = split_off([lambda: iter(pairs)], 10, 1)
    kept = list(split.keep(pairs))
    assert not {pair.source for pair in split.validation} & {pair.source for pair in kept}
    assert {pair.target for pair in split.validation} & {pair.target for pair in kept}
    assert len(kept) + len(split.validation) >= 59


@pytest.fixture
def store(tmp_path):
    items = [np.full((1 + n % 4, WIDTH), n, "f4") for n in range(30)]
    (tmp_path / "a.en").write_text("".join(f"number {n}\n" for n in range(30)))
    corpus = open_corpus([npz(tmp_path / "a.npz", *items), tmp_path / "a.en"])
    tokenizers = TokenizerPair.learn(None, [pair.target for pair in corpus.pairs()], WordOptions(joint=False))
    assert tokenizers.source is tokenizers.target
    return build_store(corpus.pairs(), tokenizers, tmp_path / "store", feature_size=WIDTH), items


def test_a_store_gives_back_every_vector(store):
    stored, items = store
    rows = np.array([7, 0, 3, 29])
    assert_same(stored.source.fetch(rows).rows(), [items[row] for row in rows])
    assert stored.source.num_tokens(rows).tolist() == [len(items[row]) for row in rows]  # no `</s>`
    assert stored.target.num_tokens(rows).tolist() == [3] * 4


def test_batches_hold_the_vectors_of_their_pairs(store):
    stored, items = store
    batches = Batches([Share(stored)], BatchOptions(batch_tokens=20, max_tokens=4), seed=1)
    seen = []
    for _, (_, batch) in zip(range(batches.num_batches(0)), batches.iterate(), strict=False):
        for row, pair in enumerate(batch.pairs_B.tolist()):
            real = batch.source_BS[row] != PAD
            np.testing.assert_array_equal(batch.features_BSF[row][real], items[pair])
            assert not batch.features_BSF[row][~real].any()
            seen.append(pair)
    assert sorted(seen) == list(range(30))


def test_vectors_of_different_widths_are_not_mixed(store, tmp_path):
    stored, _ = store
    (tmp_path / "b.en").write_text("number 1\n")
    other = open_corpus([npz(tmp_path / "b.npz", np.ones((1, 2, 3))), tmp_path / "b.en"])
    tokenizers = TokenizerPair.learn(None, [f"number {n}" for n in range(30)], WordOptions(joint=False))
    narrow = build_store(other.pairs(), tokenizers, tmp_path / "narrow", feature_size=3)
    with pytest.raises(ConfigError, match="features of different widths"):
        Batches([Share(stored), Share(narrow)], BatchOptions(), seed=1)


def test_ids_end_in_a_sign_and_features_do_not():
    ids, vectors = np.array([300, 301]), np.ones((2, WIDTH), "f4")
    assert num_source_tokens(ids) == 3 and num_source_tokens(vectors) == 2
    assert source_batch([ids], None, np.arange(1)).source_BS.shape == (1, 3)
    assert source_batch([vectors], None, np.arange(1)).features_BSF.shape == (1, 2, WIDTH)


@pytest.mark.parametrize(
    ("vectors", "names", "message"),
    [
        (np.ones(3), (), "instead of"),
        (np.ones((0, 3)), (), "instead of"),
        (np.full((1, 1), np.inf), (), "not a finite number"),
        (np.ones((2, 2)), ("a",), "1 names for 2 positions"),
    ],
)
def test_features_that_are_none_are_refused(vectors, names, message):
    with pytest.raises(SourceError, match=message):
        Features(vectors, names)


# Training


torch = pytest.importorskip("torch", reason="training needs torch")

from test_training import FAMILIES, assert_same_end, call, run  # noqa: E402

from regard.loaded import Loaded  # noqa: E402
from regard.modelfile import load_model, save_model  # noqa: E402
from regard.options.model import FeatureSource  # noqa: E402
from regard.trace.make import Tracer  # noqa: E402
from regard.training.request import CorpusFiles, TrainRequest, VectorFiles  # noqa: E402
from regard.translate.translator import Translator  # noqa: E402

WORDS = ("red", "green", "blue")


def colours(number, seed=1):
    """Pictures whose regions are one of three colours, and captions that name them in order."""
    rng = np.random.default_rng(seed)
    looks = np.eye(3, WIDTH, dtype="f4")
    seen = [rng.integers(0, 3, rng.integers(1, 4)) for _ in range(number)]
    items = [looks[row] + 0.1 * rng.normal(size=(len(row), WIDTH)).astype("f4") for row in seen]
    return items, [" ".join(WORDS[one] for one in row) for row in seen]


@pytest.fixture(scope="module")
def coloured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("coloured")
    items, texts = colours(120)
    (folder / "captions.en").write_text("".join(f"{text}\n" for text in texts))
    return npz(folder / "pictures.npz", *items), folder / "captions.en"


def request_for(corpus, out, family="transformer", steps=8, options=None, **more):
    preset, model = FAMILIES[family]
    sections = {
        "tokenizer": {"kind": "word", "vocab_size": 300},
        "batch": {"batch_tokens": 60},
        "model": model,
        "train": {"steps": steps, "valid_steps": 4},
    }
    for name, section in (options or {}).items():
        sections[name] = sections[name] | section
    return TrainRequest((CorpusFiles(corpus),), out, preset=preset, options=sections, **more)


@pytest.mark.parametrize("family", ["transformer", "bahdanau", "luong", "sutskever"])
def test_captions_are_trained_on_and_a_resumed_run_is_the_run_never_stopped(coloured, tmp_path, family):
    whole, broken = (request_for(coloured, tmp_path / name, family) for name in ("a.regard", "b.regard"))
    trained, display = run(whole)
    for stop in (2, 6):
        with pytest.raises(KeyboardInterrupt):
            run(broken, end_at=stop)
    run(broken)
    assert_same_end(whole, broken)
    model = load_model(whole.out)
    assert model.options.source == FeatureSource(feature_size=WIDTH)
    assert model.weights["source.W_f"].shape[1] == WIDTH and "source.weight" not in model.weights
    assert model.split_above is None and model.source_language is None and model.target_language == "en"
    assert {one.source for one, _ in trained.samples} <= {"1", "1 2", "1 2 3"}
    assert len(display.validations) == 2


def test_every_way_to_learn_works_on_features(coloured, tmp_path):
    options = {
        "train": {"r_drop": 1.0, "accumulate": 2, "subword_sampling": 0.3},
        "tokenizer": {"kind": "bpe", "vocab_size": 280},
    }
    run(request_for(coloured, tmp_path / "m.regard", steps=3, options=options))
    target = tmp_path / "v.vec"
    target.write_text("red " + " ".join(["0.5"] * 8) + "\n")
    files = VectorFiles(target=target, freeze=True)
    run(request_for(coloured, tmp_path / "n.regard", steps=3, vectors=files))
    assert (load_model(tmp_path / "n.regard").weights["target.weight"] == 0.5).all(1).sum() == 1


def test_training_goes_on_from_a_model_that_reads_features(coloured, tmp_path):
    first = request_for(coloured, tmp_path / "a.regard", steps=2)
    run(first)
    more = replace(
        first, out=tmp_path / "b.regard", start=first.out, preset=None, options={"train": {"steps": 2}}
    )
    items, texts = colours(20, seed=9)
    (tmp_path / "valid.en").write_text("".join(f"{text}\n" for text in texts))
    run(replace(more, validation=(npz(tmp_path / "valid.npz", *items), tmp_path / "valid.en")))
    data = json.loads((tmp_path / "b.run" / "data" / "data.json").read_text())
    assert sorted(target for _, target in data["validation"]) == sorted(texts)
    assert load_model(tmp_path / "b.regard").card["start"]["card"] == load_model(first.out).card


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"options": {"train": {"guidance": 0.1}}}, "features have none"),
        ({"options": {"model": {"source": {"kind": "features", "feature_size": 9}}}}, "reads feature vectors of 9 numbers"),
        ({"options": {"model": {"source": "tokens", "tie": "target"}}}, "reads text .* the corpus has feature vectors of 4 numbers"),
        ({"vectors": True}, "the source of this model has no words"),
    ],
)  # fmt: skip
def test_what_features_do_not_have_is_refused_before_they_are_read(coloured, tmp_path, changes, message):
    if "vectors" in changes:
        (tmp_path / "v.vec").write_text("red 1 2\n")
        changes = {"vectors": VectorFiles(source=tmp_path / "v.vec")}
    with pytest.raises(ConfigError, match=message):
        run(request_for(coloured, tmp_path / "m.regard", **changes))
    assert not list(tmp_path.glob("m.*"))


def test_texts_and_features_are_not_mixed(coloured, corpus, tmp_path):
    request = request_for(coloured, tmp_path / "m.regard")
    for mixed in (
        replace(request, corpora=(*request.corpora, CorpusFiles(corpus))),
        replace(request, validation=corpus),
    ):
        with pytest.raises(
            CorpusError, match="has text, where the first corpus has feature vectors of 4 numbers"
        ):
            run(mixed)
    run(request_for(coloured, tmp_path / "a.regard", steps=1))
    with pytest.raises(RegardError, match=r"reads feature vectors of 4 numbers .* the corpus has text"):
        run(TrainRequest((CorpusFiles(corpus),), tmp_path / "b.regard", start=tmp_path / "a.regard"))


# Using


@pytest.fixture(scope="module", params=["transformer", "bahdanau"])
def captioner(request, coloured, tmp_path_factory):
    out = tmp_path_factory.mktemp("captioner") / "m.regard"
    options = {"model": {"hidden_size": 32, "embedding_size": 32}, "train": {"optimiser": {"rate": 0.01}}}
    steps = 150
    if request.param == "transformer":
        layers = {"num_encoder_layers": 2, "num_decoder_layers": 2, "feed_forward_size": 64}
        still = {"dropout": 0.0, "attention_dropout": 0.0, "feed_forward_dropout": 0.0}
        options = {"model": {"hidden_size": 32, **layers, **still}, "train": {"optimiser": {"rate": 0.003}}}
        steps = 400
    options["train"] |= {"valid_steps": 100}
    run(request_for(coloured, out, request.param, steps, options))
    return out


def test_colours_are_named_in_order_and_the_model_looks_at_them(captioner):
    items, texts = colours(60, seed=2)
    translations = Translator.open(captioner).translate([Features(item) for item in items])
    assert np.mean([one.text == text for one, text in zip(translations, texts, strict=True)]) > 0.8
    longest = translations[texts.index(max(texts, key=len))]
    assert longest.source_pieces == ("1", "2", "3") and longest.attention_TS.shape[1] == 3
    assert longest.parts[0].source_spans == ((0, 1), (2, 3), (4, 5)) and not longest.flags
    np.testing.assert_allclose(longest.attention_TS.sum(1), 1, atol=1e-5)
    assert longest.to_json()["source"] == "1 2 3" and "<svg" in longest._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize("search", [{}, {"beam_size": 1}, {"kind": "sample", "seed": 3}], ids=str)
def test_a_picture_is_captioned_the_same_alone_and_in_company(captioner, search):
    items = [Features(item) for item in colours(20, seed=3)[0]]
    translator = Translator.open(captioner)
    together = [one.text for one in translator.translate(items, **search)]
    assert together == [translator.translate([one], **search)[0].text for one in items]
    assert together == [one.text for one in translator.stream(iter(items), **search)]


def test_a_given_caption_is_scored_as_it_was_said(captioner):
    items, _ = colours(5, seed=4)
    sources = [Features(item) for item in items]
    translator = Translator.open(captioner)
    said = translator.translate(sources)
    forced = translator.force(sources, [one.text for one in said])
    for one, other in zip(said, forced, strict=True):
        assert other.text == one.text and other.log_prob == pytest.approx(one.log_prob, abs=1e-4)
        np.testing.assert_allclose(other.attention_TS, one.attention_TS, atol=1e-4)


def test_a_model_is_given_what_it_reads(captioner):
    translator = Translator.open(captioner)
    with pytest.raises(SourceError, match="reads feature vectors of 4 numbers and is given text"):
        translator.translate(["red"])
    with pytest.raises(SourceError, match="and is given feature vectors of 3 numbers"):
        translator.translate([Features(np.ones((2, 3)))])
    with pytest.raises(SourceError, match="this model reads text and is given feature vectors"):
        Translator.open("fr-en").translate([Features(np.ones((2, 3)))])


def test_a_trace_shows_the_caption_that_translate_gives(captioner):
    (item,), _ = colours(1, seed=5)
    source = Features(np.tile(item, (3, 1))[:3], ("a", "b", "c"))
    (translation,) = Translator.open(captioner).translate([source])
    tracer = Tracer.open(captioner)
    trace = tracer.trace(source, effects=True)
    assert trace.target.text == translation.text and trace.source.text == "a b c"
    assert [piece.piece for piece in trace.source.pieces] == ["a", "b", "c"]
    assert np.shape(trace.effects.erasure)[1] == 3
    other = Features(source.vectors_SF[::-1], source.names)
    assert tracer.trace(other).id != trace.id == tracer.trace(source, effects=True).id
    assert tracer.trace(source, raw=True).target.text == translation.text
    assert tracer.trace(source, force="red green").request.mode == "forced"


def test_two_captioners_work_together(captioner, tmp_path):
    model = load_model(captioner)
    save_model(tmp_path / "other.regard", model)
    both = Translator(Loaded.open(captioner, tmp_path / "other.regard"))
    source = Features(colours(1, seed=6)[0][0])
    assert both.translate([source])[0].text == Translator.open(captioner).translate([source])[0].text


def test_an_evaluation_scores_captions(captioner, tmp_path):
    from regard.evaluation.run import EvaluationOptions, evaluate
    from regard.evaluation.testset import read_test

    items, texts = colours(40, seed=7)
    (tmp_path / "test.en").write_text("".join(f"{text}\n" for text in texts))
    test = read_test([npz(tmp_path / "test.npz", *items), tmp_path / "test.en"])
    assert set(test.sources) == {"1", "1 2", "1 2 3"}
    found = evaluate([captioner], test, EvaluationOptions(num_resamples=10, num_trials=10, heat_maps=True))
    (system,) = found.systems
    said = Translator.open(captioner).translate([Features(item) for item in items])
    assert list(system.texts) == [one.text for one in said] and system.likelihood.perplexity < 10


@pytest.mark.slow
def test_the_commands_take_features(coloured, tmp_path):
    import subprocess
    import sys

    def regard(*words):
        done = subprocess.run(
            [sys.executable, "-m", "regard", *map(str, words)], cwd=tmp_path, capture_output=True, text=True
        )
        return done.returncode, done.stdout, done.stderr

    archive, texts = coloured
    code, said = call(
        archive, texts, "--out", "m.regard", "--steps", "3", "--set", "model.hidden_size=8", folder=tmp_path
    )
    assert code == 0, said
    num_items = len(texts.read_text().splitlines())
    for words in ((archive,), ("--file", archive)):
        code, out, said = regard("translate", "m.regard", *words)
        assert code == 0 and out.count("\n") == num_items, said
    code, out, said = regard("translate", "m.regard", archive, "--given", texts, "--jsonl")
    assert code == 0 and json.loads(out.splitlines()[0])["source"].startswith("1"), said
    code, out, said = regard("show", "m.regard", archive, "--item", "2", "--html", "look.html")
    assert code == 0 and (tmp_path / "look.html").stat().st_size > 10_000, said
    code, out, said = regard("evaluate", "m.regard", archive, texts)
    assert code == 0 and "chrF2" in out, said
    code, out, said = regard("inspect", archive, texts)
    assert code == 0 and "pairs" in out, said
    for words, message in (
        (("show", "m.regard", archive, "--item", "999"), "has no item 999"),
        (("show", "m.regard", "red", "--item", "1"), "--item 1 chooses from a file of features"),
        (("translate", "m.regard", "red"), "reads feature vectors of 4 numbers and is given text"),
        (("train", archive, "--out", "n.regard"), "features without texts"),
    ):
        code, out, said = regard(*words)
        assert code == 2 and message in said and said.count("\n") == 1, said


def test_rows_of_an_open_file_are_counted(coloured):
    with InputFile(coloured[0]) as file:
        assert [row.number for row in feature_rows(file)][:3] == [1, 2, 3]
