from collections.abc import Iterator
from dataclasses import replace

import pytest

from lcm.memory.session import SessionRules, follow_host, live_message
from lcm.records.conversation import Message
from lcm.records.summary import Summary
from lcm.store.store import Store
from tests.golden.originals.session_turns import ingest
from tests.lcm.memory.session.session_files import NOW, preparer, said, shown


def user(text: str, session_id: str = "s") -> Message:
    return live_message({"role": "user", "content": text}, session_id, NOW)


@pytest.fixture
def store() -> Iterator[Store]:
    """A context of a d1 summary, a leaf and a message."""
    with Store() as opened:
        ingest(opened, [user(text) for text in "abcd"], preparer(), NOW, "s", "key")
        leaf = Summary("", "key", "leaf", 0, "words", 2, NOW)
        for name, sources in (("S1", 1), ("S2", 2), ("S3", 3)):
            entry = opened.context("key")[sources - 1]
            made = replace(leaf, summary_id=name, source_ids=(entry.item_id,))
            opened.replace_range("key", entry.ordinal, entry.ordinal, made)
        first, second = opened.context("key")[:2]
        condensed = replace(leaf, summary_id="S4", kind="condensed", depth=1, source_ids=("S1", "S2"))
        opened.replace_range("key", first.ordinal, second.ordinal, condensed)
        yield opened


def items(store: Store) -> list[str]:
    return [entry.item_id for entry in store.context("key")]


def test_a_reset_begins_an_empty_conversation_and_the_old_one_is_read_by_its_own_id(store: Store) -> None:
    follow_host(store, SessionRules(), NOW, "before_reset", "s", {"reason": "reset", "session_key": "key"})
    ingest(store, [user("e")], preparer(), NOW, "s", "key")
    assert said(store, "key") == shown(store, "key") == ["e"]
    assert said(store, "key#1") == ["a", "b", "c", "d"]
    assert [summary.summary_id for summary in store.summaries("key#1")] == ["S1", "S2", "S3", "S4"]
    assert sorted(store.conversations()["conversation_id"]) == ["key", "key#1"]
    numbers = store.message_frame().select("conversation_id", "seq").rows()
    assert numbers == [("key#1", 1), ("key#1", 2), ("key#1", 3), ("key#1", 4), ("key", 1)]
    assert store.extracted() == {"key#1": 0, "key": 0}
    store.set_extracted("key#1", 4)
    assert store.extracted() == {"key": 0}
    assert [message.content for message in store.messages()] == ["a", "b", "c", "d", "e"]


def test_a_reset_of_an_empty_conversation_changes_nothing_and_of_none_makes_one(store: Store) -> None:
    for _ in range(2):
        follow_host(store, SessionRules(), NOW, "before_reset", "s", {"reason": "reset", "session_key": "key"})
        follow_host(store, SessionRules(), NOW, "before_reset", "t", {"reason": "reset", "session_key": "other"})
    assert sorted(store.conversations()["conversation_id"]) == ["key", "key#1", "other"]


def test_an_end_goes_on_under_the_next_id_and_deleting_leaves_no_replacement(store: Store) -> None:
    follow_host(
        store, SessionRules(), NOW, "session_end", "s", {"reason": "idle", "session_key": "key", "next_session_id": "t"}
    )
    assert store.conversations()["conversation_id"].to_list() == ["key#1", "key"]
    follow_host(store, SessionRules(), NOW, "session_end", "t", {"reason": "deleted", "session_key": "key"})
    assert store.conversations()["conversation_id"].to_list() == ["key#1", "key#2"]
    ingest(store, [user("e", "t")], preparer(), NOW, "t", "key")
    assert said(store, "key") == ["e"]


def test_other_reasons_and_sessions_that_are_left_out_change_nothing(store: Store) -> None:
    for reason in ("", "new", "unknown"):
        follow_host(store, SessionRules(), NOW, "session_end", "s", {"reason": reason, "session_key": "key"})
    follow_host(store, SessionRules(), NOW, "before_reset", "s", {"reason": "whim", "session_key": "key"})
    for rules in (SessionRules(stateless_patterns=["key"]), SessionRules(ignore_patterns=["key"])):
        follow_host(store, rules, NOW, "before_reset", "s", {"reason": "reset", "session_key": "key"})
        follow_host(store, rules, NOW, "session_end", "s", {"reason": "idle", "session_key": "key"})
    assert store.conversations()["conversation_id"].to_list() == ["key"]
    assert items(store) == ["S4", "S3", "key:4"]
