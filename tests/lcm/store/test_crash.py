"""A crash leaves the state before or after a write, never between."""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from lcm.records.document import Document
from lcm.store.migrations import MIGRATIONS, migrate
from lcm.store.store import Store
from tests.lcm.store.contents import OPENED_AT, TOKENS, dump, dump_connection, is_sound, talk
from tests.lcm.store.faults import FaultyConnection, InjectedError
from tests.support.workspaces import minute


def ingest_a_new_conversation(store: Store) -> None:
    store.ingest(talk(3, "new"), TOKENS)


def ingest_more_of_a_conversation(store: Store) -> None:
    store.ingest(talk(5), TOKENS)


def add_documents(store: Store) -> None:
    known = Document("d0", "text", ("talk:1",), "talk", "talk session", minute(1))
    new = [Document(f"d{i}", "text", ("talk:1", "talk:2"), "talk", "talk session", minute(2)) for i in (1, 2, 3)]
    store.add_documents([known, *new])


def opened() -> Store:
    store = Store(opened_at=OPENED_AT)
    store.ingest(talk(2), TOKENS)
    store.add_documents([Document("d0", "text", ("talk:1",), "talk", "talk session", minute(1))])
    return store


@pytest.mark.parametrize("after", [False, True], ids=["before a statement", "after a statement"])
@pytest.mark.parametrize("write", [ingest_a_new_conversation, ingest_more_of_a_conversation, add_documents])
def test_a_crash_between_any_two_statements_leaves_the_state_before_or_after(
    write: Callable[[Store], None], after: bool
) -> None:
    with opened() as whole:
        before = dump(whole)
        write(whole)
        complete = dump(whole)
    assert before != complete
    for at in count(1):
        with opened() as store:
            sound = store._connection
            faulty = FaultyConnection(sound, at, after=after)
            store._connection = faulty
            try:
                write(store)
            except InjectedError:
                pass
            else:
                if faulty.statements < at:
                    break
            store._connection = sound
            assert not sound.in_transaction
            assert dump(store) in (before, complete), f"statement {at}"
            assert is_sound(sound)
            write(store)
            assert dump(store) == complete, f"the same write again, after statement {at}"
    assert at > 10


@pytest.mark.full
def test_a_crash_while_the_schema_is_made_leaves_a_whole_version_of_it() -> None:
    versions = [{}, {"sqlite_sequence": []}]
    for number in range(1, len(MIGRATIONS)):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            migrate(connection, OPENED_AT, MIGRATIONS[:number])
            versions.append(dump_connection(connection))
    for at in count(1):
        connection = sqlite3.connect(":memory:", isolation_level=None)
        faulty = FaultyConnection(connection, at)
        try:
            migrate(faulty, OPENED_AT)
        except InjectedError:
            assert dump_connection(connection) in versions
            migrate(connection, OPENED_AT)
        finished = faulty.statements < at
        with Store(opened_at=OPENED_AT) as whole:
            assert dump_connection(connection) == dump(whole)
        connection.close()
        if finished:
            break
    assert at > 20


_KILLED = """
import os, signal, sys
from lcm.store.store import Store
from tests.lcm.store.contents import TOKENS, talk
from tests.lcm.store.faults import FaultyConnection

path, at, after = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "after"
store = Store(path)
store._connection.execute("PRAGMA cache_size = 10")  # so that pages reach the file before the commit
kill = lambda: os.kill(os.getpid(), signal.SIGKILL)
store._connection = FaultyConnection(store._connection, at, kill, after)
store.ingest(talk(500), TOKENS)
print(store._connection.statements)
"""


def run_until_killed(path: Path, at: int, when: str, root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _KILLED, str(path), str(at), when]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.full
def test_a_killed_process_leaves_the_state_before_or_after(tmp_path: Path, root: Path) -> None:
    finished = run_until_killed(tmp_path / "whole.db", 0, "before", root)
    statements = int(finished.stdout)
    assert statements > 3 * 300
    for at, when, is_stored in [
        (statements // 4, "before", False),
        (statements // 2, "before", False),
        (statements, "before", False),
        (statements, "after", True),
    ]:
        path = tmp_path / f"{at} {when}.db"
        with Store(path) as store:
            before = dump(store)
        killed = run_until_killed(path, at, when, root)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        with Store(path) as store:
            assert is_sound(store._connection)
            if is_stored:
                assert store.messages() == list(talk(500).messages)
            else:
                assert dump(store) == before
            store.ingest(talk(500), TOKENS)
            assert store.messages() == list(talk(500).messages)
