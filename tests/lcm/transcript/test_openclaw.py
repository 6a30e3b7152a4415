"""OpenClaw sessions, and the early form of pi."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lcm.records.conversation import Event, Transcript
from lcm.transcript.openclaw import Branches, OpenClawReader
from lcm.transcript.parts import rebuild, rebuild_record
from lcm.transcript.reading import joined, read_pieces
from lcm.transcript.recorded_file import RecordedFile

HEADER = {"type": "session", "version": 3, "id": "0a1b", "timestamp": "2026-01-05T09:00:00.000Z", "cwd": "/home/ada"}
ASKED = {"role": "user", "content": [{"type": "text", "text": "List the files"}], "timestamp": 1767603601000}
CALLED = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "ls will do", "thinkingSignature": "c2ln"},
        {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}},
    ],
    "provider": "someone",
    "usage": {"input": 12, "cost": {"total": 0.013875000000000002}},
    "stopReason": "toolUse",
}
ANSWERED = {"role": "toolResult", "toolCallId": "c1", "toolName": "bash", "content": "a\nb", "isError": False}
RAN = {"role": "bashExecution", "command": "pwd", "output": "/home/ada", "exitCode": 0}
SAID = [ASKED, CALLED, ANSWERED, RAN]


def read(path: Path, branches: Branches = "apart") -> list[Transcript]:
    file = RecordedFile(path)
    transcripts = joined(read_pieces(file, OpenClawReader(branches)))
    assert file.quarantine == []
    return transcripts


def entry(message: dict[str, Any], number: int) -> dict[str, Any]:
    return {
        "type": "message",
        "id": f"e{number}",
        "parentId": None if number == 1 else f"e{number - 1}",
        "message": message,
        "timestamp": f"2026-01-05T09:00:0{number}.500Z",
    }


def write(path: Path, *lines: Any) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n")
    return path


@pytest.fixture
def session(tmp_path: Path) -> Path:
    entries = [entry(message, number) for number, message in enumerate(SAID, start=1)]
    others = [
        {"type": "model_change", "id": "x1", "parentId": "e1", "provider": "p", "modelId": "m"},
        {"type": "label", "id": "x2", "targetId": "e1", "label": "start"},
        {"type": "custom_message", "id": "x3", "customType": "note", "content": "not ours", "display": False},
        {"type": "compaction", "id": "x4", "summary": "short", "firstKeptEntryId": "e2", "tokensBefore": 9},
        {"type": "from the future", "message": "unlike ours"},
    ]
    return write(tmp_path / "any name.jsonl", HEADER, entries[0], *others, *entries[1:])


def test_message_entries_are_messages_and_all_others_events_in_their_places(session: Path) -> None:
    assert OpenClawReader().detects(RecordedFile(session))
    (transcript,) = read(session)
    others = [json.loads(line) for line in session.read_text().splitlines() if '"type": "message"' not in line]
    assert [event.native for event in transcript.events] == others
    assert [(event.kind, event.after) for event in transcript.events] == [
        ("session", 0),
        *((kind, 1) for kind in ("model_change", "label", "custom_message", "compaction", "from the future")),
    ]
    assert transcript.conversation_id == "0a1b"
    assert [m.message_id for m in transcript.messages] == ["0a1b:e1", "0a1b:e2", "0a1b:e3", "0a1b:e4"]
    assert [m.role for m in transcript.messages] == ["user", "assistant", "tool", "assistant"]
    assert [m.content for m in transcript.messages] == ["List the files", "", "a\nb", "$ pwd\n/home/ada"]
    assert {m.session_id for m in transcript.messages} == {"0a1b"}
    assert transcript.messages[0].created_at == datetime(2026, 1, 5, 9, 0, 1, 500_000, tzinfo=UTC)


def test_call_and_result_share_their_id(session: Path) -> None:
    _, called, answered, _ = read(session)[0].messages
    call = called.parts[1]
    assert (call.part_type, call.tool_call_id, call.tool_name, call.tool_input) == (
        "tool",
        "c1",
        "bash",
        '{"command":"ls"}',
    )
    assert [(part.text, part.tool_call_id, part.tool_name) for part in answered.parts] == [("a\nb", "c1", "bash")]


def test_messages_and_whole_entries_come_back_exactly(session: Path) -> None:
    messages = read(session)[0].messages
    assert [json.dumps(rebuild(m)) for m in messages] == [json.dumps(message) for message in SAID]
    entries = [json.dumps(entry(message, number)) for number, message in enumerate(SAID, start=1)]
    assert [json.dumps(rebuild_record(m)) for m in messages] == entries


def test_the_early_form_without_entry_ids_counts_its_messages(tmp_path: Path) -> None:
    lines = [
        {"type": "message", "timestamp": "2025-12-08T22:41:05.306Z", "message": ASKED},
        {"type": "message", "message": ASKED},
    ]
    header = {"type": "session", "id": "early"}
    (transcript,) = read(write(tmp_path / "pi.jsonl", header, {"type": "model_change"}, *lines))
    assert [m.message_id for m in transcript.messages] == ["early:1", "early:2"]
    assert [m.created_at for m in transcript.messages] == [
        datetime(2025, 12, 8, 22, 41, 5, 306_000, tzinfo=UTC),
        datetime(2026, 1, 5, 9, 0, 1, tzinfo=UTC),
    ]


def test_a_header_without_id_leaves_the_file_name(tmp_path: Path) -> None:
    (transcript,) = read(write(tmp_path / "night.jsonl", {"type": "session"}, {"message": ASKED, "type": "message"}))
    assert (transcript.conversation_id, len(transcript.messages)) == ("night", 1)


def branch(name: str, parent: str | None, kind: str = "message") -> dict[str, Any]:
    return {"type": kind, "id": name, "parentId": parent} | ({"message": ASKED} if kind == "message" else {})


def ids(transcripts: list[Transcript]) -> dict[str, list[str]]:
    return {t.conversation_id: [m.message_id.rpartition(":")[2] for m in t.messages] for t in transcripts}


def test_an_abandoned_branch_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    lines = [
        branch("a", None),
        branch("b", "a"),
        branch("c", "b"),
        branch("d", "b"),  # back to b; c is left behind
        branch("x", "d", "label"),
        branch("e", "a"),  # back to a; b and d are left behind
        branch("f", "e"),
    ]
    path = write(tmp_path / "s.jsonl", HEADER, *lines)
    assert ids(read(path)) == {"0a1b": ["a", "e", "f"], "0a1b~b": ["b", "c"], "0a1b~d": ["d"]}
    assert ids(read(path, "in_file_order")) == {"0a1b": ["a", "b", "c", "d", "e", "f"]}
    main = next(transcript for transcript in read(path) if transcript.conversation_id == "0a1b")
    assert main.events == (Event("session", HEADER, 0), Event("label", lines[4], 1))
    assert {m.session_id for transcript in read(path) for m in transcript.messages} == {"0a1b"}


def test_going_back_to_the_beginning_leaves_all_of_it_behind(tmp_path: Path) -> None:
    lines = [branch("a", None), branch("b", "a"), branch("c", None), branch("d", "c")]
    assert ids(read(write(tmp_path / "s.jsonl", HEADER, *lines))) == {"0a1b~a": ["a", "b"], "0a1b": ["c", "d"]}


def test_a_file_that_names_no_parents_has_no_branches(tmp_path: Path) -> None:
    lines = [branch(name, None) for name in "abc"]
    assert ids(read(write(tmp_path / "s.jsonl", HEADER, *lines))) == {"0a1b": ["a", "b", "c"]}


def test_a_fork_inside_an_abandoned_branch_takes_nothing_from_it_twice(tmp_path: Path) -> None:
    lines = [
        branch("a", None),
        branch("b", "a"),
        branch("c", "b"),
        branch("d", "c"),
        branch("e", "c"),  # back to c; d is left behind
        branch("f", "e"),
        branch("g", "b"),  # back to b; c to f are left behind, in which e is a branch of its own
        branch("h", "g"),
    ]
    path = write(tmp_path / "s.jsonl", HEADER, *lines)
    assert ids(read(path)) == {"0a1b": ["a", "b", "g", "h"], "0a1b~c": ["c", "d"], "0a1b~e": ["e", "f"]}


def test_a_later_header_renames_nothing(tmp_path: Path) -> None:
    later = {"type": "session", "id": "other"}
    (transcript,) = read(write(tmp_path / "s.jsonl", HEADER, entry(ASKED, 1), later, entry(ASKED, 2)))
    assert transcript.conversation_id == "0a1b"
    assert [(m.message_id, m.session_id) for m in transcript.messages] == [("0a1b:e1", "0a1b"), ("0a1b:e2", "0a1b")]
    assert transcript.events == (Event("session", HEADER, 0), Event("session", later, 1))


@pytest.mark.parametrize("header", ["{damaged", ""])
def test_entries_are_recognised_without_their_header(tmp_path: Path, header: str) -> None:
    early = {"type": "message", "timestamp": "2025-12-08T22:41:05.306Z", "message": ASKED}
    for lines in ([entry(ASKED, 1)], [{"type": "model_change", "id": "x"}, entry(ASKED, 1)], [early]):
        file = RecordedFile(write(tmp_path / "s.jsonl", header, *lines))
        assert OpenClawReader().detects(file)
        (transcript,) = joined(read_pieces(file, OpenClawReader()))
        assert (transcript.conversation_id, len(transcript.messages)) == ("s", 1)
        assert len(file.quarantine) == bool(header)


@pytest.mark.parametrize("parent", ["nobody", "0a1b", "later", 7])
def test_an_entry_without_a_known_parent_follows_the_one_before_it(tmp_path: Path, parent: Any) -> None:
    lines = [branch("a", None), branch("b", parent), branch("later", "b")]
    assert ids(read(write(tmp_path / "s.jsonl", HEADER, *lines))) == {"0a1b": ["a", "b", "later"]}


def test_a_name_given_to_the_session_is_its_title(tmp_path: Path) -> None:
    named = {"type": "session_info", "name": "Files"}
    path = write(tmp_path / "s.jsonl", HEADER, entry(ASKED, 1), named, entry(ASKED, 2), {"type": "session_info"})
    assert read(path)[0].title == "Files"


@pytest.mark.parametrize("wrong", ["left", ""])
def test_another_treatment_of_branches_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=f"branches must be one of: apart, in_file_order, got {wrong!r}"):
        OpenClawReader(wrong)


@pytest.mark.parametrize(
    ("lines", "line", "reason"),
    [
        ([HEADER, "{broken"], 2, "not JSON: "),
        ([HEADER, "", "7"], 3, "an entry must be a JSON object, got int"),
        ([HEADER, {"type": "message", "message": "words"}], 2, "a message entry needs a `message` object"),
        ([HEADER, {"type": "message", "message": {"content": ""}}], 2, "a message entry needs"),
        ([HEADER, entry(ASKED, 1) | {"timestamp": "noon"}], 2, "an instant must be ISO 8601 text"),
    ],
)
def test_a_bad_line_is_put_aside_and_the_rest_is_read(tmp_path: Path, lines: list[Any], line: int, reason: str) -> None:
    file = RecordedFile(write(tmp_path / "s.jsonl", *lines, entry(ASKED, 2)))
    (transcript,) = joined(read_pieces(file, OpenClawReader()))
    ((path, found, _, told),) = file.quarantine
    assert (path.name, found) == ("s.jsonl", line)
    assert told.startswith(reason)
    assert [m.message_id for m in transcript.messages] == ["0a1b:e2"]
