"""OpenClaw sessions: JSONL, the early form of pi whose entries have no ids, and an agent's database of such records.

A header, then one entry a line. Entries of type `message` become messages; all others (model changes, labels,
compactions, types unknown to us) are kept as events.

Entries form a tree by `parentId`: whoever goes back and says something else leaves a branch behind. The live branch is
the path from the last entry to the root; an entry of type `leaf` goes back without saying anything.

Of one session there may be older states, in archives of the database or in files: what an older one alone holds is a
conversation of its own, as an abandoned branch is.

The database, since 2026.8, holds in `transcript_events` the records of each session, large ones packed by zstd;
`session_windows` tells which session follows which. What was deleted, reset or long unused lies whole in an archive of
the same database, or in a file that it names.
"""

import io
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import count, groupby, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from lcm.checks import check_choice
from lcm.encoding import to_json, well_formed
from lcm.errors import TranscriptError
from lcm.given import opened, opened_bytes
from lcm.records.conversation import Event, Message
from lcm.transcript.branches import Stretches
from lcm.transcript.database import column_names, columns, has_tables, is_database, parsed, snapshot
from lcm.transcript.fields import (
    Digests,
    as_object,
    digest,
    id_in,
    kind,
    native_id,
    object_in,
    recorded_instant,
    text_in,
)  # fmt: skip
from lcm.transcript.parts import decompose
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import MAX_LINE_BYTES, RecordedFile, files_within

Branches = Literal["apart", "in_file_order"]

Records = Callable[[RecordedFile], Iterator[tuple[int, Any]]]
"""Gives the records of a session with their lines, from the first; what cannot be read is put aside by the file."""

DATABASES = (".sqlite", ".sqlite3", ".db")
"""How the name of an agent's database may end."""
_ARCHIVES = ("session_transcript_cold_archives", "session_transcript_archives")


@dataclass(frozen=True, slots=True)
class OpenClawReader:
    """Reads a session, or several one behind the other: a whole header with another id begins the next.

    The id of a session names its conversation too.
    """

    branches: Branches = "apart"
    """`apart`: the conversation is the live branch, and the messages of each abandoned one are a conversation named
    by the session and its first message. `in_file_order`: all are one conversation, as lossless-claw 0.6.3 reads
    them."""

    name = "openclaw"

    def __post_init__(self) -> None:
        check_choice(self, branches=Branches)

    def detects(self, file: RecordedFile) -> bool:
        if is_database(file):
            return is_agent_database(file)
        first = file.first if isinstance(file.first, list) else []
        has_other_header = any(kind(value) == "session_start" for value in first)
        is_begun = bool(first) and all(
            _is_header(value) and value.keys() >= {"version", "id", "cwd"} for value in first
        )
        return (any(map(_is_entry, first)) and not has_other_header) or is_begun

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        if not is_database(file):
            session_id = session_of(file) or file.name
            newer = (record for path in file.newer for record in records_of(RecordedFile(path), session_id))
            yield from self._state(
                file, RecordedFile.values, session_id, taken_in(newer, Digests()) if file.newer else None
            )
            return
        with snapshot(file) as connection:
            for session in stored_sessions(connection):
                if session.window is not None:
                    with file.record(1, f"session_windows, session {session.session_id}: "):
                        window = Event("session_window", columns(session.window))
                        yield RecordedItem(session.session_id, window, text_in(session.window, "display_name"))
                held = Digests()
                for number, records in enumerate(session.states):
                    yield from self._state(file, records, session.session_id, held if number else None)
                    if number + 1 < len(session.states):
                        taken_in((record for _, record in records(RecordedFile(file.path))), held)

    def _state(
        self, file: RecordedFile, records: Records, session_id: str, held: Digests | None
    ) -> Iterator[RecordedItem]:
        """Give what one state of a session holds.

        Args:
            held: what newer states hold; None = it is the newest.
        """
        entries = (value for _, value in records(RecordedFile(file.path)))
        conversation_id, has_headers, branches = session_id, held is None and not is_database(file), Stretches(())
        if held is not None:
            first = next((one for one in entries if is_message(one) and not held.has(identity(one))), None)
            if first is None:
                return
            conversation_id = f"{session_id}~{id_in(first, 'id') or digest(identity(first))}"
        elif self.branches == "apart":
            branches = Stretches(_abandoned(entries, session_id if has_headers else None))
        title: str | None = None
        place = -1
        for line, entry in records(file):
            with file.record(line):
                as_object(entry, "an entry")
                place += 1
                if has_headers and (begun := _begun(entry)) not in ("", session_id):
                    session_id = conversation_id = begun
                    title = None
                if held is not None and held.has(identity(entry)):
                    continue
                if entry.get("type") == "session_info" and isinstance(entry.get("name"), str):
                    title = well_formed(entry["name"])
                if is_message(entry):
                    message = _message(entry, session_id)
                    yield RecordedItem(conversation_id + branches.suffix(place, message.message_id), message, title)
                else:
                    yield RecordedItem(conversation_id, Event(kind(entry), entry), title)


