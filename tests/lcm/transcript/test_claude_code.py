"""Claude Code sessions, with those of their sub-agents."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lcm.errors import TranscriptError
from lcm.records.conversation import Transcript
from lcm.transcript.claude_code import ClaudeCodeReader
from lcm.transcript.reading import joined, read_pieces, reader_of
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.rendering import agent_messages
from lcm.transcript.session_folder import beside
from tests.lcm.transcript.recordings import columns, rebuilt, write

READER = ClaudeCodeReader()

ASKED = {
    "parentUuid": None, "isSidechain": False, "sessionId": "s1", "type": "user", "uuid": "u1",
    "timestamp": "2026-01-05T09:00:01.500Z", "message": {"role": "user", "content": "List the files"}, "cwd": "/home",
}  # fmt: skip
CALLED = {
    "parentUuid": "u1", "sessionId": "s1", "type": "assistant", "uuid": "a1", "requestId": "r1",
    "message": {
        "id": "msg_1",
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "ls will do", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "c2VjcmV0"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
        ],
        "usage": {"input_tokens": 3},
    },
}  # fmt: skip
ANSWERED = {
    "type": "user", "sessionId": "s1", "uuid": "u2", "toolUseResult": {"stdout": "a\nb"},
    "message": {"role": "user", "content": [{"tool_use_id": "t1", "type": "tool_result", "content": "a\nb"}]},
}  # fmt: skip


def read(path: Path) -> tuple[dict[str, Transcript], RecordedFile]:
    file = RecordedFile(path)
    return {found.conversation_id: found for found in joined(read_pieces(file, READER))}, file


def said(uuid: str, **fields: Any) -> dict[str, Any]:
    return {"type": "user", "uuid": uuid, "message": {"role": "user", "content": f"I am {uuid}"}} | fields


def test_user_and_assistant_records_are_messages(tmp_path: Path) -> None:
    transcripts, file = read(write(tmp_path / "any name.jsonl", ASKED, CALLED, ANSWERED))
    assert file.quarantine == []
    assert list(transcripts) == ["s1"]
    asked, called, answered = transcripts["s1"].messages
    assert [m.message_id for m in (asked, called, answered)] == ["s1:u1", "s1:a1", "s1:u2"]
    assert [m.role for m in (asked, called, answered)] == ["user", "assistant", "user"]
    assert [m.content for m in (asked, called, answered)] == ["List the files", "I look.", "a\nb"]
    assert asked.created_at == datetime(2026, 1, 5, 9, 0, 1, 500_000, tzinfo=UTC)
    assert called.created_at is None
    assert [row[0] for row in columns(called)] == ["reasoning", "reasoning", "text", "tool"]
    assert columns(called)[3] == ("tool", None, "t1", "Bash", '{"command":"ls"}', None)
    assert [row[::2] for row in columns(answered)] == [("tool", "t1", None)]
    assert rebuilt(transcripts["s1"]) == list(map(json.dumps, (ASKED, CALLED, ANSWERED)))


def test_a_message_is_said_by_its_role_or_else_by_its_type_and_gains_none(tmp_path: Path) -> None:
    records = [{"type": kind, "message": {"content": kind}} for kind in ("user", "assistant")]
    transcripts, _ = read(write(tmp_path / "night.jsonl", *records))
    messages = transcripts["night"].messages
    assert [(m.message_id, m.role, m.session_id) for m in messages] == [
        ("night:1", "user", "night"),
        ("night:2", "assistant", "night"),
    ]
    assert rebuilt(transcripts["night"]) == list(map(json.dumps, records))
    transcripts, _ = read(write(tmp_path / "s.jsonl", {"type": "user", "message": {"role": "system", "content": "x"}}))
    assert transcripts["s"].messages[0].role == "system"


def test_everything_else_is_an_event_in_its_place(tmp_path: Path) -> None:
    others = [
        {"type": "summary", "summary": "Files", "leafUuid": "u1"},
        {"type": "tool_use", "name": "bash", "input": {}, "uuid": "x1"},
        {"type": "tool_result", "output": "# Title"},
        {"type": "from the future", "message": {"role": "user", "content": "not ours"}},
        {"no": "type"},
        {"type": 7},
    ]
    transcripts, file = read(write(tmp_path / "s.jsonl", others[0], ASKED, *others[1:]))
    assert file.quarantine == []
    events = transcripts["s1"].events
    assert [event.native for event in events] == others
    kinds = ["summary", "tool_use", "tool_result", "from the future", "unknown", "unknown"]
    assert [event.kind for event in events] == kinds
    assert [event.after for event in events] == [0, 1, 1, 1, 1, 1]


def test_what_a_compaction_left_of_the_talk_is_an_event(tmp_path: Path) -> None:
    records = [said("u1"), said("c1", isCompactSummary=True), said("u2", parentUuid="c1")]
    transcripts, _ = read(write(tmp_path / "s.jsonl", *(record | {"sessionId": "s1"} for record in records)))
    (transcript,) = transcripts.values()
    assert [message.content for message in transcript.messages] == ["I am u1", "I am u2"]
    assert [(event.kind, event.native["uuid"]) for event in transcript.events] == [("compact_summary", "c1")]


def test_the_first_session_names_the_conversation_and_each_message_keeps_its_own(tmp_path: Path) -> None:
    records = [{"type": "mode", "mode": "x"}, said("a", sessionId="old"), said("b", sessionId="new"), said("c")]
    transcripts, _ = read(write(tmp_path / "s.jsonl", *records))
    assert list(transcripts) == ["old"]
    assert [m.session_id for m in transcripts["old"].messages] == ["old", "new", "old"]


CUSTOM = {"type": "custom-title", "customTitle": "Mine"}
MADE = {"type": "ai-title", "aiTitle": "Made"}
ABOUT = {"type": "summary", "summary": "About"}


@pytest.mark.parametrize(
    ("records", "title"),
    [
        ([ABOUT], "About"),
        ([ABOUT, MADE], "Made"),
        ([MADE, ABOUT], "Made"),
        ([CUSTOM, MADE, ABOUT], "Mine"),
        ([CUSTOM, CUSTOM | {"customTitle": "Renamed"}], "Renamed"),
        ([CUSTOM | {"customTitle": " "}, ABOUT | {"summary": None}, {"type": "user", "": "x"}], None),
    ],
)
def test_the_title_is_the_users_then_the_made_one_then_the_summary(tmp_path, records, title):
    transcripts, _ = read(write(tmp_path / "s.jsonl", said("u1"), *records))
    assert transcripts["s"].title == title


def test_a_sidechain_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    records = [
        said("u1", sessionId="s1"),
        said("p1", isSidechain=True, parentUuid="u1"),
        said("q1", isSidechain=True, parentUuid=None),
        {"type": "attachment", "uuid": "p2", "isSidechain": True, "parentUuid": "p1"},
        said("p3", isSidechain=True, parentUuid="p2"),
        said("q2", isSidechain=True, parentUuid="q1"),
        said("b1", isSidechain=True, parentUuid="q1", agentId="b"),
        said("u2", isSidechain=False, parentUuid="p3", agentId="b"),
        {"type": "progress", "isSidechain": True},
        CUSTOM,
    ]
    transcripts, file = read(write(tmp_path / "s.jsonl", *records))
    assert file.quarantine == []
    assert {name: [m.envelope["record"]["uuid"] for m in found.messages] for name, found in transcripts.items()} == {
        "s1": ["u1", "u2"],
        "s1/sidechain-p1": ["p1", "p3"],
        "s1/sidechain-q1": ["q1", "q2"],
        "s1/agent-b": ["b1"],
        "s1/sidechain-9": [],
    }
    assert [event.after for event in transcripts["s1/sidechain-p1"].events] == [1]
    assert {name: found.title for name, found in transcripts.items() if found.title} == {"s1": "Mine"}


def typed(prompt: Any, uuid: str = "q1", **fields: Any) -> dict[str, Any]:
    """A prompt that was typed while the agent worked."""
    queued = {"type": "queued_command", "commandMode": "prompt", "prompt": prompt} | fields
    return {"type": "attachment", "uuid": uuid, "timestamp": "2026-01-05T09:00:02Z", "attachment": queued}


BLOCKS = [
    {"type": "text", "text": "Keep the old name"},
    {"type": "image", "source": {"type": "base64", "data": "AAAA"}},
]


@pytest.mark.parametrize(
    ("prompt", "fields"),
    [
        ("Keep the old name", {}),
        ("Keep the old name", {"origin": {"kind": "human"}, "source_uuid": "c1", "humanTurn": True}),
        (BLOCKS, {"imagePasteIds": [1]}),
    ],
)
def test_a_prompt_typed_meanwhile_is_said_in_its_place(tmp_path, prompt, fields):
    record = typed(prompt, **fields)
    transcripts, _ = read(write(tmp_path / "s.jsonl", CALLED, record, ANSWERED))
    _, message, _ = transcripts["s1"].messages
    assert (message.message_id, message.role, message.content) == ("s1:q1", "user", "Keep the old name")
    assert message.created_at == datetime(2026, 1, 5, 9, 0, 2, tzinfo=UTC)
    assert rebuilt(transcripts["s1"]) == list(map(json.dumps, (CALLED, record, ANSWERED)))
    assert [form["role"] for form in agent_messages(message)] == ["user"]


def test_an_early_prompt_typed_meanwhile_has_neither_id_nor_mode_and_its_instant_inside(tmp_path: Path) -> None:
    queued = {"type": "queued_command", "prompt": "Stop", "timestamp": "2026-01-05T09:00:02Z"}
    transcripts, _ = read(write(tmp_path / "s.jsonl", ASKED, {"type": "attachment", "attachment": queued}))
    message = transcripts["s1"].messages[1]
    assert (message.message_id, message.content, message.created_at is None) == ("s1:2", "Stop", False)


@pytest.mark.parametrize(
    "record",
    [
        typed("<task-notification>done</task-notification>", commandMode="task-notification"),
        typed("<task-notification>done</task-notification>"),
        typed("A peer says hello", origin={"kind": "peer"}),
        typed("Go on", isMeta=True),
        typed("Go on") | {"isMeta": True},
        typed("From its coordinator", origin={"kind": "coordinator"}),
        typed(" "),
        typed([]),
        typed(None),
        {"type": "attachment", "attachment": {"type": "queued_command"}},
        {"type": "attachment", "attachment": {"type": "task_reminder", "prompt": "Go on"}},
        {"type": "attachment", "attachment": "queued_command"},
    ],
)
def test_what_a_program_queued_is_an_event(tmp_path: Path, record: dict[str, Any]) -> None:
    transcripts, file = read(write(tmp_path / "s.jsonl", ASKED, record))
    assert file.quarantine == []
    assert [event.native for event in transcripts["s1"].events] == [record]


def test_a_coordinator_speaks_to_its_sub_agent(tmp_path: Path) -> None:
    told = typed("Also look in b", origin={"kind": "coordinator"}, isMeta=True) | {"isSidechain": True, "agentId": "a"}
    transcripts, _ = read(write(tmp_path / "s.jsonl", ASKED, told))
    assert [message.content for message in transcripts["s1/agent-a"].messages] == ["Also look in b"]


AGAIN = said("u9", message={"role": "user", "content": [{"type": "text", "text": "Go on"}]})
SPOKEN = {"type": "assistant", "uuid": "a9", "message": {"role": "assistant", "content": "Yes."}}


def queue(operation: str, *content: str) -> dict[str, Any]:
    return {"type": "queue-operation", "operation": operation} | ({"content": content[0]} if content else {})


def later(second: int, record: dict[str, Any] = SPOKEN) -> dict[str, Any]:
    return record | {"timestamp": f"2026-01-05T09:00:{second:02}Z"}


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([typed("Go on"), SPOKEN, AGAIN], ["Go on", "Yes."]),
        ([typed("Go on"), ANSWERED, said("u8", message={"content": "[Request interrupted by user]"}), AGAIN], None),
        ([typed("Go on"), AGAIN | {"promptSource": "queued"}], ["Go on"]),
        ([typed("Go on"), SPOKEN, AGAIN | {"promptSource": "typed"}], ["Go on", "Yes.", "Go on"]),
        ([typed("Go on"), said("u8"), AGAIN], ["Go on", "I am u8", "Go on"]),
        ([typed("Go on"), AGAIN, AGAIN | {"uuid": "u10"}], ["Go on", "Go on"]),
        ([typed("Go on", source_uuid="u9"), said("u8"), AGAIN], ["Go on", "I am u8"]),
        ([AGAIN, typed("Go on")], ["Go on", "Go on"]),
        # One of its own was queued, or the first had left the queue, before or after it was recorded.
        ([typed("Go on"), queue("enqueue", "Go on"), queue("dequeue"), AGAIN], ["Go on", "Go on"]),
        ([typed("Go on"), queue("remove", "Go on"), AGAIN], ["Go on", "Go on"]),
        ([queue("remove", "Go on"), typed("Go on"), AGAIN], ["Go on", "Go on"]),
        ([queue("remove"), typed("Go on"), AGAIN], ["Go on", "Go on"]),
        ([queue("remove", "Go on"), queue("enqueue", "Go on"), typed("Go on"), AGAIN], ["Go on"]),
        ([typed("Go on"), queue("remove"), AGAIN], ["Go on", "Go on"]),
        ([queue("enqueue", "Go on"), typed("Go on"), queue("dequeue"), AGAIN], ["Go on"]),
        ([queue("enqueue", "Go on"), queue("remove", "Stay"), typed("Go on"), AGAIN], ["Go on"]),
        # Nobody types so fast, and no queue is so slow.
        (
            [typed("Go on"), later(9), later(10, AGAIN)],
            [
                "Go on",
                "Yes.",
            ],
        ),
        ([typed("Go on"), later(9), later(30, AGAIN)], ["Go on", "Yes.", "Go on"]),
        ([typed("Go on"), later(9), later(30, AGAIN | {"promptSource": "queued"})], ["Go on", "Yes."]),
    ],
)
def test_a_prompt_that_the_queue_gives_again_is_said_once(tmp_path, records, words):
    transcripts, _ = read(write(tmp_path / "s.jsonl", *records))
    (transcript,) = transcripts.values()
    said_words = [message.content for message in transcript.messages]
    assert said_words == (words or ["Go on", "a\nb", "[Request interrupted by user]"])
    assert len(transcript.messages) + len(transcript.events) == len(records)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session with two sub-agents, one of them damaged."""
    subagents = tmp_path / "s1" / "subagents"
    agent: dict[str, Any] = {"isSidechain": True, "sessionId": "s1"}
    write(subagents / "agent-b.jsonl", said("b1", agentId="b", **agent), "{broken", said("b2", agentId="b", **agent))
    write(subagents / "agent-a.jsonl", said("a1", agentId="a", **agent))
    write(subagents / "agent-a.meta.json", {"agentType": "general-purpose", "spawnDepth": 1})
    write(subagents / "agent-b.meta.json", {"agentType": "Explore", "description": "search files"})
    (subagents / "agent-c.jsonl").mkdir()
    return write(tmp_path / "s1.jsonl", ASKED, CALLED)


