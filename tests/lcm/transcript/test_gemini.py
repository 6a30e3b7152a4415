"""Gemini CLI sessions: documents, logs and saved histories."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.records.conversation import Message, Transcript
from lcm.transcript.gemini import GeminiReader
from lcm.transcript.parts import rebuild_record
from lcm.transcript.reading import joined, read_pieces
from lcm.transcript.recorded_file import RecordedFile
from tests.lcm.store.contents import json_values

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


def document(path: Path, session: Any) -> Path:
    path.write_text(json.dumps(session, indent=2))
    return path


def log(path: Path, *lines: Any) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n")
    return path


def read(path: Path) -> tuple[Transcript, RecordedFile]:
    file = RecordedFile(path)
    (transcript,) = joined(read_pieces(file, READER))
    return transcript, file


def message_of(path: Path, native: dict[str, Any]) -> Message:
    transcript, file = read(document(path / "s.json", HEADER | {"messages": [native]}))
    assert file.quarantine == []
    (message,) = transcript.messages
    assert json.dumps(rebuild_record(message)) == json.dumps(native)
    return message


def columns(message: Message) -> list[tuple[str | None, ...]]:
    return [(p.part_type, p.text, p.tool_call_id, p.tool_name, p.tool_input, p.tool_output) for p in message.parts]


RESULT = '[{"functionResponse":{"id":"c1","name":"shell","response":{"output":"a\\nb"}}}]'


def as_document(path: Path) -> Path:
    return document(path / "s.json", {"messages": [ASKED, CALLED]} | HEADER)


def as_one_line(path: Path) -> Path:
    return log(path / "s.json", {"messages": [ASKED, CALLED]} | HEADER)


def as_log(path: Path) -> Path:
    return log(path / "s.jsonl", HEADER, ASKED, CALLED)


@pytest.mark.parametrize("form", [as_document, as_one_line, as_log])
def test_all_forms_give_the_same_messages(tmp_path: Path, form: Any) -> None:
    assert READER.detects(RecordedFile(form(tmp_path)))
    transcript, file = read(form(tmp_path))
    assert file.quarantine == []
    (header,) = transcript.events
    assert (header.kind, header.after) == ("session", 0)
    assert header.native == (HEADER if form is as_log else {"messages": None} | HEADER)
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
    assert [json.dumps(rebuild_record(m)) for m in (asked, called)] == [json.dumps(ASKED), json.dumps(CALLED)]


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
    for path in (
        document(tmp_path / "chat.json", {"history": history} | header),
        document(tmp_path / "chat.array", history),
        log(tmp_path / "chat.jsonl", *history),
    ):
        assert READER.detects(RecordedFile(path))
        transcript, _ = read(path)
        assert [(m.message_id, m.role, m.content) for m in transcript.messages] == [
            ("chat:1", "user", "Hello"),
            ("chat:2", "assistant", "Hi"),
        ]
        assert transcript.messages[0].created_at == datetime(2026, 1, 5, 9, 0, 1, tzinfo=UTC)
        assert [json.dumps(rebuild_record(m)) for m in transcript.messages] == [json.dumps(said) for said in history]
    assert read(tmp_path / "chat.json")[0].title == "A greeting"


def test_only_the_last_writing_of_a_message_is_one(tmp_path: Path) -> None:
    begun = {"id": "m2", "type": "gemini", "content": "I look."}
    changes = [{"$set": {"summary": "Files"}}, {"$rewindTo": "m1"}, {"type": "from the future"}, {"more": "unknown"}]
    transcript, file = read(log(tmp_path / "s.jsonl", HEADER, ASKED, begun, CALLED, *changes))
    assert file.quarantine == []
    assert [m.message_id for m in transcript.messages] == ["g1:m1", "g1:m2"]
    assert rebuild_record(transcript.messages[1]) == CALLED
    assert [event.native for event in transcript.events] == [HEADER, begun, *changes]
    kinds = ["session", "gemini", "$set", "$rewindTo", "from the future", "unknown"]
    assert [event.kind for event in transcript.events] == kinds
    assert [event.after for event in transcript.events] == [0, 1, 2, 2, 2, 2]
    assert transcript.title == "Files"


def test_other_lists_of_a_document_are_events(tmp_path: Path) -> None:
    session = HEADER | {"messages": [ASKED, {"odd": 1}], "directories": ["/home", 7], "none": []}
    transcript, file = read(document(tmp_path / "s.json", session))
    assert file.quarantine == []
    assert [(event.kind, event.native, event.after) for event in transcript.events] == [
        ("session", HEADER | {"messages": None, "directories": None, "none": []}, 0),
        ("unknown", {"odd": 1}, 1),
        ("directories", "/home", 1),
        ("directories", 7, 1),
    ]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (7, "a record must be a JSON object, got int"),
        (ASKED | {"timestamp": "noon"}, "an instant must be ISO 8601 text or an epoch number, got 'noon'"),
    ],
)
def test_a_bad_message_is_put_aside_with_the_reason(tmp_path: Path, record: Any, reason: str) -> None:
    session = HEADER | {"messages": [record, CALLED]}
    for path, line, where in (
        (log(tmp_path / "s.jsonl", HEADER, json.dumps(record), CALLED), 2, ""),
        (log(tmp_path / "line.json", session), 1, "messages 1: "),
        (document(tmp_path / "s.json", session), 8, "messages 1: "),
    ):
        transcript, file = read(path)
        assert [(lost.line, lost.reason) for lost in file.quarantine] == [(line, where + reason)]
        assert len(transcript.messages) == 1


def test_it_is_detected_behind_damage(tmp_path: Path) -> None:
    assert READER.detects(RecordedFile(log(tmp_path / "s.jsonl", "{broken", ASKED, CALLED, CALLED)))
    assert READER.detects(RecordedFile(document(tmp_path / "s.json", HEADER | {"messages": []})))
    assert READER.detects(RecordedFile(log(tmp_path / "s.json", HEADER)))


@pytest.mark.parametrize(
    "value",
    [
        {"messages": [{"role": "user", "content": "x"}], "session_id": "s"},
        {"messages": [{"role": "user", "parts": [{"type": "text", "text": "x"}]}]},
        {"type": "user", "message": {"role": "user", "parts": [{"text": "x"}]}, "sessionId": "s"},
        {"type": "user", "message": {"role": "user", "content": "x"}, "sessionId": "s"},
        {"role": "user", "content": "x"},
        {"role": "user", "parts": "x"},
        {"type": "message", "role": "user", "text": "x"},
        {"type": "error", "message": "x"},
        {"type": ["gemini"], "content": "x"},
        {"role": ["user"], "parts": []},
        {"history": "long"},
        7,
    ],
)
def test_other_formats_are_not_taken(tmp_path: Path, value: Any) -> None:
    assert not READER.detects(RecordedFile(document(tmp_path / "s.json", value)))
    assert not READER.detects(RecordedFile(log(tmp_path / "s.jsonl", json.dumps(value))))


_speakers = st.sampled_from(["user", "gemini", "model", "info", "new"]) | json_values
_blocks = st.one_of(
    st.dictionaries(st.sampled_from(["text", "thought", "functionCall", "functionResponse"]), json_values, max_size=2),
    json_values,
)
_contents = st.one_of(json_values, st.lists(_blocks, max_size=3), st.builds(lambda parts: {"parts": parts}, _blocks))
_messages = st.fixed_dictionaries(
    {},
    optional={
        "type": _speakers,
        "role": _speakers,
        "id": st.sampled_from(["a", "b"]) | json_values,
        "content": _contents,
        "parts": _contents,
        "thoughts": json_values,
        "toolCalls": st.lists(
            st.dictionaries(st.sampled_from(["id", "name", "args", "result"]), json_values, max_size=3), max_size=2
        )
        | json_values,
        "timestamp": json_values,
        "sessionId": json_values,
        "$set": json_values,
    },
)
_records = st.one_of(_messages, json_values)


def kept(transcript: Transcript) -> list[str]:
    rebuilt = [json.dumps(rebuild_record(message)) for message in transcript.messages]
    return rebuilt + [json.dumps(event.native) for event in transcript.events]


@given(st.lists(_records, max_size=5))
def test_whatever_stands_in_a_log_is_accounted_for(
    tmp_path_factory: pytest.TempPathFactory, records: list[Any]
) -> None:
    records = [HEADER, *records]  # a first line that is a list would be a document
    transcript, file = read(log(tmp_path_factory.mktemp("any") / "s.jsonl", *map(json.dumps, records)))
    found = kept(transcript) + [json.dumps(records[lost.line - 1]) for lost in file.quarantine]
    assert sorted(found) == sorted(map(json.dumps, records))


@given(st.lists(_records, min_size=1, max_size=5), json_values)
def test_whatever_stands_in_a_document_is_accounted_for(
    tmp_path_factory: pytest.TempPathFactory, records: list[Any], other: Any
) -> None:
    folder = tmp_path_factory.mktemp("any")
    transcript, file = read(document(folder / "s.json", HEADER | {"messages": records, "meta": {"other": other}}))
    header = HEADER | {"messages": None, "meta": {"other": other}}
    found = kept(transcript)
    assert len(found) + len(file.quarantine) == 1 + len(records)
    assert set(found) <= {json.dumps(record) for record in [header, *records]}
    on_a_line, one_line_file = read(log(folder / "s.jsonl", HEADER | {"messages": records, "meta": {"other": other}}))
    assert on_a_line == transcript
    assert len(one_line_file.quarantine) == len(file.quarantine)


def test_a_title_stays_until_another_is_given(tmp_path: Path) -> None:
    path = log(tmp_path / "s.jsonl", HEADER | {"summary": "First"}, ASKED, {"$set": {"summary": "Other"}}, CALLED)
    titles = [recorded.title for recorded in READER.read(RecordedFile(path))]
    assert titles == ["First", "First", "Other", "Other"]
