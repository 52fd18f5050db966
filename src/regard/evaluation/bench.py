"""All systems on one test set: the counts of their sentences, and every score that follows from them."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from regard.evaluation.document import Difference, Estimate, FlagScore
from regard.evaluation.resample import (
    bootstrap_p,
    corrected,
    interval,
    interval_within,
    randomisation_p,
    resample,
)
from regard.evaluation.scores import (
    Floats,
    Interval,
    LengthBin,
    LengthScore,
    Measure,
    MeasureName,
    length_bins,
)

MAX_IN_PAIRS = 6  # systems of which any two are compared; of more, the others with the first


class Bench:
    """All systems on one test set, resampled together."""

    def __init__(
        self,
        sources: Sequence[str],
        references: Sequence[str],
        measures: dict[MeasureName, Measure],
        num_resamples: int,
        seed: int,
    ) -> None:
        self.references = references
        self.measures = measures
        self.num_resamples = num_resamples
        self.seed = seed
        self.bins: list[LengthBin] = length_bins(sources)
        self.counts: dict[str, dict[MeasureName, Floats]] = {}

    def count(self, name: str, texts: Sequence[str]) -> None:
        """Take the counts of a system's translations."""
        self.counts[name] = {key: one.counts(texts, self.references) for key, one in self.measures.items()}

    def sentences(self, name: str) -> list[float]:
        """Return the chrF of each sentence."""
        return [float(score) for score in self.measures["chrf"].scores(self.counts[name]["chrf"])]

    def compare(
        self, num_trials: int
    ) -> tuple[dict[str, dict[MeasureName, Estimate]], tuple[Difference, ...]]:
        """Return the scores of each system, and how those of any two differ, the first one's pairs first.

        Of more than `MAX_IN_PAIRS` systems, only the others and the first are compared.
        """
        pairs = list(combinations(self.counts, 2))
        if len(self.counts) > MAX_IN_PAIRS:
            pairs = pairs[: len(self.counts) - 1]
        scores: dict[str, dict[MeasureName, Estimate]] = {name: {} for name in self.counts}
        differences: dict[tuple[str, str, MeasureName], Difference] = {}
        for key, measure in self.measures.items():
            counts = [of_one[key] for of_one in self.counts.values()]
            sums = resample(counts, self.num_resamples, self.seed)
            resampled = {name: measure.scores(one) for name, one in zip(self.counts, sums, strict=True)}
            for name, one in zip(self.counts, counts, strict=True):
                scores[name][key] = Estimate(measure.score(one), interval_within(len(one), resampled[name]))
            p_values = [
                randomisation_p(
                    self.counts[name][key], self.counts[first][key], measure.scores, num_trials, self.seed
                )
                for first, name in pairs
            ]
            for (first, name), p, among in zip(pairs, p_values, corrected(p_values), strict=True):
                value = scores[name][key].value - scores[first][key].value
                change = resampled[name] - resampled[first]
                differences[first, name, key] = Difference(
                    name, first, key, value, interval(change), p, among, bootstrap_p(change)
                )
        return scores, tuple(differences[*pair, key] for pair in pairs for key in self.measures)

    def by_length(self) -> dict[str, tuple[LengthScore, ...]]:
        """Return BLEU by length; each bin is resampled by itself."""
        bleu = self.measures["bleu"]
        found: dict[str, list[LengthScore]] = {name: [] for name in self.counts}
        for one in self.bins:
            counts = [of_one["bleu"][one.rows] for of_one in self.counts.values()]
            sums = resample(counts, self.num_resamples, self.seed)
            for name, rows, resampled in zip(self.counts, counts, sums, strict=True):
                around = interval_within(len(rows), bleu.scores(resampled))
                found[name].append(
                    LengthScore(one.first_word, one.last_word, len(one.rows), bleu.score(rows), around)
                )
        return {name: tuple(rows) for name, rows in found.items()}

    def by_flag(self, name: str, flags: Sequence[tuple[str, ...]]) -> tuple[FlagScore, ...]:
        """Return BLEU of what has no flags, of what has any, and of each flag."""
        chosen = {
            "none": [not one for one in flags],
            "any": [bool(one) for one in flags],
        } | {flag: [flag in one for one in flags] for flag in sorted({flag for one in flags for flag in one})}
        found = []
        for flag, chosen_rows in chosen.items():
            rows = self.counts[name]["bleu"][np.array(chosen_rows)]
            if len(rows):
                found.append(FlagScore(flag, len(rows), *self._bleu(rows)))
        return tuple(found)

    def _bleu(self, rows: Floats) -> tuple[float, Interval | None]:
        bleu = self.measures["bleu"]
        (sums,) = resample([rows], self.num_resamples, self.seed)
        return bleu.score(rows), interval_within(len(rows), bleu.scores(sums))
