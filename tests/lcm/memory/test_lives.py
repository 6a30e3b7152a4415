"""Documents live: they are merged, superseded, used, and stay reachable; a query sees what stood when it was asked."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from lcm.errors import LimitError, StoreError
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.records.conversation import Message, Transcript
from lcm.records.document import ACTIONS, Candidate
from lcm.records.query import Query
from lcm.retrieval.decay import Weibull
from lcm.retrieval.reinforcement import DecayTiers, Recall
from lcm.writing.admission.amac import Amac, FixedUtility
from lcm.writing.annotation import Rules
from lcm.writing.deduplication import LineMerge, NearestDocuments, RuleJudge
from lcm.writing.extraction.said import Verbatim
from tests.lcm.memory.test_turns import Speechless
from tests.support.standing import standing_documents
from tests.support.workspaces import LINES, minute, queries, system, transcript

TALK = "agent:main:talk"
COFFEE = "I always prefer coffee in the morning"


class Preferences:
    """Every message is a preference, in its own words."""

    def extract(self, messages: list[Message], known: int = 0, *, incidents: Counter[str]) -> list[Candidate]:
        incidents["noted"] += 1
        return [Candidate(m.content, (m.message_id,), category="preferences") for m in messages[known:]]


def talk(*lines: str) -> Transcript:
    return Transcript(
        TALK, tuple(Message(f"m{i}", "user", line, "session", minute(10 * i)) for i, line in enumerate(lines))
    )


def deduplicating(**rule: float) -> System:
    judging = RuleJudge(**{"merge_cosine": 0.5, "topic_cosine": 1.0, "same_cosine": 0.999, **rule})
    return system(
        extraction=Preferences(),
        deduplication=NearestDocuments(judging, LineMerge(), min_score=0.5, profile_min_score=0.5),
    )


@pytest.fixture(scope="module")
def said() -> Iterator[Memory]:
    """The transcript, every line a document that is rated by rule; nothing more is said to it."""
    with Memory.open(system(extraction=Verbatim(annotation=Rules()))) as memory:
        memory.ingest(transcript())
        yield memory


@pytest.fixture
def merged() -> Iterator[Memory]:
    """A document of coffee that was merged with a later one, with milk."""
    with Memory.open(deduplicating()) as memory:
        memory.ingest(talk(COFFEE, f"{COFFEE}, with milk"))
        yield memory


def test_a_merged_document_says_both_and_the_old_one_stays_reachable_and_is_seen_before(merged: Memory) -> None:
    assert merged.incidents == {"noted": 1}
    (found,) = merged.search("coffee", minute(60))["document_id"]
    old, new = merged.history(found)
    assert [new.supersedes, new.document_id] == [old.document_id, found]
    assert old.text == COFFEE
    assert new.source_message_ids == ("m0", "m1")
    assert (new.created_at, new.valid_from, old.invalidated_at) == (minute(0), minute(10), minute(10))
    assert merged.history(old.document_id) == [old, new]
    rows = merged.store.decisions()
    assert rows["action"].to_list() == ["create", "merge"]
    assert rows["decided_at"].to_list() == [minute(0), minute(10)]
    assert rows["document_id"].to_list() == [old.document_id, found]
    assert rows.filter(pl.col("reason").str.len_chars() == 0).is_empty()
    ranked = merged.rank([Query("early", "coffee", minute(9)), Query("late", "coffee", minute(10))])
    assert ranked["document_id"].to_list() == [old.document_id, found]


def test_growing_in_steps_decides_as_ingesting_at_once() -> None:
    lines = [COFFEE, "Goats eat hay", f"{COFFEE}, with milk", COFFEE, "Goats eat hay and grass", "hello", COFFEE, "bye"]
    whole = talk(*lines)
    with Memory.open(deduplicating()) as once:
        once.ingest(whole)
        for cut in range(1, 8):
            with Memory.open(deduplicating()) as grown:
                grown.ingest(replace(whole, messages=whole.messages[:cut]))
                grown.ingest(whole)
                assert grown.documents.equals(once.documents)
                assert grown.store.decisions().equals(once.store.decisions())


def test_every_candidate_is_kept_whatever_was_decided() -> None:
    admission = Amac(reject_threshold=0.9, admit_threshold=0.9, utility=FixedUtility())
    with Memory.open(replace(deduplicating(), admission=admission, extraction=Verbatim(annotation=Rules()))) as memory:
        memory.ingest(transcript())
        decisions = memory.store.decisions()
        assert set(decisions["action"]) == {"reject"} < set(ACTIONS)
        assert decisions["candidate"].str.json_path_match("$.text").to_list() == [
            f"{'Bo' if i % 2 else 'Ada'}: {line}" for i, line in enumerate(LINES)
        ]
        assert memory.documents.is_empty()
        assert memory.store.extracted() == {}  # rejected for good: opening again asks no one a second time


def test_use_shapes_later_ranking_where_recall_counts_it(said: Memory) -> None:
    recall = Recall(Weibull(), recalled=1, maintained=100, tiers=DecayTiers(working_access_threshold=1))
    asked = [Query(f"q{i}", "kitchen", minute(60 + i)) for i in range(3)]
    with Memory.open(system(reinforcement=recall)) as memory:
        memory.ingest(transcript())
        used = memory.recall(asked).filter(rank=1)["document_id"].to_list()
        by_id = {row["document_id"]: row for row in memory.documents.to_dicts()}
        assert sum(row["access_count"] for row in by_id.values()) == len(asked)
        assert by_id[used[-1]]["last_accessed_at"] == minute(62)
        assert memory.documents.equals(memory.store.documents())
    before = said.documents
    assert said.recall(asked).equals(said.rank(asked))
    assert said.documents.equals(before)


def test_words_answer_where_the_query_cannot_be_embedded(said: Memory) -> None:
    broken = Memory(replace(said.system, embedder=Speechless()), said.store, live=said.live)
    ranked = broken.rank(queries())
    assert broken.incidents == {"dense branch failed": len(queries())}
    assert said.documents.join(ranked, on="document_id").height == len(ranked) > 0


def test_a_rating_that_is_no_number_is_refused_or_counted_and_a_bad_row_named_by_its_column() -> None:
    with Memory.open(system()) as memory:
        memory.ingest(transcript())
        document = memory.store.document(memory.documents["document_id"][0])
        with pytest.raises(StoreError, match=r"importance nan; give a number in \[0, 1\]"):
            memory.store.add_documents([replace(document, document_id="x", importance=float("nan"))])
        memory.store._connection.execute("UPDATE documents SET importance = 9e999, confidence = -9e999 WHERE rowid = 1")
        again = Memory(memory.system, memory.store)
        assert again.incidents == {"ratings that are no number": 1}
        assert again.documents["importance"].is_finite().all()
        assert again.rank(queries())["score"].is_finite().all()
        memory.store._connection.execute("UPDATE documents SET access_count = 'often' WHERE rowid = 1")
        with pytest.raises(StoreError, match=":memory: holds a access_count that is no Int64"):
            memory.store.documents()


def test_a_clock_that_is_not_set_is_refused(said: Memory) -> None:
    early, late = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
    for asked_at in (early - timedelta(milliseconds=1), late):
        with pytest.raises(ValueError, match=r"asked_at of query 'q' must lie in the years 1970-2099, got .*clock"):
            said.rank([Query("q", "kitchen", asked_at)])
    for near in (early, late - timedelta(milliseconds=1)):
        said.rank([Query("q", "kitchen", near)])


def test_only_the_wanted_category_is_answered_with(said: Memory) -> None:
    categories = said.documents["category"].unique(maintain_order=True).to_list()
    assert len(categories) > 1
    asked = [Query(c, " ".join(LINES), minute(600), only_category=c) for c in categories]
    ranked = said.rank(asked).join(said.documents, on="document_id")
    assert ranked["category"].to_list() == ranked["query_id"].to_list()
    assert set(ranked["query_id"]) == set(categories)


def test_a_category_may_be_wanted_in_the_singular(said: Memory) -> None:
    plural, singular = (Query(c, " ".join(LINES), minute(600), only_category=c) for c in ("patterns", " Pattern"))
    documents = said.rank([plural, singular]).partition_by("query_id", include_key=False)
    assert len(documents) == 2
    assert documents[0].equals(documents[1])


def test_a_document_ends_once() -> None:
    with Memory.open(system()) as memory:
        memory.ingest(transcript())
        first = memory.documents["document_id"][0]
        memory.store.end_documents([(first, minute(20))])
        for wrong in (first, "doc_unknown"):
            with pytest.raises(StoreError, match=f"'{wrong}' is unknown or has ended already"):
                memory.store.end_documents([(wrong, minute(30))])
        assert standing_documents(memory.store, at=minute(19)).height == len(LINES)
        assert first not in standing_documents(memory.store, at=minute(20))["document_id"]


class Naming:
    """Every message is a preference, written to the scope that it begins with."""

    def extract(self, messages: list[Message], known: int = 0, *, incidents: Counter[str]) -> list[Candidate]:
        made = Preferences().extract(messages, known, incidents=incidents)
        return [replace(one, scope=one.text.partition(" ")[0]) for one in made]


def test_extraction_writes_only_where_its_agent_can_reach() -> None:
    with Memory.open(system(extraction=Naming())) as memory:
        memory.ingest(talk("agent:main likes tea", "global likes tea"))
        assert sorted(memory.documents["scope"]) == ["agent:main", "global"]
        with pytest.raises(StoreError, match="writes to the scope 'agent:bo', which main cannot reach"):
            memory.ingest(talk("agent:main likes tea", "global likes tea", "agent:bo likes tea"))
        assert len(memory.documents) == 2


def test_who_has_no_name_is_not_compared_with_what_is_private_nor_a_writer_with_what_is_said_later() -> None:
    secret, common = renamed(talk(COFFEE), "agent:ada:x"), renamed(talk(COFFEE), "talk")
    with Memory.open(deduplicating()) as memory:
        memory.ingest_all([secret, common])
        assert memory.store.decisions()["action"].to_list() == ["create", "create"]
        assert memory.search("coffee", minute(60), agent="bo")["text"].to_list() == [COFFEE]
    early = renamed(talk(COFFEE), "agent:main:early")
    late = replace(talk(COFFEE), messages=tuple(replace(m, created_at=minute(500)) for m in talk(COFFEE).messages))
    with Memory.open(deduplicating(same_words=0.5, same_cosine=0.5)) as memory:
        memory.ingest_all([late, early])
        assert memory.store.decisions()["action"].to_list() == ["create", "create"]


def renamed(of: Transcript, name: str) -> Transcript:
    messages = tuple(replace(m, message_id=f"{name} {m.message_id}") for m in of.messages)
    return replace(of, conversation_id=name, messages=messages)


def test_reads_by_id_respect_scopes(merged: Memory) -> None:
    (found,) = merged.search("coffee", minute(60))["document_id"]
    assert len(merged.history(found, ["agent:main"])) == 2
    for read in (merged.history, merged.store.document, merged.store.history):
        with pytest.raises(StoreError, match=r"there is no document .* that may be read"):
            read(found, ["global"])
    assert merged.store.decisions(["agent:main"]).height == 2
    assert merged.store.decisions(["global"]).is_empty()


def test_support_is_kept_in_the_document() -> None:
    with Memory.open(deduplicating(same_words=0.5, same_cosine=0.5)) as memory:
        memory.ingest(talk(COFFEE, COFFEE, COFFEE))
        assert memory.store.decisions()["action"].to_list() == ["create", "support", "support"]
        (kept,) = memory.documents["document_id"]
        memory.store.annotate_documents([(kept, {"mark": 1})])
        metadata = memory.store.document(kept).metadata
        assert metadata["support_info"]["slices"][0]["confirmations"] == 2
        assert metadata["mark"] == 1


def test_a_clock_of_a_message_that_is_not_set_is_counted_and_passed_over() -> None:
    years = (2026, 2150, 2026, 1901)
    told = [Message(f"m{i}", "user", f"{y} goats", "s", datetime(y, 1, 1 + i, tzinfo=UTC)) for i, y in enumerate(years)]
    with Memory.open(system()) as memory:
        memory.ingest(Transcript("talk", tuple(told)))
        assert memory.incidents == {"messages dated by no set clock": 2}
        assert [at.day for at in memory.documents["created_at"]] == [1, 1, 3, 3]
        memory.ingest(Transcript("talk", (*told, Message("m4", "user", "more goats", "s", minute(9000)))))
        assert memory.incidents["messages dated by no set clock"] == 2


def test_a_search_refuses_what_would_read_too_much_or_nothing_or_is_too_long(said: Memory) -> None:
    with pytest.raises(ValueError, match="scopes must be a list of scopes, got 'agent:bo'"):
        said.search("kitchen", minute(60), scopes="agent:bo")
    with pytest.raises(ValueError, match="agent_id must be an id, got ' '"):
        said.search("kitchen", minute(60), agent=" ")
    with pytest.raises(ValueError, match="asked_at of query 'query' needs a time zone"):
        said.search("kitchen", datetime(2026, 1, 1))  # noqa: DTZ001
    asking = r"the text of query 'q' has 1,000,000 characters: the limit is 100,000, .* LCM_MAX_QUERY_CHARACTERS"
    for asked in (said.rank, said.recall, said.trace):
        with pytest.raises(LimitError, match=asking):
            asked([Query("q", "a" * 1_000_000, minute(60))])


def test_a_session_key_names_the_agent_that_searches(merged: Memory) -> None:
    assert len(merged.search("coffee", minute(60), agent="agent:main:anything")) == 1
    assert len(merged.search("coffee", minute(60), agent="agent:bo:anything")) == 0


def test_a_recall_uses_only_what_its_asker_may_read_and_what_stands() -> None:
    recall = Recall(Weibull(), recalled=2, maintained=100, tiers=DecayTiers())
    with Memory.open(replace(deduplicating(), reinforcement=recall)) as memory:
        memory.ingest(talk(COFFEE, f"{COFFEE}, with milk", "Goats eat hay", "The kettle is broken"))
        memory.recall([Query("q", "coffee goats kettle", minute(60), scopes=("agent:main",))])
        counts = dict(memory.documents.select("document_id", "access_count").iter_rows())
        assert sorted(counts.values()) == [0, 0, 1, 1]
        memory.recall([Query("p", "coffee", minute(60), scopes=("agent:bo",))])
        assert dict(memory.documents.select("document_id", "access_count").iter_rows()) == counts
        with pytest.raises(ValueError, match="query ids must differ"):
            memory.recall([Query("r", "coffee", minute(61)), Query("r", "coffee", minute(61))])
        assert dict(memory.documents.select("document_id", "access_count").iter_rows()) == counts
