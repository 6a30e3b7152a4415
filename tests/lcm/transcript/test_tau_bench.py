"""tau-bench results: one conversation a record."""

import json
from pathlib import Path

from lcm.records.conversation import Event
from lcm.transcript.runs import TauBenchReader
from tests.lcm.transcript.recordings import columns, read, read_one, rebuilt, write

READER = TauBenchReader()
ASKED = {"role": "user", "content": "Book it"}
CALLED = {
    "content": None,
    "role": "assistant",
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "book", "arguments": '{"seat": "2A"}'}}],
}
ANSWERED = {"role": "tool", "tool_call_id": "c1", "name": "book", "content": "done"}
RECORD = {"task_id": 3, "reward": 1.0, "info": {"source": "user"}, "traj": [ASKED, CALLED, ANSWERED], "trial": 0}


def test_a_record_is_a_conversation(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / "airline.jsonl", RECORD),
        write(tmp_path / "airline.json", [RECORD], indent=1),
        write(tmp_path / "airline.txt", RECORD, indent=1),
    ]
    readings = [read_one(path, READER) for path in paths]
    transcript = readings[0]
    assert readings == [transcript] * 3
    assert transcript.conversation_id == "airline/task-3-trial-0"
    assert rebuilt(transcript) == list(map(json.dumps, RECORD["traj"]))
    assert transcript.events == (Event("session", {**RECORD, "traj": None}),)
    asked, called, answered = transcript.messages
    assert [(m.message_id, m.role, m.content) for m in transcript.messages] == [
        ("airline/task-3-trial-0:1", "user", "Book it"),
        ("airline/task-3-trial-0:2", "assistant", ""),
        ("airline/task-3-trial-0:3", "tool", "done"),
    ]
    assert asked.session_id == "airline/task-3-trial-0"
    assert [row[2:4] for row in columns(called) + columns(answered)] == [("c1", "book")] * 2
    assert answered.author is None


def test_runs_of_a_task_are_told_apart(tmp_path: Path) -> None:
    runs = [(1, 0), (1, 1), (1, 0), ("web", None), (None, 2), (None, None)]
    records = [{"task_id": task, "trial": trial, "traj": [ASKED]} for task, trial in runs]
    transcripts, aside = read(write(tmp_path / "r.jsonl", *records), READER)
    assert aside == []
    assert [t.conversation_id for t in transcripts] == [
        "r/task-1-trial-0", "r/task-1-trial-1", "r/task-1-trial-0#2", "r/task-web", "r/trial-2", "r",
    ]  # fmt: skip
