"""From texts to what is searched: sentences, normalised and encoded once, cut where one is too long."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from numpy.typing import NDArray

from regard.contract import Features, source_named
from regard.errors import SourceError
from regard.loaded import Loaded
from regard.text.normalize import Normalized, trace_normalize
from regard.text.scripts import is_unspaced
from regard.text.split import sentences, split
from regard.translate.outcome import Given, Stretch
from regard.translate.request import Request
from regard.translate.result import MemoryUse

_FEW = 40  # pieces: of a sentence that repeats itself, a part has no more


@dataclass(slots=True)
class Plan:
    """The stretches of a text, what stands between their translations, and whether a sentence was cut."""

    stretches: list[Stretch] = field(default_factory=list)
    joints: list[str] = field(default_factory=list)
    is_split: bool = False
    memory: tuple[MemoryUse, ...] = ()
    """What the translation memory has for its stretches, or for the whole text."""


def plan_requests(model: Loaded, requests: Sequence[Request]) -> Iterator[Plan]:
    """Yield the plan of each request.

    Models learn from sentences, so each sentence is a stretch of its own. Without the guard, and for models
    that do not translate, a text is one stretch if the model can read it so.
    """
    if model.feature_size is not None or any(request.features is not None for request in requests):
        sources = [request.text if request.features is None else request.features for request in requests]
        yield from (Plan([stretch]) for stretch in whole_stretches(model, sources))
        return
    encode, longest = model.tokenizers.source.encode_batch, model.max_source
    has_spaces = not is_unspaced(model.target_language)
    by_text = [
        _sentences(request.text) if request.guard and model.translates else [_whole(request.text)]
        for request in requests
    ]
    ids = iter(encode([sentence.text for found in by_text for sentence in found]))
    for request, found in zip(requests, by_text, strict=True):
        text, plan, end = request.text, Plan(), 0
        for sentence in found:
            whole = next(ids)
            if not len(whole):
                continue
            if plan.stretches:
                plan.joints.append(_joint(text[end : sentence.origin[0][0]], has_spaces))
            end = sentence.origin[-1][1]
            most = longest
            if longest is not None and _repeats_itself(whole):
                most = min(longest, _FEW)
            if request.guard and model.translates and not any(map(str.isalnum, sentence.text)):
                # Signs alone are no sentence: a model would invent one.
                signs = _as_it_is(text[sentence.origin[0][0] : end])
                plan.stretches.append(Stretch(sentence, whole, given=Given(signs, None, ())))
                continue
            if most is None or len(whole) <= most:
                plan.stretches.append(Stretch(sentence, whole))
                continue
            parts = _parts(sentence, text, model, most)
            plan.stretches += map(Stretch, parts, encode([part.text for part in parts]))
            plan.joints += [_joint("", has_spaces)] * (len(parts) - 1)
            plan.is_split = plan.is_split or len(parts) > 1
        yield plan


def _parts(sentence: Normalized, text: str, model: Loaded, most: int) -> list[Normalized]:
    """Return the parts of a sentence of this text that have so many pieces at most."""

    def fits(part: str) -> bool:
        return len(model.tokenizers.source.encode_batch([part])[0]) <= most

    return [
        Normalized(sentence.text[first:last], text, sentence.origin[first:last])
        for first, last in split(sentence.text, fits)
    ]


def _repeats_itself(ids: NDArray[Any]) -> bool:
    """Tell whether a sentence is few pairs of pieces again and again.

    A model does not count: it goes on to the length limit, which costs much and adds words. Short parts end
    by themselves.
    """
    return len(ids) > _FEW and len(set(pairwise(ids.tolist()))) * 8 < len(ids)


def whole_stretches(model: Loaded, sources: Sequence[str | Features]) -> list[Stretch]:
    """Return each source as one stretch, or raise an error for one that the model does not read."""
    for number, source in enumerate(sources, 1):
        size = source.size if isinstance(source, Features) else None
        if size != model.feature_size:
            raise SourceError(
                f"source {number}: this model reads {source_named(model.feature_size)} and is given "
                f"{source_named(size)}"
            )
    texts = [_whole(source) for source in sources if isinstance(source, str)]
    ids = model.tokenizers.source.encode_batch([text.text for text in texts])
    vectors = [one for one in sources if isinstance(one, Features)]
    return [*map(Stretch, texts, ids), *(Stretch(_as_it_is(one.text), one.vectors_SF) for one in vectors)]


def _as_it_is(text: str) -> Normalized:
    return Normalized(text, text, tuple((place, place + 1) for place in range(len(text))))


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