def test_sub_agents_are_read_after_their_session(session: Path) -> None:
    transcripts, file = read(session)
    assert [(name, len(found.messages), found.title) for name, found in transcripts.items()] == [
        ("s1", 2, None),
        ("s1/agent-a", 1, "general-purpose"),
        ("s1/agent-b", 2, "search files"),
    ]
    (meta,) = transcripts["s1/agent-a"].events
    assert (meta.kind, meta.native, meta.after) == ("meta", {"agentType": "general-purpose", "spawnDepth": 1}, 1)
    assert [(lost.path.name, lost.line) for lost in file.quarantine] == [("agent-b.jsonl", 2)]
    with pytest.raises(TranscriptError, match=r"agent-b\.jsonl:2: not JSON"):
        list(read_pieces(RecordedFile(session, strict=True), READER))


def test_a_sub_agent_read_by_itself_is_the_same(session: Path) -> None:
    together, _ = read(session)
    path = session.parent / "s1" / "subagents" / "agent-b.jsonl"
    assert reader_of(RecordedFile(path)).name == "claude_code"
    assert read(path)[0] == {"s1/agent-b": together["s1/agent-b"]}


def pack(path: Path) -> Path:
    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    return packed


def test_what_is_read_along_is_told_before_and_after(session: Path) -> None:
    subagents = session.parent / "s1" / "subagents"
    names = ["agent-a.jsonl", "agent-a.meta.json", "agent-b.jsonl", "agent-b.meta.json"]
    assert sorted(beside(session)) == [subagents / name for name in names]
    _, file = read(session)
    assert file.read_along == [subagents / name for name in names]
    files = [session, subagents / names[0], subagents / names[2]]
    assert file.bytes_read == sum(path.stat().st_size for path in files)  # they count towards the size of a piece
    assert beside(subagents / "agent-b.jsonl") == [subagents / "agent-b.meta.json"]
    assert beside(subagents / "agent-b.meta.json") == []


