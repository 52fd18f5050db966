"""A whole training, from two files to a model file: prepare, train, score; the same call again goes on.

`folder.py` lists the files of the run folder.
"""

import datetime
import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

import regard
from regard.contract import source_named
from regard.corpus.clean import check_rules
from regard.corpus.language_codes import Languages, check_languages
from regard.corpus.read import Corpus, open_corpus
from regard.errors import CheckpointError, ConfigError, CorpusError, OutputError, TrainingError
from regard.files import writing
from regard.model.build import count_parameters, frozen_rows
from regard.model.presets import PAPERS
from regard.modelfile import ModelFile, load_model, save_model
from regard.parallel import num_cores
from regard.progress import Stages
from regard.starter import locate
from regard.text.vectors import Coverage
from regard.training.checkpoint import Checkpoint, locked, newest_checkpoint
from regard.training.choice import choices_told
from regard.training.device import choose_device, choose_kernels, with_precision
from regard.training.diagnose import about_data, is_blind
from regard.training.display import Display, TensorBoardDisplay, several, tensorboard_writer
from regard.training.embeddings import check_vectors, first_model
from regard.training.finish import Trained, finish, finished, model_file, origin
from regard.training.folder import (
    ANOTHER_VERSION,
    BEST_FILE,
    DATA_FOLDER,
    START_FILE,
    has_begun,
    read_about,
    write_json,
)
from regard.training.history import FORMAT, RESULT_FILE, RUN_FILE
from regard.training.loop import Trainer
from regard.training.prepare import Material, PrepareOptions, inspect_material, load_prepared, prepare
from regard.training.processes import Processes, join_processes
from regard.training.recipes import (
    RunOptions,
    choose_num_validation_pairs,
    choose_preset,
    continued_options,
    effective_options,
    options_of,
)
from regard.training.request import BUDGET, TrainRequest, changed_settings
from regard.training.stopping import Signals, catching_signals
from regard.training.validate import Validated
from regard.training.verdict import Direction
from regard.training.workers import choose_num_workers

_STOPPED_EARLY = "stopped before the first update; the same command starts again"
_STOPPED_LATE = "stopped before the model was scored; the same command goes on from here"


def train(
    request: TrainRequest, display: Display, stages: Stages, signals: Signals | None = None
) -> Trained | None:
    """Train a translator, or go on with one, and write its model file.

    `stages` opens what is told of the progress of preparation; it is closed before training starts.
    Of several processes only the first returns what came of it.
    A signal that asks for the end raises `Stopped` once the run is saved; without `signals` they are caught
    from here on.
    """
    if signals is None:
        with catching_signals() as caught:
            return train(request, display, stages, caught)
    device = choose_device(request.device)
    processes = join_processes(device)
    try:
        return _train(request, device, processes, _Watch(display, stages, signals))
    except RuntimeError as error:
        # On a processor torch has no class of its own for this.
        if not isinstance(error, torch.OutOfMemoryError) and "can't allocate memory" not in str(error):
            raise
        raise TrainingError(
            f"{device} does not have enough memory; try another --out with a smaller --set batch.batch_tokens"
        ) from error
    finally:
        processes.end()


@dataclass(frozen=True, slots=True)
class _Watch:
    """What a run is shown on, and what may ask it to end."""

    display: Display
    stages: Stages
    signals: Signals


def _train(
    request: TrainRequest, device: torch.device, processes: Processes, watch: _Watch
) -> Trained | None:
    started = time.monotonic()
    folder = request.folder
    with ExitStack() as stack:
        is_done = False
        if processes.is_first:
            # Mistakes in names and options show before anything is written or read.
            start = None if request.start is None else load_model(request.start)
            material = _open_material(request, start)
            _, options = _chosen_options(request, start, material, 0)
            check_vectors(request.vectors, options, start, width_is_known=_width_is_said(request))
            _check_free(request)
            stack.enter_context(locked(folder))
            stages = watch.signals.stages(watch.stages, _STOPPED_EARLY)
            is_done = _begin(request, start, material, watch.display, stages)
        if processes.tell_all(is_done):
            return finished(request) if processes.is_first else None
        end = _learn(request, device, processes, watch, started)
        if not processes.is_first:
            return None
        watch.display.close()
        return finish(request, device, end, watch.signals.stages(watch.stages, _STOPPED_LATE))


