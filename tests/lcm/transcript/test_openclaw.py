"""OpenClaw sessions, and the early form of pi."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lcm.records.conversation import Event, Transcript
from lcm.transcript.openclaw import Branches, OpenClawReader
from lcm.transcript.parts import rebuild
from tests.lcm.refusals import assert_refused
from tests.lcm.transcript import recordings
from tests.lcm.transcript.recordings import columns, rebuilt, write

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
    transcripts, aside = recordings.read(path, OpenClawReader(branches))
    assert aside == []
    return transcripts


def entry(message: dict[str, Any], number: int) -> dict[str, Any]:
    return {
        "type": "message",
        "id": f"e{number}",
        "parentId": None if number == 1 else f"e{number - 1}",
        "message": message,
        "timestamp": f"2026-01-05T09:00:0{number}.500Z",
    }


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


def test_call_and_result_share_their_id_and_all_comes_back_exactly(session: Path) -> None:
    (transcript,) = read(session)
    _, called, answered, _ = transcript.messages
    assert columns(called)[1] == ("tool", None, "c1", "bash", '{"command":"ls"}', None)
    assert columns(answered) == [("text", "a\nb", "c1", "bash", None, None)]
    assert [json.dumps(rebuild(m)) for m in transcript.messages] == list(map(json.dumps, SAID))
    assert rebuilt(transcript) == [json.dumps(entry(message, number)) for number, message in enumerate(SAID, start=1)]


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


def branch(name: str, parent: Any, kind: str = "message") -> dict[str, Any]:
    return {"type": kind, "id": name, "parentId": parent} | ({"message": ASKED} if kind == "message" else {})


def ids(transcripts: list[Transcript]) -> dict[str, str]:
    return {t.conversation_id: "".join(m.message_id.rpartition(":")[2] for m in t.messages) for t in transcripts}


@pytest.mark.parametrize(
    ("entries", "conversations"),
    [
        ("a- ba cb db ea fe", {"0a1b": "aef", "0a1b~b": "bc", "0a1b~d": "d"}),  # back to b, then to a
        ("a- ba c- dc", {"0a1b~a": "ab", "0a1b": "cd"}),  # back to the beginning
        ("a- b- c-", {"0a1b": "abc"}),  # no parents, no branches
        # Back to c, then to b: c to f are left behind, in which e is a branch of its own.
        ("a- ba cb dc ec fe gb hg", {"0a1b": "abgh", "0a1b~c": "cd", "0a1b~e": "ef"}),
        ("a- bz cb", {"0a1b": "abc"}),  # an unknown parent: it follows the one before it
        ("a- bc cb", {"0a1b": "abc"}),  # a parent that comes later
    ],
)
def test_an_abandoned_branch_is_a_conversation_of_its_own(entries, conversations, tmp_path):
    """Each entry is its name and its parent's."""
    lines = [branch(name, None if parent == "-" else parent) for name, parent in entries.split()]
    path = write(tmp_path / "s.jsonl", HEADER, *lines)
    assert ids(read(path)) == conversations
    assert ids(read(path, "in_file_order")) == {"0a1b": "".join(line["id"] for line in lines)}
    assert {m.session_id for transcript in read(path) for m in transcript.messages} == {"0a1b"}


def test_an_entry_that_goes_back_leaves_a_branch_behind_without_a_message_of_its_own(tmp_path: Path) -> None:
    leaf = branch("l", "c", "leaf") | {"targetId": "a"}
    lines = [branch("a", None), branch("b", "a"), branch("c", "b"), leaf]
    assert ids(read(write(tmp_path / "s.jsonl", HEADER, *lines))) == {"0a1b": "a", "0a1b~b": "bc"}
    assert ids(read(write(tmp_path / "s.jsonl", HEADER, *lines, branch("d", "l")))) == {"0a1b": "ad", "0a1b~b": "bc"}


def test_an_event_is_left_in_no_branch_and_a_parent_may_be_no_name(tmp_path: Path) -> None:
    label = branch("x", "c", "label")
    lines = [branch("a", None), branch("b", 7), branch("c", "0a1b"), label, branch("d", "a")]
    main, left = sorted(read(write(tmp_path / "s.jsonl", HEADER, *lines)), key=lambda found: found.conversation_id)
    assert ids([main, left]) == {"0a1b": "ad", "0a1b~b": "bc"}
    assert (main.events, left.events) == ((Event("session", HEADER, 0), Event("label", label, 1)), ())


def test_a_later_header_that_is_not_whole_renames_nothing(tmp_path: Path) -> None:
    later = {"type": "session", "id": "other"}
    (transcript,) = read(write(tmp_path / "s.jsonl", HEADER, entry(ASKED, 1), later, entry(ASKED, 2)))
    assert transcript.conversation_id == "0a1b"
    assert [(m.message_id, m.session_id) for m in transcript.messages] == [("0a1b:e1", "0a1b"), ("0a1b:e2", "0a1b")]
    assert transcript.events == (Event("session", HEADER, 0), Event("session", later, 1))


def test_two_sessions_in_one_file_are_two_conversations_and_each_has_its_branches(tmp_path: Path) -> None:
    first = [HEADER, branch("a", None), branch("b", "a"), branch("c", "a"), {"type": "session_info", "name": "Files"}]
    second = [HEADER | {"id": "2c3d"}, branch("a", None), branch("d", "a"), branch("e", "a")]
    path = write(tmp_path / "both.jsonl", *first, *second, HEADER, branch("f", "c"))
    transcripts = read(path)
    assert ids(transcripts) == {"0a1b": "acf", "0a1b~b": "b", "2c3d": "ae", "2c3d~d": "d"}
    assert {t.conversation_id: t.title for t in transcripts if "~" not in t.conversation_id} == {
        "0a1b": "Files",
        "2c3d": None,
    }
    assert {(t.conversation_id.partition("~")[0], m.session_id) for t in transcripts for m in t.messages} == {
        ("0a1b", "0a1b"),
        ("2c3d", "2c3d"),
    }
    assert ids(read(path, "in_file_order")) == {"0a1b": "abcf", "2c3d": "ade"}


def test_a_name_given_to_the_session_is_its_title(tmp_path: Path) -> None:
    named = {"type": "session_info", "name": "Files"}
    path = write(tmp_path / "s.jsonl", HEADER, entry(ASKED, 1), named, entry(ASKED, 2), {"type": "session_info"})
    assert read(path)[0].title == "Files"


def test_another_treatment_of_branches_is_refused() -> None:
    assert_refused(OpenClawReader, "be one of: apart, in_file_order", branches=["left", ""])
