"""Models of the package: named wherever a file can be, and never in the way of one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from small import random_weights, shrink

import regard
import regard.starter
from regard.cli import run
from regard.errors import ModelFileError
from regard.model.presets import preset
from regard.modelfile import ModelFile, load_model, save_model
from regard.options.text import SubwordOptions
from regard.sample import read_sample
from regard.starter import bundled, default_model, locate, names_model
from regard.text.tokenizer import TokenizerPair

PAIRS = read_sample(60)
TOKENIZERS = TokenizerPair.learn(
    [pair.source for pair in PAIRS], [pair.target for pair in PAIRS], SubwordOptions(vocab_size=500)
)
NAMES = {
    "fr-en": "regard-small",
    "en-fr": "regard-small",
    "fr-en-rnn": "regard-rnn",
    "fr-en-fixed": "cho2014",
}


def save(path, name, seed=0):
    options = shrink(preset(name))
    if options.kind == "transformer":
        options = options.model_copy(update={"tie": "all"})
    size = TOKENIZERS.source.vocab_size
    weights = random_weights(options, size, size, seed)
    scores = {"bleu": 12.3, "chrf": 45.6, "signatures": {"bleu": "nrefs:1|tok:13a"}}
    card = {
        "preset": name,
        "tests": {"Tatoeba": scores, "Europarl": scores},
        "credits": ["somebody", "another"],
        "limits": "few",
        "recipe": "python make.py",
    }
    save_model(path, ModelFile(options, weights, TOKENIZERS, "fr", "en", {}, card), packed=True)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with three small models, and an empty folder to work in."""
    folder, here = tmp_path / "package", tmp_path / "here"
    folder.mkdir()
    here.mkdir()
    for name, design in NAMES.items():
        save(folder / f"{name}.regard", design)
    monkeypatch.setenv("REGARD_MODELS", str(folder))
    monkeypatch.chdir(here)
    return folder


@pytest.fixture
def call(capsysbinary):
    def call(*words):
        code = run(list(map(str, words)))
        out, err = capsysbinary.readouterr()
        return code, out.decode(), err.decode()

    return call


def test_names_stand_for_files_everywhere(package, call):
    assert list(bundled()) == sorted(NAMES)
    code, by_default, _ = call("translate", "Nous mangeons.")
    assert code == 0 and by_default == call("translate", "fr-en", "Nous mangeons.")[1]
    assert by_default == call("translate", package / "fr-en.regard", "Nous mangeons.")[1]
    assert by_default.strip() == regard.load("fr-en").translate(["Nous mangeons."])[0].text
    code, out, _ = call("show", "fr-en-fixed", "fr-en-rnn", "Nous mangeons.")
    assert code == 0 and "fr-en-rnn" in out and "fr-en-fixed" in out
    assert regard.show("fr-en-rnn", "Nous mangeons.").model.label == "fr-en-rnn"
    Path("a.fr").write_text("Nous mangeons.\n")
    Path("a.en").write_text("We eat.\n")
    assert call("align", "fr-en-rnn", "a.fr", "a.en")[0] == 0
    assert call("evaluate", "fr-en", "fr-en-rnn", "a.fr", "a.en")[0] == 0
    assert call("translate", "fr-en", "Nous mangeons.", "--with", "fr-en-fixed")[0] == 0
    back = replace(load_model(Path("fr-en")), source_language="en", target_language="fr")
    save_model(package / "en-fr.regard", back)
    assert call("align", "fr-en", "a.fr", "a.en", "--back", "en-fr")[0] == 0
    assert call("page", "fr-en-rnn", "--out", "page.html")[0] == 0
    assert "only imported models" in call("export", "fr-en", "--to", "ctranslate2", "--out", "out")[2]


def test_info_lists_them_and_tells_of_one(package, call):
    code, out, _ = call("info")
    assert code == 0 and [line.split()[0] for line in out.splitlines()] == sorted(NAMES)
    assert "fr to en" in out and "regard-rnn" in out
    code, out, _ = call("info", "fr-en")
    assert code == 0 and str(package / "fr-en.regard") in out
    for told in ("Tatoeba: BLEU 12.3, chrF 45.6", "credits      somebody", "another", "limits       few"):
        assert told in out
    assert out.count("nrefs:1|tok:13a") == 1 and "recipe       python make.py" in out
    code, out, _ = call("info", "--json")
    assert code == 0 and list(json.loads(out)) == sorted(NAMES)


