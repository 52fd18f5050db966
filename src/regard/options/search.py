"""Options of the search: beam, sampling, minimum Bayes risk."""

from typing import Annotated, Literal

from pydantic import (
    Field,
)

from regard.options.section import Options, named


class _SearchOptions(Options):
    """Options of every search."""

    no_repeat_ngram: int | None = Field(None, ge=1)
    """No n-gram of this many pieces may occur twice. None: no limit."""
    max_ratio: float = Field(2.0, gt=0)
    """Maximum number of target pieces per source piece, plus `extra_tokens`; a translation that is cut there
    is flagged."""
    extra_tokens: int = Field(20, ge=0, le=10_000)
    """Number of pieces that a translation may have beyond `max_ratio` times its source."""


class BeamOptions(_SearchOptions):
    """Beam search for the most probable translations; a beam of 1 is greedy search."""

    kind: Literal["beam"] = "beam"
    """Beam search."""
    beam_size: int = Field(5, ge=1, le=1000)
    """Number of hypotheses kept at each step."""
    length_penalty: float = Field(1.0, ge=0, le=10)
    """The exponent α of Wu et al. 2016, eq. 14. At 0, short translations are preferred."""
    coverage_penalty: float = Field(0.0, ge=0, le=10)
    """The weight β of Wu et al. 2016, eq. 14: penalty for source pieces without attention."""
    diversity: float = Field(0.0, ge=0, le=100)
    """Penalty by rank among the continuations of the same hypothesis (Li et al. 2016), for diverse n-best
    lists."""


class _SamplingOptions(_SearchOptions):
    """Options of random sampling."""

    temperature: float = Field(1.0, gt=0, le=100)
    """Divisor of the logits; below 1, probable pieces become more probable."""
    top_k: int | None = Field(None, ge=1)
    """Sample only from this many most probable pieces (Fan et al. 2018)."""
    top_p: float | None = Field(None, gt=0, le=1)
    """Sample only from the most probable pieces that together have this probability (Holtzman et al.
    2020)."""
    typical_p: float | None = Field(None, gt=0, le=1)
    """Like `top_p`, but starting with the pieces of most typical information content (Meister et al.
    2023)."""
    seed: int = Field(1, ge=0, lt=2**63)
    """Random seed. The same seed gives the same translation of a text, whatever else is translated."""


class SampleOptions(_SamplingOptions):
    """Random sampling from the probabilities of the model."""

    kind: Literal["sample"] = "sample"
    """Sampling."""


class RiskOptions(_SamplingOptions):
    """Minimum Bayes risk: of many samples, the one most similar to the others by chrF (Kumar & Byrne 2004;
    Eikema & Aziz 2020)."""

    kind: Literal["risk"] = "risk"
    """Minimum Bayes risk."""
    num_samples: int = Field(32, ge=2, le=1000)
    """Number of samples per sentence."""


SearchOptions = Annotated[
    BeamOptions | SampleOptions | RiskOptions, Field(discriminator="kind"), named("beam", mbr="risk")
]
