"""OpenCode sessions: the database `opencode.db`, the `storage` tree of before, and what `opencode export` writes.

A session has messages, and a message parts: `{"info": message, "parts": [part, ...]}` in an export, a file each in the
tree (`session/<project>/ses_*.json`, `message/<session>/*.json`, `part/<message>/*.json`), a row each in the database.
Whichever is read, a message is that one object. Of a row of the tables `message` and `part` it has the id, the ids
that it refers to, and what `data` holds, as OpenCode shows it.

An assistant's message holds its tool calls with their results, so the words of a result stand behind its own. What
OpenCode wrote itself (`synthetic`) and what the model is not shown (`ignored`) are parts, and no words of the message.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lcm.encoding import well_formed
from lcm.errors import TranscriptError
from lcm.given import read_whole
from lcm.records.conversation import ROLES, Event, Message, Part, PartType
from lcm.transcript.database import columns, has_tables, is_database, snapshot
from lcm.transcript.fields import as_object, id_in, json_in, kind, listed, object_in, recorded_instant, text_in
from lcm.transcript.json_scanner import parse
from lcm.transcript.parts import plain_text, undivided
from lcm.transcript.reader import RecordedItem, sessions
from lcm.transcript.recorded_file import RecordedFile, files_within, without_ending

_PART_TYPES: dict[str, PartType] = {
    "text": "text", "reasoning": "reasoning", "file": "file", "patch": "patch", "subtask": "subtask",
    "compaction": "compaction", "snapshot": "snapshot", "retry": "retry",
    "step-start": "step_start", "step-finish": "step_finish",
}  # fmt: skip

_MESSAGES = "SELECT * FROM message WHERE session_id = ? ORDER BY time_created, length(id), id"
_PARTS = "SELECT * FROM part WHERE message_id = ? ORDER BY length(id), id"
_ORPHANS = """
    SELECT 'message' AS what, message.id FROM message LEFT JOIN session ON session.id = session_id
    WHERE session.id IS NULL
    UNION ALL
    SELECT 'part', part.id FROM part LEFT JOIN message ON message.id = message_id
    LEFT JOIN session ON session.id = message.session_id WHERE session.id IS NULL
"""

_NOTES = ("todo", "session_diff")
"""Folders of the tree in which a file is named after its session."""
_NOTED = {
    "todo": "SELECT * FROM todo WHERE session_id = ? ORDER BY rowid",
    "session_message": "SELECT * FROM session_message WHERE session_id = ? ORDER BY rowid",
}
"""Tables whose rows are events of their session: a version to come writes its messages into the second one."""
_UNREAD = """
    SELECT DISTINCT session_id FROM session_message WHERE type IN ('user', 'assistant')
    AND session_id NOT IN (SELECT session_id FROM message) ORDER BY session_id
"""


@dataclass(frozen=True, slots=True)
class OpenCodeReader:
    """Reads one conversation a session, named by the session's id; a sub-agent's session is one of its own.

    A session whose user went back (`revert`) ends there, and what was undone is a conversation named by the session
    and its first message. Where that begins within a message, each half of the message has its own parts. What
    is recorded of a session beside its messages is an event: `session`, `todo` ...
    """

    name = "opencode"

    def detects(self, file: RecordedFile) -> bool:
        if is_database(file):
            tables = {"message": "id session_id time_created data", "part": "id message_id data"}
            return has_tables(file, session="id time_created", **tables)
        return any(map(_is_export, file.heads)) or (len(file.heads) == 1 and _is_session(file.heads[0]))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        if is_database(file):
            yield from _database(file)
        elif any(map(_is_export, file.heads)):
            yield from _exported(file)
        else:
            yield from _tree(file)


def beside(session: Path) -> list[Path]:
    """The files of a tree that are read along with a session's: its messages, their parts, and notes on the session."""
    messages = _messages(session)
    parts = [part for message in messages for part in _parts(session, message)]
    return [*messages, *parts, *_notes(session)]


