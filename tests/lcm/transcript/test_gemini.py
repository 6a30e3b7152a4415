"""Gemini CLI sessions: documents, logs and saved histories."""

import json
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.records.conversation import Message
from lcm.transcript.gemini import GeminiReader
from lcm.transcript.parts import rebuild_record
from lcm.transcript.recorded_file import RecordedFile
from tests.lcm.transcript.recordings import columns, natives, read, read_message, read_one, rebuilt, write

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
    changes = [{"$set": {"summary": "Files"}}, {"$unset": "m1"}, {"type": "from the future"}, {"more": "unknown"}]
    transcript = read_one(write(tmp_path / "s.jsonl", HEADER, ASKED, begun, CALLED, *changes), READER)
    assert [m.message_id for m in transcript.messages] == ["g1:m1", "g1:m2"]
    assert rebuild_record(transcript.messages[1]) == CALLED
    assert [event.native for event in transcript.events] == [HEADER, begun, *changes]
    kinds = ["session", "gemini", "$set", "$unset", "from the future", "unknown"]
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


def told(name: str, text: str = "") -> dict[str, Any]:
    """A message; those whose names begin with g are the model's."""
    return {"id": name, "type": "gemini" if name.startswith("g") else "user", "content": text or f"I am {name}"}


def listed(*names: str) -> dict[str, Any]:
    """A change that lists what the talk consists of."""
    return {"$set": {"messages": [told(name) for name in names], "lastUpdated": AT}}


def back(name: str) -> dict[str, Any]:
    return {"$rewindTo": name}


@pytest.mark.parametrize(
    ("records", "talks"),
    [
        ([listed("u1", "g1"), told("u2"), {"$set": {"lastUpdated": AT}}], {"g1": "u1 g1 u2"}),
        ([told("u1"), told("g1"), listed("u1", "g1", "u2")], {"g1": "u1 g1 u2"}),
        # A compression sums up what it leaves out.
        ([told("u1"), told("g1"), listed("s", "g1"), told("u2")], {"g1": "u1 g1 s u2"}),
        ([told("u1"), told("g1"), listed("u1", "s"), told("u2")], {"g1": "u1 g1 s u2"}),
        ([told("u1"), {"$set": {"messages": []}}, told("g1")], {"g1": "u1 g1"}),
        # A list that ends earlier undoes, and so does a rewinding: all from the message on, or all.
        ([told("u1"), told("g1"), told("u2"), listed("u1", "g1"), told("u3")], {"g1": "u1 g1 u3", "g1~u2": "u2"}),
        ([told("u1"), told("g1"), told("u2"), back("g1"), told("u3")], {"g1": "u1 u3", "g1~g1": "g1 u2"}),
        ([told("u1"), told("g1"), back("gone"), told("u3")], {"g1": "u3", "g1~u1": "u1 g1"}),
        ([listed("u1", "g1", "u2"), back("u2"), told("u3")], {"g1": "u1 g1 u3", "g1~u2": "u2"}),
        (
            [told("u1"), told("u2"), back("u2"), told("u3"), back("u1"), told("u4"), back("u4")],
            {"g1": "", "g1~u1": "u1 u3", "g1~u2": "u2", "g1~u4": "u4"},
        ),
        # What is written or listed again is a part of the talk again.
        ([told("u1"), told("g1"), back("u1"), told("g1"), told("u1")], {"g1": "g1 u1"}),
        ([told("u1"), told("g1"), back("g1"), listed("u1", "g1")], {"g1": "u1 g1"}),
        ([told("u1"), listed("s"), back("u1"), told("u2")], {"g1": "u1 u2", "g1~s": "s"}),
    ],
)
def test_the_talk_is_what_was_not_undone(tmp_path: Path, records: list[Any], talks: dict[str, str]) -> None:
    transcripts, aside = read(write(tmp_path / "s.jsonl", HEADER, *records), READER)
    assert aside == []
    found = {one.conversation_id: [rebuild_record(m)["id"] for m in one.messages] for one in transcripts}
    assert found == {name: names.split() for name, names in talks.items()}
    kept = Counter(json.dumps(record) for one in transcripts for record in natives((*one.events, *one.messages)))
    lists = [record["$set"].get("messages", []) for record in records if "$set" in record]
    changes = [
        {"$set": record["$set"] | {"messages": None}} if record.get("$set", {}).get("messages") else record
        for record in records
    ]
    assert kept == Counter(map(json.dumps, [HEADER, *changes, *(one for some in lists for one in some)]))


def test_a_message_in_lists_alone_is_as_the_latest_that_tells_it_otherwise(tmp_path: Path) -> None:
    changed = {"$set": {"messages": [told("u1"), told("g1", "I am done")]}}
    path = write(tmp_path / "s.jsonl", HEADER, listed("u1", "g1"), changed, changed)
    assert [message.content for message in read_one(path, READER).messages] == ["I am u1", "I am done"]
    path = write(tmp_path / "s.jsonl", HEADER, told("u1"), told("g1"), changed)
    assert [message.content for message in read_one(path, READER).messages] == ["I am u1", "I am g1"]


def test_a_bad_element_of_a_list_is_put_aside(tmp_path: Path) -> None:
    bad = {"$set": {"messages": [told("u1"), 7, told("u2") | {"timestamp": "soon"}]}}
    (transcript,), aside = read(write(tmp_path / "s.jsonl", HEADER, bad), READER)
    assert [message.content for message in transcript.messages] == ["I am u1"]
    not_one, no_instant = aside
    assert not_one.startswith("2: messages 2: a record must be")
    assert no_instant.startswith("2: messages 3: ")


@given(st.lists(st.sampled_from([*"uvw", "$u", "$v", "$w", "[uv]", "[vw]", "[w]", "[]"]), max_size=12))
def test_each_message_is_once_in_the_talk_or_in_a_branch(log: list[str]) -> None:
    records = [
        listed(*word[1:-1]) if word.startswith("[") else back(word[1:]) if word.startswith("$") else told(word)
        for word in log
    ]
    with tempfile.TemporaryDirectory() as folder:
        transcripts, aside = read(write(Path(folder) / "s.jsonl", HEADER, *records), READER)
    names = [rebuild_record(message)["id"] for one in transcripts for message in one.messages]
    assert aside == []
    assert sorted(names) == sorted({name for word in log if not word.startswith("$") for name in word.strip("[]")})
    live: list[str] = []
    for word in log:
        if word.startswith("["):
            live = list(word[1:-1])
        elif word.startswith("$"):
            live = live[: live.index(word[1:])] if word[1:] in live else []
        elif word not in live:
            live.append(word)
    main = next((one for one in transcripts if one.conversation_id == "g1"), None)
    assert set(live) <= {rebuild_record(message)["id"] for message in (main.messages if main else ())}
