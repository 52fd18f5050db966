"""The rungs of the ladder: the designs of the papers at one size, so that what differs is the idea.

All are as wide as the Transformer `regard-small`, so that an hour or two on a laptop is enough; recurrent
rungs have the cell and readout of `regard-rnn`. The papers' own sizes are presets of their own. Each rung
says what it is compared with, that is, what one idea it adds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.draw.labels import texts
from regard.errors import ConfigError
from regard.model.presets import PRESETS
from regard.options.section import nearest
from regard.report.document import LANGUAGES

_WIDTH = PRESETS["regard-small"].hidden_size


@dataclass(frozen=True, slots=True)
class Rung:
    """One model of the ladder, and the rung whose idea it changes (None: the first)."""

    name: str
    preset: str
    after: str | None
    model: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> Mapping[str, str]:
        """What the reports call it, in each of their languages."""
        return {language: texts("report", language)["titles"][self.name] for language in LANGUAGES}

    @property
    def idea(self) -> Mapping[str, str]:
        """What is new in it, in each language of the reports."""
        return {language: texts("report", language)["ideas"][self.name] for language in LANGUAGES}

    @property
    def narrow(self) -> Mapping[str, Mapping[str, Any]]:
        """The options that give it the width of the others, and the rate that suits that width."""
        if self.preset == "regard-small":
            return {}
        rate = {"kind": "adam", "rate": 2e-3}  # 1e-3 is slow, at 4e-3 `luong-dot` gets worse
        return {
            "model": {"hidden_size": _WIDTH, "embedding_size": _WIDTH},
            "train": {"optimiser": rate},
        }

    @property
    def has_attention(self) -> bool:
        """Whether the model looks at its source at every step."""
        return bool(self.model.get("attention", {}).get("kind") != "none")


def _fixed(context: str, reading: str) -> dict[str, Any]:
    return {"attention": {"kind": "none", "context": context}, "reading": reading}


def _luong(scorer: str, window: Mapping[str, Any] | None = None) -> dict[str, Any]:
    attention: dict[str, Any] = {"kind": "step-then-attend", "scorer": {"kind": scorer}}
    return {"attention": attention | ({"window": dict(window)} if window else {})}


LADDER = (
    Rung("sutskever", "regard-rnn", None, _fixed("start", "reversed")),
    Rung("cho", "regard-rnn", "sutskever", _fixed("every", "forward")),
    Rung("bahdanau", "regard-rnn", "cho"),
    Rung("luong-dot", "regard-rnn", "bahdanau", _luong("dot")),
    Rung("luong-general", "regard-rnn", "luong-dot", _luong("scaled-general")),
    Rung("luong-concat", "regard-rnn", "luong-dot", _luong("additive")),
    Rung("luong-location", "regard-rnn", "luong-dot", _luong("location")),
    Rung("luong-local", "regard-rnn", "luong-general", _luong("scaled-general", {"kind": "local-p"})),
    # With four layers it learns too slowly for an hour.
    Rung("transformer", "regard-small", "bahdanau", {"num_encoder_layers": 2, "num_decoder_layers": 2}),
)


def base_of(rung: Rung, chosen: Sequence[Rung]) -> Rung | None:
    """Return the nearest of the chosen rungs that a rung builds on, None if there is none."""
    by_name = {one.name: one for one in LADDER}
    after = rung.after
    while after is not None and by_name[after] not in chosen:
        after = by_name[after].after
    return None if after is None else by_name[after]


def rungs(names: str | None) -> tuple[Rung, ...]:
    """Return the rungs of these names, separated by commas, in the order of the ladder; None: all."""
    if names is None:
        return LADDER
    known = [rung.name for rung in LADDER]
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            raise ConfigError(f"there is no design {name!r}; {nearest(name, known)}")
    if not wanted:
        raise ConfigError(f"name one design or more: {', '.join(known)}")
    return tuple(rung for rung in LADDER if rung.name in wanted)
