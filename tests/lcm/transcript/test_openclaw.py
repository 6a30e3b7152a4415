"""OpenClaw sessions, and the early form of pi."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lcm.errors import TranscriptError
from lcm.transcript.openclaw import OpenClawReader, rebuild_entry
from lcm.transcript.parts import rebuild

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


def test_message_entries_are_read_and_all_others_skipped(session: Path) -> None:
    assert OpenClawReader().detects(session)
    (transcript,) = OpenClawReader().read(session)
    assert transcript.conversation_id == "0a1b"
    assert [m.message_id for m in transcript.messages] == ["0a1b:e1", "0a1b:e2", "0a1b:e3", "0a1b:e4"]
    assert [m.role for m in transcript.messages] == ["user", "assistant", "tool", "assistant"]
    assert [m.content for m in transcript.messages] == ["List the files", "", "a\nb", "$ pwd\n/home/ada"]
    assert {m.session_id for m in transcript.messages} == {"0a1b"}
    assert transcript.messages[0].created_at == datetime(2026, 1, 5, 9, 0, 1, 500_000, tzinfo=UTC)


def test_call_and_result_share_their_id(session: Path) -> None:
    _, called, answered, _ = OpenClawReader().read(session)[0].messages
    call = called.parts[1]
    assert (call.part_type, call.tool_call_id, call.tool_name, call.tool_input) == (
        "tool",
        "c1",
        "bash",
        '{"command":"ls"}',
    )
    assert [(part.text, part.tool_call_id, part.tool_name) for part in answered.parts] == [("a\nb", "c1", "bash")]


def test_messages_and_whole_entries_come_back_exactly(session: Path) -> None:
    messages = OpenClawReader().read(session)[0].messages
    assert [json.dumps(rebuild(m)) for m in messages] == [json.dumps(message) for message in SAID]
    entries = [json.dumps(entry(message, number)) for number, message in enumerate(SAID, start=1)]
    assert [json.dumps(rebuild_entry(m)) for m in messages] == entries


def test_the_early_form_without_entry_ids_counts_its_messages(tmp_path: Path) -> None:
    lines = [
        {"type": "message", "timestamp": "2025-12-08T22:41:05.306Z", "message": ASKED},
        {"type": "message", "message": ASKED},
    ]
    header = {"type": "session", "id": "early"}
    (transcript,) = OpenClawReader().read(write(tmp_path / "pi.jsonl", header, {"type": "model_change"}, *lines))
    assert [m.message_id for m in transcript.messages] == ["early:1", "early:2"]
    assert [m.created_at for m in transcript.messages] == [
        datetime(2025, 12, 8, 22, 41, 5, 306_000, tzinfo=UTC),
        datetime(2026, 1, 5, 9, 0, 1, tzinfo=UTC),
    ]


def test_a_header_without_id_leaves_the_file_name(tmp_path: Path) -> None:
    (transcript,) = OpenClawReader().read(write(tmp_path / "night.jsonl", {"type": "session"}))
    assert (transcript.conversation_id, transcript.messages) == ("night", ())


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ([entry(ASKED, 1)], r"s\.jsonl:1: an OpenClaw session starts with"),
        ([], r"s\.jsonl:1: an OpenClaw session starts with"),
        ([HEADER, "{broken"], r"s\.jsonl:2: not JSON"),
        ([HEADER, "", "7"], r"s\.jsonl:3: an entry must be a JSON object, got int"),
        ([HEADER, {"type": "message", "message": "words"}], r"s\.jsonl:2: a message entry needs a `message` object"),
        ([HEADER, {"type": "message", "message": {"content": ""}}], r"s\.jsonl:2: a message entry needs"),
        ([HEADER, entry(ASKED, 1) | {"timestamp": "noon"}], r"s\.jsonl:2: an instant must be ISO 8601 text"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, lines: list[Any], error: str) -> None:
    with pytest.raises(TranscriptError, match=error):
        OpenClawReader().read(write(tmp_path / "s.jsonl", *lines))
