"""From texts to what is searched: sentences, normalised and encoded once, cut where one is too long."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from regard.loaded import Loaded
from regard.text.normalize import Normalized, trace_normalize
from regard.text.scripts import is_unspaced
from regard.text.split import sentences, split
from regard.translate.outcome import Stretch
from regard.translate.request import Request


@dataclass(slots=True)
class Plan:
    """The stretches of a text, what stands between their translations, and whether a sentence was cut."""

    stretches: list[Stretch] = field(default_factory=list)
    joints: list[str] = field(default_factory=list)
    is_split: bool = False


def plan_requests(model: Loaded, requests: Sequence[Request]) -> Iterator[Plan]:
    """Yield the plan of each request.

    Models learn from sentences, so each sentence is a stretch of its own. Without the guard, and for models
    that do not translate, a text is one stretch if the model can read it so.
    """
    encode, longest = model.tokenizers.source.encode_batch, model.max_source
    has_spaces = not is_unspaced(model.target_language)
    texts = [request.text for request in requests]
    by_text = [
        _sentences(request.text) if request.guard and model.translates else [_whole(request.text)]
        for request in requests
    ]
    ids = iter(encode([sentence.text for found in by_text for sentence in found]))
    for text, found in zip(texts, by_text, strict=True):
        plan, end = Plan(), 0
        for sentence in found:
            whole = next(ids)
            if not len(whole):
                continue
            if plan.stretches:
                plan.joints.append(_joint(text[end : sentence.origin[0][0]], has_spaces))
            end = sentence.origin[-1][1]
            if longest is None or len(whole) <= longest:
                plan.stretches.append(Stretch(sentence, whole))
                continue
            parts = [
                Normalized(sentence.text[first:last], text, sentence.origin[first:last])
                for first, last in split(sentence.text, lambda one: len(encode([one])[0]) <= longest)
            ]
            plan.stretches += map(Stretch, parts, encode([part.text for part in parts]))
            plan.joints += [_joint("", has_spaces)] * (len(parts) - 1)
            plan.is_split = plan.is_split or len(parts) > 1
        yield plan


def _sentences(text: str) -> list[Normalized]:
    """Return the sentences of a text, normalised; their characters know their places in the text."""
    cuts = sentences(text)
    if len(cuts) <= 1:
        return [_whole(text)]
    found = []
    for start, end in cuts:
        one = trace_normalize(text[start:end], fold_quotes=True)
        origin = tuple((first + start, last + start) for first, last in one.origin)
        found.append(Normalized(one.text, text, origin))
    return found


def _whole(text: str) -> Normalized:
    return trace_normalize(text, fold_quotes=True)


def _joint(space: str, has_spaces: bool) -> str:
    """Return what stands between two translations, given what stands between their sources."""
    if not space:
        return " " if has_spaces else ""
    return space if has_spaces or space != " " else ""
