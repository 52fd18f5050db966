"""From models and a test set to an `Evaluation`: the one function that commands and notebooks call."""

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from regard.contract import Features
from regard.corpus.language_codes import Languages
from regard.draw.heatmap import HeatMap
from regard.engines import Compute
from regard.errors import ConfigError, CorpusError, SourceError
from regard.evaluation.bench import Bench
from regard.evaluation.document import Evaluation, Likelihood, Speed, System
from regard.evaluation.examples import pictured
from regard.evaluation.frequency import by_frequency, count_words, split_words
from regard.evaluation.resample import NUM_RESAMPLES, NUM_TRIALS, SEED
from regard.evaluation.scores import measures
from regard.evaluation.testset import TestSet
from regard.loaded import Loaded
from regard.options.search import BeamOptions
from regard.progress import Progress, unshown
from regard.search.searcher import Search
from regard.text.words import words
from regard.translate.request import Request
from regard.translate.result import Translation
from regard.translate.translator import FORKING, Translator
from regard.vocabulary import RESERVED, UNK

Models = Sequence[str | Path] | Mapping[str, str | Path | Translator]
"""Model files, or model files or translators by name."""

_FORCED_AT_ONCE = 100
_MAX_NLL = 700.0  # beyond it there is no float for its perplexity


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """How to translate a test set, and how to compare the translations.

    `search` is how models translate. Without the `guard` they are measured bare: nothing is tried again, and
    no long source is split. `compute` says which engine is used. Texts are compared cased and detokenised,
    unless `lower` or `tokenized` is true.
    `train_counts` says how often words were seen (`count_words`); without it the references are counted.
    `heat_maps` keeps pictures of the sentences worth a look.
    """

    search: Search = field(default_factory=BeamOptions)
    guard: bool = True
    compute: Compute = field(default_factory=Compute)
    lower: bool = False
    tokenized: bool = False
    train_counts: Counter[str] | None = None
    num_resamples: int = NUM_RESAMPLES
    num_trials: int = NUM_TRIALS
    seed: int = SEED
    heat_maps: bool = False

    @property
    def compared(self) -> str:
        """How letters and words are compared, in words."""
        letters = "lower-cased" if self.lower else "cased"
        return f"{letters}, {'tokenised' if self.tokenized else 'detokenised'}"


def evaluate(
    models: Models,
    test: TestSet,
    options: EvaluationOptions | None = None,
    *,
    given: Mapping[str, Sequence[str]] | None = None,
    on_progress: Progress = unshown,
) -> Evaluation:
    """Return how well each model translates the test set, by every measure, and how any two differ.

    `given` has the translations of other systems by name. A model of other languages is refused, where
    languages are known.
    """
    options, given = options or EvaluationOptions(), given or {}
    named = models if isinstance(models, Mapping) else dict(zip(names_of(models), models, strict=True))
    _check(test, named, given)
    # All are opened before the first translates, so that mistakes show at once.
    translators = {name: _open(model, test, options) for name, model in named.items()}
    drafts = [
        _translate(name, _path(named[name]), translator, test, options, on_progress)
        for name, translator in translators.items()
    ]
    drafts += [_Draft(name, tuple(texts), ((),) * len(texts)) for name, texts in given.items()]
    language = test.target_language or next(
        (one.model.target_language for one in translators.values() if one.model.target_language), None
    )
    bench = Bench(
        test.sources,
        test.references,
        measures(language, lower=options.lower, tokenized=options.tokenized),
        options.num_resamples,
        options.seed,
    )
    for place, draft in enumerate(drafts):
        on_progress("scoring", place, len(drafts))
        bench.count(draft.name, draft.texts)
    on_progress("scoring", len(drafts), len(drafts))
    warnings = tuple(line for name, one in translators.items() for line in _seen(name, one, test))
    scored = replace(_scored(drafts, bench, test, options), warnings=warnings)
    return _with_heat_maps(scored, drafts, test, on_progress) if options.heat_maps else scored


