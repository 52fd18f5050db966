"""What is done with each shard: its lines are translated or aligned as without shards."""

import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import regard
from regard.alignment.attention import align_pairs
from regard.alignment.files import line_of_links, lines_of
from regard.alignment.links import Symmetrisation
from regard.engines import Compute
from regard.errors import ModelFileError
from regard.loaded import Loaded
from regard.modelfile import ModelFile, load_model
from regard.shards.cut import Task
from regard.starter import locate
from regard.text.words import Cut
from regard.translate.lines import Lines, Report, line_of
from regard.translate.request import Request, RequestArguments
from regard.translate.translator import MakePool, Translator


@dataclass(frozen=True, slots=True)
class Done:
    """A finished shard."""

    number: int
    text: bytes
    report: Report


class Work(Protocol):
    """What is done with each shard. It can be sent to another machine.

    Work of the same `identity` makes the same bytes of the same shard.
    """

    @property
    def stage(self) -> str:
        """What the progress says."""
        ...

    @property
    def identity(self) -> dict[str, Any]:
        """The models and options, each as it is called in a message."""
        ...

    def worker(self, pool: MakePool, num_threads: int | None = None) -> Callable[[Task], Done]:
        """Open the models and return what does a shard; `pool` says on how many cores."""
        ...


@dataclass(frozen=True)
class Translating:
    """Lines are translated as `regard translate` would."""

    models: tuple[ModelFile, ...]
    compute: Compute
    asked: RequestArguments
    as_json: bool
    identity: dict[str, Any]
    stage: ClassVar[str] = "translating"

    @classmethod
    def of(
        cls,
        paths: list[Path],
        compute: Compute,
        asked: RequestArguments,
        glossary: Path | None,
        as_json: bool,
    ) -> Self:
        """Return the work of these models. The engine is chosen here, once for all machines."""
        models = tuple(map(load_model, paths))
        used = Loaded.of(*models, compute=compute).used
        search = asked["search"].model_dump()
        identity = {
            "version of regard": regard.__version__,
            "model": " + ".join(_sha256(locate(path)) for path in paths),
            "engine": used.engine,
            "precision": used.precision,
            "glossary": None if glossary is None else _sha256(glossary),
            "jsonl": as_json,
            **{key: asked.get(key) for key in ("num_best", "prefix", "guard", "markup")},
            **{f"search.{key}": value for key, value in search.items()},
        }
        return cls(models, Compute(used.engine, used.precision), asked, as_json, identity)

    def worker(self, pool: MakePool, num_threads: int | None = None) -> Callable[[Task], Done]:
        """Open the models and return what gives as many lines as a shard has."""
        compute = replace(self.compute, num_threads=num_threads)
        return partial(self._do, Translator(Loaded.of(*self.models, compute=compute), pool))

    def _do(self, translator: Translator, task: Task) -> Done:
        report, out = Report(), io.BytesIO()
        lines = Lines(io.BytesIO(task.text), f"shard {task.number}", report, task.first_line)
        requests = (Request.of(line, **self.asked) for line in lines)
        for number, translation in enumerate(translator.stream(requests), task.first_line):
            report.add(number, translation)
            out.write(line_of(number, translation, report, as_json=self.as_json))
        return Done(task.number, out.getvalue(), report)


@dataclass(frozen=True)
class Aligning:
    """Pairs of lines are aligned by one or two models as `regard align` would."""

    models: tuple[ModelFile, ...]
    computes: tuple[Compute, ...]
    how: Symmetrisation | None
    cut: Cut
    as_json: bool
    identity: dict[str, Any]
    stage: ClassVar[str] = "aligning"

    @classmethod
    def of(cls, paths: list[Path], how: Symmetrisation | None, cut: Cut, as_json: bool) -> Self:
        """Return the work of a model, or of two that read both ways."""
        models = tuple(map(load_model, paths))
        used = [Loaded.of(model).used for model in models]
        identity = {
            "version of regard": regard.__version__,
            "model": " and back ".join(_sha256(locate(path)) for path in paths),
            "engine": " and back ".join(one.engine for one in used),
            "how": how,
            "words": cut,
            "jsonl": as_json,
        }
        return cls(
            models, tuple(Compute(one.engine, one.precision) for one in used), how, cut, as_json, identity
        )

    def worker(self, pool: MakePool, num_threads: int | None = None) -> Callable[[Task], Done]:
        """Open the models and return what gives a line for each pair of a shard."""
        translators = [
            Translator(Loaded.of(model, compute=replace(compute, num_threads=num_threads)), pool)
            for model, compute in zip(self.models, self.computes, strict=True)
        ]
        return partial(self._do, translators)

    def _do(self, translators: list[Translator], task: Task) -> Done:
        sides = (lines_of(side, is_first=task.first_line == 1) for side in (task.text, task.beside))
        pairs = list(zip(*sides, strict=True))
        forward, backward = translators[0], translators[1] if len(translators) > 1 else None
        found = align_pairs(pairs, forward, backward, self.how, self.cut, task.first_line)
        text = b"".join(line_of_links(one, as_json=self.as_json) for one in found)
        return Done(task.number, text, Report(num_lines=task.first_line + len(pairs) - 1))


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read ({error.strerror})") from None
