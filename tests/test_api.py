"""The public names: few, typed, documented on one page, and cheap to import."""

import inspect
import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.errors import ConfigError

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
TEXT = "je suis étudiant"


def test_every_public_name_is_there_and_on_the_page():
    page = PAGE.read_text(encoding="utf-8")
    assert 10 <= len(regard.__all__) <= 14 and regard.__all__ == sorted(regard.__all__)
    for name in regard.__all__:
        assert getattr(regard, name).__doc__
        assert re.search(rf"`(regard\.)?{name}\b", page), name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = regard.nothing


def test_no_public_function_takes_just_anything():
    for name in regard.__all__:
        function = getattr(regard, name)
        if inspect.isfunction(function):
            parameters = inspect.signature(function).parameters.values()
            assert len(parameters) <= 8, name
            assert not [one for one in parameters if one.annotation in (Any, one.empty, "Any")], name


def test_importing_the_package_imports_nothing_heavy():
    code = (
        "import regard, sys; print([m for m in ('numpy', 'torch', 'pydantic', 'rich') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_show_works_as_the_command_does():
    trace = regard.show(TEXT)
    assert (
        trace.target.text
        == regard.load().translate([TEXT])[0].text
        == regard.load("fr-en").translate([TEXT])[0].text
    )
    assert trace.model.label == "fr-en.regard"
    rnn = regard.load("fr-en-rnn")
    assert regard.show(rnn, TEXT, beam_size=1).target.text == rnn.translate([TEXT], beam_size=1)[0].text
    assert regard.show("fr-en-rnn", TEXT).model.label == "fr-en-rnn"
    two = "Il pleut. Il neige."
    assert regard.show(two, part=2).source.text == "Il neige."
    with pytest.raises(ConfigError, match="there is no part 3"):
        regard.show(two, part=3)
    for wrong in ((), ("fr-en", "fr-en-rnn", TEXT), ("fr-en", None)):
        with pytest.raises((TypeError, regard.RegardError)):
            regard.show(*wrong)


def test_align_by_a_model_and_without_one():
    pairs = [
        ("le chat dort", "the cat sleeps"),
        ("le chien dort", "the dog sleeps"),
        ("un chat", "a cat"),
    ] * 20
    (first, *_) = regard.align(pairs[:1], "fr-en")
    assert isinstance(first, regard.Alignment) and {(1, 1), (2, 2)} <= first.links
    assert len(regard.align(pairs)) == 60


def test_evaluate_reads_files_and_returns_scores(tmp_path):
    (tmp_path / "t.fr").write_text("Il pleut.\nLe chat dort.\n")
    (tmp_path / "t.en").write_text("It is raining.\nThe cat is sleeping.\n")
    found = regard.evaluate("fr-en", tmp_path / "t.fr", tmp_path / "t.en")
    assert isinstance(found, regard.Evaluation) and found.systems[0].scores["bleu"].value > 10
    two = regard.evaluate(["fr-en", "fr-en-rnn"], tmp_path / "t.fr", tmp_path / "t.en")
    assert [one.name for one in two.systems] == ["fr-en", "fr-en-rnn"]


def test_train_logs_and_does_not_print(tmp_path, capfd, caplog):
    pytest.importorskip("torch", reason="training needs the extra [train]")
    from regard.sample import read_sample, write_sample

    write_sample(tmp_path, read_sample(300))
    with caplog.at_level(logging.INFO, "regard"):
        trained = regard.train(
            tmp_path / "sample.fr",
            tmp_path / "sample.en",
            out=tmp_path / "m.regard",
            preset="regard-rnn",
            tokenizer={"vocab_size": 400},
            model={"hidden_size": 8, "embedding_size": 8},
            train={"steps": 3, "valid_steps": 3},
        )
    assert isinstance(trained, regard.Trained) and trained.num_updates == 3
    assert capfd.readouterr() == ("", "")
    assert any("BLEU" in record.message for record in caplog.records)
    assert regard.load(tmp_path / "m.regard").translate(["le chat"])[0].source == "le chat"
