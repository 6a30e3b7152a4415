from hypothesis import given, settings
from hypothesis import strategies as st

from lcm.memory.session.preparer import live_message
from lcm.plugins.lossless_claw.turn import TurnReport, ingest_turn
from lcm.records.conversation import Message
from lcm.store.store import Store
from tests.lcm.plugins.lossless_claw.session_files import NOW, preparer, said, shown


def user(*texts: str) -> list[Message]:
    return [live_message({"role": "user", "content": text}, "s", NOW) for text in texts]


def turn(store: Store, messages: list[Message], before: int = 0, summary: str | None = None) -> TurnReport:
    return ingest_turn(
        store, messages, preparer(prune_heartbeat_turns=True), NOW, "s", "key",
        pre_prompt_message_count=before, auto_compaction_summary=summary,
    )  # fmt: skip


def heartbeat() -> list[Message]:
    answer = live_message({"role": "assistant", "content": [{"type": "text", "text": " HEARTBEAT_OK "}]}, "s", NOW)
    return [*user("see HEARTBEAT.md"), answer]


@settings(max_examples=20)
@given(turns=st.lists(st.lists(st.sampled_from(["a", "b", "ok"]), min_size=1, max_size=4), max_size=4))
def test_a_host_that_hands_over_everything_again_adds_only_what_is_new(turns: list[list[str]]) -> None:
    """Whether it says where the turn begins or does not."""
    for says_where in (False, True):
        everything: list[str] = []
        with Store() as store:
            for texts in turns:
                before = len(everything) if says_where else 0
                everything += texts
                assert turn(store, user(*everything), before).stored_messages == len(texts)
            assert not turns or said(store, "key") == everything


def test_a_turn_that_says_nothing_new_is_still_looked_at_by_compaction(store: Store) -> None:
    turn(store, user("a", "b"))
    assert turn(store, user("a", "b")) == TurnReport("key", 0, 0, is_compaction_due=True)
    assert not ingest_turn(store, [], preparer(), NOW, "other").is_compaction_due


def test_the_hosts_own_summary_comes_first_as_said_by_the_user(store: Store) -> None:
    turn(store, user("a"), summary="earlier: much")
    assert said(store, "key") == ["earlier: much", "a"]


def test_an_acknowledged_heartbeat_is_hidden_and_stays_in_the_store(store: Store) -> None:
    turn(store, user("a"))
    report = turn(store, heartbeat())
    assert (report.stored_messages, report.hidden_messages, report.is_compaction_due) == (2, 2, False)
    assert shown(store, "key") == ["a"]
    assert said(store, "key") == ["a", "see HEARTBEAT.md", " HEARTBEAT_OK "]
    assert len(store.retired("key")) == 2


def test_heartbeats_stay_where_nobody_asked_for_pruning_and_a_flagged_turn_is_not_stored(store: Store) -> None:
    assert ingest_turn(store, heartbeat(), preparer(), NOW, "s", "key", is_heartbeat=True).stored_messages == 0
    ingest_turn(store, heartbeat(), preparer(), NOW, "s", "key")
    assert len(shown(store, "key")) == 2


def test_excluded_and_stateless_sessions_are_not_stored(store: Store) -> None:
    for rules in (preparer(ignore_patterns=["key"]), preparer(stateless_patterns=["k*"])):
        assert ingest_turn(store, user("a"), rules, NOW, "s", "key") == TurnReport(None, 0)
    assert store.conversations().height == 0


def test_a_session_keeps_its_conversation_when_its_id_changes_or_a_key_comes_later(store: Store) -> None:
    ingest_turn(store, user("a"), preparer(), NOW, "s")
    ingest_turn(store, user("b"), preparer(), NOW, "s", "key")
    ingest_turn(store, user("c"), preparer(), NOW, "t", "key")
    ingest_turn(store, user("d"), preparer(), NOW, "t")
    assert store.conversations()["conversation_id"].to_list() == ["key"]
    assert said(store, "key") == ["a", "b", "c", "d"]


def test_ids_given_by_the_host_are_kept_and_numbered_where_they_are_taken(store: Store) -> None:
    named = [live_message({"role": "user", "content": text}, "s", NOW, "id") for text in "ab"]
    turn(store, named)
    assert [message.message_id for message in store.messages("key")] == ["id", "id#2"]
