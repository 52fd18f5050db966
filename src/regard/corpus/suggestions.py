"""Corrections that a server has kept in its SQLite file, read as sentence pairs."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from regard.corpus.input_file import Format, InputFile, Pair
from regard.corpus.language_codes import Languages, matches
from regard.errors import CorpusError

BUSY_SECONDS = 5.0  # how long to wait while a server writes
TABLE = """
create table if not exists suggestions (
    id integer primary key, time real not null, source_language text not null, target_language text not null,
    source text not null, target text not null, client text not null
)
"""
_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A better translation of a text."""

    source_language: str
    target_language: str
    source: str
    target: str


def is_sqlite(path: Path) -> bool:
    """Tell whether a file is one of SQLite, whatever its name."""
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def read_suggestions(path: Path) -> Iterator[Suggestion]:
    """Yield the suggestions of a file, oldest first."""
    if not path.is_file():
        raise CorpusError(f"{path}: there is no such file")
    return (one for _, one in _rows(path))


def suggestions(path: Path, wanted: Languages) -> Format:
    """Return how to read the suggestions of one direction; those that are added later are not read."""
    last, directions = 0, dict[Languages, None]()
    for number, one in _rows(path):
        last = number
        directions[Languages.of(one)] = None
    fitting = [one for one in directions if _fits(one, wanted)]
    if not fitting:
        raise CorpusError(f"{path}: has suggestions from {_told(directions)}, none from {wanted}")
    if None in (wanted.source, wanted.target) and len(fitting) > 1:
        raise CorpusError(
            f"{path}: has suggestions from {_told(fitting)}; name the source language and the target "
            "language to read (--source, --target)"
        )

    def pairs(_: Sequence[InputFile], skipped: Counter[str]) -> Iterator[Pair]:
        for number, one in _rows(path):
            if number > last:
                return
            if _fits(Languages.of(one), wanted):
                yield Pair(number, one.source, one.target)
            else:
                skipped["of another direction"] += 1

    languages = Languages(wanted.source or fitting[0].source, wanted.target or fitting[0].target)
    return Format(languages, pairs, "row")


def _fits(one: Languages, wanted: Languages) -> bool:
    sides = ((one.source, wanted.source), (one.target, wanted.target))
    return all(code is None or its is None or matches(code, its) for code, its in sides)


def _told(directions: Iterable[Languages]) -> str:
    return ", ".join(map(str, list(directions)[:20])) or "no language"


def _rows(path: Path) -> Iterator[tuple[int, Suggestion]]:
    address = f"{path.absolute().as_uri()}?mode=ro"
    query = "select id, source_language, target_language, source, target from suggestions order by id"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS)) as connection:
            for number, *texts in connection.execute(query):
                if not all(isinstance(text, str) for text in texts):
                    raise CorpusError(f"{path}: suggestion {number} is not text; remove it")
                yield number, Suggestion(*texts)
    except sqlite3.Error as error:
        raise CorpusError(
            f"{path}: is not a file of suggestions ({error}); name one of regard serve --suggestions"
        ) from None
