"""Goose sessions: JSONL, an export, and the database."""

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lcm.transcript.goose import GooseReader
from lcm.transcript.parts import rebuild_record
from lcm.transcript.reading import reader_of
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.rendering import agent_messages
from tests.lcm.transcript.recordings import columns, read, read_message, read_one, write

HEADER = {"working_dir": "/home/ada", "description": "Files", "message_count": 4}
AT = datetime(2026, 1, 5, 9, 0, 1, tzinfo=UTC)


def said(role: str, *content: Any, **others: Any) -> dict[str, Any]:
    return {"role": role, "created": 1767603601, "content": list(content), **others}


def text(words: str, **others: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **others}


def call(outcome: Any) -> dict[str, Any]:
    return {"type": "toolRequest", "id": "c1", "toolCall": outcome}


def result(outcome: Any) -> dict[str, Any]:
    return {"type": "toolResponse", "id": "c1", "toolResult": outcome}


CALLED = call({"status": "success", "value": {"name": "shell", "arguments": {"command": "ls"}}})
ANSWERED = result({"status": "success", "value": [text("a\nb")]})


def test_a_session_is_named_by_its_file_and_its_header(tmp_path: Path) -> None:
    path = write(tmp_path / "20260105_1.jsonl", HEADER, said("user", text("List"), id="m1"), said("assistant", CALLED))
    assert reader_of(RecordedFile(path)).name == "goose"
    transcript = read_one(path, GooseReader())
    assert (transcript.conversation_id, transcript.title) == ("20260105_1", "Files")
    assert [message.message_id for message in transcript.messages] == ["20260105_1:m1", "20260105_1:2"]
    assert [message.created_at for message in transcript.messages] == [AT, AT]
    assert [(event.kind, event.native) for event in transcript.events] == [("session", HEADER)]


