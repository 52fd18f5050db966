"""What the ladder showed, as plain data."""

from dataclasses import asdict, dataclass, field
from typing import Any

from regard.draw.heatmap import HeatMap
from regard.evaluation.document import Difference, Estimate, Evaluation
from regard.evaluation.scores import Interval
from regard.lineage.ladder import Rung

FORMAT = "regard-lineage/1"


@dataclass(frozen=True, slots=True)
class Budget:
    """What each rung was given, seconds or updates, and the corpus that all of them saw."""

    seconds_each: float | None
    steps_each: int | None
    num_pairs: int
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class Climbed:
    """One rung as it was trained and measured; scores and speed stand with its system in the evaluation.

    `short` and `long` are BLEU on sources of 1-20 and of 41-70 words, None where the test set has none, and
    `kept` is the long one as a share of the short one, None also where that may be below 1. `entropy` is
    that of where a piece of the reference looks, in nats. A rung without attention has no `entropy`, no `aer`
    and no `heat_map`. One whose validation no longer improved `ended_early`.
    """

    rung: Rung
    num_parameters: int
    num_updates: int
    seconds: float
    short: Estimate | None
    long: Estimate | None
    kept: Estimate | None
    aer: Estimate | None
    entropy: float | None
    sample: str
    heat_map: HeatMap | None = field(repr=False)
    ended_early: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """What a rung bought over the one it builds on: BLEU of the whole test set, and of 41-70 words alone."""

    rung: Rung
    base: Rung
    bleu: Difference
    long: Difference | None


@dataclass(frozen=True, slots=True, eq=False)
class Lineage:
    """The ladder on one corpus; a notebook shows its summary, tables and figures.

    `is_held_out`: the test set is what training validated on, so that it had a part in choosing the models.
    """

    budget: Budget
    rungs: tuple[Climbed, ...]
    steps: tuple[Step, ...]
    evaluation: Evaluation
    num_gold: int | None  # pairs that were aligned by hand
    sentence: str
    is_held_out: bool
    num_short: int
    num_long: int

    def to_json(self) -> dict[str, Any]:
        """Return everything but the pictures as plain JSON values."""
        return {
            "format": FORMAT,
            "budget": asdict(self.budget),
            "num_sentences": len(self.evaluation.sources),
            "num_short": self.num_short,
            "num_long": self.num_long,
            "num_gold": self.num_gold,
            "is_held_out": self.is_held_out,
            "sentence": self.sentence,
            "rungs": [self._rung(one) for one in self.rungs],
            "steps": [
                {
                    "rung": one.rung.name,
                    "base": one.base.name,
                    "bleu": asdict(one.bleu),
                    "long": None if one.long is None else asdict(one.long),
                }
                for one in self.steps
            ],
            "evaluation": self.evaluation.to_json(),
        }

    def _rung(self, one: Climbed) -> dict[str, Any]:
        estimates = {name: getattr(one, name) for name in ("short", "long", "kept", "aer")}
        speed = self.evaluation.system(one.rung.name).speed
        return {
            "name": one.rung.name,
            "title": dict(one.rung.title),
            "has_attention": one.rung.has_attention,
            "num_parameters": one.num_parameters,
            "num_updates": one.num_updates,
            "seconds": one.seconds,
            "ended_early": one.ended_early,
            **{name: None if value is None else asdict(value) for name, value in estimates.items()},
            "entropy": one.entropy,
            "sentences_per_second": speed.sentences_per_second if speed else None,
            "sample": one.sample,
        }

    def __str__(self) -> str:
        from regard.lineage.report import plain_text  # here, for it reads what is defined here

        return plain_text(self)

    def _repr_html_(self) -> str:
        """Be shown in a notebook."""
        from regard.lineage.report import notebook_html  # as above

        return notebook_html(self)


def includes_zero(around: Interval) -> bool:
    """Return whether an interval leaves open on which side of 0 a difference is."""
    return around.low <= 0 <= around.high
