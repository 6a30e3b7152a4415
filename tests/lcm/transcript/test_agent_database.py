"""An OpenClaw agent's database: its sessions are read as the JSONL of before."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.errors import TranscriptError
from lcm.records.conversation import Transcript
from lcm.transcript.folders import recorded_files
from lcm.transcript.openclaw import OpenClawReader
from lcm.transcript.reading import joined, read_pieces, reader_of
from lcm.transcript.recorded_file import RecordedFile
from tests.lcm.transcript.recordings import rebuilt, write

SCHEMA = """
CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, previous_session_id TEXT, created_at INTEGER,
    display_name TEXT);
CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER,
    event_zstd BLOB, event_utf8_bytes INTEGER, PRIMARY KEY (session_id, seq));
CREATE TABLE session_transcript_archives (session_id TEXT, generation TEXT, archive_blob BLOB, created_at INTEGER);
"""


def header(session_id: str) -> dict[str, Any]:
    return {"type": "session", "version": 4, "id": session_id, "timestamp": "2026-09-01T08:00:00.000Z"}


def said(entry_id: str, parent: str | None, words: str = "x") -> dict[str, Any]:
    return {
        "type": "message",
        "id": entry_id,
        "parentId": parent,
        "timestamp": "2026-09-01T08:00:01.000Z",
        "message": {"role": "user", "content": [{"type": "text", "text": words}]},
    }


def made(
    path: Path,
    sessions: Mapping[str, Sequence[Any]],
    windows: Sequence[tuple[Any, ...]] = (),
    archives: Mapping[str, bytes] | None = None,
) -> Path:
    """Write a database: a text stands as it is, bytes are packed, anything else is JSON."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"PRAGMA synchronous=OFF; {SCHEMA}")
        for session_id, records in sessions.items():
            for seq, record in enumerate(records):
                text = record if isinstance(record, str | bytes | None) else json.dumps(record)
                packed = text if isinstance(text, bytes) else None
                row = (session_id, seq, None if packed else text, packed)
                connection.execute(
                    "INSERT INTO transcript_events (session_id, seq, event_json, event_zstd) VALUES (?, ?, ?, ?)", row
                )
        connection.executemany("INSERT INTO session_windows VALUES (?, ?, ?, ?)", windows)
        connection.executemany(
            "INSERT INTO session_transcript_archives (session_id, archive_blob) VALUES (?, ?)",
            list((archives or {}).items()),
        )
        connection.commit()
    return path


def read(path: Path) -> tuple[list[Transcript], list[str]]:
    file = RecordedFile(path)
    reader = reader_of(file)
    assert reader.name == "openclaw"
    return joined(read_pieces(file, reader)), [f"{found.line}: {found.reason}" for found in file.quarantine]


def packed(value: Any) -> bytes:
    return bytes(pa.compress(json.dumps(value).encode(), codec="zstd", asbytes=True))


def lines(*records: Any) -> bytes:
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()


def spoken(transcripts: Sequence[Transcript]) -> dict[str, list[str]]:
    return {one.conversation_id: [message.content for message in one.messages] for one in transcripts}


def test_each_session_is_a_conversation_in_the_order_of_their_windows(tmp_path: Path) -> None:
    first = [header("s1"), said("a", None, "one"), said("b", "a", "two")]
    second = [header("s2"), said("a", None, "three")]
    windows = [("s1", None, 10, "Before"), ("s2", "s1", 20, None)]
    transcripts, aside = read(made(tmp_path / "agent.sqlite", {"s2": second, "s1": first}, windows))
    assert aside == []
    assert spoken(transcripts) == {"s1": ["one", "two"], "s2": ["three"]}
    assert list(spoken(transcripts)) == ["s1", "s2"]
    assert rebuilt(transcripts[0]) == [json.dumps(record) for record in first[1:]]
    window, head = transcripts[1].events
    assert (window.kind, window.native["previous_session_id"]) == ("session_window", "s1")
    assert (head.native, transcripts[0].title) == (second[0], "Before")


@given(parents=st.lists(st.integers(-1, 6), max_size=8), is_packed=st.lists(st.booleans(), min_size=8, max_size=8))
def test_a_database_says_what_the_lines_of_a_file_say(
    parents: list[int], is_packed: list[bool], tmp_path_factory: pytest.TempPathFactory
) -> None:
    entries = [
        said(f"e{number}", f"e{parent}" if parent >= 0 else None, f"words {number}")
        for number, parent in enumerate(parents)
    ]
    records = [header("s"), *entries]
    folder = tmp_path_factory.getbasetemp()
    rows = [packed(record) if small else record for record, small in zip(records, [False, *is_packed], strict=False)]
    from_rows, _ = read(made(folder / "same.sqlite", {"s": rows}))
    of_lines = RecordedFile(write(folder / "same.jsonl", *records))
    assert from_rows == joined(read_pieces(of_lines, OpenClawReader()))


def test_what_an_archive_holds_is_read_unless_the_session_goes_on_with_it(tmp_path: Path) -> None:
    kept = [header("s"), said("a", None, "one"), said("b", "a", "two")]
    gone = lines(header("gone"), said("x", None, "gone but kept"))
    archives = {"gone": bytes(pa.compress(gone, codec="zstd", asbytes=True)), "s": lines(*kept[:2])}
    path = tmp_path / "agent.sqlite"
    assert spoken(read(made(path, {"s": kept}, archives=archives))[0]) == {
        "s": ["one", "two"],
        "gone": ["gone but kept"],
    }
    archives["s"] = lines(header("s"), said("a", None, "one"), said("c", "a", "left"), said("d", "c", "too"))
    assert spoken(read(made(path, {"s": kept}, archives=archives))[0])["s~c"] == ["left", "too"]


