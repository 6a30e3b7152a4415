"""A session that is written again adds no message, and loses none."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lcm.records.conversation import Transcript
from lcm.store.store import Store
from lcm.transcript.claude_code import ClaudeCodeReader
from lcm.transcript.parts import rebuild_record
from lcm.transcript.reading import Copies, joined, read_pieces
from lcm.transcript.recorded_file import RecordedFile
from tests.lcm.store.contents import TOKENS
from tests.lcm.transcript.recordings import write

AT = "2026-01-05T09:00:00Z"


def said(uuid: str, words: str, session: str = "s1", **more: Any) -> dict[str, Any]:
    message = {"role": "user", "content": words}
    return {"type": "user", "uuid": uuid, "sessionId": session, "timestamp": AT, "message": message, **more}


def read(copies: Copies | None, *files: Path) -> list[Transcript]:
    pieces = (piece for path in files for piece in read_pieces(RecordedFile(path), ClaudeCodeReader(), copies=copies))
    return joined(pieces)


def words(transcripts: list[Transcript]) -> list[str]:
    return [message.content for transcript in transcripts for message in transcript.messages]


def test_a_resumed_session_has_its_new_messages_and_keeps_the_copies_as_events(tmp_path: Path) -> None:
    first = [said("u1", "The lid."), said("u2", "The ninth of May.")]
    again = [said(one["uuid"], one["message"]["content"], "s2", forkedFrom={"sessionId": "s1"}) for one in first]
    paths = [
        write(tmp_path / "s1.jsonl", *first),
        write(tmp_path / "s2.jsonl", *again, *again, said("u3", "June.", "s2"), said("u2", "The tenth of May.", "s2")),
    ]
    copies = Copies()
    one, other = read(copies, *paths)
    assert words([one, other]) == ["The lid.", "The ninth of May.", "June.", "The tenth of May."]
    assert [(event.kind, event.native, event.after) for event in other.events] == [
        ("copy", one, 0) for one in again * 2
    ]
    assert copies.ids == {"s2:u1": "u1", "s2:u2": "u2"}
    assert len(words(read(None, *paths))) == 8


def test_another_state_of_a_conversation_is_left_whole(tmp_path: Path) -> None:
    grown = [said("u1", "The lid."), said("u2", "The ninth of May.")]
    paths = [write(tmp_path / "a.jsonl", *grown[:1]), write(tmp_path / "b.jsonl", *grown)]
    with Store() as store:
        copies = Copies()
        for path in paths:
            store.ingest_pieces(read_pieces(RecordedFile(path), ClaudeCodeReader(), copies=copies), TOKENS)
        assert [message.content for message in store.messages("s1")] == ["The lid.", "The ninth of May."]


def test_what_may_be_like_by_chance_is_no_copy(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", *[said("", "yes")] * 3)
    assert words(read(Copies(), path)) == ["yes"] * 3
    path = write(tmp_path / "s.jsonl", *[said("3", "yes", timestamp=None)] * 2)
    assert words(read(Copies(), path)) == ["yes"] * 2
    path = write(tmp_path / "s.jsonl", said("3", "yes"), said("3", "yes", timestamp="2026-01-05T09:00:01Z"))
    assert words(read(Copies(), path)) == ["yes"] * 2
    path = write(tmp_path / "s.jsonl", *[said("3", "yes", timestamp="2026-01-05T00:00:00Z")] * 2)
    assert words(read(Copies(), path)) == ["yes"] * 2
    path = write(tmp_path / "s.jsonl", *[said("0b" * 16, "yes", timestamp=None)] * 2)
    assert words(read(Copies(), path)) == ["yes"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["yes", "no"])), min_size=1, max_size=8))
def test_each_record_is_one_message_once_and_an_event_each_further_time(records: list[tuple[str, str]]) -> None:
    with TemporaryDirectory() as folder:
        path = write(Path(folder) / "s.jsonl", *(said(uuid, what) for uuid, what in records))
        (found,) = read(Copies(), path)
    assert [(m.envelope["record"]["uuid"], m.content) for m in found.messages] == list(dict.fromkeys(records))
    kept = [rebuild_record(message) for message in found.messages] + [event.native for event in found.events]
    written = [said(uuid, what) for uuid, what in records]
    assert sorted(map(json.dumps, kept)) == sorted(map(json.dumps, written))
