"""A glossary: how terms of the source must be translated, read from a table, found in sentences."""

import codecs
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from regard.errors import CorpusError
from regard.files import READ_ERRORS, check_expansion, decompressed
from regard.text.normalize import normalize
from regard.text.words import Span, words

MAX_TERM = 200
"""Characters of a term."""
_FORBIDS = "-"
_MAX_BYTES = 64 << 20
_FIRST_UNSPACED = "\u2e80"  # from here on there are ideographs, which are words of their own


@dataclass(frozen=True, slots=True)
class Entry:
    """A source term, the forms of its translation (the first is the usual one), and those not to be used."""

    source: str
    targets: tuple[str, ...]
    forbidden: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The entry in a message: the usual target, or what is forbidden."""
        return self.targets[0] if self.targets else f"{_FORBIDS}{self.forbidden[0]}"


@dataclass(frozen=True, slots=True)
class Match:
    """Where an entry stands in a sentence."""

    entry: Entry
    span: Span


@dataclass(frozen=True, eq=False)
class Glossary:
    """Terms and their translations.

    A term in lower case is found in any case, one with a capital only as it is written. Words are compared
    whole; an elided article (*l'*) and an English *'s* are not part of a word.
    """

    entries: tuple[Entry, ...]
    _by_first: dict[str, list[tuple[tuple[str, ...], Entry]]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Make the index: entries by their first word in lower case, longest first."""
        index: dict[str, list[tuple[tuple[str, ...], Entry]]] = {}
        for entry in self.entries:
            cut = _cut(entry.source)
            index.setdefault(cut[0].lower(), []).append((cut, entry))
        for found in index.values():
            # Of two as long, the one that says more about case comes first.
            found.sort(key=lambda one: (-len(one[0]), one[1].source.islower()))
        object.__setattr__(self, "_by_first", index)

    @cached_property
    def digest(self) -> str:
        """The same for glossaries with the same entries in the same order, and short."""
        return hashlib.sha256(repr(self.entries).encode("utf-8", "surrogatepass")).hexdigest()

    @classmethod
    def of(cls, terms: Mapping[str, str | Sequence[str]], name: str = "the glossary") -> "Glossary":
        """Return the glossary of terms with their translation, or with several forms of it."""
        rows = [
            (f"{name}: {source!r:.40}", [source, *([target] if isinstance(target, str) else target)])
            for source, target in terms.items()
        ]
        return cls._checked(rows)

    @classmethod
    def read(cls, path: str | Path) -> "Glossary":
        """Return the glossary of a table, separated by tabs, in UTF-8: source, target, further forms.

        Blank lines and lines that begin with `#` are skipped. A form that begins with `-` is forbidden.
        """
        path = Path(path)
        try:
            with path.open("rb") as raw:
                check_expansion(path)
                data = decompressed(path, raw).read(_MAX_BYTES + 1)
        except READ_ERRORS as error:
            raise CorpusError(f"{path}: cannot be read ({error})") from None
        if len(data) > _MAX_BYTES:
            raise CorpusError(f"{path}: has more than {_MAX_BYTES >> 20} MiB, which is no glossary")
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise CorpusError(f"{path}: is UTF-16; convert it to UTF-8")
        return cls.parse(data, str(path))

    @classmethod
    def parse(cls, data: bytes, name: str, separator: str = "\t") -> "Glossary":
        """Return the glossary of the lines of a table."""
        rows = []
        for number, line in enumerate(data.removeprefix(codecs.BOM_UTF8).split(b"\n"), 1):
            try:
                text = line.decode().rstrip("\r")
            except UnicodeDecodeError as error:
                raise CorpusError(
                    f"{name}: line {number:,}: byte {error.start + 1} ({line[error.start]:#04x}) is not "
                    "UTF-8; convert the file"
                ) from None
            if text.strip() and not text.startswith("#"):
                rows.append((f"{name}: line {number:,}", text.split(separator)))
        return cls._checked(rows)

    @classmethod
    def _checked(cls, rows: Sequence[tuple[str, Sequence[str]]]) -> "Glossary":
        found: dict[str, tuple[str, Entry]] = {}
        for where, columns in rows:
            entry = _entry(where, columns)
            before = found.setdefault(entry.source, (where, entry))
            if before[1] != entry:
                raise CorpusError(
                    f"{where}: {entry.source!r} is {entry.shown!r}, and {before[1].shown!r} at {before[0]}; "
                    "put all forms of a term into one row"
                )
        return cls(tuple(entry for _, entry in found.values()))

    def matches(self, text: str, *, ignore_case: bool = False) -> list[Match]:
        """Return the terms of a normalised sentence from left to right, the longest at each place."""
        spans = words(text)
        cut = [text[slice(*span)] for span in spans]
        plain = [one.removesuffix("'s").removesuffix("'S") or one for one in cut]
        found, place = [], 0
        while place < len(cut):
            match = self._at(cut, plain, place, ignore_case)
            if match is None:
                place += 1
                continue
            entry, num_words = match
            last = place + num_words - 1
            start, end = spans[place][0], spans[last][1]
            if entry.source.lower().rpartition(" ")[2][-2:] != "'s":
                end -= len(cut[last]) - len(plain[last])
            found.append(Match(entry, (start, end)))
            place += num_words
        return found

    def _at(
        self, cut: Sequence[str], plain: Sequence[str], place: int, ignore_case: bool
    ) -> tuple[Entry, int] | None:
        """Return the longest entry that begins at a word, and how many words it has."""
        firsts = dict.fromkeys((cut[place].lower(), plain[place].lower()))
        some = [one for first in firsts for one in self._by_first.get(first, ())]
        if len(firsts) > 1:
            some.sort(key=lambda one: -len(one[0]))
        for term, entry in some:
            size = len(term)
            if place + size > len(cut):
                continue
            for last in (cut[place + size - 1], plain[place + size - 1]):
                seen = (*cut[place : place + size - 1], last)
                any_case = ignore_case or entry.source == entry.source.lower()
                if seen == term or (any_case and all(map(_same, seen, term))):
                    return entry, size
        return None


def count(form: str, text: str, *, ignore_case: bool = False) -> int:
    """Return how many times a form stands in a text as whole words; its first letter may be capital."""
    size, place, times = len(form), 0, 0
    if ignore_case:
        form, text = form.lower(), text.lower()
    upper = form[:1].upper() + form[1:]
    while (place := _next(text, form, upper, place)) >= 0:
        before, after = text[place - 1 : place], text[place + size : place + size + 1]
        whole = not (before.isalnum() and form[0].isalnum()) and not (after.isalnum() and form[-1].isalnum())
        times += whole
        place += size if whole else 1
    return times


def _next(text: str, form: str, upper: str, place: int) -> int:
    found = [at for at in (text.find(form, place), text.find(upper, place)) if at >= 0]
    return min(found, default=-1)


def _cut(term: str) -> tuple[str, ...]:
    """Return the words of a term; nearly all terms are letters and spaces, and need no pattern."""
    if term.replace(" ", "").isalnum() and max(term) < _FIRST_UNSPACED:
        return tuple(term.split(" "))
    return tuple(term[slice(*span)] for span in words(term))


def _same(seen: str, term: str) -> bool:
    return seen.lower() == term.lower()


def _entry(where: str, columns: Sequence[str]) -> Entry:
    """Return the entry of a row, or raise what is wrong with it."""
    for column in columns:
        if not isinstance(column, str):
            raise CorpusError(f"{where}: {column!r:.40} is not a text")
    source = normalize(columns[0], fold_quotes=True)
    forms = list(dict.fromkeys(filter(None, map(normalize, columns[1:]))))
    if not source:
        raise CorpusError(f"{where}: the source term is empty")
    if not forms:
        raise CorpusError(f"{where}: {source!r:.60} has no translation; write it into the second column")
    if longest := next((one for one in (source, *forms) if len(one) > MAX_TERM), None):
        raise CorpusError(f"{where}: the term {longest[:40]!r}... has more than {MAX_TERM} characters")
    # An option such as -v stands on both sides as it is.
    wanted = [one for one in forms if not one.startswith(_FORBIDS) or one == source]
    forbidden = [one.removeprefix(_FORBIDS).strip() for one in forms if one not in wanted]
    if "" in forbidden:
        raise CorpusError(f"{where}: write the forbidden word right after the sign: -{source}")
    if both := set(wanted) & set(forbidden):
        raise CorpusError(f"{where}: {both.pop()!r} is both a translation and forbidden")
    return Entry(source, tuple(wanted), tuple(forbidden))
