"""The doctor finds every rule broken that it knows, names it alone, and mends only what follows from the rest."""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.errors import StoreError
from lcm.memory.session import live_message
from lcm.records.conversation import Message, Transcript
from lcm.records.summary import FALLBACK_MARK, Summary
from lcm.store.doctor import (
    FULL_TEXT,
    DoctorCheck,
    Numbering,
    broken_lineage,
    mark_of,
    rebuild_words,
    recompute_totals,
    scan,
)
from lcm.store.messages import write_parts_texts
from lcm.store.store import Store, run_script
from lcm.store.summaries import hide
from lcm.transcript.large_files import intercepted
from lcm.transcript.reading import read_transcripts
from tests.lcm.store.contents import TOKENS, dump, talk
from tests.lcm.transcript.test_parts import native_messages
from tests.support.workspaces import minute

RECORDINGS = Path(__file__).parents[2] / "recordings"


@pytest.fixture(scope="module")
def whole() -> Iterator[sqlite3.Connection]:
    """Messages 1-8: 1-2 and 3-4 are leaves below a condensed summary, 5 and 6 stand raw, 7 was retired, 8 is hidden.

    Messages 9-12 are another conversation, as recorded: words, blocks with a call, its large result, words; 9-10 are a
    leaf.
    """
    with Store() as store:
        store.ingest(talk(8), TOKENS)
        leaves = [leaf("s1", talk(8).messages[:2]), leaf("s2", talk(8).messages[2:4])]
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
        replace(store, leaf("s5", recorded[:2], "other", tuple(file.file_id for file in large.files)))
        yield store._connection


@pytest.fixture
def store(whole: sqlite3.Connection) -> Iterator[Store]:
    """A copy that a test may spoil."""
    with Store() as store:
        whole.backup(store._connection)
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


