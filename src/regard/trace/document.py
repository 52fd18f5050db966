"""The trace as data: one JSON document for one translation. `schema.json` is printed from these classes.

Steps, layers, heads, words and pieces are counted from 0. S source pieces and T target pieces, `</s>` among
both (the target of a translation that was cut has none); logarithms are natural.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from regard.alignment.reading import Reading
from regard.contract import Floats
from regard.design import Design, Kind, design
from regard.options.parse import parse
from regard.trace.arrays import Array
from regard.vocabulary import BOS, RESERVED

FORMAT: Final = "regard-trace/1"
POSTERIOR = "attention.posterior"
"""The state that has the posterior attention of the step before, given the word that it said."""


class _Node(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Reads(_Node):
    """The attention that is read as word alignment: of one layer, one head or (null) the mean of its heads.

    If `shifted`, that of the step after: the one that reads the piece (SHIFT-ATT, Chen et al. 2020). If
    `posterior`, that step's state `attention.posterior`: the attention of the step before, given the word
    that it said.
    """

    layer: int
    head: int | None
    shifted: bool
    posterior: bool = False

    @property
    def chosen(self) -> Reading:
        """The same, ready to read with."""
        return Reading(self.layer, self.head, self.shifted, self.posterior)


class Model(_Node):
    """What translated."""

    label: str
    kind: Literal["recurrent", "transformer"]
    source_language: str | None
    target_language: str | None
    num_parameters: int
    sha256: str
    """Of all weights and both tokenizers."""
    options: dict[str, Any]
    """The design, as in the section `model` of docs/options.md."""
    reading: Reads | None
    """Null if the model has no attention."""

    @cached_property
    def design(self) -> Design:
        """The facts of the model's family."""
        return design(parse("model", self.options))


class LookSo(_Node):
    """Forces the cross-attention of one step to these weights, in one layer and head, or (null) in all."""

    type: Literal["look"] = "look"
    step: int = Field(ge=0)
    weights: list[float]
    layer: int | None = Field(None, ge=0)
    head: int | None = Field(None, ge=0)

    @property
    def in_words(self) -> str:
        """The change as a person says it, counted from 1."""
        where = "" if self.layer is None else f", layer {self.layer + 1}"
        where += "" if self.head is None else f", head {self.head + 1}"
        return f"step {self.step + 1}{where} looks at {', '.join(f'{weight:g}' for weight in self.weights)}"


class HeadOff(_Node):
    """Sets the output of one head to zero."""

    type: Literal["head_off"] = "head_off"
    kind: Kind = "cross"
    layer: int = Field(ge=0)
    head: int = Field(ge=0)

    @property
    def in_words(self) -> str:
        """The change as a person says it, counted from 1."""
        return f"{self.kind}, layer {self.layer + 1}, head {self.head + 1} is off"


class MaskOff(_Node):
    """Removes the causal mask when the finished translation is read again."""

    type: Literal["mask_off"] = "mask_off"

    @property
    def in_words(self) -> str:
        """The change as a person says it."""
        return "the decoder sees the words to come"


class PositionsOff(_Node):
    """Sets the positional encodings of a Transformer to zero."""

    type: Literal["positions_off"] = "positions_off"

    @property
    def in_words(self) -> str:
        """The change as a person says it."""
        return "there are no positions"


Intervention = LookSo | HeadOff | MaskOff | PositionsOff


class Asked(_Node):
    """What was asked for. The same request to the same model gives the same trace."""

    text: str
    mode: Literal["greedy", "beam", "sample", "risk", "forced"]
    search: dict[str, Any] = {}
    """The options of the section `search`; none when forced."""
    prefix: str | None = None
    """What the translation had to begin with."""
    forced: str | None = None
    """The whole translation, if it was given."""
    interventions: list[Intervention] = []
    effects: bool = False
    record: list[str] = []
    """Names or patterns of docs/models.md that were kept beside the usual ones."""
    part: int | None = None
    """Which part of the translation that `regard translate` gives; null: a plain search of the whole text."""
    features: str | None = None
    """What only these feature vectors have, if they are the source; `text` then names their positions."""


class Whole(_Node):
    """The whole text and its translation, of which a trace shows one part."""

    source: str
    text: str
    flags: list[str]
    num_parts: int


class Piece(_Node):
    """A piece of text and its characters text[start:end].

    The surfaces of all pieces, one after the other, are the text.
    """

    piece: str
    id: int
    surface: str
    start: int
    end: int


class Candidates(_Node):
    """The likeliest pieces of a step, likeliest first."""

    ids: list[int]
    pieces: list[str]
    log_probs: list[float]


class Said(Piece):
    """A target piece with its log-probability and the other candidates of its step."""

    log_prob: float
    entropy: float | None = None
    """Of the distribution over the vocabulary, in nats."""
    rank: int | None = None
    """1 is the likeliest."""
    forced: bool = False
    candidates: Candidates | None = None


class Word(_Node):
    """A word: characters text[start:end], and the pieces that have some of them."""

    start: int
    end: int
    pieces: list[int]


class Source(_Node):
    """What was read."""

    text: str
    pieces: list[Piece]
    words: list[Word]
    nearest: list[list[str]] | None = None
    """For each piece, the pieces whose embeddings are most like its own (cosine), nearest first."""


class Target(_Node):
    """What was said."""

    text: str
    pieces: list[Said]
    words: list[Word]
    complete: bool
    """Whether `</s>` was said; otherwise a limit has cut the translation."""
    log_prob: float
    score: float
    """The log-probability after penalties, by which the search chose; that of the search, also if the mask
    was then lifted."""
    flags: list[str]
    """What looks wrong with it, by the names of docs/translating.md."""