@dataclass(slots=True)
class _Conversation:
    """A session, while its messages come in order."""

    name: str
    title: str | None
    undone_from: str = ""
    """The message with which what was undone begins, or within which."""
    undone_part: str = ""
    branch: str = ""

    def end_before(self, revert: object) -> None:
        """Leave out of the main line what the session says that was undone: nothing, an object, or its JSON text."""
        undone = parse(revert) if isinstance(revert, str) else revert
        if undone is not None:
            undone = as_object(undone, "`revert`")
            self.undone_from, self.undone_part = id_in(undone, "messageID"), id_in(undone, "partID")

    def event(self, named: str, native: Any) -> RecordedItem:
        return RecordedItem(self.name, Event(well_formed(named), native), self.title)

    def said(self, record: object) -> Iterator[RecordedItem]:
        """The message, or the two halves of one within which what was undone begins."""
        record = as_object(record)
        before, message_id = self.branch, id_in(object_in(record, "info"), "id")
        kept: dict[str, Any] | None = record
        undone: dict[str, Any] | None = None
        if message_id and message_id == self.undone_from:
            self.branch = f"~{message_id}"
            kept, undone = _halves(record, self.undone_part)
        for branch, half in ((before, kept), (self.branch, undone)):
            if half is not None:
                yield RecordedItem(self.name + branch, _message(half, self.name), self.title)


def _conversation(session: Mapping[str, Any], name: str) -> _Conversation:
    """The conversation of a session; the name is what is left where none is recorded."""
    return _Conversation(id_in(session, "id") or name, text_in(session, "title") or None)


def _halves(record: dict[str, Any], part_id: str) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """What of a message was kept, and what was undone: the part of that id and those after it, or the whole message."""
    if not part_id:
        return None, record
    parts = listed(record.get("parts"))
    places = (place for place, part in enumerate(parts) if isinstance(part, dict) and part.get("id") == part_id)
    match next(places, None):
        case None:
            return record, None
        case 0:
            return None, record
        case place:
            return {**record, "parts": parts[:place]}, {**record, "parts": parts[place:]}


def _message(record: dict[str, Any], session_id: str) -> Message:
    info, blocks = object_in(record, "info"), listed(record.get("parts"))
    role = next((role for role in ROLES if role == info.get("role")), None)
    if role is None:
        raise TranscriptError("expected a message, an object whose `role` is user or assistant")
    parts = list(map(_part, blocks))
    words = (
        part.text
        for part, block in zip(parts, blocks, strict=True)
        if part.part_type == "text" and not block.get("synthetic") and not block.get("ignored")
    )
    said = undivided(record, role, parts, "\n".join(filter(None, [*words, *map(_result_words, blocks)])))
    return said.message(id_in(info, "id"), session_id, recorded_instant(object_in(info, "time"), "created"))


def _part(block: object) -> Part:
    if not isinstance(block, dict):
        return Part("agent")
    if block.get("type") == "tool":
        state = object_in(block, "state")
        given, output = json_in(state, "input"), json_in(state, "output", "error")
        return Part("tool", None, text_in(block, "callID"), text_in(block, "tool"), given, output)
    part_type = _PART_TYPES.get(kind(block), "agent")
    # What a file is called and shows stands in its block.
    metadata = {"raw": block} if part_type == "file" else {}
    return Part(part_type, text_in(block, "text", "prompt"), metadata=metadata)


def _result_words(block: object) -> str:
    state = object_in(block, "state") if kind(block) == "tool" else {}
    return plain_text({"content": state.get("output", state.get("error"))})


def _exported(file: RecordedFile) -> Iterator[RecordedItem]:
    for session in sessions(file):
        info = object_in(session.header, "info")
        conversation = _conversation(info, file.name)
        yield conversation.event("session", session.header)
        with file.record(session.line, "info: "):
            conversation.end_before(info.get("revert"))
        for element in session.elements:
            with file.record(element.line, element.place):
                if element.key == "messages":
                    yield from conversation.said(element.value)
                else:
                    yield conversation.event(element.key, element.value)


def _tree(file: RecordedFile) -> Iterator[RecordedItem]:
    for line, value in file.values():
        session: dict[str, Any] = {}
        with file.record(line):
            session = as_object(value, "a session")
        if not session:
            continue
        conversation = _conversation(session, file.name)
        yield conversation.event("session", session)
        with file.record(line):
            conversation.end_before(session.get("revert"))
        for path in _messages(file.path):
            yield from _told(file, path, conversation)
        for path in _notes(file.path):
            if (note := _value(file.along(path))) is not None:
                yield conversation.event(path.parent.name, note)


