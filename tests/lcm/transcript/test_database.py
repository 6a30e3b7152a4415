"""Databases of agents: read as they stand, while their owner writes."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lcm.errors import TranscriptError
from lcm.transcript import database
from lcm.transcript.database import has_tables, snapshot
from lcm.transcript.folders import is_passed_over
from lcm.transcript.reading import reader_of
from lcm.transcript.recorded_file import RecordedFile


def made(path: Path, rows: int = 3) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE said (id INTEGER PRIMARY KEY, words TEXT)")
        connection.executemany("INSERT INTO said (words) VALUES (?)", [("x" * 2000,)] * rows)
        connection.commit()
    return path


def words(file: RecordedFile) -> list[str]:
    found = []
    with snapshot(file) as connection:
        found += [row["words"] for row in connection.execute("SELECT words FROM said ORDER BY id")]
    return found


def test_a_database_is_known_by_its_tables_and_columns(tmp_path: Path) -> None:
    file = RecordedFile(made(tmp_path / "a#?%.db"))
    assert has_tables(file, said="id words")
    assert not has_tables(file, said="id role")
    assert not has_tables(file, heard="id")
    (tmp_path / "text").write_text("words")
    assert not has_tables(RecordedFile(tmp_path / "text"), said="id")


def test_what_its_owner_writes_meanwhile_is_not_seen_and_nothing_is_written(tmp_path: Path) -> None:
    file = RecordedFile(made(tmp_path / "a.db"))
    with closing(sqlite3.connect(file.path, isolation_level=None)) as owner, snapshot(file) as connection:
        count = "SELECT count(*) FROM said"
        assert connection.execute(count).fetchone()[0] == 3
        owner.execute("INSERT INTO said (words) VALUES ('new')")
        assert connection.execute(count).fetchone()[0] == 3
    assert len(words(file)) == 4
    with snapshot(file) as connection:
        connection.execute("DELETE FROM said")
    assert "readonly" in file.quarantine[0].reason
    assert len(words(file)) == 4


def test_a_torn_database_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = made(tmp_path / "a.db", rows=50)
    with path.open("r+b") as stream:
        stream.seek(-30_000, 2)
        stream.write(b"\0" * 30_000)
    file, found = RecordedFile(path), []
    with snapshot(file) as connection:
        found += [row["words"] for row in connection.execute("SELECT words FROM said ORDER BY id")]
    assert len(found) < 50
    ((_, _, last, reason),) = file.quarantine
    assert (last, "cannot be read on: database disk image is malformed" in reason) == (None, True)
    with pytest.raises(TranscriptError, match=r"a\.db:1-end: the database cannot be read on"):
        words(RecordedFile(path, strict=True))
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(TranscriptError, match=r"a\.db: the database cannot be read on: database disk image"):
        reader_of(RecordedFile(path))
    assert not is_passed_over(RecordedFile(path), [tmp_path])


def test_a_locked_database_is_told_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_WAIT_S", 0.01)
    path = made(tmp_path / "a.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as owner:
        owner.execute("PRAGMA journal_mode=DELETE")
        owner.execute("BEGIN EXCLUSIVE")
        file = RecordedFile(path)
        assert words(file) == []
        with pytest.raises(TranscriptError, match=r"a\.db: the database is locked"):
            reader_of(file)
    assert "is locked" in file.quarantine[0].reason
    assert "close the program that writes it, or copy the file" in file.quarantine[0].reason
