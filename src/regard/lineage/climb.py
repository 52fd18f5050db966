"""Training the ladder: every rung on the same pairs for the same time. The same call again goes on."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.errors import ConfigError
from regard.lineage.ladder import Rung
from regard.progress import Stages
from regard.training.display import Display
from regard.training.finish import Trained
from regard.training.folder import asked_before
from regard.training.recipes import effective_options, merged
from regard.training.request import CorpusFiles, TrainRequest, changed_settings
from regard.training.run import train

_NUM_MEASURED = 1000  # pairs that the rungs are compared on: with fewer, differences are too uncertain
_IDEAS = ("kind", "attention", "reading")  # of a model: what the rungs differ in


@dataclass(frozen=True, slots=True)
class Plan:
    """What all rungs share: the corpus, what is held out, options, and the seconds or updates each has."""

    corpora: tuple[CorpusFiles, ...]
    folder: Path
    seconds_each: float | None = None
    steps_each: int | None = None
    validation: tuple[Path, ...] = ()
    source_language: str | None = None
    target_language: str | None = None
    seed: int = 1
    device: str = "auto"
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def model_of(self, rung: Rung) -> Path:
        """Return where the model of a rung is written; its run folder stands beside it."""
        return self.folder / f"{rung.name}.regard"

    def request_of(self, rung: Rung) -> TrainRequest:
        """Return the training of a rung: its idea laid over the options that all share."""
        budget = {"seconds": self.seconds_each, "steps": self.steps_each}
        options = merged(merged(rung.narrow, self.options), {"model": rung.model, "train": budget})
        return TrainRequest(
            corpora=self.corpora,
            out=self.model_of(rung),
            validation=self.validation,
            source_language=self.source_language,
            target_language=self.target_language,
            preset=rung.preset,
            options=options,
            seed=self.seed,
            device=self.device,
            max_validation_pairs=_NUM_MEASURED,
        )

    def check(self, ladder: Sequence[Rung]) -> None:
        """Raise an error for options that a rung cannot have, before the first of them is trained."""
        if os.environ.get("WORLD_SIZE", "1") != "1":
            raise ConfigError("regard lineage runs in one process; do not use torchrun")
        if (self.seconds_each is None) == (self.steps_each is None):
            raise ConfigError("give either a time or a number of updates")
        for key in ("seconds", "steps"):
            if key in self.options.get("train", {}):
                raise ConfigError(f"train.{key} is the same for all designs; use --time or --steps")
        for key in _IDEAS:
            if key in self.options.get("model", {}):
                raise ConfigError(f"model.{key} is different in each design; remove it")
        for rung in ladder:
            request = self.request_of(rung)
            try:
                effective_options(rung.preset, 0, request.options, self.seed)
            except ConfigError as error:
                raise ConfigError(f"design {rung.name}: {error}") from error
            self._check_run(request)

    def _check_run(self, request: TrainRequest) -> None:
        """Raise an error if a rung was begun with other settings, or with a larger share than it has now."""
        before = asked_before(request.folder)
        if before is None:
            return
        if changed := changed_settings(before, request.to_json()):
            raise ConfigError(
                f"{request.folder} contains a training with other settings ({', '.join(changed)}); choose "
                "another --report, or remove that folder"
            )
        had = before["options"]["train"]
        for key, now in (("seconds", self.seconds_each), ("steps", self.steps_each)):
            then = had.get(key)
            if (then is None) != (now is None) or (then is not None and now is not None and then > now):
                raise ConfigError(
                    f"{request.folder} was trained for {_told(had)} and the others would have "
                    f"{_told({'seconds': self.seconds_each, 'steps': self.steps_each})}; give all designs "
                    "the same, or choose another --report"
                )


def _told(budget: Mapping[str, Any]) -> str:
    if budget.get("steps") is not None:
        return f"{budget['steps']:,} updates"
    return f"{budget['seconds']:,.0f} seconds"


def climb(
    plan: Plan, ladder: Sequence[Rung], open_display: Callable[[Rung], Display], stages: Stages
) -> list[Trained]:
    """Train each rung, or go on with it, and return what came of each; finished ones are left as they are."""
    climbed = []
    for place, rung in enumerate(ladder, 1):
        display = open_display(rung)
        try:
            display.note(f"design {place} of {len(ladder)}: {rung.name}, {rung.title['en']}")
            trained = train(plan.request_of(rung), display, stages)
        finally:
            display.close()
        assert trained is not None  # one process
        climbed.append(trained)
    return climbed