@pytest.mark.parametrize(
    ("outcome", "words", "is_error"),
    [
        ({"status": "success", "value": [text("a"), text("b")]}, "a\nb", False),
        ({"status": "success", "value": {"content": [text("a")], "isError": True}}, "a", True),
        ({"status": "error", "error": "no such file"}, "no such file", True),
        ([text("a")], "a", False),
        ({"status": "success", "value": [{"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}]},
         "inside", False),
        ({"status": "success", "value": [text("a", annotations={"audience": ["assistant"]}),
                                         text("nicely: a", annotations={"audience": ["user"]})]}, "a", False),
        ({"status": "success", "value": [text("shown", annotations={"audience": ["user"]})]}, "shown", False),
        ({"status": "success", "value": []}, "", False),
        (None, "", False),
    ],
)  # fmt: skip
def test_a_result_says_what_the_agent_was_told(outcome: Any, words: str, is_error: bool, tmp_path: Path) -> None:
    native = said("user", result(outcome))
    path = write(tmp_path / "s.jsonl", HEADER, native)
    (message,) = read_one(path, GooseReader()).messages
    assert json.dumps(rebuild_record(message)) == json.dumps(native)
    assert (message.role, message.content) == ("user", words)
    (shown,) = agent_messages(message)
    assert (shown["role"], shown["toolCallId"], shown["isError"]) == ("toolResult", "c1", is_error)


def test_a_call_has_its_name_and_arguments_and_a_failed_one_neither(tmp_path: Path) -> None:
    native = said("assistant", {"type": "thinking", "thinking": "ls will do", "signature": "c2ln"}, CALLED)
    message = read_message(tmp_path / "s.jsonl", GooseReader(), native) if write(tmp_path / "s.jsonl", native) else None
    assert message is not None
    assert columns(message)[1] == ("tool", None, "c1", "shell", '{"command":"ls"}', None)
    assert agent_messages(message)[0]["content"][1]["name"] == "shell"
    failed = said("assistant", call({"status": "error", "error": "no such tool"}))
    path = write(tmp_path / "s.jsonl", failed)
    assert columns(read_message(path, GooseReader(), failed))[0][2:5] == ("c1", None, None)


@pytest.mark.parametrize(
    ("part", "words", "part_type"),
    [
        ({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}, "", "file"),
        ({"type": "redactedThinking", "data": "c2VjcmV0"}, "", "reasoning"),
        ({"type": "systemNotification", "notificationType": "inlineMessage", "msg": "Compacted"}, "Compacted", "text"),
        ({"type": "from the future", "text": "words"}, "words", "agent"),
    ],
)
def test_other_parts_keep_what_they_say(part: Any, words: str, part_type: str, tmp_path: Path) -> None:
    native = said("assistant", part)
    message = read_message(write(tmp_path / "s.jsonl", native), GooseReader(), native)
    assert (message.content, message.parts[0].part_type) == (words, part_type)


def test_what_only_the_agent_saw_is_an_event(tmp_path: Path) -> None:
    seen = said("user", text("List"), metadata={"userVisible": True, "agentVisible": False})
    hidden = said("user", text("<turn-context>"), metadata={"userVisible": False, "agentVisible": True})
    transcript = read_one(write(tmp_path / "s.jsonl", HEADER, seen, hidden), GooseReader())
    assert [message.content for message in transcript.messages] == ["List"]
    assert [(event.kind, event.native) for event in transcript.events[1:]] == [("agent_only", hidden)]


def test_an_export_is_its_conversation(tmp_path: Path) -> None:
    session = {"id": "20260105_1", "name": "Files", "working_dir": "/w", "conversation": [said("user", text("List"))]}
    for indent in (None, 2):
        path = write(tmp_path / "any.json", session, indent=indent)
        assert reader_of(RecordedFile(path)).name == "goose"
        transcript = read_one(path, GooseReader())
        assert (transcript.conversation_id, transcript.title) == ("20260105_1", "Files")
        assert [message.content for message in transcript.messages] == ["List"]


def made(path: Path, rows: Iterable[tuple[Any, ...]], title: str = "name") -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE sessions (id TEXT PRIMARY KEY, {title} TEXT, working_dir TEXT)")
        connection.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, message_id TEXT, session_id TEXT, role TEXT, "
            "content_json TEXT, created_timestamp INTEGER, metadata_json TEXT)"
        )
        connection.executemany("INSERT INTO sessions VALUES (?, ?, '/w')", [("s1", "Files"), ("s2", "")])
        columns = "(session_id, message_id, role, content_json, created_timestamp, metadata_json)"
        connection.executemany(f"INSERT INTO messages {columns} VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.commit()
    return path


@pytest.mark.parametrize("title", ["name", "description"])
def test_each_session_of_a_database_is_a_conversation(tmp_path: Path, title: str) -> None:
    rows = [
        ("s2", None, "user", json.dumps([text("Hello")]), 1767603601, None),
        ("s1", "m1", "user", json.dumps([text("List")]), 1767603601000, '{"userVisible": true}'),
        ("s1", "m2", "assistant", json.dumps([CALLED]), 1767603602, "{}"),
        ("s1", "m3", "user", json.dumps([ANSWERED]), 1767603603, '{"userVisible": false}'),
    ]
    path = made(tmp_path / "sessions.db", rows, title)
    assert reader_of(RecordedFile(path)).name == "goose"
    transcripts, aside = read(path, GooseReader())
    assert aside == []
    assert {one.conversation_id: (one.title, len(one.messages)) for one in transcripts} == {
        "s2": (None, 1),
        "s1": ("Files", 2),
    }
    listed = transcripts[1].messages[0]
    assert (listed.message_id, listed.content, listed.created_at) == ("s1:m1", "List", AT)
    assert rebuild_record(listed)["content"] == [text("List")]
    assert [event.kind for event in transcripts[1].events] == ["session", "agent_only"]
    assert transcripts[0].messages[0].message_id == "s2:1"


def test_a_row_that_is_no_message_is_put_aside_with_its_session(tmp_path: Path) -> None:
    bad = [
        ("s1", None, "user", "[oops", 1, None),
        ("s1", None, "tool", "[]", 1, None),
        ("s1", None, "user", None, 1, None),
        ("s1", None, "user", b"\xff", 1, None),
    ]
    path = made(tmp_path / "sessions.db", [*bad, ("s1", None, "user", json.dumps([text("List")]), 1767603601, None)])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE messages SET content_json = CAST(content_json AS TEXT)")
    (transcript, _), aside = read(path, GooseReader())
    assert [message.content for message in transcript.messages] == ["List"]
    assert aside[0].startswith("1: session s1: not JSON")
    assert [line.partition("a message needs")[0] for line in aside[1:3]] == ["2: session s1: ", "3: session s1: "]
    assert aside[3:] == ["4: session s1: content_json must be text or a number, got bytes"]


def test_a_session_without_messages_is_an_event(tmp_path: Path) -> None:
    (found, empty), aside = read(made(tmp_path / "a.db", [("s2", None, "user", "[]", 1, None)]), GooseReader())
    assert aside == []
    assert (len(found.messages), empty.conversation_id, empty.title) == (1, "s1", "Files")
    assert [(event.kind, event.native["id"]) for event in empty.events] == [("session", "s1")]