def _told(file: RecordedFile, path: Path, conversation: _Conversation) -> Iterator[RecordedItem]:
    """The message of a file, with the parts that lie apart."""
    message = file.along(path)
    info = _value(message)
    parts = [file.along(part) for part in _parts(file.path, path)]
    if info is None:
        for part in parts:
            part.put_aside(1, "its message cannot be read")
        return
    values = map(_value, parts)
    record = {"info": info, "parts": [value for value in values if value is not None]}
    file.bytes_read += message.bytes_read + sum(part.bytes_read for part in parts)
    with message.record(1):
        file.place = (path, 1)
        yield from conversation.said(record)


def _value(file: RecordedFile) -> Any:
    """What a file of one value holds; None where it is put aside."""
    try:
        content = read_whole(file.path, TranscriptError)
        file.bytes_read += len(content)
        return parse(content.decode("utf-8-sig"))
    except (OSError, TranscriptError, ValueError) as error:
        file.put_aside(1, f"cannot be read: {error}")
        return None


def _tree_of(session: Path) -> Path | None:
    """The folder `storage` that a session's file lies in; None where it lies in none."""
    return session.parent.parent.parent if session.parent.parent.name == "session" else None


def _messages(session: Path) -> list[Path]:
    return _values_in(session, f"message/{without_ending(session)}")


def _parts(session: Path, message: Path) -> list[Path]:
    return _values_in(session, f"part/{message.stem}")


def _notes(session: Path) -> list[Path]:
    root = _tree_of(session)
    return files_within(root, (root / folder / f"{without_ending(session)}.json" for folder in _NOTES)) if root else []


def _values_in(session: Path, folder: str) -> list[Path]:
    """The files of a folder of the session's tree in the order of their ids, of which a longer one is newer."""
    root = _tree_of(session)
    inside = files_within(root, (root / folder).glob("*.json")) if root else []
    return sorted(inside, key=lambda path: (len(path.name), path.name))


def _database(file: RecordedFile) -> Iterator[RecordedItem]:
    noted = [table for table in _NOTED if has_tables(file, **{table: "session_id"})]
    with snapshot(file) as database:
        for session in database.execute("SELECT * FROM session ORDER BY time_created, id"):
            conversation = _conversation(dict(session), file.name)
            with file.record(1, f"session {session['id']}: "):
                yield conversation.event("session", columns(session))
            with file.record(1, f"session {session['id']}: "):
                conversation.end_before(dict(session).get("revert"))
            for message in database.execute(_MESSAGES, [session["id"]]):
                with file.record(1, f"message {message['id']}: "):
                    record = {"info": _shown(message), "parts": list(_rows(file, database, message["id"]))}
                    yield from conversation.said(record)
            for table in noted:
                for row in database.execute(_NOTED[table], [session["id"]]):
                    with file.record(1, f"{table} of session {session['id']}: "):
                        yield conversation.event(table, columns(row))
        for row in database.execute(_ORPHANS):
            file.put_aside(1, f"{row['what']} {row['id']}: its session is not in the database")
        if has_tables(file, session_message="session_id type"):
            file.doubts += [
                f"{file.path}: session {unread!r} has its messages in the table session_message alone, "
                "which is not read: read what `opencode export` writes of it"
                for (unread,) in database.execute(_UNREAD)
            ]


def _rows(file: RecordedFile, database: sqlite3.Connection, message_id: object) -> Iterator[dict[str, Any]]:
    for part in database.execute(_PARTS, [message_id]):
        with file.record(1, f"part {part['id']}: "):
            file.bytes_read += len(part["data"] or "")
            yield _shown(part)


def _shown(row: sqlite3.Row) -> dict[str, Any]:
    """A message or a part as OpenCode shows it."""
    if not isinstance(row["data"], str):
        raise TranscriptError(f"`data` must be JSON text, got {type(row['data']).__name__}")
    ids = {"id": "id", "session_id": "sessionID", "message_id": "messageID"}
    shown = {name: row[column] for column, name in ids.items() if column in row.keys()}  # noqa: SIM118  # a row's values
    return {**shown, **as_object(parse(row["data"]), "`data`")}


def _is_session(value: object) -> bool:
    """Say whether this is what is kept of a session."""
    if not isinstance(value, dict) or "role" in value:
        return False
    return id_in(value, "id").startswith("ses_") and "created" in object_in(value, "time")


def _is_export(value: object) -> bool:
    messages = value.get("messages") if isinstance(value, dict) else None
    if not isinstance(messages, list):
        return False
    return all(map(_is_message, messages[:1])) if messages else _is_session(object_in(value, "info"))


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and "role" in object_in(value, "info") and isinstance(value.get("parts"), list)
