"""Neural machine translation that shows where it looks.

The public names are those of `__all__`; docs/api.md describes them. To import them costs nothing heavy.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.alignment.attention import Alignment
    from regard.alignment.links import Symmetrisation
    from regard.contract import Features
    from regard.engines import Engine, Precision
    from regard.evaluation.document import Evaluation
    from regard.evaluation.run import EvaluationOptions
    from regard.trace.make import TraceArguments
    from regard.trace.views import Trace
    from regard.training.finish import Trained
    from regard.translate.request import Request
    from regard.translate.result import Translation
    from regard.translate.translator import Translator

__version__ = "0.1.0"

__all__ = [
    "Alignment",
    "Evaluation",
    "Features",
    "RegardError",
    "Request",
    "Trace",
    "Trained",
    "Translation",
    "Translator",
    "align",
    "evaluate",
    "load",
    "show",
    "train",
]

_CLASSES = {
    "Alignment": "regard.alignment.attention",
    "Evaluation": "regard.evaluation.document",
    "Features": "regard.contract",
    "Request": "regard.translate.request",
    "Trace": "regard.trace.views",
    "Trained": "regard.training.finish",
    "Translation": "regard.translate.result",
    "Translator": "regard.translate.translator",
}


def __getattr__(name: str) -> Any:
    """Return a public class; its module is imported now."""
    if name in _CLASSES:
        return getattr(import_module(_CLASSES[name]), name)
    raise AttributeError(f"module 'regard' has no attribute {name!r}; the public names are in regard.__all__")


def __dir__() -> list[str]:
    return [*globals(), *_CLASSES]


def load(
    model: str | Path | None = None,
    *more: str | Path,
    engine: "Engine" = "auto",
    precision: "Precision" = "float32",
    to: str | None = None,
) -> "Translator":
    """Return the translator of a model: a file, or the name of a bundled model.

    Without a name it is the model that `regard translate` uses. Several models of one vocabulary translate
    together as an ensemble. Transformers run on CTranslate2 if the extra `[fast]` is installed; `engine` may
    be "numpy" or "ctranslate2" instead. `precision="int8"` is faster, and its translations may differ. A
    multilingual model translates into the language `to`.
    """
    from regard.engines import Compute
    from regard.starter import default_model
    from regard.translate.translator import Translator

    compute = Compute(engine, precision)
    return Translator.open(default_model() if model is None else model, *more, compute=compute, to=to)


def show(
    *model_and_text: "str | Path | Translator | Features", part: int = 1, **asked: Unpack["TraceArguments"]
) -> "Trace":
    """Return the trace of a translation: where each word came from, and every number on the way.

    `regard.show("je suis étudiant")` uses the model that `regard show` uses; another one comes first, by
    name, as a file or as a `Translator`: `regard.show("fr-en-rnn", "je suis étudiant")`. It shows the
    translation that `translate` gives; `part` counts the parts of a long text from 1. `asked` are options of
    the search and `force`, `prefix`, `raw`, `interventions`, `effects`, `gates`, `record` (docs/showing.md).
    A notebook displays the trace as a picture.
    """
    from regard.contract import Features
    from regard.engines import NUMPY
    from regard.errors import ConfigError
    from regard.loaded import Loaded
    from regard.starter import default_model
    from regard.trace.make import Tracer
    from regard.translate.translator import Translator

    *models, text = model_and_text or ("",)
    model = models[0] if models else default_model()
    if len(models) > 1 or not isinstance(text, str | Features) or isinstance(model, Features):
        raise TypeError("show() takes a text, or a model and a text")
    tracer = Tracer(
        model.model.by_steps() if isinstance(model, Translator) else Loaded.open(model, compute=NUMPY)
    )
    traces = tracer.traces(text, **asked)
    if not 1 <= part <= len(traces):
        raise ConfigError(f"there is no part {part}: the text was translated in {len(traces)}")
    return traces[part - 1]


def align(
    pairs: Iterable[tuple[str, str]],
    model: "str | Path | Translator | None" = None,
    *,
    back: "str | Path | Translator | None" = None,
    how: "Symmetrisation | None" = None,
) -> "list[Alignment]":
    """Return the word alignment of each pair of a source and its translation.

    A model aligns by its attention; with `back`, a model of the other direction, by what both agree on.
    Without a model a statistical aligner learns from the pairs themselves.
    """
    from regard.alignment.align import align as align_words

    return list(align_words(list(pairs), model, back=back, how=how))


def evaluate(
    models: "str | Path | Sequence[str | Path] | Mapping[str, str | Path | Translator]",
    *test: str | Path,
    options: "EvaluationOptions | None" = None,
) -> "Evaluation":
    """Return how well models translate a test set: `regard.evaluate("fr-en", "test.fr", "test.en")`.

    The test set is two plain files, or one file with both languages. Of several models any two are compared,
    of more than six the others with the first.
    """
    from regard.evaluation.run import evaluate as run
    from regard.evaluation.testset import read_test

    some = [models] if isinstance(models, str | Path) else models
    return run(some, read_test(list(map(Path, test))), options)


class TrainKeywords(TypedDict, total=False):
    """The size of a paper's preset, and options of a training by section; docs/options.md lists them."""

    size: Literal["laptop", "paper"]
    tokenizer: Mapping[str, Any]
    batch: Mapping[str, Any]
    model: Mapping[str, Any]
    train: Mapping[str, Any]


def train(
    *files: str | Path,
    out: str | Path,
    valid: Sequence[str | Path] = (),
    preset: str | None = None,
    start: str | Path | None = None,
    seed: int = 1,
    device: str = "auto",
    **options: Unpack[TrainKeywords],
) -> "Trained":
    """Train a translator from two plain files or one TMX, PO, TSV ... file, and write its model file.

    `start` is a model to begin with. A paper's preset is built small enough to learn without a GPU, and as
    in the paper with `size="paper"`. Options by section: `train={"seconds": 600}, model={"dropout": 0.2}`.
    Called again, it continues. What happens is logged as INFO to the logger `regard`.
    """
    from regard.training import load_torch

    load_torch()
    from regard.progress import unshown_stages
    from regard.training.display import log_display
    from regard.training.request import CorpusFiles, TrainRequest
    from regard.training.run import train as run

    request = TrainRequest(
        corpora=(CorpusFiles(tuple(map(Path, files))),),
        out=Path(out),
        validation=tuple(map(Path, valid)),
        preset=preset,
        size=options.get("size", "laptop"),
        options={name: section for name, section in options.items() if isinstance(section, Mapping)},
        seed=seed,
        device=device,
        start=None if start is None else Path(start),
    )
    trained = run(request, log_display(), unshown_stages)
    if trained is None:
        raise RegardError("regard.train is for one process; under torchrun use `regard train`")
    return trained
