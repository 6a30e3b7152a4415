"""Control arms: the oracle knows the judgements and nothing that the system could not see; the whole history is all."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import polars as pl
import pytest

from eval.arms import EvidenceSource, Oracle
from eval.dataset.dataset import SESSION_QRELS_SCHEMA, Dataset
from eval.experiment.outcome import Outcome
from eval.measures.retrieval import Retrieval
from lcm.memory.memory import Memory
from lcm.protocols.contract import contract_of
from lcm.protocols.retrieval import Batch
from lcm.records.conversation import Message
from lcm.records.document import Candidate
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.source.branches import Recent, Shuffled
from lcm.retrieval.source.indexes import CANDIDATE_SCHEMA
from tests.eval.tiny import tiny
from tests.support import experiments
from tests.support.workspaces import minute, queries, system, transcript

Judged = Mapping[str, Sequence[str]]


class Pairs:
    """Every two messages after one another are a document: documents overlap."""

    def extract(self, messages: Sequence[Message], known: int = 0, *, incidents: Counter[str]) -> list[Candidate]:
        return [
            Candidate(f"{one.content} {two.content}", (one.message_id, two.message_id))
            for one, two in pairwise(messages[known:])
        ]


class Scoped:
    """A message is a document, and those of Bo are his own."""

    def extract(self, messages: Sequence[Message], known: int = 0, *, incidents: Counter[str]) -> list[Candidate]:
        return [
            Candidate(m.content, (m.message_id,), scope="agent:bo" if m.author == "Bo" else "global")
            for m in messages[known:]
        ]


def dataset(judged: Judged, by_session: Judged | None = None, asked: Sequence[Query] | None = None) -> Dataset:
    """Eight messages, talk:0 to talk:7, in two sessions of four; relevance 1 each."""
    rows, sessions = (
        [(query, f"talk:{name}", 1) for query, names in (of or {}).items() for name in names]
        for of in (judged, by_session)
    )
    by_sessions = pl.DataFrame(sessions, schema=SESSION_QRELS_SCHEMA, orient="row")
    return tiny([transcript()], queries() if asked is None else asked, rows, session_qrels=by_sessions)


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open(system()) as opened:
        opened.ingest(transcript())
        yield opened


def ranked(memory: Memory, data: Dataset, asked: Sequence[Query] | None = None) -> dict[str, list[str]]:
    """Query -> what its documents cover, one `i+j` a document."""
    found = memory.rank(list(data.queries if asked is None else asked), Oracle().ranking(data))
    covered = found.join(memory.documents, on="document_id", maintain_order="left")
    answers: dict[str, list[str]] = {}
    for query_id, messages in covered.select("query_id", "source_message_ids").iter_rows():
        answers.setdefault(query_id, []).append("+".join(message.removeprefix("talk:") for message in messages))
    return answers


def test_the_oracle_returns_the_evidence_most_relevant_then_oldest_first_and_nothing_else(memory: Memory) -> None:
    assert ranked(memory, dataset({"q0": ["6", "0"], "q1": ["7"]})) == {"q0": ["0", "6"], "q1": ["7"]}
    by_session = dataset({"q0": ["7"]}, {"q0": ["session 0"], "q1": ["session 1"]})  # all of it is evidence
    assert ranked(memory, by_session) == {"q0": ["7", "0", "1", "2", "3"], "q1": ["4", "5", "6", "7"]}
    data = dataset({"q0": ["0", "6", "3"]})
    graded = data.qrels.with_columns(relevance=pl.Series([1, 2, 0]))
    assert ranked(memory, replace(data, qrels=graded)) == {"q0": ["6", "0"]}


def test_overlapping_documents_are_taken_only_for_what_they_add() -> None:
    with Memory.open(system(extraction=Pairs())) as memory:
        memory.ingest(transcript())
        assert ranked(memory, dataset({"q0": ["1", "2", "5"], "q1": ["3"]})) == {"q0": ["1+2", "4+5"], "q1": ["2+3"]}


def test_the_oracle_sees_only_what_existed_when_it_was_asked(memory: Memory) -> None:
    early, late = (Query(name, "goats", minute(at)) for name, at in (("early", 5), ("late", 600)))
    data = dataset({"early": ["2", "5", "6"], "late": ["2", "5", "6"]}, asked=[early, late])
    assert ranked(memory, data) == {"early": ["2", "5"], "late": ["2", "5", "6"]}


def test_the_oracle_sees_only_scopes_that_may_be_read() -> None:
    with Memory.open(system(extraction=Scoped())) as memory:
        memory.ingest(transcript())
        asked = [
            Query("stranger", "goats", minute(600), scopes=("global",)),
            Query("nobody", "goats", minute(600), scopes=()),
            Query("anyone", "goats", minute(600)),
        ]
        evidence = {query.query_id: ["2", "3", "7"] for query in asked}
        assert ranked(memory, dataset(evidence, asked=asked)) == {"stranger": ["2"], "anyone": ["2", "3", "7"]}


def test_the_oracle_keeps_the_laws_of_a_source(memory: Memory) -> None:
    data = dataset({"q2": ["1"], "q0": ["6", "0"]}, {"q1": ["session 0"]})
    source = Oracle().ranking(data).source
    assert isinstance(source, EvidenceSource)
    assert not contract_of(source).needs_vectors
    (batch,) = memory.batches(queries(), Ranking(source), None)
    frame = source.candidates(batch)
    assert dict(frame.schema) == CANDIDATE_SCHEMA
    assert frame["query_id"].to_list() == ["q0", "q0", "q1", "q1", "q1", "q1", "q2"]
    assert frame["score"].to_list() == [1, 1 / 2, 1, 1 / 2, 1 / 3, 1 / 4, 1]
    assert frame["asked_at"].unique().to_list() == [minute(24 * 60)]
    assert frame.equals(source.candidates(batch))
    assert source.candidates(replace(batch, documents=batch.documents.clear())).is_empty()


def outcome(data: Dataset) -> Outcome:
    names = ["recall@1", "recall@2", "recall", "MRR", "tokens"]
    arms = {"oracle": Oracle(), "whole_history": Ranking(Recent(pool_size=None))}
    return experiments.outcome(data, system(), {"retrieval": Retrieval(names=names)}, arms)


def means(found: Outcome, arm: str) -> dict[str, float]:
    return dict(found.means.filter(arm=arm, group="all").select("measure", "value").iter_rows())


def test_the_oracle_is_full_wherever_the_cutoff_and_time_allow() -> None:
    found = means(outcome(dataset({"q0": ["0", "6"], "q1": ["3"]}, {"q2": ["session 0", "session 1"]})), "oracle")
    assert found["recall@1"] == (1 / 2 + 1) / 2
    assert found["recall@2"] == found["recall"] == found["MRR"] == found["session.MRR"] == 1
    assert found["session.recall@1"] == pytest.approx((1 / 2 + 1 + 1 / 2) / 3)
    assert found["session.recall@2"] == 1
    late = dataset({"early": ["0", "7"]}, asked=[Query("early", "goats", minute(2))])
    assert means(outcome(late), "oracle")["recall"] == 1 / 2


def first_stands_for_all(frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
    others = pl.col("document_id").over("query_id", mapping_strategy="join")
    is_first = pl.col("score") == pl.col("score").max().over("query_id")
    return frame.with_columns(stands_for=pl.when(is_first).then(others).otherwise([]))


def test_no_arm_passes_the_oracle_by_any_measure() -> None:
    """Documents overlap, one may stand for others, and of the evidence at the end of the talk the first document stands
    at its start."""
    asked = [Query("early", "goats", minute(5)), *queries()]
    judged = {"early": ["1", "2", "6"], "q0": ["1", "2", "5", "6"], "q1": ["3"]}
    data = dataset(judged, {"q2": ["session 1"], "q1": ["session 0"]}, asked)
    arms: dict[str, Oracle | Ranking] = {"oracle": Oracle(), "newest": Ranking(Recent(pool_size=None))}
    arms |= {f"random {seed}": Ranking(Shuffled(pool_size=20, seed=seed)) for seed in range(3)}
    arms["standing"] = Ranking(Shuffled(pool_size=20), {"first": first_stands_for_all})
    names = [
        "recall@1",
        "recall@2",
        "recall_all@1",
        "nDCG@1",
        "nDCG@2",
        "MRR",
        "MAP",
        "recall@9t",
        "recall@20t",
        "tokens",
    ]
    values = experiments.outcome(data, system(extraction=Pairs()), {"retrieval": Retrieval(names)}, arms).values
    ceiling = values.filter(arm="oracle").select("query_id", "measure", most="value")
    others = values.filter(pl.col("arm") != "oracle", ~pl.col("measure").str.starts_with("tokens"))
    held = others.join(ceiling, on=["query_id", "measure"])
    assert len(held) == len(others) > 0
    assert held.filter(pl.col("value") > pl.col("most") + 1e-12).is_empty()


def test_a_session_is_within_reach_by_any_document_of_it() -> None:
    """The judged message says nothing, so that no document is made of it."""
    talk = transcript()
    silent = replace(talk, messages=(replace(talk.messages[0], content=""), *talk.messages[1:]))
    found = means(outcome(replace(dataset({"q0": ["0"]}), transcripts=(silent,))), "oracle")
    assert found["recall"] == 0
    assert found["session.recall@1"] == found["session.MRR"] == 1


def test_evidence_of_another_workspace_with_the_same_ids_is_left_alone() -> None:
    """There the sessions are the other way round: session 0 holds 4 to 7."""
    here = transcript()
    swapped = tuple(
        replace(m, session_id=n.session_id)
        for m, n in zip(here.messages, [*here.messages[4:], *here.messages[:4]], strict=True)
    )
    asked = [Query("here", "goats", minute(600)), Query("there", "goats", minute(600), "other")]
    data = replace(
        dataset({"here": ["0"], "there": ["3"]}, {"there": ["session 0"]}, asked),
        transcripts=(here, replace(here, workspace_id="other", messages=swapped)),
    )
    found = outcome(data)
    covers = found.documents.select("workspace_id", "document_id", pl.col("source_message_ids").list.first())
    rows = found.run.filter(arm="oracle").join(covers, on=["workspace_id", "document_id"]).sort("rank")
    answers = {query: sorted(each["source_message_ids"]) for (query,), each in rows.group_by("query_id")}
    assert answers == {"here": ["talk:0"], "there": [f"talk:{i}" for i in range(3, 8)]}
    assert set(rows.select("workspace_id", "query_id").rows()) == {("default", "here"), ("other", "there")}


def test_the_whole_history_is_all_that_existed_newest_first_whatever_is_asked(memory: Memory) -> None:
    asked = [Query("early", "goats", minute(3)), *queries()]
    found = memory.rank(asked, Ranking(Recent(pool_size=None))).join(memory.documents, on="document_id")
    covered = found.sort("rank").select("query_id", message_id=pl.col("source_message_ids").list.first())
    answers = {query: rows["message_id"].to_list() for (query,), rows in covered.group_by("query_id")}
    newest = [f"talk:{i}" for i in reversed(range(8))]
    assert answers == {"early": newest[4:], "q0": newest, "q1": newest, "q2": newest}


def test_a_pool_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="pool_size must be >= 1 or null, got 0"):
        Recent(pool_size=0)
