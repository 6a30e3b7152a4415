"""OpenAI-style chat in each of its shapes."""

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lcm.errors import TranscriptError
from lcm.records.conversation import Event, Message, Transcript
from lcm.transcript.chat import ChatReader
from lcm.transcript.parts import rebuild
from lcm.transcript.reading import joined, read_pieces
from lcm.transcript.recorded_file import RecordedFile

HELLO = {"role": "user", "content": "hello"}
REPLY = {"role": "assistant", "content": "hi"}


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    def write(*values: Any, name: str = "talk.jsonl") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(value if isinstance(value, str) else json.dumps(value) for value in values))
        return path

    return write


def read(path: Path) -> list[Transcript]:
    return joined(read_pieces(RecordedFile(path, strict=True), ChatReader()))


def read_one(path: Path) -> tuple[Message, ...]:
    assert ChatReader().detects(RecordedFile(path))
    (transcript,) = read(path)
    return transcript.messages


def test_every_shape_of_one_conversation_reads_the_same(written: Callable[..., Path]) -> None:
    session = {"messages": [HELLO, REPLY]}
    paths = [
        written(HELLO, REPLY, name="lines/talk.jsonl"),
        written([HELLO, REPLY], name="array on a line/talk.json"),
        written(json.dumps([HELLO, REPLY], indent=2), name="array/talk.json"),
        written(session, name="session on a line/talk.jsonl"),
        written(json.dumps(session, indent=1), name="session/talk.json"),
        written([session], name="array of sessions/talk.json"),
    ]
    readings = [read(path) for path in paths]
    for (transcript,) in readings:
        assert transcript.messages == readings[0][0].messages
        assert transcript.conversation_id == "talk"
    assert [m.message_id for m in readings[0][0].messages] == ["talk:1", "talk:2"]
    assert [m.session_id for m in readings[0][0].messages] == ["talk", "talk"]
    assert [rebuild(m) for m in readings[0][0].messages] == [HELLO, REPLY]


def test_sessions_of_one_conversation_are_one_transcript_in_file_order(written: Callable[..., Path]) -> None:
    path = written(
        {"conversation_id": "a", "session_id": "s1", "title": "Plans", "messages": [HELLO]},
        {"conversation_id": "b", "session_id": "s2", "messages": [REPLY]},
        "",
        {"conversation_id": "a", "session_id": "s3", "title": "Later", "messages": [REPLY, HELLO]},
    )
    first, second = read(path)
    assert (first.conversation_id, first.title, second.conversation_id, second.title) == ("a", "Later", "b", None)
    assert [(m.message_id, m.session_id) for m in first.messages] == [("a:1", "s1"), ("a:2", "s3"), ("a:3", "s3")]
    assert [(m.message_id, m.session_id) for m in second.messages] == [("b:1", "s2")]
    later = {"conversation_id": "a", "session_id": "s3", "title": "Later", "messages": None}
    assert first.events[1] == Event("session", later, after=1)


def test_a_message_may_carry_id_session_author_and_instant(written: Callable[..., Path]) -> None:
    noon = datetime(2026, 1, 5, 12, tzinfo=UTC)
    path = written(
        HELLO | {"id": "m-1", "session_id": "s9", "name": "Ada", "created_at": "2026-01-05T13:00:00+01:00"},
        HELLO | {"id": 17, "timestamp": noon.timestamp()},
        HELLO | {"id": None, "timestamp": noon.timestamp() * 1000, "created_at": None},
        {"role": "tool", "name": "search", "tool_call_id": "c1", "content": "found"},
    )
    named, numbered, unnamed, tool = read_one(path)
    assert (named.message_id, named.session_id, named.author, named.created_at) == ("talk:m-1", "s9", "Ada", noon)
    assert (numbered.message_id, numbered.session_id, numbered.created_at) == ("talk:17", "talk", noon)
    assert (unnamed.message_id, unnamed.author, unnamed.created_at) == ("talk:3", None, noon)
    assert (tool.role, tool.author, tool.parts[0].tool_name, tool.created_at) == ("tool", None, "search", None)


