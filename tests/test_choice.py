"""What a training chooses for itself by data, time and machine, and that it says so."""

import io
from pathlib import Path

import pytest

from regard.training.choice import choices_told
from regard.training.recipes import (
    choose_num_validation_pairs,
    choose_preset,
    choose_vocab_size,
    effective_options,
)
from regard.training.request import CorpusFiles, TrainRequest
from regard.training.verdict import Direction

MANUALS_WORDS = 2_000_000
MINUTE = 60.0
FILES = (CorpusFiles((Path("a.tsv"),)),)


def told(preset=None, seconds=6 * MINUTE, target="fr", **more):
    options = {"train": {"seconds": seconds}}
    request = TrainRequest(FILES, Path("m.regard"), preset=preset, options=options, **more)
    name = preset or choose_preset(MANUALS_WORDS, seconds)
    model_options = effective_options(name, MANUALS_WORDS, options, 1)
    return choices_told(request, name, model_options, Direction.of(request, "en", target))


@pytest.mark.parametrize(
    ("minutes", "on_gpu", "chosen"),
    [
        (6, False, "regard-quick"),
        (59, False, "regard-quick"),
        (60, False, "regard-small"),
        (6, True, "regard-small"),
    ],
)
def test_a_recurrent_model_is_chosen_for_a_few_minutes_without_a_gpu(minutes, on_gpu, chosen):
    assert choose_preset(MANUALS_WORDS, minutes * MINUTE, on_gpu=on_gpu) == chosen


def test_without_a_time_nothing_is_hurried():
    assert choose_preset(MANUALS_WORDS, None) == "regard-small"
    assert choose_preset(5_000_000, None) == "regard-base"
    assert choose_num_validation_pairs(None) == 1000


def test_a_short_training_has_a_small_vocabulary_unless_told_otherwise():
    assert choose_vocab_size(MANUALS_WORDS, short=True) == 4000 < choose_vocab_size(MANUALS_WORDS)
    assert choose_vocab_size(10_000, short=True) == choose_vocab_size(10_000) == 1000
    said = {"train": {"seconds": 6 * MINUTE}, "tokenizer": {"vocab_size": 9000}}
    assert effective_options("regard-quick", MANUALS_WORDS, said, 1).tokenizer.vocab_size == 9000


def test_scoring_takes_a_small_part_of_the_time():
    assert [choose_num_validation_pairs(minutes * MINUTE) for minutes in (1, 6, 12, 60)] == [
        100,
        180,
        360,
        1000,
    ]


def test_the_choice_for_a_short_time_is_said_in_a_line():
    short, start = told()
    assert (
        "regard-quick, a small recurrent model, with vocabulary 4,000; --preset and --vocab for others"
        in short
    )
    assert start.startswith("`--from en-fr` with another --out")


def test_a_short_training_chooses_and_says_so(corpus, tmp_path):
    pytest.importorskip("torch", reason="training needs the extra [train]")
    from regard.modelfile import load_model
    from regard.progress import unshown_stages
    from regard.sample import read_sample, write_sample
    from regard.training.display import LineDisplay
    from regard.training.run import train

    write_sample(tmp_path, read_sample(140, seed=8))
    valid = tmp_path / "sample.fr", tmp_path / "sample.en"
    options = {"model": {"hidden_size": 8, "embedding_size": 8}, "train": {"seconds": 3.0}}
    lines = io.StringIO()
    request = TrainRequest(
        (CorpusFiles(corpus),), tmp_path / "m.regard", validation=valid, options=options, device="cpu"
    )
    train(request, LineDisplay(lines), unshown_stages)
    first, second, *_ = lines.getvalue().splitlines()
    assert "regard-quick" in first and "`--from fr-en`" in second
    model = load_model(request.out)
    assert model.card["preset"] == "regard-quick" and model.card["data"]["num_validation_pairs"] == 100


def test_what_the_user_chose_is_not_told():
    assert told(preset="regard-quick") == []
    assert told(start=Path("en-fr")) == []
    assert told(seconds=None, target="de") == []
