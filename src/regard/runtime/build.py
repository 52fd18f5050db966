"""Options and weights to an engine."""

from collections.abc import Mapping

from regard.contract import Floats
from regard.options.model import RecurrentOptions, TransformerOptions
from regard.runtime.recurrent import RecurrentEngine
from regard.runtime.transformer import TransformerEngine


def build_engine(
    options: RecurrentOptions | TransformerOptions, weights: Mapping[str, Floats]
) -> RecurrentEngine | TransformerEngine:
    """Return the NumPy engine of a model."""
    if options.kind == "recurrent":
        return RecurrentEngine(options, weights)
    return TransformerEngine(options, weights)
