"""A turn costs what is new in it, and keeping what is known changes no answer."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from lcm.compaction.summary_documents import SearchableSummaries
from lcm.errors import StoreError
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.protocols.contract import contract_of
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from lcm.writing.admission.gating import Gating
from lcm.writing.admission.intake import Prefix
from tests.lcm.memory.test_folded_documents import fold
from tests.lcm.memory.test_turns import compacting
from tests.support.workspaces import LINES, minute, system, transcript

NAMES = ("goats", "kettle", "river", "Thursday", "migration")


def said(count: int, name: str = "talk") -> tuple[Message, ...]:
    lines = [f"{LINES[i % len(LINES)]}; remember {NAMES[i % len(NAMES)]} number {i // 2}" for i in range(count)]
    return transcript(lines, name).messages


def gated(base: System | None = None) -> System:
    return replace(base or system(), admission=Gating(), summary_documents=SearchableSummaries("hidden"))


def told(memory: Memory) -> tuple[object, ...]:
    queries = [Query(f"q{i}", name, minute(500)) for i, name in enumerate(NAMES)]
    return memory.documents.rows(), memory.store.decisions().rows(), memory.rank(queries).rows()


def take(memory: Memory, messages: tuple[Message, ...]) -> None:
    memory.take_turn("talk", messages)
    memory.catch_up()


@pytest.mark.parametrize("base", [system(), compacting()], ids=["plain", "compacting"])
def test_turn_by_turn_gives_the_same_as_opening_anew_for_every_turn(base: System, tmp_path: Path) -> None:
    messages, parts = said(48), gated(base)
    with Memory.open(parts) as kept:
        for i in range(0, len(messages), 2):
            take(kept, messages[i : i + 2])
            assert_frame_equal(kept.documents, kept.store.documents())
        expected = told(kept)
        assert kept.documents["is_durable"].n_unique() == 2
        folded = len(kept.documents["invalidated_at"].drop_nulls())
    for i in range(0, len(messages), 2):
        with Memory.open(parts, tmp_path / "anew.db") as anew:
            take(anew, messages[i : i + 2])
    with Memory.open(parts, tmp_path / "anew.db") as anew:
        assert told(anew) == expected
    if not contract_of(base.compaction).is_off:
        assert folded > 10
    else:
        with Memory.open(parts) as at_once:
            at_once.ingest(Transcript("talk", messages))
            assert told(at_once) == expected


def test_a_turn_reads_no_more_rows_the_longer_the_conversation_is() -> None:
    messages = said(120)
    rows: list[int] = []

    def counted(_: sqlite3.Cursor, row: tuple[object, ...]) -> tuple[object, ...]:
        rows[-1] += 1
        return row

    with Memory.open(gated()) as memory:
        memory.store._connection.row_factory = counted
        for i in range(0, 120, 2):
            rows.append(0)
            take(memory, messages[i : i + 2])
            if i == 20:
                fold(memory, 0, 3, "goats in the kitchen")
        assert memory.documents.height == 121
    assert max(rows) < 80  # of 120 messages and 121 documents


def test_a_turn_that_folds_nothing_takes_no_more_steps_the_more_was_folded() -> None:
    steps: list[int] = []

    def counted() -> int:
        steps[-1] += 1
        return 0

    with Memory.open(gated()) as memory:
        memory.ingest(Transcript("talk", said(40)))
        for i in range(10):
            fold(memory, i, 3, "goats in the kitchen")
            memory.catch_up()
            steps.append(0)
            memory.store._connection.set_progress_handler(counted, 1)
            memory.catch_up()
            memory.store._connection.set_progress_handler(None, 1)
        assert memory.documents.height == 50
    assert len(set(steps)) == 1, steps


def test_what_another_process_removed_asks_for_opening_anew(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory.open(system(), path) as one, Memory.open(system(), path) as other:
        take(one, said(4))
        with other.store.writing() as connection:
            connection.execute("DELETE FROM documents")
        with pytest.raises(StoreError, match=r"^another process has removed 4 documents .*: open it again$"):
            one.catch_up()


def test_a_turn_that_could_not_be_stored_leaves_what_is_known_as_it_was() -> None:
    messages = said(12)
    with Memory.open(gated()) as memory, Memory.open(gated()) as untroubled:
        for one in (memory, untroubled):
            one.ingest(Transcript("talk", messages[:4]))
        with memory.store.writing() as connection:
            connection.execute(
                "CREATE TEMP TRIGGER full BEFORE INSERT ON decisions BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
            )
        with pytest.raises(sqlite3.Error, match="disk is full"):
            memory.ingest(Transcript("talk", messages[:8]))
        with memory.store.writing() as connection:
            connection.execute("DROP TRIGGER full")
        for one in (memory, untroubled):
            one.ingest(Transcript("talk", messages[:4] + messages[6:12]))
        assert told(memory) == told(untroubled)


@pytest.mark.parametrize("count", [0, 1, 3, 9])
def test_a_prefix_is_what_a_slice_is(count: int) -> None:
    items = list("abcd")
    prefix, part = Prefix(items, count), items[:count]
    assert list(prefix) == part and list(reversed(prefix)) == part[::-1] and len(prefix) == len(part)
    assert prefix[1:] == part[1:] and prefix[-2:] == part[-2:]
    assert [prefix[i] for i in range(-len(part), len(part))] == part * 2
    with pytest.raises(IndexError):
        prefix[len(part)]


@pytest.mark.parametrize("base", [system(), gated()], ids=["each is a document", "gated"])
def test_many_transcripts_at_once_are_what_they_are_one_by_one(base, monkeypatch, tmp_path):
    """Their times overlap, one grows, and a transaction holds some of them."""
    monkeypatch.setattr("lcm.memory.memory._MESSAGES_A_TRANSACTION", 25)
    talks = [Transcript(f"talk {i}", said(10 + 3 * i, f"talk {i}")) for i in range(6)]
    grown = replace(talks[0], messages=said(30, "talk 0"))
    with Memory.open(base) as one_by_one:
        added = [one_by_one.ingest(one) for one in (*talks, grown)]
        expected = told(one_by_one), one_by_one.store.messages()
    for path in ("", tmp_path / "together.db"):
        with Memory.open(base, path) as together:
            assert together.ingest_all(talks) + together.ingest_all([grown, talks[1]]) == sum(added)
            assert (told(together), together.store.messages()) == expected
