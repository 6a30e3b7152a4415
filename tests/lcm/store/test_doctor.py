"""The doctor finds every rule broken that it knows, names it alone, and mends only what follows from the rest."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.errors import StoreError
from lcm.memory.session.preparer import live_message
from lcm.records.conversation import Message, Transcript
from lcm.records.summary import FALLBACK_MARK, Summary
from lcm.store.derived import FULL_TEXT, rebuild_words, recompute_totals
from lcm.store.doctor import DoctorCheck, Numbering, broken_lineage, mark_of, scan
from lcm.store.migrations import run_script
from lcm.store.parts_texts import write_parts_texts
from lcm.store.session_rows import hide
from lcm.store.store import Store
from lcm.transcript.large_files import intercepted
from lcm.transcript.reading import read_transcripts
from tests.lcm.store.contents import TOKENS, dump, talk
from tests.lcm.transcript.test_parts import native_messages
from tests.support.workspaces import minute

RECORDINGS = Path(__file__).parents[2] / "recordings"


@pytest.fixture
def store() -> Iterator[Store]:
    """Messages 1-8: 1-2 and 3-4 are leaves below a condensed summary, 5 and 6 stand raw, 7 was retired, 8 is hidden.

    Messages 9-12 are another conversation, as recorded: words, blocks with a call, its large result, words; 9-10 are a
    leaf.
    """
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
        recorded = tuple(live_message(said, "s", minute(i), f"other:{i}") for i, said in enumerate(RECORDED, start=1))
        large = intercepted(recorded[2], 10, TOKENS, lambda *_: "much output")
        store.ingest(Transcript("other", (*recorded[:2], large, recorded[3])), TOKENS)
        tokens = sum(TOKENS.count([said.content for said in recorded[:2]]))
        below = Summary(
            "s5", "other", "leaf", 0, "words of s5", 4, minute(9), minute(1), minute(2),
            source_message_token_count=tokens, source_ids=("other:1", "other:2"),
            file_ids=tuple(file.file_id for file in large.files),
        )  # fmt: skip
        replace(store, below)
        yield store


RECORDED: tuple[dict[str, Any], ...] = (
    {"role": "user", "content": "what is the weather like"},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "let me look"},
            {"type": "toolCall", "id": "call_1", "name": "weather", "arguments": {"place": "here"}},
        ],
    },
    {
        "role": "toolResult",
        "toolCallId": "call_1",
        "toolName": "weather",
        "content": [{"type": "text", "text": "rain and wind " * 20}],
    },
    {"role": "user", "content": [{"type": "text", "text": "thank you"}]},
)


def leaf(name: str, first: int, last: int) -> Summary:
    messages: list[Message] = list(talk(8).messages[first - 1 : last])
    tokens = sum(TOKENS.count([message.content for message in messages]))
    return Summary(
        name, "talk", "leaf", 0, f"words of {name}", 4, minute(9), minute(first), minute(last),
        source_message_token_count=tokens, source_ids=tuple(message.message_id for message in messages),
    )  # fmt: skip


def replace(store: Store, summary: Summary) -> None:
    name = summary.conversation_id
    ordinals = [entry.ordinal for entry in store.context(name) if entry.item_id in summary.source_ids]
    store.replace_range(name, ordinals[0], ordinals[-1], summary)


def wrong(store: Store) -> dict[str, DoctorCheck]:
    return {check.name: check for check in scan(store._connection) if check.status != "pass"}


def test_a_sound_store_passes_every_check(store: Store) -> None:
    assert not wrong(store)
    assert len(scan(store._connection)) == 39
    assert all(check.status == "pass" for key in (1, 2) for check in scan(store._connection, key))


CORRUPTIONS: list[tuple[str, set[str], bool]] = [
    ("UPDATE messages SET seq = 20 WHERE message_id = 8", {"message_seq_contiguous"}, False),
    ("UPDATE messages SET hidden_at = NULL", {"messages_reachable"}, False),
    ("DELETE FROM retired_items", {"messages_reachable"}, False),
    ("DELETE FROM context_items WHERE message_id = 6", {"messages_reachable"}, False),
    ("UPDATE summaries SET depth = 3 WHERE summary_id = 's3'", {"summary_depths"}, False),
    ("UPDATE summaries SET descendant_count = 7 WHERE summary_id = 's3'", {"summary_totals"}, True),
    ("UPDATE summaries SET descendant_count = 'few' WHERE summary_id = 's3'", {"summary_totals"}, True),
    ("UPDATE summaries SET earliest_at = NULL WHERE summary_id = 's1'", {"summary_totals"}, True),
    ("DELETE FROM messages_fts WHERE rowid = 2", {"messages_fts"}, True),
    ("UPDATE messages_fts SET content = 'else' WHERE rowid = 2", {"messages_fts"}, True),
    ("INSERT INTO summaries_fts (summary_id, content) VALUES ('s9', 'none')", {"summaries_fts"}, True),
    ("INSERT INTO summaries_fts_cjk (summary_id, content) VALUES ('s1', 'twice')", {"summaries_fts_cjk"}, True),
    (f"UPDATE summaries SET content = '{FALLBACK_MARK} x' WHERE summary_id = 's1'", {"summaries_whole"}, False),
    (
        """INSERT INTO summaries (summary_id, conversation_id, kind, content, token_count)
           VALUES ('s4', 1, 'leaf', 'x', 0)""",
        {"summaries_have_lineage", "no_orphan_summaries"},
        False,
    ),
    (
        """INSERT INTO context_items (conversation_id, ordinal, item_type, message_id)
           VALUES (1, 99999, 'message', 6)""",
        {"no_duplicate_context_refs", "context_in_order"},
        False,
    ),
    ("UPDATE context_items SET ordinal = 99999 WHERE summary_id = 's3'", {"context_in_order"}, False),
    (
        "INSERT INTO summary_parents VALUES ('s3', 's3', 2)",
        {"summaries_acyclic", "summary_depths", "items_stand_once", "sources_in_order"},
        False,
    ),
    (
        "INSERT INTO summary_parents VALUES ('s3', 's5', 2)",
        {"sources_of_own_conversation", "items_stand_once", "sources_in_order", "summary_totals"},
        False,
    ),
    ("UPDATE summaries SET conversation_id = 2 WHERE summary_id = 's1'", {"sources_of_own_conversation"}, False),
    (
        "UPDATE summaries SET conversation_id = 2 WHERE summary_id = 's3'",
        {"sources_of_own_conversation", "context_items_valid_refs"},
        False,
    ),
    (
        "INSERT INTO summary_parents VALUES ('s1', 's2', 2)",
        {"sources_fit_kind", "items_stand_once", "sources_in_order"},
        False,
    ),
    (
        "INSERT INTO summary_messages VALUES ('s3', 5, 2)",
        {"sources_fit_kind", "items_stand_once", "context_in_order", "summary_totals"},
        False,
    ),
    (
        "INSERT INTO summary_messages VALUES ('s2', 1, 2)",
        {"items_stand_once", "sources_in_order", "leaves_without_gaps", "summary_totals"},
        False,
    ),
    ("UPDATE summary_messages SET ordinal = 1 - ordinal WHERE summary_id = 's1'", {"sources_in_order"}, False),
    ("UPDATE summary_parents SET ordinal = 1 - ordinal", {"sources_in_order"}, False),
    ("UPDATE summary_messages SET ordinal = 2 * ordinal WHERE summary_id = 's1'", {"sources_numbered"}, False),
    ("UPDATE summary_parents SET ordinal = 0", {"sources_numbered"}, False),
    (
        """UPDATE summary_messages SET message_id = 5 - message_id WHERE message_id IN (2, 3)""",
        {"leaves_without_gaps", "sources_in_order", "summary_totals"},
        False,
    ),
    (
        "DELETE FROM summary_parents WHERE parent_summary_id = 's2'",
        {"messages_reachable", "no_orphan_summaries", "summary_totals"},
        False,
    ),
    ("DELETE FROM summary_messages WHERE message_id = 2", {"messages_reachable", "summary_totals"}, False),
    ("UPDATE messages SET hidden_at = created_at WHERE message_id = 6", {"hidden_out_of_use"}, False),
    ("UPDATE messages SET hidden_at = created_at WHERE message_id = 1", {"hidden_out_of_use"}, False),
    ("INSERT INTO retired_items VALUES (1, 6144, 'message', 6, NULL)", {"items_stand_once"}, False),
    ("INSERT INTO retired_items VALUES (1, 1, 'summary', NULL, 's1')", {"items_stand_once"}, False),
    ("UPDATE retired_items SET conversation_id = 2", {"retired_items_valid_refs"}, False),
    ("UPDATE conversations SET session_key = NULL WHERE conversation_id = 1", {"conversations_named"}, False),
    ("UPDATE messages SET token_count = -1 WHERE message_id = 6", {"tokens_are_counts"}, False),
    ("UPDATE messages SET token_count = 1.5 WHERE message_id = 6", {"tokens_are_counts"}, False),
    ("UPDATE messages SET token_count = 'few' WHERE message_id = 6", {"tokens_are_counts"}, False),
    (
        "UPDATE summaries SET token_count = 'few' WHERE summary_id = 's1'",
        {"tokens_are_counts", "summary_totals"},
        False,
    ),
    ("UPDATE summaries SET token_count = -4 WHERE summary_id = 's3'", {"tokens_are_counts"}, False),
    ("UPDATE messages SET created_at = '2026-01-01' WHERE message_id = 6", {"instants"}, False),
    (
        "UPDATE messages SET created_at = 'soon' WHERE message_id = 2",
        {"instants", "messages_as_recorded", "summary_totals"},
        False,
    ),
    ("UPDATE messages SET hidden_at = '' WHERE message_id = 8", {"instants"}, False),
    ("UPDATE summaries SET created_at = 'soon' WHERE summary_id = 's3'", {"instants"}, False),
    ("UPDATE conversations SET updated_at = '2026-13-01T00:00:00.000Z'", {"instants"}, False),
    (
        "UPDATE summaries SET earliest_at = 'soon' WHERE summary_id = 's1'",
        {"summary_spans", "summary_totals"},
        True,
    ),
    (
        "UPDATE summaries SET earliest_at = latest_at, latest_at = earliest_at WHERE summary_id = 's3'",
        {"summary_spans", "summary_totals"},
        True,
    ),
    ("UPDATE summaries SET level = 'loud' WHERE summary_id = 's1'", {"summary_words"}, False),
    ("UPDATE summaries SET confidence = 1.01 WHERE summary_id = 's1'", {"summary_words"}, False),
    ("UPDATE summaries SET confidence = 'sure' WHERE summary_id = 's1'", {"summary_words"}, False),
    (
        """PRAGMA ignore_check_constraints = ON; UPDATE summaries SET kind = 'tree' WHERE summary_id = 's3';
           PRAGMA ignore_check_constraints = OFF""",
        {"summary_words", "pages"},
        False,
    ),
    ("UPDATE summaries SET content = char(10) WHERE summary_id = 's1'", {"summaries_say_something"}, False),
    ("UPDATE summaries SET file_ids = '[' WHERE summary_id = 's1'", {"summary_file_ids"}, False),
    ("UPDATE summaries SET file_ids = '[1]' WHERE summary_id = 's1'", {"summary_file_ids"}, False),
    ("""UPDATE summaries SET file_ids = '["file_0"]' WHERE summary_id = 's1'""", {"summary_files_known"}, False),
    (
        "UPDATE messages SET content = 'else' WHERE message_id = 9",
        {"messages_as_recorded", "parts_searchable"},
        False,
    ),
    ("UPDATE messages SET content = 'else' WHERE message_id = 11", {"messages_as_recorded"}, False),
    ("UPDATE messages SET role = 'system' WHERE message_id = 9", {"messages_as_recorded"}, False),
    ("UPDATE messages SET envelope = '[' WHERE message_id = 9", {"messages_as_recorded"}, False),
    ("""UPDATE messages SET envelope = '{"native": 1}' WHERE message_id = 9""", {"messages_as_recorded"}, False),
    (
        "UPDATE message_parts SET text_content = 'else' WHERE message_id = 9",
        {"messages_as_recorded", "parts_searchable"},
        False,
    ),
    (
        "UPDATE message_parts SET text_content = 'else' WHERE message_id = 12",
        {"messages_as_recorded", "parts_searchable"},
        False,
    ),
    (
        "UPDATE message_parts SET tool_input = '{}' WHERE message_id = 10",
        {"messages_as_recorded", "parts_searchable"},
        False,
    ),
    ("UPDATE message_parts SET tool_call_id = 'else' WHERE message_id = 10", {"messages_as_recorded"}, False),
    ("UPDATE messages SET parts_text = '' WHERE message_id = 10", {"parts_searchable"}, True),
    ("UPDATE messages SET parts_text = 'else' WHERE message_id = 9", {"parts_searchable"}, True),
    ("DELETE FROM message_parts WHERE message_id = 9", {"messages_as_recorded"}, False),
    (
        "DELETE FROM message_parts WHERE message_id = 10 AND ordinal = 0",
        {"messages_as_recorded", "message_parts_whole"},
        False,
    ),
    ("DELETE FROM large_files WHERE message_id = 11", {"messages_as_recorded", "summary_files_known"}, False),
    ("UPDATE large_files SET exploration_summary = 'else'", {"messages_as_recorded"}, False),
]
"""What is done to the store, the checks that find it, and whether repair may mend it."""


@pytest.mark.parametrize(("broken", "expected", "may_be_mended"), CORRUPTIONS, ids=[row[0] for row in CORRUPTIONS])
def test_a_broken_rule_is_named_and_only_what_follows_from_the_rest_is_mended(
    store: Store, broken: str, expected: set[str], may_be_mended: bool
) -> None:
    run_script(store._connection, broken)
    found = wrong(store)
    assert found.keys() == expected
    assert all(check.is_derived for check in found.values()) is may_be_mended
    if may_be_mended:
        mend(store)
        assert not wrong(store)


def mend(store: Store) -> None:
    with store.writing() as connection:
        recompute_totals(connection)
        write_parts_texts(connection)
        for table in FULL_TEXT:
            rebuild_words(connection, table)


def test_totals_wait_for_lineage_even_where_they_alone_are_wrong_elsewhere(store: Store) -> None:
    """The totals of s5 would follow from sound sources, but nobody can tell which part of a lineage is the damaged."""
    run_script(
        store._connection,
        "UPDATE summaries SET descendant_count = 7 WHERE summary_id = 's5';"
        "UPDATE summary_messages SET ordinal = 2 * ordinal WHERE summary_id = 's1'",
    )
    checks = scan(store._connection)
    assert broken_lineage(checks) == ["sources_numbered"]
    assert not wrong(store)["summary_totals"].is_derived


def test_a_leaf_around_a_hidden_message_is_sound() -> None:
    with Store() as store:
        store.ingest(talk(3), TOKENS)
        with store.writing() as connection:
            assert hide(connection, 1, ["talk:2"], minute(5)) == 1
        tokens = sum(TOKENS.count([talk(3).messages[place].content for place in (0, 2)]))
        around = Summary(
            "s1", "talk", "leaf", 0, "words", 1, minute(9), minute(1), minute(3),
            source_message_token_count=tokens, source_ids=("talk:1", "talk:3"),
        )  # fmt: skip
        replace(store, around)
        assert not wrong(store)


@given(st.lists(native_messages(), min_size=1, max_size=4), st.booleans())
def test_whatever_was_recorded_is_found_to_be_as_recorded(natives: list[dict[str, Any]], is_large: bool) -> None:
    heard = [live_message(said, "s", minute(i), f"m{i}") for i, said in enumerate(natives)]
    if is_large:
        heard = [intercepted(said, 1, TOKENS, lambda *_: "words", every_tool_result=True) for said in heard]
    with Store() as store:
        store.ingest(Transcript("talk", tuple(heard)), TOKENS)
        assert not wrong(store)


@pytest.mark.parametrize("path", sorted(RECORDINGS.iterdir()), ids=lambda path: path.name)
def test_a_recording_of_every_format_is_found_to_be_as_recorded(path: Path) -> None:
    with Store() as store:
        store.ingest_pieces(read_transcripts(path), TOKENS)
        assert not wrong(store)


@pytest.mark.parametrize(
    ("column", "value"),
    [("file_ids", "["), ("file_ids", "{}"), ("file_ids", "[1]"), ("created_at", "soon"), ("latest_at", "soon")],
)
def test_a_damaged_summary_is_refused_by_name_and_column(store: Store, column: str, value: str) -> None:
    store._connection.execute(f"UPDATE summaries SET {column} = ? WHERE summary_id = 's1'", (value,))
    with pytest.raises(StoreError, match=f"summary 's1' is damaged: its {column} is "):
        store.summaries_by_id(["s1"])


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
        assert recompute_totals(connection) == 4
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
