"""The full-text tables say what their base tables say, whatever happens to those."""

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


@given(_changes)
def test_message_text_stays_in_step(changes: list[tuple[str, int, str]]) -> None:
    with Store() as store:
        connection = store._connection
        store.ingest(talk(2), TOKENS)
        connection.executescript("DELETE FROM context_items; DELETE FROM message_parts;")
        for change, key, content in changes:
            if change == "update":
                connection.execute("UPDATE messages SET content = ? WHERE message_id = ?", (content, key))
            elif change == "rename":
                connection.execute(
                    "UPDATE OR IGNORE messages SET message_id = message_id + 10 WHERE message_id = ?", (key,)
                )
            elif change == "delete":
                connection.execute("DELETE FROM messages WHERE message_id = ?", (key,))
            elif change == "vacuum":
                connection.execute("VACUUM")
            else:
                conflict = "REPLACE" if change == "replace" else "IGNORE"
                connection.execute(
                    f"INSERT OR {conflict} INTO messages (message_key, conversation_id, session_id, seq, role, content,"
                    " token_count) VALUES (?, 1, 's', ?, 'user', ?, 0)",
                    (str(key), key, content),
                )
        base = connection.execute("SELECT message_id, content FROM messages ORDER BY 1").fetchall()
        indexed = connection.execute("SELECT rowid, content FROM messages_fts ORDER BY 1").fetchall()
        assert indexed == [row for row in base if is_indexed(row[1])]
        assert is_sound(connection)


@given(_changes)
def test_summary_text_stays_in_step_in_both_tables(changes: list[tuple[str, int, str]]) -> None:
    with Store() as store:
        connection = store._connection
        store.ingest(talk(1), TOKENS)
        for change, key, content in changes:
            summary_id = f"sum_{key}"
            if change == "update":
                connection.execute("UPDATE summaries SET content = ? WHERE summary_id = ?", (content, summary_id))
            elif change == "rename":
                connection.execute(
                    "UPDATE OR IGNORE summaries SET summary_id = ? WHERE summary_id = ?", (f"sum_{key + 1}", summary_id)
                )
            elif change == "delete":
                connection.execute("DELETE FROM summaries WHERE summary_id = ?", (summary_id,))
            elif change == "vacuum":
                connection.execute("VACUUM")
            else:
                conflict = "REPLACE" if change == "replace" else "IGNORE"
                connection.execute(
                    f"INSERT OR {conflict} INTO summaries (summary_id, conversation_id, kind, content, token_count)"
                    " VALUES (?, 1, 'leaf', ?, 0)",
                    (summary_id, content),
                )
        base = connection.execute("SELECT summary_id, content FROM summaries ORDER BY 1").fetchall()
        for table in ("summaries_fts", "summaries_fts_cjk"):
            indexed = connection.execute(f"SELECT summary_id, content FROM {table} ORDER BY 1").fetchall()
            assert indexed == [row for row in base if is_indexed(row[1])]
        assert is_sound(connection)


@pytest.mark.parametrize(
    ("table", "query"),
    [("messages_fts", "run"), ("summaries_fts", "run"), ("summaries_fts_cjk", '"東京で"')],
)
def test_each_table_finds_words_by_its_own_tokenizer(table: str, query: str) -> None:
    content = "We were running late 来週東京で会議"
    with Store() as store:
        connection = store._connection
        store.ingest(talk(1), TOKENS)
        connection.execute("UPDATE messages SET content = ?", (content,))
        connection.execute(
            "INSERT INTO summaries (summary_id, conversation_id, kind, content, token_count)"
            " VALUES ('sum_1', 1, 'leaf', ?, 0)",
            (content,),
        )
        found = connection.execute(f"SELECT content FROM {table} WHERE {table} MATCH ?", (query,)).fetchall()
    assert found == [(content,)]


def test_deleting_a_conversation_empties_its_full_text() -> None:
    with Store() as store:
        connection = store._connection
        store.ingest(talk(3), TOKENS)
        store.ingest(talk(2, "other"), TOKENS)
        connection.execute("DELETE FROM context_items WHERE conversation_id = 1")
        connection.execute("DELETE FROM conversations WHERE conversation_id = 1")
        assert connection.execute("SELECT count(*) FROM messages_fts").fetchone() == (2,)
        assert is_sound(connection)
