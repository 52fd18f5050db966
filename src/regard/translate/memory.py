"""What a translation memory has for a text: looked up before the search, and told with its result."""

from dataclasses import replace

import numpy as np

from regard.contract import Source
from regard.loaded import Loaded
from regard.memory import Match
from regard.text.normalize import trace_normalize
from regard.text.words import Span
from regard.translate.outcome import Given
from regard.translate.plan import Plan, whole_stretches
from regard.translate.request import Request
from regard.translate.result import MemoryUse, Translation


def look_up(model: Loaded, request: Request, plan: Plan) -> Plan:
    """Return the plan with what the memory has: translations to take as they are, and similar sources.

    A text that the memory has whole is one stretch. With a prefix nothing is taken.
    """
    memory = request.memory
    if memory is None or not plan.stretches:
        return plan
    takes = request.prefix is None
    whole = memory.nearest(request.text)
    if takes and whole is not None and whole.is_exact:
        plan = Plan(whole_stretches(model, [request.text]))
    several = len(plan.stretches) > 1
    matches = [memory.nearest(one.source.text) if several else whole for one in plan.stretches]
    stretches, told = [], []
    for stretch, match in zip(plan.stretches, matches, strict=True):
        if match is not None and match.is_exact and takes:
            stretch = replace(stretch, given=_given(model, stretch.ids, match.target))
        stretches.append(stretch)
        # What is like the whole text says more than what is like a sentence of it.
        if match is not None and (match.is_exact or whole is None or not several):
            origin = stretch.source.origin
            told.append(_use(match, (origin[0][0], origin[-1][1])))
    if whole is not None and several:
        told.insert(0, _use(whole, (0, len(request.text))))
    return replace(plan, stretches=stretches, memory=tuple(told))


def _use(match: Match, span: Span) -> MemoryUse:
    return MemoryUse(match.source, match.target, match.score, span)


def _given(model: Loaded, source: Source, target: str) -> Given:
    """Return a translation to take as it is, with its ids if the model can read them and says the same."""
    read, tokenizer = trace_normalize(target.strip()), model.tokenizers.target
    (ids,) = tokenizer.encode_batch([read.text])
    longest = model.searcher.max_tokens
    fits = longest is None or max(len(ids), len(source)) < longest
    if not fits or tokenizer.decode_spans(ids.tolist())[0] != read.text:
        return Given(read, None)
    return Given(read, ids.astype(np.int64))


def with_memory(translation: Translation, told: tuple[MemoryUse, ...]) -> Translation:
    """Return the translation with what the memory has, flagged if some of it was not taken."""
    if not told:
        return translation
    is_taken = "memory" in translation.flags and all(one.score == 1 for one in told)
    flags = translation.flags if is_taken else (*translation.flags, "fuzzy")
    return replace(translation, memory=told, flags=flags)
