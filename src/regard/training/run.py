"""A whole training, from two files to a model file: prepare, train, score; the same call again goes on.

The run folder stands beside the model, `fr-en.run` beside `fr-en.regard`:

| file             | holds                                                                  |
|------------------|------------------------------------------------------------------------|
| `run.json`       | what was asked for, the effective configuration, what was counted      |
| `data/`          | tokenizers, stores, validation pairs                                   |
| `start.regard`   | the model it began with, if any                                        |
| `log.jsonl`      | loss and validation of every update; the same after any interruption   |
| `times.jsonl`    | the clock                                                              |
| `*.checkpoint`   | the newest two states of the training                                  |
| `best.regard`    | the best model so far, ready to use                                    |
| `result.json`    | the final scores, once it is finished                                  |
| `lock`           | keeps other trainings out                                              |
"""

import datetime
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import regard
from regard.alignment.reading import Reading
from regard.corpus.batches import Batches
from regard.corpus.inspect import check_rules
from regard.corpus.language_codes import matches
from regard.corpus.parallel import num_cores
from regard.corpus.read import Corpus, open_corpus
from regard.doctor import probe_precisions
from regard.errors import CheckpointError, ConfigError, OutputError, TrainingError
from regard.evaluation.scores import LengthScore, Scores, score
from regard.files import writing
from regard.model.build import build_model, count_parameters, import_arrays
from regard.model.engine import TorchEngine
from regard.modelfile import ModelFile, load_model, save_model
from regard.runtime.build import build_engine
from regard.starter import locate
from regard.training.checkpoint import locked, newest_checkpoint
from regard.training.diagnose import about_data
from regard.training.display import Display, TensorBoardDisplay, several, tensorboard_writer
from regard.training.guide import taught_reading
from regard.training.history import FORMAT, RESULT_FILE, RUN_FILE
from regard.training.loop import NO_BETTER, RunOptions, Trainer
from regard.training.prepare import Material, Prepared, Progress, inspect_material, load_prepared, prepare
from regard.training.processes import Processes, join_processes
from regard.training.reading import choose_reading
from regard.training.recipes import choose_preset, continued_options, effective_options, options_of
from regard.training.validate import Validated
from regard.training.workers import choose_num_workers
from regard.translate.result import Translation
from regard.translate.translator import Translator

_BUDGET = ("steps", "seconds")
_START_FILE = "start.regard"
_BEAM_SIZE = 5
_LEAST_LONG = 32  # tokens of a source that is never too long, even if validation had shorter ones only
_SAMPLE_PIECES = 12  # sentences of about this length show best what a model does


@dataclass(frozen=True, slots=True)
class CorpusFiles:
    """The file or the two files of a corpus, and how often an epoch sees it."""

    paths: tuple[Path, ...]
    weight: float = 1.0


@dataclass(frozen=True)
class Request:
    """What a user asks for."""

    corpora: tuple[CorpusFiles, ...]
    out: Path
    validation: tuple[Path, ...] = ()
    source_language: str | None = None
    target_language: str | None = None
    preset: str | None = None
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seed: int = 1
    device: str = "auto"
    keep_rules: tuple[str, ...] = ()
    start: Path | None = None  # a model whose weights, design and vocabulary it begins with

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.out.with_suffix(".run")

    def to_json(self) -> dict[str, Any]:
        """Return what the result depends on, files by their contents."""
        return {
            "corpora": [
                {"files": list(map(_file_hash, corpus.paths)), "weight": corpus.weight}
                for corpus in self.corpora
            ],
            "validation": list(map(_file_hash, self.validation)),
            "languages": [self.source_language, self.target_language],
            "preset": self.preset,
            "options": {name: dict(section) for name, section in self.options.items()},
            "seed": self.seed,
            "keep": list(self.keep_rules),
        } | ({} if self.start is None else {"start": _file_hash(locate(self.start))["sha256"]})


@dataclass(frozen=True)
class Trained:
    """What came of a training."""

    out: Path
    reason: str
    num_updates: int
    seconds: float
    scores: Scores
    samples: tuple[tuple[Translation, str], ...]  # translations of validation sentences, with the references

    @property
    def ended_early(self) -> bool:
        """Whether validation no longer improved, and not all of the budget was used."""
        return self.reason.startswith(NO_BETTER)


