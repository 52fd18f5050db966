"""The mechanics of one step, card by card, in the order of each paper and with its symbols.

A card says what is computed and which recorded numbers show it; it holds no numbers itself. So the terminal
and the page show the same cards, for any step.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from regard.contract import Floats
from regard.design import Card, Show
from regard.draw.labels import cut, display_width, folded, pad_left, pad_right, printable
from regard.errors import ConfigError
from regard.trace.document import Document

_BAR = 24
_NUM_SHOWN = 5  # of the candidates; and of a vector's numbers at its start
_MAX_LABEL = 18


def cards(trace: Document) -> list[Card]:
    """Return the cards of the model, without optional states that were not recorded."""
    return [
        replace(
            card,
            shows=tuple(show for show in card.shows if not show.optional or show.name in trace.states),
        )
        for card in trace.model.design.cards
    ]


def cards_json(trace: Document) -> list[dict[str, Any]]:
    """Return the cards as plain values, for the page."""
    return [asdict(card) for card in cards(trace)]


def step_lines(
    trace: Document, step: int, width: int, layer: int | None = None, head: int | None = None
) -> list[str]:
    """Return the mechanics of one step (counted from 0) with its numbers."""
    pieces = trace.target.pieces
    if not 0 <= step < len(pieces):
        raise ConfigError(
            f"there is no step {step + 1}: the translation has {len(pieces)} steps, `</s>` among them"
        )
    reading = trace.model.reading
    layer = (reading.layer if reading else 0) if layer is None else layer
    if head is None:  # one must be shown, and where nothing tells which it is the first
        head = (reading.head or 0) if reading and reading.layer == layer else 0
    design = trace.model.design
    if design.has_attention:
        design.check_head("cross", layer, head)
    where = f", layer {layer + 1}, head {head + 1}" if "heads" in design.parts else ""
    lines = [
        f"step {step + 1} of {len(pieces)}{where}: reads {printable(trace.fed[step])!r}, says "
        f"{printable(pieces[step].piece)!r} with probability {np.exp(pieces[step].log_prob):.3f}"
    ]
    if reading is not None and reading.posterior:
        lines.append("(the heat map has the attention of this step once the piece it says is known)")
    elif reading is not None and reading.shifted:
        lines.append(
            f"(the heat map has for this piece the look of step {min(step + 2, len(pieces))}, which reads it)"
        )
    lines = [part for line in lines for part in folded(line, width)]
    for card in cards(trace):
        number = "   " if card.number is None else f"{card.number}. "
        lines += ["", *folded(f"{number}{card.title}: {card.formula}", width)]
        for show in card.shows:
            lines += [f"   {line}" for line in _shown(trace, show, step, layer, head, width - 3)]
    return [cut(line, width) for line in lines]


def _shown(trace: Document, show: Show, step: int, layer: int, head: int, width: int) -> list[str]:
    """Return the numbers of a card."""
    if show.form == "candidates":
        return _candidates(trace, step)
    if show.form in ("vector", "vectors", "weighted"):
        return _vectors(trace, show, step, layer, head, width)
    cross = trace.attention("cross")
    assert cross is not None
    names = [piece.piece for piece in trace.source.pieces]
    if show.form == "weights":
        values_S = cross.weights_LNTS[layer, head, step]
        return [*_bars(names, values_S, show.symbol), f"{'sum':>{_MAX_LABEL}} {values_S.sum():8.4f}"]
    return _bars(names, cross.scores_LNTS[layer, head, step] * np.float32(show.scale), show.symbol)


def _candidates(trace: Document, step: int) -> list[str]:
    best = trace.target.pieces[step].candidates
    if best is None:
        return []
    chosen = trace.target.pieces[step].id
    return [
        f"{pad_right(cut(printable(piece), _MAX_LABEL), _MAX_LABEL)} {np.exp(log_prob):7.4f} "
        f"{'█' * round(_BAR * float(np.exp(log_prob)))}{' ←' if id == chosen else ''}"
        for id, piece, log_prob in zip(
            best.ids[:_NUM_SHOWN], best.pieces[:_NUM_SHOWN], best.log_probs[:_NUM_SHOWN], strict=True
        )
    ]


def _bars(names: Sequence[str], values_S: Floats, symbol: str) -> list[str]:
    """Return a line with a bar for each source piece, longest for the highest."""
    known = values_S[np.isfinite(values_S)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    low = min(low, 0.0)
    room = min(_MAX_LABEL, max(display_width(printable(name)) for name in names))
    lines = []
    for name, value in zip(names, values_S.tolist(), strict=True):
        label = pad_left(cut(printable(name), room), room)
        if not np.isfinite(value):
            lines.append(f"{label}        ·  not to be seen")
            continue
        bar = "█" * round(_BAR * (value - low) / ((high - low) or 1))
        lines.append(f"{label} {value:8.4f} {bar}")
    return [f"{symbol}:", *lines]


def _vectors(trace: Document, show: Show, step: int, layer: int, head: int, width: int) -> list[str]:
    name = show.name.format(l=layer)
    if name not in trace.states:
        return [f"{show.symbol}: not recorded ({name})"]
    value = trace.states[name].unpack()
    if "{l}" in show.name:
        value = value[head]
    if show.form == "vector":
        return [_vector(f"{show.symbol} =", value if value.ndim == 1 else value[step], width)]
    weights = trace.attention("cross")
    assert weights is not None
    weights_S = weights.weights_LNTS[layer, head, step]
    seen = np.argsort(-weights_S, kind="stable")[:3]
    if show.form == "weighted":
        value = value * weights_S[:, None]
    rest = len(value) - len(seen)
    names = [printable(trace.source.pieces[place].piece) for place in seen]
    lines = [
        _vector(f"{show.symbol} of {pad_right(cut(name, 10), 10)} =", value[place], width)
        for name, place in zip(names, seen, strict=True)
    ]
    return [*lines, f"… and of {rest} others"] if rest > 0 else lines


def _vector(name: str, values: Floats, width: int) -> str:
    """Return the first numbers of a vector, as many as fit, how many there are, and its length."""
    about = f"{len(values)} numbers, length {float(np.linalg.norm(values)):.3f}"
    for num_shown in range(min(_NUM_SHOWN, len(values)), 0, -1):
        shown = " ".join(f"{value:.3f}" for value in values[:num_shown])
        more = f" … {values[-1]:.3f}" if len(values) > num_shown else ""
        line = f"{name} [{shown}{more}]  {about}"
        if display_width(line) <= width:
            return line
    return f"{name} {about}"
