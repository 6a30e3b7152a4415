"""A talk that has grown is one that was there at once, and an excerpt of all of it says what the haystack says."""

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from itertools import chain

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lcm.memory.memory import Memory
from lcm.protocols.retrieval import Batch
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from lcm.retrieval.embedder.hashing import Hashing
from lcm.retrieval.ranking.evidence.centres import Centres, centres_of
from lcm.retrieval.ranking.evidence.excerpt import excerpt
from lcm.retrieval.ranking.evidence.form_evidence import FormEvidence
from lcm.retrieval.ranking.evidence.growing_talk import GrowingTalk, talk_of
from lcm.retrieval.ranking.evidence.speaker_evidence import SpeakerEvidence
from lcm.retrieval.ranking.evidence.talk import Talk
from lcm.retrieval.ranking.evidence.talk_words import TalkWords
from lcm.retrieval.ranking.evidence.time_evidence import TimeEvidence
from lcm.retrieval.ranking.evidence.vector_evidence import VectorEvidence
from lcm.retrieval.ranking.evidence.word_evidence import WordEvidence
from lcm.retrieval.source.candidates import POOLED
from lcm.writing.extraction.steps import Steps
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


def grown(batch: Batch, ends: Sequence[int]) -> tuple[Talk, TalkWords, Centres]:
    """The talk of a batch after it was asked for at some lengths, each time without its last document too, as if that
    had ended."""
    growing = GrowingTalk(weakref.ref(batch.vector_index))
    numbers = pl.int_range(pl.len())
    ended = [batch.documents.filter(numbers != end - 1) for end in ends]
    begun = [batch.documents.head(end) for end in ends]
    for documents in (*chain(*zip(begun, ended, strict=True)), batch.documents):
        cut = growing.shortened(growing.shared(replace(batch, documents=documents)), documents)
        talk = None if cut is None else cut.grow(documents)
        growing = GrowingTalk(weakref.ref(batch.vector_index)) if cut is None or talk is None else cut
        talk = talk or growing.grow(documents)
        assert talk is not None
        words = TalkWords.of(
            talk, EMBEDDER.name, EMBEDDER.dim, ["tea", "kettles"], lambda new: EMBEDDER.embed(new, "document")
        )
        ids = batch.documents["document_id"]
        centres = centres_of(talk, "own", lambda numbers, ids=ids: batch.document_vectors(ids[numbers].to_list()))
    return talk, words, centres


@given(said=SAID, ends=st.lists(st.integers(1, 12), max_size=3))
@example([("a", PHRASES[at]) for at in (0, 1, 2, 4, 1)], [2])  # words end that the mean is of, and as many others come
@settings(max_examples=20, deadline=None)
def test_a_talk_that_has_grown_is_the_talk_at_once(said: list[tuple[str, str]], ends: list[int]) -> None:
    with heard(said) as batch:
        talk, words, centres = grown(batch, [end for end in ends if end < len(batch.documents)])
        once, words_once, centres_once = grown(batch, [])
    for one in fields(Talk):
        if one.name not in ("segments", "stems", "words", "lock", "kept", "counts", "cache"):
            np.testing.assert_array_equal(getattr(talk, one.name), getattr(once, one.name), one.name)
    for stem in talk.stem_numbers:
        np.testing.assert_array_equal(talk.held(stem), once.held(stem))
    places = np.arange(len(talk))
    for lists in ("stems", "words"):
        np.testing.assert_array_equal(getattr(talk, lists).of(places)[0], getattr(once, lists).of(places)[0])
    np.testing.assert_array_equal(words.mean, words_once.mean)
    np.testing.assert_array_equal(words.lengths, words_once.lengths)
    np.testing.assert_array_equal(words.vectors["kettles"], words_once.vectors["kettles"])
    np.testing.assert_array_equal(centres.rows, centres_once.rows)


@given(said=SAID)
@settings(max_examples=15, deadline=None)
def test_what_holds_a_stem_is_counted_over_the_whole_talk(said: list[tuple[str, str]]) -> None:
    with heard(said) as batch:
        talk = talk_of(batch)
        everything = excerpt(talk, batch.documents["document_id"], radius=2)
    around = everything.around(2)
    for stem in talk.stem_numbers:
        documents = talk.held(stem)[0]
        turns = set(talk.turns[documents].tolist())
        assert talk.holder_count(stem, "documents") == len(documents)
        assert talk.holder_count(stem, "turns") == len(turns)
        assert talk.holder_count(stem, "sessions") == len(set(talk.sessions[list(turns)].tolist()))
        assert talk.holder_count(stem, 2) == sum(not turns.isdisjoint(row) for row in around.tolist())


@pytest.mark.parametrize("author", [None, "Ada"])
def test_an_excerpt_of_everything_says_what_the_haystack_says(author: str | None) -> None:
    said = [("ab"[number % 5 == 0], PHRASES[number % 4]) for number in range(14)]
    with heard(said, author) as batch:
        asked = pl.DataFrame({"query_id": "q", "document_id": batch.documents["document_id"]})
        pooled = asked.with_columns(pl.lit(True).alias(POOLED))
        for stage in (WordEvidence(1, 2), VectorEvidence(EMBEDDER), SpeakerEvidence(), TimeEvidence(), FormEvidence()):
            whole, part = stage(asked, batch), stage(pooled, batch)
            for column in stage.makes:
                # a window is as long as so many mean turns, and names of speakers count among words
                off = 0.6 if "window" in column or (author and column.startswith("words_")) else 1e-5
                np.testing.assert_allclose(part[column], whole[column], atol=off, err_msg=column)


def test_an_excerpt_holds_what_stands_around_and_no_more() -> None:
    with heard([("a", "no")] * 9) as batch:  # three sessions of four, four and one
        ids = batch.documents["document_id"]
        seen = excerpt(talk_of(batch), pl.Series([ids[5], "nowhere"]), radius=2)
    assert seen.documents.tolist() == [4, 5, 6, 7]
    assert seen.numbers[seen.asked].tolist() == [5]
    assert seen.beside(np.array([1.0, 2.0, 3.0, 4.0]), 1).tolist() == [0, 1, 2, 3]
    assert seen.places_of(pl.Series([ids[6], ids[0], "nowhere"])).tolist() == [2, -1, -1]


def test_what_comes_behind_is_no_part_of_a_moment_before() -> None:
    with heard([("a", text) for text in ("Tea in Rome?", "no", "no", "Tea in Rome?")]) as batch:
        growing = GrowingTalk(weakref.ref(batch.vector_index))
        before = growing.grow(batch.documents.head(3))
        after = growing.grow(batch.documents)
        assert before is not None
        assert after is not None
    assert (len(before), before.holder_count("tea", "turns"), before.next_to(np.array([2]), 1).tolist()) == (3, 1, [-1])
    assert (len(after), after.holder_count("tea", "turns"), after.next_to(np.array([2]), 1).tolist()) == (4, 2, [3])
