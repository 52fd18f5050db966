"""Options of the model: its family, cells, attention, widths."""

from operator import not_
from typing import Annotated, Literal, Self

from pydantic import (
    Field,
    model_validator,
)

from regard.options.section import Options, named


class TokenSource(Options):
    """The source is text: a sequence of token ids."""

    kind: Literal["tokens"] = "tokens"
    """Ids of pieces."""


class FeatureSource(Options):
    """The source is a sequence of feature vectors, such as the regions of an image (Xu et al. 2015)."""

    kind: Literal["features"] = "features"
    """Vectors from outside."""
    feature_size: int = Field(512, ge=1)
    """Length of one feature vector."""


SourceOptions = Annotated[TokenSource | FeatureSource, Field(discriminator="kind"), named("tokens")]


def feature_size(source: "TokenSource | FeatureSource") -> int | None:
    """Return how many numbers each feature vector of a source has, None if it is text."""
    return source.feature_size if isinstance(source, FeatureSource) else None


class ContentScorer(Options):
    """The score compares the query (decoder state s) with each encoder state h."""

    kind: Literal["additive", "dot", "scaled-dot", "general", "scaled-general"] = "additive"
    """`additive`: v · tanh(W s + U h), also called `concat`; `dot`: s · h; `general`: s · W h; `scaled-dot`
    and `scaled-general`: the same divided by √n."""


class LocationScorer(Options):
    """The score depends on the query and the position only, not on the source words (Luong et al. 2015, eq.
    8)."""

    kind: Literal["location"] = "location"
    """W s, with one row of W per position."""
    max_positions: int = Field(256, ge=1)
    """Number of positions with a score; later source tokens get no weight, as in the paper."""


ScorerOptions = Annotated[
    ContentScorer | LocationScorer, Field(discriminator="kind"), named("additive", concat="additive")
]


class GlobalWindow(Options):
    """Attention covers the whole source."""

    kind: Literal["global"] = "global"
    """The whole source."""


class LocalWindow(Options):
    """Attention covers a window around one position (Luong et al. 2015, section 3.2)."""

    kind: Literal["local-m", "local-p"] = "local-p"
    """`local-m`: the position equals the step number; `local-p`: the position is predicted, and weights are
    multiplied by a Gaussian around it."""
    half_width: int = Field(10, ge=1)
    """Number of source tokens on each side of the position: D in the paper."""


WindowOptions = Annotated[GlobalWindow | LocalWindow, Field(discriminator="kind"), named("global")]


class AttendThenStep(Options):
    """Attention with the state s_{t-1}, then the step; the context is an input of the cell (Bahdanau et al.
    2015)."""

    kind: Literal["attend-then-step"] = "attend-then-step"
    """Attend, then step."""
    scorer: ScorerOptions = ContentScorer()
    """The score function."""
    window: WindowOptions = GlobalWindow()
    """Which source tokens attention covers."""


class StepThenAttend(Options):
    """The step, then attention with the new state s_t; both form the attentional vector (Luong et al.
    2015)."""

    kind: Literal["step-then-attend"] = "step-then-attend"
    """Step, then attend."""
    scorer: ScorerOptions = ContentScorer()
    """The score function."""
    window: WindowOptions = GlobalWindow()
    """Which source tokens attention covers."""
    input_feeding: bool = True
    """The attentional vector is an input of the next step."""


class StepAttendStep(Options):
    """A step with the last word, attention with its state, a second step with the context: the conditional
    GRU of Nematus (Sennrich et al. 2017). The decoder starts from the mean of the encoder states."""

    kind: Literal["step-attend-step"] = "step-attend-step"
    """Step, attend, step again."""
    scorer: ScorerOptions = ContentScorer()
    """The score function."""
    window: WindowOptions = GlobalWindow()
    """Which source tokens attention covers."""


class NoAttention(Options):
    """No attention: one vector represents the whole source sentence."""

    kind: Literal["none"] = "none"
    """No attention."""
    context: Literal["start", "every"] = "start"
    """`start`: the vector is the first decoder state (Sutskever et al. 2014); `every`: it is also an input of
    every step (Cho et al. 2014)."""


AttentionOptions = Annotated[
    AttendThenStep | StepThenAttend | StepAttendStep | NoAttention,
    Field(discriminator="kind"),
    named("attend-then-step"),
]


