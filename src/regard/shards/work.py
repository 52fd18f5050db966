"""What is done with each shard: its lines are translated as `regard translate` would."""

import hashlib
import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import regard
from regard.engines import Compute
from regard.errors import ModelFileError
from regard.loaded import Loaded
from regard.modelfile import ModelFile, load_model
from regard.shards.cut import Task
from regard.starter import locate
from regard.translate.lines import Lines, Report, line_of
from regard.translate.request import Request, RequestArguments
from regard.translate.translator import MakePool, Translator


@dataclass(frozen=True, slots=True)
class Done:
    """A translated shard."""

    number: int
    text: bytes
    report: Report


@dataclass(frozen=True)
class Work:
    """The models and options of a translation. It can be sent to another machine.

    Work of the same `identity` makes the same bytes of the same shard.
    """

    models: tuple[ModelFile, ...]
    compute: Compute
    asked: RequestArguments
    as_json: bool
    identity: dict[str, Any]

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

    def translator(self, pool: MakePool, num_threads: int | None = None) -> Translator:
        """Return what translates; `pool` says on how many cores."""
        compute = replace(self.compute, num_threads=num_threads)
        return Translator(Loaded.of(*self.models, compute=compute), pool)

    def do(self, translator: Translator, task: Task) -> Done:
        """Return as many lines as the shard has."""
        report, out = Report(), io.BytesIO()
        lines = Lines(io.BytesIO(task.text), f"shard {task.number}", report, task.first_line)
        requests = (Request.of(line, **self.asked) for line in lines)
        for number, translation in enumerate(translator.stream(requests), task.first_line):
            report.add(number, translation)
            out.write(line_of(number, translation, report, as_json=self.as_json))
        return Done(task.number, out.getvalue(), report)


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read ({error.strerror})") from None
