"""Parquet: what was written comes back, and tables of others are read."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.errors import StoreError, TranscriptError
from lcm.records.conversation import Event, Message, Part, Transcript
from lcm.store.store import Store
from lcm.transcript.parquet import SCHEMA, FileTotals, ParquetReader, write_parquet
from lcm.transcript.parts import rebuild_record
from lcm.transcript.reading import joined, read_pieces, read_transcripts
from lcm.transcript.recorded_file import RecordedFile
from tests.lcm.store.contents import TOKENS, json_values, transcripts

READER = ParquetReader()
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
_MAX_ROWS = 500


def read(path: Path) -> tuple[list[Transcript], list[str]]:
    file = RecordedFile(path)
    found = joined(read_pieces(file, READER))
    return found, [f"{q.line}-{q.last_line}: {q.reason}" for q in file.quarantine]


def table(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def read_row(path: Path, **columns: Any) -> Message:
    held = {name: value if isinstance(value, pa.Array) else [value] for name, value in columns.items()}
    ((transcript,), aside) = read(table(path, **held))
    assert aside == []
    return transcript.messages[0]


def _talk(said: Transcript, places: list[tuple[int, str, Any]]) -> Transcript:
    """The generated transcript with ids as reading gives them, and events."""
    name = said.conversation_id or "talk"
    messages = tuple(
        replace(m, message_id=f"{name}:{m.message_id or 'none'}", session_id=m.session_id or "s") for m in said.messages
    )
    events = tuple(
        Event(kind, native, min(place, len(messages))) for place, kind, native in sorted(places, key=lambda p: p[0])
    )
    return replace(said, conversation_id=name, messages=messages, title=said.title or None, events=events)


_events = st.lists(st.tuples(st.integers(0, 5), st.text(max_size=5), json_values), max_size=3)
_talks = st.builds(_talk, transcripts, _events).filter(
    lambda t: len({m.message_id for m in t.messages}) == len(t.messages)
)


def in_pieces(talk: Transcript, size: int) -> Iterator[Transcript]:
    for start in range(0, len(talk.messages), size):
        end = start + size
        is_last = end >= len(talk.messages)
        events = tuple(e for e in talk.events if start <= e.after and (e.after < end or is_last))
        yield replace(talk, messages=talk.messages[start:end], events=events)


@given(talks=st.lists(_talks, max_size=3, unique_by=lambda t: t.conversation_id), size=st.integers(1, 6))
def test_what_is_written_comes_back(
    tmp_path_factory: pytest.TempPathFactory, talks: list[Transcript], size: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "talks.parquet"
    written = write_parquet((piece for talk in talks for piece in in_pieces(talk, size)), path)
    assert written == FileTotals(len(talks), sum(len(t.messages) for t in talks), sum(len(t.events) for t in talks))
    assert read(path) == (talks, [])


def test_what_is_stored_comes_back(tmp_path: Path) -> None:
    message = {"role": "assistant", "content": [{"type": "text", "text": "half \ud800"}, {"type": "image"}]}
    source = tmp_path / "chat.jsonl"
    source.write_text("\n".join(map(json.dumps, [{"role": "user", "content": "hello", "created_at": 7}, message])))
    with Store() as store:
        for talk in read_transcripts(source):
            store.ingest(talk, TOKENS)
        stored = tuple(store.messages("chat"))
        path = tmp_path / "stored.parquet"
        # On the caller's thread: a connection belongs to one.
        assert write_parquet((Transcript(name, tuple(store.messages(name))) for name in ["chat"]), path) == (1, 2, 0)
    (again,) = read_transcripts(path)
    assert again.messages == stored
    assert rebuild_record(again.messages[1]) == message


def test_a_row_is_a_message_or_an_event(tmp_path: Path) -> None:
    said = Message(
        "t:1", "user", "hello", "s1", NOON, "Ada", (Part("text", "hello", metadata={"slot": "content"}),), {"a": 1}
    )
    talk = Transcript("t", (said,), "w1", "Hi", (Event("session", {"id": 1}, 0), Event("label", [2], 1)))
    path = tmp_path / "deep" / "t.parquet"
    assert write_parquet([talk], path) == (1, 1, 2)
    frame = pl.read_parquet(path)
    assert frame.columns == SCHEMA.names
    assert frame.schema["created_at"] == pl.Datetime("ms", "UTC")
    shared = {"workspace_id": "w1", "conversation_id": "t", "title": "Hi"}
    assert [{key: value for key, value in row.items() if value is not None} for row in frame.rows(named=True)] == [
        shared | {"event_kind": "session", "event": '{"id":1}'},
        shared
        | {"message_id": "t:1", "session_id": "s1", "role": "user", "author": "Ada", "created_at": NOON}
        | {"content": "hello", "parts": '[{"part_type":"text","text":"hello","metadata":{"slot":"content"}}]'}
        | {"envelope": '{"a":1}'},
        shared | {"event_kind": "label", "event": "[2]"},
    ]
    assert joined(read_pieces(RecordedFile(path), READER, "w1")) == [talk]


def test_many_rows_are_read_and_written_in_order(tmp_path: Path) -> None:
    words = "word " * 2000
    talk = Transcript("t", tuple(Message(f"t:{i}", "user", f"{i} {words}", "s") for i in range(1, 3 * _MAX_ROWS)))
    path = tmp_path / "t.parquet"
    write_parquet(in_pieces(talk, 400), path)
    assert pq.ParquetFile(path).metadata.num_row_groups == 1
    write_parquet(in_pieces(replace(talk, messages=talk.messages * 2), 400), path)
    assert pq.ParquetFile(path).metadata.num_row_groups == 2
    file = RecordedFile(path)
    pieces = list(read_pieces(file, READER))
    assert max(len(piece.messages) for piece in pieces) <= _MAX_ROWS
    assert [m.content for piece in pieces for m in piece.messages] == [m.content for m in talk.messages * 2]
    assert file.bytes_read > 2 * len(talk.messages) * len(words)


def test_a_file_is_whole_or_absent(tmp_path: Path) -> None:
    class TornError(Exception):
        pass

    def torn() -> Iterator[Transcript]:
        yield Transcript("t", (Message("t:1", "user", "hello", "s"),))
        raise TornError

    with pytest.raises(TornError):
        write_parquet(torn(), tmp_path / "t.parquet")
    with pytest.raises(StoreError, match="half of a surrogate pair"):
        write_parquet([Transcript("\ud800", (Message("t:1", "user", "hello", "s"),))], tmp_path / "t.parquet")
    assert list(tmp_path.iterdir()) == []
    assert write_parquet([], tmp_path / "t.parquet") == (0, 0, 0)
    assert read(tmp_path / "t.parquet") == ([], [])


def test_optional_columns_are_used(tmp_path: Path) -> None:
    path = table(
        tmp_path / "them.parquet",
        conversation_id=[7, 7, None],
        title=["Plans", None, "?"],
        session_id=["s1", None, "s2"],
        id=["m1", None, "them:m3"],
        role=["user", "tool", "developer"],
        name=["Ada", "search", None],
        content=["hello", "found", None],
        timestamp=[NOON, NOON + timedelta(seconds=1), None],
    )
    (seven, them), aside = read(path)
    assert aside == []
    assert (seven.conversation_id, seven.title, them.conversation_id, them.title) == ("7", "Plans", "them", "?")
    assert [
        (m.message_id, m.session_id, m.role, m.author, m.created_at) for m in (*seven.messages, *them.messages)
    ] == [
        ("7:m1", "s1", "user", "Ada", NOON),
        ("7:2", "7", "tool", None, NOON + timedelta(seconds=1)),
        ("them:m3", "s2", "system", None, None),
    ]
    assert rebuild_record(seven.messages[0])["timestamp"] == "2026-01-05T12:00:00+00:00"


def test_an_instant_may_be_written_in_many_ways(tmp_path: Path) -> None:
    seconds = int(NOON.timestamp())
    for instant in (
        *(NOON, NOON.replace(tzinfo=None), "2026-01-05T13:00:00+01:00", NOON.timestamp(), seconds * 1000),
        pa.array([seconds * 10**9], pa.timestamp("ns")),
        pa.array([seconds], pa.timestamp("s", "Europe/Berlin")),
    ):
        for column in ("created_at", "timestamp"):
            message = read_row(tmp_path / "t.parquet", role="user", content="hello", **{column: instant})
            assert message.created_at == NOON


def test_tool_calls_are_a_list_or_json_text(tmp_path: Path) -> None:
    calls = [{"id": "c1", "function": {"name": "search", "arguments": '{"q":"pens"}'}}]
    for given_calls, content in ((calls, None), (json.dumps(calls), None), (json.dumps(calls), "words")):
        row = {"role": "assistant", "content": content, "tool_calls": given_calls}
        message = read_row(tmp_path / "t.parquet", **row)
        assert rebuild_record(message) == row
        part = message.parts[-1]
        assert (part.tool_call_id, part.tool_name, part.tool_input) == ("c1", "search", '{"q":"pens"}')
        assert message.content == (content or "")
    for odd in ("search(pens)", "7", "null", "[" * 5000):
        row = {"role": "assistant", "content": "words", "tool_calls": odd}
        assert rebuild_record(read_row(tmp_path / "t.parquet", **row)) == row


def test_unknown_columns_are_kept_as_json(tmp_path: Path) -> None:
    columns_kept: dict[str, tuple[Any, Any]] = {
        "day": (date(2026, 1, 5), "2026-01-05"),
        "price": (Decimal("1.50"), "1.50"),
        "data": (b"\xff\x00", "/wA="),
        "took": (timedelta(seconds=90), "0:01:30"),
        "score": (float("inf"), "inf"),
        "odds": (float("nan"), "nan"),
        "half": (0.5, 0.5),
        "nested": ({"at": NOON, "many": [1, None]}, {"at": "2026-01-05T12:00:00+00:00", "many": [1, None]}),
        "pairs": (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())), [["k", 1]]),
        "kind": (pa.array(["a"]).dictionary_encode(), "a"),
        "nothing": (None, None),
        "yes": (True, True),
    }
    columns, kept = ({name: pair[place] for name, pair in columns_kept.items()} for place in (0, 1))
    message = read_row(tmp_path / "t.parquet", role="user", content="hello", **columns)
    assert rebuild_record(message) == {"role": "user", "content": "hello", **kept}
    written = read_row(tmp_path / "t.parquet", role="user", content="hello", envelope='{"a": 1}', **columns)
    assert written.envelope == {"a": 1, "columns": kept}


def test_bad_rows_are_put_aside(tmp_path: Path) -> None:
    path = table(
        tmp_path / "t.parquet",
        role=["user", None, "user", "user", "human", "user", "user", "user", "user"],
        content=["a", "b", "c", "d", "e", None, "f", "g", "h"],
        created_at=["2026-01-05", None, "noon", None, None, None, None, None, None],
        parts=[None, None, None, "{}", "[]", "[]", '[{"part_type": "odd"}]', "[", '[{"part_type": "text", "text": 1}]'],
        event_kind=pa.nulls(9, pa.int64()),
    )
    ((transcript,), aside) = read(path)
    assert [m.content for m in transcript.messages] == ["a", ""]
    assert aside == [
        "2-2: row 2: role must be text, got None",
        "3-3: row 3: an instant must be ISO 8601 text or an epoch number, got 'noon'",
        "4-4: row 4: parts must be JSON text of a list, got '{}'",
        "5-5: row 5: role must be one of system, user, assistant, tool beside parts or an envelope, got 'human'",
        """7-7: row 7: an entry of parts must be as write_parquet leaves it, got {'part_type': 'odd'}""",
        "8-8: row 8: parts must be JSON text: Expecting value: line 1 column 2 (char 1)",
        """9-9: row 9: an entry of parts must be as write_parquet leaves it, got {'part_type': 'text', 'text': 1}""",
    ]
    for row, reason in (
        ({"role": "user", "content": 7, "envelope": "{}"}, "content must be text beside parts or an envelope, got 7"),
        ({"role": 1, "content": "x", "event_kind": None}, "role must be text, got 1"),
        ({"role": None, "content": None, "event_kind": 5}, "event_kind must be text, got 5"),
    ):
        path = table(tmp_path / "t.parquet", **{name: [value] for name, value in row.items()})
        assert read(path) == ([], [f"1-1: row 1: {reason}"])


def test_an_event_may_be_other_than_json_text(tmp_path: Path) -> None:
    columns = {"role": [None] * 3, "content": [None] * 3, "event_kind": ["a", "b", "c"], "event": ["{", None, "[1]"]}
    ((transcript,), aside) = read(table(tmp_path / "t.parquet", **columns))
    assert [event.native for event in transcript.events] == ["{", None, [1]]
    assert aside == []


def test_a_table_without_the_columns_is_not_one_of_messages(tmp_path: Path) -> None:
    path = table(tmp_path / "t.parquet", role=["user"], text=["hello"])
    assert not READER.detects(RecordedFile(path))
    aside = "1-None: row 1 and all after it: there is no column content; a table of messages has role and content"
    assert read(path) == ([], [aside])


def test_a_table_with_two_columns_of_one_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    names = ["role", "content", "note", "content", "note", "content"]
    pq.write_table(pa.Table.from_arrays([pa.array(["user"])] * 6, names=names), path)
    reason = "row 1 and all after it: there are 3 columns 'content'; give each a name of its own"
    assert read(path) == ([], [f"1-None: {reason}"])
    with pytest.raises(TranscriptError, match=rf"t\.parquet:1-end: {reason}$"):
        read_transcripts(path)


def test_ids_may_be_numbers_in_a_column_with_gaps(tmp_path: Path) -> None:
    path = table(
        tmp_path / "t.parquet",
        conversation_id=[12.0, None, 13.0, 12.0, 12.5],
        message_id=[1.0, 2.0, None, 3.0, 4.0],
        session_id=[7.0, None, 8.0, 2.0**60, 0.0],
        role=["user"] * 5,
        content=["a", "b", "c", "d", "e"],
    )
    found, aside = read(path)
    assert aside == []
    assert {t.conversation_id: [(m.message_id, m.session_id, m.content) for m in t.messages] for t in found} == {
        "12": [("12:1", "7", "a"), ("12:3", str(2**60), "d")],
        "t": [("t:2", "t", "b")],
        "13": [("13:1", "8", "c")],
        "12.5": [("12.5:4", "0", "e")],
    }


@pytest.mark.parametrize("name", ["messages", "conversations", "conversation"])
@pytest.mark.parametrize("as_text", [False, True])
def test_a_row_with_a_list_of_messages_is_a_conversation(name: str, as_text: bool, tmp_path: Path) -> None:
    said = [[{"role": "user", "content": f"ask {n}"}, {"role": "assistant", "content": f"say {n}"}] for n in range(2)]
    path = tmp_path / "train.parquet"
    lists = [json.dumps(one) for one in said] if as_text else said
    pl.DataFrame({name: lists, "source": ["a", "b"]}).write_parquet(path)
    transcripts, aside = read(path)
    assert aside == []
    assert [one.conversation_id for one in transcripts] == ["train", "train#2"]
    assert [list(map(rebuild_record, one.messages)) for one in transcripts] == said
    assert [one.events[0].native for one in transcripts] == [{name: None, "source": source} for source in "ab"]


def test_a_row_with_a_list_of_turns_is_a_conversation_named_by_its_id(tmp_path: Path) -> None:
    turns = [{"from": "human", "value": "ask"}, {"from": "gpt", "value": "say"}]
    path = tmp_path / "train.parquet"
    pl.DataFrame({"id": ["x", "y"], "conversations": [turns, turns]}).write_parquet(path)
    transcripts, _ = read(path)
    assert [(one.conversation_id, [m.content for m in one.messages]) for one in transcripts] == [
        *(("x", ["ask", "say"]), ("y", ["ask", "say"])),
    ]


@pytest.mark.parametrize("as_text", [False, True])
def test_a_row_may_be_a_message_of_the_ai_sdk(as_text: bool, tmp_path: Path) -> None:
    parts = [{"type": "step-start", "text": None}, {"type": "text", "text": "Spruce."}]
    path = tmp_path / "talk.parquet"
    pl.DataFrame({"role": ["assistant"], "parts": [json.dumps(parts) if as_text else parts]}).write_parquet(path)
    ((transcript,), aside) = read(path)
    assert aside == []
    assert [(m.content, [part.part_type for part in m.parts]) for m in transcript.messages] == [
        ("Spruce.", ["step_start", "text"]),
    ]


def test_messages_that_are_none_are_put_aside_by_row_and_place(tmp_path: Path) -> None:
    path = tmp_path / "train.parquet"
    pl.DataFrame({"messages": ['[{"role": "user", "content": "x"}, 7]', "words", None]}).write_parquet(path)
    transcripts, aside = read(path)
    assert [m.content for one in transcripts for m in one.messages] == ["x"]
    assert [reason.split(": ")[:2] for reason in aside] == [["1-1", "messages 2"], ["2-2", "row 2"]]


SIDES = [([{"role": "user", "content": "ask"}], [{"role": "assistant", "content": "say"}]), ("ask", "say")]


@pytest.mark.parametrize(("prompt", "completion"), SIDES, ids=["messages", "texts"])
def test_a_row_of_prompt_and_completion_is_a_conversation(prompt: Any, completion: Any, tmp_path: Path) -> None:
    path = tmp_path / "train.parquet"
    pl.DataFrame({"completion": [completion] * 2, "prompt": [prompt] * 2, "source": ["a", "b"]}).write_parquet(path)
    transcripts, aside = read(path)
    assert aside == []
    assert [one.conversation_id for one in transcripts] == ["train", "train#2"]
    assert [[(m.role, m.content) for m in one.messages] for one in transcripts] == [
        [("user", "ask"), ("assistant", "say")],
    ] * 2
    assert [event.native for one in transcripts for event in one.events] == [
        {"completion": None, "prompt": None, "source": source} for source in ("a", "b")
    ]


@pytest.mark.parametrize("value", ["User: hi", '{"role": "user"}', 7, {"role": "user", "content": "hi"}])
def test_a_column_of_messages_that_holds_none_says_what_is_read(value: Any, tmp_path: Path) -> None:
    _, (reason,) = read(table(tmp_path / "train.parquet", conversation=[value]))
    assert reason == (
        f"1-1: row 1: the column 'conversation' holds {value!r}, which is no list of messages: write a list of "
        '{"role": ..., "content": ...} or {"from": ..., "value": ...} a row, or such a list as JSON text'
    )
