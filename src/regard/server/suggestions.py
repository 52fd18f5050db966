"""Corrections that clients send, kept in a SQLite file: what a later training can learn from."""

import re
import sqlite3
import threading
import time
from html import escape
from pathlib import Path

from regard.corpus.suggestions import TABLE, Suggestion, read_suggestions
from regard.errors import OutputError
from regard.files import without_compression, writing
from regard.server.errors import ApiError
from regard.server.store import opened


class Suggestions:
    """The file of suggestions. What was added is on the disk when `add` returns."""

    def __init__(self, path: Path, max_rows: int) -> None:
        self._max_rows = max_rows
        self._lock = threading.Lock()
        self._connection = opened(path, "suggestions", (TABLE,))

    def add(self, one: Suggestion, client: str) -> None:
        """Keep a suggestion; one that is there already is not kept twice."""
        row = (one.source_language, one.target_language, one.source, one.target)
        with self._lock:
            try:
                with self._connection:
                    (count,) = self._connection.execute("select count(*) from suggestions").fetchone()
                    if count >= self._max_rows:
                        raise ApiError(503, "the server keeps no more suggestions")
                    known = self._connection.execute(
                        "select 1 from suggestions where source_language = ? and target_language = ? "
                        "and source = ? and target = ?",
                        row,
                    ).fetchone()
                    if known is None:
                        self._connection.execute(
                            "insert into suggestions (source_language, target_language, source, target, "
                            "time, client) values (?, ?, ?, ?, ?, ?)",
                            (*row, time.time(), client),
                        )
            except sqlite3.Error as error:
                raise ApiError(503, f"the suggestion could not be kept ({type(error).__name__})", 1) from None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def write_suggestions(path: Path, out: Path, languages: tuple[str, str] | None = None) -> int:
    """Write the suggestions to a TSV or TMX file, and return how many.

    `languages` chooses those from one language into another.
    """
    wanted = [
        one
        for one in read_suggestions(path)
        if languages is None or (one.source_language, one.target_language) == languages
    ]
    suffix = without_compression(out).suffix.lower()
    if suffix not in (".tsv", ".tmx"):
        raise OutputError(f"{out}: suggestions are written as .tsv or .tmx; choose one of these names")
    directions = sorted({f"{one.source_language} {one.target_language}" for one in wanted})
    if suffix == ".tsv" and len(directions) > 1:
        raise OutputError(
            f"{out}: a table has one direction, and there are {', '.join(directions)}; use --languages"
        )
    with writing(out) as (stream,):
        if suffix == ".tmx":
            stream.write(_TMX_HEAD.encode())
        for one in wanted:
            stream.write((_tmx(one) if suffix == ".tmx" else _row(one)).encode())
        if suffix == ".tmx":
            stream.write(b"</body></tmx>\n")
    return len(wanted)


_TMX_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4"><header creationtool="regard" creationtoolversion="1" segtype="sentence" o-tmf="regard"
 adminlang="en" srclang="*all*" datatype="plaintext"/><body>
"""
_WHITE = re.compile(r"[\t\r\n]+")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _row(one: Suggestion) -> str:
    return f"{_WHITE.sub(' ', one.source)}\t{_WHITE.sub(' ', one.target)}\n"


def _tmx(one: Suggestion) -> str:
    sides = ((one.source_language, one.source), (one.target_language, one.target))
    units = (
        f'<tuv xml:lang="{escape(code)}"><seg>{escape(_NOT_XML.sub("", text))}</seg></tuv>'
        for code, text in sides
    )
    return f"<tu>{''.join(units)}</tu>\n"
