"""Messages of the AI SDK: parts beside the role."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lcm.records.conversation import Message
from lcm.transcript.chat import ChatReader
from lcm.transcript.parts import tool_calls
from lcm.transcript.passages import passages
from tests.lcm.transcript.recordings import columns, read_message, read_one, rebuilt, write

READER = ChatReader()


def said(tmp_path: Path, *parts: Any, **beside: Any) -> Message:
    return read_message(write(tmp_path / "talk.json", native := message(*parts, **beside)), READER, native)


def message(*parts: Any, **beside: Any) -> dict[str, Any]:
    return {"id": "m1", "role": "assistant", "parts": list(parts)} | beside


def test_the_words_are_those_of_the_texts_and_of_what_tools_gave_back(tmp_path: Path) -> None:
    one = said(
        tmp_path,
        {"type": "step-start"},
        {"type": "reasoning", "text": "Light."},
        {"type": "text", "text": "Spruce.", "state": "done"},
        {
            "type": "tool-look_up",
            "toolCallId": "t1",
            "state": "output-available",
            "input": {"q": 1},
            "output": {"text": "0.4"},
        },
        {
            "type": "dynamic-tool",
            "toolName": "weigh",
            "toolCallId": "t2",
            "state": "output-error",
            "input": {},
            "errorText": "no",
        },
        {"type": "tool-look_up", "toolCallId": "t3", "state": "input-available", "input": {"q": 2}},
        {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AA=="},
        {"type": "data-weather", "data": {"text": "calm"}},
        {"type": "of tomorrow"},
    )
    assert one.content == "Spruce.\n0.4\nno"
    assert columns(one) == [
        ("step_start", None, None, None, None, None),
        ("reasoning", "Light.", None, None, None, None),
        ("text", "Spruce.", None, None, None, None),
        ("tool", None, "t1", "look_up", '{"q":1}', '{"text":"0.4"}'),
        ("tool", None, "t2", "weigh", "{}", '"no"'),
        ("tool", None, "t3", "look_up", '{"q":2}', None),
        ("file", None, None, None, None, None),
        ("agent", None, None, None, None, None),
        ("agent", None, None, None, None, None),
    ]


def test_version_four_says_its_words_twice_and_calls_by_invocations(tmp_path: Path) -> None:
    call = {"state": "result", "toolCallId": "t1", "toolName": "look_up", "args": {"q": 1}, "result": "found"}
    parts = {"type": "text", "text": "Spruce."}, {"type": "tool-invocation", "toolInvocation": call}
    one = said(tmp_path, *parts, content="Spruce.", createdAt="2026-01-05T09:00:00Z")
    assert one.content == "Spruce.\nfound"
    assert columns(one)[2] == ("tool", None, "t1", "look_up", '{"q":1}', '"found"')
    assert one.created_at == datetime(2026, 1, 5, 9, tzinfo=UTC)


@pytest.mark.parametrize("key", ["createdAt", "timestamp", "created"])
def test_the_metadata_may_say_when_it_was_said(key: str, tmp_path: Path) -> None:
    text = {"type": "text", "text": "x"}
    assert said(tmp_path, text, metadata={key: 1767603600000}).created_at == datetime(2026, 1, 5, 9, tzinfo=UTC)
    assert said(tmp_path, text, metadata={key: "soon"}).created_at is None


def test_messages_alone_and_sessions_of_them_are_read_alike(tmp_path: Path) -> None:
    natives = [message({"type": "text", "text": "x"}, role="user", id="m0"), message({"type": "text", "text": "y"})]
    files = [
        write(tmp_path / "array.json", natives),
        write(tmp_path / "lines.jsonl", *natives),
        write(tmp_path / "session.json", {"id": "chat1", "messages": natives}),
        write(tmp_path / "broad.json", {"id": "chat1", "messages": natives}, indent=1),
    ]
    readings = [read_one(path, READER) for path in files]
    assert [[m.content for m in reading.messages] for reading in readings] == [["x", "y"]] * 4
    assert [rebuilt(reading) for reading in readings] == [list(map(json.dumps, natives))] * 4
    assert [reading.conversation_id for reading in readings] == ["array", "lines", "chat1", "chat1"]


CALL = {"type": "tool-call", "toolCallId": "t1", "toolName": "weigh"}
PICTURE = {"type": "media", "data": "iVBORw0KGgo=", "mediaType": "image/png"}


@pytest.mark.parametrize("key", ["input", "args"])
def test_what_a_model_is_sent_has_its_calls_among_the_content(tmp_path: Path, key: str) -> None:
    native = {"role": "assistant", "content": [{"type": "text", "text": "I weigh."}, CALL | {key: {"of": "spruce"}}]}
    one = read_message(write(tmp_path / "talk.jsonl", native), READER, native)
    assert (one.content, tool_calls(one)) == ("I weigh.", 1)
    assert [passage.text for passage in passages(one)] == ["I weigh.", "[tool weigh] of: spruce"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"output": {"type": "text", "value": "0.4"}}, "0.4"),
        ({"output": {"type": "error-text", "value": "no scale"}}, "no scale"),
        ({"output": {"type": "json", "value": {"kilos": 0.4}}}, "[result] kilos: 0.4"),
        ({"output": {"type": "content", "value": [{"type": "text", "text": "0.4"}, PICTURE]}}, "0.4"),
        ({"result": {"kilos": 0.4}}, "[result] kilos: 0.4"),
    ],
)
def test_what_a_model_is_sent_has_the_results_of_tools_in_messages_of_theirs(tmp_path, given, told):
    block = {"type": "tool-result", "toolCallId": "t1", "toolName": "weigh"} | given
    native = {"role": "tool", "content": [block]}
    one = read_message(write(tmp_path / "talk.jsonl", native), READER, native)
    assert [passage.text for passage in passages(one)] == [told]
    assert [(part.tool_call_id, part.tool_name) for part in one.parts] == [("t1", "weigh")]
    assert tool_calls(one) == 0
