"""Why a training does not work: a named cause and the one change to make, from what was measured."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from regard.options.training import TrainOptions
from regard.training.prepare import Facts

SMALL_PAIRS = 2000
_RARE_SHARE = 0.5
_BLIND_STEPS = 1000  # a model first learns to speak and only then to look
_PATIENCE = 3  # validations in a row that must agree
_BLIND_GAP = 0.02  # of the loss: less than this with other sources, and the source does not matter
_STALLED = 0.01
_DIVERGED = 1.5  # nats per token above the lowest loss so far


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause, the change that answers it, and whether going on is of no use."""

    cause: str
    advice: str
    stop: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """What a validation measured, with the training loss since the one before."""

    step: int
    train_nll: float
    nll: float
    shuffled_nll: float
    bleu: float
    entropy: float | None  # of the attention, as a share of the greatest possible


def about_data(facts: Facts, *, from_nothing: bool = True) -> list[Finding]:
    """Return what can be said before training; a trained model can begin with few pairs."""
    findings = []
    if from_nothing and facts.num_pairs < SMALL_PAIRS:
        findings.append(
            Finding(
                f"the corpus is very small: {facts.num_pairs:,} pairs",
                "add more with `--also other.tmx`; a few thousand pairs teach only fixed phrases",
            )
        )
    if facts.rare_share > _RARE_SHARE:
        smaller = max(400, int(round(max(facts.vocab_sizes) / 2, -2)))
        findings.append(
            Finding(
                f"the vocabulary is too large for the data: {facts.rare_share:.0%} of its pieces occur "
                "fewer than five times",
                f"try another --out with --vocab {smaller}",
            )
        )
    if facts.num_shifted:
        findings.append(
            Finding(
                f"{facts.num_shifted:,} pairs are in blocks in which one side has slipped by some lines",
                "they are not used; `regard inspect` lists the lines, so that you can repair the files",
            )
        )
    return findings


def diverging(nll: float, lowest_nll: float, step: int, options: TrainOptions) -> Finding | None:
    """Return a finding if the training loss has risen far above where it has been."""
    if nll < lowest_nll + _DIVERGED:
        return None
    return Finding(
        f"the training diverges: at update {step:,} the loss is {nll:.2f}, before it was {lowest_nll:.2f}",
        slower(options),
        stop=True,
    )


def slower(options: TrainOptions) -> str:
    """Return the advice against steps that are too long."""
    return f"try another --out with --set train.optimiser.rate={options.optimiser.rate / 4:.2g}"


def about_learning(history: Sequence[Measured], dropout: float, options: TrainOptions) -> list[Finding]:
    """Return what the validations so far say, newest last."""
    findings = []
    long_ago = [number for number, one in enumerate(history) if one.step <= history[-1].step - _BLIND_STEPS]
    if long_ago:
        since = history[long_ago[-1] :]
        if all(map(is_blind, since)) and since[-1].nll > since[0].nll * (1 - _STALLED):
            findings.append(_blind(since[-1], options))
    if len(history) < _PATIENCE:
        return findings
    recent = history[-_PATIENCE:]
    best = min(one.nll for one in history)
    rising = all(late.nll > early.nll for early, late in pairwise(recent))
    if rising and recent[-1].nll > best * 1.03 and recent[-1].train_nll < recent[0].train_nll:
        findings.append(
            Finding(
                f"over-fitting: the validation loss rises ({best:.2f} to {recent[-1].nll:.2f}) while the "
                f"training loss falls ({recent[-1].train_nll:.2f})",
                f"use more data, or --set model.dropout={min(0.5, round(dropout + 0.1, 2))}; "
                "the best model so far is kept",
            )
        )
    return findings


def is_blind(measured: Measured) -> bool:
    """Tell whether the loss is about the same with the sources of other sentences."""
    return measured.shuffled_nll - measured.nll < _BLIND_GAP * measured.nll


def _blind(last: Measured, options: TrainOptions) -> Finding:
    flat = last.entropy is not None and last.entropy > 0.9
    looked = "; its attention is uniform" if flat else ""
    cause = (
        f"the source is ignored: with the sources of other sentences the loss is {last.shuffled_nll:.2f} "
        f"instead of {last.nll:.2f}{looked}"
    )
    if math.isclose(last.shuffled_nll, last.nll, rel_tol=1e-3):
        advice = f"check that the lines of the two files match (`regard inspect`); if so, {slower(options)}"
    else:
        advice = slower(options)
    return Finding(cause, advice, stop=True)