class Head(_Node):
    """A head in two numbers: the mean entropy of its rows in nats, and how near its weights are to the
    diagonal."""

    entropy: float
    diagonality: float


class Attention(_Node):
    """Attention weights (layers, heads, queries, keys). A recurrent model has one layer and one head.

    weights = exp(log_weights), unless `weights` are given: a Gaussian window or an intervention changes the
    softmax of the scores. scores = log_weights + log_sums, where the mask allows it.
    """

    kind: Kind
    log_weights: Array
    log_sums: Array
    weights: Array | None = None
    causal: bool
    normalised: bool
    """Whether the weights of a row sum to 1; with a Gaussian window they do not."""
    heads: list[list[Head]]

    @property
    def logs_LNTS(self) -> Floats:
        """The logarithms of the softmax of the scores; minus infinity where masked."""
        return self.log_weights.unpack()

    @property
    def weights_LNTS(self) -> Floats:
        """The weights."""
        return np.exp(self.logs_LNTS) if self.weights is None else self.weights.unpack()

    def looks_TS(self, reads: Reads, posterior_TS: Floats | None = None) -> Floats:
        """Return where each step looked by the attention that aligns best."""
        return reads.chosen.look(self.weights_LNTS.transpose(2, 0, 1, 3), posterior_TS)

    @property
    def scores_LNTS(self) -> Floats:
        """The scores before the softmax; NaN where masked."""
        logs = self.logs_LNTS
        return np.where(np.isfinite(logs), logs + self.log_sums.unpack()[..., None], np.float32(np.nan))


class Beamed(_Node):
    """A hypothesis of the beam: its last piece, after those of its parent (null: none)."""

    parent: int | None
    step: int
    id: int
    piece: str
    log_prob: float
    """Of all it says."""
    score: float
    """The log-probability over the length penalty."""
    fate: Literal["open", "dropped", "finished"]


class Beam(_Node):
    """The tree of the search; of the dropped ones the best of each step."""

    size: int
    nodes: list[Beamed]
    best: list[int]
    """The nodes that say the translation, first to last."""


class Effects(_Node):
    """What each source word does to each target piece: a row for each piece, a column for each word.

    `erasure` is the change of the piece's log-probability when the word is masked everywhere. `only_id`,
    `only_piece` and `only_log_prob` are the likeliest piece of the step when all its attention is on that
    word; null for a model without attention.
    """

    erasure: list[list[float]]
    only_id: list[list[int]] | None
    only_piece: list[list[str]] | None
    only_log_prob: list[list[float]] | None


class Metrics(_Node):
    """The translation in numbers; those of the attention are null if there is none."""

    perplexity: float
    coverage: list[float] | None = None
    """Of each source piece the sum of the weights it got."""
    coverage_penalty: float | None = None
    """Σ log min(coverage, 1) (Wu et al. 2016, eq. 14)."""
    coverage_deviation: float | None = None
    """-1/S Σ log(1 + (1 - coverage)²) (Rikters and Fishel 2017)."""
    entropy_out: float | None = None
    """Mean entropy of where a target piece looks, in nats: high if its looks are scattered."""
    entropy_in: float | None = None
    """Mean entropy of who looks at a source piece, in nats."""


class Timing(_Node):
    """Milliseconds."""

    search: float
    record: float
    effects: float | None


class Document(_Node):
    """One translation, from the text to every number that decided it."""

    format: Literal["regard-trace/1"] = FORMAT
    id: str
    """The hash of the model and the request."""
    created: str
    generator: str
    model: Model
    request: Asked
    whole: Whole | None = None
    """Null if the trace shows the plain search, or a given translation."""
    source: Source
    target: Target
    attentions: list[Attention]
    states: dict[str, Array]
    """By the names of docs/models.md, one row for each piece; row t of the target's is of step t."""
    beam: Beam | None
    effects: Effects | None
    metrics: Metrics
    timing: Timing | None
    warnings: list[str]

    def attention(self, kind: Kind = "cross") -> Attention | None:
        """Return one kind of attention, None if the model has none."""
        return next((one for one in self.attentions if one.kind == kind), None)

    @property
    def fed(self) -> tuple[str, ...]:
        """What the decoder reads at each step: `<s>`, then what it has said."""
        return (RESERVED[BOS], *(piece.piece for piece in self.target.pieces[:-1]))

    def to_json(self) -> str:
        """Return the document as JSON."""
        return self.model_dump_json()


def trace_id(model: Model, request: Asked) -> str:
    """Return the id of what this model does on this request."""
    # Traces of the plain search, and of texts, keep the ids they had before there were parts and features.
    absent = {name for name in ("part", "features") if getattr(request, name) is None}
    return hashlib.sha256(f"{model.sha256}{request.model_dump_json(exclude=absent)}".encode()).hexdigest()


def perplexity(log_prob: float, num_pieces: int) -> float:
    """Return how many pieces were as likely as the right one, in the mean."""
    return math.exp(min(-log_prob / num_pieces, 700))  # beyond it there is no float


def surfaces(text: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    """Return for each piece the characters that it adds to the text; the last one has what is left."""
    added, place = [], 0
    for number, (_, end) in enumerate(spans):
        end = len(text) if number == len(spans) - 1 else max(place, end)
        added.append(text[place:end])
        place = end
    return added


def schema() -> str:
    """Return the JSON Schema of the document."""
    return json.dumps(Document.model_json_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(schema(), end="")
