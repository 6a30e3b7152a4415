"""The database in which OpenClaw keeps an agent's sessions since 2026.8: a row holds what a line of JSONL did.

`transcript_events` holds the records of each session, large ones packed by zstd; `session_windows` tells which session
follows which. What was deleted, reset or long unused lies whole in an archive of the same database, or in a file that
it names.
"""

import io
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from lcm.errors import TranscriptError
from lcm.files import is_below
from lcm.given import opened, opened_bytes
from lcm.transcript.database import has_tables, parsed, snapshot
from lcm.transcript.identity import native_id
from lcm.transcript.recorded_file import MAX_LINE_BYTES, RecordedFile

Records = Callable[[RecordedFile], Iterator[tuple[int, Any]]]
"""Gives the records of a session with their lines, from the first; what cannot be read is put aside by the file."""

DATABASES = (".sqlite", ".sqlite3", ".db")
"""How the name of one may end."""
_COLD = "cold"
_ARCHIVES = ("session_transcript_cold_archives", "session_transcript_archives")


class StoredSession(NamedTuple):
    """One session of a database."""

    session_id: str
    window: dict[str, Any] | None
    """Its row of `session_windows`."""
    states: tuple[Records, ...]
    """The newest first, then those in archives; one may hold what those before it do."""


def is_agent_database(file: RecordedFile) -> bool:
    """Whether the file is such a database."""
    return has_tables(file, transcript_events="session_id seq event_json")


def stored_sessions(connection: sqlite3.Connection, session_id: str | None = None) -> Iterator[StoredSession]:
    """Give the sessions of a database that hold records, in the order in which they began.

    Args:
        session_id: the only one that is wanted; None = all.
    """
    windows: dict[str, dict[str, Any]] = {}
    if _columns(connection, "session_windows"):
        windows = {row["session_id"]: dict(row) for row in connection.execute("SELECT * FROM session_windows")}
    archives: dict[str, list[Records]] = {}
    for table in filter(partial(_columns, connection), _ARCHIVES):
        archived = f"SELECT rowid, session_id FROM {table} ORDER BY rowid DESC"  # noqa: S608  # a name of ours
        for row in connection.execute(archived):
            archives.setdefault(row["session_id"], []).append(partial(_archived, connection, table, row["rowid"]))
    current = "SELECT session_id FROM transcript_events GROUP BY session_id ORDER BY min(rowid)"
    states: dict[str, list[Records]]
    states = {row["session_id"]: [partial(_rows, connection, row["session_id"])] for row in connection.execute(current)}
    for archived, records in archives.items():
        states.setdefault(archived, []).extend(records)
    for found in sorted(states, key=lambda one: _began(windows.get(one))):
        if session_id in (None, found):
            yield StoredSession(native_id(found), windows.get(found), tuple(states[found]))


def beside(database: Path) -> list[Path]:
    """The archives in files that are read along with a database."""
    file = RecordedFile(database)
    if database.suffix not in DATABASES or not is_agent_database(file):
        return []
    found: list[Path | None] = []
    with snapshot(file) as connection:
        for table in _ARCHIVES:
            if "archive_name" in _columns(connection, table):
                names = f"SELECT archive_name FROM {table} WHERE archive_blob IS NULL ORDER BY rowid"  # noqa: S608  # a name of ours
                found += [_cold(database, row["archive_name"]) for row in connection.execute(names)]
    return list(filter(None, found))


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row["name"] for row in connection.execute(f"PRAGMA table_info({table})")}


def _began(window: dict[str, Any] | None) -> float:
    instant = (window or {}).get("created_at")
    return instant if isinstance(instant, int | float) else 0.0


def _rows(connection: sqlite3.Connection, session_id: str, file: RecordedFile) -> Iterator[tuple[int, Any]]:
    """The records of `transcript_events`; a line is a row's number in the table."""
    packed = "event_zstd" if "event_zstd" in _columns(connection, "transcript_events") else "NULL"
    # As bytes: text that is not UTF-8 spoils one row, not the query.
    query = (
        f"SELECT rowid, seq, coalesce(CAST(event_json AS BLOB), {packed}) AS record FROM transcript_events "  # noqa: S608  # a name of ours
        "WHERE session_id = ? ORDER BY seq"
    )
    try:
        for row in connection.execute(query, (session_id,)):
            with file.record(row["rowid"], f"session {session_id}, record {row['seq']}: "):
                yield row["rowid"], parsed(_unpacked(file, row["record"]))
    except sqlite3.DatabaseError as error:
        file.put_aside(1, f"the rest of session {session_id} cannot be read: {error}", to_end=True)


def _archived(connection: sqlite3.Connection, table: str, rowid: int, file: RecordedFile) -> Iterator[tuple[int, Any]]:
    """The records of an archive, which is JSONL; a line is the archive's row in its table."""
    found = f"SELECT * FROM {table} WHERE rowid = ?"  # noqa: S608  # a name of ours
    row = dict(connection.execute(found, (rowid,)).fetchone())
    told = f"{table}, session {row['session_id']}"
    try:
        stream = _archive(file, row)
    except TranscriptError as error:
        file.put_aside(rowid, f"{told}: {error}")
        return
    with closing(stream):
        for number in count(1):
            try:
                line = stream.readline(MAX_LINE_BYTES + 1)
            except (OSError, TranscriptError) as error:
                file.put_aside(rowid, f"{told}, from line {number} of it on: {error}")
                return
            if not line:
                return
            file.bytes_read += len(line)
            with file.record(rowid, f"{told}, line {number} of it: "):
                if line.strip():
                    yield rowid, parsed(line)


def _archive(file: RecordedFile, row: dict[str, Any]) -> io.BufferedReader:
    """The archive of a row, which holds it, or names its file.

    Raises:
        TranscriptError: if there is no such file, or it cannot be opened.
    """
    if row["archive_blob"] is not None:
        return opened_bytes(row["archive_blob"], file.path, TranscriptError)
    name = row.get("archive_name")
    if (path := _cold(file.path, name)) is None:
        raise TranscriptError(f"{_COLD}/{name} is not there; put it back beside the sessions")
    if path not in file.read_along:
        file.read_along.append(path)
    try:
        return opened(path, TranscriptError)
    except OSError as error:
        raise TranscriptError(f"{_COLD}/{name} cannot be opened: {error.strerror}") from error


def _cold(database: Path, name: object) -> Path | None:
    """The file in which an archive lies: `agents/<agent>/sessions/cold` of a database in `agents/<agent>/agent`."""
    if not isinstance(name, str) or Path(name).name != name:
        return None
    folder = database.resolve().parent
    path = (folder.parent / "sessions" if folder.name == "agent" else folder) / _COLD / name
    return path if path.is_file() and is_below(path.resolve(), [path.parent.resolve()]) else None


def _unpacked(file: RecordedFile, record: bytes | None) -> bytes:
    if record is None:
        raise TranscriptError("the row holds no record")
    try:
        with closing(opened_bytes(record, file.path, TranscriptError)) as stream:
            unpacked = stream.read(MAX_LINE_BYTES + 1)
    except OSError as error:
        raise TranscriptError(f"cannot be unpacked: {error}") from error
    file.bytes_read += len(unpacked)
    return unpacked
