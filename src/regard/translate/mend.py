"""Small edits of a finished translation: names, numbers, quotation marks and broken characters.

Each rule acts only where the model did something that no translator would do: invent a word for a name, leave
a decimal comma in English, open a quotation and not close it, say half of a character.
"""

import re
from dataclasses import dataclass, replace
from itertools import groupby

from regard.alignment.links import WordWeights, to_words
from regard.loaded import Loaded
from regard.text.conventions import rewritten
from regard.text.normalize import Normalized
from regard.text.protect import items, written
from regard.text.words import Span, match_pieces, words
from regard.translate.edits import Edits, edited
from regard.translate.result import Part

_BROKEN = re.compile(r"\s?\ufffd+(?=\s|\Z)|\ufffd+")  # bytes that make no character
_NEAR = 1e-3  # what another batch may change of sums of weights
_BEFORE_A_START = set('.!?:;"«“(-–—•…')
_SAID_MINUS = re.compile(r"\b(?:minus|moins|below zero|negative|négati\w*)\b|마이너스|영하", re.IGNORECASE)
_CLOSING = {'"': '"', "“": "”", "«": " »"}
_OPENING = {'"': '"', "”": "“", "»": "« "}


@dataclass(frozen=True, slots=True)
class Mended:
    """A text after the edits, where its pieces are now, the rules used, and whether rounding matters."""

    text: str
    part: Part
    notes: tuple[str, ...] = ()
    is_near: bool = False


def mend(model: Loaded, source: Normalized, text: str, part: Part, judged: str | None = None) -> Mended:
    """Return a translation of one stretch with names, numbers and quotation marks put right.

    `judged` is the source with its own numbers, if the model read stand-ins for them.
    """
    look = _Look.of(source, text, part)
    names = _names(model, look)
    read = written(source) if judged is None else judged
    marks = [*_numbers(model, read, text), *_quotes(look)]
    broken: Edits = []
    if model.known_words is not None and "\ufffd" not in source.original:
        broken = [(one.span(), "") for one in _BROKEN.finditer(text)]
    edits: Edits = []
    for span, new in sorted([*names, *marks, *broken]):
        if not edits or edits[-1][0][1] <= span[0]:
            edits.append((span, new))
    if not edits:
        return Mended(text, part, is_near=look.is_near)
    after, spans = edited(text, edits, part.spans)
    notes = [note for note, made in (("copied-name", names), ("typography", marks)) if made]
    return Mended(after, replace(part, spans=tuple(spans), span=(0, len(after))), tuple(notes), look.is_near)


@dataclass(slots=True)
class _Look:
    """The words of both sides and how they look at each other; `is_near` once a close decision was made."""

    original: str
    text: str
    source_words: list[Span]  # of the stretch, as characters of the original
    words: list[Span]
    part: Part
    is_near: bool = False
    _weights: WordWeights | None = None

    @classmethod
    def of(cls, source: Normalized, text: str, part: Part) -> "_Look":
        start, end = part.source_span
        inner = words(source.original[start:end])
        return cls(source.original, text, [(a + start, b + start) for a, b in inner], words(text), part)

    def source_word(self, place: int) -> str:
        return self.original[slice(*self.source_words[place])]

    def word(self, place: int) -> str:
        return self.text[slice(*self.words[place])]

    def linked(self, place: int) -> int | None:
        """Return the source word that a word looked at most, None if that is none at all."""
        if not self.part.attention_TS.shape[1] or not self.source_words:
            return None
        if self._weights is None:
            sides = (self.part.source_spans, self.source_words), (self.part.spans, self.words)
            self._weights = to_words(self.part.attention_TS, *(match_pieces(*side) for side in sides))
        row_S = self._weights.words_TS[place]
        best, elsewhere = int(row_S.argmax()), float(self._weights.elsewhere_T[place])
        rivals = [elsewhere, *(float(weight) for n, weight in enumerate(row_S) if n != best)]
        self.is_near = self.is_near or abs(float(row_S[best]) - max(rivals)) < _NEAR
        return best if row_S[best] > elsewhere else None


