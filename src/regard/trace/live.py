"""What the engine inside a page is told about a model, beside its file: the design, as Python knows it."""

from dataclasses import asdict
from typing import Any

import regard
from regard.errors import ConfigError
from regard.loaded import Loaded
from regard.options.search import BeamOptions
from regard.runtime.shapes import weight_shapes
from regard.trace.make import Tracer


def facts(loaded: Loaded, search: BeamOptions | None = None) -> dict[str, Any]:
    """Return plain values: the model as a trace describes it, its design, cards and shapes of weights."""
    if loaded.feature_size is not None:
        raise ConfigError(f"{loaded.name} reads feature vectors; a page translates text only")
    tracer = Tracer(loaded)
    about, design, tokenizers = tracer.about, tracer.design, tracer.model.tokenizers
    search = search or BeamOptions()
    shapes = weight_shapes(tracer.model.options, tokenizers.source.vocab_size, tokenizers.target.vocab_size)
    return {
        "name": loaded.name,
        "generator": f"regard {regard.__version__}",
        "about": about.model_dump(),
        "design": {
            "attentions": dict(design.attentions),
            "num_heads": design.num_heads,
            "rows_sum_to_one": design.rows_sum_to_one,
            "parts": sorted(design.parts),
            "states": design.states_kept(about.reading.layer if about.reading else 0),
            "gates": design.gates,
        },
        "cards": [asdict(card) for card in design.cards],
        "shapes": {name: list(shape) for name, shape in shapes.items()},
        "search": search.model_dump(),
        "search_json": search.model_dump_json(),
        "split_above": loaded.split_above,
    }
