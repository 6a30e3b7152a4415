"""The doctor finds every rule broken that it knows, names it alone, and mends only what follows from the rest."""

import sqlite3
from collections.abc import Iterator

import pytest

from lcm.records import Message, Summary
from lcm.store.derived import rebuild_words, restate
from lcm.store.doctor import FALLBACK_MARK, Check, Numbering, mark_of, scan
from lcm.store.store import Store
from tests.lcm.store.contents import TOKENS, dump, talk
from tests.workspaces import minute


@pytest.fixture
def store() -> Iterator[Store]:
    """Messages 1-8: 1-2 and 3-4 are leaves below a condensed summary, 5 and 6 stand raw, 7 was retired, 8 is hidden."""
    with Store() as store:
        store.ingest(talk(8), TOKENS)
        leaves = [leaf("s1", 1, 2), leaf("s2", 3, 4)]
        for one in leaves:
            replace(store, one)
        top = Summary(
            "s3", "talk", "condensed", 1, "both", 1, minute(9), minute(1), minute(4), 2,
            sum(one.token_count for one in leaves), sum(one.source_message_token_count for one in leaves), ("s1", "s2"),
        )  # fmt: skip
        replace(store, top)
        ordinals = {entry.item_id: entry.ordinal for entry in store.context("talk")}
        store.remove_from_context("talk", [ordinals["talk:7"], ordinals["talk:8"]])
        store._connection.execute("DELETE FROM retired_items WHERE message_id = 8")
        store._connection.execute("UPDATE messages SET hidden_at = created_at WHERE message_id = 8")
        yield store


def leaf(name: str, first: int, last: int) -> Summary:
    messages: list[Message] = list(talk(8).messages[first - 1 : last])
    tokens = sum(TOKENS.count([message.content for message in messages]))
    return Summary(
        name, "talk", "leaf", 0, f"words of {name}", 4, minute(9), minute(first), minute(last),
        source_message_token_count=tokens, source_ids=tuple(message.message_id for message in messages),
    )  # fmt: skip


def replace(store: Store, summary: Summary) -> None:
    ordinals = [entry.ordinal for entry in store.context("talk") if entry.item_id in summary.source_ids]
    store.replace_range("talk", ordinals[0], ordinals[-1], summary)


def wrong(store: Store) -> dict[str, Check]:
    return {check.name: check for check in scan(store._connection) if check.status != "pass"}


def test_a_sound_store_passes_every_check(store: Store) -> None:
    assert not wrong(store)
    assert len(scan(store._connection)) == 20


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        ("UPDATE messages SET seq = 20 WHERE message_id = 8", {"message_seq_contiguous"}),
        ("UPDATE messages SET hidden_at = NULL", {"messages_reachable"}),
        ("DELETE FROM retired_items", {"messages_reachable"}),
        ("DELETE FROM context_items WHERE message_id = 6", {"messages_reachable"}),
        ("UPDATE summaries SET depth = 3 WHERE summary_id = 's3'", {"summary_depths"}),
        ("UPDATE summaries SET descendant_count = 7 WHERE summary_id = 's3'", {"summary_totals"}),
        ("UPDATE summaries SET earliest_at = NULL WHERE summary_id = 's1'", {"summary_totals"}),
        ("UPDATE messages SET token_count = -1 WHERE message_id = 6", {"tokens_not_negative"}),
        ("DELETE FROM messages_fts WHERE rowid = 2", {"messages_fts"}),
        ("UPDATE messages_fts SET content = 'else' WHERE rowid = 2", {"messages_fts"}),
        ("INSERT INTO summaries_fts (summary_id, content) VALUES ('s9', 'none')", {"summaries_fts"}),
        ("INSERT INTO summaries_fts_cjk (summary_id, content) VALUES ('s1', 'twice')", {"summaries_fts_cjk"}),
        (f"UPDATE summaries SET content = '{FALLBACK_MARK} x' WHERE summary_id = 's1'", {"summaries_whole"}),
        (
            """INSERT INTO summaries (summary_id, conversation_id, kind, content, token_count)
               VALUES ('s4', 1, 'leaf', '', 0)""",
            {"summaries_have_lineage", "no_orphan_summaries"},
        ),
        (
            """INSERT INTO context_items (conversation_id, ordinal, item_type, message_id)
               VALUES (1, 99999, 'message', 6)""",
            {"no_duplicate_context_refs", "context_in_order"},
        ),
        (
            "INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal) VALUES ('s3', 's3', 2)",
            {"summaries_acyclic", "summary_depths"},
        ),
        ("UPDATE context_items SET ordinal = 99999 WHERE summary_id = 's3'", {"context_in_order"}),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else None,
)
def test_a_broken_rule_is_named(store: Store, broken: str, expected: set[str]) -> None:
    store._connection.execute(broken)
    assert wrong(store).keys() == expected


def test_a_reference_to_nothing_is_found(store: Store) -> None:
    store._connection.execute("PRAGMA foreign_keys = OFF")
    store._connection.execute("UPDATE context_items SET message_id = 77 WHERE message_id = 6")
    assert wrong(store).keys() == {"context_items_valid_refs", "foreign_keys", "messages_reachable"}


def test_what_is_derived_is_worked_out_anew_and_nothing_else_changes(store: Store) -> None:
    before = dump(store)
    connection: sqlite3.Connection = store._connection
    connection.execute("DELETE FROM messages_fts WHERE rowid = 2")
    connection.execute("UPDATE summaries_fts SET content = 'else'")
    connection.execute("UPDATE summaries SET descendant_count = 7, latest_at = NULL, source_message_token_count = 0")
    assert wrong(store).keys() == {"messages_fts", "summaries_fts", "summary_totals"}
    assert all(check.is_derived for check in wrong(store).values())
    with store.transaction():
        assert restate(connection) == 3
        rebuild_words(connection, "messages_fts")
        rebuild_words(connection, "summaries_fts")
    assert not wrong(store)
    after = dump(store)
    assert {name: rows for name, rows in after.items() if "_fts" not in name} == {
        name: rows for name, rows in before.items() if "_fts" not in name
    }
    store.ingest(talk(9), TOKENS)  # the triggers still follow
    assert not wrong(store)


def test_the_originals_numbering_is_refused_by_every_conversation(store: Store) -> None:
    checks = {check.name: check.status for check in scan(store._connection, 1, Numbering(first_seq=0))}
    assert [name for name, status in checks.items() if status == "fail"] == ["message_seq_contiguous"]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (f"{FALLBACK_MARK} and words", "old"),
        ("words [Truncated from 8 tokens]", "new"),
        ("[Truncated from " + "x" * (39 - len("[Truncated from ")), "new"),
        ("[Truncated from " + "x" * (40 - len("[Truncated from ")), None),
        ("[Truncated from " + "😀" * 12, None),  # 16 + 2 * 12 = 40 UTF-16 units
        (f"words {FALLBACK_MARK}" + "x" * (79 - len(FALLBACK_MARK)), "fallback"),
        (f"words {FALLBACK_MARK}" + "x" * (80 - len(FALLBACK_MARK)), None),
        ("words", None),
    ],
)
def test_a_cut_summary_is_known_by_its_mark(content: str, kind: str | None) -> None:
    assert mark_of(content) == kind
