"""Goose sessions: JSONL of a header and messages, what `goose session export` writes, and the database `sessions.db`.

A message has a `role`, an instant `created` and parts under `content`; calls and results are parts of types of Goose's
own, `toolRequest` and `toolResponse`, whose outcome stands under `value` or `error`. A row of the database is read as
such a message: its columns, with the JSON of `content_json` under `content` and that of `metadata_json` under
`metadata`.

What only the agent saw (`userVisible` false: the context of a turn, the summary of a compaction) nobody said: it is an
event.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lcm.errors import TranscriptError
from lcm.records.conversation import Event, Message
from lcm.transcript.database import columns, has_tables, is_database, parsed, snapshot
from lcm.transcript.fields import as_object, id_in, listed, native_id, object_in, recorded_instant, text_in
from lcm.transcript.parts import block_type, decompose
from lcm.transcript.reader import RecordedItem, sessions
from lcm.transcript.recorded_file import RecordedFile

_CALLS = ("toolRequest", "frontendToolRequest")
_OWN_TYPES = frozenset({*_CALLS, "toolResponse", "toolConfirmationRequest", "actionRequired", "systemNotification"})
_JSON_COLUMNS = {"content_json": "content", "metadata_json": "metadata"}


@dataclass(frozen=True, slots=True)
class GooseReader:
    """Reads one session a file, named by the file; of an export or a database as many as they name.

    What a session holds beside its messages is an event of type `session`.
    """

    name = "goose"

    def detects(self, file: RecordedFile) -> bool:
        if is_database(file):
            columns = "session_id role content_json created_timestamp"
            return has_tables(file, sessions="id working_dir", messages=columns)
        is_marked = any(_is_header(value) or _has_own_part(value) for value in file.heads)
        return any(map(_is_export, file.heads)) or (is_marked and any(map(_is_message, file.heads)))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        if is_database(file):
            yield from _stored(file)
        elif any(map(_is_export, file.heads)):
            for session in sessions(file):
                title = text_in(session.header, "name", "description") or None
                yield from session.items(file, id_in(session.header, "id") or file.name, {"conversation": _item}, title)
        else:
            title = None
            for line, record in file.values():
                with file.record(line):
                    title = text_in(record, "name", "description") or title if _is_header(record) else title
                    yield RecordedItem(file.name, _item(record, file.name), title)


def _is_header(value: Any) -> bool:
    return isinstance(value, dict) and "role" not in value and isinstance(value.get("working_dir"), str)


def _is_message(value: Any) -> bool:
    is_said = isinstance(value, dict) and value.get("role") in ("user", "assistant")
    return is_said and isinstance(value.get("created"), int) and isinstance(value.get("content"), list)


def _has_own_part(value: Any) -> bool:
    return _is_message(value) and any(block_type(part) in _OWN_TYPES for part in value["content"])


def _is_export(value: Any) -> bool:
    said = value.get("conversation") if _is_header(value) else None
    return isinstance(said, list) and all(map(_is_message, said[:1]))


def _stored(file: RecordedFile) -> Iterator[RecordedItem]:
    with snapshot(file) as connection:
        of_sessions = {row["id"]: row for row in connection.execute("SELECT * FROM sessions ORDER BY rowid")}
        known = connection.execute("SELECT session_id FROM messages GROUP BY session_id ORDER BY min(id)").fetchall()
        for session_id in dict.fromkeys([*(row["session_id"] for row in known), *of_sessions]):
            name, title = native_id(session_id) or file.name, None
            if session_id in of_sessions:
                with file.record(1, f"session {session_id}: "):
                    header = columns(of_sessions[session_id])
                    title = text_in({key: value for key, value in header.items() if value}, "name", "description")
                    yield RecordedItem(name, Event("session", header), title)
            rows = connection.execute("SELECT * FROM messages WHERE session_id = ? ORDER BY id", (session_id,))
            for row in rows:
                file.bytes_read += len(row["content_json"] or "")
                with file.record(row["id"], f"session {session_id}: "):
                    record = {
                        _JSON_COLUMNS.get(key, key): parsed(value)
                        if key in _JSON_COLUMNS and value is not None
                        else value
                        for key, value in columns(row).items()
                    }
                    yield RecordedItem(name, _item(record, name), title)


def _item(value: object, session_id: str) -> Message | Event:
    record = as_object(value)
    if "role" not in record:
        return Event("session" if _is_header(record) else "unknown", record)
    if object_in(record, "metadata").get("userVisible") is False:
        return Event("agent_only", record)
    role, content = record["role"], record.get("content")
    if role not in ("user", "assistant") or not isinstance(content, list):
        raise TranscriptError("a message needs a `role`, user or assistant, and a list under `content`")
    said = decompose({"role": role, "content": [_known(part) for part in content]})
    said = said._replace(envelope={"native": record, "slots": {}})
    instant = recorded_instant(record, "created", "created_timestamp")
    return said.message(id_in(record, "message_id", "id"), session_id, instant)


def _known(part: Any) -> Any:
    """A part in the notation that every reader's parts are taken from; what has no words of its own stays as it is."""
    named = block_type(part)
    if named in _CALLS:
        call = _outcome(part.get("toolCall"))
        name, given = (call.get("name"), call.get("arguments")) if isinstance(call, dict) else (None, None)
        return {"type": "toolCall", "id": part.get("id"), "name": name, "arguments": given}
    if named == "toolResponse":
        result = _outcome(part.get("toolResult"))
        held = listed(result.get("content") if isinstance(result, dict) else result)
        is_error = object_in(part, "toolResult").get("status") == "error"
        is_error = is_error or (isinstance(result, dict) and result.get("isError") is True)
        # The user may have been shown the same in other words.
        for_agent = [block for block in held if "assistant" in _audience(block)] or held
        blocks = list(map(_shown, for_agent))
        return {"type": "tool_result", "tool_use_id": part.get("id"), "content": blocks, "is_error": is_error}
    if named == "redactedThinking":
        return {**part, "type": "redacted_thinking"}
    text = text_in(part, "msg")
    return part if text is None else {"type": "text", "text": text}


def _outcome(held: Any) -> Any:
    """What a call or a result came to: under `value` where it succeeded, else the error."""
    if not isinstance(held, dict) or "status" not in held:
        return held
    return held["value"] if "value" in held else held.get("error")


def _audience(block: Any) -> list[Any]:
    return listed(object_in(block, "annotations").get("audience")) or ["assistant"]


def _shown(block: Any) -> Any:
    text = block if isinstance(block, str) else None
    if block_type(block) == "resource":
        text = object_in(block, "resource").get("text")
    return {"type": "text", "text": text} if isinstance(text, str) else block