def session_of(file: RecordedFile) -> str:
    """The id that the header names; empty where there is none."""
    return id_in(next(filter(_is_header, file.heads), None), "id")


def records_of(file: RecordedFile, session_id: str | None = None) -> Iterator[Any]:
    """The records of a session's file, or those that a database holds of a session, as far as they can be read."""
    try:
        if not is_database(file):
            yield from (value for _, value in file.values())
            return
        with snapshot(file) as connection:
            for session in stored_sessions(connection, session_id):
                for records in session.states:
                    yield from (value for _, value in records(file))
    except TranscriptError as error:  # it becomes too large when it is unpacked
        file.put_aside(1, str(error), to_end=True)


def identity(record: Any) -> str:
    """What a record is known by in another state of its session: its id, and of a message what it says."""
    record_id, native = id_in(record, "id"), object_in(record, "message")
    said = [kind(record), record_id, native.get("role"), native.get("content")]
    return to_json(said if record_id else record)


def taken_in(records: Iterable[Any], held: Digests) -> Digests:
    """The identities of records, with those that were held before."""
    for record in records:
        held.add(identity(record))
    return held


def is_message(record: Any) -> bool:
    return kind(record) == "message"


def _is_header(value: Any) -> bool:
    return kind(value) == "session"


def _begun(entry: Any) -> str:
    """The id of the session that a whole header begins; empty where the entry is none."""
    return id_in(entry, "id") if _is_header(entry) and entry.keys() >= {"timestamp", "cwd"} else ""


def _is_entry(value: Any) -> bool:
    """Say whether this is a message entry: a header alone may be any tool's."""
    is_said = is_message(value) and isinstance(object_in(value, "message").get("role"), str)
    return is_said and "timestamp" in value and ("parentId" in value or "id" not in value)


def _message(entry: dict[str, Any], session_id: str) -> Message:
    native = entry.get("message")
    if not isinstance(native, dict) or not isinstance(native.get("role"), str):
        raise TranscriptError("a message entry needs a `message` object with a `role`")
    said = decompose(native).within(entry, "message")
    instant = recorded_instant(entry, "timestamp") or recorded_instant(native, "timestamp")
    return said.message(id_in(entry, "id"), session_id, instant)


def _abandoned(entries: Iterable[Any], session_id: str | None) -> list[range]:
    """The places, from 0, of the entries that do not lead to the last one of their session.

    Args:
        entries: of the file, or of the database's session.
        session_id: of the first session; None = whatever headers say, there is one.
    """

    def session(entry: Any) -> str | None:
        nonlocal session_id
        session_id = session_id if session_id is None else _begun(entry) or session_id
        return session_id

    abandoned: list[range] = []
    start = 0
    for _, own in groupby(entries, session):
        ranges, count = _abandoned_of(own)
        abandoned += [range(start + one.start, start + one.stop) for one in ranges]
        start += count
    return abandoned


def _abandoned_of(entries: Iterable[Any]) -> tuple[list[range], int]:
    """The places of what does not lead to the last entry, each stretch that begins somewhere else; and all places.

    An entry without `parentId`, or whose parent is not in the file, follows the one before it. Null is the root's
    parent: a later entry with it begins the tree anew, in a file whose entries name their parents.
    """
    ids, odd = array("Q"), dict[int, int]()  # digests of ids; place -> digest of a parent that is not the entry before
    roots: list[int] = []
    has_tree = is_begun = False
    previous: object = None
    for entry in entries:
        if isinstance(entry, dict):
            parent = entry.get("targetId" if entry.get("type") == "leaf" else "parentId")
            has_tree = has_tree or (parent is not None and parent == previous)
            if isinstance(parent, str) and parent != previous:
                odd[len(ids)] = digest(parent)
            elif parent is None and "parentId" in entry and is_begun:
                roots.append(len(ids))
            previous = None if _is_header(entry) else entry.get("id")
            is_begun = is_begun or previous is not None
            ids.append(digest(previous) if isinstance(previous, str) else 0)
    parents = _places(odd, np.frombuffer(ids, np.uint64)) | dict.fromkeys(roots if has_tree else (), -1)
    forks = sorted(parents)
    abandoned, end = [], len(ids)
    for fork in reversed(forks):
        if fork < end:
            gap = range(parents[fork] + 1, fork)
            cuts = [gap.start, *(place for place in forks if place in gap), gap.stop]
            abandoned += [range(first, last) for first, last in pairwise(cuts) if first < last]
            end = parents[fork] + 1
    return abandoned, len(ids)


