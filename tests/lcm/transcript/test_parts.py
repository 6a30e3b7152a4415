"""Recorded messages become parts and envelope, and come back exactly."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.records.conversation import Message, Transcript
from lcm.store.store import Store
from lcm.transcript.parts import decompose, rebuild, tool_calls
from lcm.transcript.reading import read_transcripts
from tests.lcm.store.contents import TOKENS, json_objects, json_values


def read(native: dict[str, Any]) -> Message:
    said = decompose(native)
    return Message("m1", said.role, said.content, "s1", parts=said.parts, envelope=said.envelope)


def columns(native: dict[str, Any]) -> list[tuple[str | None, ...]]:
    parts = decompose(native).parts
    return [(p.part_type, p.text, p.tool_call_id, p.tool_name, p.tool_input, p.tool_output) for p in parts]


_types = st.sampled_from(["text", "thinking", "reasoning", "image", "toolCall", "tool_use", "tool_result", "new"])
_keys = ["text", "thinking", "id", "name", "input", "arguments", "output", "content", "summary", "data", "toolCallId"]
_blocks = st.one_of(
    st.builds(
        lambda kind, known, other: {"type": kind} | known | other,
        _types,
        st.dictionaries(st.sampled_from(_keys), json_values, max_size=3),
        json_objects,
    ),
    json_values,
)
_contents = st.one_of(json_values, st.lists(_blocks, max_size=4))
_roles = st.sampled_from(["user", "assistant", "system", "tool", "toolResult", "developer", "bashExecution", "\0"])


@st.composite
def native_messages(draw: st.DrawFn) -> dict[str, Any]:
    """Any keys in any order, the ones that matter among them."""
    known = {
        "role": draw(_roles),
        "content": draw(_contents),
        "tool_calls": draw(st.lists(_blocks, max_size=2) | json_values),
        "toolCallId": draw(json_values),
        "name": draw(json_values),
        "command": draw(json_values),
        "output": draw(json_values),
        "slots": draw(json_values),
    }
    kept = ["role", *draw(st.lists(st.sampled_from(list(known)), unique=True, max_size=6))]
    items = {key: known[key] for key in kept} | draw(json_objects)
    items["role"] = known["role"]
    return dict(draw(st.permutations(list(items.items()))))


@given(native_messages())
def test_rebuilding_gives_back_the_recorded_message_to_the_order_of_its_keys(native: dict[str, Any]) -> None:
    recorded = json.dumps(native)
    message = read(native)
    assert json.dumps(rebuild(message)) == recorded
    with Store() as store:
        store.ingest(Transcript("c", (message,)), TOKENS)
        (stored,) = store.messages()
        assert store.ingest(Transcript("c", (message,)), TOKENS) == 0
    assert json.dumps(rebuild(stored)) == recorded
    assert (stored.content, [p.text for p in stored.parts]) == (message.content, [p.text for p in message.parts])


def test_a_rebuilt_message_shares_nothing_with_the_record() -> None:
    message = read({"role": "user", "content": [{"type": "text", "text": "a"}], "usage": {"input": 1}})
    rebuilt = rebuild(message)
    rebuilt["content"][0]["text"] = rebuilt["usage"]["input"] = "changed"
    assert rebuild(message) == {"role": "user", "content": [{"type": "text", "text": "a"}], "usage": {"input": 1}}


def test_a_message_from_elsewhere_cannot_be_rebuilt() -> None:
    with pytest.raises(ValueError, match="'m1' has no recorded original"):
        rebuild(Message("m1", "user", "words", "s1"))


@pytest.mark.parametrize(
    ("recorded", "role"),
    [
        ("user", "user"), ("assistant", "assistant"), ("system", "system"), ("developer", "system"),
        ("tool", "tool"), ("toolResult", "tool"), ("function", "tool"),
        ("bashExecution", "assistant"), ("custom", "assistant"),
    ],
)  # fmt: skip
def test_every_recorded_role_becomes_one_of_four(recorded: str, role: str) -> None:
    assert decompose({"role": recorded, "content": "a"}).role == role


def test_text_is_one_text_part() -> None:
    assert columns({"role": "user", "content": "hello"}) == [("text", "hello", None, None, None, None)]
    assert columns({"role": "assistant", "content": ""}) == [("text", "", None, None, None, None)]


def test_blocks_keep_their_order_and_kind() -> None:
    content = [
        {"type": "thinking", "thinking": "ponder", "thinkingSignature": "sig"},
        {"type": "reasoning", "summary": [{"text": " one "}, {"text": "two"}, "one"]},
        {"type": "text", "text": "done"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "step-start"},
        {"type": "unheard of", "text": "words"},
        "bare",
        7,
    ]
    assert [row[:2] for row in columns({"role": "assistant", "content": content})] == [
        ("reasoning", "ponder"),
        ("reasoning", "one\ntwo"),
        ("text", "done"),
        ("file", None),
        ("step_start", None),
        ("agent", "words"),
        ("agent", "bare"),
        ("agent", None),
    ]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "toolCall", "id": "c1", "name": "ls", "arguments": {"path": "é"}},
        {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "é"}},
        {"type": "function_call", "call_id": "c1", "id": "other", "name": "ls", "arguments": {"path": "é"}},
        {"type": "tool-use", "tool_use_id": "c1", "tool_name": "ls", "toolInput": {"path": "é"}},
        {"type": "tool_call", "toolCallId": "c1", "toolName": "ls", "tool_input": '{"path":"é"}'},
    ],
)
def test_tool_calls_of_every_spelling_have_id_name_and_input(block: dict[str, Any]) -> None:
    native = {"role": "assistant", "content": [block]}
    assert columns(native) == [("tool", None, "c1", "ls", '{"path":"é"}', None)]
    assert decompose(native).content == ""


def test_openai_tool_calls_are_tool_parts_after_the_text() -> None:
    function = {"name": "book", "arguments": '{"seat": "12A"}'}
    native = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    assert columns(native) == [("tool", None, "c1", "book", '{"seat": "12A"}', None)]
    assert columns({**native, "content": "Booking."})[0] == ("text", "Booking.", None, None, None, None)
    assert [part.metadata["slot"] for part in decompose({**native, "content": "a"}).parts] == ["content", "tool_calls"]


def test_a_tool_message_names_its_call_on_every_part() -> None:
    for native in (
        {"role": "tool", "tool_call_id": "c1", "name": "book", "content": "booked"},
        {"role": "toolResult", "toolCallId": "c1", "toolName": "book", "content": [{"type": "text", "text": "booked"}]},
    ):
        assert columns(native) == [("text", "booked", "c1", "book", None, None)]
        assert decompose(native).content == "booked"


def test_a_result_block_keeps_its_output_as_json() -> None:
    block = {"type": "function_call_output", "call_id": "c1", "output": {"ok": True}}
    assert columns({"role": "user", "content": [block]}) == [("tool", None, "c1", None, None, '{"ok":true}')]


def test_a_shell_command_is_text_with_its_output() -> None:
    native = {"role": "bashExecution", "command": "ls", "output": "a\nb", "exitCode": 0}
    assert columns(native) == [("text", "$ ls\na\nb", None, None, None, None)]
    assert decompose(native).content == "$ ls\na\nb"


@pytest.mark.parametrize("native", [{"role": "x", "summary": "s"}, {"role": "x", "content": None}])
def test_a_message_without_blocks_is_one_agent_part(native: dict[str, Any]) -> None:
    assert columns(native) == [("agent", None, None, None, None, None)]
    assert decompose(native).content == ""


CALL = {"type": "tool_use", "id": "t1", "name": "ls"}


@pytest.mark.parametrize(
    ("native", "calls"),
    [
        ({"role": "assistant", "content": [{"type": "text", "text": "I look."}, CALL, CALL | {"input": {}}]}, 2),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {"name": "ls"}}, "odd"]}, 2),
        ({"role": "assistant", "content": "no call"}, 0),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a"}]}, 0),
        ({"role": "tool", "tool_call_id": "c1", "content": [{"type": "tool_result", "output": "a"}]}, 0),
        ({"role": "toolResult", "content": [{"type": "toolResult", "toolCallId": "t1"}]}, 0),
    ],
)
def test_calls_are_counted_with_arguments_or_without_and_results_are_not(native: dict[str, Any], calls: int) -> None:
    assert tool_calls(read(native)) == calls


def test_a_call_that_holds_its_result_is_one_call(tmp_path: Path) -> None:
    call = {"id": "c1", "name": "ls", "args": {}, "result": [{"functionResponse": {"response": {"output": "a"}}}]}
    told = [
        {"id": "m1", "type": "user", "content": "hi"},
        {"id": "m2", "type": "gemini", "content": "", "toolCalls": [call, {"id": "c2", "name": "pwd"}]},
    ]
    path = tmp_path / "session.json"
    path.write_text(json.dumps({"sessionId": "s", "projectHash": "p", "messages": told}))
    (transcript,) = read_transcripts(path, "gemini")
    assert list(map(tool_calls, transcript.messages)) == [0, 2]
