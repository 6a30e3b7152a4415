"""Codex sessions of both generations."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.records.conversation import Message, Transcript
from lcm.transcript.codex import CodexReader
from lcm.transcript.parts import rebuild_record
from lcm.transcript.reading import joined, read_pieces
from lcm.transcript.recorded_file import RecordedFile
from tests.lcm.store.contents import json_objects, json_values

READER = CodexReader()
AT = "2026-01-05T09:00:01.500Z"
HEADER = {"timestamp": AT, "type": "session_meta", "payload": {"id": "0a1b", "timestamp": AT, "cwd": "/home/ada"}}


def item(**payload: Any) -> dict[str, Any]:
    return {"timestamp": AT, "type": "response_item", "payload": payload}


def write(path: Path, *lines: Any) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n")
    return path


def read(path: Path) -> tuple[Transcript, RecordedFile]:
    file = RecordedFile(path)
    (transcript,) = joined(read_pieces(file, READER))
    return transcript, file


@pytest.fixture
def message_of(tmp_path: Path) -> Any:
    """Reads one item behind a header, and sees that it comes back exactly."""

    def read_one(record: dict[str, Any]) -> Message:
        transcript, file = read(write(tmp_path / "s.jsonl", HEADER, record))
        assert file.quarantine == []
        (message,) = transcript.messages
        assert json.dumps(rebuild_record(message)) == json.dumps(record)
        return message

    return read_one


def columns(message: Message) -> list[tuple[str | None, ...]]:
    return [(p.part_type, p.text, p.tool_call_id, p.tool_name, p.tool_input, p.tool_output) for p in message.parts]


@pytest.mark.parametrize(
    ("payload", "role"),
    [
        ({"type": "message", "id": "m1", "role": "user"}, "user"),
        ({"type": "message", "id": "m1", "role": "developer"}, "system"),
        ({"id": "m1", "role": "assistant"}, "assistant"),
        ({"type": "agent_message", "id": "m1", "author": "Ada", "recipient": "Bob"}, "assistant"),
    ],
)
def test_what_was_said_is_a_message(message_of: Any, payload: dict[str, Any], role: str) -> None:
    message = message_of(item(**payload, content=[{"type": "input_text", "text": "Hello"}]))
    assert (message.message_id, message.role, message.content) == ("0a1b:m1", role, "Hello")
    assert (message.session_id, message.author) == ("0a1b", payload.get("author"))
    assert message.created_at == datetime(2026, 1, 5, 9, 0, 1, 500_000, tzinfo=UTC)
    assert columns(message) == [("text", "Hello", None, None, None, None)]


def test_what_is_encrypted_has_no_words(message_of: Any) -> None:
    content = [{"type": "encrypted_content", "encrypted_content": "c2VjcmV0"}]
    assert message_of(item(type="agent_message", author="Ada", content=content)).content == ""


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (
            {"type": "function_call", "name": "shell", "call_id": "c1", "arguments": '{"a": 1}'},
            ("c1", "shell", '{"a": 1}'),
        ),
        ({"type": "function_call", "name": "shell", "arguments": {"a": 1}}, (None, "shell", '{"a":1}')),
        ({"type": "function_call", "name": "shell", "arguments": None}, (None, "shell", None)),
        (
            {"type": "custom_tool_call", "name": "patch", "call_id": "c1", "input": "*** Begin"},
            ("c1", "patch", '"*** Begin"'),
        ),
        ({"type": "tool_call", "function": {"name": "run"}, "arguments": {}}, (None, "run", "{}")),
        ({"type": "tool_call"}, (None, None, None)),
        (
            {"type": "local_shell_call", "call_id": "c1", "action": {"command": ["ls"]}},
            ("c1", "local_shell", '{"command":["ls"]}'),
        ),
        ({"type": "web_search_call", "action": {"query": "q"}}, (None, "web_search", '{"query":"q"}')),
        (
            {"type": "tool_search_call", "call_id": "c1", "arguments": {"query": "q"}},
            ("c1", "tool_search", '{"query":"q"}'),
        ),
        (
            {"type": "image_generation_call", "revised_prompt": "a cat", "result": "aW1hZ2U="},
            (None, "image_generation", '"a cat"'),
        ),
        ({"type": "future_call", "call_id": 7}, (None, "future", None)),
    ],
)
def test_a_call_is_the_assistants_and_has_no_words(
    message_of: Any, payload: dict[str, Any], expected: tuple[str | None, ...]
) -> None:
    message = message_of(item(**payload))
    assert (message.role, message.content) == ("assistant", "")
    assert columns(message) == [("tool", None, *expected, None)]


@pytest.mark.parametrize(
    ("payload", "words", "text", "tool_output"),
    [
        ({"type": "function_call_output", "output": "a\nb"}, "a\nb", "a\nb", None),
        (
            {"type": "function_call_output", "output": '{"output": "a", "metadata": {"exit_code": 0}}'},
            "a",
            '{"output": "a", "metadata": {"exit_code": 0}}',
            None,
        ),
        (
            {"type": "function_call_output", "output": {"type": "input_text", "text": "a"}},
            "a",
            None,
            '{"type":"input_text","text":"a"}',
        ),
        (
            {
                "type": "custom_tool_call_output",
                "output": [{"type": "input_text", "text": "a"}, {"type": "input_image"}],
            },
            "a",
            None,
            '[{"type":"input_text","text":"a"},{"type":"input_image"}]',
        ),
        (
            {"type": "tool_result", "result": {"stdout": "a", "exitCode": 0}},
            '{"stdout":"a","exitCode":0}',
            None,
            '{"stdout":"a","exitCode":0}',
        ),
        (
            {"type": "tool_search_output", "tools": [{"type": "function_group", "name": "n"}]},
            '[{"type":"function_group","name":"n"}]',
            None,
            '[{"type":"function_group","name":"n"}]',
        ),
        ({"type": "future_output"}, "", None, None),
    ],
)
def test_an_output_is_the_tools_and_has_the_id_of_its_call(
    message_of: Any, payload: dict[str, Any], words: str, text: str | None, tool_output: str | None
) -> None:
    message = message_of(item(**payload, call_id="c1", name="shell"))
    assert (message.role, message.content) == ("tool", words)
    assert columns(message) == [("tool", text, "c1", "shell", None, tool_output)]


def test_reasoning_has_no_words_among_the_messages(message_of: Any) -> None:
    summary = [{"type": "summary_text", "text": "I plan"}, {"type": "summary_text", "text": " "}]
    content = [{"type": "reasoning_text", "text": "First ls"}]
    message = message_of(item(type="reasoning", summary=summary, content=content, encrypted_content="c2VjcmV0"))
    assert (message.role, message.content) == ("assistant", "")
    assert columns(message) == [("reasoning", "I plan\nFirst ls", None, None, None, None)]
    assert columns(message_of(item(type="reasoning", summary=[], content=None)))[0][:2] == ("reasoning", None)


def test_everything_else_is_an_event_in_its_place(tmp_path: Path) -> None:
    others = [
        {"timestamp": AT, "type": "event_msg", "payload": {"type": "user_message", "message": "Hello"}},
        {"timestamp": "[unknown]", "type": "turn_context", "payload": {"model": "m"}},
        {"type": "compacted", "payload": {"message": "", "replacement_history": [{"type": "message", "role": "user"}]}},
        {"type": "world_state", "payload": None},
        item(type="ghost_snapshot", ghost_commit={}),
        item(type=7, role="user"),
        HEADER | {"payload": {"id": "fork", "forked_from_id": "0a1b"}},
        {"type": "from the future"},
    ]
    said = item(role="user", content="Hello")
    transcript, file = read(write(tmp_path / "s.jsonl", HEADER, said, *others))
    assert file.quarantine == []
    assert (transcript.conversation_id, len(transcript.messages)) == ("0a1b", 1)
    assert [event.native for event in transcript.events] == [HEADER, *others]
    assert [event.kind for event in transcript.events] == [
        "session_meta", "event_msg", "turn_context", "compacted", "world_state", "response_item", "response_item",
        "session_meta", "from the future",
    ]  # fmt: skip
    assert [event.after for event in transcript.events] == [0] + [1] * len(others)


def test_a_thread_may_be_given_a_name(tmp_path: Path) -> None:
    renamed = [{"type": "thread_name_updated", "thread_name": name} for name in ("First", "Last", None)]
    events = [{"timestamp": AT, "type": "event_msg", "payload": payload} for payload in renamed]
    assert read(write(tmp_path / "s.jsonl", HEADER, *events))[0].title == "Last"


def test_a_name_stays_until_another_is_given(tmp_path: Path) -> None:
    named, other = (
        {"timestamp": AT, "type": "event_msg", "payload": {"type": "thread_name_updated", "thread_name": name}}
        for name in ("First", "Other")
    )
    said = item(role="user", content="Hello")
    path = write(tmp_path / "s.jsonl", HEADER, named, said, said, other, said)
    titles = [recorded.title for recorded in READER.read(RecordedFile(path))]
    assert titles == [None, "First", "First", "First", "Other", "Other"]


EARLY_HEADER = {"id": "e1", "timestamp": AT, "instructions": None, "git": {}}
EARLY = [
    {"type": "message", "id": None, "role": "user", "content": [{"type": "input_text", "text": "List the files"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"},
    {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"},
    {"type": "function_call_output", "call_id": "c1", "output": "a"},
    {"type": "function_result", "name": "shell", "result": "b"},
    {"created_at": AT, "role": "user", "message": "Thanks"},
    {"created_at": AT, "role": "assistant", "content": "Good"},
]


def test_the_early_generation_has_bare_items(tmp_path: Path) -> None:
    state = {"record_type": "state"}
    transcript, file = read(write(tmp_path / "s.jsonl", EARLY_HEADER, EARLY[0], state, *EARLY[1:]))
    assert file.quarantine == []
    assert transcript.conversation_id == "e1"
    assert [(event.kind, event.native, event.after) for event in transcript.events] == [
        ("session_meta", EARLY_HEADER, 0),
        ("state", state, 1),
    ]
    assert [(m.role, m.content) for m in transcript.messages] == [
        ("user", "List the files"), ("assistant", ""), ("assistant", ""), ("tool", "a"), ("tool", "b"),
        ("user", "Thanks"), ("assistant", "Good"),
    ]  # fmt: skip
    assert [m.message_id for m in transcript.messages[:3]] == ["e1:1", "e1:rs_1", "e1:3"]
    assert [json.dumps(rebuild_record(m)) for m in transcript.messages] == [json.dumps(record) for record in EARLY]
    assert [m.created_at is None for m in transcript.messages] == [True] * 5 + [False] * 2
    assert transcript.messages[5].parts[0].text == "Thanks"


def test_a_session_without_header_is_named_by_its_file(tmp_path: Path) -> None:
    assert read(write(tmp_path / "night.jsonl", EARLY[0]))[0].conversation_id == "night"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("7", "a record must be a JSON object, got int"),
        ({"type": "response_item", "payload": "words"}, "a response_item needs a `payload` object, got str"),
        ({"type": "response_item", "payload": None}, "a response_item needs a `payload` object, got NoneType"),
        (item(type="message", content="Hello"), "a message item needs a `role`"),
        (item(role=["user"], content="Hello"), "a message item needs a `role`"),
        (item(role="user") | {"timestamp": "noon"}, "an instant must be ISO 8601 text or an epoch number, got 'noon'"),
    ],
)
def test_a_bad_line_is_put_aside_with_the_reason(tmp_path: Path, line: Any, reason: str) -> None:
    transcript, file = read(write(tmp_path / "s.jsonl", HEADER, line, item(role="user", content="Hello")))
    assert [(lost.line, lost.reason) for lost in file.quarantine] == [(2, reason)]
    assert len(transcript.messages) == 1


@pytest.mark.parametrize(
    "lines",
    [
        [HEADER],
        ["{broken", HEADER, item(role="user"), item(role="user")],
        [item(role="user")],
        [{"type": "world_state", "payload": {}}],
        [EARLY_HEADER],
        [{"record_type": "state"}],
        *([record] for record in EARLY[:3]),
    ],
)
def test_both_generations_are_detected(tmp_path: Path, lines: list[Any]) -> None:
    assert READER.detects(RecordedFile(write(tmp_path / "any.jsonl", *lines)))


@pytest.mark.parametrize(
    "line",
    [
        {"type": "user", "message": {"role": "user", "content": "x"}},
        {"type": "message", "id": "m1", "message": {"role": "user", "content": "x"}},
        {"type": "message", "role": "user", "text": "x"},
        {"type": "message", "role": "user", "content": "x"},
        {"type": "tool_call", "toolCallId": "c1", "parameters": {}},
        {"type": "session", "id": "0a1b", "timestamp": AT},
        {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
        {"type": ["session_meta"], "payload": {}},
        {"type": "message", "content": [7]},
    ],
)
def test_other_formats_are_not_taken(tmp_path: Path, line: Any) -> None:
    assert not READER.detects(RecordedFile(write(tmp_path / "any.jsonl", line)))


_names = [
    "message", "agent_message", "reasoning", "function_call", "function_call_output", "tool_result", "session_meta",
    "response_item", "event_msg",
]  # fmt: skip
_keys = [
    "role", "content", "message", "arguments", "input", "output", "result", "summary", "call_id", "name", "function",
    "author", "id", "timestamp", "created_at", "instructions", "record_type", "thread_name",
]  # fmt: skip
_items = st.builds(
    lambda kind, known, role: kind | known | role,
    st.fixed_dictionaries({}, optional={"type": st.sampled_from(_names) | json_values}),
    st.dictionaries(st.sampled_from(_keys), json_values, max_size=4),
    st.fixed_dictionaries({}, optional={"role": st.just("user")}),
)
_wrapped = st.builds(
    lambda kind, payload, other: {"type": kind, "payload": payload} | other,
    st.sampled_from(_names) | json_values,
    _items | json_values,
    json_objects,
)


@given(st.lists(_items | _wrapped | json_values, max_size=5))
def test_whatever_stands_there_is_accounted_for(tmp_path_factory: pytest.TempPathFactory, records: list[Any]) -> None:
    records = [HEADER, *records]  # a first line that is a list would be a document
    transcript, file = read(write(tmp_path_factory.mktemp("any") / "s.jsonl", *map(json.dumps, records)))
    kept = [json.dumps(rebuild_record(m)) for m in transcript.messages]
    kept += [json.dumps(event.native) for event in transcript.events]
    kept += [json.dumps(records[lost.line - 1]) for lost in file.quarantine]
    assert sorted(kept) == sorted(map(json.dumps, records))
