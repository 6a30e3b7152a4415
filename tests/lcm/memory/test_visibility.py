"""What a query may see, when a document begins to exist, and what its id depends on."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from lcm.memory.memory import Memory
from lcm.records.conversation import Message
from lcm.records.document import Candidate
from lcm.records.query import Query
from lcm.writing.new_document import document_id
from tests.support.workspaces import LINES, minute, queries, system, transcript


class Pairs:
    """Joins every two messages into one document."""

    def extract(self, messages: Sequence[Message], known: int = 0, *, incidents: Counter[str]) -> list[Candidate]:
        pairs = zip(messages[known::2], messages[known + 1 :: 2], strict=True)
        return [Candidate(f"{a.content} {b.content}", (a.message_id, b.message_id)) for a, b in pairs]


@pytest.mark.parametrize("n", [-1, 0, 3])
def test_a_query_with_scopes_does_not_see_the_future_either(n: int) -> None:
    with Memory.open(system()) as memory:
        memory.ingest(transcript())
        ranked = memory.rank([Query("q", " ".join(LINES), minute(n), scopes=("global",))])
        seen = ranked.join(memory.documents, on="document_id")["created_at"]
    assert sorted(seen) == [minute(i) for i in range(n + 1)]


def test_a_document_of_several_messages_exists_from_the_last_of_them_on() -> None:
    with Memory.open(system(extraction=Pairs())) as memory:
        memory.ingest(transcript())
        assert memory.documents["created_at"].to_list() == [minute(i) for i in (1, 3, 5, 7)]
        assert memory.documents["source_message_ids"][0].to_list() == ["talk:0", "talk:1"]
        assert len(memory.search("kettle", minute(0))) == 0
        assert len(memory.search("kettle", minute(1))) == 1


def test_a_document_of_messages_out_of_order_in_time_exists_from_the_latest_instant_on() -> None:
    whole = transcript()
    late, early = replace(whole.messages[0], created_at=minute(9)), replace(whole.messages[1], created_at=minute(2))
    with Memory.open(system(extraction=Pairs())) as memory:
        memory.ingest(replace(whole, messages=(late, early)))
        assert memory.documents["created_at"].to_list() == [minute(9)]


@pytest.mark.parametrize(
    "change",
    [{"kind": "note"}, {"text": "other"}, {"source_message_ids": ("a",)}, {"source_message_ids": ("a", "c")}],
    ids=["kind", "text", "fewer sources", "other sources"],
)
def test_a_document_id_depends_on_kind_text_and_sources(change: dict[str, object]) -> None:
    candidate = Candidate("text", ("a", "b"))
    assert document_id(replace(candidate, **change)) != document_id(candidate)  # type: ignore[arg-type]


def test_a_document_id_does_not_depend_on_ratings() -> None:
    candidate = Candidate("text", ("a", "b"))
    assert document_id(replace(candidate, importance=0.1, category="fact")) == document_id(candidate)


def test_queries_that_see_different_things_are_answered_in_the_order_given() -> None:
    asked = [
        replace(query, query_id=query_id, asked_at=minute(n))
        for query, query_id, n in zip([*queries(), queries()[0]], ("m", "z", "a", "k"), (7, 3, 7, 3), strict=True)
    ]
    with Memory.open(system()) as memory:
        memory.ingest(transcript())
        ranked = memory.rank(asked)
    assert ranked["query_id"].rle().struct.field("value").to_list() == ["m", "z", "a", "k"]
    assert all(rows["rank"].is_sorted() for _, rows in ranked.group_by("query_id", maintain_order=True))