def test_a_packed_session_and_packed_sub_agents_are_read_as_plain_ones(session: Path) -> None:
    plain, _ = read(session)
    agent = session.parent / "s1" / "subagents" / "agent-a.jsonl"
    agent.with_name("agent-a.jsonl.gz").write_bytes(gzip.compress(agent.read_bytes() * 2))
    assert read(session)[0] == plain  # of both the plain one is read
    packed_agent = pack(agent)
    assert read(session)[0] == plain
    transcripts, file = read(pack(session))
    assert transcripts == plain
    assert file.read_along[0] == packed_agent


def test_the_title_of_a_session_is_not_that_of_its_sub_agents(session: Path) -> None:
    write(session, ASKED, CUSTOM, CALLED, said("q1", sessionId="s1", isSidechain=True))
    (session.parent / "s1" / "subagents" / "agent-a.meta.json").unlink()
    transcripts, _ = read(session)
    titles = {name: found.title for name, found in transcripts.items()}
    assert titles == {"s1": "Mine", "s1/sidechain-q1": None, "s1/agent-a": None, "s1/agent-b": "search files"}


def test_a_damaged_meta_file_is_put_aside(session: Path) -> None:
    meta = session.parent / "s1" / "subagents" / "agent-a.meta.json"
    meta.write_text("{")
    transcripts, file = read(session)
    assert transcripts["s1/agent-a"].title is None
    assert [(lost.path.name, lost.line) for lost in file.quarantine] == [("agent-a.meta.json", 1), ("agent-b.jsonl", 2)]
    with pytest.raises(TranscriptError, match=r"agent-a\.meta\.json:1-end: "):
        list(read_pieces(RecordedFile(session, strict=True), READER))