def cold(path: Path, name: str) -> Path:
    """A database with a session that lies in a file of that name."""
    made(path, {"s": [header("s"), said("a", None, "one")]})
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE session_transcript_cold_archives (session_id TEXT, archive_name TEXT, archive_blob BLOB)"
        )
        connection.execute("INSERT INTO session_transcript_cold_archives VALUES ('c', ?, NULL)", [name])
    return path


def test_an_archive_in_a_file_is_read_with_the_database_that_names_it(tmp_path: Path) -> None:
    agent = tmp_path / "agents" / "main"
    database = agent / "agent" / "openclaw-agent.sqlite"
    archive = agent / "sessions" / "cold" / "f00d.jsonl.zst"
    for folder in (database.parent, archive.parent):
        folder.mkdir(parents=True)
    cold(database, archive.name)
    transcripts, (aside,) = read(database)
    assert spoken(transcripts) == {"s": ["one"]}
    assert aside == (
        "1: session_transcript_cold_archives, session c: cold/f00d.jsonl.zst is not there; "
        "put it back beside the sessions"
    )
    archive.write_bytes(pa.compress(lines(header("c"), said("x", None, "long ago")), "zstd", asbytes=True))
    assert read(database)[1] == []
    assert spoken(read(database)[0]) == {"c": ["long ago"], "s": ["one"]}
    assert [file.path for file in recorded_files([tmp_path])] == [database]
    database.rename(flat := archive.parent.parent / database.name)
    assert "c" in spoken(read(flat)[0])


def test_an_archive_is_not_looked_for_elsewhere(tmp_path: Path) -> None:
    (outside := tmp_path / "outside.jsonl").write_bytes(lines(header("c"), said("x", None, "secret")))
    (tmp_path / "a" / "cold").mkdir(parents=True)
    (tmp_path / "a" / "cold" / "linked.jsonl").symlink_to(outside)
    for name in ("../../outside.jsonl", str(outside), "linked.jsonl", ".."):
        transcripts, (aside,) = read(cold(tmp_path / "a" / "agent.sqlite", name))
        assert spoken(transcripts) == {"s": ["one"]}
        assert "is not there" in aside


def test_a_window_that_no_record_can_hold_is_put_aside_alone(tmp_path: Path) -> None:
    path = made(tmp_path / "agent.sqlite", {"s": [said("a", None, "one")]}, [("s", None, 1, b"\xff")])
    transcripts, aside = read(path)
    assert spoken(transcripts) == {"s": ["one"]}
    assert aside == ["1: session_windows, session s: display_name must be text or a number, got bytes"]


def test_a_row_that_cannot_be_read_is_put_aside_with_its_session(tmp_path: Path) -> None:
    bad = ["{broken", None, packed("x")[:-3], packed("y" * 17 * 2**20), "7", {"type": "message"}]
    path = made(tmp_path / "agent.sqlite", {"s": [header("s"), *bad, said("a", None)]})
    transcripts, aside = read(path)
    assert spoken(transcripts) == {"s": ["x"]}
    reasons = ("not JSON", "the row holds no record", "cannot be unpacked", "a record of more than 16 MiB")
    assert [reason in line for reason, line in zip(reasons, aside, strict=False)] == [True] * 4
    assert [line.partition(": ")[2] for line in aside[4:]] == [
        "an entry must be a JSON object, got int",
        "a message entry needs a `message` object with a `role`",
    ]
    assert aside[0].startswith("2: session s, record 1: ")
    with pytest.raises(TranscriptError, match=r"agent\.sqlite:2: session s, record 1: not JSON"):
        list(read_pieces(RecordedFile(path, strict=True), OpenClawReader()))


def test_a_torn_archive_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    torn = bytes(
        pa.compress(
            lines(header("s"), *(said(f"e{i}", None, "w" * 999 + str(i)) for i in range(999))), "zstd", asbytes=True
        )
    )
    ((transcript,), (aside,)) = read(made(tmp_path / "agent.sqlite", {}, archives={"s": torn[: len(torn) // 2]}))
    assert 0 < len(transcript.messages) < 999
    assert "session_transcript_archives, session s, from line" in aside


def test_an_archive_that_grows_beyond_measure_is_put_aside_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lcm.given._ANY_BYTES", 2**16)
    bomb = bytes(pa.compress(lines(header("b")) * 100_000, "zstd", asbytes=True))
    path = made(tmp_path / "agent.sqlite", {"s": [said("a", None, "one")]}, archives={"b": bomb})
    transcripts, aside = read(path)
    assert spoken(transcripts)["s"] == ["one"]
    assert "session b, from line" in aside[0]
    assert "becomes more than" in aside[0]


def test_of_a_torn_database_the_sessions_that_can_be_read_are_read(tmp_path: Path) -> None:
    sessions = {f"s{n}": [header(f"s{n}"), *(said(f"e{i}", None, "word " * 200) for i in range(9))] for n in range(9)}
    path = made(tmp_path / "agent.sqlite", sessions)
    with path.open("r+b") as stream:
        stream.seek(path.stat().st_size // 2)
        stream.write(b"\0" * 4096)
    transcripts, aside = read(path)
    torn = {line.partition("session ")[2].split(" ")[0] for line in aside}
    assert 0 < len(torn) < 9
    assert [len(one.messages) == 9 for one in transcripts if one.conversation_id not in torn] == [True] * (
        9 - len(torn)
    )


def test_another_database_of_events_is_not_taken(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE transcript_events (id TEXT, details_json TEXT)")
    assert not OpenClawReader().detects(RecordedFile(tmp_path / "other.db"))
