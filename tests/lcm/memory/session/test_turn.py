"""What a turn of a live session leaves in the context, and under which names it is stored."""

from dataclasses import replace

import pytest

from lcm.memory.memory import Memory
from lcm.memory.session import SessionRules, live_message
from lcm.records.conversation import Message
from lcm.store.store import Store
from tests.golden.originals.session_turns import ingest
from tests.lcm.memory.session.session_files import NOW, preparer, said, shown
from tests.support.workspaces import system


def user(*texts: str) -> list[Message]:
    return [live_message({"role": "user", "content": text}, "s", NOW, f"id {text}") for text in texts]


def heartbeat() -> list[Message]:
    answer = live_message(
        {"role": "assistant", "content": [{"type": "text", "text": " HEARTBEAT_OK "}]}, "s", NOW, "ok"
    )
    return [*user("see HEARTBEAT.md"), answer]


@pytest.mark.parametrize("prunes", [True, False])
def test_an_acknowledged_heartbeat_leaves_the_context_where_the_rules_say_so_and_stays_in_the_store(
    prunes: bool,
) -> None:
    rules = replace(system(), session=SessionRules(prune_heartbeat_turns=prunes))
    with Memory.open(rules) as memory:
        memory.take_turn("key", user("a"))
        memory.take_turn("key", heartbeat())
        everything = ["a", "see HEARTBEAT.md", " HEARTBEAT_OK "]
        assert shown(memory.store, "key") == (["a"] if prunes else everything)
        assert said(memory.store, "key") == everything
        assert len(memory.store.retired("key")) == 2 * prunes


def test_an_answer_that_says_more_is_no_acknowledgement() -> None:
    rules = replace(system(), session=SessionRules(prune_heartbeat_turns=True))
    answer = live_message({"role": "assistant", "content": "HEARTBEAT_OK, and the tide is out"}, "s", NOW, "more")
    with Memory.open(rules) as memory:
        memory.take_turn("key", [*user("see HEARTBEAT.md"), answer])
        assert len(shown(memory.store, "key")) == 2


def test_a_session_keeps_its_conversation_when_its_id_changes_or_a_key_comes_later(store: Store) -> None:
    ingest(store, user("a"), preparer(), NOW, "s")
    ingest(store, user("b"), preparer(), NOW, "s", "key")
    ingest(store, user("c"), preparer(), NOW, "t", "key")
    ingest(store, user("d"), preparer(), NOW, "t")
    assert store.conversations()["conversation_id"].to_list() == ["key"]
    assert said(store, "key") == ["a", "b", "c", "d"]


def test_ids_given_by_the_host_are_kept_and_numbered_where_they_are_taken(store: Store) -> None:
    named = [replace(one, message_id="id") for one in user("a", "b")]
    ingest(store, named, preparer(), NOW, "s", "key")
    assert [message.message_id for message in store.messages("key")] == ["id", "id#2"]
