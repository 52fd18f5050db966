"""The options of a run: a preset's whole recipe, what suits the data, and, above both, what the user says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from regard.contract import source_named
from regard.design import design
from regard.errors import ConfigError
from regard.model.presets import PAPERS, preset, resized
from regard.options.model import FeatureSource, RecurrentOptions, TransformerOptions, feature_size
from regard.options.parse import parse
from regard.options.section import nearest
from regard.options.text import BatchOptions, CharacterOptions, SubwordOptions, WordOptions
from regard.options.training import TrainOptions
from regard.training.request import Size

# How the papers trained, where they say so. Batches are counted in tokens here and in sentences there:
# 80 sentences (Bahdanau), 64 (Cho) and 128 (Sutskever, Luong) are taken as 25 tokens each.
_SGD_LUONG = {
    "optimiser": {"kind": "sgd", "rate": 1.0},
    "schedule": {"kind": "halving", "first_epoch": 8, "every_epochs": 1},
    "average": "none",
    "label_smoothing": 0.0,
    "clip_norm": 5.0,
}
_ADADELTA = {
    "optimiser": {"kind": "adadelta", "rho": 0.95, "epsilon": 1e-6},
    "schedule": "constant",
    "average": "none",
    "label_smoothing": 0.0,
    "clip_norm": 1.0,
}
_WORDS = {"kind": "word", "vocab_size": 30_000, "unknown": "unk"}
_RECIPES: dict[str, dict[str, Any]] = {
    "sutskever2014": {
        "tokenizer": {"kind": "word", "vocab_size": 80_000, "unknown": "unk"},
        "batch": {"batch_tokens": 3200},
        "train": _SGD_LUONG
        | {
            "optimiser": {"kind": "sgd", "rate": 0.7},
            "schedule": {"kind": "halving", "first_epoch": 5, "every_epochs": 0.5},
        },
    },
    "cho2014": {
        "tokenizer": {"kind": "word", "vocab_size": 15_000, "unknown": "unk"},
        "batch": {"batch_tokens": 1600},
        "train": _ADADELTA,
    },
    "bahdanau2015": {"tokenizer": _WORDS, "batch": {"batch_tokens": 2000}, "train": _ADADELTA},
    "luong2015": {
        "tokenizer": {"kind": "word", "vocab_size": 50_000, "unknown": "unk"},
        "batch": {"batch_tokens": 3200},
        "train": _SGD_LUONG,
    },
    "vaswani2017": {
        "tokenizer": {"kind": "bpe", "vocab_size": 37_000},
        "batch": {"batch_tokens": 25_000},
        "train": {
            "optimiser": {"kind": "adam", "rate": 7e-4, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9},
            "schedule": {"kind": "inverse-sqrt", "warmup_steps": 4000},
            "average": {"kind": "snapshots", "num_snapshots": 5},
            "label_smoothing": 0.1,
            "clip_norm": None,
        },
    },
    "regard-rnn": {"batch": {"batch_tokens": 2048}, "train": {"optimiser": {"kind": "adam", "rate": 1e-3}}},
    "regard-quick": {"batch": {"batch_tokens": 2048}, "train": {"optimiser": {"kind": "adam", "rate": 4e-3}}},
    "regard-small": {"batch": {"batch_tokens": 2048}, "train": {"optimiser": {"kind": "adam", "rate": 4e-3}}},
    "regard-base": {"train": {"optimiser": {"kind": "adam", "rate": 2e-3}}},
}
_TRANSFORMERS = ("vaswani2017",)  # of the papers; the others are recurrent
# Designs of papers at a laptop's size are as large as these presets and trained like them, at these rates:
# without layer norm in the cell or before the sub-layers, ours are too high.
_PAPER_RATES = {"regard-quick": 2e-3, "regard-rnn": 1e-3, "regard-small": 2e-3, "regard-base": 1e-3}
_BASE_WORDS = 4_000_000  # of both sides: fewer are learnt better by the small model
_BASE_SECONDS = 2 * 3600.0
_SHORT_SECONDS = 60 * 60.0  # docs/experiments.md, 2026-11-19: trainings of 12 and 30 minutes
_SHORT_VOCAB_SIZE = 4000  # half of the work of a small model is its output layer
_MAX_VALIDATION_PAIRS = 1000
_VALIDATION_PAIRS_PER_SECOND = 0.5  # more, and a short training would spend its time on scoring
_SECTIONS = ("tokenizer", "batch", "model", "train")
_FREE = ("teacher", "variational")  # with the dropouts, what of a model only says how it learns
_NOT_CONTINUED = ("steps", "seconds", "guidance")
# Taken for the training of a model of another program, which is not known: a quarter of the rate is used.
_IMPORTED = {"optimiser": {"kind": "adam", "rate": 4e-4}}
_GENTLER = 0.25  # of the rate a model was trained at: what it knows is not to be washed away


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The effective configuration of a run."""

    tokenizer: SubwordOptions | WordOptions | CharacterOptions
    batch: BatchOptions
    model: TransformerOptions | RecurrentOptions
    train: TrainOptions
    seed: int

    def to_json(self) -> dict[str, Any]:
        """Return all options as plain values."""
        sections = ("tokenizer", "batch", "model", "train")
        return {name: getattr(self, name).model_dump() for name in sections} | {"seed": self.seed}


