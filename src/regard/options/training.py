"""Options of training: optimiser, schedule, averaging, stopping."""

from typing import Annotated, Literal, Self

from pydantic import (
    Field,
    model_validator,
)

from regard.options.section import Options, named


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
    AdamOptions | AdadeltaOptions | SgdOptions, Field(discriminator="kind"), named("adam")
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
    named("trapezoid"),
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
    MovingAverage | SnapshotAverage | NoAverage, Field(discriminator="kind"), named("moving")
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
