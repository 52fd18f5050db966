"""From models and a test set to an `Evaluation`: the one road that commands, reports and notebooks take."""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.corpus.language_codes import Languages, check_languages
from regard.draw.heatmap import HeatMap
from regard.errors import ConfigError, CorpusError, SourceError
from regard.evaluation.bench import Bench
from regard.evaluation.document import Evaluation, Likelihood, Speed, System
from regard.evaluation.examples import pictured
from regard.evaluation.frequency import by_frequency, count_words, split_words
from regard.evaluation.resample import NUM_RESAMPLES, NUM_TRIALS, SEED
from regard.evaluation.scores import measures
from regard.modelfile import ModelFile, load_model
from regard.text.words import words
from regard.translate.translator import FORKING, Translator
from regard.vocabulary import RESERVED, UNK

Show = Callable[[str, int, int], None]  # what is being done, how much of it is done, and of how much

_CHUNK_SENTENCES = 2000  # translated at a time; their attention is not kept
_FORCED_AT_ONCE = 100
_MAX_NLL = 700.0  # beyond it there is no float for its perplexity


def evaluate(
    models: Sequence[str | Path] | Mapping[str, str | Path | Translator],
    sources: Sequence[str],
    references: Sequence[str],
    *,
    given: Mapping[str, Sequence[str]] | None = None,
    lower: bool = False,
    tokenized: bool = False,
    source_language: str | None = None,
    target_language: str | None = None,
    train_counts: Counter[str] | None = None,
    guard: bool = True,
    num_resamples: int = NUM_RESAMPLES,
    num_trials: int = NUM_TRIALS,
    seed: int = SEED,
    heat_maps: bool = False,
    on_progress: Show | None = None,
    **search: Any,
) -> Evaluation:
    """Translate with each model and return how good that is, by every measure; the first is compared with.

    `models` are files, or files or translators by name. `given` has the translations of other systems by
    name. Texts are compared cased and detokenised, unless `lower` or `tokenized` says that letters or spaces
    are to be taken otherwise. Where languages are known, a model of other languages is refused.
    `train_counts` says how often words were seen (`count_words`); without it the references are counted.
    Without the `guard` models are measured bare: nothing is tried again, and no long source is split.
    `heat_maps` keeps pictures of the sentences worth a look. `search` takes the options of that section, such
    as `beam_size=1`.
    """
    if isinstance(sources, str) or isinstance(references, str):
        raise TypeError("evaluate() takes lists of texts; put single texts into brackets")
    given = given or {}
    named = models if isinstance(models, Mapping) else dict(zip(names_of(models), models, strict=True))
    _check(sources, references, named, given)
    show = on_progress or (lambda stage, done, total: None)
    opened = [_open(name, model, guard) for name, model in named.items()]  # all, before the first translates
    for one in opened:
        check_languages(
            f"{one.path or one.name} translates",
            Languages.of(one),
            "the test set is",
            Languages(source_language, target_language),
            "give the files the other way round, or another model",
        )
    language = target_language or next((one.target_language for one in opened if one.target_language), None)
    bench = Bench(
        sources, references, measures(language, lower=lower, tokenized=tokenized), num_resamples, seed
    )
    occurrences = count_words(references, lower, tokenized) if train_counts is None else train_counts
    wanted_words = [split_words(text, lower, tokenized) for text in references]

    drafts: list[_Draft] = []
    for model in opened:
        said = _translate(model, sources, {"guard": guard, **search}, show)
        likelihood = _likelihood(model, sources, references, show)
        drafts.append(replace(said, likelihood=likelihood))
    drafts += [
        _Draft(name, None, None, None, tuple(texts), ((),) * len(texts)) for name, texts in given.items()
    ]
    for place, draft in enumerate(drafts):
        show("scoring", place, len(drafts))
        bench.count(draft.name, draft.texts)
    show("scoring", len(drafts), len(drafts))
    scores, differences = bench.compare(num_trials)
    by_length = bench.by_length()
    systems = []
    for draft in drafts:
        said_words = [split_words(text, lower, tokenized) for text in draft.texts]
        systems.append(
            System(
                draft.name,
                draft.path,
                draft.num_parameters,
                scores[draft.name],
                by_length[draft.name],
                by_frequency(said_words, wanted_words, occurrences, num_resamples, seed),
                bench.by_flag(draft.name, draft.flags) if draft.translator else (),
                draft.likelihood,
                draft.speed,
                draft.texts,
                draft.flags,
                tuple(bench.sentences(draft.name)),
            )
        )
    evaluation = Evaluation(
        tuple(sources),
        tuple(references),
        tuple(systems),
        differences,
        {name: measure.signature(num_resamples, seed) for name, measure in bench.measures.items()},
        f"{'lower-cased' if lower else 'cased'}, {'tokenised' if tokenized else 'detokenised'}",
        "the references" if train_counts is None else "the training data",
        num_resamples,
        num_trials,
        seed,
        dict(search),
        guard,
    )
    return _with_heat_maps(evaluation, drafts, show) if heat_maps else evaluation


def names_of(paths: Sequence[str | Path]) -> list[str]:
    """Return a name for each file: as short as tells them apart."""
    files = [Path(path) for path in paths]
    for take in (lambda path: path.stem, lambda path: path.name, str):
        names = [take(path) for path in files]
        if len(set(names)) == len(names):
            return names
    return [f"{name} #{number}" for number, name in enumerate(names, 1)]


