"""Each schema version is applied once, whole, and never backwards."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lcm.errors import MigrationError
from lcm.store.doctor import scan
from lcm.store.sqlite import connect
from lcm.store.store import MIGRATIONS, Migration, Store, migrate, schema_version
from tests.lcm.context.recall.dags import recall
from tests.lcm.store.contents import OPENED_AT, TOKENS, dump, dump_connection, talk
from tests.support.workspaces import minute

TREES = Migration(
    1, "trees", "CREATE TABLE trees (name TEXT); CREATE TABLE schema_migrations (version, name, applied_at);"
)
LEAVES = Migration(2, "leaves", "CREATE TABLE leaves (tree TEXT); INSERT INTO leaves VALUES ('a;b');")


@pytest.fixture
def connection():
    with sqlite3.connect(":memory:", isolation_level=None) as opened:
        yield opened
    opened.close()


def test_versions_count_up_from_one_and_opening_twice_applies_nothing(tmp_path: Path) -> None:
    assert [migration.version for migration in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))
    path = tmp_path / "workspace.db"
    with Store(path, OPENED_AT) as store:
        store.ingest(talk(2), TOKENS)
        before = dump(store)
    with Store(path, minute(99)) as store:
        assert dump(store) == before
        assert before["schema_migrations"] == [
            (migration.version, migration.name, "2026-01-01T00:00:00.000Z") for migration in MIGRATIONS
        ]


def test_pending_migrations_are_applied_in_order_and_a_step_may_be_a_function(connection: sqlite3.Connection) -> None:
    def plant(inside: sqlite3.Connection) -> None:
        assert inside.in_transaction
        inside.execute("INSERT INTO trees VALUES ('oak')")

    assert schema_version(connection) == 0
    migrate(connection, minute(0), [TREES])
    migrate(connection, minute(1), [TREES, LEAVES, Migration(3, "plant", plant)])
    assert schema_version(connection) == 3
    assert dump_connection(connection) == {
        "trees": [("oak",)],
        "leaves": [("a;b",)],
        "schema_migrations": [
            (1, "trees", "2026-01-01T00:00:00.000Z"),
            (2, "leaves", "2026-01-01T00:01:00.000Z"),
            (3, "plant", "2026-01-01T00:01:00.000Z"),
        ],
    }


def test_a_failed_migration_is_rolled_back_and_stays_pending(connection: sqlite3.Connection) -> None:
    broken = Migration(2, "broken", "CREATE TABLE leaves (tree TEXT); INSERT INTO nowhere VALUES (1);")
    with pytest.raises(MigrationError, match=r"^migration 2 \(broken\) failed and was rolled back: no such table"):
        migrate(connection, minute(0), [TREES, broken])
    assert schema_version(connection) == 1
    assert set(dump_connection(connection)) == {"trees", "schema_migrations"}
    migrate(connection, minute(0), [TREES, LEAVES])
    assert schema_version(connection) == 2


def test_a_newer_database_is_refused_with_both_versions(tmp_path: Path) -> None:
    path = tmp_path / "workspace.db"
    with Store(path) as store:
        store._connection.execute("INSERT INTO schema_migrations VALUES (99, 'later', '2027-01-01T00:00:00.000Z')")
    before = path.read_bytes()
    with pytest.raises(MigrationError, match=rf"version 99, this program knows {MIGRATIONS[-1].version};"):
        Store(path)
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "foreign.db"
    foreign = sqlite3.connect(path)
    foreign.executescript("CREATE TABLE messages (body TEXT); INSERT INTO messages VALUES ('mine');")
    with pytest.raises(MigrationError, match="table messages already exists"):
        Store(path)
    assert dump_connection(foreign) == {"messages": [("mine",)]}
    foreign.close()


def test_defaults_write_instants_in_their_one_text_form() -> None:
    with Store() as store:
        store._connection.execute("INSERT INTO conversations (session_id, session_key) VALUES ('s', 'k')")
        (created_at,) = store._connection.execute("SELECT created_at FROM conversations").fetchone()
    assert len(created_at) == len("2026-01-05T09:00:00.000Z")
    assert created_at[10] + created_at[-1] == "TZ"


@pytest.mark.parametrize("version", range(1, 6))  # from 6 on, whoever writes a message writes what its parts say
def test_calls_in_a_store_of_an_older_version_are_found_once_it_is_opened(tmp_path: Path, version: int) -> None:
    path = tmp_path / "old.db"
    arguments = '{"command":"first line\\ngrep kettle"}'
    with closing(connect(path)) as connection:
        migrate(connection, OPENED_AT, MIGRATIONS[:version])
        connection.execute("INSERT INTO conversations (session_id, session_key) VALUES ('s', 'talk')")
        connection.executemany(
            """
            INSERT INTO messages (message_key, conversation_id, session_id, seq, role, content, token_count)
            VALUES (?, 1, 's', ?, 'assistant', ?, 1)
            """,
            [("call", 1, ""), ("words", 2, "plain words"), ("both", 3, "I look.")],
        )
        connection.executemany(
            """
            INSERT INTO message_parts (part_id, message_id, session_id, part_type, ordinal, text_content, tool_name,
                                       tool_input, metadata)
            VALUES (?, ?, 's', ?, ?, ?, ?, ?, '{}')
            """,
            [
                ("call:0", 1, "tool", 0, None, "bash", arguments),
                ("words:0", 2, "text", 0, "plain words", None, None),
                ("both:0", 3, "text", 0, "I look.", None, None),
                ("both:1", 3, "reasoning", 1, "the kettle may be warm", None, None),
            ],
        )
        connection.commit()
    with Store(path) as store:
        reader = recall().on(store)
        found = {
            words: sorted(hit.message_id for hit in reader.grep(words, mode="full_text").messages)
            for words in ("kettle", "first grep")
        }
        assert found == {"kettle": ["both", "call"], "first grep": ["call"]}
        assert [said.text for said in reader.messages([1, 2, 3])] == [
            "[tool bash] command: first line\ngrep kettle",
            "plain words",
            "I look.\n[reasoning] the kettle may be warm",
        ]
        assert [said.content for said in store.messages()] == ["", "plain words", "I look."]
        checks = {check.name: check.status for check in scan(store._connection)}
        assert (checks["parts_searchable"], checks["messages_fts"]) == ("pass", "pass")
