"""A crash leaves the state before or after a write, never between."""

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import count

import pytest

from lcm.records.document import Document
from lcm.store.store import MIGRATIONS, Store, migrate
from tests.lcm.store.contents import OPENED_AT, TOKENS, dump, dump_connection, is_sound, talk
from tests.lcm.store.faults import FaultyConnection, InjectedError
from tests.support.workspaces import minute


def add_documents(store: Store) -> None:
    known = Document("d0", "text", ("talk:1",), "talk", "talk session", minute(1))
    new = [Document(f"d{i}", "text", ("talk:1", "talk:2"), "talk", "talk session", minute(2)) for i in (1, 2, 3)]
    store.add_documents([known, *new])


WRITES: dict[str, Callable[[Store], object]] = {
    "a new conversation": lambda store: store.ingest(talk(3, "new"), TOKENS),
    "more of a conversation": lambda store: store.ingest(talk(5), TOKENS),
    "documents": add_documents,
}


def opened() -> Store:
    store = Store(opened_at=OPENED_AT)
    store.ingest(talk(2), TOKENS)
    store.add_documents([Document("d0", "text", ("talk:1",), "talk", "talk session", minute(1))])
    return store


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_crash_between_any_two_statements_leaves_the_state_before_or_after(write: Callable[[Store], object]) -> None:
    with opened() as whole:
        before = dump(whole)
        write(whole)
        complete = dump(whole)
    assert before != complete
    for at in count(1):
        with opened() as store:
            sound = store._connection
            faulty = FaultyConnection(sound, at, after=at % 2 == 1)
            store._connection = faulty
            with suppress(InjectedError):
                write(store)
            if faulty.statements < at:
                break
            store._connection = sound
            assert not sound.in_transaction
            assert dump(store) in (before, complete), f"statement {at}"
            assert is_sound(sound)
            write(store)
            assert dump(store) == complete, f"the same write again, after statement {at}"
    assert at > 10


def test_a_crash_while_the_schema_is_made_leaves_a_whole_version_of_it() -> None:
    versions = [{}, {"sqlite_sequence": []}]
    for number in range(1, len(MIGRATIONS)):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            migrate(connection, OPENED_AT, MIGRATIONS[:number])
            versions.append(dump_connection(connection))
    with Store(opened_at=OPENED_AT) as whole:
        complete = dump(whole)
    for at in count(1, 3):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            faulty = FaultyConnection(connection, at)
            try:
                migrate(faulty, OPENED_AT)
            except InjectedError:
                assert dump_connection(connection) in versions
                migrate(connection, OPENED_AT)
            assert dump_connection(connection) == complete
            if faulty.statements < at:
                break
    assert at > 20
