"""The full-text tables say what their base tables say, whatever happens to those."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.store.store import Store
from tests.lcm.store.contents import TOKENS, is_sound, talk

_contents = st.one_of(st.sampled_from(["", " \t\r\n\v\f", "running goats", "東京で会議", "nul \0 inside"]), st.text())
_changes = st.lists(
    st.tuples(
        st.sampled_from(["insert", "update", "rename", "replace", "delete", "vacuum"]), st.integers(1, 6), _contents
    ),
    max_size=12,
)


def is_indexed(content: str) -> bool:
    return content.strip(" \t\n\r\v\f") != ""


@dataclass(frozen=True)
class Base:
    """A table of texts, how its n-th row is named and written, and the tables that index it."""

    name: str
    key: str
    own: str
    key_of: Callable[[int], int | str]
    insert: str
    indexes: tuple[str, ...]


BASES = [
    Base(
        *("messages", "message_id", "rowid", int),
        "(message_key, conversation_id, session_id, seq, role, content, token_count)"
        " VALUES (:n, 1, 's', :n, 'user', :content, 0)",
        ("messages_fts",),
    ),
    Base(
        *("summaries", "summary_id", "summary_id", "sum_{}".format),
        "(summary_id, conversation_id, kind, content, token_count) VALUES (:key, 1, 'leaf', :content, 0)",
        ("summaries_fts", "summaries_fts_cjk"),
    ),
]


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.name)
@given(changes=_changes)
def test_indexed_text_stays_in_step(base: Base, changes: list[tuple[str, int, str]]) -> None:
    statements = {
        "update": f"UPDATE {base.name} SET content = :content WHERE {base.key} = :key",
        "rename": f"UPDATE OR IGNORE {base.name} SET {base.key} = :renamed WHERE {base.key} = :key",
        "delete": f"DELETE FROM {base.name} WHERE {base.key} = :key",
        "replace": f"INSERT OR REPLACE INTO {base.name} {base.insert}",
        "insert": f"INSERT OR IGNORE INTO {base.name} {base.insert}",
        "vacuum": "VACUUM",
    }
    with Store() as store:
        connection = store._connection
        store.ingest(talk(2), TOKENS)
        connection.executescript("DELETE FROM context_items; DELETE FROM message_parts;")
        for change, n, content in changes:
            key, renamed = base.key_of(n), base.key_of(n + 10)
            connection.execute(statements[change], {"n": n, "key": key, "renamed": renamed, "content": content})
        rows = connection.execute(f"SELECT {base.key}, content FROM {base.name} ORDER BY 1").fetchall()
        for table in base.indexes:
            indexed = connection.execute(f"SELECT {base.own}, content FROM {table} ORDER BY 1").fetchall()
            assert indexed == [row for row in rows if is_indexed(row[1])]
        assert is_sound(connection)


def test_deleting_a_conversation_empties_its_full_text() -> None:
    with Store() as store:
        connection = store._connection
        store.ingest(talk(3), TOKENS)
        store.ingest(talk(2, "other"), TOKENS)
        connection.execute("DELETE FROM context_items WHERE conversation_id = 1")
        connection.execute("DELETE FROM conversations WHERE conversation_id = 1")
        assert connection.execute("SELECT count(*) FROM messages_fts").fetchone() == (2,)
        assert is_sound(connection)
