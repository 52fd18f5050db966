"""Options of training: optimiser, schedule, averaging, stopping."""

from typing import Annotated, Literal, Self

from pydantic import (
    Field,
    model_validator,
)

from regard.options.section import Options, named


class AdamOptions(Options):
    """Adam (Kingma & Ba 2015)."""

    kind: Literal["adam", "adamw"] = "adam"
    """`adamw` has decoupled weight decay (Loshchilov & Hutter 2019)."""
    rate: float = Field(4e-3, gt=0, le=10)
    """Highest learning rate."""
    beta1: float = Field(0.9, ge=0, lt=1)
    """Decay of the mean of gradients."""
    beta2: float = Field(0.98, ge=0, lt=1)
    """Decay of the mean of squared gradients."""
    epsilon: float = Field(1e-8, gt=0)
    """Added to the divisor, for numerical stability."""
    weight_decay: float = Field(0.0, ge=0, lt=1)
    """Weight decay of matrices; not applied to embeddings, biases and layer norms."""


class AdadeltaOptions(Options):
    """Adadelta (Zeiler 2012), as in Cho et al. 2014 and Bahdanau et al. 2015."""

    kind: Literal["adadelta"] = "adadelta"
    """Adadelta."""
    rate: float = Field(1.0, gt=0, le=100)
    """Highest learning rate; the paper has none, which is 1."""
    rho: float = Field(0.95, ge=0, lt=1)
    """Decay of both means."""
    epsilon: float = Field(1e-6, gt=0)
    """Added to both means, for numerical stability."""


class SgdOptions(Options):
    """Stochastic gradient descent, as in Sutskever et al. 2014 and Luong et al. 2015."""

    kind: Literal["sgd"] = "sgd"
    """Plain descent."""
    rate: float = Field(1.0, gt=0, le=100)
    """Highest learning rate."""
    momentum: float = Field(0.0, ge=0, lt=1)
    """Momentum."""


OptimiserOptions = Annotated[
    AdamOptions | AdadeltaOptions | SgdOptions, Field(discriminator="kind"), named("adam")
]


class TrapezoidSchedule(Options):
    """Warm-up, constant, then linear decay to zero at the end, or when validation stops improving."""

    kind: Literal["trapezoid"] = "trapezoid"
    """The end need not be known: early stopping starts the decay."""
    warmup_steps: int = Field(400, ge=0)
    """Number of warm-up updates, at most a tenth of the run, not counting preparation."""
    descent: float = Field(0.4, gt=0, lt=1)
    """Share of the whole run in which the learning rate decays."""


class InverseSqrtSchedule(Options):
    """Warm-up, then decay with the inverse square root of the step (Vaswani et al. 2017, eq. 3)."""

    kind: Literal["inverse-sqrt"] = "inverse-sqrt"
    """Never reaches zero."""
    warmup_steps: int = Field(4000, ge=1)
    """Number of warm-up updates."""


class CosineSchedule(Options):
    """Warm-up, then cosine decay (Loshchilov & Hutter 2017); needs `steps` or `seconds`."""

    kind: Literal["cosine"] = "cosine"
    """Cosine decay."""
    warmup_steps: int = Field(400, ge=0)
    """Number of warm-up updates."""


class PlateauSchedule(Options):
    """Constant, and reduced when validation has not improved for some time."""

    kind: Literal["plateau"] = "plateau"
    """Follows the validation loss."""
    factor: float = Field(0.5, gt=0, lt=1)
    """Factor by which the learning rate is reduced."""
    wait: int = Field(2, ge=1)
    """Number of validations without improvement before a reduction."""


class HalvingSchedule(Options):
    """Constant, then halved at regular intervals (Sutskever et al. 2014; Luong et al. 2015)."""

    kind: Literal["halving"] = "halving"
    """Follows the epochs."""
    first_epoch: float = Field(8.0, ge=0)
    """Epochs before the first halving."""
    every_epochs: float = Field(1.0, gt=0)
    """Epochs between two halvings."""


class ConstantSchedule(Options):
    """Constant learning rate."""

    kind: Literal["constant"] = "constant"
    """Constant."""


ScheduleOptions = Annotated[
    TrapezoidSchedule
    | InverseSqrtSchedule
    | CosineSchedule
    | PlateauSchedule
    | HalvingSchedule
    | ConstantSchedule,
    Field(discriminator="kind"),
    named("trapezoid"),
]


class MovingAverage(Options):
    """Exponential moving average of the weights, after every update (Polyak & Juditsky 1992)."""

    kind: Literal["moving"] = "moving"
    """Exponential moving average."""
    decay: float = Field(0.999, ge=0, lt=1)
    """Decay per update; smaller in the first updates."""


class SnapshotAverage(Options):
    """Mean of the weights at the last validations (Vaswani et al. 2017, section 6.1)."""

    kind: Literal["snapshots"] = "snapshots"
    """Checkpoint averaging."""
    num_snapshots: int = Field(5, ge=1, le=100)
    """Number of validations averaged, including the newest."""


class NoAverage(Options):
    """No averaging: the current weights."""

    kind: Literal["none"] = "none"
    """No averaging."""


AverageOptions = Annotated[
    MovingAverage | SnapshotAverage | NoAverage, Field(discriminator="kind"), named("moving")
]


class TrainOptions(Options):
    """How a model is trained."""

    optimiser: OptimiserOptions = AdamOptions()
    """Optimiser."""
    schedule: ScheduleOptions = TrapezoidSchedule()
    """Learning rate schedule."""
    average: AverageOptions = MovingAverage()
    """Averaging: which weights are validated and saved."""
    steps: int | None = Field(None, ge=1, le=1_000_000_000)
    """Total number of updates. None: as long as `seconds` says, or until validation stops improving."""
    seconds: float | None = Field(None, gt=0)
    """Total time, including preparation. None: as long as `steps` says, or until validation stops
    improving."""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Label smoothing: share of the probability that is spread over all words (Szegedy et al. 2016)."""
    clip_norm: float | None = Field(1.0, gt=0)
    """Gradient clipping: maximum norm of the gradient (Pascanu et al. 2013)."""
    accumulate: int = Field(1, ge=1, le=10_000)
    """Gradient accumulation: number of batches per update."""
    r_drop: float = Field(0.0, ge=0, le=100)
    """Weight of the R-Drop loss, which makes two passes with different dropout agree (Liang et al. 2021); 0
    is off."""
    subword_sampling: float = Field(0.0, ge=0, le=1)
    """Random subword segmentation in training: for `bpe` the share of merges dropped (BPE-dropout, Provilkov
    et al. 2020), for `unigram` the parameter α of subword regularisation (Kudo 2018); 0 is off."""
    guidance: float = Field(0.0, ge=0, le=100)
    """Weight of a loss that trains attention (in a Transformer, one head) to follow the word alignment of the
    statistical aligner (Chen et al. 2016; Garg et al. 2019); 0 is off."""
    valid_steps: int | None = Field(None, ge=1)
    """Number of updates between validations. None: about one epoch, but at least 250 and at most 1,000."""
    patience: int = Field(10, ge=1)
    """Early stopping: number of validations without improvement in BLEU or loss."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of matrix products. `auto`: bfloat16 on GPUs that support it, otherwise float32."""

    @model_validator(mode="after")
    def _has_one_end(self) -> Self:
        if self.steps is not None and self.seconds is not None:
            raise ValueError("steps and seconds exclude each other; give one of them")
        if self.schedule.kind == "cosine" and self.steps is None and self.seconds is None:
            raise ValueError("the cosine schedule must know the end; give steps or seconds")
        return self
