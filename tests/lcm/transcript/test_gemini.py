"""Gemini CLI sessions: documents, logs and saved histories."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lcm.records.conversation import Message
from lcm.transcript.gemini import GeminiReader
from lcm.transcript.parts import rebuild_record
from lcm.transcript.recorded_file import RecordedFile
from tests.lcm.transcript.recordings import columns, read_message, read_one, rebuilt, write

READER = GeminiReader()
AT = "2026-01-05T09:00:01.500Z"
HEADER = {"sessionId": "g1", "projectHash": "0a1b", "startTime": AT, "lastUpdated": AT, "kind": "main"}
ASKED = {"id": "m1", "timestamp": AT, "type": "user", "content": "List the files"}
CALL = {
    "id": "c1",
    "name": "shell",
    "args": {"command": "ls"},
    "result": [{"functionResponse": {"id": "c1", "name": "shell", "response": {"output": "a\nb"}}}],
    "status": "success",
}
CALLED = {
    "id": "m2",
    "type": "gemini",
    "content": "I look.",
    "thoughts": [{"subject": "Planning", "description": "ls will do", "timestamp": AT}, {"description": "Now"}],
    "toolCalls": [CALL],
    "model": "some-model",
    "tokens": {"total": 3},
}
RESULT = '[{"functionResponse":{"id":"c1","name":"shell","response":{"output":"a\\nb"}}}]'


def message_of(folder: Path, native: dict[str, Any]) -> Message:
    return read_message(write(folder / "s.json", HEADER | {"messages": [native]}, indent=2), READER, native)


def test_all_forms_give_the_same_messages(tmp_path: Path) -> None:
    session = {"messages": [ASKED, CALLED]} | HEADER
    log = write(tmp_path / "s.jsonl", HEADER, ASKED, CALLED)
    readings = [read_one(write(tmp_path / "s.json", session, indent=indent), READER) for indent in (2, None)]
    for transcript, native in [
        *((found, {"messages": None} | HEADER) for found in readings),
        (read_one(log, READER), HEADER),
    ]:
        (header,) = transcript.events
        assert (header.kind, header.native, header.after) == ("session", native, 0)
        asked, called = transcript.messages
        assert transcript.conversation_id == asked.session_id == "g1"
        assert [(m.message_id, m.role, m.content) for m in (asked, called)] == [
            ("g1:m1", "user", "List the files"),
            ("g1:m2", "assistant", "I look.\na\nb"),
        ]
        assert (asked.created_at, called.created_at) == (datetime(2026, 1, 5, 9, 0, 1, 500_000, tzinfo=UTC), None)
        assert columns(called) == [
            ("reasoning", "Planning\nls will do", None, None, None, None),
            ("reasoning", "Now", None, None, None, None),
            ("text", "I look.", None, None, None, None),
            ("tool", None, "c1", "shell", '{"command":"ls"}', RESULT),
        ]
        assert rebuilt(transcript) == [json.dumps(ASKED), json.dumps(CALLED)]


@pytest.mark.parametrize(
    ("speaker", "role"),
    [
        ({"type": "user"}, "user"),
        ({"type": "gemini"}, "assistant"),
        ({"type": "model"}, "assistant"),
        ({"role": "assistant"}, "assistant"),
        ({"type": "message", "role": "user"}, "user"),
        ({"type": "info"}, "system"),
        ({"type": "warning"}, "system"),
        ({"type": "error"}, "system"),
        ({"type": "compression"}, "system"),
    ],
)
def test_every_speaker_has_a_role(tmp_path: Path, speaker: dict[str, str], role: str) -> None:
    message = message_of(tmp_path, {**speaker, "content": "words"})
    assert (message.role, message.content) == (role, "words")


@pytest.mark.parametrize(
    ("said", "words", "types"),
    [
        ({"content": [{"text": "a"}, "b", {"text": ""}]}, "a\nb", ["text", "text", "text"]),
        ({"content": {"parts": [{"text": "a"}]}}, "a", ["text"]),
        ({"content": {"text": "a"}}, "a", ["text"]),
        ({"parts": [{"text": "a"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]}, "a", ["text", "file"]),
        ({"content": [{"text": "hm", "thought": True}, {"text": "a"}]}, "a", ["reasoning", "text"]),
        ({"content": [{"functionCall": {"name": "f", "args": {}}}]}, "", ["tool"]),
        ({"content": [{"functionResponse": {"response": {"output": "a"}}}]}, "a", ["tool"]),
        ({"content": [{"executableCode": {}}, 7]}, "", ["agent", "agent"]),
        ({"content": "", "toolCalls": []}, "", []),
        ({"content": None, "thoughts": "hm"}, "", ["reasoning"]),
        ({"content": "", "toolCalls": [{"name": "f", "result": "done"}, 7]}, "done", ["tool", "tool"]),
        ({"content": "", "toolCalls": [{"result": {"functionResponse": {"response": None}}}]}, "", ["tool"]),
        ({}, "", []),
    ],
)
def test_words_and_blocks_in_every_shape(tmp_path: Path, said: dict[str, Any], words: str, types: list[str]) -> None:
    message = message_of(tmp_path, {"type": "gemini", **said})
    assert message.content == words
    assert [part.part_type for part in message.parts] == types


def test_a_call_and_its_response_as_parts(tmp_path: Path) -> None:
    call = {"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}}
    response = {"functionResponse": {"id": "c1", "name": "f", "response": {"output": "b"}}}
    assert columns(message_of(tmp_path, {"role": "model", "parts": [call, response]})) == [
        ("tool", None, "c1", "f", '{"a":1}', None),
        ("tool", None, "c1", "f", None, '{"output":"b"}'),
    ]


def test_a_history_has_roles_and_parts(tmp_path: Path) -> None:
    history = [
        {"role": "user", "parts": [{"text": "Hello"}], "ts": 1767603601},
        {"role": "model", "parts": [{"text": "Hi"}]},
    ]
    header = {"summary": "A greeting", "meta": {"model": "m"}}
    document = write(tmp_path / "chat.json", {"history": history} | header, indent=2)
    array = write(tmp_path / "chat.array", history, indent=2)
    for transcript in (read_one(path, READER) for path in (document, array, write(tmp_path / "chat.jsonl", *history))):
        assert [(m.message_id, m.role, m.content) for m in transcript.messages] == [
            ("chat:1", "user", "Hello"),
            ("chat:2", "assistant", "Hi"),
        ]
        assert transcript.messages[0].created_at == datetime(2026, 1, 5, 9, 0, 1, tzinfo=UTC)
        assert rebuilt(transcript) == list(map(json.dumps, history))
    assert read_one(document, READER).title == "A greeting"


def test_only_the_last_writing_of_a_message_is_one(tmp_path: Path) -> None:
    begun = {"id": "m2", "type": "gemini", "content": "I look."}
    changes = [{"$set": {"summary": "Files"}}, {"$rewindTo": "m1"}, {"type": "from the future"}, {"more": "unknown"}]
    transcript = read_one(write(tmp_path / "s.jsonl", HEADER, ASKED, begun, CALLED, *changes), READER)
    assert [m.message_id for m in transcript.messages] == ["g1:m1", "g1:m2"]
    assert rebuild_record(transcript.messages[1]) == CALLED
    assert [event.native for event in transcript.events] == [HEADER, begun, *changes]
    kinds = ["session", "gemini", "$set", "$rewindTo", "from the future", "unknown"]
    assert [event.kind for event in transcript.events] == kinds
    assert [event.after for event in transcript.events] == [0, 1, 2, 2, 2, 2]
    assert transcript.title == "Files"


def test_other_lists_of_a_document_are_events(tmp_path: Path) -> None:
    session = HEADER | {"messages": [ASKED, {"odd": 1}], "directories": ["/home", 7], "none": []}
    transcript = read_one(write(tmp_path / "s.json", session, indent=2), READER)
    assert [(event.kind, event.native, event.after) for event in transcript.events] == [
        ("session", HEADER | {"messages": None, "directories": None, "none": []}, 0),
        ("unknown", {"odd": 1}, 1),
        ("directories", "/home", 1),
        ("directories", 7, 1),
    ]


def test_a_title_stays_until_another_is_given(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", HEADER | {"summary": "First"}, ASKED, {"$set": {"summary": "Other"}}, CALLED)
    titles = [recorded.title for recorded in READER.read(RecordedFile(path))]
    assert titles == ["First", "First", "Other", "Other"]
