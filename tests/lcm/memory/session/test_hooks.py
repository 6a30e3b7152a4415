"""What a host says of a session is noted, and the session follows."""

from dataclasses import replace

from lcm.memory.memory import Memory
from tests.support.workspaces import minute, system


def test_a_reset_is_noted_and_begins_an_empty_conversation(memory: Memory) -> None:
    memory.before_reset(minute(9), "reset", "talk", message_count=8)
    (entry,) = memory.journal()
    assert (entry.hook, entry.session_id, dict(entry.fields)) == (
        "before_reset", "talk", {"reason": "reset", "message_count": 8},
    )  # fmt: skip
    assert len(memory.store.messages("talk")) == 0
    assert len(memory.store.messages("talk#1")) == 8


def test_two_ends_in_one_millisecond_are_two_entries(memory: Memory) -> None:
    for _ in range(3):
        memory.session_end(minute(9), "unknown", "talk", next_session_id="talk2")
    ids = [entry.entry_id for entry in memory.journal("talk")]
    assert len(set(ids)) == 3 and ids[0].startswith("session_end:talk:")
    assert all(entry.fields["next_session_id"] == "talk2" for entry in memory.journal())


def test_the_rules_act_where_the_journal_cannot_be_written(memory: Memory) -> None:
    memory.store._connection.execute("DROP TABLE lifecycle_journal")
    memory.before_reset(minute(9), "reset", "talk")
    assert len(memory.store.messages("talk")) == 0
    assert memory.incidents["journal entries lost"] == 1


def test_a_session_that_is_left_out_is_noted_all_the_same() -> None:
    rules = replace(system().session, ignore_patterns=["talk"])
    with Memory.open(replace(system(), session=rules)) as memory:
        memory.session_end(minute(9), "deleted", "talk")
        assert [entry.hook for entry in memory.journal()] == ["session_end"]