def _begin(
    request: TrainRequest, start: ModelFile | None, material: Material, display: Display, stages: Stages
) -> bool:
    """Prepare the run folder, unless that is done; return whether the whole training is done."""
    folder = request.folder
    for leftover in (*folder.glob(".*.part"), *folder.glob(".*.old")):  # of a process that was killed
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
    asked = request.to_json()
    path = folder / RUN_FILE
    if path.exists():
        before = read_about(folder)
        changed = changed_settings(before["request"], asked)
        if not changed and before["request"] == asked:
            return (folder / RESULT_FILE).exists() and request.out.exists()
        if not changed:
            train = before["config"]["train"] | {key: request.said("train").get(key) for key in BUDGET}
            options = options_of(before["config"] | {"train": train})
            write_json(path, before | {"request": asked, "config": options.to_json()})
            (folder / RESULT_FILE).unlink(missing_ok=True)
            return False
        if has_begun(folder):
            raise ConfigError(
                f"{folder} contains a training with other settings ({', '.join(changed)}); choose another "
                "--out, or remove that folder"
            )
    with stages() as progress:
        inspected = inspect_material(material, progress)
    name, options = _chosen_options(request, start, material, inspected.num_words)
    check_vectors(request.vectors, options, start, width_is_known=True)
    report = inspected.reports[0]
    direction = Direction.of(request, report.source_language, report.target_language)
    for line in choices_told(request, name, options, direction):
        display.note(line)
    how = PrepareOptions(
        tokenizing=start.tokenizers if start else options.tokenizer,
        max_tokens=options.batch.max_tokens,
        seed=request.seed,
        with_links=options.train.guidance > 0,
        vectors=request.vectors,
        max_validation_pairs=request.max_validation_pairs
        or choose_num_validation_pairs(options.train.seconds),
    )
    with stages() as progress:
        prepare(inspected, folder / DATA_FOLDER, how, progress)
    if request.start is not None:  # the run is to know it when the file is gone, or another
        with writing(folder / START_FILE) as (stream,):
            stream.write(locate(request.start).read_bytes())
    facts = load_prepared(folder / DATA_FOLDER).facts
    num_threads = min(torch.get_num_threads(), num_cores())
    write_json(
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
    request: TrainRequest, device: torch.device, processes: Processes, watch: _Watch, started: float
) -> dict[str, Any]:
    """Train from the beginning or from the newest checkpoint to the end, and return what to say of it."""
    folder, display = request.folder, watch.display
    about = read_about(folder)
    options, prepared = options_of(about["config"]), load_prepared(folder / DATA_FOLDER)
    options = replace(options, train=with_precision(options.train, device))
    # Sums come out differently on another number of threads.
    num_workers = about["workers"] if device.type == "cpu" else 1
    torch.set_num_threads(max(1, about["threads"] // num_workers))
    choose_kernels()
    start = None if request.start is None else load_model(folder / START_FILE)
    model = first_model(options, prepared.facts.vocab_sizes, start, prepared.vectors, request.vectors.freeze)
    trainer = Trainer(options, prepared, model.to(device), folder, processes, num_workers, display)
    facts = prepared.facts
    trainer.direction = Direction.of(request, facts.source_language, facts.target_language)
    checkpoint, damaged = newest_checkpoint(folder)
    if processes.is_first:
        for line in damaged:
            display.note(line + "; the one before it is used")
    if checkpoint is not None:
        _restore(trainer, checkpoint, folder)
    else:
        trainer.state.seconds = time.monotonic() - started
    step, trainer.state.seconds = processes.tell_all((trainer.state.step, trainer.state.seconds))
    if checkpoint is None:
        trainer.state.prepared_seconds = trainer.state.seconds
    if step != trainer.state.step:
        raise CheckpointError(
            f"{folder}: process {processes.rank} finds update {trainer.state.step:,} where the first "
            f"finds {step:,}; the folder must be on a disk that all processes share"
        )
    if processes.is_first:
        num_parameters = count_parameters(trainer.model)
        if "num_parameters" not in about["facts"]:
            about["facts"] |= {
                "num_parameters": num_parameters,
                "num_too_long": trainer.batches.num_too_long(),
            }
            write_json(folder / RUN_FILE, about)
        _tell_plan(about, trainer, display)

    def keep_best(validated: Validated) -> None:
        so_far = {"step": trainer.state.step, "seconds": trainer.state.seconds}
        best = model_file(options, prepared, validated, about, origin(about) | {"training": so_far})
        save_model(folder / BEST_FILE, replace(best, frozen=frozen_rows(model)))

    with ExitStack() as stack:
        if processes.is_first and (writer := tensorboard_writer(folder / "tensorboard")):
            board = TensorBoardDisplay(writer)
            stack.callback(board.close)
            trainer.display = several([display, board])
        reason = trainer.run(keep_best, watch.signals)
    done = trainer.state
    best = next((one for one in trainer.history if one.step == done.best_step), None)
    return {
        "reason": reason,
        "step": done.step,
        "seconds": done.seconds,
        "prepared_seconds": done.prepared_seconds,
        "best_step": done.best_step,
        "ignores_source": best is not None and is_blind(best),
    }


def _restore(trainer: Trainer, checkpoint: Checkpoint, folder: Path) -> None:
    try:
        trainer.restore(checkpoint)
    except (
        CheckpointError,
        KeyError,
        TypeError,
        RuntimeError,
    ) as error:  # of another version
        what = f"{error} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise CheckpointError(
            f"{folder}: the checkpoint of update {checkpoint.step:,} is of another version of regard "
            f"({what}); {ANOTHER_VERSION}"
        ) from error


def _tell_plan(about: dict[str, Any], trainer: Trainer, display: Display) -> None:
    """Say what will be trained on what."""
    facts, step = about["facts"], trainer.state.step
    removed = ", ".join(f"{rule} {count:,}" for rule, count in facts["num_removed"].items())
    began = about.get("start")
    num_frozen = sum(int(rows_V.sum()) for rows_V in frozen_rows(trainer.model).values())
    lines = [
        *(["starts from the weights of a trained model"] if began else []),
        f"{facts['num_pairs']:,} pairs to train on, {facts['num_validation_pairs']:,} to validate on, of "
        f"{facts['num_read']:,} read",
        f"not used: {sum(facts['num_removed'].values()):,} with problems"
        + (f" ({removed})" if removed else "")
        + f", {facts['num_held_out']:,} similar to validation pairs, {facts['num_too_long']:,} too long",
        *(f"{reason}: {count:,} entries" for reason, count in facts["skipped"].items()),
        *facts["notes"],
        *map(_vectors_told, facts.get("vectors", ())),
        *([f"{num_frozen:,} word vectors are frozen"] if num_frozen else []),
        f"{about['preset']}: {facts['num_parameters']:,} weights, vocabulary {facts['vocab_size']:,}, "
        f"{trainer.epoch_updates:,} updates per epoch",
    ]
    if step:
        lines = [f"continuing from update {step:,}"]
    for line in lines:
        display.note(line)
    if not step:
        for finding in about_data(trainer.prepared.facts, from_nothing=not began):
            display.note(f"{finding.cause}; {finding.advice}")


def _vectors_told(row: dict[str, Any]) -> str:
    """Return a line about a file of pre-trained vectors."""
    counts = {key: value for key, value in row.items() if key not in ("side", "frozen")}
    return f"{row['side']} vectors {Coverage(**counts)}"


def _width_is_said(request: TrainRequest) -> bool:
    """Tell whether the width of the model does not wait for the size of the corpus."""
    depends = request.preset in PAPERS and request.size == "laptop"
    return bool((request.preset and not depends) or request.start or "hidden_size" in request.said("model"))


def _chosen_options(
    request: TrainRequest, start: ModelFile | None, material: Material, num_words: int
) -> tuple[str, RunOptions]:
    """Return the options of a run on so many words, and the name of the preset they come from."""
    said, seed, num_features = request.options, request.seed, material.feature_size
    if start is not None:
        if request.preset is not None:
            raise ConfigError(
                f"--from {request.start} keeps its architecture; remove --preset {request.preset}, or --from"
            )
        if request.size == "paper":
            raise ConfigError(f"--from {request.start} keeps its size; remove --size paper, or --from")
        name = str(start.card.get("preset") or start.options.kind)
        try:
            return name, continued_options(start.options, start.config, said, seed, num_features)
        except ConfigError as error:
            raise ConfigError(f"--from {request.start}: {error}") from error
    on_gpu = choose_device(request.device).type != "cpu"
    name = request.preset or choose_preset(num_words, request.said("train").get("seconds"), on_gpu=on_gpu)
    return name, effective_options(name, num_words, said, seed, num_features, request.size, on_gpu)


def _open_material(request: TrainRequest, start: ModelFile | None) -> Material:
    languages = Languages.of(request)
    if start is not None:
        what, its = f"--from {request.start}: the model translates", Languages.of(start)
        check_languages(what, its, "--source and --target say", languages, "leave them out")
        languages = Languages(languages.source or its.source, languages.target or its.target)

    def opened(paths: Sequence[Path]) -> Corpus:
        return open_corpus(paths, languages.source, languages.target)

    check_rules(request.keep_rules)
    for corpus in request.corpora:
        if not 0.01 <= corpus.weight <= 1000:
            names = " ".join(map(str, corpus.paths))
            raise ConfigError(f"weight {corpus.weight} of {names} is not valid; use 0.01 to 1000")
    material = Material(
        tuple((opened(corpus.paths), corpus.weight) for corpus in request.corpora),
        opened(request.validation) if request.validation else None,
        request.keep_rules,
    )
    for other in (*(corpus for corpus, _ in material.corpora), material.validation):
        if other is not None and other.feature_size != material.feature_size:
            first, here = source_named(material.feature_size), source_named(other.feature_size)
            raise CorpusError(f"{other.paths[0]}: has {here}, where the first corpus has {first}")
    return material


def _check_free(request: TrainRequest) -> None:
    """Raise an error if the model would take the place of something that is not this training's."""
    if request.out.is_dir():
        raise OutputError(
            f"{request.out}: is a folder; name the model file, such as {request.out / 'model.regard'}"
        )
    if request.out.suffix in ("", ".run"):
        raise OutputError(f"{request.out}: name the model file with an ending, such as {request.out}.regard")
    if request.out.exists() and not (request.folder / RUN_FILE).exists():
        raise OutputError(f"{request.out}: exists already; choose another --out, or remove it first")
    if (request.folder / RUN_FILE).exists():
        other = read_about(request.folder).get("out")
        if other != request.out.name:
            raise OutputError(f"{request.folder}: is the run folder of {other}; choose another --out")
