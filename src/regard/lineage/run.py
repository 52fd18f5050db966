"""The experiment as one call: train the ladder, or go on with it, and measure it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from regard.alignment.gold import read_gold
from regard.corpus.language_codes import Languages, check_languages
from regard.corpus.read import open_corpus
from regard.errors import ConfigError
from regard.evaluation.resample import NUM_RESAMPLES, NUM_TRIALS
from regard.evaluation.testset import TestSet, read_test
from regard.lineage.climb import Plan, climb
from regard.lineage.document import Budget, Lineage
from regard.lineage.ladder import Rung, rungs
from regard.lineage.measure import Gold, Measuring, TrainedRung, measure
from regard.lineage.report import MODELS, check_folder
from regard.progress import Stages, unshown_stages
from regard.text.words import Cut, cut_words
from regard.training.device import choose_device
from regard.training.display import Display, log_display
from regard.training.prepare import Prepared, load_prepared
from regard.training.request import CorpusFiles


@dataclass(frozen=True)
class LineageOptions:
    """What a lineage is trained and measured on.

    The rungs share `seconds`, or each has `steps` updates. `validation` and `test` are files, as those of the
    corpus; without `test` the rungs are measured on the validation pairs. `only` has the names of some rungs.
    `sentence` is the one whose heat maps are shown. `sections` are options for every rung, by section.
    """

    seconds: float | None = None
    steps: int | None = None
    validation: Sequence[str | Path] = ()
    test: Sequence[str | Path] = ()
    gold: Gold | None = None
    only: str | None = None
    sentence: str | None = None
    source_language: str | None = None
    target_language: str | None = None
    seed: int = 1
    device: str = "auto"
    sections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    num_resamples: int = NUM_RESAMPLES
    num_trials: int = NUM_TRIALS

    def __post_init__(self) -> None:
        if self.sentence is not None and not self.sentence.strip():
            raise ConfigError("the sentence is blank; give one in the source language, or remove it")
        if self.seconds is not None and not self.seconds > 0:
            raise ConfigError(f"{self.seconds:g} seconds are not enough for training; give more time")

    def plan(self, files: Sequence[str | Path], folder: Path, num_rungs: int) -> Plan:
        """Return what all rungs share."""
        return Plan(
            (CorpusFiles(tuple(map(Path, files))),),
            folder,
            None if self.seconds is None else self.seconds / num_rungs,
            self.steps,
            tuple(map(Path, self.validation)),
            self.source_language,
            self.target_language,
            self.seed,
            self.device,
            self.sections,
        )


def lineage(
    files: Sequence[str | Path],
    folder: str | Path,
    options: LineageOptions,
    *,
    display: Callable[[Rung], Display] = lambda rung: log_display(),
    stages: Stages = unshown_stages,
) -> Lineage:
    """Train the rungs of the ladder, or go on with them, and return how well each translates.

    `files` are two plain files, or one TMX, TSV ... file. Models and runs are kept in `folder`/models; the
    same call again leaves finished rungs as they are. `regard.lineage.report.write_report` writes the page.
    """
    ladder = rungs(options.only)
    check_folder(Path(folder))
    plan = options.plan(files, Path(folder) / MODELS, len(ladder))
    plan.check(ladder)
    choose_device(options.device)
    if options.gold is not None:
        _check_languages(plan, "the gold pairs are", options.gold.languages)
    given = _read_test(plan, tuple(map(Path, options.test))) if options.test else None
    trained = climb(plan, ladder, display, stages)
    facts = _prepared(plan, ladder[0]).facts
    test = given or _held_out(plan, ladder)
    if test.target_language is None:  # as the models then have it: one way of cutting words for all scores
        test = replace(test, target_language=facts.target_language)
    models = [
        TrainedRung(rung, one.out, one.num_updates, one.seconds, one.ended_early)
        for rung, one in zip(ladder, trained, strict=True)
    ]
    budget = Budget(plan.seconds_each, options.steps, facts.num_pairs, options.seed)
    how = Measuring(given is None, options.gold, options.sentence, options.num_resamples, options.num_trials)
    with stages() as show:
        return measure(models, budget, test, how, show)


def read_gold_pairs(
    source: Path,
    target: Path,
    links: Path,
    *,
    counted_from: Literal[0, 1] = 0,
    target_first: bool = False,
    cut: Cut = "spaces",
) -> Gold:
    """Return pairs aligned by hand."""
    texts = read_test([source, target])
    pairs = tuple(zip(texts.sources, texts.references, strict=True))
    lengths = [(len(cut_words(a, cut)), len(cut_words(b, cut))) for a, b in pairs]
    found = read_gold(links, counted_from=counted_from, target_first=target_first, lengths=lengths)
    return Gold(pairs, tuple(found), cut, Languages.of(texts))


def _read_test(plan: Plan, paths: Sequence[Path]) -> TestSet:
    """Return the test set of the user, checked against the languages of the corpus if both are known."""
    corpus = open_corpus(plan.corpora[0].paths, plan.source_language, plan.target_language)
    test = read_test(paths, corpus.source_language, corpus.target_language)
    _check_languages(plan, f"{paths[0]} is", Languages.of(test))
    # The sides may be known by one of them alone; the models go by the corpus.
    return TestSet(test.sources, test.references, None, corpus.target_language or test.target_language)


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
        target_language=prepared[0].facts.target_language,
    )


def _prepared(plan: Plan, rung: Rung) -> Prepared:
    return load_prepared(plan.request_of(rung).folder / "data")