def _places(wanted: Mapping[int, int], ids: npt.NDArray[np.uint64]) -> dict[int, int]:
    """Where the wanted ids stand, for those that stand before the place that wants them."""
    order = np.argsort(ids, kind="stable")
    found = np.searchsorted(ids, np.fromiter(wanted.values(), np.uint64, len(wanted)), sorter=order)
    places = {
        place: int(order[at])
        for (place, digest), at in zip(wanted.items(), found, strict=True)
        if at < len(ids) and ids[order[at]] == digest
    }
    return {place: parent for place, parent in places.items() if parent < place - 1}


class StoredSession(NamedTuple):
    """One session of a database."""

    session_id: str
    window: dict[str, Any] | None
    """Its row of `session_windows`."""
    states: tuple[Records, ...]
    """The newest first, then those in archives; one may hold what those before it do."""


def is_agent_database(file: RecordedFile) -> bool:
    """Whether the file is an agent's database."""
    return has_tables(file, transcript_events="session_id seq event_json")


def stored_sessions(connection: sqlite3.Connection, session_id: str | None = None) -> Iterator[StoredSession]:
    """Give the sessions of a database that hold records, in the order in which they began.

    Args:
        session_id: the only one that is wanted; None = all.
    """
    windows: dict[str, dict[str, Any]] = {}
    if column_names(connection, "session_windows"):
        windows = {row["session_id"]: dict(row) for row in connection.execute("SELECT * FROM session_windows")}
    states: dict[str, list[Records]] = {}
    current = "SELECT session_id FROM transcript_events GROUP BY session_id ORDER BY min(rowid)"
    for (found,) in connection.execute(current):
        states[found] = [partial(_rows, connection, found)]
    for table in filter(partial(column_names, connection), _ARCHIVES):
        archived = f"SELECT rowid, session_id FROM {table} ORDER BY rowid DESC"  # noqa: S608  # a name of ours
        for rowid, found in connection.execute(archived).fetchall():
            states.setdefault(found, []).append(partial(_archived, connection, table, rowid))

    def began(found: str) -> float:
        instant = (windows.get(found) or {}).get("created_at")
        return instant if isinstance(instant, int | float) else 0.0

    for found in sorted(states, key=began):
        if session_id in (None, found):
            yield StoredSession(native_id(found), windows.get(found), tuple(states[found]))


def beside_database(database: Path) -> list[Path]:
    """The archives in files that are read along with a database."""
    file = RecordedFile(database)
    if database.suffix not in DATABASES or not is_agent_database(file):
        return []
    found: list[Path] = []
    with snapshot(file) as connection:
        for table in _ARCHIVES:
            if "archive_name" in column_names(connection, table):
                names = f"SELECT archive_name FROM {table} WHERE archive_blob IS NULL ORDER BY rowid"  # noqa: S608  # a name of ours
                found += [path for (name,) in connection.execute(names) for path in _cold(database, name)]
    return found


def _rows(connection: sqlite3.Connection, session_id: str, file: RecordedFile) -> Iterator[tuple[int, Any]]:
    """The records of `transcript_events`; a line is a row's number in the table."""
    packed = "event_zstd" if "event_zstd" in column_names(connection, "transcript_events") else "NULL"
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
    path = next(iter(_cold(file.path, name)), None)
    if path is None:
        raise TranscriptError(f"cold/{name} is not there; put it back beside the sessions")
    if path not in file.read_along:
        file.read_along.append(path)
    try:
        return opened(path, TranscriptError)
    except OSError as error:
        raise TranscriptError(f"cold/{name} cannot be opened: {error.strerror}") from error


def _cold(database: Path, name: object) -> list[Path]:
    """The file in which an archive lies: `agents/<agent>/sessions/cold` of a database in `agents/<agent>/agent`."""
    if not isinstance(name, str) or Path(name).name != name:
        return []
    folder = database.resolve().parent
    cold = (folder.parent / "sessions" if folder.name == "agent" else folder) / "cold"
    return files_within(cold, [cold / name])
