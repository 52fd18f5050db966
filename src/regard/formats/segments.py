"""What all formats share: segments to translate, and a text in which they are replaced."""

import codecs
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field

from regard.errors import DocumentError
from regard.text.markup import Markup


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a document that is translated whole, and how its translation is written at its place.

    `start` and `end` are characters of the document, or of a part of it. `line` counts from 1; in an archive
    it is the paragraph. The text has tags if `markup` is given. `write` is told the translation, with the
    tags in it. `annotate` is told a note on the translation, and returns the changes that put it into the
    document; None if the format has no place for notes.
    """

    text: str
    start: int
    end: int
    line: int
    markup: Markup | None = None
    write: Callable[[str], str] = str
    annotate: "Callable[[str], list[Edit]] | None" = None


@dataclass(frozen=True, slots=True)
class Said:
    """The translation of a segment, with the tags in it, and a note on it, such as its quality."""

    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """Characters of a document that are replaced by a text."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """The languages of the translation, and whether what has a translation is translated again.

    `skipped` counts, by reason, what is left as it is.
    """

    source: str
    target: str
    again: bool = False
    skipped: Counter[str] = field(default_factory=Counter)


HAS_TRANSLATION = "with a translation"
"""A reason to skip."""

Work = Generator[list[Segment], Sequence[Said], str]
"""Yields segments, is sent their translations, and returns the document. It may yield several times."""


def replaced(text: str, segments: Sequence[Segment], edits: Iterable[Edit] = ()) -> Work:
    """Translate the segments, put the translations into their places, and return the text."""
    written = yield list(segments)
    changes = list(edits)
    for one, said in zip(segments, written, strict=True):
        changes.append(Edit(one.start, one.end, one.write(said.text)))
        if said.note and one.annotate is not None:
            changes += one.annotate(said.note)
    return changed(text, changes)


def changed(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with its edits; those at the same place in the order in which they are given."""
    place, pieces = 0, []
    for one in sorted(edits, key=lambda one: (one.start, one.end)):
        pieces += [text[place : one.start], one.text]
        place = one.end
    return "".join([*pieces, text[place:]])


def has_words(text: str) -> bool:
    """Tell whether there is anything to translate in a text."""
    return any(map(str.isalpha, text))


class Lines:
    """Tells which line of a text a character is in."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def at(self, place: int) -> int:
        """Return the line, counted from 1."""
        return bisect_right(self._starts, place)


_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARED = re.compile(
    rb"""(?:<\?xml[^>]{0,80}?\sencoding|<meta[^>]{0,200}?charset)\s*=\s*["']?([\w.:-]+)""", re.I
)


@dataclass(frozen=True, slots=True)
class Encoded:
    """The text of a file, and how it was written in bytes."""

    text: str
    encoding: str
    mark: bytes = b""

    @classmethod
    def of(cls, data: bytes, *, declared: bool = False) -> "Encoded":
        """Return the text of bytes: in the encoding of its mark, the declared one, or UTF-8."""
        mark, encoding = next(((m, name) for m, name in _MARKS if data.startswith(m)), (b"", "utf-8"))
        found = _DECLARED.search(data[:2000]) if declared and not mark else None
        if found:
            encoding = found[1].decode("ascii")
        try:
            text = data[len(mark) :].decode(encoding)
        except LookupError:
            raise DocumentError(f"is in {encoding[:40]!r}, which is not known; convert it to UTF-8") from None
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise DocumentError(f"line {line:,} is not {encoding}; convert the file to UTF-8") from None
        if "\0" in text:
            raise DocumentError("has NUL characters; convert it to UTF-8")
        return cls(text, encoding, mark)

    def bytes_of(self, text: str, escape: bool = False) -> bytes:
        """Return another text in the same encoding; `escape` writes what it lacks as XML does."""
        try:
            return self.mark + text.encode(self.encoding, "xmlcharrefreplace" if escape else "strict")
        except UnicodeEncodeError as error:
            lacking = text[error.start]
            raise DocumentError(
                f"is in {self.encoding}, which has no {lacking!r}; convert it to UTF-8 first"
            ) from None
