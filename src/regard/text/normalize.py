"""The cleaning that every text goes through, the same in training and in translating.

It changes how a text is written, never what it says:

1. invisible characters go: controls, byte order mark, zero-width space, word joiner, soft hyphen
   (the joiners that shape emoji and Persian stay);
2. letters and their accents are joined (Unicode NFC): a Korean file name from a Mac and the same
   word typed on Windows become equal. Compatibility forms (½, ﬁ, full width) stay as they are;
3. typographic apostrophes and quotation marks become ' and " if `fold_quotes` is set: for source
   text, where people type either; a target keeps its typography;
4. every kind of white space, line breaks included, becomes one space; none at the ends.
"""

import re
import unicodedata
from dataclasses import dataclass

from regard.text.words import Span

_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u200b\u2060\ufeff]")
_WHITE = re.compile(r"\s+")
_QUOTES = dict.fromkeys("’‘´`‚‛ʼ", "'") | dict.fromkeys("“”„‟″", '"')


@dataclass(frozen=True, slots=True)
class Normalized:
    """A normalised text that remembers where each of its characters stood in the original."""

    text: str
    original: str
    origin: tuple[Span, ...]

    def to_original(self, span: Span) -> Span:
        """Return the characters of the original that became text[start:end]."""
        start, end = span
        if start == end:
            place = self.origin[start][0] if start < len(self.origin) else len(self.original)
            return place, place
        return self.origin[start][0], self.origin[end - 1][1]


def normalize(text: str, *, fold_quotes: bool = False) -> str:
    """Return the text cleaned by the rules above. Doing it twice changes nothing more."""
    # Nearly every text is clean already, so each rule first asks whether it has anything to do.
    # No invisible character is printable, and no white space but the space.
    printable = text.isprintable()
    if not text.isascii():
        if not printable:
            text = _INVISIBLE.sub("", text)
        text = unicodedata.normalize("NFC", text)
    if fold_quotes:
        text = _fold(text)
    if not printable or "  " in text or text[:1] == " " or text[-1:] == " ":
        text = _WHITE.sub(" ", _INVISIBLE.sub("", text)).strip(" ")
    return text


def trace_normalize(text: str, *, fold_quotes: bool = False) -> Normalized:
    """Return what `normalize` returns, with the place of every character in the original."""
    if normalize(text, fold_quotes=fold_quotes) == text:  # nearly always
        return Normalized(text, text, tuple((place, place + 1) for place in range(len(text))))
    characters: list[str] = []
    origin: list[Span] = []
    for segment, start, end in _segments(text):
        composed = unicodedata.normalize("NFC", segment)
        if fold_quotes:
            composed = _fold(composed)
        for offset, character in enumerate(composed):
            # A segment that NFC changed is one unit: each of its characters stands for all of it.
            place = (start + offset, start + offset + 1) if composed == text[start:end] else (start, end)
            if character.isspace():
                if characters and characters[-1] == " ":
                    origin[-1] = (origin[-1][0], place[1])
                    continue
                character = " "
            characters.append(character)
            origin.append(place)
    while characters and characters[-1] == " ":
        characters.pop()
        origin.pop()
    first = 1 if characters and characters[0] == " " else 0
    return Normalized("".join(characters[first:]), text, tuple(origin[first:]))


def _fold(text: str) -> str:
    for sign, plain in _QUOTES.items():
        if sign in text:
            text = text.replace(sign, plain)
    return text


def _segments(text: str) -> list[tuple[str, int, int]]:
    """Return runs that NFC treats on their own, without invisible characters, and where they stood."""
    segments: list[tuple[str, int, int]] = []
    for place, character in enumerate(text):
        if _INVISIBLE.match(character):
            continue
        if segments and _joins(character):
            before, start, _ = segments[-1]
            segments[-1] = (before + character, start, place + 1)
        else:
            segments.append((character, place, place + 1))
    return segments


def _joins(character: str) -> bool:
    """Tell whether NFC may merge the character into the one before: marks, and Korean vowels and finals."""
    return (
        unicodedata.category(character)[0] == "M"
        or "\u1160" <= character <= "\u11ff"
        or "\ud7b0" <= character <= "\ud7ff"
    )
