"""`lcm status` and `lcm journal`: what a store holds, and what hosts said."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lcm.compaction.window import StoredWindow
from lcm.memory.memory import Memory
from lcm.records.conversation import JournalEntry
from lcm.records.summary import GuidanceShard
from lcm.store.conversations import read_entries
from tests.pipelines.conftest import Lcm
from tests.support.workspaces import LINES, minute, queries, system, transcript


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Memory.open(system(), tmp_path / "memory.db") as memory:
        memory.ingest(transcript())
        window = StoredWindow(memory.store, "talk")
        first = window.entries[2].ordinal
        window.protect(
            first, first, [GuidanceShard("talk:2", "talk", LINES[2], minute(9), "words", 0.5, "session_turn", 9)]
        )
        memory.catch_up()
        for event in ("quality", "guidance", "turn"):
            memory.store.note_compaction("talk", minute(9), event, "fine")
        for number, session in enumerate(("s1", "s2", "s1")):
            memory.note_lifecycle(
                JournalEntry(f"session_end:{session}:{number}", minute(number), "session_end", session, {"n": number})
            )
    return tmp_path / "memory.db"


def test_status_counts_what_is_there(lcm: Lcm, path: Path) -> None:
    finished = lcm("status", f"store={path}", "json=true")
    assert finished.code == 0
    found = json.loads(finished.stdout)
    assert (found["messages"], found["context items"], found["protected messages"]) == (8, 7, 1)
    assert found["documents"] == {"guidance": 1, "message": 8}
    assert found["journal entries"] == 3
    assert (found["compaction failures"], found["summaries refused"]) == (0, 0)
    assert found["messages without documents made of them yet"] == 0
    assert "documents: guidance" in lcm("status", f"store={path}").stdout


def test_the_journal_is_shown_by_session_newest_last(lcm: Lcm, path: Path) -> None:
    of_one = json.loads(lcm("journal", f"store={path}", "session=s1", "json=true").stdout)
    assert [entry["fields"]["n"] for entry in of_one] == [0, 2]
    newest = json.loads(lcm("journal", f"store={path}", "limit=1", "json=true").stdout)
    assert [entry["session_id"] for entry in newest] == ["s1"]
    assert "session_end" in lcm("journal", f"store={path}").stdout
    assert "empty" in lcm("journal", f"store={path}", "session=nobody").stdout


def test_journal_entries_are_never_found_shown_or_measured(path: Path) -> None:
    with Memory.open(system(), path) as memory:
        before = memory.rank(queries(["session_end s1"])), memory.documents, memory.store.context("talk")
        memory.note_lifecycle(JournalEntry("x", minute(5), "before_reset", "s1", {"reason": "kitchen goats"}))
        after = memory.rank(queries(["session_end s1"])), memory.documents, memory.store.context("talk")
        assert before[0].equals(after[0]) and before[1].equals(after[1]) and before[2] == after[2]
        assert memory.store.messages("talk")[0].content == LINES[0]


def test_the_journal_is_bounded_and_its_oldest_entries_go_first(path: Path) -> None:
    rules = replace(system().session, journal_max_entries=2)
    with Memory.open(replace(system(), session=rules), path) as memory:
        memory.note_lifecycle(JournalEntry("old", minute(-5), "session_end", "s9"))
        with memory.store.reading() as connection:
            assert [entry.session_id for entry in read_entries(connection)] == ["s2", "s1"]