def test_a_session_over_many_lines_keeps_what_stands_behind_its_messages(written: Callable[..., Path]) -> None:
    session = {"messages": [HELLO, REPLY], "tools": [{"name": "ls"}], "conversation_id": "a", "extra": {"b": []}}
    path = written(json.dumps(session, indent=1))
    (transcript,) = read(path)
    assert [m.message_id for m in transcript.messages] == ["a:1", "a:2"]
    header = {"messages": None, "tools": None, "conversation_id": "a", "extra": {"b": []}}
    assert transcript.events == (Event("session", header, 0), Event("tools", {"name": "ls"}, 2))


def test_recorded_ids_that_repeat_get_a_number(written: Callable[..., Path]) -> None:
    path = written(HELLO | {"id": "x"}, HELLO | {"id": "x"}, HELLO | {"id": 4}, REPLY, HELLO | {"id": "x#2"})
    assert [m.message_id for m in read_one(path)] == ["talk:x", "talk:x#2", "talk:4", "talk:4#2", "talk:x#2#2"]


def test_a_session_dates_its_first_message_unless_that_has_its_own_instant(written: Callable[..., Path]) -> None:
    start, own = "2026-01-05T09:00:00Z", "2026-01-06T09:00:00Z"
    path = written(
        {"created_at": start, "messages": [HELLO, REPLY]},
        {"created_at": start, "messages": [HELLO | {"created_at": own}]},
    )
    monday, tuesday = datetime(2026, 1, 5, 9, tzinfo=UTC), datetime(2026, 1, 6, 9, tzinfo=UTC)
    assert [m.created_at for m in read_one(path)] == [monday, None, tuesday]


def test_gzip_is_read_by_content_not_by_name(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(HELLO).encode()))
    plainly_named = path.with_name("other.jsonl")
    plainly_named.write_bytes(path.read_bytes())
    assert read_one(path)[0].message_id == "talk:1"
    assert read_one(plainly_named)[0].message_id == "other:1"


def test_a_byte_order_mark_and_line_separators_inside_text_are_no_trouble(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    text = "a\u2028b\u0085c"
    path.write_text("\ufeff" + json.dumps(HELLO | {"content": text}, ensure_ascii=False) + "\r\n", encoding="utf-8")
    assert read_one(path)[0].content == text


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ([HELLO, "{not json"], r"talk\.jsonl:2: not JSON: "),
        ([HELLO, "", {"content": "whose?"}], r"talk\.jsonl:3: expected a message, an object with a `role`"),
        ([HELLO, {"messages": []}], r"talk\.jsonl:2: expected a message"),
        ([{"messages": [HELLO]}, 7], r"talk\.jsonl:2: expected a session"),
        ([{"messages": [HELLO, 7]}], r"talk\.jsonl:1: messages 2: expected a message"),
        ([HELLO | {"timestamp": "last week"}], r"talk\.jsonl:1: an instant must be ISO 8601 text .* 'last week'"),
        ([HELLO | {"timestamp": [1]}], r"talk\.jsonl:1: an instant must be ISO 8601 text .* \[1\]"),
        (["[", json.dumps(HELLO) + ",", "oops]"], r"talk\.jsonl:2-end: after the last value .* not JSON: "),
        ([[HELLO, "oops"]], r"talk\.jsonl:1: expected a message"),
        ([HELLO, '{"role":"user","content":' + "9" * 5000 + "}"], r"talk\.jsonl:2: JSON beyond what can be read"),
        ([HELLO, "[" * 100_000], r"talk\.jsonl:2: JSON beyond what can be read"),
    ],
)
def test_a_bad_line_is_named(written: Callable[..., Path], lines: list[Any], error: str) -> None:
    with pytest.raises(TranscriptError, match=error):
        read(written(*lines))


def test_bytes_that_are_no_text_are_named_by_line(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_bytes(json.dumps(HELLO).encode() + b'\n{"role": "user", "content": "\xff"}')
    with pytest.raises(TranscriptError, match=r"talk\.jsonl:2: not UTF-8 text"):
        read(path)


@pytest.mark.parametrize(
    "value",
    [
        {"type": "user", "message": HELLO},
        {"messages": [{"type": "user", "content": "a"}]},
        {"role": "user"},
        [],
        ["text"],
        "plain words",
        "",
    ],
)
def test_what_is_not_chat_is_not_taken_for_it(written: Callable[..., Path], value: Any) -> None:
    assert not ChatReader().detects(RecordedFile(written(value)))