def test_models_lists_what_has_a_name_and_how_to_get_others(package, call, monkeypatch):
    (package / "broken.regard").write_bytes(b"x")
    model = load_model(package / "fr-en.regard")
    save_model(package / "my-own.regard", replace(model, card={"validation": {"bleu": 3.25}}))
    save_model(package / "odd.regard", replace(model, card={"tests": {"A": 3}, "validation": []}))
    code, out, _ = call("models")
    assert code == 0 and out.startswith(f"in {package}, the folder of REGARD_MODELS:\n")
    rows = {line.split()[0]: line for line in out.splitlines() if ";" in line}
    assert rows["fr-en"].endswith("MB; Europarl: BLEU 12.3") and "fr to en; " in rows["fr-en"]
    assert rows["my-own"].endswith("validation: BLEU 3.2") and rows["odd"].endswith("MB")
    assert "is not a regard model" in rows["broken"] and "regard import " in out
    assert call("info")[1].splitlines() == out.splitlines()[1 : len(NAMES) + 4]
    found = {one["name"]: one for one in json.loads(call("models", "--json")[1])}
    assert found.keys() == {*NAMES, "my-own", "odd", "broken"} and "error" in found["broken"]
    assert found["fr-en"]["source_language"] == "fr" and found["fr-en"]["score"] == "Europarl: BLEU 12.3"
    monkeypatch.setenv("REGARD_MODELS", "nowhere")
    assert "no model files" in call("models")[1] and call("models", "--json")[1] == "[]\n"
    monkeypatch.delenv("REGARD_MODELS")
    assert call("models")[1].startswith("bundled:\n")


def test_info_shows_scores_with_and_without_signatures(package, call):
    model = load_model(package / "fr-en.regard")
    tests = {
        "A": {"bleu": 1.0, "chrf": 2.0, "signatures": {"bleu": "tok:13a"}},
        "B": {"bleu": 3.0, "chrf": 4.0},
        "C": {"bleu": 5.0, "chrf": 6.0, "signatures": {"bleu": "tok:13a"}},
    }
    save_model(package / "mine.regard", replace(model, card={"tests": tests}))
    _, out, _ = call("info", "mine")
    rows = [line[13:] for line in out.splitlines()]
    first = rows.index("A: BLEU 1.0, chrF 2.0")
    assert rows[first : first + 4] == [
        "A: BLEU 1.0, chrF 2.0",
        "C: BLEU 5.0, chrF 6.0",
        "tok:13a",
        "B: BLEU 3.0, chrF 4.0",
    ]


def test_info_credits_what_a_model_began_with(package, call):
    first = load_model(package / "fr-en.regard")
    middle = {
        "name": "fr-en",
        "training": {"step": 1200, "seconds": 600.0},
        "credits": ["somebody", "another"],
    }
    card = {"start": {"sha256": "0", "card": middle}, "training": {"step": 50, "seconds": 60.0}}
    save_model(package / "mine.regard", replace(first, card=card))
    code, out, _ = call("info", "mine")
    assert code == 0 and "training     50 updates, 1 minutes" in out
    assert "started from fr-en: 1,200 updates, 10 minutes" in out and "credits      somebody" in out


def test_a_file_of_the_user_comes_first(package, call):
    save(package.parent / "here" / "fr-en", "regard-small", seed=5)
    assert locate(Path("fr-en")) == Path("fr-en")
    assert call("translate", "fr-en", "Nous mangeons.")[1] != call("translate", "Nous mangeons.")[1]


def test_a_folder_of_the_same_name_is_not_in_the_way(package, call):
    Path("fr-en").mkdir()
    assert call("translate", "fr-en", "Nous mangeons.")[0] == 0
    with pytest.raises(ModelFileError):
        load_model(Path("x" * 300))


def test_a_missing_file_is_not_taken_for_a_model_of_the_package(package, call):
    code, _, err = call("translate", "fr-en.regard", "Nous mangeons.")
    assert code == 2 and "fr-en.regard: cannot be read" in err
    code, _, err = call("info", "ko-en")
    assert code == 2 and "ko-en: cannot be read" in err
    assert not names_model("ko-en") and not names_model("Nous mangeons." * 400)
    assert not names_model("enfer") and not names_model("frein")
    for word in ("de-en", "EN-FR", "xx_yy"):
        with pytest.raises(ModelFileError, match="there is no model"):
            names_model(word, has_more=True)
        assert not names_model(word)


@pytest.mark.parametrize("command", ["translate", "show"])
def test_a_mistyped_name_is_not_taken_for_a_text(package, call, command):
    code, out, err = call(command, "fr-enn", "Nous mangeons.")
    assert code == 2 and not out and "'fr-enn'" in err and "did you mean 'fr-en'?" in err
    assert call(command, "mangeons")[0] == 0


def test_a_package_without_models_says_so(package, call):
    for path in package.iterdir():
        path.unlink()
    with pytest.raises(ModelFileError, match="has no bundled models"):
        default_model()
    assert call("translate", "Nous mangeons.")[0] == 2
    assert call("info")[:2] == (0, "this installation has no bundled models\n")
