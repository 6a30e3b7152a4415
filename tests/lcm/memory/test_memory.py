"""One workspace: what goes in, what can be found, and what must not be seen."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.memory.memory import Memory
from lcm.protocols.models import TextKind, Vectors
from lcm.protocols.retrieval import TextIndexChoice
from lcm.records.query import Query
from lcm.retrieval.embedder.hashing import Hashing
from lcm.retrieval.text_index.bm25s import Bm25s
from lcm.retrieval.text_index.filtered import Filtered
from lcm.retrieval.text_index.fts5 import Fts5
from lcm.retrieval.vector_index.exact import Exact
from lcm.retrieval.vector_index.hnsw import Hnsw
from lcm.store.store import Store
from tests.support.workspaces import LINES, minute, queries, system, transcript


def test_a_message_is_found_by_its_words() -> None:
    with Memory.open(system()) as memory:
        memory.ingest(transcript())
        found = memory.search("where did the goats go on Thursday?", minute(60))
    assert found["text"][0] == f"Bo: {LINES[7]}"
    assert found["rank"].to_list() == list(range(1, len(found) + 1))


def test_ingesting_twice_changes_nothing() -> None:
    with Memory.open(system()) as memory:
        assert memory.ingest(transcript()) == len(LINES)
        before = memory.documents
        assert memory.ingest(transcript()) == 0
        assert memory.documents.equals(before)
        assert len(memory.vector_index) == len(memory.text_index) == len(LINES)


@pytest.mark.parametrize("known", [0, 5, len(LINES)])
def test_what_a_store_took_in_without_a_memory_is_found_once_a_memory_opens_it(tmp_path: Path, known: int) -> None:
    whole, parts = transcript(), system()
    with Memory.open(parts) as once:
        once.ingest(whole)
        expected = once.documents
    with Memory.open(parts, tmp_path / "memory.db") as memory:
        memory.ingest(replace(whole, messages=whole.messages[:known]))
    with Store(tmp_path / "memory.db") as store:
        store.ingest(whole, parts.token_estimator)
        assert store.extracted() == ({} if known == len(LINES) else {"talk": known})
    for _ in range(2):
        with Memory.open(parts, tmp_path / "memory.db") as memory:
            assert memory.documents.equals(expected)
            assert len(memory.vector_index) == len(memory.text_index) == len(LINES)
            assert memory.store.extracted() == {}


def test_messages_without_a_document_are_no_reason_to_make_any(tmp_path: Path) -> None:
    whole = transcript()
    silent = replace(whole.messages[-1], message_id="silent", content="", parts=())
    with Memory.open(system(), tmp_path / "memory.db") as memory:
        memory.ingest(replace(whole, messages=(*whole.messages, silent)))
        before = memory.documents
    with Memory.open(system(), tmp_path / "memory.db") as memory:
        assert memory.documents.equals(before)


def test_growing_in_steps_equals_ingesting_at_once() -> None:
    whole = transcript()
    with Memory.open(system()) as once, Memory.open(system()) as grown:
        once.ingest(whole)
        for n in range(1, len(LINES) + 1):
            grown.ingest(replace(whole, messages=whole.messages[:n]))
        assert grown.documents.equals(once.documents)
        assert grown.rank(queries()).equals(once.rank(queries()))


@given(st.integers(-1, len(LINES)))
def test_a_query_never_sees_the_future(n: int) -> None:
    with Memory.open(system()) as memory:
        memory.ingest(transcript())
        ranked = memory.rank([Query("q", " ".join(LINES), minute(n))])
        seen = ranked.join(memory.documents, on="document_id")["created_at"]
    assert len(seen) == min(max(n + 1, 0), len(LINES))
    assert all(instant <= minute(n) for instant in seen)


def test_a_query_never_sees_another_scope() -> None:
    with Memory.open(system()) as memory:
        memory.ingest(transcript())
        everyone = Query("all", "kitchen", minute(60), scopes=("global",))
        nobody = replace(everyone, query_id="none", scopes=())
        other = replace(everyone, query_id="other", scopes=("agent:other",))
        ranked = memory.rank([nobody, everyone, other])
    assert set(ranked["query_id"]) == {"all"}


def test_queries_asked_together_or_alone_get_equal_rows() -> None:
    asked = [replace(query, asked_at=minute(3 + 2 * i)) for i, query in enumerate(queries())]
    with Memory.open(system()) as memory:
        memory.ingest(transcript())
        together = memory.rank(asked)
        alone = pl.concat([memory.rank([query]) for query in asked])
    assert together.equals(alone)


def test_a_reopened_workspace_answers_alike(tmp_path: Path) -> None:
    path = tmp_path / "workspace.db"
    with Memory.open(system(), path) as memory:
        memory.ingest(transcript())
        before = memory.rank(queries())
    with Memory.open(system(), path) as memory:
        assert memory.rank(queries()).equals(before)
        assert memory.ingest(transcript()) == 0


@pytest.mark.parametrize("index", [Exact(), Hnsw()], ids=["exact", "hnsw"])
def test_vectors_are_kept_beside_the_workspace_and_not_embedded_again(tmp_path: Path, index: object) -> None:
    path = tmp_path / "workspace.db"
    with Memory.open(system(vector_index=index), path) as memory:
        memory.ingest(transcript())
        before = memory.rank(queries())
    embedder = CountingEmbedder()
    with Memory.open(system(vector_index=index, embedder=embedder), path) as memory:
        assert embedder.documents == 0
        assert memory.rank(queries()).equals(before)
    assert len(list(tmp_path.glob("*.vectors"))) == 1


@pytest.mark.parametrize("index", [Fts5(), Bm25s(), Filtered()], ids=["fts5", "bm25s", "filtered"])
def test_words_are_kept_beside_the_workspace_and_not_cut_again(
    tmp_path: Path, index: TextIndexChoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "workspace.db"
    with Memory.open(system(text_index=index), path) as memory:
        memory.ingest(transcript())
        before = memory.rank(queries())
    monkeypatch.setattr(type(index.build()), "add", lambda *_: pytest.fail("words are added again"))
    with Memory.open(system(text_index=index), path) as memory:
        assert memory.rank(queries()).equals(before)
    assert len(list(tmp_path.glob("*.words"))) == 1


def test_words_of_another_text_index_are_made_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "workspace.db"
    with Memory.open(system(text_index=Bm25s()), path) as memory:
        memory.ingest(transcript())
        before = memory.rank(queries())
    for index in (Fts5(), Bm25s()):
        with Memory.open(system(text_index=index), path) as memory:
            answers = memory.rank(queries())
            assert len(memory.text_index) == len(LINES)
            assert not memory.incidents
        assert "was written with" in caplog.text
    assert answers.equals(before)
    assert len(list(tmp_path.glob("*.words"))) == 1


@pytest.mark.parametrize("kept", ["vectors", "words"])
@pytest.mark.parametrize("damage", [lambda raw: raw[:-1], lambda raw: b"", lambda raw: raw[:99] + b"x" + raw[100:]])
def test_a_damaged_index_file_is_made_again(
    tmp_path: Path, damage, kept: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "workspace.db"
    with Memory.open(system(), path) as memory:
        memory.ingest(transcript())
        before = memory.rank(queries())
    (file,) = tmp_path.glob(f"*.{kept}")
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    with Memory.open(system(), path) as memory:
        assert memory.rank(queries()).equals(before)
        assert memory.incidents == {"damaged index": 1}
    assert "made again from the store" in caplog.text
    assert len(file.read_bytes()) == len(whole)


@pytest.mark.parametrize("kept", ["vectors", "words"])
def test_a_stale_index_file_is_not_used_and_goes(tmp_path: Path, kept: str) -> None:
    path = tmp_path / "workspace.db"
    whole = transcript()
    with Memory.open(system(), path) as memory:
        memory.ingest(replace(whole, messages=whole.messages[:3]))
    (stale,) = tmp_path.glob(f"*.{kept}")
    with Memory.open(system(), path) as memory:
        memory.ingest(whole)
        grown = memory.rank(queries())
    assert not stale.exists()
    with Memory.open(system(), path) as memory:
        assert memory.rank(queries()).equals(grown)


def test_a_trace_ends_with_what_is_returned() -> None:
    with Memory.open(system()) as memory:
        memory.ingest(transcript())
        trace, ranked = memory.trace(queries()), memory.rank(queries())
    assert trace["stage"].unique(maintain_order=True).to_list() == [
        "source", "dense_score", "lexical_score", "fusion", "limit",
    ]  # fmt: skip
    last = trace.filter(step=trace["step"].max()).drop("step", "stage")
    assert last.equals(ranked.select(last.columns))


class CountingEmbedder:
    """The model-free embedder, counting the documents that it embeds."""

    def __init__(self) -> None:
        self.inner = Hashing()
        self.documents = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        self.documents += len(texts) if kind == "document" else 0
        return self.inner.embed(texts, kind)


class Crash(Exception):  # noqa: N818
    """What a power cut looks like from inside."""


def test_an_interrupted_ingest_leaves_nothing_half_done(tmp_path: Path) -> None:
    def crash(*_: object) -> None:
        raise Crash

    path = tmp_path / "workspace.db"
    with Memory.open(system(), path) as memory:
        memory.store.add_documents = crash  # type: ignore[method-assign, assignment]
        with pytest.raises(Crash):
            memory.ingest(transcript())
    with Memory.open(system(), path) as memory:
        assert memory.store.messages() == []
        memory.ingest(transcript())
        assert len(memory.documents) == len(LINES)


def test_a_part_that_is_missing_is_named() -> None:
    with pytest.raises(TypeError, match=r"vector_index must have build\(\), got None"):
        system(vector_index=None)


class FailingEmbedder(CountingEmbedder):
    """Fails at the fifth document, as a full disk or an interrupt would."""

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        if kind == "document" and len(texts) > 4:
            raise Crash
        return super().embed(texts, kind)


def test_what_cannot_be_embedded_is_not_taken_in(tmp_path: Path) -> None:
    path = tmp_path / "workspace.db"
    whole = transcript()
    with Memory.open(system(embedder=FailingEmbedder()), path) as memory:
        memory.ingest(replace(whole, messages=whole.messages[:4]))
        with pytest.raises(Crash):
            memory.ingest(transcript(LINES * 2))
        assert len(memory.documents) == len(memory.vector_index) == len(memory.text_index) == 4
    with Memory.open(system(), path) as memory:
        memory.ingest(whole)
        assert len(memory.documents) == len(memory.vector_index) == len(LINES)


def test_vectors_that_lack_a_document_are_made_again(tmp_path: Path) -> None:
    path = tmp_path / "workspace.db"
    with Memory.open(system(), path) as memory:
        memory.ingest(transcript())
    (file,) = tmp_path.glob("*.vectors")
    with Memory.open(system()) as other:
        other.ingest(transcript(LINES[:3]))
        other.vector_index.save(file)
    with Memory.open(system(), path) as memory:
        assert len(memory.vector_index) == len(LINES)


def test_closing_leaves_the_vectors_of_other_workspaces_alone(tmp_path: Path) -> None:
    for name in ("b.db.x", "b.db"):
        with Memory.open(system(), tmp_path / name) as memory:
            memory.ingest(transcript())
    assert len(list(tmp_path.glob("*.vectors"))) == 2


def test_a_query_with_half_a_surrogate_pair_is_answered() -> None:
    with Memory.open(system()) as memory:
        memory.ingest(transcript())
        assert len(memory.search("kitchen \ud800", minute(60))) > 0
        assert memory.trace([]).is_empty()


def test_what_is_said_later_is_not_known_earlier_though_the_clock_runs_backwards() -> None:
    whole = transcript()
    moved = replace(whole.messages[2], created_at=minute(-5))
    with Memory.open(system()) as memory:
        memory.ingest(replace(whole, messages=(*whole.messages[:2], moved, *whole.messages[3:])))
        assert memory.rank([Query("q", " ".join(LINES), minute(0))])["document_id"].len() == 1
        assert memory.store.messages()[2].created_at == minute(-5)
