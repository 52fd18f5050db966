"""Every option: its name, type, default, help and check, in one place.

A choice between designs is a choice between classes, told apart by `kind`,
so an option that means nothing for a design does not exist there.
`docs/options.md` is printed from these classes.
"""

import difflib
import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from regard.errors import ConfigError
from regard.vocabulary import NUM_RESERVED


class Options(BaseModel):
    """A section of the configuration: frozen, and closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _none_by_name(cls, values: Any) -> Any:
        """Let `none` stand for no value where there may be none; TOML has no other word for it."""
        if not isinstance(values, Mapping):
            return values
        optional = {
            name for name, field in cls.model_fields.items() if type(None) in get_args(field.annotation)
        }
        return {key: None if key in optional and value == "none" else value for key, value in values.items()}


def _named(first: str, **synonyms: str) -> BeforeValidator:
    """Let a bare word stand for a choice of that kind, and no kind for the first one."""

    def name_the_kind(value: Any) -> Any:
        if isinstance(value, str):
            value = {"kind": value}
        if isinstance(value, Mapping):
            kind = value.get("kind", first)
            value = {**value, "kind": synonyms.get(kind, kind) if isinstance(kind, str) else kind}
        return value

    return BeforeValidator(name_the_kind)


def _classes(annotation: Any) -> list[type[Options]]:
    """Return the option classes an annotation offers; none if it is a plain value."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    members = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else [annotation]
    return [member for member in members if isinstance(member, type) and issubclass(member, Options)]


class SubwordOptions(Options):
    """Subwords by SentencePiece, learnt from the corpus."""

    kind: Literal["unigram", "bpe"] = "unigram"
    """`unigram` (Kudo 2018) or `bpe` (Sennrich et al. 2016)."""
    vocab_size: int = Field(8000, gt=NUM_RESERVED, le=1_000_000)
    """Number of pieces wanted, the reserved ones counted; a small corpus may give fewer."""
    joint: bool = True
    """One vocabulary for both languages; otherwise one for each."""


class WordOptions(Options):
    """Whole words, as in the first papers."""

    kind: Literal["word"] = "word"
    """Whole words."""
    vocab_size: int = Field(30_000, gt=NUM_RESERVED, le=1_000_000)
    """Number of words kept, most frequent first, the reserved ids counted."""
    joint: bool = False
    """One vocabulary for both languages; otherwise one for each."""
    unknown: Literal["bytes", "unk"] = "bytes"
    """A word outside the vocabulary becomes its bytes (nothing is lost) or `<unk>` (as in the papers)."""


class CharacterOptions(Options):
    """Letters, one by one."""

    kind: Literal["character"] = "character"
    """Single characters."""
    vocab_size: int = Field(4000, gt=NUM_RESERVED, le=1_000_000)
    """Number of characters kept, most frequent first, the reserved ids counted; others become bytes."""
    joint: bool = True
    """One vocabulary for both languages; otherwise one for each."""


TokenizerOptions = Annotated[
    SubwordOptions | WordOptions | CharacterOptions, Field(discriminator="kind"), _named("unigram")
]


class BatchOptions(Options):
    """How pairs are gathered into batches."""

    batch_tokens: int = Field(4096, ge=1)
    """Most tokens in a batch, padding counted, on the longer of its two sides."""
    max_tokens: int = Field(256, ge=1)
    """Pairs with more tokens than this on either side are left out, and counted."""


class TokenSource(Options):
    """The source is a sentence: a row of ids, each with its vector."""

    kind: Literal["tokens"] = "tokens"
    """Ids of pieces."""


class FeatureSource(Options):
    """The source is a row of feature vectors, such as the regions of an image (Xu et al. 2015)."""

    kind: Literal["features"] = "features"
    """Vectors from outside."""
    feature_size: int = Field(512, ge=1)
    """Numbers in one feature vector."""


SourceOptions = Annotated[TokenSource | FeatureSource, Field(discriminator="kind"), _named("tokens")]


class ContentScorer(Options):
    """A score of the query against each memory."""

    kind: Literal["additive", "dot", "scaled-dot", "general", "scaled-general"] = "additive"
    """`additive` v.tanh(W s + U h), also called `concat`; `dot` s.h; `general` s.W h; `scaled-dot` and
    `scaled-general` are those over √n."""


