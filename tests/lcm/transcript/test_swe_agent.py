"""Trajectories of SWE-agent and mini-swe-agent."""

import gzip
import json
from pathlib import Path
from typing import Any

from lcm.records.conversation import Event, Transcript
from lcm.transcript.parts import rebuild_record
from lcm.transcript.runs import SweAgentReader
from tests.lcm.transcript import recordings
from tests.lcm.transcript.recordings import columns, read, rebuilt, write

READER = SweAgentReader()
SETTING = {"role": "system", "content": "You fix bugs", "agent": "main", "message_type": "system_prompt"}
ACTED = {
    "role": "assistant",
    "content": "Look around",
    "agent": "main",
    "thought": "Look around",
    "action": "ls",
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}],
    "message_type": "action",
}
SEEN = {"role": "tool", "content": "setup.py", "agent": "main", "tool_call_ids": ["c1"]}
HISTORY = [SETTING, ACTED, SEEN]
STEP = {"action": "ls", "observation": "setup.py", "response": "Look around\nls", "state": {"dir": "/"}, "thought": "?"}
RUN = {"environment": "main", "trajectory": [STEP], "history": HISTORY, "info": {"exit_status": "submitted"}}


def read_one(folder: Path, run: dict[str, Any]) -> Transcript:
    return recordings.read_one(write(folder / "fix.traj", run, indent=1), READER)


def test_the_history_is_the_conversation_and_the_steps_are_events(tmp_path: Path) -> None:
    transcript = read_one(tmp_path, RUN)
    assert transcript.conversation_id == "fix"
    assert rebuilt(transcript) == list(map(json.dumps, HISTORY))
    assert [(m.message_id, m.role, m.content, m.author) for m in transcript.messages] == [
        ("fix:1", "system", "You fix bugs", None),
        ("fix:2", "assistant", "Look around", None),
        ("fix:3", "tool", "setup.py", None),
    ]
    header = {"environment": "main", "trajectory": None, "history": None, "info": {"exit_status": "submitted"}}
    assert transcript.events == (Event("session", header), Event("trajectory", STEP))


def test_a_history_goes_before_messages_wherever_it_stands(tmp_path: Path) -> None:
    asked = {"role": "user", "content": "Fix it"}
    for run in ({"messages": [asked], "history": HISTORY}, {"history": HISTORY, "messages": [asked]}):
        transcript = read_one(tmp_path, run | {"trajectory": [STEP], "trajectory_format": "m"})
        assert [rebuild_record(m) for m in transcript.messages] == HISTORY
        assert [event for event in transcript.events if event.kind != "session"] == sorted(
            [Event("messages", asked, list(run).index("messages") * 3), Event("trajectory", STEP, 3)],
            key=lambda event: event.after,
        )


def test_a_call_and_its_result_share_their_id(tmp_path: Path) -> None:
    _, acted, seen = read_one(tmp_path, RUN).messages
    assert [row[2:4] for row in columns(acted) + columns(seen)] == [(None, None), ("c1", "bash"), ("c1", None)]
    for odd in (["c1", "c2"], [], [7], "c1", None):
        seen = read_one(tmp_path, {"history": [{**SEEN, "tool_call_ids": odd}]}).messages[0]
        assert [part.tool_call_id for part in seen.parts] == [None]


def test_without_a_history_the_steps_are_the_conversation(tmp_path: Path) -> None:
    steps = [STEP, {"thought": "nothing\ud800", "state": 1}, {"observation": None}, {"response": 7, "action": ["x"]}]
    for history in ({}, {"history": []}, {"history": None}):
        transcript = read_one(tmp_path, {"trajectory": steps, **history})
        assert [(m.role, m.content) for m in transcript.messages] == [
            ("assistant", "Look around\nls"),
            ("tool", "setup.py"),
            ("assistant", "nothing\ufffd"),
            ("assistant", ""),
            ("tool", ""),
            ("assistant", ""),
        ]
        said, seen, thought, silent, nothing, odd = map(rebuild_record, transcript.messages)
        assert said == {**STEP, "observation": None}
        # Both halves together are the step, key for key.
        halves = [said | seen, thought, silent | nothing, odd]
        assert [json.dumps(step) for step in halves] == [json.dumps(step) for step in steps]
    text, call = transcript.messages[0].parts
    assert (text.part_type, text.text) == ("text", "Look around\nls")
    assert (call.part_type, call.tool_input) == ("tool", '"ls"')


def test_mini_swe_agent_has_messages(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "Fix it", "timestamp": 1767603601.5}, {"role": "assistant", "content": "ok"}]
    run = {"info": {}, "messages": said, "trajectory_format": "mini-swe-agent-1", "instance_id": "a__b-1"}
    transcript = read_one(tmp_path, run)
    assert transcript.conversation_id == "fix/a__b-1"
    assert [rebuild_record(m) for m in transcript.messages] == said
    assert transcript.messages[0].created_at is not None
    assert transcript.events == (Event("session", {**run, "messages": None}),)


def test_a_run_is_named_by_its_file_and_its_instance(tmp_path: Path) -> None:
    for instance, conversation_id in [("fix", "fix"), ("a-1", "fix/a-1"), (None, "fix"), ("", "fix")]:
        assert read_one(tmp_path, {**RUN, "instance_id": instance}).conversation_id == conversation_id


def test_runs_may_share_a_file_and_a_file_may_be_packed(tmp_path: Path) -> None:
    path = write(tmp_path / "runs.jsonl", {**RUN, "instance_id": "a"}, RUN, RUN, {**RUN, "instance_id": "a"})
    transcripts, aside = read(path, READER)
    assert [t.conversation_id for t in transcripts] == ["runs/a", "runs", "runs#2", "runs/a#2"]
    assert aside == []
    packed = tmp_path / "fix.traj.gz"
    packed.write_bytes(gzip.compress(json.dumps(RUN, indent=1).encode()))
    assert read(packed, READER)[0] == [read_one(tmp_path, RUN)]
