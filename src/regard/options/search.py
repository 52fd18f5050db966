"""Options of the search: beam, sampling, minimum Bayes risk."""

from typing import Annotated, Literal

from pydantic import (
    Field,
)

from regard.options.section import Options, named


class _SearchOptions(Options):
    """What every search can be told."""

    no_repeat_ngram: int | None = Field(None, ge=1)
    """No run of so many pieces is said twice; none: repetition is free."""
    max_ratio: float = Field(2.0, gt=0)
    """Most pieces said for each piece of the source, `extra_tokens` more allowed; a translation cut there is
    flagged."""
    extra_tokens: int = Field(20, ge=0, le=10_000)
    """Pieces that a translation may have beyond `max_ratio` times its source."""


class BeamOptions(_SearchOptions):
    """The likeliest translations that a beam of hypotheses finds."""

    kind: Literal["beam"] = "beam"
    """Beam search; a beam of 1 is greedy search."""
    beam_size: int = Field(5, ge=1, le=1000)
    """Hypotheses kept open at each step."""
    length_penalty: float = Field(1.0, ge=0, le=10)
    """The exponent α of Wu et al. 2016, eq. 14; at 0 the shortest translation tends to win."""
    coverage_penalty: float = Field(0.0, ge=0, le=10)
    """The weight β of Wu et al. 2016, eq. 14: source pieces that nobody looked at cost this much."""
    diversity: float = Field(0.0, ge=0, le=100)
    """What each rank among its siblings costs a hypothesis (Li et al. 2016): n-best lists that differ."""


class _SamplingOptions(_SearchOptions):
    """How the next piece is drawn."""

    temperature: float = Field(1.0, gt=0, le=100)
    """What the scores are divided by: below 1 the likely becomes likelier."""
    top_k: int | None = Field(None, ge=1)
    """Only the so many likeliest pieces are drawn (Fan et al. 2018)."""
    top_p: float | None = Field(None, gt=0, le=1)
    """Only the fewest pieces that together have this probability are drawn (Holtzman et al. 2020)."""
    typical_p: float | None = Field(None, gt=0, le=1)
    """The same with the pieces of the most typical surprise first (Meister et al. 2023)."""
    seed: int = Field(1, ge=0, lt=2**63)
    """Another seed draws other translations; the same one the same, whatever else is translated."""


class SampleOptions(_SamplingOptions):
    """Translations drawn at random, as likely as the model finds them."""

    kind: Literal["sample"] = "sample"
    """Sampling."""


class RiskOptions(_SamplingOptions):
    """Of many samples the one most like all others (Kumar & Byrne 2004; Eikema & Aziz 2020), by chrF."""

    kind: Literal["risk"] = "risk"
    """Minimum Bayes risk."""
    num_samples: int = Field(32, ge=2, le=1000)
    """Samples drawn of each sentence."""


SearchOptions = Annotated[
    BeamOptions | SampleOptions | RiskOptions, Field(discriminator="kind"), named("beam", mbr="risk")
]
