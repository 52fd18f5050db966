"""What a user asks a training for, and in what two requests differ. No torch."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from regard.starter import locate

BUDGET = ("steps", "seconds")
Side = Literal["source", "target"]
Size = Literal["laptop", "paper"]


@dataclass(frozen=True, slots=True)
class CorpusFiles:
    """The file or the two files of a corpus, and how often an epoch sees it."""

    paths: tuple[Path, ...]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class VectorFiles:
    """Files of pre-trained word vectors for each side, and whether they are frozen or tuned."""

    source: Path | None = None
    target: Path | None = None
    freeze: bool | None = None  # none: tuned, and what is frozen in the model it begins with stays so

    @property
    def given(self) -> dict[Side, Path]:
        """The files by side."""
        both: dict[Side, Path | None] = {"source": self.source, "target": self.target}
        return {side: path for side, path in both.items() if path is not None}

    def to_json(self) -> dict[str, Any]:
        """Return what the result depends on, files by their contents."""
        return {side: _file_hash(path) for side, path in self.given.items()} | {"freeze": self.freeze}


NO_VECTORS = VectorFiles()


@dataclass(frozen=True)
class TrainRequest:
    """What a user asks for."""

    corpora: tuple[CorpusFiles, ...]
    out: Path
    validation: tuple[Path, ...] = ()
    source_language: str | None = None
    target_language: str | None = None
    preset: str | None = None
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seed: int = 1
    device: str = "auto"
    keep_rules: tuple[str, ...] = ()
    start: Path | None = None  # a model whose weights, design and vocabulary it begins with
    vectors: VectorFiles = NO_VECTORS
    size: Size = "laptop"  # of a paper's preset
    max_validation_pairs: int | None = None  # None: as many as suit the time

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.out.with_suffix(".run")

    def said(self, section: str) -> Mapping[str, Any]:
        """Return the options of one section that were given."""
        return self.options.get(section, {})

    def to_json(self) -> dict[str, Any]:
        """Return what the result depends on, files by their contents."""
        asked = {
            "corpora": [
                {"files": list(map(_file_hash, corpus.paths)), "weight": corpus.weight}
                for corpus in self.corpora
            ],
            "validation": list(map(_file_hash, self.validation)),
            "languages": [self.source_language, self.target_language],
            "preset": self.preset,
            "options": {name: dict(section) for name, section in self.options.items()},
            "seed": self.seed,
            "keep": list(self.keep_rules),
        }
        if self.start is not None:
            asked["start"] = _file_hash(locate(self.start))["sha256"]
        if self.vectors != NO_VECTORS:
            asked["vectors"] = self.vectors.to_json()
        if self.size != "laptop":
            asked["size"] = self.size
        return asked


def changed_settings(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return in which keys two requests differ, how long to train aside."""
    return _changes(_without_budget(before), _without_budget(now))


def _changes(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the keys whose values differ."""
    changed = []
    for key in sorted(before.keys() | now.keys()):
        old, new = before.get(key), now.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            changed += _changes(old, new, f"{prefix}{key}.")
        elif old != new:
            changed.append(f"{prefix}{key}")
    return [key.removeprefix("options.") for key in changed]


def _without_budget(asked: dict[str, Any]) -> dict[str, Any]:
    """Return what was asked for without how long to train: a run may go on for longer."""
    train = {key: value for key, value in asked["options"].get("train", {}).items() if key not in BUDGET}
    return asked | {"options": asked["options"] | {"train": train}}


def _file_hash(path: Path) -> dict[str, str]:
    with path.open("rb") as file:
        return {"name": path.name, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
