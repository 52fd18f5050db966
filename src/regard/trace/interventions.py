"""Interventions: checked against the model, then turned into probes."""

from collections.abc import Callable, Sequence

from regard.contract import Probe
from regard.errors import ConfigError
from regard.options.model import RecurrentOptions, TransformerOptions
from regard.probes import force_weights, lift_mask, remove_positions, switch_off_head, together
from regard.trace.document import HeadOff, Intervention, Kind, LookSo, MaskOff, PositionsOff

AnyOptions = RecurrentOptions | TransformerOptions


def check(interventions: Sequence[Intervention], options: AnyOptions, source_pieces: Sequence[str]) -> None:
    """Raise an error if the model, or this source, has not what is to be changed."""
    for one in interventions:
        if isinstance(one, LookSo):
            _check_row(one, options, source_pieces)
        elif options.kind != "transformer":
            missing = {"head_off": "heads", "mask_off": "mask", "positions_off": "positions"}[one.type]
            raise ConfigError(f"this model has no {missing} to switch off; only a Transformer has")
        elif isinstance(one, HeadOff):
            _check_head(options, one.kind, one.layer, one.head)


def probe_maker(interventions: Sequence[Intervention], *, whole: bool) -> Callable[[], Probe]:
    """Return what makes the probe of a translation; the mask is lifted where the whole is read at once."""

    def make() -> Probe:
        return together(*(probe for one in interventions for probe in _probes(one, whole)))

    return make


def num_layers_and_heads(options: AnyOptions, kind: Kind) -> tuple[int, int]:
    """Return how many layers and heads look in one way: none at all, if the model does not."""
    if options.kind == "transformer":
        layers = options.num_encoder_layers if kind == "encoder" else options.num_decoder_layers
        return layers, options.num_heads
    return (1, 1) if kind == "cross" and options.attention.kind != "none" else (0, 0)


def has_gaussian_window(options: AnyOptions) -> bool:
    """Tell whether the weights of a row are less than 1 in all (Luong et al. 2015, eq. 10)."""
    if options.kind == "transformer" or options.attention.kind == "none":
        return False
    return options.attention.window.kind == "local-p"


def _check_row(one: LookSo, options: AnyOptions, source_pieces: Sequence[str]) -> None:
    if not num_layers_and_heads(options, "cross")[0]:
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
    if one.head is not None and options.kind != "transformer":
        raise ConfigError("this model has no heads to choose one of; leave the head out")
    _check_head(options, "cross", one.layer or 0, one.head or 0)


def _check_head(options: AnyOptions, kind: Kind, layer: int, head: int) -> None:
    layers, heads = num_layers_and_heads(options, kind)
    if not (layer < layers and head < heads):
        raise ConfigError(
            f"there is no layer {layer + 1}, head {head + 1}: this model has {layers} layers of {heads} heads"
        )


def _probes(one: Intervention, whole: bool) -> list[Probe]:
    match one:
        case LookSo():
            layers = "*" if one.layer is None else str(one.layer)
            names = (f"decoder.{layers}.cross.weights", "attention.weights")
            return [force_weights(name, one.weights, one.head, one.step) for name in names]
        case HeadOff():
            name = "decoder.{}.cross" if one.kind == "cross" else f"{one.kind}.{{}}.self"
            return [switch_off_head(name.format(one.layer), one.head)]
        case MaskOff():
            return [lift_mask] if whole else []
        case PositionsOff():
            return [remove_positions]