def names_of(paths: Sequence[str | Path]) -> list[str]:
    """Return a name for each file: as short as tells them apart."""
    files = [Path(path) for path in paths]
    for take in (lambda path: path.stem, lambda path: path.name, str):
        names = [take(path) for path in files]
        if len(set(names)) == len(names):
            return names
    return [f"{name} #{number}" for number, name in enumerate(names, 1)]


def _check(test: TestSet, models: Mapping[str, object], given: Mapping[str, Sequence[str]]) -> None:
    """Raise an error for what cannot be compared."""
    if not models and not given:
        raise ConfigError("there is nothing to evaluate; give a model, or translations of another system")
    if twice := models.keys() & given.keys():
        raise ConfigError(f"two systems are called {min(twice)!r}; give one of them another name")
    for name, texts in given.items():
        if len(texts) != len(test.sources):
            raise CorpusError(
                f"cannot evaluate {len(test.sources):,} sources with {len(texts):,} translations by {name}; "
                "give one for every sentence"
            )


def _path(model: str | Path | Translator) -> str | None:
    return None if isinstance(model, Translator) else str(model)


def _open(model: str | Path | Translator, test: TestSet, options: EvaluationOptions) -> Translator:
    """Return the translator of a model, which must not be known to translate other languages."""
    if isinstance(model, Translator):
        translator = model
    else:
        loaded = Loaded.open(model, compute=options.compute)
        translator = Translator(loaded if options.guard else replace(loaded, split_above=None), FORKING)
    translator.model.check_languages("the test set is", Languages.of(test))
    return translator


def _seen(name: str, translator: Translator, test: TestSet) -> list[str]:
    """Return a line if pairs of the test set stand in the training data of a model."""
    file = translator.model.file
    if file is None or file.seen_pairs is None or test.features:
        return []
    found = file.seen_pairs.overlap(zip(test.sources, test.references, strict=True))
    if not found.num_seen:
        return []
    of = f"{found.num_checked:,} test pairs"
    if found.num_checked < len(test.sources):
        of += " that could be checked"
    why = "so its scores are too high; take them out of the test set"
    return [f"Warning: {name} was trained on {found.num_seen:,} of {of}, {why}."]


@dataclass(frozen=True, slots=True)
class _Draft:
    """The translations of a system, before they are scored; the rest is known of a model only."""

    name: str
    texts: tuple[str, ...]
    flags: tuple[tuple[str, ...], ...]
    path: str | None = None
    translator: Translator | None = None
    speed: Speed | None = None
    likelihood: Likelihood | None = None

    @property
    def num_parameters(self) -> int | None:
        file = self.translator.model.file if self.translator else None
        return None if file is None else sum(weight.size for weight in file.weights.values())


def _translate(
    name: str,
    path: str | None,
    translator: Translator,
    test: TestSet,
    options: EvaluationOptions,
    show: Progress,
) -> _Draft:
    texts: list[str] = []
    flags: list[tuple[str, ...]] = []
    num_sources = len(test.sources)
    started = time.perf_counter()
    requests = (Request.of(one, search=options.search, guard=options.guard) for one in test.inputs)
    for one in translator.stream(requests):
        texts.append(one.text)
        flags.append(one.flags)
        show(f"translating with {name}", len(texts), num_sources)
    seconds = time.perf_counter() - started
    num_words = sum(len(words(source)) for source in test.sources)
    speed = Speed(seconds, num_sources / seconds, num_words / seconds)
    likelihood = _likelihood(name, translator, test, show)
    return _Draft(name, tuple(texts), tuple(flags), path, translator, speed, likelihood)


