"""A talk that has grown is one that was there at once, and an excerpt of all of it says what all of it says."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lcm.memory.memory import Memory
from lcm.protocols.retrieval import Batch, Stage
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from lcm.retrieval.embedder.hashing import Hashing
from lcm.retrieval.ranking.evidence.talk import Talks, talk_of
from lcm.retrieval.ranking.evidence.text_evidence import FormEvidence, SpeakerEvidence, TimeEvidence, WordEvidence
from lcm.retrieval.ranking.evidence.vector_evidence import FurtherVectorEvidence, VectorEvidence, WordLikeness
from lcm.retrieval.source.indexes import POOLED
from lcm.writing.extraction.said import Steps
from tests.support.workspaces import system

STARTED = datetime(2023, 5, 1, tzinfo=UTC)
EMBEDDER = Hashing(dim=64)
PHRASES = (
    "Tea in Rome?",
    "the kettle leaks again",
    "yesterday I saw it",
    "no",
    "goats. " * 20 + "\n\n" + "rain. " * 20,
)
SAID = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(PHRASES)), min_size=1, max_size=12)


@contextmanager
def heard(said: Sequence[tuple[str, str]], author: str | None = None) -> Iterator[Batch]:
    """One question of what was said in some conversations."""
    talks: dict[str, list[Message]] = {}
    for number, (name, text) in enumerate(said):
        at, role = STARTED + timedelta(hours=9 * number), "assistant" if number % 3 == 1 else "user"
        messages = talks.setdefault(name, [])
        messages.append(Message(f"{name}{number}", role, text, f"{name}{len(messages) // 4}", at, author=author))
    parts = system(embedder=EMBEDDER, extraction=Steps(passage_characters=120))
    with Memory.open(parts) as memory:
        memory.ingest_all([Transcript(name, tuple(messages)) for name, messages in talks.items()])
        (batch,) = memory.batches(
            [Query("q", "did I see a kettle in Rome on 1 May 2023?", STARTED + timedelta(days=90))]
        )
        yield batch


def stages() -> list[Stage]:
    return [
        WordEvidence(1, 2), VectorEvidence(EMBEDDER), FurtherVectorEvidence(Hashing(dim=32)), WordLikeness(EMBEDDER),
        SpeakerEvidence(), TimeEvidence(), FormEvidence(),
    ]  # fmt: skip


def evidence(batch: Batch, ids: pl.Series, *, pooled: bool = False) -> pl.DataFrame:
    """Every column of evidence, of some documents that a batch sees."""
    frame = pl.DataFrame({"query_id": "q", "document_id": ids})
    if pooled:
        frame = frame.with_columns(pl.lit(value=True).alias(POOLED))
    for stage in stages():
        frame = stage(frame, batch)
    return frame.drop(POOLED, strict=False)


def assert_alike(one: pl.DataFrame, other: pl.DataFrame) -> None:
    assert one.columns == other.columns
    for column in one.columns[2:]:
        np.testing.assert_allclose(one[column], other[column], atol=1e-9, err_msg=column)


@given(said=SAID, ends=st.lists(st.integers(1, 12), max_size=3), author=st.sampled_from([None, "Ada"]))
@example([("a", PHRASES[at]) for at in (0, 1, 2, 4, 1)], [2], None)  # words end, and as many others come
@settings(max_examples=8, deadline=None)
def test_a_talk_that_has_grown_is_the_talk_at_once(
    said: list[tuple[str, str]], ends: list[int], author: str | None
) -> None:
    """Each time it is asked for without its last document too, as if that had ended."""
    with heard(said, author) as batch:
        ids, numbers = batch.documents["document_id"], pl.int_range(pl.len())
        for end in (end for end in ends if end < len(ids)):
            for documents in (batch.documents.head(end), batch.documents.filter(numbers != end - 1)):
                evidence(replace(batch, documents=documents), documents["document_id"])
        grown = evidence(batch, ids)
        at_once = evidence(replace(batch, derived={}), ids)
    assert_alike(grown, at_once)


@given(said=SAID)
@settings(max_examples=15, deadline=None)
def test_a_stem_is_held_by_the_documents_that_say_it(said: list[tuple[str, str]]) -> None:
    with heard(said) as batch:
        talk = talk_of(batch)
        texts = batch.documents["text"].str.to_lowercase().to_list()
    for stem, word in (("kettl", "kettle"), ("rain", "rain"), ("nowher", "nowhere")):
        holders, counts = talk.held(stem)
        assert holders.tolist() == [place for place, text in enumerate(texts) if word in text]
        assert counts.tolist() == [texts[place].count(word) for place in holders.tolist()]


@pytest.mark.parametrize("author", [None, "Ada"])
def test_an_excerpt_of_everything_says_what_everything_says(author: str | None) -> None:
    said = [("ab"[number % 5 == 0], PHRASES[number % 5]) for number in range(14)]
    with heard(said, author) as batch:
        ids = batch.documents["document_id"]
        assert_alike(evidence(batch, ids, pooled=True), evidence(batch, ids))


def test_an_excerpt_holds_what_stands_around_and_no_more() -> None:
    with heard([("a", "no")] * 9) as batch:  # three sessions of four, four and one
        talk, ids = talk_of(batch), batch.documents["document_id"]
        seen = talk.excerpt(np.array([5]), radius=2)
        places = talk.rows_of(batch.documents, pl.Series([ids[6], "nowhere"])).tolist()
    assert seen.documents.tolist() == [4, 5, 6, 7]
    assert seen.numbers[seen.asked].tolist() == [5]
    assert seen.beside(np.array([1.0, 2.0, 3.0, 4.0]), 1).tolist() == [0, 1, 2, 3]
    assert (places, seen.place_of[[6, 0]].tolist()) == ([6, -1], [2, -1])


def test_what_comes_behind_is_no_part_of_a_moment_before() -> None:
    with heard([("a", text) for text in ("Tea in Rome?", "no", "no", "Tea in Rome?")]) as batch:
        talks = Talks()
        before = talks.of(batch.documents.head(3))
        after = talks.of(batch.documents)
    assert (len(before), before.held("tea")[0].tolist(), before.near(-1)[2]) == (3, [0], -1)
    assert (len(after), after.held("tea")[0].tolist(), after.near(-1)[2]) == (4, [0, 3], 3)


def test_the_same_documents_are_laid_out_once_and_a_talk_belongs_to_its_memory() -> None:
    with heard([("a", "tea")]) as batch:
        assert talk_of(batch) is talk_of(replace(batch, documents=batch.documents.clone()))
        with heard([("a", "tea")]) as other:
            assert talk_of(other).talks is not talk_of(batch).talks


def test_the_passages_of_a_turn_are_one_turn_and_names_behind_a_caption_are_none() -> None:
    talk = Talks().of(
        pl.DataFrame(
            {
                "document_id": ["1", "2", "3"],
                "text": ["Ada: I saw Ben [picture: of Rome]", "then saw Cleo", "we saw Dan?"],
                "conversation_id": "c",
                "session_id": "s",
                "seq": [1, 1, 2],
                "kind": "message",
                "role": "user",
                "created_at": [STARTED] * 3,
            }
        )
    )
    assert talk.turns.tolist() == [0, 0, 1]
    words, names, first_person, asks, *_ = talk.forms.T.tolist()
    assert words == [7 + 3, 3]  # the name too, for one turn makes nobody a speaker
    assert names == [1, 1]  # Ben; Dan
    assert first_person == [1, 1]
    assert asks == [0, 1]
