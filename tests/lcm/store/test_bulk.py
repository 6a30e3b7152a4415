"""A long write: no log that grows as it does, and a kill in its middle leaves what was there before."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcm.records.conversation import Transcript
from lcm.store.sqlite import LOG_BYTES
from lcm.store.store import Store
from pipelines.config.arguments import CommandArguments
from pipelines.recall import opened_store
from tests.lcm.store.contents import TOKENS, dump, is_sound, message, talk

PIECES, MESSAGES, WORDS = 10, 100, "goat hay " * 200
"""Some 10 MB in the file, far more than SQLite keeps in memory."""
MOST_BESIDE = 2**20

KILLED = """
import os, signal, sys
from pathlib import Path
from tests.lcm.store.test_bulk import TOKENS, Store, pieces

def torn():
    yield from pieces()
    os.kill(os.getpid(), signal.SIGKILL)

with Store(Path(sys.argv[1])) as store, store.bulk():
    store.ingest_pieces(torn(), TOKENS)
"""


def pieces() -> Iterator[Transcript]:
    for piece in range(PIECES):
        first = piece * MESSAGES
        yield Transcript("large", tuple(message(first + i, f"{WORDS}{i}", name="large") for i in range(MESSAGES)))


def beside(path: Path) -> int:
    """Bytes of the log and of the journal."""
    return sum(file.stat().st_size for end in ("-wal", "-journal") for file in path.parent.glob(path.name + end))


def watched(path: Path, seen: list[int]) -> Iterator[Transcript]:
    for piece in pieces():
        yield piece
        seen.append(beside(path))


def test_what_lies_beside_the_file_stays_small_while_it_grows(tmp_path: Path) -> None:
    path, seen = tmp_path / "memory.db", list[int]()
    with Store(path) as store:
        store.ingest(talk(5), TOKENS)
        with store.bulk():
            store.ingest_pieces(watched(path, seen), TOKENS)
        assert max(seen) < MOST_BESIDE < path.stat().st_size // 5
        assert len(store.messages("large")) == PIECES * MESSAGES
        assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert store._connection.execute("PRAGMA synchronous").fetchone() == (1,)
        assert is_sound(store._connection)


def test_a_log_that_grew_is_cut_when_the_file_has_taken_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lcm.store.sqlite.LOG_BYTES", MOST_BESIDE)
    path, seen = tmp_path / "memory.db", list[int]()
    with Store(path) as store:
        store.ingest_pieces(watched(path, seen), TOKENS)
        assert max(seen) > 2 * MOST_BESIDE
        for number in range(3):
            store.ingest(talk(1, f"small {number}"), TOKENS)
        assert beside(path) <= MOST_BESIDE < LOG_BYTES


@pytest.mark.slow
def test_a_kill_in_the_middle_leaves_what_was_there(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "memory.db"
    with Store(path) as store:
        store.ingest(talk(5), TOKENS)
        before = dump(store)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], cwd=root, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert path.with_name("memory.db-journal").stat().st_size
    assert path.stat().st_size > 5 * MOST_BESIDE, "it was in the file already"
    with opened_store(CommandArguments((), {"store": str(path)}, ())) as store:
        assert dump(store) == before
        assert is_sound(store._connection)
        store.ingest_pieces(pieces(), TOKENS)


def test_where_another_has_the_file_open_it_reads_on_and_the_log_stays(tmp_path: Path) -> None:
    path, seen = tmp_path / "memory.db", list[int]()
    with Store(path) as store, Store(path) as other:
        store.ingest(talk(5), TOKENS)
        with store.bulk():
            for_other = (len(other.messages()) for _ in range(PIECES))

            def read_along() -> Iterator[Transcript]:
                for piece in pieces():
                    yield piece
                    seen.append(next(for_other))

            store.ingest_pieces(read_along(), TOKENS)
        assert set(seen) == {5}
        assert len(other.messages("large")) == PIECES * MESSAGES
