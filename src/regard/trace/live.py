"""Pages with an engine of their own, and what that engine is told about a model: its design, mostly."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import regard
from regard.engines import NUMPY
from regard.errors import ConfigError
from regard.files import writing, writing_folder
from regard.loaded import Loaded
from regard.options.parse import parse
from regard.options.search import BeamOptions
from regard.runtime.shapes import weight_shapes
from regard.starter import chosen_models
from regard.trace.document import Intervention
from regard.trace.make import Tracer
from regard.viewer.page import WORKER, LiveModel, live_page, site

_MAX_BYTES = 40_000_000  # of a model: a browser has it in memory as text, as bytes and as numbers
_FRAME_HEIGHT = 900
_KNOWN_OPTIONS = {"beam_size", "length_penalty", "max_ratio", "extra_tokens"}


@dataclass(frozen=True)
class LivePage:
    """A page that translates by itself: models and an engine in JavaScript are in it.

    A notebook shows it. `asked` is what it shows first, in the form of its address.
    """

    models: Sequence[LiveModel] = field(repr=False)
    lessons: str | None = field(default=None, repr=False)
    asked: str = ""

    @classmethod
    def of(
        cls,
        *models: str | Path,
        lessons: str | None = None,
        search: Mapping[str, Any] | None = None,
        asked: str = "",
    ) -> "LivePage":
        """Return the page of model files or names of bundled models; of all of these if none is given."""
        if unknown := (search or {}).keys() - _KNOWN_OPTIONS:
            raise ConfigError(
                f"a live page has no search option {min(unknown)!r}; "
                f"it has {', '.join(sorted(_KNOWN_OPTIONS))}"
            )
        options = parse("search", dict(search or {}))
        assert isinstance(options, BeamOptions)
        found = chosen_models(list(map(Path, models)))
        return cls([_read(name, path, options) for name, path in found.items()], lessons, asked)

    def showing(
        self,
        text: str,
        *,
        prefix: str | None = None,
        force: str | None = None,
        interventions: Sequence[Intervention] = (),
        by: str = "words",
    ) -> "LivePage":
        """Return the page that shows first what the first of its models makes of this text."""
        changes: list[dict[str, Any]] = [one.model_dump() for one in interventions]
        changes += [{"type": "prefix", "text": prefix}] if prefix else []
        changes += [{"type": "force", "text": force}] if force is not None else []
        asked = {"m": self.models[0][0]["name"], "s": text, "by": by}
        asked |= {"iv": json.dumps(changes)} if changes else {}
        return replace(self, asked=urlencode(asked))

    def to_html(self) -> str:
        """Return the page as one file."""
        return live_page(self.models, self.lessons, self.asked)

    def save(self, path: str | Path) -> None:
        """Write the page as one file, whole or not at all."""
        with writing(Path(path)) as (stream,):
            stream.write(self.to_html().encode())

    def save_site(self, folder: str | Path) -> None:
        """Write the page as a static site, in place of an earlier one."""
        with writing_folder(Path(folder), WORKER) as new:
            for name, data in site(self.models, self.lessons).items():
                (new / name).parent.mkdir(parents=True, exist_ok=True)
                (new / name).write_bytes(data)

    def _repr_html_(self) -> str:
        """Be shown in a notebook, in a frame without rights of the notebook."""
        return (
            f'<iframe sandbox="allow-scripts allow-downloads" title="regard" '
            f'srcdoc="{escape(self.to_html(), quote=True)}" '
            f'style="width: 100%; height: {_FRAME_HEIGHT}px; border: 0; background: Canvas"></iframe>'
        )


def _read(name: str, path: Path, search: BeamOptions) -> LiveModel:
    """Return what a page is told of a model, and its file."""
    loaded = replace(Loaded.open(path, compute=NUMPY), name=name)
    data = path.read_bytes()
    if len(data) > _MAX_BYTES:
        raise ConfigError(
            f"{path}: has {len(data) / 1e6:.0f} MB, and a page holds models of up to "
            f"{_MAX_BYTES / 1e6:.0f} MB; use `regard serve`"
        )
    return facts(loaded, search), data


_SCORES = ("bleu", "chrf", "num_sentences", "signatures", "by_length")


def told_of(loaded: Loaded) -> dict[str, Any]:
    """Return what the card of a model tells readers of a page: credits, limits, licence and scores."""
    assert loaded.file is not None
    card = loaded.file.card
    credits: dict[str, None] = {}
    earlier: Any = card
    while isinstance(earlier, dict):  # what the model began with has its own
        credits |= dict.fromkeys(map(str, earlier.get("credits", ())))
        earlier = (earlier.get("start") or {}).get("card")
    tests = {**card.get("tests", {}), **({"validation": card["validation"]} if "validation" in card else {})}
    return {
        "created": card.get("created"),
        "limits": card.get("limits"),
        "licence": card.get("imported", {}).get("licence"),
        "credits": list(credits),
        "tests": {
            name: {key: scores[key] for key in _SCORES if key in scores} for name, scores in tests.items()
        },
    }


_UNKNOWN = {"activation", "biases", "decoder_self", "source_end"}
"""Options that the engine in a page does not know; a model has them only if they are not as usual."""


def facts(loaded: Loaded, search: BeamOptions | None = None) -> dict[str, Any]:
    """Return plain values: the model as a trace describes it, its design, cards and shapes of weights."""
    if loaded.feature_size is not None:
        raise ConfigError(f"{loaded.name} reads feature vectors; a page translates text only")
    tracer = Tracer(loaded)
    unknown = sorted(_UNKNOWN & tracer.model.options.model_dump().keys())
    if unknown:
        raise ConfigError(
            f"{loaded.name} has model.{unknown[0]}, which a page cannot compute; use `regard serve`"
        )
    about, design, tokenizers = tracer.about, tracer.design, tracer.model.tokenizers
    search = search or BeamOptions()
    shapes = weight_shapes(tracer.model.options, tokenizers.source.vocab_size, tokenizers.target.vocab_size)
    return {
        "name": loaded.name,
        "generator": f"regard {regard.__version__}",
        "about": about.model_dump(),
        "card": told_of(loaded),
        "design": {
            "attentions": dict(design.attentions),
            "num_heads": design.num_heads,
            "rows_sum_to_one": design.rows_sum_to_one,
            "parts": sorted(design.parts),
            "states": tracer.states,
            "gates": design.gates,
        },
        "cards": [asdict(card) for card in design.cards],
        "shapes": {name: list(shape) for name, shape in shapes.items()},
        "search": search.model_dump(),
        "search_json": search.model_dump_json(),
        "split_above": loaded.split_above,
    }
