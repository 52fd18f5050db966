"""Second tries for a translation that looks wrong: the source written differently, or a stricter search."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from regard.options.search import BeamOptions
from regard.text.normalize import Normalized
from regard.text.protect import NUM_ATTEMPTS, Item, items, missing, stand_ins, substitute, written
from regard.text.words import Span, match_pieces, words
from regard.translate.edits import Edits
from regard.translate.result import Part

# To look at all of the source, or not to say the same again and again.
_WHOLE = BeamOptions(coverage_penalty=0.1)
_ONCE = BeamOptions(no_repeat_ngram=3, max_ratio=1.5)
_REPEATING = {"loops", "stuck", "cut", "length"}


@dataclass(frozen=True, slots=True)
class Copied:
    """A stretch of a text that is its own translation."""

    source: Normalized


@dataclass(frozen=True, slots=True)
class Attempt:
    """A way to translate a text: what the model reads, how it searches, and how its translation is edited.

    `search` None is the search the user asked for. If `capitals`, the translation is set in capitals.
    `stand_ins` are common words that stand for rare items in what the model reads; each is replaced by its
    item in the translation. The guard compares the edited translation with `judged`, or else with what the
    model read. The `flag` tells the user that this way was taken; `joints` is what stands between stretches.
    """

    stretches: tuple[Normalized | Copied, ...]
    search: BeamOptions | None = None
    capitals: bool = False
    stand_ins: tuple[tuple[str, str], ...] = ()
    judged: str | None = None
    flag: str | None = None
    joints: tuple[str, ...] = ()

    def edits(self, text: str) -> Edits | None:
        """Return how to edit a translation; None if a stand-in is missing from it or stands there twice."""
        if self.capitals:
            kept = {place for item in items(text) for place in range(*item.span)}
            return [
                ((place, place + 1), character.upper())
                for place, character in enumerate(text)
                if character.upper() != character and place not in kept
            ]
        edits: Edits = []
        for word, item in self.stand_ins:
            places = [match.span() for match in re.finditer(f"(?<![0-9A-Za-z]){word}(?![0-9A-Za-z])", text)]
            if len(places) != 1 or text.count(word) != 1:
                return None
            edits.append((places[0], item))
        return edits


def in_capitals(text: str) -> bool:
    """Tell whether all letters that have two cases, two words of them at least, are capitals; items aside."""
    if text.islower() or not any(map(str.isupper, text)):
        return False
    plain = list(text)
    for item in items(text):
        plain[slice(*item.span)] = " " * len(item.text)
    rest = "".join(plain)
    return rest.isupper() and len(words(rest)) > 1 and sum(map(str.isalpha, rest)) > 3


def first_attempt(source: Normalized, guard: bool, terms: Sequence[Span] = ()) -> Attempt:
    """Return how a text is translated at first.

    Placeholders, addresses, code, emoji and amounts are debris to most models, and the words around them
    suffer. The guard lets the model read a number in the place of each, which it has learnt to copy. Items
    within the `terms` of a glossary stay as they are.
    """
    if guard and any(item.kind != "number" for item in _outside(items(written(source)), terms)):
        return _with_stand_ins(source, 0, terms)
    return Attempt((source,))


def spelt_out(source: Normalized, ampersand: str, terms: Sequence[Span] = ()) -> Normalized:
    """Return a text with a word in the place of each `&` that stands alone and in no term of a glossary."""
    found = [one.span() for one in re.finditer(r"(?<!\S)&(?!\S)", source.text)]
    outside = [span for span in found if not any(a <= span[0] < b for a, b in terms)]
    return substitute(source, [(span, ampersand) for span in outside])


def attempts(source: Normalized, flags: Sequence[str], terms: Sequence[Span] = ()) -> Iterator[Attempt]:
    """Yield what to try with a text whose translation is suspicious for these reasons, the mildest first."""
    if in_capitals(source.text):
        lower = _recased(source, str.lower)
        yield Attempt((lower,), capitals=True, judged=source.text, flag="capitals")
    if "lost" in flags:
        for number in range(NUM_ATTEMPTS):
            yield _with_stand_ins(source, number, terms)
        if in_capitals(source.text):
            yield _around_items(_recased(source, str.lower), terms, capitals=True)
        yield _around_items(source, terms, capitals=False)
    if _REPEATING.intersection(flags):
        yield Attempt((source,), _ONCE)
    if set(flags) - {"lost", "copied"} - _REPEATING:  # a copy has looked at everything
        yield Attempt((source,), _WHOLE)
    if set(flags) - {"lost"} and len(words(source.text)) == 1:
        lower = _recased(source, str.lower, first=False)
        other = lower if lower.text != source.text else _capitalized(source)
        yield Attempt((other,), _ONCE, judged=source.text)


def put_back(source: Normalized, text: str, part: Part) -> Edits | None:
    """Return what puts the lost items of a source into its translation: each where its words came from it.

    None if an item has no such place, or two have the same, or it would take more than two words.
    """
    found = words(text)
    of_piece = match_pieces(part.spans, found).words_of_piece
    edits: Edits = []
    for item in missing(written(source), text):
        start, end = source.to_original(item.span)
        columns = [place for place, (a, b) in enumerate(part.source_spans) if a < end and start < b]
        weight_T = part.attention_TS[:, columns].sum(axis=1) if part.attention_TS.shape[1] else []
        mine = sorted(
            {
                word
                for piece, weight in enumerate(weight_T)
                if weight > 0.5
                for word in of_piece[piece]
                if any(map(str.isalnum, text[slice(*found[word])]))  # a full stop is nobody's translation
            }
        )
        if not mine or mine[-1] - mine[0] >= len(mine):  # nowhere, or in several places
            return None
        if len(mine) > min(2, len(found) // 2):
            return None
        edits.append(((found[mine[0]][0], found[mine[-1]][1]), item.text))
    edits.sort()
    return edits if all(a[0][1] <= b[0][0] for a, b in pairwise(edits)) else None


def _recased(source: Normalized, change: Callable[[str], str], first: bool = True) -> Normalized:
    """Return a text with other letters, perhaps all but the first, those of items as they are."""
    characters: list[str] = []
    origin: list[Span] = []
    kept = {place for item in items(written(source)) for place in range(*item.span)} | (
        {0} if first else set()
    )
    for place, (character, span) in enumerate(zip(source.text, source.origin, strict=True)):
        changed = character if place in kept else change(character)
        characters.append(changed)
        origin += [span] * len(changed)
    return Normalized("".join(characters), source.original, tuple(origin))


def _capitalized(source: Normalized) -> Normalized:
    """Return a text with a capital at its beginning."""
    first = source.text[:1].title()
    origin = source.origin[:1] * len(first) + source.origin[1:]
    return Normalized(first + source.text[1:], source.original, origin)


def _outside(found: Sequence[Item], terms: Sequence[Span]) -> list[Item]:
    """Return the items that lie in no term."""
    return [one for one in found if not any(a < one.span[1] and one.span[0] < b for a, b in terms)]


def _with_stand_ins(source: Normalized, number: int, terms: Sequence[Span]) -> Attempt:
    """Return the attempt to translate common words in the place of rare items, and to put these back."""
    text = written(source)
    found = _outside(items(text), terms)
    words_for = list(zip(stand_ins(found, text, number), found, strict=True))
    read = substitute(source, [(item.span, word) for word, item in words_for])
    pairs = tuple((word, item.text) for word, item in words_for)
    return Attempt((read,), stand_ins=pairs, judged=text, flag="kept")


def _around_items(source: Normalized, terms: Sequence[Span], *, capitals: bool) -> Attempt:
    """Return the attempt to translate what stands between the items, which then cannot be lost."""
    cuts: list[tuple[Span, bool]] = []
    place = 0
    for item in _outside(items(written(source)), terms):
        cuts += [((place, item.span[0]), False), (item.span, True)]
        place = item.span[1]
    cuts.append(((place, len(source.text)), False))
    stretches: list[Normalized | Copied] = []
    joints: list[str] = []
    end = 0
    for (start, stop), is_item in cuts:
        inner = source.text[start:stop]
        if not inner.strip():
            continue
        first, last = start + len(inner) - len(inner.lstrip()), start + len(inner.rstrip())
        stretch = Normalized(source.text[first:last], source.original, source.origin[first:last])
        if stretches:
            joints.append(source.text[end:first])
        # Signs between items, such as the stop after a number, are no sentence either.
        copied = is_item or not any(map(str.isalnum, stretch.text))
        stretches.append(Copied(stretch) if copied else stretch)
        end = last
    return Attempt(tuple(stretches), capitals=capitals, flag="around", joints=tuple(joints))