def _names(model: Loaded, look: _Look) -> Edits:
    """Return what puts a name of the source in the place of each word that no training text has."""
    if model.known_words is None:
        return []
    unknown = [
        place
        for place in range(len(look.words))
        if look.word(place).replace("-", "").replace("'", "").isalpha()
        and look.word(place) not in model.known_words
        and not all(part in model.known_words for part in look.word(place).split("-"))
    ]
    found = [(place, look.linked(place)) for place in unknown]
    edits: Edits = []
    used: set[int] = set()
    for (name, _), run in groupby(found, key=lambda one: (one[1], one[0] - unknown.index(one[0]))):
        places = [place for place, _ in run]
        if name is None or name in used or not _is_name(look, name):
            continue
        used.add(name)
        copied = look.source_word(name)
        if copied not in look.text:
            edits.append(((look.words[places[0]][0], look.words[places[-1]][1]), copied))
    return edits


def _is_name(look: _Look, place: int) -> bool:
    """Tell whether a source word has a capital for another reason than that a sentence begins with it."""
    word, before = look.source_word(place), look.source_word(place - 1) if place else "."
    return word[:1].isupper() and word.replace("-", "").isalpha() and before[-1:] not in _BEFORE_A_START


def _numbers(model: Loaded, read: str, text: str) -> Edits:
    """Return what rewrites numbers that stand as the source writes them, and gives back a lost minus sign."""
    edits: Edits = []
    left = [item for item in items(text) if item.kind in ("number", "amount")] if items(read) else []
    for item in items(read):
        if item.kind not in ("number", "amount"):
            continue
        after = read[item.span[1] : item.span[1] + 12]
        new = rewritten(item.text, after, model.source_language, model.target_language)
        same = next((one for one in left if one.text in (item.text, new)), None)
        if same is None:
            continue
        left.remove(same)
        sign = _minus(read, item.span[0])
        if sign and (_minus(text, same.span[0]) or _SAID_MINUS.search(text)):
            sign = ""
        if sign or same.text != (new or same.text):
            edits.append((same.span, sign + (new or same.text)))
    return edits


def _minus(text: str, place: int) -> str:
    """Return the minus sign of the number at this place, if it has one; a hyphen within a word is none."""
    sign = text[place - 1 : place] if place else ""
    return sign if sign in ("-", "−") and not text[max(0, place - 2) : place - 1].isalnum() else ""


def _quotes(look: _Look) -> Edits:
    """Return what pairs the one quotation mark of a translation whose source has a pair, or removes it."""
    marks = [n for n in range(len(look.words)) if look.word(n) in _CLOSING or look.word(n) in _OPENING]
    pair = [n for n, span in enumerate(look.source_words) if look.original[slice(*span)] in '"«»“”„']
    if len(marks) != 1 or len(pair) != 2 or "‘" in look.text:  # which may quote too
        return []
    (mark,) = marks
    quoted = range(pair[0] + 1, pair[1])
    inside = [
        n
        for n in range(len(look.words))
        if n != mark and any(map(str.isalnum, look.word(n))) and look.linked(n) in quoted
    ]
    start, end = look.words[mark]
    sign = look.text[start:end]
    opens = sign in "“«" or (
        sign == '"' and (not look.text[:start].strip() or look.text[start - 1].isspace())
    )
    if opens and (after := [n for n in inside if n > mark]):
        place = look.words[after[-1]][1]
        return [((place, place), _CLOSING[sign])]
    if not opens and (before := [n for n in inside if n < mark]):
        place = look.words[before[0]][0]
        return [((place, place), _OPENING[sign])]
    if opens:
        end += look.text[end : end + 1].isspace() and sign == "«"
    else:
        start -= look.text[start - 1 : start].isspace()
    return [((start, end), "")]