Stages = Callable[[], AbstractContextManager[Progress]]


def train(request: Request, display: Display, stages: Stages) -> Trained | None:
    """Train a translator, or go on with one, and write its model file.

    `stages` opens what is told of the progress of preparation; it is closed before training starts.
    Of several processes only the first returns what came of it.
    """
    device = choose_device(request.device)
    processes = join_processes(device)
    try:
        return _train(request, device, processes, display, stages)
    except torch.OutOfMemoryError as error:
        raise TrainingError(
            f"{device} has not enough memory; try another --out with a smaller --set batch.batch_tokens"
        ) from error
    finally:
        processes.end()


def _train(
    request: Request, device: torch.device, processes: Processes, display: Display, stages: Stages
) -> Trained | None:
    started = time.monotonic()
    folder = request.folder
    with ExitStack() as stack:
        finished = False
        if processes.is_first:
            # Mistakes in names and options show before anything is written or read.
            start = None if request.start is None else load_model(request.start)
            material = _open_material(request, start)
            _chosen_options(request, start, 0)
            _check_free(request)
            stack.enter_context(locked(folder))
            finished = _begin(request, start, material, stages)
        if processes.tell_all(finished):
            return _finished(request) if processes.is_first else None
        end = _learn(request, device, processes, display, started)
        if not processes.is_first:
            return None
        display.close()
        return _finish(request, device, end, stages)


def _begin(request: Request, start: ModelFile | None, material: Material, stages: Stages) -> bool:
    """Prepare the run folder, unless that is done; return whether the whole training is done."""
    folder = request.folder
    for leftover in (*folder.glob(".*.part"), *folder.glob(".*.old")):  # of a process that was killed
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
    asked = request.to_json()
    path = folder / RUN_FILE
    if path.exists():
        before = _read_json(path)
        changed = changed_settings(before["request"], asked)
        if not changed and before["request"] == asked:
            return (folder / RESULT_FILE).exists() and request.out.exists()
        if not changed:
            train = before["config"]["train"] | {key: _said_train(request).get(key) for key in _BUDGET}
            options = options_of(before["config"] | {"train": train})
            _write_json(path, before | {"request": asked, "config": options.to_json()})
            (folder / RESULT_FILE).unlink(missing_ok=True)
            return False
        if _has_begun(folder):
            raise ConfigError(
                f"{folder} holds a training with other settings ({', '.join(changed)}); choose another "
                "--out, or remove that folder"
            )
    with stages() as progress:
        inspected = inspect_material(material, progress)
        name, options = _chosen_options(request, start, inspected.num_words)
        prepare(
            inspected,
            folder / "data",
            start.tokenizers if start else options.tokenizer,
            options.batch.max_tokens,
            request.seed,
            progress,
            with_links=options.train.guidance > 0,
        )
    if request.start is not None:  # the run is to know it when the file is gone, or another
        with writing(folder / _START_FILE) as (stream,):
            stream.write(locate(request.start).read_bytes())
    facts = load_prepared(folder / "data").facts
    num_threads = min(torch.get_num_threads(), num_cores())
    _write_json(
        path,
        {
            "format": FORMAT,
            "out": request.out.name,
            "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "regard": regard.__version__,
            "languages": [facts.source_language, facts.target_language],
            "preset": name,
            "start": None if start is None else {"sha256": asked["start"], "card": start.card},
            "threads": num_threads,
            "workers": choose_num_workers(num_threads, options.batch.batch_tokens),
            "request": asked,
            "config": options.to_json(),
            "facts": asdict(facts) | {"vocab_size": max(facts.vocab_sizes)},
        },
    )
    return False