def _check(
    sources: Sequence[str],
    references: Sequence[str],
    models: Mapping[str, Any],
    given: Mapping[str, Sequence[str]],
) -> None:
    """Raise an error for what cannot be compared."""
    if not models and not given:
        raise ConfigError("there is nothing to evaluate; give a model, or translations of another system")
    if twice := models.keys() & given.keys():
        raise ConfigError(f"two systems are called {min(twice)!r}; give one of them another name")
    counts = {"sources": len(sources), "references": len(references)}
    counts |= {f"translations by {name}": len(texts) for name, texts in given.items()}
    if not sources or len(set(counts.values())) > 1:
        told = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        raise CorpusError(f"cannot evaluate {told}; give one of each for every sentence, and at least one")
    for side, texts in (("source", sources), ("reference", references)):
        for number, text in enumerate(texts, 1):
            if not text.strip():
                raise CorpusError(f"{side} {number:,} is blank; leave that sentence out")


@dataclass(frozen=True, slots=True)
class _Model:
    name: str
    path: str | None
    translator: Translator
    source_language: str | None
    target_language: str | None
    num_parameters: int | None


def _open(name: str, model: str | Path | Translator, guard: bool) -> _Model:
    if isinstance(model, Translator):
        return _Model(name, None, model, None, None, None)
    file: ModelFile = load_model(Path(model))
    if not guard:
        file = replace(file, split_above=None)
    num_parameters = sum(weight.size for weight in file.weights.values())
    return _Model(
        name,
        str(model),
        Translator.of(file, pool=FORKING),
        file.source_language,
        file.target_language,
        num_parameters,
    )


@dataclass(frozen=True, slots=True)
class _Draft:
    """What a system has said, before it is scored."""

    name: str
    path: str | None
    translator: Translator | None
    num_parameters: int | None
    texts: tuple[str, ...]
    flags: tuple[tuple[str, ...], ...]
    speed: Speed | None = None
    likelihood: Likelihood | None = None


def _translate(model: _Model, sources: Sequence[str], how: Mapping[str, Any], show: Show) -> _Draft:
    texts: list[str] = []
    flags: list[tuple[str, ...]] = []
    started = time.perf_counter()
    for first in range(0, len(sources), _CHUNK_SENTENCES):

        def count(num_done: int, first: int = first) -> None:
            show(f"translating with {model.name}", first + num_done, len(sources))

        chunk = sources[first : first + _CHUNK_SENTENCES]
        for one in model.translator.translate(chunk, on_progress=count, **how):
            texts.append(one.text)
            flags.append(one.flags)
    seconds = time.perf_counter() - started
    num_words = sum(len(words(source)) for source in sources)
    speed = Speed(seconds, len(sources) / seconds, num_words / seconds)
    return _Draft(
        model.name, model.path, model.translator, model.num_parameters, tuple(texts), tuple(flags), speed
    )


def _likelihood(
    model: _Model, sources: Sequence[str], references: Sequence[str], show: Show
) -> Likelihood | None:
    """Return how likely the references are; None if not one of them fits into the model."""
    nats, num_pieces, num_characters, num_unknown, num_left_out = 0.0, 0, 0, 0, 0
    all_pairs = list(zip(sources, references, strict=True))
    for first in range(0, len(sources), _FORCED_AT_ONCE):
        show(f"reading the references with {model.name}", first, len(sources))
        pairs = all_pairs[first : first + _FORCED_AT_ONCE]
        for forced, (_, reference) in zip(_forced(model.translator, pairs), pairs, strict=True):
            if forced is None:
                num_left_out += 1
                continue
            nats -= forced.log_prob
            num_pieces += len(forced.pieces)
            num_unknown += forced.pieces.count(RESERVED[UNK])
            num_characters += len(reference) + 1
    show(f"reading the references with {model.name}", len(sources), len(sources))
    if not num_pieces:
        return None
    perplexity = math.exp(min(nats / num_pieces, _MAX_NLL))
    return Likelihood(perplexity, nats / math.log(2) / num_characters, num_pieces, num_unknown, num_left_out)


def _forced(translator: Translator, pairs: Sequence[tuple[str, str]]) -> list[Any]:
    """Return each pair as the model sees it, None if it is too long for it."""
    try:
        return list(translator.force([source for source, _ in pairs], [target for _, target in pairs]))
    except SourceError:
        if len(pairs) == 1:
            return [None]
        return [found for pair in pairs for found in _forced(translator, [pair])]


def _with_heat_maps(evaluation: Evaluation, drafts: Sequence[_Draft], show: Show) -> Evaluation:
    """Return the evaluation with pictures of the sentences worth a look."""
    rows = pictured(evaluation)
    systems = []
    for place, (system, draft) in enumerate(zip(evaluation.systems, drafts, strict=True)):
        show("drawing", place, len(drafts))
        maps: dict[int, HeatMap] = {}
        said = [row for row in rows if system.texts[row].strip()]
        if draft.translator and said:
            pairs = [(evaluation.sources[row], system.texts[row]) for row in said]
            for row, forced in zip(said, _forced(draft.translator, pairs), strict=True):
                if forced is not None and forced.words:
                    maps[row] = replace(forced.heat_map, title=system.name)
        systems.append(replace(system, heat_maps=maps))
    return replace(evaluation, systems=tuple(systems))
