"""What must hold in every trace, whoever wrote it. Checked when one is made and when one is read."""

import math
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import get_args

import numpy as np

from regard.design import Kind
from regard.errors import ConfigError, TraceError
from regard.options.parse import parse
from regard.trace.document import (
    POSTERIOR,
    Attention,
    Beam,
    Document,
    MaskOff,
    Source,
    Target,
    perplexity,
    surfaces,
    trace_id,
)
from regard.trace.recorded import is_of_source
from regard.vocabulary import EOS

_ROW_TOLERANCE = 2e-3
_CONTEXT_TOLERANCE = 1e-2  # of states that have eleven bits
_MAX_STATES = 10_000_000  # numbers; sixty pieces of a large model have a few hundred thousand
_SUM_TOLERANCE = 1e-3  # of a log-probability, for each piece


def check(trace: Document) -> None:
    """Raise an error that names the first thing that does not hold."""
    try:
        problem = next(_problems(trace), None)
    except (ValueError, ConfigError) as error:
        problem = str(error)
    if problem is not None:
        raise TraceError(f"this trace is not sound: {problem}; make it again")


def _problems(trace: Document) -> Iterator[str]:
    if parse("model", trace.model.options).kind != trace.model.kind:
        yield "the model's design is of another kind than it says"
    if trace.request.mode != "forced":
        parse("search", trace.request.search)
    if trace.id != trace_id(trace.model, trace.request):
        yield "its id is not that of its model and request"
    yield from _side("source", trace.source)
    yield from _side("target", trace.target)
    yield from _likelihood(trace)
    yield from _attentions(trace)
    yield from _states(trace)
    yield from _reading(trace)
    if trace.beam is not None:
        yield from _beam(trace.beam, trace)
    yield from _effects(trace)


def _side(name: str, side: Source | Target) -> Iterator[str]:
    text, pieces = side.text, side.pieces
    if not pieces:
        yield f"the {name} has no pieces"
    if "".join(piece.surface for piece in pieces) != text:
        yield f"the surfaces of the {name}'s pieces do not join to its text"
    if not all(0 <= piece.start <= piece.end <= len(text) for piece in pieces):
        yield f"a piece of the {name} lies outside of its text"
    if [piece.surface for piece in pieces] != surfaces(text, [(piece.start, piece.end) for piece in pieces]):
        yield f"the surfaces of the {name}'s pieces are not where the pieces are"
    for word in side.words:
        if not 0 <= word.start < word.end <= len(text):
            yield f"a {name} word lies outside of the text"
        if not word.pieces or not all(0 <= piece < len(pieces) for piece in word.pieces):
            yield f"a {name} word has pieces that are not there"
        if sorted(set(word.pieces)) != word.pieces:
            yield f"a {name} word has its pieces twice or out of order"


def _likelihood(trace: Document) -> Iterator[str]:
    log_probs = [piece.log_prob for piece in trace.target.pieces]
    if any(log_prob > 1e-4 for log_prob in log_probs):
        yield "a probability is above 1"
    if abs(sum(log_probs) - trace.target.log_prob) > _SUM_TOLERANCE * len(log_probs):
        yield "the log-probabilities of the pieces do not sum to that of the translation"
    if not math.isclose(
        trace.metrics.perplexity, perplexity(trace.target.log_prob, len(log_probs)), rel_tol=1e-3
    ):
        yield "the perplexity is not that of the log-probability"
    if trace.target.complete != (trace.target.pieces[-1].id == EOS):
        yield "the translation is marked as complete without `</s>`, or as cut with it"
    for piece in trace.target.pieces:
        if piece.rank is not None and piece.rank < 1:
            yield f"piece {piece.piece!r} has rank {piece.rank}"
        best = piece.candidates
        if best is None:
            continue
        if not len(best.ids) == len(best.pieces) == len(best.log_probs):
            yield "candidates have lists of different lengths"
        if any(after > before + 1e-6 for before, after in pairwise(best.log_probs)):
            yield "candidates are not in the order of their probability"
        if piece.id in best.ids and abs(best.log_probs[best.ids.index(piece.id)] - piece.log_prob) > 1e-3:
            yield f"piece {piece.piece!r} has two different probabilities"


def _attentions(trace: Document) -> Iterator[str]:
    """Hold every attention against the design and the request: what they say of themselves is not enough."""
    found = {attention.kind: attention for attention in trace.attentions}
    if len(found) < len(trace.attentions):
        yield "one kind of attention comes twice"
    for kind in get_args(Kind):
        if (kind in found) != (kind in trace.model.design.attentions):
            yield f"attention {kind!r} and the model's design do not go together"
    for attention in trace.attentions:
        yield from _attention(attention, trace)


