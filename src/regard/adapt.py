"""A model adapted to new material: trained on from where it stands, and measured before and after.

A part of the new material is set aside as a test. So that the model does not forget, it also trains on
general text: the user's, or sentences with the translations that the model itself gives them (Kim and Rush
2016). Its weights then go only a part of the way from the old ones to the new ones (Wortsman et al. 2022).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from regard.corpus.input_file import read_lines
from regard.corpus.read import Corpus, Pair, holds_both, open_corpus, sample_pairs
from regard.corpus.split import Reading, split_off
from regard.corpus.write import write_pairs
from regard.errors import ConfigError, CorpusError, OutputError, TrainingError
from regard.evaluation.document import Evaluation
from regard.evaluation.run import evaluate
from regard.evaluation.testset import TestSet, read_test
from regard.flags import FLAGS
from regard.modelfile import ModelFile, load_model, save_model, summarise
from regard.options.text import BatchOptions
from regard.progress import Progress, Stages
from regard.training.display import Display
from regard.training.finish import Trained
from regard.training.prepare import MIN_PAIRS, Material, inspect_material
from regard.training.request import CorpusFiles, TrainRequest
from regard.training.run import train
from regard.training.stopping import Signals, catching_signals
from regard.translate.translator import FORKING, Translator

BEFORE, AFTER = "before", "after"
_STOPPED = "stopped; the same command goes on from here"

_TEST_SHARE = 10  # one pair in so many is set aside, at most `_MAX_TEST` and at least `_MIN_TEST`
_MAX_TEST = 500
_MIN_TEST = 20
_EPOCHS = 5  # over new and general text, if nobody says how long
_MIN_UPDATES, _MAX_UPDATES = 50, 5000
_VALIDATIONS = 8  # in a training of so many updates as the data suggest
_OWN_SHARE = 0.5  # of the new pairs: their sources have two translations then, and the new ones are to win
_MAX_OWN = 20_000  # sentences that the model translates itself
_MAX_GENERAL = 200_000
_WAY = 0.6  # from the old weights to the new: most of the gain, little of the loss elsewhere
_MEASURED = 1000  # pairs whose tokens are counted


@dataclass(frozen=True, slots=True)
class AdaptRequest:
    """What a user asks for: a model, new material, and perhaps general text and a time for the training.

    `general` is a corpus, or a plain file in the source language.
    """

    start: Path
    material: tuple[Path, ...]
    out: Path
    general: tuple[Path, ...] = ()
    seconds: float | None = None
    seed: int = 1
    device: str = "auto"

    @property
    def folder(self) -> Path:
        """The folder of the training, with the test pairs."""
        return self.out.with_suffix(".adapt")


@dataclass(frozen=True, slots=True)
class Adapted:
    """What came of adapting: the training, and the model before and after on each kind of text."""

    out: Path
    trained: Trained
    tests: dict[str, Evaluation]


@dataclass(frozen=True, slots=True)
class _Parts:
    """The files that the material was divided into, and what is to be said of them."""

    corpora: tuple[Path, ...]
    tests: dict[str, Path]
    num_updates: int
    notes: tuple[str, ...]


def adapt(request: AdaptRequest, display: Display, stages: Stages, signals: Signals | None = None) -> Adapted:
    """Train a model on new material, compare it with the one it was, and write it.

    Raises an error, and writes nothing, if the model is worse on the test part of the new material.
    """
    if signals is None:
        with catching_signals() as caught:
            return adapt(request, display, stages, caught)
    stages = signals.stages(stages, _STOPPED)
    start = load_model(request.start)
    _check_out(request)
    with stages() as progress:
        parts = _divide(request, start, progress)
    for note in parts.notes:
        display.note(note)
    budget = {"steps": parts.num_updates} if request.seconds is None else {"seconds": request.seconds}
    valid_steps = max(10, min(250, parts.num_updates // _VALIDATIONS))
    asked = TrainRequest(
        corpora=tuple(CorpusFiles((path,)) for path in parts.corpora),
        out=request.folder / "model.regard",
        source_language=start.source_language,
        target_language=start.target_language,
        options={"train": {"valid_steps": valid_steps, **budget}},
        seed=request.seed,
        device=request.device,
        start=request.start,
    )
    trained = train(asked, display, stages, signals)
    if trained is None:
        raise ConfigError("regard adapt is for one process; leave torchrun out")
    new, part_way = _part_way(start, load_model(trained.out)), request.folder / "part-way.regard"
    is_packed = summarise(request.start).is_packed
    save_model(part_way, new, packed=is_packed)  # what is measured has the weights that are written
    with stages() as progress:
        tests = {
            name: evaluate({BEFORE: request.start, AFTER: part_way}, _test(path, start), on_progress=progress)
            for name, path in parts.tests.items()
        }
    _refuse_worse(tests["new"])
    card = new.card | {"adapted": _card(request, tests)}
    save_model(request.out, replace(new, card=card), packed=is_packed)
    return Adapted(request.out, trained, tests)


def _part_way(start: ModelFile, trained: ModelFile) -> ModelFile:
    """Return the trained model with weights between the old and the new."""
    weights = {
        name: (1 - _WAY) * start.weights[name] + _WAY * weight for name, weight in trained.weights.items()
    }
    return replace(trained, weights=weights)


def _check_out(request: AdaptRequest) -> None:
    """Raise an error before the work if the model could not be written after it."""
    if request.out.suffix in ("", ".adapt"):
        raise OutputError(f"{request.out}: name the model file with an ending, such as {request.out}.regard")
    if request.out.exists():
        raise OutputError(f"{request.out}: exists already; choose another --out, or remove it first")
    try:
        request.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{request.folder}: cannot be made ({error.strerror})") from error


def _divide(request: AdaptRequest, start: ModelFile, progress: Progress) -> _Parts:
    """Divide the material into files: to train on, general text, and a test of each."""
    languages = start.source_language, start.target_language
    corpus = open_corpus(request.material, *languages)
    inspected = inspect_material(Material(((corpus, 1.0),), None), progress)
    name = " and ".join(path.name for path in request.material)
    num_test = min(_MAX_TEST, inspected.num_kept // _TEST_SHARE)
    if num_test < _MIN_TEST:
        raise CorpusError(
            f"{name}: {inspected.num_kept} good pairs are too few to adapt to and to measure it; at least "
            f"{_MIN_TEST * _TEST_SHARE} are needed"
        )
    readings: list[Reading] = [*inspected.readings()]
    general = _general_corpus(request, languages)
    if general is not None:
        readings.append(general.pairs)
    splits = [split_off(readings, num_test, request.seed)]
    if general is not None:
        splits.append(split_off(readings[::-1], num_test, request.seed))

    def kept(read: Reading) -> Iterator[Pair]:
        pairs: Iterable[Pair] = read()
        for split in splits:
            pairs = split.keep(pairs)
        return iter(pairs)

    write = _writer(request.folder, corpus)
    new, num_new = write("new", kept(readings[0]))
    if num_new < MIN_PAIRS:
        raise CorpusError(f"{name}: the pairs are too much alike to set {num_test} aside; give more of them")
    if general is not None:
        mixed = sample_pairs(kept(general.pairs), min(num_new, _MAX_GENERAL), request.seed)
        said = f"pairs of {' and '.join(path.name for path in request.general)}"
    else:
        texts: Iterable[str] = (pair.source for pair in kept(readings[0]))
        wanted, said = int(_OWN_SHARE * num_new), "sources of the new text as the model translates them"
        if request.general:
            texts, wanted, said = (
                read_lines(request.general[0]),
                num_new,
                "sentences as the model translates them",
            )
        mixed = list(_translated(start, _sampled(texts, min(wanted, _MAX_OWN), request.seed), progress))
    general_path, num_mixed = write("general", mixed)
    tests = {"new": write("test", splits[0].validation)[0]}
    if general is not None:
        tests["general"] = write("test-general", splits[1].validation)[0]
    notes = (
        f"{name}: {num_new:,} pairs to learn from; {num_test:,} are set aside as a test in {tests['new']}",
        f"general text: {num_mixed:,} {said}",
    )
    sampled = [*sample_pairs(kept(readings[0]), _MEASURED, request.seed), *mixed[:_MEASURED]]
    updates = _EPOCHS * (num_new + num_mixed) * _mean_tokens(start, sampled) / _batch_tokens(start)
    return _Parts((new, general_path), tests, int(min(_MAX_UPDATES, max(_MIN_UPDATES, updates))), notes)


def _general_corpus(request: AdaptRequest, languages: tuple[str | None, str | None]) -> Corpus | None:
    """Return the general text if it has both languages."""
    if not request.general or (len(request.general) == 1 and not holds_both(request.general[0])):
        return None
    return open_corpus(request.general, *languages)


def _sampled(texts: Iterable[str], wanted: int, seed: int) -> list[str]:
    """Return some of the texts that are not blank, at random."""
    pairs = (Pair(number, text, "") for number, text in enumerate(texts, 1) if text.strip())
    return [pair.source for pair in sample_pairs(pairs, wanted, seed)]


def _translated(start: ModelFile, texts: Sequence[str], progress: Progress) -> Iterator[Pair]:
    """Yield the texts with the translations of the model, those with a warning left out."""
    translator = Translator.of(start, pool=FORKING)
    for number, one in enumerate(translator.stream(texts, beam_size=1), 1):
        progress("translating general text", number, len(texts))
        if not any(FLAGS[flag].kind == "warning" for flag in one.flags):
            yield Pair(number, one.source, one.text)


def _writer(folder: Path, corpus: Corpus) -> Callable[[str, Iterable[Pair]], tuple[Path, int]]:
    """Return what writes pairs to a file of the folder, and returns the file and their number."""

    def write(name: str, pairs: Iterable[Pair]) -> tuple[Path, int]:
        path, num_pairs = folder / f"{name}.jsonl", 0
        path.unlink(missing_ok=True)  # of the same command, stopped before

        def counted() -> Iterator[Pair]:
            nonlocal num_pairs
            for pair in pairs:
                num_pairs += 1
                yield pair

        write_pairs(path, corpus, counted())
        return path, num_pairs

    return write


def _mean_tokens(start: ModelFile, pairs: Sequence[Pair]) -> float:
    tokenizers = start.tokenizers
    ids = tokenizers.target.encode_batch([tokenizers.clean_target(pair.target) for pair in pairs])
    return sum(len(one) + 1 for one in ids) / max(1, len(ids))


def _batch_tokens(start: ModelFile) -> int:
    return BatchOptions(**start.config.get("batch", {})).batch_tokens


def _test(path: Path, start: ModelFile) -> TestSet:
    return read_test([path], start.source_language, start.target_language)


def _refuse_worse(found: Evaluation) -> None:
    """Raise an error if the model is worse after than before."""
    before, after = (found.system(name).scores["bleu"].value for name in (BEFORE, AFTER))
    if after < before:
        raise TrainingError(
            f"not written: on the test part of the new text the model got worse, from {before:.1f} to "
            f"{after:.1f} BLEU; give more pairs or another --time"
        )


def _card(request: AdaptRequest, tests: dict[str, Evaluation]) -> dict[str, object]:
    """Return what the card of the model says of how it was adapted."""
    return {
        "from": request.start.name,
        "with": [path.name for path in request.material],
        "general": [path.name for path in request.general],
        "tests": {
            name: {
                "num_sentences": len(found.sources),
                "signature": found.signatures["bleu"],
                **{one.name: one.scores["bleu"].value for one in found.systems},
            }
            for name, found in tests.items()
        },
    }
