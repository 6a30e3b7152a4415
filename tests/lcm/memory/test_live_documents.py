"""However its documents came, were changed and were followed, a memory holds what its store would give anew."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from lcm.errors import StoreError
from lcm.memory.live_documents import DocumentChange, LiveDocuments, query_batches
from lcm.memory.memory import Memory
from lcm.memory.scopes import Scopes
from lcm.records.document import Document
from lcm.records.query import Query
from lcm.store.store import Store
from tests.support.standing import standing_documents
from tests.support.workspaces import NOUNS, VERBS, minute, system

ScopeSet = tuple[str, ...] | None
Steps = Sequence[tuple[tuple[Any, ...], bool]]
SCOPES = ("global", "agent:ada", "agent:bo")
READABLE: tuple[ScopeSet, ...] = (None, SCOPES, ("agent:ada", "global"), ("agent:bo",), ("nobody",), ())
WORDS = st.builds("the {} {}".format, st.sampled_from(NOUNS), st.sampled_from(VERBS))
ADDED = st.tuples(WORDS, st.sampled_from(SCOPES), st.integers(0, 9), st.sampled_from(("message", "summary")))
WHICH, AT = st.integers(0, 40), st.integers(0, 12)
STEPS = st.lists(
    st.tuples(
        st.one_of(
            st.tuples(st.just("add"), st.lists(ADDED, min_size=1, max_size=4)),
            st.tuples(st.just("replace"), WHICH, ADDED),
            st.tuples(st.just("end"), WHICH, AT),
            st.tuples(st.just("annotate"), WHICH),
            st.tuples(st.just("use"), WHICH, AT),
        ),
        st.sampled_from((False, False, False, False, True)),
    ),
    min_size=2,
    max_size=12,
)
"""What is written, and whether another process writes it."""


def document(number: int, words: str, scope: str, at: int, kind: str, supersedes: str | None = None) -> Document:
    return Document(
        document_id=f"d{number}",
        text=words,
        source_message_ids=(),
        conversation_id="",
        session_id="",
        created_at=minute(at),
        kind=kind,
        scope=scope,
        supersedes=supersedes,
    )


def written(store: Store, live: LiveDocuments, step: tuple[Any, ...]) -> DocumentChange | pl.DataFrame:
    """Write a step, inside the caller's transaction; gives what it changes, or which documents it used."""
    known = store.documents()
    standing = known.filter(pl.col("invalidated_at").is_null())["document_id"].to_list()
    new: list[Document] = []
    changed: list[str] = []
    match step:
        case ("add", added):
            new = [document(len(known) + i, *one) for i, one in enumerate(added)]
        case ("replace", which, added) if standing:
            changed = [standing[which % len(standing)]]
            new = [document(len(known), *added, supersedes=changed[0])]
            store.end_documents([(changed[0], minute(added[2]))])
        case ("end", which, at) if standing:
            changed = [standing[which % len(standing)]]
            store.end_documents([(changed[0], minute(at))])
        case ("annotate", which) if len(known):
            changed = [known["document_id"][which % len(known)]]
            store.annotate_documents([(changed[0], {"seen": which})])
        case ("use", which, at) if len(known):
            use = known.select(
                "document_id",
                access_count=pl.lit(which, pl.Int64),
                last_accessed_at=pl.lit(minute(at), pl.Datetime("ms", "UTC")),
                decay_tier=pl.lit("core"),
            )[: which % len(known) + 1]
            store.update_use(use)
            return use
    store.add_documents(new)
    windows = live.indexes.embed([one.text for one in new])
    return DocumentChange({one.document_id: rows for one, rows in zip(new, windows, strict=True)}, changed)