def _learn(
    request: Request, device: torch.device, processes: Processes, display: Display, started: float
) -> dict[str, Any]:
    """Train from the beginning or from the newest checkpoint to the end, and return what to say of it."""
    folder = request.folder
    about = _read_json(folder / RUN_FILE)
    options, prepared = _with_precision(options_of(about["config"]), device), load_prepared(folder / "data")
    # Sums come out differently on another number of threads.
    num_workers = about["workers"] if device.type == "cpu" else 1
    torch.set_num_threads(max(1, about["threads"] // num_workers))
    trainer = Trainer(options, prepared, folder, processes, device, num_workers, display)
    checkpoint, damaged = newest_checkpoint(folder)
    if processes.is_first:
        for line in damaged:
            display.note(line + "; the one before it is used")
    if checkpoint is not None:
        trainer.restore(checkpoint)
    else:
        if request.start is not None:
            trainer.begin_with(load_model(folder / _START_FILE).weights)
        trainer.progress.seconds = time.monotonic() - started
    step, trainer.progress.seconds = processes.tell_all((trainer.progress.step, trainer.progress.seconds))
    if step != trainer.progress.step:
        raise CheckpointError(
            f"{folder}: process {processes.rank} finds update {trainer.progress.step:,} where the first "
            f"finds {step:,}; the folder must be on a disk that all processes share"
        )
    if processes.is_first:
        num_parameters = count_parameters(trainer.model)
        if "num_parameters" not in about["facts"]:
            about["facts"] |= {
                "num_parameters": num_parameters,
                "num_too_long": trainer.batches.num_too_long(),
            }
            _write_json(folder / RUN_FILE, about)
        _tell_plan(about, trainer, display)

    def keep_best(validated: Validated) -> None:
        so_far = {"step": trainer.progress.step, "seconds": trainer.progress.seconds}
        model = _model_file(options, prepared, validated, about, _origin(about) | {"training": so_far})
        save_model(folder / "best.regard", model)

    with ExitStack() as stack:
        if processes.is_first and (writer := tensorboard_writer(folder / "tensorboard")):
            board = TensorBoardDisplay(writer)
            stack.callback(board.close)
            trainer.display = several([display, board])
        reason = trainer.run(keep_best)
    done = trainer.progress
    return {"reason": reason, "step": done.step, "seconds": done.seconds, "best_step": done.best_step}


def _tell_plan(about: dict[str, Any], trainer: Trainer, display: Display) -> None:
    """Say what will be trained on what."""
    facts, step = about["facts"], trainer.progress.step
    removed = ", ".join(f"{rule} {count:,}" for rule, count in facts["num_removed"].items())
    began = about.get("start")
    lines = [
        *(["begins with the weights of a trained model"] if began else []),
        f"{facts['num_pairs']:,} pairs to train on, {facts['num_validation_pairs']:,} to validate on, of "
        f"{facts['num_read']:,} read",
        f"left out: {sum(facts['num_removed'].values()):,} with problems"
        + (f" ({removed})" if removed else "")
        + f", {facts['num_held_out']:,} like those of validation, {facts['num_too_long']:,} too long",
        *(f"{reason}: {count:,} entries" for reason, count in facts["skipped"].items()),
        *facts["notes"],
        f"{about['preset']}: {facts['num_parameters']:,} weights, vocabulary {facts['vocab_size']:,}, "
        f"{trainer.epoch_updates:,} updates an epoch",
    ]
    if step:
        lines = [f"going on from update {step:,}"]
    for line in lines:
        display.note(line)
    if not step:
        for finding in about_data(trainer.prepared.facts, from_nothing=not began):
            display.note(f"{finding.cause}; {finding.advice}")


def _finished(request: Request) -> Trained:
    """Return what came of a training that was finished before."""
    result = _read_json(request.folder / RESULT_FILE)
    by_length = tuple(LengthScore(**row) for row in result["scores"]["by_length"])
    scores = Scores(**(result["scores"] | {"by_length": by_length}))
    return Trained(request.out, result["reason"], result["step"], result["seconds"], scores, ())


def _finish(request: Request, device: torch.device, end: dict[str, Any], stages: Stages) -> Trained:
    """Score the best model by beam search, write the model file, and return what came of it."""
    folder = request.folder
    about, prepared = _read_json(folder / RUN_FILE), load_prepared(folder / "data")
    options = options_of(about["config"])
    known = None if request.start is None else load_model(folder / _START_FILE).reading
    best = _with_habits(load_model(folder / "best.regard"), prepared, options, known)
    sources = [source for source, _ in prepared.validation]
    references = [target for _, target in prepared.validation]
    with stages() as progress:
        translations = _translator(best, device).translate(
            sources,
            beam_size=_BEAM_SIZE,
            on_progress=lambda done: progress("translating the validation set", done, len(sources)),
        )
    scores = score(
        [one.text for one in translations],
        references,
        sources=sources,
        target_language=prepared.facts.target_language,
    )
    card = _origin(about) | {
        "training": end,
        "validation": asdict(scores) | {"beam_size": _BEAM_SIZE},
    }
    save_model(request.out, replace(best, card=card))
    _write_json(folder / RESULT_FILE, {"scores": asdict(scores)} | end)
    pairs = list(zip(translations, references, strict=True))
    samples = sorted(pairs, key=lambda pair: abs(len(pair[0].source_pieces) - _SAMPLE_PIECES))[:3]
    return Trained(request.out, end["reason"], end["step"], end["seconds"], scores, tuple(samples))


def _with_habits(
    model: ModelFile, prepared: Prepared, options: RunOptions, known: Reading | None
) -> ModelFile:
    """Return the model with what was learnt about it: which attention aligns, and how long sources may be.

    What a model that it began with had found to align is `known`, and stays unless another head was taught.
    """
    engine = build_engine(model.options, model.weights)
    batches = Batches(prepared.shares, options.batch, options.seed)
    store = prepared.validation_store
    longest = int(store.source.lengths(np.arange(len(store))).max(initial=0))
    taught = taught_reading(options.model, options.train)
    return replace(
        model,
        reading=taught or known or choose_reading(engine, (batch for _, batch in batches.iterate())),
        split_above=min(options.batch.max_tokens, max(longest, _LEAST_LONG)),
    )


def _translator(model: ModelFile, device: torch.device) -> Translator:
    """Return the users' translator, or on a GPU one that computes there."""
    if device.type != "cuda":
        return Translator.of(model)
    sizes = model.tokenizers.source.vocab_size, model.tokenizers.target.vocab_size
    on_device = build_model(model.options, *sizes)
    import_arrays(on_device, model.weights)
    engine = TorchEngine(on_device.to(device))
    return Translator(engine, model.tokenizers, model.reading, model.split_above, num_workers=1)


def _origin(about: dict[str, Any]) -> dict[str, Any]:
    """Return what the card of a model says of where it comes from, finished or not."""
    return {
        "created": about["created"],
        "regard": about["regard"],
        "preset": about["preset"],
        "start": about.get("start"),
        "data": about["facts"],
    }


def _model_file(
    options: RunOptions, prepared: Prepared, validated: Validated, about: dict[str, Any], card: dict[str, Any]
) -> ModelFile:
    return ModelFile(
        options=options.model,
        weights=validated.weights,
        tokenizers=prepared.tokenizers,
        source_language=prepared.facts.source_language,
        target_language=prepared.facts.target_language,
        config=about["config"],
        card=card,
    )


def choose_device(name: str) -> torch.device:
    """Return the device of this name, or the best there is."""
    alone = os.environ.get("WORLD_SIZE", "1") == "1"
    if name == "auto":
        # Apple's GPUs have no messages between processes.
        name = "mps" if alone and torch.backends.mps.is_available() else "cpu"
        name = "cuda" if torch.cuda.is_available() else name
    if name == "cuda" and torch.cuda.is_available():
        name = f"cuda:{int(os.environ.get('LOCAL_RANK', '0')) % torch.cuda.device_count()}"
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"--device {name} cannot be used ({reason}); leave it out, or use cpu") from error
    if device.type == "cuda":
        torch.cuda.set_device(device)
    return device


def _with_precision(options: RunOptions, device: torch.device) -> RunOptions:
    """Return the options with a precision that works here; bfloat16 is tried in another process first."""
    wanted = options.train.precision
    if wanted == "auto":
        has_it = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        wanted = "bfloat16" if has_it else "float32"
    elif wanted == "bfloat16" and device.type == "cpu":
        found = probe_precisions()["bfloat16"]
        if found != "works":
            raise ConfigError(f"train.precision = 'bfloat16' cannot be used on this machine: it {found}")
    train = options.train.model_copy(update={"precision": wanted})
    return RunOptions(options.tokenizer, options.batch, options.model, train, options.seed)


def _chosen_options(request: Request, start: ModelFile | None, num_words: int) -> tuple[str, RunOptions]:
    """Return the options of a run on so many words, and the name of the preset they come from."""
    if start is not None:
        if request.preset is not None:
            raise ConfigError(
                f"the design of {request.start} is kept; leave --preset {request.preset} or --from out"
            )
        name = str(start.card.get("preset") or start.options.kind)
        try:
            return name, continued_options(start.options, start.config, request.options, request.seed)
        except ConfigError as error:
            raise ConfigError(f"--from {request.start}: {error}") from error
    name = request.preset or choose_preset(num_words, _said_train(request).get("seconds"))
    return name, effective_options(name, num_words, request.options, request.seed)


def _open_material(request: Request, start: ModelFile | None) -> Material:
    languages = [request.source_language, request.target_language]
    if start is not None:
        known = start.source_language, start.target_language
        for given, its in zip(languages, known, strict=True):
            if given is not None and its is not None and not matches(given, its):
                raise ConfigError(
                    f"--from {request.start}: the model translates {' to '.join(map(str, known))}, and "
                    f"{given!r} was given; leave it out"
                )
        languages = [given or its for given, its in zip(languages, known, strict=True)]

    def opened(paths: Sequence[Path]) -> Corpus:
        return open_corpus(paths, *languages)

    check_rules(request.keep_rules)
    for corpus in request.corpora:
        if not 0.01 <= corpus.weight <= 1000:
            names = " ".join(map(str, corpus.paths))
            raise ConfigError(f"weight {corpus.weight} of {names} is not valid; use 0.01 to 1000")
    return Material(
        tuple((opened(corpus.paths), corpus.weight) for corpus in request.corpora),
        opened(request.validation) if request.validation else None,
        request.keep_rules,
    )


def _check_free(request: Request) -> None:
    """Raise an error if the model would take the place of something that is not this training's."""
    if request.out.is_dir():
        raise OutputError(
            f"{request.out}: is a folder; name the model file, such as {request.out / 'model.regard'}"
        )
    if request.out.suffix in ("", ".run"):
        raise OutputError(f"{request.out}: name the model file with an ending, such as {request.out}.regard")
    if request.out.exists() and not (request.folder / RUN_FILE).exists():
        raise OutputError(f"{request.out}: exists already; choose another --out, or remove it first")


def asked_before(folder: Path) -> dict[str, Any] | None:
    """Return what the training in a run folder was asked for, None if none has begun there."""
    if not _has_begun(folder):
        return None
    asked: dict[str, Any] = _read_json(folder / RUN_FILE)["request"]
    return asked


def _has_begun(folder: Path) -> bool:
    return (folder / RUN_FILE).exists() and any(folder.glob("*.checkpoint"))


def changed_settings(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return in which keys two requests differ, how long to train aside."""
    return _changes(_without_budget(before), _without_budget(now))


def _changes(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the keys whose values differ."""
    changed = []
    for key in sorted(before.keys() | now.keys()):
        old, new = before.get(key), now.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            changed += _changes(old, new, f"{prefix}{key}.")
        elif old != new:
            changed.append(f"{prefix}{key}")
    return [key.removeprefix("options.") for key in changed]


def _without_budget(asked: dict[str, Any]) -> dict[str, Any]:
    """Return what was asked for without how long to train: a run may go on for longer."""
    train = {key: value for key, value in asked["options"].get("train", {}).items() if key not in _BUDGET}
    return asked | {"options": asked["options"] | {"train": train}}


def _said_train(request: Request) -> Mapping[str, Any]:
    return request.options.get("train", {})


def _file_hash(path: Path) -> dict[str, str]:
    with path.open("rb") as file:
        return {"name": path.name, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _write_json(path: Path, values: dict[str, Any]) -> None:
    with writing(path) as (file,):
        file.write(json.dumps(values, indent=1, ensure_ascii=False).encode())


def _read_json(path: Path) -> dict[str, Any]:
    try:
        values: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read; remove the folder and start anew") from error
    return values
