"""Measuring the ladder: every rung on one test set, against the rung it builds on, and where it looks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.alignment.attention import align_pairs
from regard.alignment.gold import GoldLinks, aer_interval, score_links
from regard.alignment.links import entropy_of_looks
from regard.corpus.language_codes import Languages
from regard.draw.heatmap import HeatMap
from regard.engines import NUMPY
from regard.errors import SourceError
from regard.evaluation.bench import Bench
from regard.evaluation.document import Estimate, Evaluation
from regard.evaluation.resample import NUM_RESAMPLES, NUM_TRIALS, interval, interval_within, resample
from regard.evaluation.run import EvaluationOptions, evaluate
from regard.evaluation.scores import Floats, Interval, measures
from regard.evaluation.testset import TestSet
from regard.lineage.document import Budget, Climbed, Lineage, Step
from regard.lineage.ladder import Rung, base_of
from regard.modelfile import load_model
from regard.progress import Progress
from regard.text.words import Cut, words
from regard.translate.translator import FORKING, Translator

SHORT, LONG = (1, 20), (41, 70)  # words of a source
_NUM_FORCED = 200  # pairs whose attention is averaged; more change the second digit of the entropy at most
_SAMPLE_WORDS = (8, 15)
_LEAST_BLEU = 1.0  # of short sentences; of less, what is smoothed away is more than what is kept


@dataclass(frozen=True, slots=True)
class Gold:
    """Pairs that were aligned by hand, and which words their links count."""

    pairs: tuple[tuple[str, str], ...]
    links: tuple[GoldLinks, ...]
    cut: Cut
    languages: Languages


@dataclass(frozen=True, slots=True)
class TrainedRung:
    """A rung as it was trained."""

    rung: Rung
    path: Path
    num_updates: int
    seconds: float
    ended_early: bool


@dataclass(frozen=True, slots=True)
class Measuring:
    """What to measure the rungs by, beside a test set.

    `is_held_out` says that the test set was set aside from the corpus. `sentence` is the one that is shown;
    None: one of the test set.
    """

    is_held_out: bool
    gold: Gold | None = None
    sentence: str | None = None
    num_resamples: int = NUM_RESAMPLES
    num_trials: int = NUM_TRIALS


def measure(
    models: Sequence[TrainedRung], budget: Budget, test: TestSet, how: Measuring, show: Progress
) -> Lineage:
    """Return how well each rung translates the test set, and where it looks."""
    # Without the guard, for what is measured is the design.
    options = EvaluationOptions(
        guard=False, compute=NUMPY, num_resamples=how.num_resamples, num_trials=how.num_trials
    )
    files = {one.rung.name: one.path for one in models}
    evaluation = evaluate(files, test, options, on_progress=show)
    lengths = Lengths.of(evaluation, test.target_language)
    sentence = how.sentence or choose_sentence(test.sources)
    climbed = []
    for place, one in enumerate(models):
        show("looking where the rungs look", place, len(models))
        climbed.append(_climbed(one, evaluation, lengths, test, how.gold, sentence))
    show("looking where the rungs look", len(models), len(models))
    return Lineage(
        budget,
        tuple(climbed),
        steps([one.rung for one in models], lengths, how.num_trials),
        evaluation,
        len(how.gold.pairs) if how.gold else None,
        sentence,
        how.is_held_out,
        len(lengths.short),
        len(lengths.long),
    )


def choose_sentence(sources: Sequence[str]) -> str:
    """Return the first source of 8 to 15 words, or the one nearest to that."""
    least, most = _SAMPLE_WORDS
    return min(sources, key=lambda text: max(least - len(words(text)), len(words(text)) - most, 0))


@dataclass(frozen=True, slots=True, eq=False)
class Lengths:
    """The counts of all systems, and which sentences are short and which long."""

    bench: Bench
    short: list[int]
    long: list[int]

    @classmethod
    def of(cls, evaluation: Evaluation, language: str | None) -> "Lengths":
        """Count what BLEU needs of the systems of an evaluation."""
        bleu = measures(language)["bleu"]
        bench = Bench(
            evaluation.sources,
            evaluation.references,
            {"bleu": bleu},
            evaluation.num_resamples,
            evaluation.seed,
        )
        for system in evaluation.systems:
            bench.count(system.name, system.texts)
        return cls(bench, _rows(bench, SHORT), _rows(bench, LONG))

    def bleu(self, name: str, rows: list[int]) -> Estimate | None:
        """Return BLEU of some sentences, None of no sentences."""
        if not rows:
            return None
        counts = self.bench.counts[name]["bleu"][rows]
        return Estimate(
            self.bench.measures["bleu"].score(counts),
            interval_within(len(rows), self._resampled(counts, 0)),
        )

    def kept(self, name: str) -> Estimate | None:
        """Return BLEU of the long sentences as a share of that of the short ones.

        Both are resampled, each from its own sentences. None if either has no sentences, or if the short ones
        may have less than 1 BLEU, by the lower end of their interval: nothing can be kept of nothing.
        """
        short, long = self.bleu(name, self.short), self.bleu(name, self.long)
        if short is None or long is None:
            return None
        if (short.interval.low if short.interval else short.value) < _LEAST_BLEU:
            return None
        counts = self.bench.counts[name]["bleu"]
        below = self._resampled(counts[self.short], 0)
        above = self._resampled(counts[self.long], 1)
        around: Interval | None = None
        if min(len(self.short), len(self.long)) > 1:
            around = interval(above / np.maximum(below, 1e-9))  # a resample may have nothing right
        return Estimate(long.value / short.value, around)

    def between(self, base: str, name: str, rows: list[int] | None = None) -> Bench:
        """Return a bench of two systems alone, on all sentences or on some."""
        whole = self.bench
        pair = Bench([], whole.references, whole.measures, whole.num_resamples, whole.seed)
        pair.counts = {
            one: {key: counts if rows is None else counts[rows] for key, counts in whole.counts[one].items()}
            for one in (base, name)
        }
        return pair

    def _resampled(self, counts: Floats, other: int) -> Floats:
        (sums,) = resample([counts], self.bench.num_resamples, self.bench.seed + other)
        return self.bench.measures["bleu"].scores(sums)


def steps(ladder: Sequence[Rung], lengths: Lengths, num_trials: int) -> tuple[Step, ...]:
    """Return each rung against the nearest one of these that it builds on."""
    found = []
    for rung in ladder:
        base = base_of(rung, ladder)
        if base is None:
            continue
        _, (bleu,) = lengths.between(base.name, rung.name).compare(num_trials)
        long = None
        if len(lengths.long) > 1:
            _, (long,) = lengths.between(base.name, rung.name, lengths.long).compare(num_trials)
        found.append(Step(rung, base, bleu, long))
    return tuple(found)


def _rows(bench: Bench, limits: tuple[int, int]) -> list[int]:
    """Return the sentences of the bins within these limits."""
    first, last = limits
    return [
        int(row)
        for one in bench.bins
        if one.first_word >= first and one.last_word is not None and one.last_word <= last
        for row in one.rows
    ]


def _climbed(
    model: TrainedRung,
    evaluation: Evaluation,
    lengths: Lengths,
    test: TestSet,
    gold: Gold | None,
    sentence: str,
) -> Climbed:
    name = model.rung.name
    translator = Translator.of(load_model(model.path), pool=FORKING, compute=NUMPY)
    (said,) = translator.translate([sentence], guard=False)
    heat_map: HeatMap | None = None
    if model.rung.has_attention and said.attention_TS.size and said.words:
        heat_map = HeatMap(
            name,
            tuple(said.text[start:end] for start, end in said.words),
            tuple(sentence[start:end] for start, end in said.source_words),
            said.word_attention_TS.astype(float),
        )
    aer: Estimate | None = None
    if gold is not None and model.rung.has_attention:
        links = [one.links for one in align_pairs(gold.pairs, translator, cut=gold.cut)]
        aer = Estimate(score_links(links, gold.links).aer, Interval(*aer_interval(links, gold.links)))
    num_parameters = evaluation.system(name).num_parameters
    assert num_parameters is not None  # of a model in a file
    return Climbed(
        model.rung,
        num_parameters,
        model.num_updates,
        model.seconds,
        lengths.bleu(name, lengths.short),
        lengths.bleu(name, lengths.long),
        lengths.kept(name),
        aer,
        attention_entropy(translator, test) if model.rung.has_attention else None,
        said.text,
        heat_map,
        model.ended_early,
    )


def attention_entropy(translator: Translator, test: TestSet) -> float | None:
    """Return the mean entropy of where the pieces of the references look, in nats.

    The references are the same for all rungs; what each says by itself is not, and words that are repeated
    for ever have an entropy too.
    """
    found = []
    for source, reference in zip(test.sources[:_NUM_FORCED], test.references[:_NUM_FORCED], strict=True):
        try:
            (forced,) = translator.force([source], [reference])
        except SourceError:  # too long for this model
            continue
        weights_TS = forced.attention_TS
        if weights_TS.size:
            found.append(entropy_of_looks(weights_TS))
    return float(np.concatenate(found).mean()) if found else None
