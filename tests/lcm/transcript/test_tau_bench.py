"""tau-bench results: one conversation a record."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.records.conversation import Event, Transcript
from lcm.transcript.parts import rebuild_record
from lcm.transcript.reading import joined, read_pieces
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.tau_bench import TauBenchReader
from tests.lcm.store.contents import json_objects, json_values

READER = TauBenchReader()
ASKED = {"role": "user", "content": "Book it"}
CALLED = {
    "content": None,
    "role": "assistant",
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "book", "arguments": '{"seat": "2A"}'}}],
}
ANSWERED = {"role": "tool", "tool_call_id": "c1", "name": "book", "content": "done"}
RECORD = {"task_id": 3, "reward": 1.0, "info": {"source": "user"}, "traj": [ASKED, CALLED, ANSWERED], "trial": 0}


def write(path: Path, *lines: Any) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


def read(path: Path) -> tuple[list[Transcript], list[str]]:
    file = RecordedFile(path)
    transcripts = joined(read_pieces(file, READER))
    return transcripts, [f"{found.line}: {found.reason}" for found in file.quarantine]


def test_a_record_is_a_conversation(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / "airline.jsonl", RECORD),
        write(tmp_path / "airline.json", json.dumps([RECORD], indent=1)),
        write(tmp_path / "airline.txt", json.dumps(RECORD, indent=1)),
    ]
    assert all(READER.detects(RecordedFile(path)) for path in paths)
    readings = [read(path) for path in paths]
    assert readings == [readings[0]] * 3
    ((transcript,), aside) = readings[0]
    assert (transcript.conversation_id, aside) == ("airline/task-3-trial-0", [])
    assert [json.dumps(rebuild_record(m)) for m in transcript.messages] == list(map(json.dumps, RECORD["traj"]))
    assert transcript.events == (Event("session", {**RECORD, "traj": None}),)
    asked, called, answered = transcript.messages
    assert [(m.message_id, m.role, m.content) for m in transcript.messages] == [
        ("airline/task-3-trial-0:1", "user", "Book it"),
        ("airline/task-3-trial-0:2", "assistant", ""),
        ("airline/task-3-trial-0:3", "tool", "done"),
    ]
    assert asked.session_id == "airline/task-3-trial-0"
    assert [(p.tool_call_id, p.tool_name) for m in (called, answered) for p in m.parts] == [("c1", "book")] * 2
    assert answered.author is None


def test_runs_of_a_task_are_told_apart(tmp_path: Path) -> None:
    runs = [(1, 0), (1, 1), (1, 0), ("web", None), (None, 2), (None, None)]
    records = [{"task_id": task, "trial": trial, "traj": [ASKED]} for task, trial in runs]
    transcripts, aside = read(write(tmp_path / "r.jsonl", *records))
    assert aside == []
    assert [t.conversation_id for t in transcripts] == [
        "r/task-1-trial-0", "r/task-1-trial-1", "r/task-1-trial-0#2", "r/task-web", "r/trial-2", "r",
    ]  # fmt: skip


def test_what_is_no_message_is_put_aside(tmp_path: Path) -> None:
    transcripts, aside = read(
        write(tmp_path / "r.jsonl", {"task_id": 1, "traj": [ASKED, {"content": "?"}, ASKED]}, "7")
    )
    assert [len(t.messages) for t in transcripts] == [2]
    assert aside == [
        "1: traj 2: expected a message, an object with a `role`",
        "2: expected a session, a JSON object, got int",
    ]


@pytest.mark.parametrize("value", [{"traj": [ASKED]}, {"task_id": 1, "traj": "x"}, {"task_id": 1, "traj": [1]}, ASKED])
def test_what_is_not_tau_bench_is_not_taken_for_it(tmp_path: Path, value: Any) -> None:
    assert not READER.detects(RecordedFile(write(tmp_path / "r.jsonl", value)))


_messages = json_values | st.builds(
    lambda role, content, more: {**more, "role": role, "content": content},
    st.sampled_from(["user", "tool", 1]),
    json_values,
    json_objects,
)
_records = st.builds(lambda more, traj: {**more, "traj": traj}, json_objects, st.lists(_messages, max_size=4))


@given(records=st.lists(json_values | json_objects | _records, max_size=3))
def test_every_record_is_accounted_for(tmp_path_factory: pytest.TempPathFactory, records: list[Any]) -> None:
    records = [{"task_id": 1, "traj": []}, *records]
    transcripts, aside = read(write(tmp_path_factory.getbasetemp() / "any.jsonl", *map(json.dumps, records)))
    objects = [record for record in records if isinstance(record, dict)]
    elements = [e for record in objects for held in record.values() if isinstance(held, list) for e in held]
    given_back = [rebuild_record(m) for t in transcripts for m in t.messages]
    given_back += [event.native for t in transcripts for event in t.events]
    assert len(given_back) + len(aside) == len(records) + len(elements)
    headers = [{k: None if isinstance(v, list) and v else v for k, v in record.items()} for record in objects]
    recorded = [json.dumps(value) for value in elements + headers]
    assert all(json.dumps(value) in recorded for value in given_back)
