"""Options and weights to an engine."""

from collections.abc import Mapping

from regard.contract import Floats
from regard.options.model import RecurrentOptions, TransformerOptions
from regard.runtime.recurrent import RecurrentEngine
from regard.runtime.transformer import TransformerEngine


def build_engine(
    options: RecurrentOptions | TransformerOptions, weights: Mapping[str, Floats], *, posterior: bool = False
) -> RecurrentEngine | TransformerEngine:
    """Return the NumPy engine of a model; that of a recurrent one may also tell its posterior attention."""
    if options.kind == "recurrent":
        return RecurrentEngine(options, weights, posterior=posterior)
    return TransformerEngine(options, weights)
