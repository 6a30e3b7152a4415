"""Recorded messages become parts and envelope, and come back exactly."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.records.conversation import Message, Transcript
from lcm.store.store import Store
from lcm.transcript.gemini import GeminiReader
from lcm.transcript.parts import decompose, rebuild, tool_calls
from tests.lcm.store.contents import TOKENS, json_objects, json_values
from tests.lcm.transcript.recordings import columns, read_one, write


def read(native: dict[str, Any]) -> Message:
    said = decompose(native)
    return Message("m1", said.role, said.content, "s1", parts=said.parts, envelope=said.envelope)


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


def test_every_recorded_role_becomes_one_of_four() -> None:
    roles = {
        **{name: name for name in ("user", "assistant", "system", "tool")},
        "developer": "system",
        "toolResult": "tool",
        "function": "tool",
        **dict.fromkeys(("bashExecution", "custom"), "assistant"),
    }
    assert {name: decompose({"role": name, "content": "a"}).role for name in roles} == roles


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
    assert [row[:2] for row in columns(read({"role": "assistant", "content": content}))] == [
        ("reasoning", "ponder"),
        ("reasoning", "one\ntwo"),
        ("text", "done"),
        ("file", None),
        ("step_start", None),
        ("agent", "words"),
        ("agent", "bare"),
        ("agent", None),
    ]


BOOK = [{"id": "c1", "type": "function", "function": {"name": "book", "arguments": '{"seat": "12A"}'}}]
BOOKED = ("tool", None, "c1", "book", '{"seat": "12A"}', None)
NOTHING = (None, None, None, None)
NAMES = {"id": "c1", "name": "ls"}


@pytest.mark.parametrize(
    ("native", "content", "rows"),
    [
        ({"content": "hello"}, "hello", [("text", "hello", *NOTHING)]),
        ({"content": ""}, "", [("text", "", *NOTHING)]),
        ({"content": None, "tool_calls": BOOK}, "", [BOOKED]),
        ({"content": "Booking.", "tool_calls": BOOK}, "Booking.", [("text", "Booking.", *NOTHING), BOOKED]),
        (
            {"role": "tool", "tool_call_id": "c1", "name": "book", "content": "booked"},
            "booked",
            [("text", "booked", "c1", "book", None, None)],
        ),
        (
            {"role": "toolResult", "toolCallId": "c1", "toolName": "book", "content": [{"type": "text", "text": "a"}]},
            "a",
            [("text", "a", "c1", "book", None, None)],
        ),
        (
            {"content": [{"type": "function_call_output", "call_id": "c1", "output": {"text": "ok"}}]},
            "ok",
            [("tool", None, "c1", None, None, '{"text":"ok"}')],
        ),
        (
            {"role": "bashExecution", "command": "ls", "output": "a\nb", "exitCode": 0},
            "$ ls\na\nb",
            [("text", "$ ls\na\nb", *NOTHING)],
        ),
        ({"role": "x", "summary": "s"}, "", [("agent", None, *NOTHING)]),
        ({"role": "x", "content": None}, "", [("agent", None, *NOTHING)]),
        *(
            ({"content": [block]}, "", [("tool", None, "c1", "ls", '{"path":"é"}', None)])
            for block in (
                {"type": "toolCall", **NAMES, "arguments": {"path": "é"}},
                {"type": "tool_use", **NAMES, "input": {"path": "é"}},
                {"type": "function_call", "call_id": "c1", "id": "other", "name": "ls", "arguments": {"path": "é"}},
                {"type": "tool-use", "tool_use_id": "c1", "tool_name": "ls", "toolInput": {"path": "é"}},
                {"type": "tool_call", "toolCallId": "c1", "toolName": "ls", "tool_input": '{"path":"é"}'},
            )
        ),
    ],
)
def test_a_message_has_words_and_a_part_for_each_block_and_call(native, content, rows):
    message = read({"role": "assistant"} | native)
    assert (message.content, columns(message)) == (content, rows)


CALL = {"type": "tool_use", "id": "t1", "name": "ls"}


@pytest.mark.parametrize(
    ("native", "calls"),
    [
        ({"role": "assistant", "content": [{"type": "text", "text": "I look."}, CALL, CALL | {"input": {}}]}, 2),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {"name": "ls"}}, "odd"]}, 2),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "c1"}], "tool_calls": [{"id": "c2"}]}, 2),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": 1}], "tool_calls": [{"id": 1}, {}]}, 3),
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
    told = {"type": "gemini", "content": "", "toolCalls": [call, {"id": "c2", "name": "pwd"}]}
    assert tool_calls(read_one(write(tmp_path / "s.json", told), GeminiReader()).messages[0]) == 2
