"""LangChain messages in three forms, and LangGraph states that hold them."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lcm.records.conversation import Event
from lcm.transcript.langchain import LangChainReader
from lcm.transcript.reading import joined, read_pieces
from lcm.transcript.recorded_file import RecordedFile
from tests.lcm.transcript.recordings import columns, heard, read, read_one, rebuilt, write

READER = LangChainReader()
CALL = {"name": "look_up", "args": {"q": "mast"}, "id": "c1", "type": "tool_call"}
FIELDS: list[dict[str, Any]] = [
    {"type": "system", "content": "Be brief.", "id": "m0"},
    {"type": "human", "content": "Which wood?", "id": "m1", "name": "ada"},
    {"type": "ai", "content": "", "id": "m2", "tool_calls": [CALL], "response_metadata": {"created": 1767603600}},
    {"type": "tool", "content": "0.4", "id": "m3", "tool_call_id": "c1", "name": "look_up"},
    {"type": "ai", "content": [{"type": "text", "text": "Spruce."}], "id": "m4"},
]


def constructed(fields: dict[str, Any]) -> dict[str, Any]:
    name = {"human": "HumanMessage", "ai": "AIMessageChunk", "system": "SystemMessage", "tool": "ToolMessage"}
    path = ["langchain_core", "messages", name[fields["type"]]]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": fields}


FORMS = {
    "fields": FIELDS,
    "data": [{"type": fields["type"], "data": fields} for fields in FIELDS],
    "constructed": list(map(constructed, FIELDS)),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_says_the_same_and_comes_back(form: str, tmp_path: Path) -> None:
    transcript = read_one(write(tmp_path / "talk.json", FORMS[form]), READER)
    assert [(m.message_id, m.role, m.content, m.author) for m in transcript.messages] == [
        ("talk:m0", "system", "Be brief.", None),
        ("talk:m1", "user", "Which wood?", "ada"),
        ("talk:m2", "assistant", "", None),
        ("talk:m3", "tool", "0.4", None),
        ("talk:m4", "assistant", "Spruce.", None),
    ]
    assert rebuilt(transcript) == list(map(json.dumps, FORMS[form]))
    assert columns(transcript.messages[2])[-1] == ("tool", None, "c1", "look_up", '{"q":"mast"}', None)
    assert columns(transcript.messages[3]) == [("text", "0.4", "c1", "look_up", None, None)]
    assert transcript.messages[2].created_at == datetime(2026, 1, 5, 9, tzinfo=UTC)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("indent", [None, 1])
def test_a_state_holds_its_messages_in_one_of_three_places(form: str, indent: int | None, tmp_path: Path) -> None:
    said = FORMS[form]
    states = [
        ({"messages": said}, {"messages": None}),
        ({"values": {"messages": said, "n": 1}, "next": []}, {"values": {"messages": None, "n": 1}, "next": []}),
        (
            {"checkpoint": {"channel_values": {"messages": said}}},
            {"checkpoint": {"channel_values": {"messages": None}}},
        ),
    ]
    for state, header in states:
        transcript = read_one(write(tmp_path / "talk.json", state, indent=indent), READER)
        assert rebuilt(transcript) == list(map(json.dumps, said))
        assert transcript.events == (Event("state", header),)


@pytest.mark.parametrize("newest_first", [True, False])
def test_a_history_of_one_thread_says_each_message_once(newest_first: bool, tmp_path: Path) -> None:
    states = [{"values": {"messages": FIELDS[:n]}, "config": {"configurable": {"thread_id": "t"}}} for n in (1, 3, 5)]
    transcript = read_one(write(tmp_path / "a.json", states[::-1] if newest_first else states), READER)
    assert heard([transcript]) == {"t": ["m0", "m1", "m2", "m3", "m4"]}
    assert [event.kind for event in transcript.events].count("copy") == 1 + 3
    other = {"values": {"messages": FIELDS[:1]}, "thread_id": "u"}
    assert heard(read(write(tmp_path / "b.json", [*states, other]), READER)[0])["u"] == ["m0"]


@pytest.mark.parametrize("newest_first", [True, False])
def test_a_message_was_said_when_the_first_state_that_holds_it_was_kept(newest_first: bool, tmp_path: Path) -> None:
    said = FORMS["data"]
    states = [{"values": {"messages": said[:n]}, "created_at": f"2026-01-05T09:0{n}:00Z"} for n in (2, 5)]
    states[1] = {"checkpoint": {"channel_values": {"messages": said}, "ts": states[1]["created_at"]}}
    transcript = read_one(write(tmp_path / "a.json", states[::-1] if newest_first else states), READER)
    minutes = [m.created_at and m.created_at.minute for m in transcript.messages]
    assert minutes == [2, 2, 0, 5, 5]  # the third has its own


def test_what_a_message_repeats_within_a_state_is_said_twice(tmp_path: Path) -> None:
    state = {"messages": [{"type": "human", "content": "Yes."}, {"type": "human", "content": "Yes."}]}
    assert [m.content for m in read_one(write(tmp_path / "a.json", state), READER).messages] == ["Yes.", "Yes."]


def test_what_nobody_says_is_an_event(tmp_path: Path) -> None:
    removal = {"type": "remove", "content": "", "id": "m1"}
    transcript = read_one(write(tmp_path / "a.json", [FIELDS[1], removal, {"type": "human"}]), READER)
    assert transcript.events == (Event("remove", removal, 1), Event("human", {"type": "human"}, 1))


def test_what_is_said_twice_without_an_id_is_two_messages_of_each_state(tmp_path: Path) -> None:
    said = [{"type": "human", "content": "next"}, {"type": "ai", "content": "done"}] * 2
    states = [{"thread_id": "t", "values": {"messages": said[:many]}} for many in (1, 2, 4)]
    transcript = read_one(write(tmp_path / "talk.jsonl", *states), READER)
    assert [message.content for message in transcript.messages] == ["next", "done"] * 2
    assert sum(event.kind == "copy" for event in transcript.events) == 3


def history(*talks: str, newest_first: bool = False, is_timed: bool = True) -> list[dict[str, Any]]:
    """States that hold these messages: each a letter, its id, and perhaps a digit, what it says."""
    states = []
    for minute, talk in enumerate(talks):
        said = [{"type": "human", "id": one[0], "content": one} for one in talk.split()]
        at = {"created_at": f"2026-01-05T09:{minute:02}:00Z"} if is_timed else {}
        states.append({"values": {"messages": said}, "config": {"configurable": {"thread_id": "t"}}} | at)
    return states[::-1] if newest_first else states


@pytest.mark.parametrize(("newest_first", "is_timed"), [(True, True), (False, True), (True, False), (False, False)])
@pytest.mark.parametrize(
    ("talks", "left"),
    [
        # Written anew, in its place.
        (["a", "a b", "a2 b c"], ["a2 b c"]),
        # Removed, at the end and at the beginning.
        (["a", "a b c", "a", "a d"], ["a d", "b c"]),
        (["a", "a b c d", "c d"], ["c d", "a b"]),
        # Forked, twice.
        (["a", "a b c", "a d", "a d e", "a f"], ["a f", "b c", "d e"]),
        # A state without messages tells nothing.
        (["", "a", "a b"], ["a b"]),
    ],
)
def test_what_a_history_says_last(
    tmp_path: Path, talks: list[str], left: list[str], newest_first: bool, is_timed: bool
) -> None:
    states = history(*talks, newest_first=newest_first, is_timed=is_timed)
    file = RecordedFile(write(tmp_path / "a.json", states))
    found = {one.conversation_id: one for one in joined(read_pieces(file, READER))}
    main, *branches = left
    assert {key: " ".join(m.content for m in one.messages) for key, one in found.items() if one.messages} == (
        {"t": main} | {f"t~{words[0]}": words for words in branches}
    )
    copies = sum(event.kind == "copy" for one in found.values() for event in one.events)
    said = sum(len(one.messages) for one in found.values())
    assert file.copies == copies == sum(len(talk.split()) for talk in talks) - said


def test_a_subgraph_keeps_states_of_its_own(tmp_path: Path) -> None:
    states = history("a", "a b", "b c")
    states[2]["config"]["configurable"]["checkpoint_ns"] = "search:1"
    transcript = read_one(write(tmp_path / "a.jsonl", *states), READER)
    assert sorted(message.content for message in transcript.messages) == ["a", "b", "c"]