class LocationScorer(Options):
    """A score from the query alone: where to look, whatever stands there (Luong et al. 2015, eq. 8)."""

    kind: Literal["location"] = "location"
    """W s, one row of W for each position."""
    max_positions: int = Field(256, ge=1)
    """Positions that have a score; source tokens after them get no weight, as in the paper."""


ScorerOptions = Annotated[
    ContentScorer | LocationScorer, Field(discriminator="kind"), _named("additive", concat="additive")
]


class GlobalWindow(Options):
    """Every source token is in view."""

    kind: Literal["global"] = "global"
    """All of the source."""


class LocalWindow(Options):
    """Only the source tokens around a position are in view (Luong et al. 2015, section 3.2)."""

    kind: Literal["local-m", "local-p"] = "local-p"
    """`local-m`: around the step's own number; `local-p`: around a predicted place, with a Gaussian."""
    half_width: int = Field(10, ge=1)
    """Source tokens in view on each side of the position: D in the paper."""


WindowOptions = Annotated[GlobalWindow | LocalWindow, Field(discriminator="kind"), _named("global")]


class AttendThenStep(Options):
    """Look with s_{t-1}, then step: the context enters the cell (Bahdanau et al. 2015)."""

    kind: Literal["attend-then-step"] = "attend-then-step"
    """Attend, then step."""
    scorer: ScorerOptions = ContentScorer()
    """How a query is scored against the memories."""
    window: WindowOptions = GlobalWindow()
    """Which source tokens are in view."""


class StepThenAttend(Options):
    """Step, then look with s_t: the context joins the state in the attentional vector (Luong et al. 2015)."""

    kind: Literal["step-then-attend"] = "step-then-attend"
    """Step, then attend."""
    scorer: ScorerOptions = ContentScorer()
    """How a query is scored against the memories."""
    window: WindowOptions = GlobalWindow()
    """Which source tokens are in view."""
    input_feeding: bool = True
    """The attentional vector enters the next step."""


class NoAttention(Options):
    """One fixed vector carries the whole sentence."""

    kind: Literal["none"] = "none"
    """No attention."""
    context: Literal["start", "every"] = "start"
    """The vector is the decoder's first state (Sutskever 2014), or enters every step as well (Cho 2014)."""


AttentionOptions = Annotated[
    AttendThenStep | StepThenAttend | NoAttention, Field(discriminator="kind"), _named("attend-then-step")
]


class TeacherForcing(Options):
    """In training the decoder always reads the right word."""

    kind: Literal["forcing"] = "forcing"
    """Always the right word."""


class ConstantSampling(Options):
    """In training the decoder reads its own word with the same probability throughout."""

    kind: Literal["constant"] = "constant"
    """Scheduled sampling (Bengio et al. 2015) that never changes."""
    gold_prob: float = Field(0.75, ge=0, le=1)
    """Probability of reading the right word."""


class LinearSampling(Options):
    """In training the decoder reads its own word more and more often, in a straight line."""

    kind: Literal["linear"] = "linear"
    """Scheduled sampling with linear decay."""
    lowest_gold_prob: float = Field(0.5, ge=0, le=1)
    """Probability of reading the right word in the end."""
    decay_steps: int = Field(20_000, ge=1)
    """Updates until then."""


class InverseSigmoidSampling(Options):
    """In training the decoder reads its own word more and more often, along k / (k + exp(step / k))."""

    kind: Literal["inverse-sigmoid"] = "inverse-sigmoid"
    """Scheduled sampling with inverse sigmoid decay."""
    decay_steps: float = Field(2000.0, ge=1)
    """The k of the formula, in updates: larger is later."""


TeacherOptions = Annotated[
    TeacherForcing | ConstantSampling | LinearSampling | InverseSigmoidSampling,
    Field(discriminator="kind"),
    _named("forcing"),
]


class XavierInit(Options):
    """Weights uniform within √(6 / (rows + columns)) (Glorot & Bengio 2010); recurrent ones orthogonal."""

    kind: Literal["xavier"] = "xavier"
    """By the size of each matrix."""


class UniformInit(Options):
    """Every weight uniform within one bound (Sutskever et al. 2014: 0.08; Luong et al. 2015: 0.1)."""

    kind: Literal["uniform"] = "uniform"
    """One bound for all."""
    bound: float = Field(0.1, gt=0, le=1)
    """Largest weight at the start."""


