"""The end of a training: the best model is scored by beam search and written with its card."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.alignment.reading import AFTERWARDS, Reading
from regard.corpus.batches import Batches
from regard.engines import NUMPY
from regard.evaluation.scores import LengthScore, Scores, score
from regard.loaded import Loaded
from regard.model.build import build_model, import_arrays
from regard.model.engine import TorchEngine
from regard.modelfile import ModelFile, load_model, save_model
from regard.progress import Stages
from regard.runtime.build import build_engine
from regard.runtime.recurrent import tells_posterior
from regard.training.folder import BEST_FILE, DATA_FOLDER, START_FILE, read_json, write_json
from regard.training.guide import taught_reading
from regard.training.history import RESULT_FILE, RUN_FILE
from regard.training.known import known_words, seen_pairs
from regard.training.loop import NO_BETTER
from regard.training.prepare import Prepared, load_prepared
from regard.training.reading import choose_reading
from regard.training.recipes import RunOptions, options_of
from regard.training.request import TrainRequest
from regard.training.validate import Validated
from regard.training.verdict import Direction, Outcome, Pace, Verdict, judge
from regard.translate.result import Translation
from regard.translate.translator import FORKING, IN_THIS_THREAD, Translator

_BEAM_SIZE = 5
_LEAST_LONG = 32  # tokens of a source that is never too long, even if validation had shorter ones only
_SAMPLE_PIECES = 12  # sentences of about this length show best what a model does


@dataclass(frozen=True)
class Trained:
    """What came of a training."""

    out: Path
    reason: str
    num_updates: int
    seconds: float
    scores: Scores
    samples: tuple[tuple[Translation, str], ...]  # translations of validation sentences, with the references
    verdict: Verdict | None  # of what worth it is

    @property
    def ended_early(self) -> bool:
        """Whether validation no longer improved, and not all of the budget was used."""
        return self.reason.startswith(NO_BETTER)


def finished(request: TrainRequest) -> Trained:
    """Return what came of a training that was finished before."""
    result = read_json(request.folder / RESULT_FILE)
    by_length = tuple(LengthScore(**row) for row in result["scores"]["by_length"])
    scores = Scores(**(result["scores"] | {"by_length": by_length}))
    verdict = Verdict(**result["verdict"]) if result.get("verdict") else None
    return Trained(request.out, result["reason"], result["step"], result["seconds"], scores, (), verdict)


def finish(request: TrainRequest, device: torch.device, end: dict[str, Any], stages: Stages) -> Trained:
    """Score the best model by beam search, write the model file, and return what came of it."""
    folder = request.folder
    about, prepared = read_json(folder / RUN_FILE), load_prepared(folder / DATA_FOLDER)
    options = options_of(about["config"])
    start = None if request.start is None else load_model(folder / START_FILE)
    best = _with_habits(load_model(folder / BEST_FILE), prepared, options, start)
    best = replace(best, known_words=known_words(prepared, start), seen_pairs=seen_pairs(prepared, start))
    sources, references = prepared.sources, prepared.references
    with stages() as progress:
        translations = _translator(best, device).translate(
            sources,
            beam_size=_BEAM_SIZE,
            on_progress=lambda done: progress("translating the validation set", done, len(sources)),
        )
    scores = score(
        [one.text for one in translations],
        references,
        sources=[one.source for one in translations],
        target_language=prepared.facts.target_language,
    )
    direction = Direction.of(request, prepared.facts.source_language, prepared.facts.target_language)
    verdict = _judge(scores, end, options, prepared, direction)
    judged = {"verdict": asdict(verdict)} if verdict else {}
    card = (
        origin(about)
        | judged
        | {
            "training": end,
            "validation": asdict(scores) | {"beam_size": _BEAM_SIZE},
        }
    )
    save_model(request.out, replace(best, card=card))
    write_json(folder / RESULT_FILE, {"scores": asdict(scores)} | judged | end)
    pairs = list(zip(translations, references, strict=True))
    samples = sorted(pairs, key=lambda pair: abs(len(pair[0].source_pieces) - _SAMPLE_PIECES))[:3]
    return Trained(request.out, end["reason"], end["step"], end["seconds"], scores, tuple(samples), verdict)


def _judge(
    scores: Scores, end: dict[str, Any], options: RunOptions, prepared: Prepared, direction: Direction
) -> Verdict | None:
    return judge(
        Outcome(
            bleu=scores.bleu,
            ignores_source=end["ignores_source"],
            stopped_improving=end["reason"].startswith(NO_BETTER),
            num_pairs=prepared.facts.num_pairs,
            pace=Pace(
                end["step"], end["seconds"], end["prepared_seconds"], options.train.seconds is not None
            ),
            direction=direction,
        )
    )


def _with_habits(
    model: ModelFile, prepared: Prepared, options: RunOptions, start: ModelFile | None
) -> ModelFile:
    """Return the model with what was learnt about it: which attention aligns, and how long sources may be.

    What the model that it began with had found to align stays unless another head was taught, and sources may
    be as long as they could be there.
    """
    known, longest = (None, 0) if start is None else (start.reading, start.split_above or 0)
    if model.options.source.kind == "features":  # without words on both sides, nothing tells what aligns
        return replace(model, reading=known)
    afterwards = tells_posterior(model.options)
    engine = build_engine(model.options, model.weights, posterior=afterwards)
    batches = Batches(prepared.shares, options.batch, options.seed)
    store = prepared.validation_store
    longest = max(longest, int(store.source.lengths(np.arange(len(store))).max(initial=0)))
    taught = taught_reading(options.model, options.train)
    if taught is not None and afterwards:
        taught = AFTERWARDS
    return replace(
        model,
        reading=taught or known or choose_reading(engine, (batch for _, batch in batches.iterate())),
        split_above=min(options.batch.max_tokens, max(longest, _LEAST_LONG)),
    )


def _translator(model: ModelFile, device: torch.device) -> Translator:
    """Return the users' translator, or on a GPU one that computes there."""
    if device.type != "cuda":
        return Translator.of(model, pool=FORKING, compute=NUMPY)
    sizes = model.tokenizers.source.vocab_size, model.tokenizers.target.vocab_size
    on_device = build_model(model.options, *sizes)
    import_arrays(on_device, model.weights)
    engine = TorchEngine(on_device.to(device))
    reading = model.reading
    if reading is not None and reading.posterior:  # which this engine does not tell
        reading = Reading(reading.layer, reading.head, shifted=False)
    loaded = Loaded.with_engine(engine, model.tokenizers, reading=reading, split_above=model.split_above)
    return Translator(loaded, IN_THIS_THREAD)


def origin(about: dict[str, Any]) -> dict[str, Any]:
    """Return what the card of a model says of where it comes from, finished or not."""
    return {
        "created": about["created"],
        "regard": about["regard"],
        "preset": about["preset"],
        "start": about.get("start"),
        "data": about["facts"],
    }


def model_file(
    options: RunOptions, prepared: Prepared, validated: Validated, about: dict[str, Any], card: dict[str, Any]
) -> ModelFile:
    """Return a model with the weights of a validation."""
    return ModelFile(
        options=options.model,
        weights=validated.weights,
        tokenizers=prepared.tokenizers,
        source_language=prepared.facts.source_language,
        target_language=prepared.facts.target_language,
        config=about["config"],
        card=card,
    )
