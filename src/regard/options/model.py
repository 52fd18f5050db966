"""Options of the model: its family, cells, attention, widths."""

from typing import Annotated, Literal, Self

from pydantic import (
    Field,
    model_validator,
)

from regard.options.section import Options, named


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


SourceOptions = Annotated[TokenSource | FeatureSource, Field(discriminator="kind"), named("tokens")]


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
    ContentScorer | LocationScorer, Field(discriminator="kind"), named("additive", concat="additive")
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


WindowOptions = Annotated[GlobalWindow | LocalWindow, Field(discriminator="kind"), named("global")]


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
    AttendThenStep | StepThenAttend | NoAttention, Field(discriminator="kind"), named("attend-then-step")
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
    named("forcing"),
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


InitOptions = Annotated[XavierInit | UniformInit | GaussianInit, Field(discriminator="kind"), named("xavier")]


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
    SinusoidalPositions | LearnedPositions, Field(discriminator="kind"), named("sinusoidal")
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
    init: Annotated[XavierInit | UniformInit, Field(discriminator="kind"), named("xavier")] = XavierInit()
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
    TransformerOptions | RecurrentOptions, Field(discriminator="kind"), named("transformer")
]
