"""The laws of `TranscriptReader`, over every reader and a recording of its format."""

import json
from pathlib import Path

import pytest

from lcm.errors import TranscriptError
from lcm.protocols import TranscriptReader
from lcm.transcript.parts import rebuild
from lcm.transcript.reading import READERS
from tests.conftest import ROOT

RECORDINGS = ROOT / "data" / "sample" / "transcripts"
OF_FORMAT = {"chat": ["assistant.jsonl", "ryokou.json", "zhongwen.json"], "openclaw": ["coding.jsonl"]}
CASES = [(reader, RECORDINGS / name) for reader in READERS for name in OF_FORMAT[reader.name]]
IDS = [f"{reader.name}-{path.name}" for reader, path in CASES]


def recorded(path: Path) -> list[dict]:
    """The native messages of a recording, read without our readers."""
    text = path.read_text()
    entries = json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]
    found = []
    for entry in entries:
        if "messages" in entry:
            found += entry["messages"]
        elif entry.get("type", "message") == "message":
            found.append(entry.get("message", entry))
    return found


@pytest.mark.parametrize(("reader", "path"), CASES, ids=IDS)
def test_only_its_own_format_is_detected(reader: TranscriptReader, path: Path) -> None:
    assert [other.name for other in READERS if other.detects(path)] == [reader.name]


@pytest.mark.parametrize(("reader", "path"), CASES, ids=IDS)
def test_every_message_rebuilds_exactly_and_in_order(reader: TranscriptReader, path: Path) -> None:
    messages = [message for transcript in reader.read(path) for message in transcript.messages]
    assert [json.dumps(rebuild(message)) for message in messages] == [json.dumps(native) for native in recorded(path)]


@pytest.mark.parametrize(("reader", "path"), CASES, ids=IDS)
def test_reading_twice_gives_equal_transcripts(reader: TranscriptReader, path: Path) -> None:
    assert reader.read(path) == reader.read(path)


@pytest.mark.parametrize(("reader", "path"), CASES, ids=IDS)
def test_tool_calls_and_results_are_all_there(reader: TranscriptReader, path: Path) -> None:
    messages = [message for transcript in reader.read(path) for message in transcript.messages]
    calls = [part for m in messages for part in m.parts if part.part_type == "tool" and part.tool_input is not None]
    native_calls = sum(
        len(native.get("tool_calls") or [])
        + sum(isinstance(block, dict) and block.get("type") == "toolCall" for block in native.get("content") or [])
        for native in recorded(path)
    )
    assert len(calls) == native_calls
    assert all(part.tool_name and part.tool_call_id for part in calls)


@pytest.mark.parametrize(("reader", "path"), CASES, ids=IDS)
def test_a_bad_line_is_named(reader: TranscriptReader, path: Path, tmp_path: Path) -> None:
    damaged = tmp_path / path.name
    text = path.read_text()
    damaged.write_text(text[: len(text) // 2])
    with pytest.raises(TranscriptError, match=f"{damaged.name}:[0-9]+"):
        reader.read(damaged)
