"""One workspace: what goes in, what can be found, and what must not be seen."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.memory.memory import Memory
from lcm.protocols.models import TextKind, Vectors
from lcm.records.conversation import Message, Transcript
from lcm.records.document import Candidate
from lcm.records.query import Query
from lcm.retrieval.embedder.hashing import Hashing
from lcm.retrieval.text_index import Bm25s, Filtered, Fts5
from lcm.retrieval.vector_index.exact import Exact
from lcm.retrieval.vector_index.hnsw import Hnsw
from lcm.store.store import Store
from lcm.writing.new_document import document_id
from tests.support.workspaces import LINES, minute, queries, system, transcript


def first(count: int) -> Transcript:
    return replace(transcript(), messages=transcript().messages[:count])


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    """The transcript, taken in; nothing more is said to it."""
    with Memory.open(system()) as memory:
        memory.ingest(transcript())
        yield memory


def answers(path: Path, said: Transcript | None = None, **parts: Any) -> pl.DataFrame:
    """What a memory that is opened there answers, after it took in what was said."""
    with Memory.open(system(**parts), path) as memory:
        if said is not None:
            memory.ingest(said)
        assert len(memory.live.indexes.vector_index) == len(memory.live.text_index(None)) == len(memory.documents)
        return memory.rank(queries())


def test_a_message_is_found_by_its_words(memory: Memory) -> None:
    found = memory.search("where did the goats go on Thursday?", minute(60))
    assert found["text"][0] == f"Bo: {LINES[7]}"
    assert found["rank"].to_list() == list(range(1, len(found) + 1))
    assert len(memory.search("kitchen \ud800", minute(60))) > 0, "half a surrogate pair is answered too"
    assert memory.trace([]).is_empty()


def test_ingesting_twice_changes_nothing(tmp_path: Path) -> None:
    with Memory.open(system(), tmp_path / "memory.db") as memory:
        assert memory.ingest(transcript()) == len(LINES)
        before = memory.documents
        assert memory.ingest(transcript()) == 0
        assert memory.documents.equals(before)
    with Memory.open(system(), tmp_path / "memory.db") as memory:
        assert memory.ingest(transcript()) == 0
        assert memory.documents.equals(before)


@pytest.mark.parametrize("known", [0, 5, len(LINES)])
def test_what_a_store_took_in_without_a_memory_is_found_once_a_memory_opens_it(memory, tmp_path, known):
    answers(tmp_path / "memory.db", first(known))
    with Store(tmp_path / "memory.db") as store:
        store.ingest(transcript(), memory.system.token_estimator)
        assert store.extracted() == ({} if known == len(LINES) else {"talk": known})
    for _ in range(2):
        with Memory.open(system(), tmp_path / "memory.db") as opened:
            assert opened.documents.equals(memory.documents)
            assert len(opened.live.indexes.vector_index) == len(opened.live.text_index(None)) == len(LINES)
            assert opened.store.extracted() == {}


def test_messages_without_a_document_are_no_reason_to_make_any(tmp_path: Path) -> None:
    whole = transcript()
    silent = replace(whole.messages[-1], message_id="silent", content="", parts=())
    with Memory.open(system(), tmp_path / "memory.db") as memory:
        memory.ingest(replace(whole, messages=(*whole.messages, silent)))
        before = memory.documents
    with Memory.open(system(), tmp_path / "memory.db") as memory:
        assert memory.documents.equals(before)


@given(st.integers(-1, len(LINES)), st.sampled_from([None, ("global",)]))
def test_a_query_sees_what_was_said_until_then_and_never_the_future(
    memory: Memory, n: int, scopes: tuple[str, ...] | None
) -> None:
    ranked = memory.rank([Query("q", " ".join(LINES), minute(n), scopes=scopes)])
    seen = ranked.join(memory.documents, on="document_id")["created_at"]
    assert sorted(seen) == [minute(i) for i in range(min(n + 1, len(LINES)))]


def test_queries_that_see_different_things_get_the_rows_that_each_gets_alone(memory: Memory) -> None:
    asked = [
        replace(query, query_id=query_id, asked_at=minute(n))
        for query, query_id, n in zip([*queries(), queries()[0]], ("m", "z", "a", "k"), (7, 3, 7, 3), strict=True)
    ]
    assert memory.rank(asked).equals(pl.concat([memory.rank([query]) for query in asked]))


@pytest.mark.parametrize(
    "parts",
    [
        {"vector_index": Exact()},
        {"vector_index": Hnsw()},
        {"text_index": Fts5()},
        {"text_index": Bm25s()},
        {"text_index": Filtered()},
    ],
    ids=["exact", "hnsw", "fts5", "bm25s", "filtered"],
)
def test_vectors_and_words_are_kept_beside_the_workspace_and_not_made_again(tmp_path, parts, monkeypatch):
    before = answers(tmp_path / "memory.db", transcript(), **parts)
    words = type(system(**parts).text_index.build())
    monkeypatch.setattr(words, "add", lambda *_: pytest.fail("words are added again"))
    assert answers(tmp_path / "memory.db", embedder=FailingEmbedder(0), **parts).equals(before)
    assert len(list(tmp_path.glob("*.vectors"))) == len(list(tmp_path.glob("*.words"))) == 1


def test_words_of_another_text_index_are_made_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "memory.db"
    before = answers(path, transcript(), text_index=Bm25s())
    for index in (Fts5(), Bm25s()):
        with Memory.open(system(text_index=index), path) as memory:
            found = memory.rank(queries())
            assert len(memory.live.text_index(None)) == len(LINES)
            assert not memory.incidents
        assert "was written with" in caplog.text
    assert found.equals(before)
    assert len(list(tmp_path.glob("*.words"))) == 1


@pytest.mark.parametrize("kept", ["vectors", "words"])
def test_a_damaged_index_file_is_made_again(tmp_path: Path, kept: str, caplog: pytest.LogCaptureFixture) -> None:
    before = answers(tmp_path / "memory.db", transcript())
    (file,) = tmp_path.glob(f"*.{kept}")
    whole = file.read_bytes()
    file.write_bytes(whole[:99] + b"x" + whole[100:])
    with Memory.open(system(), tmp_path / "memory.db") as memory:
        assert memory.rank(queries()).equals(before)
        assert memory.incidents == {"damaged index": 1}
    assert "made again from the store" in caplog.text
    assert len(file.read_bytes()) == len(whole)


@pytest.mark.parametrize("kept", ["vectors", "words"])
def test_a_stale_index_file_is_not_used_and_goes(tmp_path: Path, kept: str) -> None:
    answers(tmp_path / "memory.db", first(3))
    (stale,) = tmp_path.glob(f"*.{kept}")
    grown = answers(tmp_path / "memory.db", transcript())
    assert not stale.exists()
    assert answers(tmp_path / "memory.db").equals(grown)


def test_vectors_that_lack_a_document_are_made_again(tmp_path: Path) -> None:
    before = answers(tmp_path / "memory.db", transcript())
    (file,) = tmp_path.glob("*.vectors")
    with Memory.open(system()) as other:
        other.ingest(first(3))
        other.live.indexes.vector_index.save(file)
    assert answers(tmp_path / "memory.db").equals(before)


def test_a_part_that_is_missing_is_named() -> None:
    with pytest.raises(TypeError, match=r"vector_index must have build\(\), got None"):
        system(vector_index=None)


def test_closing_leaves_the_vectors_of_other_workspaces_alone(tmp_path: Path) -> None:
    for name in ("b.db.x", "b.db"):
        answers(tmp_path / name, transcript())
    assert len(list(tmp_path.glob("*.vectors"))) == 2


def test_a_trace_ends_with_what_is_returned(memory: Memory) -> None:
    trace, ranked = memory.trace(queries()), memory.rank(queries())
    stages = ["source", "dense_score", "lexical_score", "fusion", "limit"]
    assert trace["stage"].unique(maintain_order=True).to_list() == stages
    last = trace.filter(step=trace["step"].max()).drop("step", "stage")
    assert last.equals(ranked.select(last.columns))


class Crash(Exception):  # noqa: N818
    """What a power cut looks like from inside."""


class FailingEmbedder:
    """The model-free embedder; it fails where it is given more documents at once."""

    def __init__(self, most: int) -> None:
        self.inner, self.most = Hashing(), most

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        if kind == "document" and len(texts) > self.most:
            raise Crash
        return self.inner.embed(texts, kind)


def test_what_cannot_be_embedded_is_not_taken_in(tmp_path: Path) -> None:
    with Memory.open(system(embedder=FailingEmbedder(4)), tmp_path / "memory.db") as memory:
        memory.ingest(first(4))
        with pytest.raises(Crash):
            memory.ingest(transcript(LINES * 2))
        assert len(memory.documents) == len(memory.live.indexes.vector_index) == len(memory.live.text_index(None)) == 4
    with Memory.open(system(), tmp_path / "memory.db") as memory:
        memory.ingest(transcript())
        assert len(memory.documents) == len(memory.live.indexes.vector_index) == len(LINES)


def test_what_is_said_later_is_not_known_earlier_though_the_clock_runs_backwards() -> None:
    whole = transcript()
    moved = replace(whole.messages[2], created_at=minute(-5))
    with Memory.open(system()) as memory:
        memory.ingest(replace(whole, messages=(*whole.messages[:2], moved, *whole.messages[3:])))
        assert memory.rank([Query("q", " ".join(LINES), minute(0))])["document_id"].len() == 1
        assert memory.store.messages()[2].created_at == minute(-5)


class Pairs:
    """Joins every two messages into one document."""

    def extract(self, messages: Sequence[Message], known: int = 0, *, incidents: Counter[str]) -> list[Candidate]:
        pairs = zip(messages[known::2], messages[known + 1 :: 2], strict=True)
        return [Candidate(f"{a.content} {b.content}", (a.message_id, b.message_id)) for a, b in pairs]


def test_a_document_of_several_messages_exists_from_the_latest_of_their_instants_on() -> None:
    late, early, *others = transcript().messages
    late, early = replace(late, created_at=minute(2)), replace(early, created_at=minute(1))
    with Memory.open(system(extraction=Pairs())) as memory:
        memory.ingest(replace(transcript(), messages=(late, early, *others)))
        assert memory.documents["created_at"].to_list() == [minute(i) for i in (2, 3, 5, 7)]
        assert memory.documents["source_message_ids"][0].to_list() == ["talk:0", "talk:1"]
        assert [len(memory.search("kettle", minute(n))) for n in (1, 2)] == [0, 1]


def test_a_document_id_depends_on_kind_text_and_sources_and_not_on_ratings() -> None:
    candidate = Candidate("text", ("a", "b"))
    others: list[dict[str, Any]] = [
        {"kind": "note"},
        {"text": "other"},
        {"source_message_ids": ("a",)},
        {"source_message_ids": ("a", "c")},
    ]
    assert len({document_id(replace(candidate, **change)) for change in ({}, *others)}) == 1 + len(others)
    assert document_id(replace(candidate, importance=0.1, category="fact")) == document_id(candidate)
