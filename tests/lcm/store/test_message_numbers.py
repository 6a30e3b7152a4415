"""Messages by the numbers that `lcm grep` tells: nothing is written to what is looked into."""

import sqlite3
from pathlib import Path

import pytest

from eval.dataset.sample import bundled_directory
from lcm.errors import StoreError
from lcm.store.messages import message_ids_by_number
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from lcm.transcript.reading import read_transcripts


def test_numbers_are_those_of_the_store(tmp_path: Path) -> None:
    (transcript,) = read_transcripts(bundled_directory() / "transcripts" / "ryokou.json")
    with Store(tmp_path / "memory.db") as store:
        store.ingest(transcript, Utf16Units())
    found = message_ids_by_number(tmp_path / "memory.db", [2, 1, 999])
    assert found == {2: transcript.messages[1].message_id, 1: transcript.messages[0].message_id}


def test_what_is_no_store_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE notes (text)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"other.db' is no store of lcm: no such table"):
        message_ids_by_number(path, [1])
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["other.db"]
    (tmp_path / "text.db").write_text("no database, and long enough to be told so by SQLite")
    with pytest.raises(StoreError, match="is no store of lcm: file is not a database"):
        message_ids_by_number(tmp_path / "text.db", [1])
    with pytest.raises(StoreError, match=r"there is no store .*nowhere.db'; `lcm ingest"):
        message_ids_by_number(tmp_path / "nowhere.db", [1])
