"""Neural machine translation that shows where it looks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.trace.views import Trace
    from regard.training.finish import Trained
    from regard.translate.translator import Translator

__version__ = "0.1.0"


def load(path: str | Path, *more: str | Path) -> "Translator":
    """Return the translator of a model file, or of several that translate together."""
    from regard.translate.translator import Translator  # here, so that `import regard` costs nothing

    return Translator.open(Path(path), *map(Path, more))


def show(model: str | Path, text: str, **request: Any) -> "Trace":
    """Return the trace of translating a text: everything the model did. A notebook shows it as a picture.

    `request` is that of `regard.trace.make.Tracer.trace`: `force="..."`, `effects=True`, `beam_size=1` ...
    """
    from regard.trace.make import Tracer

    return Tracer.open(model).trace(text, **request)


def train(
    *files: str | Path,
    out: str | Path,
    valid: Sequence[str | Path] = (),
    preset: str | None = None,
    start: str | Path | None = None,
    seed: int = 1,
    device: str = "auto",
    tokenizer: Mapping[str, Any] | None = None,
    batch: Mapping[str, Any] | None = None,
    model: Mapping[str, Any] | None = None,
    train: Mapping[str, Any] | None = None,
) -> "Trained":
    """Train a translator from two plain files or one TMX, PO, TSV ... file, and write its model file.

    `start` is a model to begin with. Options by section: `train={"steps": 1000}, model={"dropout": 0.2}`.
    Called again, it goes on. For more (several corpora, languages, displays) see `regard.training.run.train`.
    """
    from regard.training import load_torch

    load_torch()
    from regard.draw.progress import progress
    from regard.training.display import open_display
    from regard.training.request import CorpusFiles, TrainRequest
    from regard.training.run import train as run

    sections = {"tokenizer": tokenizer, "batch": batch, "model": model, "train": train}
    request = TrainRequest(
        corpora=(CorpusFiles(tuple(map(Path, files))),),
        out=Path(out),
        validation=tuple(map(Path, valid)),
        preset=preset,
        options={name: section for name, section in sections.items() if section},
        seed=seed,
        device=device,
        start=None if start is None else Path(start),
    )
    display = open_display()
    try:
        trained = run(request, display, progress)
    finally:
        display.close()
    if trained is None:
        raise RuntimeError("regard.train is for one process; under torchrun use `regard train`")
    return trained
