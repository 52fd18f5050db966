"""Interventions: checked against the model, then turned into probes."""

from collections.abc import Callable, Sequence

from regard.contract import Probe
from regard.design import Design, Part
from regard.errors import ConfigError
from regard.probes import force_weights, lift_mask, remove_positions, switch_off_head, together
from regard.trace.document import HeadOff, Intervention, LookSo, MaskOff, PositionsOff

_CHANGED: dict[str, Part] = {"head_off": "heads", "mask_off": "mask", "positions_off": "positions"}


def check(interventions: Sequence[Intervention], design: Design, source_pieces: Sequence[str]) -> None:
    """Raise an error if the model, or this source, has not what is to be changed."""
    for one in interventions:
        if isinstance(one, LookSo):
            _check_row(one, design, source_pieces)
        elif _CHANGED[one.type] not in design.parts:
            raise ConfigError(f"this model has no {_CHANGED[one.type]} to switch off; only a Transformer has")
        elif isinstance(one, HeadOff):
            design.check_head(one.kind, one.layer, one.head)


def probe_maker(interventions: Sequence[Intervention], design: Design, *, whole: bool) -> Callable[[], Probe]:
    """Return what makes the probe of a translation; the mask is lifted where the whole is read at once."""

    def make() -> Probe:
        return together(*(probe for one in interventions for probe in _probes(one, design, whole)))

    return make


def _check_row(one: LookSo, design: Design, source_pieces: Sequence[str]) -> None:
    if not design.has_attention:
        raise ConfigError("this model has no attention to force")
    if len(one.weights) != len(source_pieces):
        raise ConfigError(
            f"{len(one.weights)} weights for step {one.step + 1} and the source has {len(source_pieces)} "
            f"pieces ({' '.join(source_pieces)}); give one for each"
        )
    if min(one.weights) < 0 or abs(sum(one.weights) - 1) > 1e-3:
        raise ConfigError(
            f"the weights for step {one.step + 1} sum to {sum(one.weights):.4g}, the smallest is "
            f"{min(one.weights):.4g}; give weights of 0 or more that sum to 1"
        )
    if one.head is not None and "heads" not in design.parts:
        raise ConfigError("this model has no heads to choose one of; leave the head out")
    design.check_head("cross", one.layer, one.head)


def _probes(one: Intervention, design: Design, whole: bool) -> list[Probe]:
    match one:
        case LookSo():
            names = design.attentions["cross"]
            names = names if one.layer is None else names[one.layer : one.layer + 1]
            return [force_weights(f"{name}.weights", one.weights, one.head, one.step) for name in names]
        case HeadOff():
            return [switch_off_head(design.attentions[one.kind][one.layer], one.head)]
        case MaskOff():
            return [lift_mask] if whole else []
        case PositionsOff():
            return [remove_positions]
