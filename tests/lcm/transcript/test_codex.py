"""Codex sessions of both generations."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lcm.records.conversation import Message
from lcm.transcript.codex import CodexReader
from lcm.transcript.recorded_file import RecordedFile
from tests.lcm.transcript.recordings import columns, natives, read, read_message, read_one, rebuilt, write

READER = CodexReader()
AT = "2026-01-05T09:00:01.500Z"
HEADER = {"timestamp": AT, "type": "session_meta", "payload": {"id": "0a1b", "timestamp": AT, "cwd": "/home/ada"}}


def item(**payload: Any) -> dict[str, Any]:
    return {"timestamp": AT, "type": "response_item", "payload": payload}


@pytest.fixture
def message_of(tmp_path: Path) -> Callable[[dict[str, Any]], Message]:
    """Reads one item behind a header."""
    return lambda record: read_message(write(tmp_path / "s.jsonl", HEADER, record), READER, record)


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


SHELL = {"type": "function_call", "name": "shell"}
CALLS: list[tuple[dict[str, Any], tuple[str | None, ...]]] = [
    (SHELL | {"call_id": "c1", "arguments": '{"a": 1}'}, ("c1", "shell", '{"a": 1}')),
    (SHELL | {"arguments": {"a": 1}}, (None, "shell", '{"a":1}')),
    (SHELL | {"arguments": None}, (None, "shell", None)),
    ({"type": "custom_tool_call", "name": "patch", "call_id": "c1", "input": "*** B"}, ("c1", "patch", '"*** B"')),
    ({"type": "tool_call", "function": {"name": "run"}, "arguments": {}}, (None, "run", "{}")),
    ({"type": "tool_call"}, (None, None, None)),
    ({"type": "local_shell_call", "action": {"command": ["ls"]}}, (None, "local_shell", '{"command":["ls"]}')),
    ({"type": "web_search_call", "action": {"query": "q"}}, (None, "web_search", '{"query":"q"}')),
    ({"type": "tool_search_call", "call_id": "c1", "arguments": {"a": 1}}, ("c1", "tool_search", '{"a":1}')),
    ({"type": "image_generation_call", "revised_prompt": "a cat"}, (None, "image_generation", '"a cat"')),
    ({"type": "future_call", "call_id": 7}, (None, "future", None)),
]


@pytest.mark.parametrize(("payload", "expected"), CALLS)
def test_a_call_is_the_assistants_and_has_no_words(message_of, payload, expected):
    message = message_of(item(**payload))
    assert (message.role, message.content) == ("assistant", "")
    assert columns(message) == [("tool", None, *expected, None)]


TEXT = {"type": "input_text", "text": "a"}
OUTPUTS: list[tuple[str, dict[str, Any], str, str | None, str | None]] = [
    ("function_call_output", {"output": "a\nb"}, "a\nb", "a\nb", None),
    ("function_call_output", {"output": '{"output": "a", "exit": 0}'}, "a", '{"output": "a", "exit": 0}', None),
    ("function_call_output", {"output": TEXT}, "a", None, '{"type":"input_text","text":"a"}'),
    ("custom_tool_call_output", {"output": [TEXT, {}]}, "a", None, '[{"type":"input_text","text":"a"},{}]'),
    ("tool_result", {"result": {"stdout": "a", "exit": 0}}, '{"stdout":"a","exit":0}', None, '{"stdout":"a","exit":0}'),
    ("tool_search_output", {"tools": [{"name": "n"}]}, '[{"name":"n"}]', None, '[{"name":"n"}]'),
    ("future_output", {}, "", None, None),
]


@pytest.mark.parametrize(("kind", "payload", "words", "text", "tool_output"), OUTPUTS)
def test_an_output_is_the_tools_and_has_the_id_of_its_call(message_of, kind, payload, words, text, tool_output):
    message = message_of(item(type=kind, **payload, call_id="c1", name="shell"))
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
    transcript = read_one(write(tmp_path / "s.jsonl", HEADER, said, *others), READER)
    assert (transcript.conversation_id, len(transcript.messages)) == ("0a1b", 1)
    assert [event.native for event in transcript.events] == [HEADER, *others]
    assert [event.kind for event in transcript.events] == [
        "session_meta", "event_msg", "turn_context", "compacted", "world_state", "response_item", "response_item",
        "session_meta", "from the future",
    ]  # fmt: skip
    assert [event.after for event in transcript.events] == [0] + [1] * len(others)


def test_a_name_of_the_thread_is_the_title_until_another_is_given(tmp_path: Path) -> None:
    first, other, none = (
        {"timestamp": AT, "type": "event_msg", "payload": {"type": "thread_name_updated", "thread_name": name}}
        for name in ("First", "Other", None)
    )
    said = item(role="user", content="Hello")
    path = write(tmp_path / "s.jsonl", HEADER, first, said, said, other, said, none)
    titles = [recorded.title for recorded in READER.read(RecordedFile(path))]
    assert titles == [None, "First", "First", "First", "Other", "Other", "Other"]
    assert read_one(path, READER).title == "Other"


def user(text: str) -> dict[str, Any]:
    return item(type="message", role="user", content=[{"type": "input_text", "text": text}])


def back(turns: Any) -> dict[str, Any]:
    return {"timestamp": AT, "type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": turns}}


CONTEXT = user("<environment_context><cwd>/boat</cwd></environment_context>")
RULES = user("# AGENTS.md instructions for /boat\n\nBe short.")
CALL = item(type="custom_tool_call", call_id="c", name="exec", input="ls")


@pytest.mark.parametrize(
    ("records", "talks"),
    [
        ([CONTEXT, RULES, user("a"), CALL, back(1), user("b")], [3, 2]),
        ([user("a"), user("b"), back(1), user("c"), back(2), user("d")], [1, 2, 1]),
        ([CONTEXT, user("a"), back(9)], [1, 1]),
        ([user("a"), CONTEXT, CALL, user("<b> or not"), CALL, back(1)], [3, 2]),
        ([CONTEXT, back(1), user("a")], [2]),
        ([user("a"), user("<svg><path/></svg>"), back(1), user("b")], [2, 1]),
        ([user("a"), user(""), back(1), user("b")], [2, 1]),
        ([user("a"), back(0), back(-1), back(None), back("1")], [1]),
        ([user("it says thread_rolled_back")], [1]),
    ],
)
def test_turns_that_were_rolled_back_are_a_branch(tmp_path: Path, records: list[Any], talks: list[int]) -> None:
    transcripts, aside = read(write(tmp_path / "s.jsonl", HEADER, *records), READER)
    assert aside == []
    assert sorted((len(one.messages) for one in transcripts[1:]), reverse=True) == talks[1:]
    assert (transcripts[0].conversation_id, len(transcripts[0].messages)) == ("0a1b", talks[0])
    assert all(one.conversation_id.startswith("0a1b~") for one in transcripts[1:])
    kept = Counter(json.dumps(record) for one in transcripts for record in natives((*one.events, *one.messages)))
    assert kept == Counter(map(json.dumps, [HEADER, *records]))


@pytest.mark.parametrize(
    ("records", "told"),
    [
        ([], "a fork that holds no words of its own: read the session 0a1b instead"),
        ([user("a")], "forked from the session 0a1b, which is not among the files: what both say counts as its own"),
    ],
)
def test_a_fork_names_its_parent_that_is_not_there(tmp_path: Path, records: list[Any], told: str) -> None:
    fork = HEADER | {"payload": {"id": "f1", "forked_from_id": "0a1b"}}
    file = RecordedFile(write(tmp_path / "s.jsonl", fork, {"type": "turn_context", "payload": {}}, *records))
    assert len(list(READER.read(file))) == 2 + len(records)
    assert file.doubts == [f"{file.path}: {told}"]


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
    transcript = read_one(write(tmp_path / "s.jsonl", EARLY_HEADER, EARLY[0], state, *EARLY[1:]), READER)
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
    assert rebuilt(transcript) == list(map(json.dumps, EARLY))
    assert [m.created_at is None for m in transcript.messages] == [True] * 5 + [False] * 2
    assert transcript.messages[5].parts[0].text == "Thanks"


def test_a_session_without_header_is_named_by_its_file(tmp_path: Path) -> None:
    assert read_one(write(tmp_path / "night.jsonl", EARLY[0]), READER).conversation_id == "night"
