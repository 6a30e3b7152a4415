"""OpenAI-style chat in each of its shapes."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lcm.records.conversation import Event, Message
from lcm.transcript.chat import ChatReader
from tests.lcm.transcript.recordings import read, read_one, rebuilt, write

READER = ChatReader()
HELLO = {"role": "user", "content": "hello"}
REPLY = {"role": "assistant", "content": "hi"}


def messages(folder: Path, *lines: Any) -> tuple[Message, ...]:
    return read_one(write(folder / "talk.jsonl", *lines), READER).messages


def test_every_shape_of_one_conversation_reads_the_same(tmp_path: Path) -> None:
    session = {"messages": [HELLO, REPLY]}
    paths = [
        write(tmp_path / "lines/talk.jsonl", HELLO, REPLY),
        write(tmp_path / "array on a line/talk.json", [HELLO, REPLY]),
        write(tmp_path / "array/talk.json", [HELLO, REPLY], indent=2),
        write(tmp_path / "session on a line/talk.jsonl", session),
        write(tmp_path / "session/talk.json", session, indent=1),
        write(tmp_path / "array of sessions/talk.json", [session]),
    ]
    readings = [read_one(path, READER) for path in paths]
    first = readings[0]
    assert [(reading.conversation_id, reading.messages) for reading in readings] == [("talk", first.messages)] * 6
    assert [(m.message_id, m.session_id) for m in first.messages] == [("talk:1", "talk"), ("talk:2", "talk")]
    assert rebuilt(first) == [json.dumps(HELLO), json.dumps(REPLY)]


def test_sessions_of_one_conversation_are_one_transcript_in_file_order(tmp_path: Path) -> None:
    path = write(
        tmp_path / "talk.jsonl",
        {"conversation_id": "a", "session_id": "s1", "title": "Plans", "messages": [HELLO]},
        {"conversation_id": "b", "session_id": "s2", "messages": [REPLY]},
        "",
        {"conversation_id": "a", "session_id": "s3", "title": "Later", "messages": [REPLY, HELLO]},
    )
    (first, second), _ = read(path, READER)
    assert (first.conversation_id, first.title, second.conversation_id, second.title) == ("a", "Later", "b", None)
    assert [(m.message_id, m.session_id) for m in first.messages] == [("a:1", "s1"), ("a:2", "s3"), ("a:3", "s3")]
    assert [(m.message_id, m.session_id) for m in second.messages] == [("b:1", "s2")]
    later = {"conversation_id": "a", "session_id": "s3", "title": "Later", "messages": None}
    assert first.events[1] == Event("session", later, after=1)


def test_a_session_that_names_nothing_is_a_conversation_and_one_that_names_itself_is_part_of_the_files(
    tmp_path: Path,
) -> None:
    transcripts, _ = read(write(tmp_path / "talk.jsonl", {"messages": [HELLO]}, {"messages": [REPLY, HELLO]}), READER)
    assert [[m.message_id for m in one.messages] for one in transcripts] == [["talk:1"], ["talk#2:1", "talk#2:2"]]
    parts = ({"session_id": f"s{n}", "messages": [HELLO]} for n in range(2))
    said = messages(tmp_path / "parts", *parts)
    assert [(m.message_id, m.session_id) for m in said] == [("talk:1", "s0"), ("talk:2", "s1")]


def test_a_message_may_carry_id_session_author_and_instant(tmp_path: Path) -> None:
    noon = datetime(2026, 1, 5, 12, tzinfo=UTC)
    named, numbered, unnamed, tool = messages(
        tmp_path,
        HELLO | {"id": "m-1", "session_id": "s9", "name": "Ada", "created_at": "2026-01-05T13:00:00+01:00"},
        HELLO | {"id": 17, "timestamp": noon.timestamp()},
        HELLO | {"id": None, "timestamp": noon.timestamp() * 1000, "created_at": None},
        {"role": "tool", "name": "search", "tool_call_id": "c1", "content": "found"},
    )
    assert (named.message_id, named.session_id, named.author, named.created_at) == ("talk:m-1", "s9", "Ada", noon)
    assert (numbered.message_id, numbered.session_id, numbered.created_at) == ("talk:17", "talk", noon)
    assert (unnamed.message_id, unnamed.author, unnamed.created_at) == ("talk:3", None, noon)
    assert (tool.role, tool.author, tool.parts[0].tool_name, tool.created_at) == ("tool", None, "search", None)


def test_messages_may_name_their_conversations(tmp_path: Path) -> None:
    told = [HELLO | {"conversation_id": "a"}, HELLO | {"conversation_id": 7}, REPLY | {"conversation_id": "a"}, REPLY]
    talks, aside = read(write(tmp_path / "talk.jsonl", *told), READER)
    assert {talk.conversation_id: [m.message_id for m in talk.messages] for talk in talks} == {
        "a": ["a:1", "a:2"],
        "7": ["7:1"],
        "talk": ["talk:1"],
    }
    assert ([m.session_id for m in talks[0].messages], aside) == (["a", "a"], [])


def test_roles_have_several_names(tmp_path: Path) -> None:
    roles = ["system", "developer", "user", "human", "assistant", "model", "tool", "function"]
    said = messages(tmp_path, *({"role": role, "content": "x"} for role in roles))
    assert [m.role for m in said] == ["system", "system", "user", "user", "assistant", "assistant", "tool", "tool"]


def test_a_session_over_many_lines_keeps_what_stands_behind_its_messages(tmp_path: Path) -> None:
    session = {"messages": [HELLO, REPLY], "tools": [{"name": "ls"}], "conversation_id": "a", "extra": {"b": []}}
    transcript = read_one(write(tmp_path / "talk.jsonl", session, indent=1), READER)
    assert [m.message_id for m in transcript.messages] == ["a:1", "a:2"]
    header = {"messages": None, "tools": None, "conversation_id": "a", "extra": {"b": []}}
    assert transcript.events == (Event("session", header, 0), Event("tools", {"name": "ls"}, 2))


def test_a_session_dates_its_first_message_unless_that_has_its_own_instant(tmp_path: Path) -> None:
    start, own = "2026-01-05T09:00:00Z", "2026-01-06T09:00:00Z"
    said = messages(
        tmp_path,
        {"conversation_id": "a", "created_at": start, "messages": [HELLO, REPLY]},
        {"conversation_id": "a", "created_at": start, "messages": [HELLO | {"created_at": own}]},
    )
    monday, tuesday = datetime(2026, 1, 5, 9, tzinfo=UTC), datetime(2026, 1, 6, 9, tzinfo=UTC)
    assert [m.created_at for m in said] == [monday, None, tuesday]


@pytest.mark.parametrize("indent", [None, 1])
def test_a_prompt_and_its_completion_are_what_two_sides_say(tmp_path: Path, indent: int | None) -> None:
    texts = {"completion": "hi", "prompt": "hello", "created_at": "2026-01-05T12:00:00Z"}
    mixed = {"prompt": [HELLO, HELLO], "completion": "hi", "label": True}
    (first, second), aside = read(write(tmp_path / "pairs.json", [texts, mixed], indent=indent), READER)
    assert aside == []
    assert [one.conversation_id for one in (first, second)] == ["pairs", "pairs#2"]
    assert [(m.role, m.content) for m in first.messages] == [("user", "hello"), ("assistant", "hi")]
    assert [m.created_at for m in first.messages] == [datetime(2026, 1, 5, 12, tzinfo=UTC), None]
    assert [m.role for m in second.messages] == ["user", "user", "assistant"]
    assert rebuilt(first) == ['{"prompt": "hello"}', '{"completion": "hi"}']
    assert first.events[0].native == texts | {"prompt": None, "completion": None}
    assert second.events[0].native == {"prompt": None, "completion": None, "label": True}


def test_a_byte_order_mark_and_line_separators_inside_text_are_no_trouble(tmp_path: Path) -> None:
    text = "a\u2028b\u0085c"
    line = "\ufeff" + json.dumps(HELLO | {"content": text}, ensure_ascii=False) + "\r"
    assert messages(tmp_path, line)[0].content == text
