"""What an evaluation found, as plain data."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from regard.draw.heatmap import HeatMap
from regard.evaluation.frequency import FrequencyScore
from regard.evaluation.scores import Interval, LengthScore, MeasureName
from regard.text.words import words

FORMAT = "regard-evaluation/1"
ALPHA = 0.05  # below it a p counts as beyond chance


@dataclass(frozen=True, slots=True)
class Estimate:
    """A score of the whole test set and where it lies in 95 of 100 resamples."""

    value: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class FlagScore:
    """BLEU of the sentences whose translation has a flag; `any` is one or more of them, `none` not one."""

    flag: str
    num_sentences: int
    bleu: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Likelihood:
    """How likely a model finds the references, their ends included.

    `perplexity` is that of a piece and can be compared only between models with the same pieces; `bits` are
    for each character, the end of a sentence counted as one, and can be compared between all models that can
    say everything: `num_unknown` pieces stand for words that this one cannot say. References too long for the
    model are not in it; they are `num_left_out`.
    """

    perplexity: float
    bits: float
    num_pieces: int
    num_unknown: int
    num_left_out: int


@dataclass(frozen=True, slots=True)
class Speed:
    """How long a model took to translate; words are those of the sources."""

    seconds: float
    sentences_per_second: float
    words_per_second: float


@dataclass(frozen=True, slots=True, eq=False)
class System:
    """One system's translations and how good they are; only a model has flags, a likelihood and a speed."""

    name: str
    path: str | None
    num_parameters: int | None
    scores: dict[MeasureName, Estimate]
    by_length: tuple[LengthScore, ...]
    by_frequency: tuple[FrequencyScore, ...]
    by_flag: tuple[FlagScore, ...]
    likelihood: Likelihood | None
    speed: Speed | None
    texts: tuple[str, ...] = field(repr=False)
    flags: tuple[tuple[str, ...], ...] = field(repr=False)
    chrf: tuple[float, ...] = field(repr=False)
    """chrF2 of each sentence alone: BLEU is too coarse for one."""
    heat_maps: Mapping[int, HeatMap] = field(repr=False, default_factory=dict)
    """Where the model looked, of the sentences worth a look, by their number from 0."""


@dataclass(frozen=True, slots=True)
class Difference:
    """By how much a system's score is above that of `first`, and whether chance would do as much.

    `p_randomisation` is that of approximate randomisation, `p_corrected` the same, corrected for the number
    of comparisons by this measure, `p_bootstrap` that of paired resampling.
    """

    system: str
    first: str
    measure: MeasureName
    value: float
    interval: Interval
    p_randomisation: float
    p_corrected: float
    p_bootstrap: float

    @property
    def is_beyond_chance(self) -> bool:
        """Whether both tests find the difference too large for chance, the first one among so many."""
        return max(self.p_corrected, self.p_bootstrap) < ALPHA


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """One or more systems on one test set; a notebook shows its tables and figures.

    `differences` are those of any two systems, or of the others from the first one if there are many.
    `compared` says how words and letters were compared, `counted` where the frequencies come from, `guard`
    whether models tried again what looked wrong and split what was long.
    """

    sources: tuple[str, ...] = field(repr=False)
    references: tuple[str, ...] = field(repr=False)
    systems: tuple[System, ...]
    differences: tuple[Difference, ...]
    signatures: dict[MeasureName, str]
    compared: str
    counted: str
    num_resamples: int
    num_trials: int
    seed: int
    search: dict[str, Any]
    guard: bool
    warnings: tuple[str, ...] = ()
    """Why scores may not mean what they seem to."""

    def system(self, name: str) -> System:
        """Return the system of a name."""
        return next(one for one in self.systems if one.name == name)

    def difference(self, system: str, first: str, measure: MeasureName = "bleu") -> Difference:
        """Return by how much a system's score is above that of another, which was named before it."""
        wanted = (system, first, measure)
        return next(one for one in self.differences if (one.system, one.first, one.measure) == wanted)

    def to_json(self) -> dict[str, Any]:
        """Return everything but the pictures as plain JSON values, each sentence with its translations."""
        left_out = {"texts", "flags", "chrf", "heat_maps"}
        return {
            "format": FORMAT,
            "num_sentences": len(self.sources),
            "compared": self.compared,
            "counted": self.counted,
            "signatures": dict(self.signatures),
            "num_resamples": self.num_resamples,
            "num_trials": self.num_trials,
            "seed": self.seed,
            "search": dict(self.search),
            "guard": self.guard,
            **({"warnings": list(self.warnings)} if self.warnings else {}),
            "systems": [
                {
                    one.name: _plain(getattr(system, one.name))
                    for one in fields(system)
                    if one.name not in left_out
                }
                for system in self.systems
            ],
            "differences": [asdict(one) for one in self.differences],
            "sentences": [
                {
                    "source": source,
                    "num_words": max(1, len(words(source))),
                    "reference": reference,
                    "translations": [
                        {
                            "system": system.name,
                            "text": system.texts[row],
                            "chrf": round(system.chrf[row], 2),
                            "flags": list(system.flags[row]),
                        }
                        for system in self.systems
                    ],
                }
                for row, (source, reference) in enumerate(zip(self.sources, self.references, strict=True))
            ],
        }

    def __str__(self) -> str:
        from regard.evaluation.report import plain_text  # here, for it reads what is defined here

        return plain_text(self)

    def _repr_html_(self) -> str:
        """Be shown in a notebook: summary, tables and figures, without the sentences."""
        from regard.evaluation.report import notebook_html  # as above

        return notebook_html(self)


def _plain(value: Any) -> Any:
    """Return dataclasses, wherever they are, as dictionaries."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value
