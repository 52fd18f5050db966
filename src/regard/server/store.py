"""A SQLite file of the server: what was written is on the disk when the call returns."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from regard.corpus.suggestions import BUSY_SECONDS
from regard.errors import OutputError


def opened(path: Path | None, what: str, tables: Sequence[str]) -> sqlite3.Connection:
    """Return the connection to a file, made if it is not there; None is a store in memory."""
    try:
        connection = sqlite3.connect(path or ":memory:", timeout=BUSY_SECONDS, check_same_thread=False)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        with connection:
            for table in tables:
                connection.execute(table)
    except sqlite3.Error as error:
        raise OutputError(f"{path}: cannot keep {what} there ({error})") from None
    return connection