class TeacherForcing(Options):
    """In training, the decoder always reads the reference word (teacher forcing)."""

    kind: Literal["forcing"] = "forcing"
    """Always the reference word."""


class ConstantSampling(Options):
    """Scheduled sampling (Bengio et al. 2015): in training, the decoder sometimes reads its own prediction,
    with a constant probability."""

    kind: Literal["constant"] = "constant"
    """Scheduled sampling with a constant probability."""
    gold_prob: float = Field(0.75, ge=0, le=1)
    """Probability of reading the reference word."""


class LinearSampling(Options):
    """Scheduled sampling: the probability of reading the reference word decreases linearly."""

    kind: Literal["linear"] = "linear"
    """Scheduled sampling with linear decay."""
    lowest_gold_prob: float = Field(0.5, ge=0, le=1)
    """Final probability of reading the reference word."""
    decay_steps: int = Field(20_000, ge=1)
    """Number of updates until the final probability."""


class InverseSigmoidSampling(Options):
    """Scheduled sampling: the probability of reading the reference word is k / (k + exp(step / k))."""

    kind: Literal["inverse-sigmoid"] = "inverse-sigmoid"
    """Scheduled sampling with inverse sigmoid decay."""
    decay_steps: float = Field(2000.0, ge=1)
    """The k of the formula, in updates; a larger value decays later."""


TeacherOptions = Annotated[
    TeacherForcing | ConstantSampling | LinearSampling | InverseSigmoidSampling,
    Field(discriminator="kind"),
    named("forcing"),
]


class XavierInit(Options):
    """Uniform within √(6 / (rows + columns)) (Glorot & Bengio 2010); recurrent matrices orthogonal."""

    kind: Literal["xavier"] = "xavier"
    """Scaled by the size of each matrix."""


class UniformInit(Options):
    """Uniform within one bound for all weights (Sutskever et al. 2014: 0.08; Luong et al. 2015: 0.1)."""

    kind: Literal["uniform"] = "uniform"
    """One bound for all."""
    bound: float = Field(0.1, gt=0, le=1)
    """Largest absolute value of an initial weight."""


class GaussianInit(Options):
    """From N(0, 0.01²), attention from N(0, 0.001²); recurrent matrices orthogonal (Bahdanau et al. 2015)."""

    kind: Literal["gaussian"] = "gaussian"
    """As in Cho et al. 2014 and Bahdanau et al. 2015."""


InitOptions = Annotated[XavierInit | UniformInit | GaussianInit, Field(discriminator="kind"), named("xavier")]


class SinusoidalPositions(Options):
    """Sines and cosines of different wavelengths, for any length (Vaswani et al. 2017, section 3.5)."""

    kind: Literal["sinusoidal"] = "sinusoidal"
    """Computed, for any length."""


class LearnedPositions(Options):
    """One learnt vector per position."""

    kind: Literal["learned"] = "learned"
    """Learnt, up to a maximum length."""
    max_positions: int = Field(256, ge=1)
    """Maximum sequence length, including `</s>`."""


PositionOptions = Annotated[
    SinusoidalPositions | LearnedPositions, Field(discriminator="kind"), named("sinusoidal")
]


