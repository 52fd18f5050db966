"""The experiment as one call: train the ladder, or go on with it, and measure it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.alignment.attention import Cut, cut_words
from regard.alignment.gold import read_gold
from regard.corpus.language_codes import Languages, check_languages
from regard.corpus.read import open_corpus
from regard.draw.progress import progress
from regard.errors import ConfigError
from regard.evaluation.resample import NUM_RESAMPLES, NUM_TRIALS
from regard.evaluation.testset import read_texts
from regard.lineage.climb import Plan, climb
from regard.lineage.document import Budget, Lineage
from regard.lineage.ladder import Rung, rungs
from regard.lineage.measure import Gold, Model, TestSet, measure
from regard.lineage.report import MODELS, check_folder
from regard.progress import Stages
from regard.training.device import choose_device
from regard.training.display import Display, open_display
from regard.training.prepare import Prepared, load_prepared
from regard.training.request import CorpusFiles


def lineage(
    files: Sequence[str | Path],
    folder: str | Path,
    *,
    seconds: float | None = None,
    steps: int | None = None,
    valid: Sequence[str | Path] = (),
    test: Sequence[str | Path] = (),
    gold: Gold | None = None,
    only: str | None = None,
    sentence: str | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    seed: int = 1,
    device: str = "auto",
    options: Mapping[str, Mapping[str, Any]] | None = None,
    display: Callable[[Rung], Display] = lambda rung: open_display(),
    stages: Stages = progress,
    num_resamples: int = NUM_RESAMPLES,
    num_trials: int = NUM_TRIALS,
) -> Lineage:
    """Train the rungs for `seconds` in all, or `steps` each, and return what each of them is worth.

    `files` are two plain files, or one TMX, TSV ... file. Models and runs are kept in `folder`/models; the
    same call again leaves what is finished and goes on with the rest. Without `test` the rungs are measured
    on the validation pairs. `options` are those of every rung, by section.
    `regard.lineage.report.write_report` writes the page.
    """
    ladder = rungs(only)
    check_folder(Path(folder))
    if sentence is not None and not sentence.strip():
        raise ConfigError("the sentence to show is blank; write one in the source language, or leave it out")
    if seconds is not None and not seconds > 0:
        raise ConfigError(f"{seconds:g} seconds are too few to learn in; give more time")
    plan = Plan(
        (CorpusFiles(tuple(map(Path, files))),),
        Path(folder) / MODELS,
        None if seconds is None else seconds / len(ladder),
        steps,
        tuple(map(Path, valid)),
        source_language,
        target_language,
        seed,
        device,
        options or {},
    )
    plan.check(ladder)
    choose_device(device)
    if gold is not None:
        _check_languages(plan, "the gold pairs are", gold.languages)
    given = _read_test(plan, tuple(map(Path, test))) if test else None
    trained = climb(plan, ladder, display, stages)
    measured = given or _held_out(plan, ladder)
    if (
        measured.target_language is None
    ):  # as the models then have it: one way of cutting words for all scores
        language = _prepared(plan, ladder[0]).facts.target_language
        measured = replace(measured, target_language=language)
    models = [
        Model(rung, one.out, one.num_updates, one.seconds, one.ended_early)
        for rung, one in zip(ladder, trained, strict=True)
    ]
    with stages() as show:
        return measure(
            models,
            Budget(plan.seconds_each, steps, _prepared(plan, ladder[0]).facts.num_pairs, seed),
            measured,
            gold,
            sentence,
            show,
            num_resamples,
            num_trials,
        )


def read_gold_pairs(
    source: Path,
    target: Path,
    links: Path,
    *,
    from_one: bool = False,
    is_reversed: bool = False,
    cut: Cut = "spaces",
) -> Gold:
    """Return pairs aligned by hand."""
    texts = read_texts([source, target])
    pairs = tuple(zip(texts.sources, texts.references, strict=True))
    lengths = [(len(cut_words(a, cut)), len(cut_words(b, cut))) for a, b in pairs]
    if is_reversed:
        lengths = [(b, a) for a, b in lengths]
    found = read_gold(links, counted_from=1 if from_one else 0, lengths=lengths)
    return Gold(
        pairs,
        tuple(one.flipped() for one in found) if is_reversed else tuple(found),
        cut,
        Languages.of(texts),
    )


def _read_test(plan: Plan, paths: Sequence[Path]) -> TestSet:
    """Return the test set of the user, checked against the languages of the corpus if both are known."""
    corpus = open_corpus(plan.corpora[0].paths, plan.source_language, plan.target_language)
    texts = read_texts(paths, corpus.source_language, corpus.target_language)
    _check_languages(plan, f"{paths[0]} is", Languages.of(texts))
    return TestSet(texts.sources, texts.references, False, corpus.target_language or texts.target_language)


def _check_languages(plan: Plan, what: str, languages: Languages) -> None:
    """Raise an error if texts are known to be in other languages than the corpus."""
    corpus = open_corpus(plan.corpora[0].paths, plan.source_language, plan.target_language)
    mend = "give the files the other way round"
    check_languages("the corpus is", Languages.of(corpus), what, languages, mend)


def _held_out(plan: Plan, ladder: Sequence[Rung]) -> TestSet:
    """Return what the rungs were validated on: the seed has set the same pairs aside for all of them."""
    prepared = [_prepared(plan, rung) for rung in ladder]
    # A pair that is too long in the pieces of one rung is left out there, and so for all.
    shared = set.intersection(*(set(one.validation) for one in prepared))
    pairs = [pair for pair in prepared[0].validation if pair in shared]
    return TestSet(
        tuple(source for source, _ in pairs),
        tuple(target for _, target in pairs),
        True,
        prepared[0].facts.target_language,
    )


def _prepared(plan: Plan, rung: Rung) -> Prepared:
    return load_prepared(plan.request_of(rung).folder / "data")