@contextmanager
def after(steps: Steps, compared: ScopeSet) -> Iterator[tuple[Memory, Path]]:
    """A memory whose documents were written step by step, by it and by another process, and compared with each time."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with Memory.open(system(), path) as memory, Store(path) as elsewhere:
            for step, is_elsewhere in steps:
                neighbours(memory.live, compared)
                if is_elsewhere:
                    with elsewhere.transaction():
                        written(elsewhere, memory.live, step)
                else:
                    with memory.live.writing() as changes:
                        made = written(memory.store, memory.live, step)
                        changes += [made] if isinstance(made, DocumentChange) else []
                    if isinstance(made, pl.DataFrame):
                        memory.live.note_use(made)
            memory.live.follow()
            yield memory, path


def neighbours(live: LiveDocuments, readable: ScopeSet) -> list[object]:
    """What a writer with these scopes is near to."""
    known, vectors = live.comparison_set(readable).known_at(minute(8)), live.indexes.embed(list(NOUNS[:2]))
    return [known.nearest(one, 100, active_only=active_only) for one in vectors for active_only in (True, False)]


def told(live: LiveDocuments) -> tuple[object, ...]:
    """What the indexes hold; words of one score have no order."""
    ids, questions = live.frame["document_id"].to_list(), [f"{noun} {VERBS[0]}" for noun in NOUNS]
    texts = [
        [dict(zip(*found, strict=True)) for found in live.text_index(readable).search(questions, 100)]
        for readable in READABLE
    ]
    return ids, live.indexes.vector_index.vectors_of(ids).tolist(), texts


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=STEPS,
    compared=st.sampled_from(READABLE),
    readable=st.sampled_from(READABLE),
    at=st.integers(-1, 13),
    later_us=st.sampled_from((0, 400)),
)
def test_documents_that_grew_step_by_step_and_their_views_are_those_of_the_store(
    steps: Steps, compared: ScopeSet, readable: ScopeSet, at: int, later_us: int
) -> None:
    with after(steps, compared) as (memory, path), Store(path) as store:
        anew = Memory(system(), store).live
        assert_frame_equal(memory.documents, anew.frame)
        assert told(memory.live) == told(anew)
        assert neighbours(memory.live, compared) == neighbours(anew, compared)
        assert len(memory.live.indexes.vector_index) == len(memory.live.text_index(None)) == len(anew.frame)
        assert_view_is_the_stores(memory, readable, minute(at) + timedelta(microseconds=later_us))


def assert_view_is_the_stores(memory: Memory, readable: ScopeSet, instant: datetime) -> None:
    """What stands then, what was folded, and the words to search, are those that the store answers with."""
    live, known = memory.live, memory.store.documents()
    visible = live.timeline.visible(instant, readable)
    assert_frame_equal(visible, standing_documents(memory.store, readable, instant))
    replaced = {row["supersedes"] for row in known.to_dicts() if row["valid_from"] <= instant}
    folded = [
        row["document_id"]
        for row in known.to_dicts()
        if row["kind"] == "message"
        and row["valid_from"] <= instant
        and row["invalidated_at"] is not None
        and row["invalidated_at"] <= instant
        and row["document_id"] not in replaced
        and (readable is None or row["scope"] in readable)
    ]
    assert live.timeline.folded(instant, readable)["document_id"].to_list() == folded
    everything = visible.height == known.height
    is_of_all = everything or readable is None or set(known["scope"]) <= set(readable)
    words = live.text_index(None if is_of_all else readable)
    [batch] = query_batches(live, [Query("q", "goats", instant, scopes=readable)], Scopes(), None, None)
    assert_frame_equal(batch.documents, visible)
    assert batch.allowed == (None if everything else tuple(visible["document_id"]))
    assert batch.text_index is words
    assert len(words) == (known if everything else standing_documents(memory.store, readable)).height


def test_what_was_rolled_back_is_not_applied() -> None:
    with Memory.open(system()) as memory:
        with pytest.raises(StoreError, match="there is no document 'nobody'"), memory.live.writing() as changes:
            changes.append(written(memory.store, memory.live, ("add", [("the goats", "global", 1, "message")])))
            memory.store.document("nobody")
        assert memory.documents.is_empty() and len(memory.live.indexes.vector_index) == 0
        assert memory.store.documents().is_empty()