class GaussianInit(Options):
    """Weights from N(0, 0.01²), the alignment's N(0, 0.001²), recurrent ones orthogonal (Bahdanau 2015)."""

    kind: Literal["gaussian"] = "gaussian"
    """As in Cho et al. 2014 and Bahdanau et al. 2015."""


InitOptions = Annotated[
    XavierInit | UniformInit | GaussianInit, Field(discriminator="kind"), _named("xavier")
]


class SinusoidalPositions(Options):
    """Sines and cosines of many wavelengths (Vaswani et al. 2017, section 3.5)."""

    kind: Literal["sinusoidal"] = "sinusoidal"
    """Computed, for any length."""


class LearnedPositions(Options):
    """A learnt vector for each position."""

    kind: Literal["learned"] = "learned"
    """Learnt, up to a length."""
    max_positions: int = Field(256, ge=1)
    """Longest sequence, `</s>` counted."""


PositionOptions = Annotated[
    SinusoidalPositions | LearnedPositions, Field(discriminator="kind"), _named("sinusoidal")
]


class TransformerOptions(Options):
    """Attention only (Vaswani et al. 2017)."""

    kind: Literal["transformer"] = "transformer"
    """The Transformer."""
    source: SourceOptions = TokenSource()
    """What the encoder reads."""
    hidden_size: int = Field(256, ge=2)
    """Width of embeddings and layers: d_model in the paper."""
    feed_forward_size: int = Field(1024, ge=1)
    """Width inside the feed-forward networks: d_ff."""
    num_heads: int = Field(4, ge=1)
    """Heads of each attention; they share `hidden_size` equally."""
    num_encoder_layers: int = Field(3, ge=1)
    """Layers of the encoder."""
    num_decoder_layers: int = Field(3, ge=1)
    """Layers of the decoder."""
    norm: Literal["pre", "post"] = "pre"
    """Layer norm before each sub-layer (steadier), or after it as in the paper."""
    positions: PositionOptions = SinusoidalPositions()
    """How the place of a token is told."""
    tie: Literal["none", "target", "all"] = "all"
    """One matrix for target embeddings and output (`target`), for the source too (`all`), or for none."""
    init: Annotated[XavierInit | UniformInit, Field(discriminator="kind"), _named("xavier")] = XavierInit()
    """Weights at the start."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Share of values dropped after embeddings and sub-layers."""
    attention_dropout: float = Field(0.1, ge=0, lt=1)
    """Share of attention weights dropped."""
    feed_forward_dropout: float = Field(0.1, ge=0, lt=1)
    """Share of values dropped inside the feed-forward networks."""
    word_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of tokens whose whole embedding is dropped (Sennrich & Zhang 2019)."""

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.hidden_size % 2 or self.hidden_size % self.num_heads:
            wanted = f"even and a multiple of num_heads = {self.num_heads}"
            raise ValueError(f"hidden_size = {self.hidden_size} must be {wanted}")
        return self


class RecurrentOptions(Options):
    """A recurrent encoder and decoder, with attention or without."""

    kind: Literal["recurrent"] = "recurrent"
    """The recurrent family, 2014-2015."""
    source: SourceOptions = TokenSource()
    """What the encoder reads."""
    cell: Literal["gru", "lstm", "rnn"] = "gru"
    """What a step computes: gated unit (Cho 2014), long short-term memory, or plain tanh."""
    embedding_size: int = Field(256, ge=1)
    """Width of a word's vector."""
    hidden_size: int = Field(256, ge=2)
    """Width of a state; an encoder that reads both ways has this much for each."""
    num_layers: int = Field(1, ge=1)
    """Layers of the encoder and of the decoder."""
    reading: Literal["both", "forward", "reversed"] = "both"
    """The encoder reads both ways, forward only, or the reversed source (Sutskever 2014)."""
    attention: AttentionOptions = AttendThenStep()
    """Where the decoder looks, and when; or that it does not."""
    readout: Literal["linear", "maxout"] = "maxout"
    """The output layer sees the state, or a maxout of state, last word and context (Bahdanau 2015, A.2.2)."""
    residual: bool = False
    """From the second layer on, a layer's input is added to its output."""
    layer_norm: bool = False
    """Layer norm within the cell (Ba et al. 2016)."""
    tie: Literal["none", "factored", "target", "all"] = "target"
    """One matrix for target embeddings and output (`target`), for the source too (`all`), for none,
    or for none but the output of embedding rank (`factored`, Cho 2014)."""
    init: InitOptions = XavierInit()
    """Weights at the start."""
    teacher: TeacherOptions = TeacherForcing()
    """What the decoder reads in training: the right word, or at times its own."""
    dropout: float = Field(0.2, ge=0, lt=1)
    """Share of values dropped on embeddings, between layers and before the output."""
    variational: bool = False
    """One dropout mask for all steps of a sentence (Gal & Ghahramani 2016)."""
    recurrent_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the last state dropped on its way into the cell, one mask for all steps."""
    weight_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the recurrent weights dropped (Merity et al. 2018)."""
    word_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of tokens whose whole embedding is dropped (Sennrich & Zhang 2019)."""


ModelOptions = Annotated[
    TransformerOptions | RecurrentOptions, Field(discriminator="kind"), _named("transformer")
]


class AdamOptions(Options):
    """Adam (Kingma & Ba 2015), or with its weight decay apart (Loshchilov & Hutter 2019)."""

    kind: Literal["adam", "adamw"] = "adam"
    """`adam`, or `adamw` with decoupled weight decay."""
    rate: float = Field(4e-3, gt=0, le=10)
    """Learning rate at its highest."""
    beta1: float = Field(0.9, ge=0, lt=1)
    """Memory of the gradient."""
    beta2: float = Field(0.98, ge=0, lt=1)
    """Memory of the squared gradient."""
    epsilon: float = Field(1e-8, gt=0)
    """Added to the divisor."""
    weight_decay: float = Field(0.0, ge=0, lt=1)
    """Shrinks matrices; embeddings, biases and layer norms are left alone."""


class AdadeltaOptions(Options):
    """Adadelta (Zeiler 2012), as in Cho et al. 2014 and Bahdanau et al. 2015."""

    kind: Literal["adadelta"] = "adadelta"
    """Adadelta."""
    rate: float = Field(1.0, gt=0, le=100)
    """Learning rate at its highest; 1 in the paper, which has none."""
    rho: float = Field(0.95, ge=0, lt=1)
    """Memory of the squared gradient."""
    epsilon: float = Field(1e-6, gt=0)
    """Added to both means."""


class SgdOptions(Options):
    """Stochastic gradient descent, as in Sutskever et al. 2014 and Luong et al. 2015."""

    kind: Literal["sgd"] = "sgd"
    """Plain descent."""
    rate: float = Field(1.0, gt=0, le=100)
    """Learning rate at its highest."""
    momentum: float = Field(0.0, ge=0, lt=1)
    """Share of the last step that is taken again."""


OptimiserOptions = Annotated[
    AdamOptions | AdadeltaOptions | SgdOptions, Field(discriminator="kind"), _named("adam")
]


class TrapezoidSchedule(Options):
    """Up, level, and straight down to zero at the end, or once validation has stopped improving."""

    kind: Literal["trapezoid"] = "trapezoid"
    """Needs no end known beforehand: early stopping starts the descent."""
    warmup_steps: int = Field(400, ge=0)
    """Updates on the way up, a tenth of the run at most."""
    descent: float = Field(0.4, gt=0, lt=1)
    """Share of the whole run that goes down."""


class InverseSqrtSchedule(Options):
    """Up, then down with the square root of the step (Vaswani et al. 2017, eq. 3)."""

    kind: Literal["inverse-sqrt"] = "inverse-sqrt"
    """Never reaches zero."""
    warmup_steps: int = Field(4000, ge=1)
    """Updates on the way up."""


class CosineSchedule(Options):
    """Up, then down along a cosine (Loshchilov & Hutter 2017); the end must be known."""

    kind: Literal["cosine"] = "cosine"
    """Half a cosine."""
    warmup_steps: int = Field(400, ge=0)
    """Updates on the way up."""


class PlateauSchedule(Options):
    """Down whenever validation has not improved for a while."""

    kind: Literal["plateau"] = "plateau"
    """Follows the validation loss."""
    factor: float = Field(0.5, gt=0, lt=1)
    """What the rate is multiplied by."""
    wait: int = Field(2, ge=1)
    """Validations without improvement until then."""


class HalvingSchedule(Options):
    """Level, then halved at regular times (Sutskever et al. 2014; Luong et al. 2015)."""

    kind: Literal["halving"] = "halving"
    """Follows the epochs."""
    first_epoch: float = Field(8.0, ge=0)
    """Epochs before the first halving."""
    every_epochs: float = Field(1.0, gt=0)
    """Epochs between two halvings."""


class ConstantSchedule(Options):
    """Always the same rate."""

    kind: Literal["constant"] = "constant"
    """Level."""


ScheduleOptions = Annotated[
    TrapezoidSchedule
    | InverseSqrtSchedule
    | CosineSchedule
    | PlateauSchedule
    | HalvingSchedule
    | ConstantSchedule,
    Field(discriminator="kind"),
    _named("trapezoid"),
]


class MovingAverage(Options):
    """Weights averaged after every update, older ones counting less and less (Polyak & Juditsky 1992)."""

    kind: Literal["moving"] = "moving"
    """Exponential moving average."""
    decay: float = Field(0.999, ge=0, lt=1)
    """Share of the old average that is kept; less in the first updates."""


class SnapshotAverage(Options):
    """The mean of the weights at the last validations (Vaswani et al. 2017, section 6.1)."""

    kind: Literal["snapshots"] = "snapshots"
    """Checkpoint averaging."""
    num_snapshots: int = Field(5, ge=1, le=100)
    """Validations averaged, the newest counted."""


class NoAverage(Options):
    """The weights as they are."""

    kind: Literal["none"] = "none"
    """No averaging."""


AverageOptions = Annotated[
    MovingAverage | SnapshotAverage | NoAverage, Field(discriminator="kind"), _named("moving")
]


class TrainOptions(Options):
    """How a model learns."""

    optimiser: OptimiserOptions = AdamOptions()
    """What turns gradients into steps."""
    schedule: ScheduleOptions = TrapezoidSchedule()
    """The learning rate over time."""
    average: AverageOptions = MovingAverage()
    """Which weights are validated and kept."""
    steps: int | None = Field(None, ge=1, le=1_000_000_000)
    """Updates in all; none: by time, or until validation stops improving."""
    seconds: float | None = Field(None, gt=0)
    """Time in all, preparation counted; none: by steps, or until validation stops improving."""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Share of the probability given to all words alike (Szegedy et al. 2016)."""
    clip_norm: float | None = Field(1.0, gt=0)
    """Longest gradient; longer ones are shortened (Pascanu et al. 2013)."""
    accumulate: int = Field(1, ge=1, le=10_000)
    """Batches gathered into one update."""
    r_drop: float = Field(0.0, ge=0, le=100)
    """Weight of R-Drop (Liang et al. 2021): two passes with different dropout must agree; 0 is off."""
    subword_sampling: float = Field(0.0, ge=0, le=1)
    """Subwords cut at random in training: the share of merges left out for `bpe` (Provilkov et al. 2020),
    the sharpness of the choice for `unigram` (Kudo 2018); 0 is off."""
    guidance: float = Field(0.0, ge=0, le=100)
    """Weight of a loss that teaches attention, of a Transformer one head, to look where the statistical
    aligner links (Chen et al. 2016; Garg et al. 2019); 0 is off."""
    valid_steps: int | None = Field(None, ge=1)
    """Updates between validations; none: about an epoch, and from 250 to 1,000."""
    patience: int = Field(10, ge=1)
    """Validations without improvement, in BLEU or loss, after which training comes to its end."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of the matrix products; `auto`: bfloat16 on GPUs that have it, float32 elsewhere."""

    @model_validator(mode="after")
    def _has_one_end(self) -> Self:
        if self.steps is not None and self.seconds is not None:
            raise ValueError("steps and seconds exclude each other; give one of them")
        if self.schedule.kind == "cosine" and self.steps is None and self.seconds is None:
            raise ValueError("the cosine schedule must know the end; give steps or seconds")
        return self