class TransformerOptions(Options):
    """The Transformer: attention only (Vaswani et al. 2017)."""

    kind: Literal["transformer"] = "transformer"
    """The Transformer."""
    source: SourceOptions = TokenSource()
    """Type of input."""
    hidden_size: int = Field(256, ge=2)
    """Width of embeddings and layers: d_model in the paper."""
    feed_forward_size: int = Field(1024, ge=1)
    """Inner width of the feed-forward networks: d_ff in the paper."""
    num_heads: int = Field(4, ge=1)
    """Number of attention heads; each has width `hidden_size` / `num_heads`."""
    num_encoder_layers: int = Field(3, ge=1, le=1000)
    """Number of encoder layers."""
    num_decoder_layers: int = Field(3, ge=1, le=1000)
    """Number of decoder layers."""
    decoder_self: Literal["attention", "ssru"] = Field("attention", exclude_if="attention".__eq__)
    """How the decoder reads the words so far: self-attention, or SSRU, a simple recurrence (Kim et al. 2019)
    as in the students of Bergamot."""
    norm: Literal["pre", "post"] = "pre"
    """Layer norm before each sub-layer (more stable), or after it as in the paper."""
    positions: PositionOptions = SinusoidalPositions()
    """Position encoding."""
    activation: Literal["relu", "swish", "gelu"] = Field("relu", exclude_if="relu".__eq__)
    """Activation function of the feed-forward networks: `relu` as in the paper, `swish` (x times its sigmoid)
    as in most OPUS-MT models, or `gelu`."""
    biases: bool = Field(False, exclude_if=not_)
    """Biases of the queries and outputs of attention, and of the output layer. Other biases of attention are
    not needed: that of the keys cancels in the softmax, that of the values is part of the output's."""
    source_end: bool = Field(True, exclude_if=bool)
    """Whether attention sees the `</s>` after the source; many models of OpenNMT are trained without it."""
    tie: Literal["none", "target", "all"] = "all"
    """Shared weights: `target`: target embeddings and output; `all`: source embeddings too; `none`:
    nothing."""
    init: Annotated[XavierInit | UniformInit, Field(discriminator="kind"), named("xavier")] = XavierInit()
    """Initial weights."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout after embeddings and sub-layers."""
    attention_dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on attention weights."""
    feed_forward_dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout inside the feed-forward networks."""
    word_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout of whole tokens: the embedding becomes zero (Sennrich & Zhang 2019)."""

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.hidden_size % 2 or self.hidden_size % self.num_heads:
            wanted = f"even and a multiple of num_heads = {self.num_heads}"
            raise ValueError(f"hidden_size = {self.hidden_size} must be {wanted}")
        return self


class RecurrentOptions(Options):
    """A recurrent encoder and decoder (RNN), with or without attention."""

    kind: Literal["recurrent"] = "recurrent"
    """The recurrent family, 2014-2017."""
    source: SourceOptions = TokenSource()
    """Type of input."""
    cell: Literal["gru", "gru-after", "lstm", "rnn"] = "gru"
    """Recurrent cell: GRU (Cho et al. 2014), a GRU whose reset gate comes after its matrix (as in Marian,
    cuDNN and PyTorch), LSTM, or a plain RNN with tanh."""
    embedding_size: int = Field(256, ge=1)
    """Width of the embeddings."""
    hidden_size: int = Field(256, ge=2)
    """Width of a state; a bidirectional encoder has this width per direction."""
    num_layers: int = Field(1, ge=1, le=1000)
    """Number of layers in the encoder and in the decoder."""
    reading: Literal["both", "forward", "reversed"] = "both"
    """The encoder is bidirectional, reads forwards only, or reads the reversed source (Sutskever et al.
    2014)."""
    attention: AttentionOptions = AttendThenStep()
    """Attention, and its order; or none."""
    readout: Literal["linear", "maxout", "tanh"] = "maxout"
    """Input of the output layer: the state, or a maxout (Bahdanau et al. 2015, A.2.2) or tanh (Sennrich et
    al. 2017) of state, last word and context."""
    residual: bool = False
    """Residual connections from the second layer on."""
    layer_norm: bool = False
    """Layer norm inside the cell (Ba et al. 2016) and the `tanh` readout; with `step-attend-step` also in the
    first state and the `additive` score."""
    tie: Literal["none", "factored", "target", "all"] = "target"
    """Shared weights: `target`: target embeddings and output; `all`: source embeddings too; `none`: nothing;
    `factored`: nothing, and the output matrix has the rank of the embeddings (Cho et al. 2014)."""
    init: InitOptions = XavierInit()
    """Initial weights."""
    teacher: TeacherOptions = TeacherForcing()
    """What the decoder reads in training: the reference word, or sometimes its own prediction."""
    dropout: float = Field(0.2, ge=0, lt=1)
    """Dropout on embeddings, between layers and before the output."""
    variational: bool = False
    """The same dropout mask at all steps of a sentence (Gal & Ghahramani 2016)."""
    recurrent_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on the last state where it enters the cell, with one mask for all steps."""
    weight_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on the recurrent weights (Merity et al. 2018)."""
    word_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout of whole tokens: the embedding becomes zero (Sennrich & Zhang 2019)."""


ModelOptions = Annotated[
    TransformerOptions | RecurrentOptions, Field(discriminator="kind"), named("transformer")
]
