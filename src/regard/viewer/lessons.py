"""Lessons of the page: data that a teacher can write, checked before they are shown."""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from regard.errors import ConfigError

_MAX_BYTES = 1 << 20
_LONG = 600  # characters: what a server traces


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Texts(_Part):
    """A text in the languages of the page; English stands in for what is missing."""

    en: str
    ko: str | None = None


class Paragraphs(_Part):
    """Paragraphs in the languages of the page."""

    en: list[str]
    ko: list[str] | None = None


class Stage(_Part):
    """What the page shows when the lesson begins."""

    model: str
    text: str = Field(max_length=_LONG)
    compare: bool = False
    open: list[Literal["map", "heads", "likely", "steps", "unrolled", "matrices", "beam"]] | None = None
    state: dict[str, Any] = {}
    changes: list[dict[str, Any]] = []


class Check(_Part):
    """When a task is done: all that is named holds."""

    said: str | None = None
    not_said: str | None = None
    words: int | None = None
    changed: Literal["look", "prefix", "force", "head_off", "positions_off", "mask_off"] | None = None
    unchanged: bool | None = None
    open: str | None = None
    compare: bool | None = None
    looks_at: str | None = None
    at: int | Literal["last"] | None = None
    micro: int | None = None
    view: Literal["alignment", "cross", "encoder", "decoder"] | None = None
    measure: Literal["weights", "scores", "erasure", "only"] | None = None
    model: str | None = None
    pinned: bool | None = None
    answer: dict[str, Any] | None = None


class Task(_Part):
    """What the reader is asked to do."""

    text: Texts
    check: Check


class Lesson(_Part):
    """A text, a stage and a task."""

    id: str = Field(pattern=r"^[\w-]+$")
    title: Texts
    text: Paragraphs
    stage: Stage
    task: Task
    widget: dict[str, Any] | None = None


class Lessons(_Part):
    """A course; `examples` has a sentence for each language, for when a model is chosen."""

    lessons: list[Lesson] = Field(min_length=1)
    examples: dict[str, str] = {}


def read_lessons(path: Path) -> str:
    """Return the lessons of a file, as JSON for the page."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from None
    if len(data) > _MAX_BYTES:
        raise ConfigError(f"{path}: is larger than 1 MiB; lessons are short texts")
    try:
        return Lessons.model_validate_json(data).model_dump_json(exclude_unset=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{path}: {where or 'the file'}: {first['msg']}") from None
