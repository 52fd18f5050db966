"""What a training is worth: usable, weak or not usable yet, why, and what to do next. No torch.

Thresholds are in BLEU on the validation set. Below 10 a translation seldom has the meaning of its source;
from 20 on the meaning is mostly clear, with errors. BLEU depends on the text: the verdict is a first answer,
and reading some translations is a better one. BLEU tells too little about pairs in one language, such as
summaries.
"""

import math
from dataclasses import dataclass
from typing import Literal

from regard.starter import bundled
from regard.training.diagnose import SMALL_PAIRS, Finding
from regard.training.request import TrainRequest

_WEAK_BLEU = 10.0
_USABLE_BLEU = 20.0
# docs/experiments.md: the default model has 31 BLEU on picture captions after 1,115 updates, and 10 on mixed
# text after 2,000.
_FEW_UPDATES = 1000
_ENOUGH_UPDATES = 2000
_LONG_PREPARATION = 0.3  # of the time
FORESEE_STEP = 100
FORESEE_SHARE = 0.25  # of the time, for a run that makes few updates
FORESEE_MIN_STEP = 10  # before, the speed is not known


@dataclass(frozen=True, slots=True)
class Direction:
    """From which language into which, and whether a trained model or a preset was given."""

    source: str | None
    target: str | None
    began_trained: bool = False
    design_is_given: bool = False

    @classmethod
    def of(cls, request: TrainRequest, source: str | None, target: str | None) -> "Direction":
        """Return the direction of a training that was asked for."""
        return cls(source, target, request.start is not None, request.preset is not None)

    @property
    def bundled_model(self) -> str | None:
        """The bundled model to begin with, if there is one and neither a model nor a design was given."""
        name = f"{_plain(self.source)}-{_plain(self.target)}"
        given = self.began_trained or self.design_is_given
        return name if not given and name in bundled() else None


@dataclass(frozen=True, slots=True)
class Pace:
    """How many updates a training has made in what time, preparation included."""

    num_updates: int
    seconds: float
    prepared_seconds: float
    timed: bool  # its length was given as a time

    def longer(self) -> str:
        """Return how the same command makes enough updates, or twice as many."""
        enough = _ENOUGH_UPDATES if self.num_updates < _ENOUGH_UPDATES else 2 * self.num_updates
        if not self.timed:
            return f"run the same command with --steps {enough}"
        one_update = (self.seconds - self.prepared_seconds) / max(1, self.num_updates)
        more = (enough - self.num_updates) * one_update
        return (
            f"train for about {_minutes(more)} more minutes: run the same command with "
            f"--time {_minutes(self.seconds + more)}m"
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known at the end of a training."""

    bleu: float
    ignores_source: bool
    stopped_improving: bool
    num_pairs: int
    pace: Pace
    direction: Direction


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judgement, its reason and the one thing to do next."""

    level: Literal["usable", "weak", "not usable yet"]
    why: str
    next: str

    def __str__(self) -> str:
        return f"{self.level}: {self.why}; {self.next}"


def judge(outcome: Outcome) -> Verdict | None:
    """Return what a training is worth; None for pairs in one language."""
    direction = outcome.direction
    if direction.source is not None and direction.source == direction.target:
        return None
    if outcome.bleu < _WEAK_BLEU or outcome.ignores_source:
        return Verdict("not usable yet", _why(outcome), _advice(outcome))
    if outcome.bleu < _USABLE_BLEU:
        return Verdict("weak", _why(outcome), _advice(outcome))
    return Verdict(
        "usable", f"BLEU {outcome.bleu:.1f} on validation", "read some translations of your own text"
    )


def foresee(pace: Pace, total_updates: int, direction: Direction) -> Finding | None:
    """Return a finding if the updates that a run will make seldom give a usable model."""
    if total_updates >= _FEW_UPDATES or direction.began_trained:
        return None
    fitting = "the time is enough for about" if pace.timed else "the run makes"
    return Finding(
        f"probably too few updates: {fitting} {total_updates:,}, and fewer than {_FEW_UPDATES:,} rarely "
        "give a usable model",
        _from(direction) or pace.longer(),
    )


def _why(outcome: Outcome) -> str:
    pace, bleu = outcome.pace, f"BLEU {outcome.bleu:.1f} on validation"
    if outcome.ignores_source:
        return f"{bleu}, and the source hardly changes the output after {pace.num_updates:,} updates"
    if outcome.stopped_improving:
        return f"{bleu}, and it no longer improved on {outcome.num_pairs:,} pairs"
    share = pace.prepared_seconds / max(1e-9, pace.seconds)
    long = f", and {share:.0%} of the time was preparation" if share >= _LONG_PREPARATION else ""
    return f"{bleu} after only {pace.num_updates:,} updates{long if pace.timed else ''}"


def _advice(outcome: Outcome) -> str:
    if begin := _from(outcome.direction):
        return begin
    if outcome.stopped_improving or outcome.num_pairs < SMALL_PAIRS:
        return "add more pairs with `--also other.tmx` and another --out"
    return outcome.pace.longer()


def _from(direction: Direction) -> str | None:
    model = direction.bundled_model
    return f"start from a trained model: use `--from {model}` with another --out" if model else None


def _plain(language: str | None) -> str:
    return (language or "").split("-")[0].lower()


def _minutes(seconds: float) -> int:
    return max(1, math.ceil(seconds / 60))
