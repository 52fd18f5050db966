"""The recipes from end to end, on sentences of the grammar in place of the corpora and for seconds, not hours."""

import gzip
import importlib
import re
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from regard.modelfile import load_model
from regard.sample import read_sample

RECIPES = Path(__file__).parents[1] / "recipes"


@pytest.fixture
def pairs():
    """Sentence pairs, a hundred and fifty at a time, all different."""
    drawn = iter(list(dict.fromkeys((p.source, p.target) for p in read_sample(6000))))
    return lambda num_pairs=150: [next(drawn) for _ in range(num_pairs)]


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def write_sides(path, pairs, ending=""):
    for side, lines in zip(("fr", "en"), zip(*pairs, strict=True), strict=True):
        write(path.with_name(f"{path.name}.{side}{ending}"), lines)


def call(recipe, *words):
    command = [sys.executable, str(RECIPES / recipe), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=800)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_model_of_the_package_is_made_from_corpora_to_card(pairs, tmp_path):
    pytest.importorskip("torch")
    data, runs = tmp_path / "data", tmp_path / "runs"
    for folder in ("tatoeba", "europarl"):
        tom = ("Thomas", "Tom") if folder == "tatoeba" else ("", "")
        train = [tuple(side.replace(*tom) for side in pair) for pair in pairs(900)]
        write_sides(data / folder / "fr-en.train", train, ".gz")
        for part in ("dev", "test"):
            write_sides(data / folder / f"fr-en.{part}", pairs(6))
    for name in ("newstest2013", "flores200.devtest"):
        write_sides(data / "testsets" / name, pairs(4))
    write(data / "manuals" / "help.en-fr.tsv.gz", (f"{english}\t{french}" for french, english in pairs()))
    words = (data, "--runs", runs, "--only", "fr-en", "--share", "0.001")
    done = call("starter.py", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    stages = [line for line in done.stdout.splitlines() if line.startswith("regard train")]
    assert len(stages) == 4
    for number, stage in enumerate(stages[1:], 1):
        assert f"--from {runs / f'fr-en-{number}.regard'}" in stage
    model = load_model(runs / "packed" / "fr-en.regard")
    assert set(model.card["tests"]) == {"Tatoeba", "Europarl", "newstest2013", "FLORES-200"}
    assert any("phrase book" in line for line in model.card["credits"])
    assert model.card["name"] == "fr-en" and "--only fr-en" in model.card["recipe"]
    again = call("starter.py", *words)
    assert again.returncode == 0 and "measuring" not in again.stdout


def module(name):
    """A recipe as a module; it imports its neighbours by their names."""
    sys.path.insert(0, str(RECIPES))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(RECIPES))


@pytest.mark.parametrize("language", ["fr", "ko"])
def test_a_phrase_book_is_filled_the_same_way_each_time(language):
    phrases = module("phrases").phrases
    filled = list(phrases(language))
    assert filled == list(phrases(language)) and len(filled) == len(set(filled)) > 1000
    assert not any(brace in text for pair in filled for text in pair for brace in "{}|\t")
    template = re.compile(r"{(\w+)}")
    for line in (RECIPES / f"phrases.{language}.tsv").read_text("utf-8").splitlines():
        text, *columns = line.split("\t")
        if not template.fullmatch(text):
            assert set(template.findall(text)) == set(template.findall(*columns)), line


def test_either_side_can_be_as_people_type_it(pairs, tmp_path):
    starter = module("starter")
    some = [("Je mange.", "I eat."), ("Nous mangeons.", "We eat.")] * 8
    for folder, written in (("tatoeba", some), ("europarl", pairs(20))):
        write_sides(tmp_path / folder / "fr-en.train", written, ".gz")
    french, english = (list(islice(starter.typed(tmp_path, place), 2)) for place in (0, 1))
    assert french == [("je mange.", "I eat."), ("je mange", "I eat.")]
    assert english == [("Je mange.", "I eat."), ("Je mange.", "I eat")]


def test_missing_data_are_said(tmp_path):
    done = call("starter.py", tmp_path, "--runs", tmp_path / "runs", "--only", "fr-en-rnn")
    assert done.returncode != 0 and "fr-en.train.fr.gz" in done.stderr
    done = call("starter.py", tmp_path, "--runs", tmp_path / "runs", "--only", "fr-enn")
    assert done.returncode == 2 and "no such model: fr-enn" in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_model_of_captions_is_trained_and_scored(pairs, tmp_path):
    pytest.importorskip("torch")
    write_sides(tmp_path / "train", pairs(900), ".gz")
    write_sides(tmp_path / "val", pairs(6))
    write_sides(tmp_path / "test_2016_flickr", pairs(6))
    done = call("multi30k.py", "fr-en", tmp_path, "--runs", tmp_path / "runs", "--share", "0.001")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ended after 2 updates" in done.stdout and "tok:13a" in done.stdout
