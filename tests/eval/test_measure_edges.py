"""Edges of what is counted: graded and absent judgements, messages covered twice, several workspaces."""

import math
from dataclasses import replace

import polars as pl
import pytest

from eval.datasets.dataset import QRELS_SCHEMA, Dataset
from eval.experiment import SYSTEM_ARM, Experiment
from eval.measures.latency import Latency
from eval.measures.retrieval import DEFAULT_NAMES, Retrieval
from eval.replay.bulk import Bulk
from lcm.ranking.pipeline import Ranking
from lcm.records import Message, Query, Transcript
from lcm.source.recent import Recent
from tests.workspaces import minute, system, transcript

MESSAGES = tuple(f"m{i}" for i in range(8))
SINGLE = {name: [name] for name in MESSAGES}
Judged = dict[str, dict[str, int]]


def dataset(judged: Judged) -> Dataset:
    """Eight messages in two sessions (m0-m3, m4-m7), judged as told."""
    messages = tuple(Message(name, "user", name, f"s{i // 4}", minute(i)) for i, name in enumerate(MESSAGES))
    rows = [(query, name, relevance) for query, of in judged.items() for name, relevance in of.items()]
    return Dataset(
        name="tiny",
        protocol="tiny",
        digest="0",
        transcripts=(Transcript("c", messages),),
        queries=tuple(Query(query, query, minute(99)) for query in judged),
        qrels=pl.DataFrame(rows, schema=QRELS_SCHEMA, orient="row"),
    )


def values(
    names: tuple[str, ...], ranked: dict[str, list[str]], judged: Judged, covers: dict[str, list[str]] = SINGLE
) -> dict[tuple[str, str], float]:
    run = pl.DataFrame(
        [
            ("system", "default", query, document, i)
            for query, ids in ranked.items()
            for i, document in enumerate(ids, 1)
        ],
        schema=["arm", "workspace_id", "query_id", "document_id", "rank"],
        orient="row",
    )
    documents = pl.DataFrame(
        {"document_id": list(covers), "source_message_ids": list(covers.values()), "tokens": [10] * len(covers)}
    ).with_columns(workspace_id=pl.lit("default"))
    measured = Retrieval(names=names).values(run, documents, dataset(judged))
    return {(row["query_id"], row["measure"]): row["value"] for row in measured.iter_rows(named=True)}


def test_recall_all_needs_every_one() -> None:
    judged = {"q": {"m0": 1, "m1": 1, "m5": 1}}
    found = values(
        ("recall@3", "recall_any@3", "recall_all@3", "recall_all@4"), {"q": ["m0", "m1", "m6", "m5"]}, judged
    )
    assert found["q", "recall@3"] == pytest.approx(2 / 3)
    assert found["q", "recall_any@3"] == 1
    assert found["q", "recall_all@3"] == 0
    assert found["q", "recall_all@4"] == 1


def test_a_message_covered_twice_counts_once_at_its_first_place() -> None:
    covers = {"first": ["m0", "m1"], "second": ["m2"], "again": ["m1", "m3"]}
    found = values(
        ("recall@1", "recall@3", "MRR", "MAP"), {"q": ["first", "second", "again"]}, {"q": {"m1": 1, "m3": 1}}, covers
    )
    assert (found["q", "recall@1"], found["q", "recall@3"]) == (1 / 2, 1)
    assert found["q", "MRR"] == 1 / 2
    assert found["q", "MAP"] == pytest.approx((1 / 2 + 2 / 4) / 2)  # m0, m1, m2, m3


def test_a_judgement_of_zero_is_not_relevant() -> None:
    judged = {"q": {"m1": 1, "m0": 0, "m4": 0}, "only zero": {"m0": 0}}
    found = values(("recall@1", "recall_all@2", "MRR"), {"q": ["m0", "m1"], "only zero": ["m0"]}, judged)
    assert {query for query, _ in found} == {"q"}
    assert (found["q", "recall@1"], found["q", "recall_all@2"], found["q", "MRR"]) == (0, 1, 1 / 2)
    assert (found["q", "session.recall@1"], found["q", "session.MRR"]) == (1, 1)


def test_grades_reach_ndcg() -> None:
    judged = {"best first": {"m0": 2, "m1": 1}, "best last": {"m0": 2, "m1": 1}}
    found = values(("nDCG@2",), {"best first": ["m0", "m1"], "best last": ["m1", "m0"]}, judged)
    second = 1 / math.log2(3)
    assert found["best first", "nDCG@2"] == pytest.approx(1)
    assert found["best last", "nDCG@2"] == pytest.approx((1 + 2 * second) / (2 + 1 * second))


def test_a_judged_query_without_results_is_zero_by_every_measure() -> None:
    found = values(DEFAULT_NAMES, {"q": ["m0"]}, {"q": {"m0": 1}, "empty": {"m0": 1}})
    of_empty = {measure: value for (query, measure), value in found.items() if query == "empty"}
    by_session = [f"session.{name}" for name in DEFAULT_NAMES if not name.startswith("tokens")]
    assert of_empty == dict.fromkeys([*DEFAULT_NAMES, *by_session], 0.0)


def test_each_query_is_answered_from_its_own_workspace_only() -> None:
    asked = tuple(Query(f"asked of {name}", "goats on Thursday", minute(99), name) for name in ("b", "a"))
    parts = system()
    data = replace(
        dataset({}),
        transcripts=tuple(transcript(name=name, workspace_id=name) for name in ("a", "b")),
        queries=asked,
        qrels=pl.DataFrame(
            [(query.query_id, f"{query.workspace_id}:7", 1) for query in asked], QRELS_SCHEMA, orient="row"
        ),
    )
    outcome = Experiment(
        dataset=data,
        system=parts,
        replay=Bulk(),
        retrieval=Retrieval(names=["recall@1", "recall@8"], levels=["message"], resamples=20),
        latency=Latency(queries=0),
        live_embedder=parts.embedder,
        arms={"last_n": Ranking(Recent())},
    ).run(lambda *_: None)
    rows = outcome.run.join(outcome.documents, on=["document_id", "workspace_id"], how="left")
    said_in = rows.with_columns(said_in=pl.col("source_message_ids").list.first().str.head(1))
    found = said_in.group_by("arm", "query_id", "workspace_id", "said_in").len()
    assert set(found.rows()) == {
        (arm, f"asked of {name}", name, name, 8) for arm in (SYSTEM_ARM, "last_n") for name in ("a", "b")
    }
    assert outcome.counts["workspaces"] == 2
    assert outcome.values.filter(arm=SYSTEM_ARM, measure="recall@1")["value"].to_list() == [1.0, 1.0]
