"""A SQLite database that an agent keeps: read as it stands at one moment, while its owner may be writing."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote

from lcm.errors import TranscriptError
from lcm.transcript.json_scanner import parse
from lcm.transcript.recorded_file import MAX_LINE_BYTES, RecordedFile

_WAIT_S = 5.0
"""For a lock."""


def is_database(file: RecordedFile) -> bool:
    """Whether the file begins as a SQLite database does."""
    return file.magic == b"SQLi"


def has_tables(file: RecordedFile, **columns: str) -> bool:
    """Whether a database has these tables, each with these columns (words of one text); a damaged one has none."""
    if not is_database(file):
        return False
    try:
        with _opened(file) as connection:
            return all(set(words.split()) <= column_names(connection, table) for table, words in columns.items())
    except sqlite3.Error:
        return False


def column_names(connection: sqlite3.Connection, table: str) -> set[str]:
    """The columns of a table; none where there is no such table."""
    return {row["name"] for row in connection.execute(f"PRAGMA table_info({table})")}


def parsed(value: str | bytes) -> Any:
    """The JSON that a column holds.

    Raises:
        TranscriptError: if it is longer than a line of JSONL may be.
        ValueError: if it is not JSON, or not UTF-8.
    """
    if len(value) > MAX_LINE_BYTES:
        raise TranscriptError(f"a record of more than {MAX_LINE_BYTES // 2**20} MiB")
    return parse(value if isinstance(value, str) else value.decode())


def damage(file: RecordedFile) -> str | None:
    """Why a database cannot be read, with the remedy; None where it can, or is none."""
    if is_database(file):
        try:
            with _opened(file) as connection:
                connection.execute("SELECT name FROM sqlite_master").fetchall()
        except sqlite3.Error as error:
            return _told(error)
    return None


def columns(row: Mapping[str, Any] | sqlite3.Row) -> dict[str, Any]:
    """A row by the names of its columns.

    Raises:
        TranscriptError: if one holds bytes, or text that is not UTF-8: a record has no place for these.
    """
    held = dict(row)
    if blobs := [name for name, value in held.items() if isinstance(value, bytes)]:
        raise TranscriptError(f"{blobs[0]} must be text or a number, got bytes")
    return held


@contextmanager
def snapshot(file: RecordedFile) -> Iterator[sqlite3.Connection]:
    """The database as it stands now, read-only: rows by name, in one transaction.

    Raises:
        TranscriptError: naming the file and what to do, where it is torn, or its owner holds it locked. If the file is
            not read strictly, what was given before a tear stays given, and the rest is put aside.
    """
    try:
        with _opened(file) as connection:
            connection.execute("BEGIN")
            yield connection
    except sqlite3.DatabaseError as error:
        file.put_aside(1, _told(error), to_end=True)


def _told(error: sqlite3.Error) -> str:
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        return f"the database is locked: {error}; close the program that writes it, or copy the file"
    return f"the database cannot be read on: {error}; copy it anew, with the -wal file beside it"


@contextmanager
def _opened(file: RecordedFile) -> Iterator[sqlite3.Connection]:
    address = f"file:{quote(str(file.path.resolve()))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=_WAIT_S, isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        connection.text_factory = _text
        connection.execute("PRAGMA query_only=1")
        yield connection


def _text(value: bytes) -> str | bytes:
    """A text; as bytes where it is not UTF-8, so that it spoils its row and not the query."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
