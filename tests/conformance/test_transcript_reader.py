"""The laws of `TranscriptReader`, over every reader and recordings of its format.

Recordings are `tests/recordings/<reader>.*`, written by hand, and the bundled sample.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lcm.errors import TranscriptError
from lcm.records.conversation import Transcript
from lcm.store.store import Store
from lcm.transcript.parts import rebuild_record
from lcm.transcript.reader import TranscriptReader
from lcm.transcript.reading import READERS, joined, read_pieces, reader_of
from lcm.transcript.recorded_file import RecordedFile
from tests.conftest import ROOT
from tests.lcm.store.contents import TOKENS

SAMPLE = ROOT / "data" / "sample" / "transcripts"
FROM_SAMPLE = {"chat": ["assistant.jsonl", "ryokou.json", "zhongwen.json"], "openclaw": ["coding.jsonl"]}
CASES = [
    (reader, path)
    for reader in READERS
    for path in [
        *(SAMPLE / name for name in FROM_SAMPLE.get(reader.name, [])),
        *sorted((ROOT / "tests" / "recordings").glob(f"{reader.name}.*")),
    ]
]
IDS = [f"{reader.name}-{path.name}" for reader, path in CASES]
TEXTUAL = [case for case in CASES if case[0].name != "parquet"]
TEXTUAL_IDS = [f"{reader.name}-{path.name}" for reader, path in TEXTUAL]
NESTING = ("chat_messages", "messages", "conversations", "traj", "history", "trajectory")
"""Keys under which a record of a session holds its messages."""
TREES = ("mapping",)
"""Keys under which it holds messages by their ids."""


def read(reader: TranscriptReader, path: Path) -> tuple[list[Transcript], RecordedFile]:
    file = RecordedFile(path)
    return joined(read_pieces(file, reader)), file


def records(path: Path) -> list[Any]:
    """The records of a recording, read without our readers; lists of messages and steps unfolded."""
    text = path.read_text()
    try:
        document = json.loads(text)
        entries = document if isinstance(document, list) else [document]
    except json.JSONDecodeError:
        entries = [json.loads(line) for line in text.splitlines() if line.strip()]
    found = []
    for entry in entries:
        is_document = len(entries) == 1 and "\n" in text.strip()
        lists = [
            key for key in entry if isinstance(entry[key], list) and entry[key] and (is_document or key in NESTING)
        ]
        trees = [key for key in TREES if isinstance(entry.get(key), dict)]
        children = {key: {name: n["children"] for name, n in entry[key].items() if "children" in n} for key in trees}
        found.append({**entry, **dict.fromkeys(lists), **children} if lists or trees else entry)
        found += [element for key in lists for element in entry[key]]
        nodes = [node for key in trees for node in entry[key].values()]
        found += [{name: value for name, value in node.items() if name != "children"} for node in nodes]
        if told := entry.get("$set", {}).get("messages"):  # a change of Gemini's that lists messages
            found[-1:] = [{"$set": entry["$set"] | {"messages": None}}, *told]
    return found


def test_every_reader_has_a_recording() -> None:
    assert {reader.name for reader, _ in CASES} == {reader.name for reader in READERS}


@pytest.mark.parametrize(("reader", "path"), CASES, ids=IDS)
def test_its_own_format_is_detected_and_no_other(reader: TranscriptReader, path: Path) -> None:
    assert reader_of(RecordedFile(path)).name == reader.name


@pytest.mark.parametrize(("reader", "path"), TEXTUAL, ids=TEXTUAL_IDS)
def test_every_record_comes_back_exactly_from_the_store(reader: TranscriptReader, path: Path) -> None:
    transcripts, file = read(reader, path)
    assert file.quarantine == []
    rebuilt = []
    with Store() as store:
        for transcript in transcripts:
            store.ingest(transcript, TOKENS)
            rebuilt += [event.native for event in store.events(transcript.conversation_id)]
            rebuilt += [rebuild_record(message) for message in store.messages(transcript.conversation_id)]
    assert Counter(map(json.dumps, rebuilt)) == Counter(map(json.dumps, records(path)))


@pytest.mark.parametrize(("reader", "path"), CASES, ids=IDS)
def test_messages_keep_their_order_ids_are_unique_and_calls_are_named(reader: TranscriptReader, path: Path) -> None:
    transcripts, _ = read(reader, path)
    ids = [message.message_id for transcript in transcripts for message in transcript.messages]
    assert len(ids) > 0
    assert len(set(ids)) == len(ids)
    for transcript in transcripts:
        if reader.name != "parquet":
            recorded = map(json.dumps, records(path))  # each look-up goes on behind the one before
            assert all(json.dumps(rebuild_record(message)) in recorded for message in transcript.messages)
        parts = [part for message in transcript.messages for part in message.parts if part.part_type == "tool"]
        calls = [part for part in parts if part.tool_input is not None]
        assert all(part.tool_name for part in calls)
        assert all(part.tool_call_id for part in calls if reader.name != "sharegpt")  # whose calls have no ids
        assert [event.after for event in transcript.events] == sorted(event.after for event in transcript.events)


@pytest.mark.parametrize(("reader", "path"), CASES, ids=IDS)
def test_reading_twice_and_in_small_pieces_gives_the_same(
    reader: TranscriptReader, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = read(reader, path)
    assert read(reader, path)[0] == whole
    monkeypatch.setattr("lcm.transcript.reading.PIECE_ITEMS", 2)
    assert read(reader, path)[0] == whole
    with Store() as store, Store() as other:
        store.ingest_pieces(read_pieces(RecordedFile(path), reader), TOKENS)
        other.ingest_pieces(whole, TOKENS)
        for transcript in whole:
            assert store.messages(transcript.conversation_id) == other.messages(transcript.conversation_id)
            assert store.events(transcript.conversation_id) == list(transcript.events)
        assert store.conversations().equals(other.conversations())


@pytest.mark.parametrize(("reader", "path"), TEXTUAL, ids=TEXTUAL_IDS)
def test_a_file_that_is_cut_off_is_put_aside_from_there_and_refused_strictly(
    reader: TranscriptReader, path: Path, tmp_path: Path
) -> None:
    damaged = tmp_path / path.name
    text = path.read_text()
    damaged.write_text(text.rstrip()[:-1])
    transcripts, file = read(reader, damaged)
    ((_, line, _, reason),) = file.quarantine
    assert 0 < line <= text.count("\n") + 1
    assert "not JSON" in reason
    whole, _ = read(reader, path)
    heard = sum(len(transcript.messages) for transcript in transcripts)
    assert heard <= sum(len(transcript.messages) for transcript in whole)
    with pytest.raises(TranscriptError, match=f"{damaged.name}:{line}"):
        list(read_pieces(RecordedFile(damaged, strict=True), reader))