class _SearchOptions(Options):
    """What every search can be told."""

    no_repeat_ngram: int | None = Field(None, ge=1)
    """No run of so many pieces is said twice; none: repetition is free."""
    max_ratio: float = Field(2.0, gt=0)
    """Most pieces said for each piece of the source, 20 more allowed; a translation cut there is flagged."""


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
    BeamOptions | SampleOptions | RiskOptions, Field(discriminator="kind"), _named("beam", mbr="risk")
]


SECTIONS: dict[str, Any] = {
    "tokenizer": TokenizerOptions,
    "batch": BatchOptions,
    "model": ModelOptions,
    "train": TrainOptions,
    "search": SearchOptions,
}


def parse(section: str, values: Mapping[str, Any]) -> Any:
    """Return the options of a section from plain values, or raise an error that names the key."""
    try:
        return TypeAdapter(SECTIONS[section]).validate_python(values)
    except ValidationError as error:
        raise ConfigError(_explain(section, error)) from None


def _explain(section: str, error: ValidationError) -> str:
    """Return one line for the first thing that is wrong: the key, the value, and what would be right."""
    problem = error.errors()[0]
    cls, path = _find(section, problem["loc"])
    key, value = ".".join(path), problem["input"]
    if problem["type"] == "union_tag_invalid":
        kinds = [kind for choice in _choices_of(cls, section, path) for kind in _values(choice, "kind")]
        return f"{key}.kind = {value.get('kind')!r} is not valid; {nearest(str(value.get('kind')), kinds)}"
    if problem["type"] == "extra_forbidden":
        return f"{key} does not exist; {nearest(path[-1], list(cls.model_fields))}"
    if problem["type"] == "literal_error":
        return f"{key} = {value!r} is not valid; {nearest(str(value), _values(cls, path[-1]))}"
    if problem["type"] == "value_error":
        return f"{key} is not valid; {problem['ctx']['error']}"
    return f"{key} = {value!r} is not valid; {problem['msg'][0].lower()}{problem['msg'][1:]}"