def _scored(drafts: Sequence[_Draft], bench: Bench, test: TestSet, options: EvaluationOptions) -> Evaluation:
    """Return the scores of all translations."""
    scores, differences = bench.compare(options.num_trials)
    by_length = bench.by_length()

    def split(texts: Sequence[str]) -> list[list[str]]:
        return [split_words(text, options.lower, options.tokenized) for text in texts]

    wanted = split(test.references)
    seen = options.train_counts
    if seen is None:
        seen = count_words(test.references, options.lower, options.tokenized)
    systems = [
        System(
            name=draft.name,
            path=draft.path,
            num_parameters=draft.num_parameters,
            scores=scores[draft.name],
            by_length=by_length[draft.name],
            by_frequency=by_frequency(split(draft.texts), wanted, seen, options.num_resamples, options.seed),
            by_flag=bench.by_flag(draft.name, draft.flags) if draft.translator else (),
            likelihood=draft.likelihood,
            speed=draft.speed,
            texts=draft.texts,
            flags=draft.flags,
            chrf=tuple(bench.sentences(draft.name)),
        )
        for draft in drafts
    ]
    return Evaluation(
        sources=test.sources,
        references=test.references,
        systems=tuple(systems),
        differences=differences,
        signatures={
            name: measure.signature(options.num_resamples, options.seed)
            for name, measure in bench.measures.items()
        },
        compared=options.compared,
        counted="the references" if options.train_counts is None else "the training data",
        num_resamples=options.num_resamples,
        num_trials=options.num_trials,
        seed=options.seed,
        search=_told(options.search),
        guard=options.guard,
    )


def _likelihood(name: str, translator: Translator, test: TestSet, show: Progress) -> Likelihood | None:
    """Return how likely the references are; None if not one of them fits into the model."""
    nats, num_pieces, num_characters, num_unknown, num_left_out = 0.0, 0, 0, 0, 0
    all_pairs = list(zip(test.inputs, test.references, strict=True))
    for first in range(0, len(all_pairs), _FORCED_AT_ONCE):
        show(f"reading the references with {name}", first, len(all_pairs))
        pairs = all_pairs[first : first + _FORCED_AT_ONCE]
        for forced, (_, reference) in zip(_forced(translator, pairs), pairs, strict=True):
            if forced is None:
                num_left_out += 1
                continue
            nats -= forced.log_prob
            num_pieces += len(forced.pieces)
            num_unknown += forced.pieces.count(RESERVED[UNK])
            num_characters += len(reference) + 1
    show(f"reading the references with {name}", len(all_pairs), len(all_pairs))
    if not num_pieces:
        return None
    perplexity = math.exp(min(nats / num_pieces, _MAX_NLL))
    return Likelihood(perplexity, nats / math.log(2) / num_characters, num_pieces, num_unknown, num_left_out)


def _forced(translator: Translator, pairs: Sequence[tuple[str | Features, str]]) -> list[Translation | None]:
    """Return each pair as the model sees it, None if it is too long for it."""
    try:
        return list(translator.force([source for source, _ in pairs], [target for _, target in pairs]))
    except SourceError:
        if len(pairs) == 1:
            return [None]
        return [found for pair in pairs for found in _forced(translator, [pair])]


def _told(search: Search) -> dict[str, Any]:
    """Return the options of a search that somebody set; that it is a beam goes without saying."""
    values = search.model_dump(exclude_unset=True)
    return {key: value for key, value in values.items() if (key, value) != ("kind", "beam")}


def _with_heat_maps(
    evaluation: Evaluation, drafts: Sequence[_Draft], test: TestSet, show: Progress
) -> Evaluation:
    """Return the evaluation with pictures of the sentences worth a look."""
    rows = pictured(evaluation)
    systems = []
    for place, (system, draft) in enumerate(zip(evaluation.systems, drafts, strict=True)):
        show("drawing", place, len(drafts))
        maps: dict[int, HeatMap] = {}
        said = [row for row in rows if system.texts[row].strip()]
        if draft.translator and said:
            pairs = [(test.inputs[row], system.texts[row]) for row in said]
            for row, forced in zip(said, _forced(draft.translator, pairs), strict=True):
                if forced is not None and forced.words:
                    maps[row] = replace(forced.heat_map, title=system.name)
        systems.append(replace(system, heat_maps=maps))
    return replace(evaluation, systems=tuple(systems))
