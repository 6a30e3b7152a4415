"""Branches: any number of sources side by side, fused by rank or by weight."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import polars as pl
import pytest

from lcm.memory.memory import Memory
from lcm.protocols.retrieval import Batch, Branch, Stage
from lcm.retrieval.embedder.hashing import Hashing
from lcm.retrieval.fusion import Learnt, ReciprocalRank, WeightedSum
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.stages.scores import InverseDistance, Sigmoid
from lcm.retrieval.source.branches import Branches, BySession, BySpeaker, Recent
from lcm.retrieval.source.indexes import CANDIDATE_SCHEMA, Dense, Hybrid, Lexical
from lcm.retrieval.text_index import Bm25s, Fts5
from tests.golden.components import documents_batch
from tests.support import talk
from tests.support.workspaces import LINES, lived_in, minute, queries, questions, system, transcript

MANY: Mapping[str, Branch] = {
    "dense": Dense(pool_size=9),
    "lexical": Lexical(pool_size=9),
    "hashed": Dense(pool_size=9, embedder=Hashing(dim=64)),
    "stemless": Lexical(pool_size=9, text_index=Bm25s(stemmer="none")),
    "session": BySession(Lexical(), pool_size=9),
    "speaker": BySpeaker(Lexical(pool_size=9)),
    "newest": Recent(pool_size=9),
}


def batch_of(memory: Memory, asked=None) -> Batch:  # type: ignore[no-untyped-def]
    (batch,) = memory.batches(asked or talk.questions(), Ranking(Hybrid()), None)
    return batch


def ranked(memory: Memory, branches: Mapping[str, Branch | None], fusion: Stage, asked=None):  # type: ignore[no-untyped-def]
    stages = {"dense_score": InverseDistance(), "lexical_score": Sigmoid(), "fusion": fusion}
    return memory.rank(asked or talk.questions(), Ranking(Branches(branches), stages))


def test_dense_and_lexical_are_found_as_hybrid_finds_them() -> None:
    with lived_in() as memory:
        for batch in memory.batches(questions(), Ranking(Hybrid()), None):
            for size in (4, 1000):
                two = Branches({"dense": Dense(size), "lexical": Lexical(size), "session": None})
                assert two.candidates(batch).equals(Hybrid(size, size).candidates(batch))


def test_every_branch_changes_the_ranking() -> None:
    learnt = Learnt({f"{name}_score": 1.0 + place for place, name in enumerate(MANY)})
    with talk.workspace() as memory:
        for fusion in (ReciprocalRank(), WeightedSum()):
            whole = ranked(memory, MANY, fusion)
            for name in MANY:
                assert not ranked(memory, {**MANY, name: None}, fusion).equals(whole), name
        alike = Learnt(dict.fromkeys(learnt.weights, 1.0))
        assert not ranked(memory, MANY, learnt).equals(ranked(memory, MANY, alike))


def test_with_one_weight_alone_the_order_is_that_branchs() -> None:
    further = [name for name in MANY if name not in ("dense", "lexical")]
    with lived_in() as memory:
        batch = memory.batches(questions()[:2], Ranking(Hybrid()), None)[0]
        for only in MANY:
            weights = {name: float(name == only) for name in further}
            two = {"dense_weight": float(only == "dense"), "lexical_weight": float(only == "lexical")}
            frame = Branches(MANY).candidates(batch)
            fused = ReciprocalRank(weights=weights, **two)(frame, batch)
            own = frame.drop_nulls(f"{only}_rank").sort(pl.col("query_id").rle_id(), f"{only}_rank")
            found = fused.filter(pl.col("score") > 0)
            assert found["document_id"].to_list() == own["document_id"].to_list(), only


def test_further_scores_are_averaged_with_what_the_two_branches_give() -> None:
    frame = pl.DataFrame(
        {"query_id": ["q"] * 2, "dense_score": [0.6, None], "lexical_score": [0.5, None], "dense_rank": [1, None],
         "session_score": [0.8, 0.4], "session_rank": [1, 2]},
        schema_overrides={"dense_rank": pl.Int64},
    )  # fmt: skip
    fused = WeightedSum(weights={"session": 0.5})(frame, documents_batch([]))
    assert fused["score"].to_list() == [
        pytest.approx((0.7 * 0.6 + 0.3 * 0.5 + 0.5 * 0.8) / 1.5),
        pytest.approx(0.5 * 0.4 / 1.5),
    ]


def test_a_weight_of_no_branch_is_refused() -> None:
    with talk.workspace() as memory:
        for fusion in (ReciprocalRank(weights={"sesion": 1.0}), WeightedSum(weights={"sesion": 1.0})):
            with pytest.raises(ValueError, match=r"weights.sesion names no branch .*; choose from: session"):
                ranked(memory, {"dense": Dense(), "session": BySession()}, fusion)
            with pytest.raises(ValueError, match=r"weights.sesion names no branch .*; choose source=branches"):
                ranked(memory, {"dense": Dense()}, fusion)


def test_an_index_of_ones_own_knows_of_nothing_later_and_of_no_other_scope() -> None:
    """Its scores are those of a memory that holds nothing else."""
    sources = (Lexical(text_index=Bm25s()), Dense(embedder=Hashing(dim=64)), BySession(Lexical(text_index=Bm25s())))
    past = [replace(query, asked_at=minute(4)) for query in queries(("kitchen", "the database with Ada"))]
    own = [replace(query, scopes=("global", "agent:ann")) for query in queries(("kitchen", "goats on Thursday"))]
    whole, other = transcript(), transcript(name="agent:bo:talk")
    with Memory.open(system()) as memory, Memory.open(system()) as first, Memory.open(system()) as ours:
        memory.ingest_all([transcript(name="agent:ann:talk"), other, whole])
        first.ingest_all(
            [replace(one, messages=one.messages[:5]) for one in (transcript(name="agent:ann:talk"), other, whole)]
        )
        ours.ingest_all([transcript(name="agent:ann:talk"), whole])
        for source in sources:
            assert source.candidates(batch_of(memory, past)).equals(source.candidates(batch_of(first, past)))
            assert source.candidates(batch_of(memory, own)).equals(source.candidates(batch_of(ours, own)))


def test_a_session_lends_its_best_score_or_their_sum() -> None:
    with talk.workspace() as memory:
        batch = batch_of(memory, [talk.questions()[1]])  # the kettle: once in the first session, twice in the second
        bm25 = dict(Lexical().candidates(batch).select("document_id", "bm25").iter_rows())
        session = dict(batch.documents.select("document_id", "session_id").iter_rows())
        for lends, lent in (("best", max), ("sum", sum)):
            found = BySession(Lexical(), lends=lends).candidates(batch)
            for document_id, score in found.select("document_id", "bm25").iter_rows():
                of_session = [bm25[one] for one in bm25 if session[one] == session[document_id]]
                assert score == pytest.approx(lent(of_session))
            assert found["bm25"].is_sorted(descending=True)
            assert set(found["document_id"]) == set(batch.documents["document_id"])
            for rows in found.partition_by("bm25", maintain_order=True):
                own = [bm25.get(one, -1.0) for one in rows["document_id"]]
                assert own == sorted(own, reverse=True)
        assert len(BySession(Lexical(), pool_size=2).candidates(batch)) == 2


def test_a_speaker_is_asked_who_is_named() -> None:
    asked = talk.questions()
    with talk.workspace() as memory:
        batch = batch_of(memory, asked)
        found = BySpeaker(Dense()).candidates(batch).join(batch.documents, on="document_id", maintain_order="left")
        alone = BySpeaker(Dense()).candidates(batch_of(memory, asked[1:2]))
    of_ben, of_ada = (found.filter(query_id=query.query_id) for query in asked[:2])
    assert len(of_ben) == len(of_ada) == 3
    assert of_ben["text"].str.starts_with("Ben: ").all()
    assert of_ada["text"].str.starts_with("Ada: ").all()
    assert set(found["query_id"]) == {query.query_id for query in asked[:2]}, "the third names nobody"
    assert alone["cosine"].to_list() == of_ada["cosine"].to_list()


class Broken(Hashing):
    """Has lost its model."""

    def embed(self, texts, kind):  # type: ignore[no-untyped-def]
        raise OSError("gone")


def test_a_branch_that_fails_is_counted_and_the_others_answer(caplog: pytest.LogCaptureFixture) -> None:
    branches: dict[str, Branch] = {"lexical": Lexical(), "lost": Dense(embedder=Broken())}
    with talk.workspace() as memory:
        batch = replace(batch_of(memory), incidents=Counter())
        frame = Branches(branches).candidates(batch)
        assert frame.select(list(CANDIDATE_SCHEMA)).equals(Lexical().candidates(batch))
        assert frame["lost_rank"].null_count() == len(frame)
        assert batch.incidents == {"lost branch failed": len(talk.questions())}
        assert "the lost branch failed, the others answer without it: gone" in caplog.text
        with pytest.raises(Exception, match="every branch failed: lost: gone"):
            Branches({"lost": Dense(embedder=Broken())}).candidates(batch)


def test_what_is_no_branch_is_refused() -> None:
    cases: list[tuple[dict[str, object], str]] = [
        ({}, "branches must name at least one, got none"),
        ({"dense": None}, "branches must name at least one, got none"),
        ({"Dense 2": Dense()}, "branches must be named in small letters, digits and _, got 'Dense 2'"),
        ({"both": Hybrid()}, r"branches.both must be a source of one order \(dense, lexical ...\), got Hybrid"),
        ({"dense": Lexical()}, "branches.dense must give cosine, got bm25: name it otherwise"),
    ]
    for branches, said in cases:
        with pytest.raises((TypeError, ValueError), match=said):
            Branches(branches)  # type: ignore[arg-type]


def test_an_index_of_ones_own_gives_what_that_of_the_memory_gives_and_follows_what_is_added() -> None:
    lexical, dense = Lexical(text_index=Fts5()), Dense(embedder=Hashing())
    with Memory.open(system()) as memory:
        for name, lines in (("talk", LINES), ("more", ("A second kitchen with goats",))):
            memory.ingest(transcript(lines, name=name))
            batch = batch_of(memory, queries())
            assert lexical.candidates(batch).equals(Lexical().candidates(batch))
            assert dense.candidates(batch).equals(Dense().candidates(batch))
