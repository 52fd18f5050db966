"""The terms of a glossary on their way through a translation: into the search, and checked in its result."""

from collections import Counter
from collections.abc import Iterable, Sequence

from regard.contract import Source
from regard.loaded import Loaded
from regard.search.terms import Forms, Terms, Wanted
from regard.terms.glossary import Entry, Glossary, Match, count
from regard.text.normalize import Normalized
from regard.text.protect import items, written
from regard.text.tokenizer import Tokenizer
from regard.text.words import Span
from regard.translate.result import Status, TermUse
from regard.translate.retry import in_capitals
from regard.vocabulary import UNK

MISSED: tuple[Status, ...] = ("unused", "impossible", "forbidden")
"""What makes a translation wrong."""
_JOINED = ("l'", "d'", "(")  # after which a word begins without a space


def matches_in(glossary: Glossary | None, source: Normalized) -> list[Match]:
    """Return the terms of a stretch of source; code, addresses and placeholders have none."""
    if glossary is None:
        return []
    kept = [item.span for item in items(written(source)) if item.kind not in ("number", "amount")]
    return [
        match
        for match in glossary.matches(source.text, ignore_case=in_capitals(source.original))
        if not any(_cuts(match.span, span) for span in kept)
    ]


def _cuts(term: Span, item: Span) -> bool:
    """Tell whether a term is in an item, such as a file name, or overlaps it, without being all of it."""
    overlaps = term[0] < item[1] and item[0] < term[1]
    return overlaps and not (term[0] <= item[0] and item[1] <= term[1])


def terms_of(model: Loaded, matches: Sequence[Match], text: str, ids: Source) -> Terms | None:
    """Return what a search must hold and avoid, None if there is nothing."""
    if not matches or ids.ndim != 1:
        return None
    spans = model.tokenizers.source.spans(ids.tolist(), text)
    wanted, forbidden = [], []
    for one in matches:
        start, end = one.span
        columns = tuple(place for place, (a, b) in enumerate(spans) if a < end and start < b)
        forms = _forms(model, one.entry.targets)
        if forms.after_space:
            wanted.append(Wanted(forms, columns))
        forbidden += [forms for forms in [_forms(model, one.entry.forbidden)] if forms.after_space]
    return Terms(tuple(wanted), tuple(dict.fromkeys(forbidden))) if wanted or forbidden else None


def _forms(model: Loaded, texts: Sequence[str]) -> Forms:
    """Return the ways to say one of these texts; none that has an unknown piece."""
    target, longest = model.tokenizers.target, model.searcher.max_tokens
    starts = [text[:1].upper() + text[1:] for text in texts if text[:1].islower()]
    plain = target.encode_batch([*texts, *starts])
    forms = [tuple(map(int, ids)) for ids in plain]
    most = 1_000_000 if longest is None else longest - 1
    usable = [form if UNK not in form and len(form) < most else () for form in forms]
    joined = {form for text in texts for form in _joined(target, text) if UNK not in form}
    return Forms(
        tuple(dict.fromkeys(form for form in usable[: len(texts)] if form)),
        tuple(sorted(joined)),
        tuple(dict.fromkeys(form for form in usable[len(texts) :] if form)),
    )


def _joined(target: Tokenizer, text: str) -> Iterable[tuple[int, ...]]:
    """Yield the ids of a text right after a sign, where a piece begins with it."""
    for sign in _JOINED:
        ids = target.encode_batch([sign + text])[0].tolist()
        spans = target.spans(ids, sign + text)
        first = next((place for place, (start, _) in enumerate(spans) if start == len(sign)), None)
        # A tokenizer that puts a space there has no other form than the usual one.
        if first is not None and not target.pieces[ids[first]].startswith("▁"):
            yield tuple(ids[first:])


def uses(model: Loaded, matches: Sequence[Match], source: Normalized, text: str) -> tuple[TermUse, ...]:
    """Return what became of each term of a source in its translation."""
    ignore_case = in_capitals(source.original)
    seen: Counter[Entry] = Counter()
    found = []
    for one in matches:
        entry, span = one.entry, source.to_original(one.span)
        seen[entry] += 1
        if entry.targets:
            status: Status = "used" if _times(entry, text, ignore_case) >= seen[entry] else "unused"
            if status == "unused" and not _forms(model, entry.targets).after_space:
                status = "impossible"
            found.append(TermUse(entry.source, entry.targets[0], span, status))
        for form in entry.forbidden:
            held = count(form, text, ignore_case=True) > 0
            found.append(TermUse(entry.source, form, span, "forbidden" if held else "avoided"))
    return tuple(found)


def _times(entry: Entry, text: str, ignore_case: bool) -> int:
    """Return how many times a translation has any form of a term."""
    times = 0
    for form in sorted(entry.targets, key=len, reverse=True):  # a form may be part of a longer one
        found = count(form, text, ignore_case=ignore_case)
        times += found
        if found:
            text = text.replace(form, " ").replace(form[:1].upper() + form[1:], " ")
    return times


def num_missed(found: Iterable[TermUse]) -> int:
    """Return how many terms are missing, and how many forbidden ones are there."""
    return sum(one.status in MISSED for one in found)


def without_terms(text: str, matches: Sequence[Match]) -> str:
    """Return a text with its terms blanked out: whatever items they hold, the glossary decides on."""
    for one in matches:
        start, end = one.span
        text = text[:start] + " " * (end - start) + text[end:]
    return text