def is_short(seconds: float | None) -> bool:
    """Tell whether a training has so little time that the first updates must teach it most."""
    return seconds is not None and seconds < _SHORT_SECONDS


def choose_preset(num_words: int, seconds: float | None, *, on_gpu: bool = False) -> str:
    """Return the model that suits a corpus of so many words, both sides counted, and a time.

    Without a GPU a recurrent model learns more than a Transformer in the first hour.
    """
    return "regard-quick" if is_short(seconds) and not on_gpu else _own_transformer(num_words, seconds)


def _own_transformer(num_words: int, seconds: float | None) -> str:
    if num_words < _BASE_WORDS or (seconds is not None and seconds < _BASE_SECONDS):
        return "regard-small"
    return "regard-base"


def choose_vocab_size(num_words: int, *, short: bool = False) -> int:
    """Return a vocabulary that grows with the root of the corpus, as its number of different words does.

    Small corpora want small vocabularies (Sennrich & Zhang 2019): a piece seen a few times is not learnt.
    A short training does not see much of its corpus, and makes more updates with a small output layer.
    """
    wanted = 9 * num_words**0.5
    most = _SHORT_VOCAB_SIZE if short else 16_000
    return int(min(most, max(1000, round(wanted / 500) * 500)))


def choose_num_validation_pairs(seconds: float | None) -> int:
    """Return how many pairs are enough to validate on: scoring them takes a small part of the time."""
    wanted = _MAX_VALIDATION_PAIRS if seconds is None else int(seconds * _VALIDATION_PAIRS_PER_SECOND)
    return min(_MAX_VALIDATION_PAIRS, max(100, wanted))


def effective_options(
    preset_name: str,
    num_words: int,
    said: Mapping[str, Mapping[str, Any]],
    seed: int,
    num_features: int | None = None,
    size: Size = "laptop",
    on_gpu: bool = False,
) -> RunOptions:
    """Return all options of a run; what the user said comes last and wins.

    With `num_features` the sources are feature vectors of so many numbers.
    """
    if size not in get_args(Size):
        raise ConfigError(f"size = {size!r} is not valid; {nearest(str(size), list(get_args(Size)))}")
    if size == "paper" and preset_name not in PAPERS:
        raise ConfigError(
            "--size paper is for the presets of papers; remove it, or choose a --preset from: "
            + ", ".join(PAPERS)
        )
    seconds = said.get("train", {}).get("seconds")
    short = is_short(seconds) and not on_gpu
    values = _recipe(preset_name)
    if size == "laptop" and preset_name in PAPERS:
        recurrent = "regard-quick" if short else "regard-rnn"
        is_transformer = preset_name in _TRANSFORMERS
        own = _own_transformer(num_words, seconds) if is_transformer else recurrent
        values = _resized_recipe(preset_name, own)
    if num_features is not None:
        values["model"]["source"] = FeatureSource(feature_size=num_features).model_dump()
    values = merged(values, said)
    if values["tokenizer"].get("kind", "unigram") in ("unigram", "bpe"):
        vocab_size = choose_vocab_size(num_words, short=short)
        values["tokenizer"] = {"vocab_size": vocab_size} | values["tokenizer"]
    options = options_of(values | {"seed": seed})
    _check_source(options, num_features)
    return options


def _recipe(preset_name: str) -> dict[str, Any]:
    """Return model and training of a preset as plain values."""
    base = {"tokenizer": {}, "batch": {}, "train": {}, "model": preset(preset_name).model_dump()}
    return merged(base, _RECIPES[preset_name])


