"""What becomes findable beside what was said: summaries, protected messages, authored blocks; and who finds it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from lcm.compaction.summary_documents import Covered, SearchableSummaries
from lcm.compaction.window import StoredWindow
from lcm.errors import LcmError
from lcm.memory.memory import Memory
from lcm.protocols.writing import Assessment
from lcm.records.document import AuthoredNode, Candidate
from lcm.records.query import Query
from lcm.records.summary import GuidanceShard, Summary
from lcm.retrieval.embedder.hashing import Hashing
from lcm.retrieval.recovery.fetch import FailureRule, Fetch, RawTurnRecovery
from lcm.store.store import Store
from tests.lcm.memory.test_turns import compacting, turns
from tests.lcm.writing.admission.tables import Deciding
from tests.support.workspaces import LINES, minute, system, transcript

ASKED = Query("q", "kitchen goats", minute(60))


def fold(memory: Memory, first: int, count: int, words: str = "goats in the kitchen") -> Summary:
    """Put a summary in the place of some entries of the context."""
    entries = memory.store.context("talk")[first : first + count]
    summary = Summary(
        summary_id=f"sum_{first}_{count}",
        conversation_id="talk",
        kind="leaf",
        depth=0,
        content=words,
        token_count=4,
        created_at=minute(9),
        latest_at=minute(2),
        source_ids=tuple(entry.item_id for entry in entries),
        method="test",
        confidence=0.25,
    )
    memory.store.replace_range("talk", entries[0].ordinal, entries[-1].ordinal, summary)
    return summary


def opened(path: Path | str = ":memory:", **parts: object) -> Memory:
    memory = Memory.open(replace(system(), **parts), path)  # type: ignore[arg-type]
    memory.ingest(transcript())
    return memory


@contextmanager
def folded(covered: Covered | None = None) -> Iterator[Memory]:
    """A memory whose first three messages were folded at minute 9."""
    parts = {"summary_documents": SearchableSummaries(covered)} if covered else {}
    with opened(**parts) as memory:
        fold(memory, 0, 3)
        memory.catch_up()
        yield memory


def test_summaries_are_found_from_their_making_on_and_stand_for_what_lies_beneath() -> None:
    with folded("searchable") as memory:
        found = memory.rank([ASKED])["document_id"].to_list()
        assert "sum_0_3" in found
        (row,) = memory.documents.filter(document_id="sum_0_3").to_dicts()
        assert row["source_message_ids"] == ["talk:0", "talk:1", "talk:2"]
        assert (row["kind"], row["confidence"], row["decay_rate"]) == ("summary", 0.25, 0.75)
        before = memory.rank([replace(ASKED, asked_at=minute(8))])["document_id"].to_list()
        assert "sum_0_3" not in before
        memory.catch_up()
        assert memory.documents.filter(kind="summary").height == 1
    with folded() as memory:
        assert memory.documents.filter(kind="summary").is_empty(), "where they are not wanted"


def test_a_replacing_summary_hides_what_it_was_made_of_and_nothing_else() -> None:
    with folded("hidden") as memory:
        found = memory.rank([replace(ASKED, query_id="all")])["document_id"].to_list()
        messages = memory.documents.filter(kind="message").select("source_message_ids", "document_id")
        by_source = {sources[0]: document_id for sources, document_id in messages.iter_rows()}
        assert not {by_source[f"talk:{i}"] for i in range(3)} & set(found)
        assert {by_source[f"talk:{i}"] for i in range(3, 8)} <= set(found)
        then = memory.rank([replace(ASKED, asked_at=minute(8))])["document_id"].to_list()
        assert by_source["talk:0"] in then


def test_what_a_summary_hides_can_be_recovered_by_who_may_read_it() -> None:
    with folded("hidden") as memory:
        hidden = [["talk:0"], ["talk:1"], ["talk:2"]]

        def turns(query: Query) -> list[list[str]]:
            (batch,) = memory.batches([query], memory.system.ranking, None)
            found = [] if batch.turns is None else batch.turns["source_message_ids"].to_list()
            assert not {tuple(one) for one in found} & {tuple(one) for one in batch.documents["source_message_ids"]}
            assert batch.allowed == tuple(batch.documents["document_id"])
            return found

        assert turns(ASKED) == hidden
        assert turns(replace(ASKED, asked_at=minute(9))) == hidden  # the summary's own instant
        assert turns(replace(ASKED, asked_at=minute(8))) == []
        assert turns(replace(ASKED, shown_message_ids=("talk:1",))) == [["talk:0"], ["talk:2"]]
        assert turns(replace(ASKED, scopes=("global",))) == hidden
        assert turns(replace(ASKED, scopes=("agent:ada",))) == []


def test_a_failed_answer_gets_the_turns_behind_its_summary() -> None:
    fetch = Fetch(RawTurnRecovery(Hashing(), failure=FailureRule(min_top_k=1)))  # an unsure summary at the top is vague
    with folded("hidden") as memory:
        stages = {**memory.system.ranking.stages, "recovery": fetch}  # type: ignore[attr-defined]
        ranking = replace(memory.system.ranking, stages=stages)  # type: ignore[type-var]

        def recovered(query: Query) -> set[str]:
            found = memory.recalled(memory.rank([query], ranking))["q"]
            return {one.source_message_ids[0] for one in found if one.is_recovered}

        assert recovered(replace(ASKED, conversation_id="talk")) == {"talk:0", "talk:1", "talk:2"}
        assert recovered(replace(ASKED, conversation_id="elsewhere")) == {"talk:0", "talk:2"}  # what users said


def test_a_protected_message_leaves_the_context_and_is_found_as_guidance(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with opened(path) as memory:
        window = StoredWindow(memory.store, "talk")
        shard = GuidanceShard("talk:5", "talk", LINES[5], minute(9), "words", 0.5, "session_turn", 8)
        first, last = window.entries[4].ordinal, window.entries[6].ordinal
        sources = ("talk:4", "talk:6")
        summary = Summary("s", "talk", "leaf", 0, "no tea", 2, minute(9), source_ids=sources, method="test")
        window.replace(first, last, summary, [shard])
        memory.catch_up()
        kept = memory.documents.filter(kind="guidance").to_dicts()
        assert [(row["text"], row["authority"], row["valid_from"]) for row in kept] == [(LINES[5], 0.5, minute(9))]
        standing = [entry.item_id for entry in memory.store.context("talk")]
        assert standing == ["talk:0", "talk:1", "talk:2", "talk:3", "s", "talk:7"]
        assert memory.store.retired("talk") == ["talk:5"]
        assert [entry.item_id for entry in window.entries] == standing
    with Memory.open(replace(system()), path) as again:
        assert protected(again.store) == ["talk:5"]
        assert again.documents.filter(kind="guidance").height == 1


def protected(store: Store) -> list[str]:
    with store.reading() as connection:
        rows = connection.execute("SELECT message_key FROM guidance_shards JOIN messages USING (message_id)")
        return [message_id for (message_id,) in rows]


def test_protecting_what_another_writer_has_folded_changes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "memory.db") as memory:
        window = StoredWindow(memory.store, "talk")
        first, last = window.entries[0].ordinal, window.entries[1].ordinal
        fold(memory, 0, 2, "gone")
        shards = [
            GuidanceShard(f"talk:{i}", "talk", LINES[i], minute(9), "words", 0.5, "session_turn", 8) for i in (0, 1)
        ]
        with pytest.raises(LcmError, match="plan again"):
            window.protect(first, last, shards)
        assert protected(memory.store) == []
        assert window.entries[0].item_id == "sum_0_2"


class Files:
    """A hard, a soft and a variant block."""

    def nodes(self, *, incidents: Counter[str]) -> list[AuthoredNode]:
        return [
            AuthoredNode(f"a.md#{i:06}", "a.md", tier, "Paragraph", "words", i, i, 3)  # type: ignore[arg-type]
            for i, tier in enumerate(("hard", "soft", "variant"))
        ]


def test_what_is_no_authored_part_or_shown_by_no_context_is_refused() -> None:
    with pytest.raises(TypeError, match=r"authored must have nodes\(\)"):
        replace(system(), authored="AGENTS.md")  # type: ignore[arg-type]
    with pytest.raises(LcmError, match=r"authored holds 2 hard and soft blocks.*assembly=continuity"):
        Memory.open(replace(system(), authored=Files()))


def only_the_first(candidate: Candidate) -> Assessment:
    """Promote what the first message says."""
    return Assessment(True, "as it stands", 0.5, is_durable=candidate.source_message_ids == ("talk:0",))


def test_what_was_not_promoted_is_found_from_its_own_session_alone() -> None:
    with opened(admission=Deciding(only_the_first)) as memory:

        def found(**asker: object) -> set[str]:
            ranked = memory.rank([replace(ASKED, **asker)]).join(memory.documents, on="document_id")
            return set(ranked["source_message_ids"].explode())

        assert found() == {"talk:0"}
        assert found(conversation_id="talk") == {f"talk:{i}" for i in range(8)}
        assert found(session_id="talk:session 1") == {"talk:0", *(f"talk:{i}" for i in range(4, 8))}
        together = memory.rank([ASKED, replace(ASKED, query_id="own", conversation_id="talk")])
        assert together["query_id"].unique(maintain_order=True).to_list() == ["q", "own"]
        assert together.filter(query_id="q").height == 1
        assert set(together["scope_class"]) == {"session", "durable"}
        (batch,) = memory.batches([ASKED], memory.system.ranking, None)
        assert batch.turns is not None and len(batch.turns) == 7


def test_what_the_asker_sees_already_is_not_returned_and_a_scope_class_tells_whose_the_rest_is() -> None:
    with opened() as memory:
        found = memory.rank([ASKED])
        assert set(found["scope_class"]) == {"durable"}
        assert set(memory.rank([replace(ASKED, scopes=("global",))])["scope_class"]) == {"global"}
        shown = memory.rank([replace(ASKED, shown_message_ids=("talk:0", "talk:2"))]).join(
            memory.documents, on="document_id"
        )
        sources = shown["source_message_ids"].explode().to_list()
        assert sorted(sources) == [f"talk:{i}" for i in range(8) if i not in (0, 2)]


def test_a_context_is_what_is_assembled_for_a_query() -> None:
    with opened() as memory:
        context = memory.context(replace(ASKED, conversation_id="talk"), 1000)
        assert [item.item_id for item in context.items] == [f"talk:{i}" for i in range(8)]
        with pytest.raises(ValueError, match="before the last message of its conversation"):
            memory.context(replace(ASKED, conversation_id="talk", asked_at=minute(5)), 1000)
        with pytest.raises(ValueError, match="must name the conversation"):
            memory.context(ASKED, 1000)


def test_a_replacing_summary_hides_what_was_said_in_turns_that_no_document_was_made_of_yet() -> None:
    replacing = replace(compacting(), summary_documents=SearchableSummaries("hidden"))
    with Memory.open(replacing) as memory:
        turns(memory, LINES * 8)
        memory.compact(is_forced=True)
        memory.catch_up()
        covered = set(memory.store.edges("talk").filter("is_message")["source_id"])
        messages = memory.documents.filter(kind="message")
        hidden = messages.filter(pl.col("invalidated_at").is_not_null())["source_message_ids"].explode()
        assert messages.height == 64 and len(covered) > 30 and set(hidden) == covered
