"""Glossaries that clients keep on the server, in SQLite; each has a dictionary for some language pairs."""

import json
import sqlite3
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from regard.errors import CorpusError
from regard.server.errors import ApiError
from regard.server.store import opened
from regard.terms.glossary import Glossary

_TABLES = (
    "create table if not exists glossaries "
    "(id text primary key, owner text not null, name text not null, time real not null)",
    "create table if not exists dictionaries (glossary text not null, source text not null, "
    "target text not null, terms text not null, num_terms integer not null, "
    "primary key (glossary, source, target))",
)
_MAX_NAME = 1000  # characters
_MAX_TERMS = 10_000  # of a dictionary
_MAX_GLOSSARIES = 100  # of an owner
_MAX_CHARACTERS = 50_000_000  # of all dictionaries
_NUM_BUILT = 16  # glossaries that are kept ready for use

Pair = tuple[str, str]
Terms = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StoredGlossary:
    """A glossary that is kept: its name, when it was made, and how many terms it has by pair of languages."""

    id: str
    name: str
    time: float
    sizes: dict[Pair, int]


class Glossaries:
    """The glossaries of all owners; an owner sees only its own. Without a path they are kept in memory."""

    def __init__(self, path: Path | None) -> None:
        self._connection = opened(path, "glossaries", _TABLES)
        self._lock = threading.Lock()
        self._built: OrderedDict[tuple[str, tuple[str, ...], Pair], Glossary] = OrderedDict()

    def create(self, owner: str, name: str, dictionaries: Mapping[Pair, Terms]) -> StoredGlossary:
        """Keep a new glossary."""
        for terms in dictionaries.values():
            _check(terms)
        id = str(uuid.uuid4())
        with self._changing():
            (count,) = self._one("select count(*) from glossaries where owner = ?", owner)
            if count >= _MAX_GLOSSARIES:
                raise ApiError(400, f"at most {_MAX_GLOSSARIES} glossaries are kept; delete one")
            values = (id, owner, _named(name), time.time())
            self._connection.execute("insert into glossaries values (?, ?, ?, ?)", values)
            for pair, terms in dictionaries.items():
                self._put(id, pair, terms)
            return self._find(owner, id)

    def all_of(self, owner: str) -> list[StoredGlossary]:
        """Return the glossaries of an owner, oldest first."""
        with self._lock:
            rows = self._connection.execute(
                "select id from glossaries where owner = ? order by time, id", (owner,)
            ).fetchall()
            return [self._find(owner, id) for (id,) in rows]

    def find(self, owner: str, id: str) -> StoredGlossary:
        """Return a glossary."""
        with self._lock:
            return self._find(owner, id)

    def change(
        self, owner: str, id: str, name: str | None, dictionaries: Mapping[Pair, Terms], *, merges: bool
    ) -> StoredGlossary:
        """Give a glossary another name and other terms; if `merges`, beside those it has."""
        with self._changing():
            self._find(owner, id)
            if name is not None:
                self._connection.execute("update glossaries set name = ? where id = ?", (_named(name), id))
            for pair, terms in dictionaries.items():
                before = self._terms(id, pair) if merges else None
                _check(whole := {**(before or {}), **terms})
                self._put(id, pair, whole)
            return self._find(owner, id)

    def delete(self, owner: str, id: str, pair: Pair | None = None) -> None:
        """Delete a glossary, or its dictionary of a pair."""
        with self._changing():
            self._find(owner, id)
            if pair is None:
                self._connection.execute("delete from dictionaries where glossary = ?", (id,))
                self._connection.execute("delete from glossaries where id = ?", (id,))
                return
            gone = self._connection.execute(
                "delete from dictionaries where glossary = ? and source = ? and target = ?", (id, *pair)
            )
            if not gone.rowcount:
                raise _no_dictionary(pair)

    def terms(self, owner: str, id: str, pair: Pair) -> dict[str, str]:
        """Return the terms of a dictionary."""
        with self._lock:
            self._find(owner, id)
            found = self._terms(id, pair)
        if found is None:
            raise _no_dictionary(pair)
        return found

    def built(self, owner: str, ids: Sequence[str], pair: Pair) -> Glossary:
        """Return the terms of some glossaries as one; the first one that has a term decides."""
        key = owner, tuple(ids), pair
        with self._lock:
            known = self._built.get(key)
        if known is None:
            terms: dict[str, str] = {}
            for id in reversed(ids):
                terms |= self.terms(owner, id, pair)
            known = Glossary.of(terms)
            with self._lock:
                self._built[key] = known
                while len(self._built) > _NUM_BUILT:
                    self._built.popitem(last=False)
        return known

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Change everything or nothing."""
        with self._lock:
            self._built.clear()
            try:
                with self._connection:
                    yield
            except sqlite3.Error as error:
                raise ApiError(503, f"the glossary could not be kept ({type(error).__name__})", 1) from None

    def _one(self, query: str, *values: object) -> tuple[int, ...]:
        row: tuple[int, ...] = self._connection.execute(query, values).fetchone()
        return row

    def _find(self, owner: str, id: str) -> StoredGlossary:
        row = self._connection.execute(
            "select id, name, time from glossaries where id = ? and owner = ?", (_text(id), owner)
        ).fetchone()
        if row is None:
            raise ApiError(404, "there is no such glossary")
        sizes = self._connection.execute(
            "select source, target, num_terms from dictionaries where glossary = ? order by source, target",
            (id,),
        )
        found_id, name, made = row
        return StoredGlossary(found_id, name, made, {(a, b): size for a, b, size in sizes})

    def _terms(self, id: str, pair: Pair) -> dict[str, str] | None:
        row = self._connection.execute(
            "select terms from dictionaries where glossary = ? and source = ? and target = ?", (id, *pair)
        ).fetchone()
        return None if row is None else json.loads(row[0])

    def _put(self, id: str, pair: Pair, terms: Terms) -> None:
        text = json.dumps(terms, ensure_ascii=False)
        (size,) = self._one("select coalesce(sum(length(terms)), 0) from dictionaries")
        if size + len(text) > _MAX_CHARACTERS:
            raise ApiError(503, "the server keeps no more glossaries")
        self._connection.execute(
            "insert or replace into dictionaries values (?, ?, ?, ?, ?)", (id, *pair, text, len(terms))
        )


def _check(terms: Terms) -> None:
    """Raise if these are not the terms of a glossary."""
    if not terms:
        raise ApiError(400, "a glossary needs entries")
    if len(terms) > _MAX_TERMS:
        raise ApiError(400, f"{len(terms):,} entries; a glossary may have {_MAX_TERMS:,}")
    for pair in terms.items():
        for term in pair:
            _text(term)
    try:
        Glossary.of(terms)
    except CorpusError as error:
        raise ApiError(400, str(error)) from None


def _named(name: str) -> str:
    if not name.strip() or len(name) > _MAX_NAME:
        raise ApiError(400, f"a glossary needs a name of at most {_MAX_NAME:,} characters")
    return _text(name)


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ApiError(400, "a text has half a surrogate pair, which is no character") from None
    return value


def _no_dictionary(pair: Pair) -> ApiError:
    return ApiError(404, f"the glossary has no entries from {pair[0].upper()[:20]} to {pair[1].upper()[:20]}")