def leaf(name: str, messages: Sequence[Message], conversation: str = "talk", file_ids: tuple[str, ...] = ()) -> Summary:
    return Summary(
        name, conversation, "leaf", 0, f"words of {name}", 4, minute(9),
        earliest_at=messages[0].created_at, latest_at=messages[-1].created_at, file_ids=file_ids,
        source_message_token_count=sum(TOKENS.count([said.content for said in messages])),
        source_ids=tuple(said.message_id for said in messages),
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


def test_every_check_stands_with_its_rule_in_a_sentence() -> None:
    text = resources.files("lcm.store").joinpath("checks.sql").read_text()
    with Store() as store:
        names = [check.name for check in scan(store._connection)]
    assert re.findall(r"^-- check: (\w+).*\n-- [A-Z].+\.$", text, flags=re.MULTILINE) == names


CORRUPTIONS = {
    "message_seq_contiguous": ["UPDATE messages SET seq = 20 WHERE message_id = 8"],
    "messages_reachable": [
        "UPDATE messages SET hidden_at = NULL",
        "DELETE FROM retired_items",
        "DELETE FROM context_items WHERE message_id = 6",
    ],
    "summary_depths": ["UPDATE summaries SET depth = 3 WHERE summary_id = 's3'"],
    "summary_totals": [
        "UPDATE summaries SET descendant_count = 7 WHERE summary_id = 's3'",
        "UPDATE summaries SET descendant_count = 'few' WHERE summary_id = 's3'",
        "UPDATE summaries SET earliest_at = NULL WHERE summary_id = 's1'",
    ],
    "messages_fts": [
        "DELETE FROM messages_fts WHERE rowid = 2",
        "UPDATE messages_fts SET content = 'else' WHERE rowid = 2",
    ],
    "summaries_fts": ["INSERT INTO summaries_fts (summary_id, content) VALUES ('s9', 'none')"],
    "summaries_fts_cjk": ["INSERT INTO summaries_fts_cjk (summary_id, content) VALUES ('s1', 'twice')"],
    "summaries_whole": [f"UPDATE summaries SET content = '{FALLBACK_MARK} x' WHERE summary_id = 's1'"],
    "no_orphan_summaries summaries_have_lineage": [
        (
            "INSERT INTO summaries (summary_id, conversation_id, kind, content, token_count) "
            "VALUES ('s4', 1, 'leaf', 'x', 0)"
        ),
    ],
    "context_in_order no_duplicate_context_refs": [
        "INSERT INTO context_items (conversation_id, ordinal, item_type, message_id) VALUES (1, 99999, 'message', 6)"
    ],
    "context_in_order": ["UPDATE context_items SET ordinal = 99999 WHERE summary_id = 's3'"],
    "items_stand_once sources_in_order summaries_acyclic summary_depths": [
        "INSERT INTO summary_parents VALUES ('s3', 's3', 2)"
    ],
    "items_stand_once sources_in_order sources_of_own_conversation summary_totals": [
        "INSERT INTO summary_parents VALUES ('s3', 's5', 2)"
    ],
    "sources_of_own_conversation": ["UPDATE summaries SET conversation_id = 2 WHERE summary_id = 's1'"],
    "context_items_valid_refs sources_of_own_conversation": [
        "UPDATE summaries SET conversation_id = 2 WHERE summary_id = 's3'"
    ],
    "items_stand_once sources_fit_kind sources_in_order": ["INSERT INTO summary_parents VALUES ('s1', 's2', 2)"],
    "context_in_order items_stand_once sources_fit_kind summary_totals": [
        "INSERT INTO summary_messages VALUES ('s3', 5, 2)"
    ],
    "items_stand_once leaves_without_gaps sources_in_order summary_totals": [
        "INSERT INTO summary_messages VALUES ('s2', 1, 2)"
    ],
    "sources_in_order": [
        "UPDATE summary_messages SET ordinal = 1 - ordinal WHERE summary_id = 's1'",
        "UPDATE summary_parents SET ordinal = 1 - ordinal",
    ],
    "sources_numbered": [
        "UPDATE summary_messages SET ordinal = 2 * ordinal WHERE summary_id = 's1'",
        "UPDATE summary_parents SET ordinal = 0",
    ],
    "leaves_without_gaps sources_in_order summary_totals": [
        "UPDATE summary_messages SET message_id = 5 - message_id WHERE message_id IN (2, 3)"
    ],
    "messages_reachable no_orphan_summaries summary_totals": [
        "DELETE FROM summary_parents WHERE parent_summary_id = 's2'"
    ],
    "messages_reachable summary_totals": ["DELETE FROM summary_messages WHERE message_id = 2"],
    "hidden_out_of_use": [
        "UPDATE messages SET hidden_at = created_at WHERE message_id = 6",
        "UPDATE messages SET hidden_at = created_at WHERE message_id = 1",
    ],
    "items_stand_once": [
        "INSERT INTO retired_items VALUES (1, 6144, 'message', 6, NULL)",
        "INSERT INTO retired_items VALUES (1, 1, 'summary', NULL, 's1')",
    ],
    "retired_items_valid_refs": ["UPDATE retired_items SET conversation_id = 2"],
    "conversations_named": ["UPDATE conversations SET session_key = NULL WHERE conversation_id = 1"],
    "tokens_are_counts": [
        "UPDATE messages SET token_count = -1 WHERE message_id = 6",
        "UPDATE messages SET token_count = 1.5 WHERE message_id = 6",
        "UPDATE messages SET token_count = 'few' WHERE message_id = 6",
        "UPDATE summaries SET token_count = -4 WHERE summary_id = 's3'",
    ],
    "summary_totals tokens_are_counts": ["UPDATE summaries SET token_count = 'few' WHERE summary_id = 's1'"],
    "instants": [
        "UPDATE messages SET created_at = '2026-01-01' WHERE message_id = 6",
        "UPDATE messages SET hidden_at = '' WHERE message_id = 8",
        "UPDATE summaries SET created_at = 'soon' WHERE summary_id = 's3'",
        "UPDATE conversations SET updated_at = '2026-13-01T00:00:00.000Z'",
    ],
    "instants messages_as_recorded summary_totals": ["UPDATE messages SET created_at = 'soon' WHERE message_id = 2"],
    "summary_spans summary_totals": [
        "UPDATE summaries SET earliest_at = 'soon' WHERE summary_id = 's1'",
        "UPDATE summaries SET earliest_at = latest_at, latest_at = earliest_at WHERE summary_id = 's3'",
    ],
    "summary_words": [
        "UPDATE summaries SET level = 'loud' WHERE summary_id = 's1'",
        "UPDATE summaries SET confidence = 1.01 WHERE summary_id = 's1'",
        "UPDATE summaries SET confidence = 'sure' WHERE summary_id = 's1'",
    ],
    "pages summary_words": [
        (
            "PRAGMA ignore_check_constraints = ON; "
            "UPDATE summaries SET kind = 'tree' WHERE summary_id = 's3'; PRAGMA ignore_check_constraints = OFF"
        ),
    ],
    "summaries_say_something": ["UPDATE summaries SET content = char(10) WHERE summary_id = 's1'"],
    "summary_file_ids": [
        "UPDATE summaries SET file_ids = '[' WHERE summary_id = 's1'",
        "UPDATE summaries SET file_ids = '[1]' WHERE summary_id = 's1'",
    ],
    "summary_files_known": ["""UPDATE summaries SET file_ids = '["file_0"]' WHERE summary_id = 's1'"""],
    "messages_as_recorded parts_searchable": [
        "UPDATE messages SET content = 'else' WHERE message_id = 9",
        "UPDATE message_parts SET text_content = 'else' WHERE message_id = 9",
        "UPDATE message_parts SET text_content = 'else' WHERE message_id = 12",
        "UPDATE message_parts SET tool_input = '{}' WHERE message_id = 10",
    ],
    "messages_as_recorded": [
        "UPDATE messages SET content = 'else' WHERE message_id = 11",
        "UPDATE messages SET role = 'system' WHERE message_id = 9",
        "UPDATE messages SET envelope = '[' WHERE message_id = 9",
        """UPDATE messages SET envelope = '{"native": 1}' WHERE message_id = 9""",
        "UPDATE message_parts SET tool_call_id = 'else' WHERE message_id = 10",
        "DELETE FROM message_parts WHERE message_id = 9",
        "UPDATE large_files SET exploration_summary = 'else'",
    ],
    "parts_searchable": [
        "UPDATE messages SET parts_text = '' WHERE message_id = 10",
        "UPDATE messages SET parts_text = 'else' WHERE message_id = 9",
    ],
    "message_parts_whole messages_as_recorded": ["DELETE FROM message_parts WHERE message_id = 10 AND ordinal = 0"],
    "messages_as_recorded summary_files_known": ["DELETE FROM large_files WHERE message_id = 11"],
}
"""Checks, and what is done to the store so that they and no others find something."""
DERIVED = {*FULL_TEXT, "parts_searchable", "summary_totals", "summary_spans"}
"""Checks of what follows from the rest, so that repair may mend it where nothing else is wrong."""


@pytest.mark.parametrize(
    ("expected", "broken"), [(names, sql) for names, damages in CORRUPTIONS.items() for sql in damages]
)
def test_a_broken_rule_is_named_and_only_what_follows_from_the_rest_is_mended(store, broken, expected):
    before = dump(store)
    run_script(store._connection, broken)
    found = wrong(store)
    assert found.keys() == set(expected.split())
    may_be_mended = found.keys() <= DERIVED
    assert all(check.is_derived for check in found.values()) is may_be_mended
    if may_be_mended:
        mend(store)
        assert not wrong(store)
        after = {name: rows for name, rows in dump(store).items() if "_fts" not in name}
        assert after == {name: before[name] for name in after}
        store.ingest(talk(9), TOKENS)  # the triggers still follow
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
        replace(store, leaf("s1", talk(3).messages[::2]))
        assert not wrong(store)


@given(st.lists(native_messages(), min_size=1, max_size=4), st.booleans())
def test_whatever_was_recorded_is_found_to_be_as_recorded(natives: list[dict[str, Any]], is_large: bool) -> None:
    heard = [live_message(said, "s", minute(i), f"m{i}") for i, said in enumerate(natives)]
    if is_large:
        heard = [intercepted(said, 1, TOKENS, lambda *_: "words", every_tool_result=True) for said in heard]
    with Store() as store:
        store.ingest(Transcript("talk", tuple(heard)), TOKENS)
        assert not wrong(store)


def test_a_recording_of_every_format_is_found_to_be_as_recorded() -> None:
    found = {}
    for path in RECORDINGS.iterdir():
        with Store() as store:
            store.ingest_pieces(read_transcripts(path), TOKENS)
            found[path.name] = wrong(store)
    assert found
    assert not any(found.values())


def test_a_damaged_summary_is_refused_by_name_and_column(store: Store) -> None:
    for column, value in (
        *(("created_at", "soon"), ("latest_at", "soon")),
        *(("file_ids", damaged) for damaged in ("[", "{}", "[1]")),
    ):
        with store.transaction():
            store._connection.execute("SAVEPOINT before")
            store._connection.execute(f"UPDATE summaries SET {column} = ? WHERE summary_id = 's1'", (value,))
            with pytest.raises(StoreError, match=f"summary 's1' is damaged: its {column} is "):
                store.summaries_by_id(["s1"])
            store._connection.execute("ROLLBACK TO before")


def test_a_reference_to_nothing_is_found(store: Store) -> None:
    store._connection.execute("PRAGMA foreign_keys = OFF")
    store._connection.execute("UPDATE context_items SET message_id = 77 WHERE message_id = 6")
    assert wrong(store).keys() == {"context_items_valid_refs", "foreign_keys", "messages_reachable"}


def test_the_originals_numbering_is_refused_by_every_conversation(store: Store) -> None:
    checks = {check.name: check.status for check in scan(store._connection, 1, Numbering(first_seq=0))}
    assert [name for name, status in checks.items() if status == "fail"] == ["message_seq_contiguous"]


def test_a_cut_summary_is_known_by_its_mark_near_the_end() -> None:
    cut, fallback = "[Truncated from ", FALLBACK_MARK
    kinds = {
        f"{fallback} and words": "old",
        "words [Truncated from 8 tokens]": "new",
        cut.ljust(39, "x"): "new",
        cut.ljust(40, "x"): None,
        cut + "😀" * 12: None,  # 16 + 2 * 12 = 40 UTF-16 units
        "words " + fallback.ljust(79, "x"): "fallback",
        "words " + fallback.ljust(80, "x"): None,
        "words": None,
    }
    assert {content: mark_of(content) for content in kinds} == kinds
