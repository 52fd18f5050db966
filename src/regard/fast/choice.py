"""Which searcher a model gets, and why."""

import logging
from functools import cache

from regard.engines import Compute, Used, fault, version
from regard.errors import ConfigError
from regard.fast.convert import convert, unfit
from regard.fast.searcher import FastSearcher, Library
from regard.modelfile import ModelFile
from regard.runtime.equations import has_small_kernels
from regard.search.searcher import Searcher, StepSearcher

_LARGE = 20_000_000
"""With so many weights both engines mostly wait for memory, and NumPy has batches. Without kernels for small
products it is slower for one sentence with a beam."""

_log = logging.getLogger("regard")


def choose(models: tuple[ModelFile, ...], steps: StepSearcher, compute: Compute) -> tuple[Searcher, Used]:
    """Return the searcher to use: `steps`, which computes in NumPy, or the same model on CTranslate2."""
    if compute.engine == "numpy":
        return steps, Used(why="asked for")
    compute.check()
    why = _unfit(models)
    is_large = why is None and _num_weights(models[0]) > _LARGE
    if is_large and not compute.is_named and has_small_kernels():
        return steps, Used(why=f"as fast as CTranslate2 with more than {_LARGE:,} weights")
    if why is None:
        why = fault(compute.precision)
        if why is None:
            try:
                return _fast(models[0], steps, compute), Used("ctranslate2", compute.precision)
            except (RuntimeError, ValueError, MemoryError, ImportError) as error:
                why = f"CTranslate2 cannot load the model ({str(error).strip():.120})"
        if version() is not None and not compute.is_named:
            _say_once(why)
    if compute.is_named:
        raise ConfigError(f"the engine ctranslate2 cannot be used: {why}")
    return steps, Used(why=why)


def _unfit(models: tuple[ModelFile, ...]) -> str | None:
    if len(models) > 1:
        return "CTranslate2 runs one model at a time, and these translate together"
    return unfit(models[0].options)


def _fast(model: ModelFile, steps: StepSearcher, compute: Compute) -> FastSearcher:
    converted = convert(model.options, model.weights, steps.reading)
    library = Library(converted, compute.precision, compute.num_threads)
    library.open()  # now, so that a model that cannot be loaded is found out in time
    return FastSearcher(steps, library, compute.is_named)


def _num_weights(model: ModelFile) -> int:
    return sum(weight.size for weight in model.weights.values())


@cache
def _say_once(broken: str) -> None:
    _log.warning("regard: %s; NumPy is used instead", broken)