def _find(section: str, location: tuple[int | str, ...]) -> tuple[type[Options], list[str]]:
    """Return the innermost option class of a location, and the keys on the way there.

    pydantic's locations name the kind of each choice as well as the key; a user knows the keys only.
    """
    path, choices = [section], _classes(SECTIONS[section])
    cls = choices[0]
    for part in map(str, location):
        if len(choices) > 1 and (chosen := [choice for choice in choices if part in _values(choice, "kind")]):
            cls, choices = chosen[0], chosen
            continue
        path.append(part)
        if part in cls.model_fields and (inner := _classes(cls.model_fields[part].annotation)):
            choices = inner
    return cls, path


def _choices_of(cls: type[Options], section: str, path: list[str]) -> list[type[Options]]:
    return _classes(SECTIONS[section] if len(path) == 1 else cls.model_fields[path[-1]].annotation)


def _values(cls: type[Options], key: str) -> list[str]:
    return [str(value) for value in get_args(cls.model_fields[key].annotation)]


def nearest(word: str, known: list[str]) -> str:
    """Return the end of an error message about a name that is not known: the nearest that is, or all."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"choose from: {', '.join(known)}"


def reference() -> str:
    """Return the reference page of all options as Markdown; `docs/options.md` is this text."""
    lines = [
        "# Options",
        "",
        "Printed by `python -m regard.config > docs/options.md`; a test keeps it true.",
        "",
        "A choice between designs is made by its `kind`, for which a bare word may stand:",
        '`model.attention.scorer = "dot"` says `model.attention.scorer.kind = "dot"`.',
        "",
    ]
    for name, section in SECTIONS.items():
        for cls in _classes(section):
            lines += _describe(name, cls)
    return "\n".join(lines)


def _describe(name: str, cls: type[Options]) -> Iterator[str]:
    """Yield the lines about one option class, then those about the choices within it."""
    yield from (
        f"## `{name}`: {cls.__doc__}",
        "",
        "| option | values | default | meaning |",
        "|---|---|---|---|",
    )
    inner: dict[str, list[type[Options]]] = {}
    for key, field in cls.model_fields.items():
        default = field.default
        if choices := _classes(field.annotation):
            values = " ".join(f"`{kind}`" for choice in choices for kind in _values(choice, "kind"))
            default, inner[f"{name}.{key}"] = default.kind, choices
        elif get_origin(field.annotation) is Literal:
            values = " ".join(f"`{literal}`" for literal in get_args(field.annotation))
        else:
            limits = ", ".join(
                f"{sign} {getattr(limit, bound):,}"
                for limit in field.metadata
                for bound, sign in (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<="))
                if hasattr(limit, bound)
            )
            plain = next(iter(get_args(field.annotation)), field.annotation)
            values = " ".join(filter(None, (getattr(plain, "__name__", ""), limits)))
        meaning = " ".join((field.description or "").split())
        shown = "none" if default is None else f"`{default}`"
        yield f"| `{name}.{key}` | {values} | {shown} | {meaning} |"
    yield ""
    for key, choices in inner.items():
        for choice in choices:
            yield from _describe(key, choice)


if __name__ == "__main__":
    print(reference(), end="")