def _attention(attention: Attention, trace: Document) -> Iterator[str]:
    kind, design = attention.kind, trace.model.design
    num_source, num_target = len(trace.source.pieces), len(trace.target.pieces)
    num_rows, num_columns = {
        "cross": (num_target, num_source),
        "encoder": (num_source, num_source),
        "decoder": (num_target, num_target),
    }[kind]
    layers, heads = design.size(kind)
    shape = attention.log_weights.shape
    if shape != [layers, heads, num_rows, num_columns]:
        yield (
            f"attention {kind!r} has shape {shape}, and the design has {layers} layers of {heads} heads for "
            f"{num_rows} by {num_columns} pieces"
        )
        return
    if attention.log_weights.dtype != "u2" or attention.log_sums.shape != shape[:3]:
        yield f"attention {kind!r} has sums of shape {attention.log_sums.shape}"
    if attention.weights is not None and attention.weights.shape != shape:
        yield f"attention {kind!r} has weights of shape {attention.weights.shape}"
        return
    if [len(layer) for layer in attention.heads] != [heads] * layers:
        yield f"attention {kind!r} has not one entry for each of its heads"
    lifted = any(isinstance(one, MaskOff) for one in trace.request.interventions)
    if attention.causal != (kind == "decoder" and not lifted):
        yield f"attention {kind!r} is not masked as the request says"
    if attention.normalised != design.rows_sum_to_one:
        yield f"attention {kind!r} is not normalised as the design says"
    weights = attention.weights_LNTS
    if not np.isfinite(weights).all() or not np.isfinite(attention.log_sums.unpack()).all():
        yield f"attention {kind!r} has numbers that are not finite"
    sums = weights.sum(axis=-1)
    if (weights < 0).any() or (sums > 1 + _ROW_TOLERANCE).any():
        yield f"a row of attention {kind!r} has more than 1 or less than 0"
    if attention.normalised and (sums < 1 - _ROW_TOLERANCE).any():
        yield f"a row of attention {kind!r} does not sum to 1"
    if attention.causal and np.triu(weights, 1).any():
        yield f"attention {kind!r} looks at later words, which its mask hides"


def _reading(trace: Document) -> Iterator[str]:
    reading, cross, coverage = trace.model.reading, trace.attention("cross"), trace.metrics.coverage
    if len({one is None for one in (reading, cross, coverage)}) > 1:
        yield "the model's reading, its attention and the coverage do not go together"
    if reading is None or cross is None or coverage is None:
        return
    layers, heads = cross.log_weights.shape[:2]
    if reading.layer not in range(layers) or reading.head not in (None, *range(heads)):
        yield f"there is no layer and head as in {reading}"
    elif reading.posterior and POSTERIOR not in trace.states:
        yield f"its alignment is read from {POSTERIOR!r}, which is missing"
    elif len(coverage) != len(trace.source.pieces):
        yield f"the coverage of {len(coverage)} pieces, and the source has {len(trace.source.pieces)}"
    else:
        posterior = trace.states[POSTERIOR].unpack() if reading.posterior else None
        difference_S = np.abs(cross.looks_TS(reading, posterior).sum(axis=0) - coverage)
        if difference_S.max() > _ROW_TOLERANCE * len(trace.target.pieces):
            yield "the coverage is not the sum of the weights"


def _states(trace: Document) -> Iterator[str]:
    cross = trace.attention("cross")
    if cross is not None and {"attention.context", "memory"} <= trace.states.keys():
        weights_TS, memory_SH = cross.weights_LNTS[0, 0], trace.states["memory"].unpack()
        context_TH = trace.states["attention.context"].unpack()
        if memory_SH.shape[:1] != weights_TS.shape[1:] or context_TH.shape != (
            len(weights_TS),
            memory_SH.shape[-1],
        ):
            yield "the context, the weights and the memory do not fit together"
        else:
            largest = max(1.0, float(np.abs(memory_SH).max()))
            if np.abs(weights_TS @ memory_SH - context_TH).max() > _CONTEXT_TOLERANCE * largest:
                yield "the context is not the weights times the memory"
    num_values = 0
    for name, array in trace.states.items():
        size = math.prod(array.shape)
        num_values += max(size, 0)
        if num_values > _MAX_STATES >= size:
            yield "its states have more numbers than any translation"
            return
        value = array.unpack()
        rows = trace.source.pieces if is_of_source(name) else trace.target.pieces
        axis = 1 if value.ndim > 2 and (".self." in name or ".cross." in name) else 0  # after the heads
        if value.ndim > 1 and not name.endswith(".seen") and value.shape[axis] != len(rows):
            yield f"state {name!r} has shape {array.shape}, and no row for each piece"
        if not np.isfinite(value).all():
            yield f"state {name!r} has numbers that are not finite"


def _beam(beam: Beam, trace: Document) -> Iterator[str]:
    open_at: Counter[int] = Counter()
    for number, node in enumerate(beam.nodes):
        if node.step < 0 or (node.parent is None) != (node.step == 0):
            yield f"node {number} of the beam has no place in the tree"
            return
        if node.parent is not None and not (
            0 <= node.parent < number and beam.nodes[node.parent].step == node.step - 1
        ):
            yield f"node {number} of the beam does not follow its parent"
            return
        open_at[node.step] += node.fate == "open"
    if max(open_at.values(), default=0) > beam.size:
        yield "more hypotheses are open than the beam is wide"
    if not all(0 <= number < len(beam.nodes) for number in beam.best):
        yield "the best path has nodes that are not there"
    elif [beam.nodes[number].id for number in beam.best] != [piece.id for piece in trace.target.pieces]:
        yield "the best path of the beam does not say the translation"
    elif [beam.nodes[number].parent for number in beam.best] != [None, *beam.best[:-1]]:
        yield "the best path of the beam is no path"


def _effects(trace: Document) -> Iterator[str]:
    effects = trace.effects
    if effects is None:
        return
    shape = (len(trace.target.pieces), len(trace.source.words))
    for name in ("erasure", "only_id", "only_piece", "only_log_prob"):
        rows = getattr(effects, name)
        if rows is not None and [len(row) for row in rows] != [shape[1]] * shape[0]:
            yield f"the effects have no {name} for each of {shape[0]} pieces and {shape[1]} words"
