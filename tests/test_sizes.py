"""Presets of papers at a laptop's size: the paper's design, our widths and training, and the paper's by a flag."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="training needs torch")

import regard  # noqa: E402
from regard.errors import ConfigError  # noqa: E402
from regard.model.build import build_model, count_parameters  # noqa: E402
from regard.model.presets import PAPERS, preset  # noqa: E402
from regard.modelfile import load_model  # noqa: E402
from regard.progress import unshown_stages  # noqa: E402
from regard.training.display import LineDisplay  # noqa: E402
from regard.training.recipes import effective_options  # noqa: E402
from regard.training.request import CorpusFiles, TrainRequest  # noqa: E402
from regard.training.run import train  # noqa: E402

DOCS = Path(__file__).parents[1] / "docs" / "training.md"
VOCAB = 8000
TATOEBA_WORDS = 2_300_000
HOUR = 3600.0


def options_for(name, num_words=TATOEBA_WORDS, seconds=900.0, **more):
    return effective_options(name, num_words, {"train": {"seconds": seconds}}, 1, **more)


def is_size(key):
    return key == "init" or key.startswith("num_") or key.endswith(("_size", "dropout"))


def num_weights(model):
    with torch.device("meta"):
        return count_parameters(build_model(model, VOCAB, VOCAB))


@pytest.mark.parametrize("name", PAPERS)
def test_the_design_is_the_papers_and_the_size_is_not(name):
    model, paper = options_for(name, seconds=HOUR).model, preset(name)
    for key, value in paper.model_dump().items():
        if not is_size(key):
            assert getattr(model, key) == getattr(paper, key), key
        elif isinstance(value, int):
            assert getattr(model, key) <= value, key
    assert num_weights(model) < min(9_000_000, num_weights(paper) / 2)
    assert f"{num_weights(model):,}" in DOCS.read_text("utf-8")


@pytest.mark.parametrize("name", PAPERS)
def test_a_laptop_trains_it_as_it_trains_our_own(name):
    own = options_for("regard-small" if name == "vaswani2017" else "regard-quick")
    options = options_for(name)
    assert (options.tokenizer, options.batch) == (own.tokenizer, own.batch)
    rate = {"rate": options.train.optimiser.rate}
    assert options.train == own.train.model_copy(
        update={"optimiser": own.train.optimiser.model_copy(update=rate)}
    )


@pytest.mark.parametrize("name", PAPERS)
def test_the_papers_size_is_one_flag_away(name):
    options = options_for(name, size="paper")
    assert options.model == preset(name)
    assert options.tokenizer.vocab_size >= 15_000 and options.tokenizer.kind in ("word", "bpe")
    kinds = {"sutskever2014": "sgd", "luong2015": "sgd", "vaswani2017": "adam"}
    assert options.train.optimiser.kind == kinds.get(name, "adadelta")


def test_the_size_follows_data_and_time():
    widths = [
        options_for("bahdanau2015", seconds=seconds).model.hidden_size for seconds in (900.0, HOUR, None)
    ]
    assert widths == [128, 256, 256]
    assert options_for("bahdanau2015", on_gpu=True).model.hidden_size == 256
    assert options_for("vaswani2017").model.hidden_size == 128
    assert options_for("vaswani2017", 5_000_000, 3 * HOUR).model.hidden_size == 256
    assert options_for("bahdanau2015", 90_000).tokenizer.vocab_size < VOCAB


def test_a_width_that_is_said_wins():
    said = {"model": {"hidden_size": 64}, "train": {"optimiser": {"kind": "sgd", "rate": 0.5}}}
    options = effective_options("bahdanau2015", TATOEBA_WORDS, said, 1)
    assert options.model.hidden_size == 64 and options.model.embedding_size == 256
    assert options.train.optimiser.kind == "sgd"


@pytest.mark.parametrize(
    ("name", "size", "told"),
    [
        ("regard-rnn", "paper", "--size paper is for the presets of papers"),
        ("luong2015", "papre", "size = 'papre' is not valid; did you mean 'paper'?"),
    ],
)
def test_a_size_that_means_nothing_is_refused(name, size, told):
    with pytest.raises(ConfigError) as error:
        options_for(name, size=size)
    assert told in str(error.value)


def lines_of(request):
    """What a training says line by line."""
    stream = io.StringIO()
    train(request, LineDisplay(stream), unshown_stages)
    return stream.getvalue().splitlines()


def tiny_request(corpus, out, name, size="laptop", **widths):
    options = {
        "tokenizer": {"vocab_size": 420},
        "model": widths,
        "train": {"steps": 2, "valid_steps": 2},
    }
    return TrainRequest((CorpusFiles(corpus),), out, preset=name, options=options, size=size)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name != "vaswani2017")) for name in PAPERS]
)
def test_every_paper_trains_at_a_laptops_size_and_says_so(corpus, tmp_path, name):
    request = tiny_request(corpus, tmp_path / "m.regard", name)
    (line,) = [line for line in lines_of(request) if "laptop" in line]
    wide = load_model(request.out).options.hidden_size
    assert line.startswith(f"{name} at a laptop's size: {wide} wide")
    assert line.endswith("--size paper for the paper's") and f"{preset(name).hidden_size:,}" in line
    assert regard.load(request.out).translate(["le chat"])[0].source == "le chat"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_papers_size_is_built_and_nothing_is_said_of_a_laptop(corpus, tmp_path):
    """The smallest of the papers' models."""
    request = tiny_request(corpus, tmp_path / "m.regard", "cho2014", size="paper")
    assert not [line for line in lines_of(request) if "laptop" in line]
    assert load_model(request.out).options == preset("cho2014")


def test_a_run_begun_before_there_were_sizes_keeps_its_own(corpus, tmp_path):
    """Until then a request had no size, and its run folder has the paper's tokenizer and optimiser."""
    narrow = {"hidden_size": 8, "embedding_size": 8}
    request = tiny_request(corpus, tmp_path / "m.regard", "bahdanau2015", "paper", **narrow)
    lines_of(request)
    path = request.folder / "run.json"
    about = json.loads(path.read_text())
    assert about["request"].pop("size") == "paper"
    path.write_text(json.dumps(about))
    longer = {**request.options, "train": {"steps": 3, "valid_steps": 2}}
    assert lines_of(replace(request, size="laptop", options=longer))[0] == "continuing from update 2"
    model = load_model(request.out)
    assert model.card["training"]["step"] == 3
    assert model.config["tokenizer"]["kind"] == "word"
    assert model.config["train"]["optimiser"]["kind"] == "adadelta"
    assert model.options.init == preset("bahdanau2015").init


def test_a_trained_model_keeps_its_size(corpus, tmp_path):
    request = TrainRequest((CorpusFiles(corpus),), tmp_path / "m.regard", start=Path("fr-en"), size="paper")
    with pytest.raises(ConfigError, match="keeps its size; remove --size paper, or --from"):
        lines_of(request)
