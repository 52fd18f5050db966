"""The training loop: update, log, validate, save; everything it knows is in `RunState` and on disk."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from regard.contract import Batch
from regard.corpus.batches import Batches, Position, resample
from regard.errors import TrainingError
from regard.model.build import Model
from regard.options.training import TrainOptions
from regard.training.checkpoint import Checkpoint, facts_as, save_checkpoint
from regard.training.diagnose import Finding, Measured, about_learning, diverging, slower
from regard.training.display import Display, Update
from regard.training.guide import Guide, taught_reading
from regard.training.log import Log
from regard.training.optimise import (
    Place,
    load_optimiser_state,
    make_average,
    make_optimiser,
    optimiser_state,
    rate_factor,
)
from regard.training.prepare import Prepared
from regard.training.processes import Processes
from regard.training.recipes import RunOptions
from regard.training.stopping import Signals, Stopped
from regard.training.validate import Validated, Validator
from regard.training.verdict import (
    FORESEE_MIN_STEP,
    FORESEE_SHARE,
    FORESEE_STEP,
    Direction,
    Pace,
    foresee,
)
from regard.training.workers import Autocast, Workers

NO_BETTER = "validation has not improved"  # how the reason begins why a run ended before its time
_SAVE_SECONDS = 60
_MAX_RESERVE = 0.2  # of the time: early translations are long and slow
_NLL_MEMORY = 0.98  # of the running mean by which divergence is seen
_MIN_TIMED = 10  # updates after which the time left is told: the first ones are slow


@dataclass(slots=True)
class RunState:
    """Where a run stands between two updates, as far as it is not a tensor."""

    step: int = 0
    epoch: int = 0
    epoch_step: int = 0
    seconds: float = 0.0
    prepared_seconds: float = 0.0  # of them that went by before the first update
    budget: float | None = None  # steps or seconds that the options give
    limit: float | None = None  # steps or seconds until the end; None while it is not known
    reserve_seconds: float = 0.0  # that the last scoring will take
    plateau_factor: float = 1.0
    stale: int = 0  # validations since the last improvement
    plateau_stale: int = 0
    best_bleu: float = -1.0
    best_nll: float = float("inf")
    best_step: int = 0
    lowest_nll: float = float("inf")
    running_nll: float | None = None
    nll_sum: float = 0.0  # of the training tokens since the last validation
    num_tokens: int = 0
    log_bytes: int = 0
    found: list[str] = field(default_factory=list)  # causes already told


class Trainer:
    """One run, from its first update or its last checkpoint to its end."""

    def __init__(
        self,
        options: RunOptions,
        prepared: Prepared,
        model: Model,
        folder: Path,
        processes: Processes,
        num_workers: int,
        display: Display,
    ) -> None:
        self.options = options
        self.prepared = prepared
        self.folder = folder
        self.processes = processes
        self.display = display
        self.model = model
        self.parameters = list(self.model.parameters())
        self.optimiser = make_optimiser(self.model, options.train.optimiser)
        self.average = make_average(self.model, options.train.average)
        self.batches = Batches(prepared.shares, options.batch, options.seed)
        self._budget = options.train.seconds or options.train.steps
        self.state = RunState(budget=self._budget, limit=self._budget)
        self.history: list[Measured] = []
        self.validator = Validator(prepared, options.batch, self.model)
        taught = taught_reading(options.model, options.train)
        guide = Guide(self.batches.links, options.train.guidance, taught) if taught else None
        self.workers = Workers(
            self.model,
            options.train,
            options.seed,
            num_workers,
            processes,
            _autocast(options.train, self.parameters[0].device),
            guide,
        )
        epoch_updates = -(-self.batches.num_batches(0) // options.train.accumulate)
        self.valid_steps = options.train.valid_steps or min(1000, max(250, epoch_updates))
        self.epoch_updates = epoch_updates
        facts = prepared.facts
        self.direction = Direction(facts.source_language, facts.target_language)
        self._agreed_signal: int | None = None  # that all processes know of

    def restore(self, checkpoint: Checkpoint) -> None:
        """Become the run of a checkpoint."""
        parts = {part: _under(part, checkpoint.tensors) for part in ("weight", "optimiser", "average")}
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(parts["weight"][name])
        load_optimiser_state(self.model, self.optimiser, parts["optimiser"])
        self.average.load(parts["average"])
        facts = {"prepared_seconds": 0.0} | checkpoint.facts  # which the first checkpoints did not have
        self.history = [facts_as(Measured, measured) for measured in facts.pop("history")]
        self.state = facts_as(RunState, facts)
        if self.state.budget != self._budget:  # the user gives it more time, or less
            self.state.budget = self.state.limit = self._budget

    def save(self, log: Log) -> None:
        """Write a checkpoint."""
        log.sync()
        self.state.log_bytes = log.num_bytes
        tensors: dict[str, torch.Tensor] = {
            f"weight/{name}": tensor for name, tensor in self.model.named_parameters()
        }
        tensors |= {
            f"optimiser/{name}": tensor
            for name, tensor in optimiser_state(self.model, self.optimiser).items()
        }
        tensors |= {f"average/{name}": tensor for name, tensor in self.average.state().items()}
        facts = asdict(self.state) | {"history": [asdict(measured) for measured in self.history]}
        save_checkpoint(self.folder, Checkpoint(self.state.step, tensors, facts))

    def run(self, keep_best: Callable[[Validated], None], signals: Signals) -> str:
        """Train to the end and return why it ended; `keep_best` is given every new best.

        After a signal the run is saved and `Stopped` is raised.
        """
        self._signals = signals
        first = self.processes.is_first
        log = Log(self.folder, self.state.log_bytes, self.state.step) if first else None
        try:
            return self._run(log, keep_best)
        finally:
            if log:
                log.close()

    def _run(self, log: Log | None, keep_best: Callable[[Validated], None]) -> str:
        state = self.state
        clock = _Clock(state.seconds)
        self._begun = state.step, state.seconds
        groups = _grouped(self.batches.iterate(Position(state.epoch, state.epoch_step)), self.options.train)
        next_save = time.monotonic() + _SAVE_SECONDS
        reason = self._reason_to_end() if state.step else None  # one update is made in any case
        while reason is None:
            position, group = next(groups)
            self._update(position, group, clock, log)
            reason = self._reason_to_end()
            validates = reason is not None or state.step % self.valid_steps == 0
            if validates:
                self._validate(log, keep_best)
            if log and (validates or self._agreed_signal or time.monotonic() > next_save):
                started = time.monotonic()
                self.save(log)
                # A large model on a slow disk is not to spend its time saving.
                next_save = time.monotonic() + max(_SAVE_SECONDS, 20 * (time.monotonic() - started))
            if self._agreed_signal:
                raise Stopped(
                    self._agreed_signal,
                    f"stopped at update {state.step:,} and saved; the same command goes on from here",
                )
            reason = reason or self._reason_to_end()
        if log:
            log.clock(state.step, state.seconds, clock.speed(0), last=True)
            log.write("end", step=state.step, reason=reason)
            log.sync()
        return reason

    def _reason_to_end(self) -> str | None:
        state, train = self.state, self.options.train
        if state.limit is None:
            return None
        if train.seconds:
            spent, whole = state.seconds + state.reserve_seconds, state.limit
        else:
            spent, whole = state.step, state.limit
        if spent < whole:
            return None
        if whole == self._budget:
            return "the time is up" if train.seconds else "all updates are made"
        return f"{NO_BETTER} for {train.patience} times"

    def _share(self) -> float | None:
        """Return the share of the updates, or of the time since the first one, that is gone by."""
        state = self.state
        if state.limit is None:
            return None
        if self.options.train.seconds:
            # Preparation is not learning: a share that counted it would skip warm-up.
            spent = state.seconds - state.prepared_seconds
            return spent / max(1e-9, state.limit - state.reserve_seconds - state.prepared_seconds)
        return state.step / state.limit

    def _update(self, position: Position, group: Sequence[Batch], clock: "_Clock", log: Log | None) -> None:
        """Make one update from one or more batches."""
        state, train, processes = self.state, self.options.train, self.processes
        step = state.step + 1
        epochs = state.epoch + state.epoch_step / (self.epoch_updates * train.accumulate)
        place = Place(step, epochs, self._share())
        rate = train.optimiser.rate * rate_factor(train.schedule, place, state.plateau_factor)
        for settings in self.optimiser.param_groups:
            settings["lr"] = rate
        if train.subword_sampling:
            group = [self._resampled(batch, step, number) for number, batch in enumerate(group)]
        num_tokens = sum(batch.num_target_tokens for batch in group)

        gathered = self.workers.set_gradients(group, num_tokens, step)
        seconds = clock.seconds() if processes.is_first else 0.0
        number = self._signals.number
        mine = [gathered.loss, gathered.nll, seconds, number or 0, float(number is not None)]
        loss, nll, seconds, signals, num_signals = processes.sum_gradients(self.parameters, mine)
        loss, nll = loss / num_tokens, nll / num_tokens
        norm = torch.nn.utils.get_total_norm([p.grad for p in self.parameters if p.grad is not None]).item()
        if not np.isfinite(loss + norm):
            raise TrainingError(self._not_finite(step, group))
        if train.clip_norm is not None and norm > train.clip_norm:
            torch._foreach_mul_(
                [p.grad for p in self.parameters if p.grad is not None], train.clip_norm / norm
            )
        self.optimiser.step()
        self.average.after_update(step)

        state.step, state.epoch, state.epoch_step = step, position.epoch, position.step
        state.seconds = seconds
        state.nll_sum += nll * num_tokens
        state.num_tokens += num_tokens
        if num_signals:
            self._agreed_signal = round(signals / num_signals)
        if log:
            log.write("update", step=step, epoch=position.epoch, loss=loss, nll=nll, rate=rate, norm=norm,
                      tokens=num_tokens)  # fmt: skip
            speed = clock.speed(num_tokens)
            log.clock(step, seconds, speed)
            self.display.update(self._shown(loss, nll, rate, speed))
            self._look_ahead(log)
        self._watch_divergence(nll, log)

    def _resampled(self, batch: Batch, step: int, number: int) -> Batch:
        """Return the batch in other pieces, unless they are more than the model can read."""
        seed = (self.options.seed * 1_000_003 + step) * 10_007 + number
        strength, longest = self.options.train.subword_sampling, self.model.max_tokens
        resampled = resample(batch, self.prepared.tokenizers, strength, seed)
        width = max(resampled.source_BS.shape[1], resampled.forced_in_BT.shape[1])
        return batch if longest is not None and width > longest else resampled

    def _watch_divergence(self, nll: float, log: Log | None) -> None:
        state = self.state
        running = state.running_nll
        state.running_nll = nll if running is None else _NLL_MEMORY * running + (1 - _NLL_MEMORY) * nll
        finding = diverging(state.running_nll, state.lowest_nll, state.step, self.options.train)
        state.lowest_nll = min(state.lowest_nll, state.running_nll)
        if finding:
            self._tell(finding, log)

    @property
    def pace(self) -> Pace:
        """How fast the run has been."""
        state = self.state
        timed = self.options.train.seconds is not None
        return Pace(state.step, state.seconds, state.prepared_seconds, timed)

    def _look_ahead(self, log: Log) -> None:
        """Say early on if the updates that the run will make are too few."""
        step, share, pace = self.state.step, self._share(), self.pace
        early = pace.timed and step >= FORESEE_MIN_STEP and (share or 0) >= FORESEE_SHARE
        if share and (step == FORESEE_STEP or (early and step < FORESEE_STEP)):
            finding = foresee(pace, max(step, round(step / share)), self.direction)
            if finding:
                self._tell(finding, log)

    def _shown(self, loss: float, nll: float, rate: float, speed: float) -> Update:
        state = self.state
        share, left, total = self._share(), None, None
        if share and state.limit is not None:
            total = max(state.step, round(state.step / share))
            num_made, seconds = state.step - self._begun[0], state.seconds - self._begun[1]
            if self.options.train.seconds:
                left = max(0.0, state.limit - state.reserve_seconds - state.seconds)
            elif num_made >= _MIN_TIMED:
                left = (total - state.step) * seconds / num_made
        return Update(state.step, total, state.epoch, loss, nll, rate, speed, state.seconds, left)

    def _not_finite(self, step: int, group: Sequence[Batch]) -> str:
        """Return the message about a loss that is not a number, with the lines that gave it."""
        lines: dict[str, list[int]] = {}
        for batch in group:
            for store, line in self.batches.lines(batch.pairs_B):
                corpus = self.prepared.facts.corpora[int(store.name.rpartition("-")[2])]
                lines.setdefault(corpus, []).append(line)
        shown = "; ".join(
            f"lines {', '.join(map(str, sorted(some)[:10]))}{', ...' if len(some) > 10 else ''} of {corpus}"
            for corpus, some in lines.items()
        )
        return (
            f"the loss or its gradient is not a number at update {step:,} ({shown}); nothing of it was "
            f"saved; {slower(self.options.train)}"
        )

    def _validate(self, log: Log | None, keep_best: Callable[[Validated], None]) -> None:
        """Validate the averaged weights, keep the best, and let all processes know what follows."""
        state, train = self.state, self.options.train
        self.average.at_validation()
        if log:
            started = time.monotonic()
            validated = self.validator.validate(self.average.weights())
            reserve = self.validator.final_cost * (time.monotonic() - started)
            state.reserve_seconds = min(reserve, _MAX_RESERVE * (train.seconds or 0))
            if not np.isfinite(validated.nll):
                raise TrainingError(
                    f"the loss on validation is not a number at update {state.step:,}; nothing of it was "
                    f"saved; {slower(train)}"
                )
            measured = Measured(
                state.step,
                state.nll_sum / max(1, state.num_tokens),
                validated.nll,
                validated.shuffled_nll,
                validated.bleu,
                validated.entropy,
            )
            self.history.append(measured)
            better = (validated.bleu, -validated.nll) > (state.best_bleu, -state.best_nll)
            lower = validated.nll < min((one.nll for one in self.history[:-1]), default=np.inf)
            state.stale = 0 if better or lower else state.stale + 1
            state.plateau_stale = 0 if lower else state.plateau_stale + 1
            if better:
                state.best_bleu, state.best_nll = validated.bleu, validated.nll
                state.best_step = state.step
                keep_best(validated)
            log.write(
                "validation",
                step=state.step,
                nll=validated.nll,
                bleu=validated.bleu,
                shuffled_nll=validated.shuffled_nll,
                entropy=validated.entropy,
                best=better,
            )
            self.display.validation(validated.shown(state.step, better))
            self._follow_validation()
            for finding in about_learning(self.history, self.options.model.dropout, train):
                self._tell(finding, log)
        state.nll_sum, state.num_tokens = 0.0, 0
        decided = self.processes.tell_all((state.limit, state.plateau_factor, state.reserve_seconds))
        state.limit, state.plateau_factor, state.reserve_seconds = decided

    def _follow_validation(self) -> None:
        """Lower the rate or bring the end nearer if validation has not improved for long."""
        state, train = self.state, self.options.train
        if train.schedule.kind == "plateau" and state.plateau_stale >= train.schedule.wait:
            state.plateau_factor *= train.schedule.factor
            state.plateau_stale = 0
        if state.stale < train.patience:
            return
        descent = train.schedule.descent if train.schedule.kind == "trapezoid" else 0.0
        if train.seconds:
            before = state.prepared_seconds
            sooner = before + (state.seconds - before) / (1 - descent)
        else:
            sooner = round(state.step / (1 - descent))
        if state.limit is None or sooner < state.limit:
            state.limit = sooner

    def _tell(self, finding: Finding, log: Log | None) -> None:
        """Say what is wrong, once; stop where going on is of no use."""
        kind = finding.cause.split(":")[0]
        if log and kind not in self.state.found:
            self.state.found.append(kind)
            log.write("finding", step=self.state.step, cause=finding.cause, advice=finding.advice)
            self.display.note(f"{finding.cause}; {finding.advice}")
        if finding.stop:
            raise TrainingError(f"{finding.cause}; {finding.advice}")


class _Clock:
    """Seconds of the whole run, and the speed over the last ones."""

    def __init__(self, before: float) -> None:
        self._start = time.monotonic() - before
        self._last = time.monotonic()
        self._speed: float | None = None

    def seconds(self) -> float:
        return time.monotonic() - self._start

    def speed(self, num_tokens: int) -> float:
        now = time.monotonic()
        if not num_tokens:
            return self._speed or 0.0
        speed = num_tokens / max(1e-9, now - self._last)
        self._last = now
        self._speed = speed if self._speed is None else 0.95 * self._speed + 0.05 * speed
        return self._speed


def _grouped(
    batches: Iterator[tuple[Position, Batch]], options: TrainOptions
) -> Iterator[tuple[Position, list[Batch]]]:
    """Return the batches of each update, with the position after the last of them."""
    while group := list(islice(batches, options.accumulate)):
        yield group[-1][0], [batch for _, batch in group]


def _under(part: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    prefix = f"{part}/"
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _autocast(options: TrainOptions, device: torch.device) -> Autocast:
    if options.precision == "bfloat16":
        return lambda: torch.autocast(device.type, torch.bfloat16)
    return contextlib.nullcontext