def _resized_recipe(preset_name: str, own: str) -> dict[str, Any]:
    """Return the design of a paper with the size and the training of one of our own presets."""
    values = _recipe(own) | {"model": resized(preset_name, own).model_dump()}
    return merged(values, {"train": {"optimiser": {"rate": _PAPER_RATES[own]}}})


def continued_options(
    model: TransformerOptions | RecurrentOptions,
    config: Mapping[str, Any],
    said: Mapping[str, Mapping[str, Any]],
    seed: int,
    num_features: int | None = None,
) -> RunOptions:
    """Return the options of a run that begins with the weights of another: those of that run, more gently.

    How long it was is not among them, nor its guidance: from a small corpus an aligner may learn too little
    to teach. What the weights and their vocabulary hang on cannot be changed.
    """
    if isinstance(config.get("imported"), Mapping):
        config = {name: {} for name in _SECTIONS} | {"train": _IMPORTED}
    if not all(isinstance(config.get(name), Mapping) for name in _SECTIONS):
        raise ConfigError("it does not say how it was trained; start from a model made by `regard train`")
    before = {name: parse(name, config[name]).model_dump() for name in _SECTIONS}
    before["model"] = model.model_dump()
    learning = {key: value for key, value in before["train"].items() if key not in _NOT_CONTINUED}
    gentler = {"optimiser": {"rate": _GENTLER * learning["optimiser"]["rate"]}}
    options = options_of(merged(before | {"train": merged(learning, gentler)}, said) | {"seed": seed})
    now = options.to_json()
    for name in ("tokenizer", "model"):
        for key, value in before[name].items():
            if now[name].get(key) != value and key not in _FREE and not key.endswith("dropout"):
                raise ConfigError(f"{name}.{key} is {value!r} in this model and cannot be changed; remove it")
    _check_source(options, num_features)
    return options


def _check_source(options: RunOptions, num_features: int | None) -> None:
    """Raise an error if the model does not read what the corpus has."""
    wanted = feature_size(options.model.source)
    if wanted != num_features:
        raise ConfigError(
            f"the model reads {source_named(wanted)} (model.source) and the corpus has "
            f"{source_named(num_features)}; leave one of them out"
        )


def options_of(values: Mapping[str, Any]) -> RunOptions:
    """Return the options of a run from plain values, such as `RunOptions.to_json` gives."""
    for section in values:
        if section not in (*_SECTIONS, "seed"):
            raise ConfigError(f"section {section!r} does not exist; {nearest(section, list(_SECTIONS))}")
    options = RunOptions(seed=values["seed"], **{name: parse(name, values[name]) for name in _SECTIONS})
    _check(options)
    return options


def _check(options: RunOptions) -> None:
    """Raise an error for options that are right one by one and wrong together."""
    model, batch = options.model, options.batch
    if options.seed < 0:
        raise ConfigError(f"seed = {options.seed} is not valid; use 0 or more")
    if model.tie == "all" and not options.tokenizer.joint and model.source.kind == "tokens":
        raise ConfigError(
            "model.tie = 'all' needs one vocabulary for both languages; set tokenizer.joint = true, or "
            "model.tie = 'target'"
        )
    if options.train.guidance and model.source.kind != "tokens":
        raise ConfigError("train.guidance links words of both sides, and features have none; leave it out")
    if options.train.guidance:
        if not design(model).has_attention:
            raise ConfigError("train.guidance trains attention, and this model has none; remove it")
        for other in ("r_drop", "subword_sampling"):
            if getattr(options.train, other):
                raise ConfigError(f"train.guidance and train.{other} exclude each other; leave one out")
    most = design(model).max_positions
    if most is not None and most < batch.max_tokens:
        raise ConfigError(
            f"model.positions.max_positions = {most} is less than batch.max_tokens = "
            f"{batch.max_tokens}; set batch.max_tokens = {most}"
        )


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with others laid over them; a choice of another kind takes nothing from the one below."""
    result = dict(under)
    for key, value in over.items():
        below = result.get(key)
        if isinstance(value, str) and isinstance(below, Mapping):
            value = {"kind": value}
        if isinstance(below, str) and isinstance(value, Mapping):
            below = {"kind": below}
        other_kind = (
            isinstance(value, Mapping)
            and isinstance(below, Mapping)
            and ("kind" in value and value["kind"] != below.get("kind", value["kind"]))
        )
        if isinstance(value, Mapping) and isinstance(below, Mapping) and not other_kind:
            value = merged(below, value)
        result[key] = value
    return result
