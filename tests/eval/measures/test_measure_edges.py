"""Edges of what is counted: graded and absent judgements, messages covered twice, several workspaces."""

import math
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from eval.dataset.dataset import QRELS_SCHEMA, SESSION_QRELS_SCHEMA, Dataset
from eval.measures.evidence_text import evidence_text
from eval.measures.means import Means
from eval.measures.measure import RunReading
from eval.measures.names import SYSTEM_ARM
from eval.measures.retrieval import DEFAULT_NAMES, Retrieval
from eval.significance import bootstrap_means
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.source.recent import Recent
from tests.support import experiments
from tests.support.workspaces import minute, system, transcript

MESSAGES = tuple(f"m{i}" for i in range(8))
SINGLE = {name: [name] for name in MESSAGES}
Judged = dict[str, dict[str, int]]


def dataset(judged: Judged, by_session: Judged | None = None) -> Dataset:
    """Eight messages in two sessions (s0: m0-m3, s1: m4-m7), judged as told."""
    by_session = by_session or {}
    messages = tuple(Message(name, "user", name, f"s{i // 4}", minute(i)) for i, name in enumerate(MESSAGES))
    rows, session_rows = (
        [(query, name, relevance) for query, of in table.items() for name, relevance in of.items()]
        for table in (judged, by_session)
    )
    return Dataset(
        name="tiny",
        protocol="tiny",
        digest="0",
        transcripts=(Transcript("c", messages),),
        queries=tuple(Query(query, query, minute(99)) for query in judged | by_session),
        qrels=pl.DataFrame(rows, schema=QRELS_SCHEMA, orient="row"),
        session_qrels=pl.DataFrame(session_rows, schema=SESSION_QRELS_SCHEMA, orient="row"),
    )


def measured(
    names: tuple[str, ...], ranked: dict[str, list[str]], data: Dataset, covers: dict[str, list[str]] = SINGLE
) -> pl.DataFrame:
    """The values of the system's arm."""
    run = pl.DataFrame(
        [("default", query, document, i) for query, ids in ranked.items() for i, document in enumerate(ids, 1)],
        schema=["workspace_id", "query_id", "document_id", "rank"],
        orient="row",
    )
    documents = pl.DataFrame(
        {"document_id": list(covers), "source_message_ids": list(covers.values()), "tokens": [10] * len(covers)}
    ).with_columns(workspace_id=pl.lit("default"))
    worded = documents.with_columns(text=pl.col("source_message_ids").list.join("\n"), kind=pl.lit("message"))
    texts = evidence_text(worded, data.queries, data).with_columns(workspace_id=pl.lit("default"))
    found = Retrieval(names=names).of_run(RunReading(SYSTEM_ARM, run, documents, data, texts))
    return found.select(pl.lit(SYSTEM_ARM).alias("arm"), pl.all())


def values(
    names: tuple[str, ...],
    ranked: dict[str, list[str]],
    judged: Judged,
    covers: dict[str, list[str]] = SINGLE,
    by_session: Judged | None = None,
) -> dict[tuple[str, str], float]:
    found = measured(names, ranked, dataset(judged, by_session), covers)
    return {(row["query_id"], row["measure"]): row["value"] for row in found.iter_rows(named=True)}


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


def test_a_sessions_judgement_of_zero_judges_nothing() -> None:
    """Were s0 among the sessions of the ideal, LongMemEval's nDCG would count it as found."""
    names = ("recall@1", "recall_all@1", "MRR", "MAP", "nDCG@2", "nDCG_longmemeval@2")
    ranked = {"other": ["m0"], "own": ["m4"], "both": ["m0", "m4"]}
    by_session = {"other": {"s0": 0, "s1": 1}, "own": {"s0": 0}, "both": {"s0": 0}, "only zero": {"s0": 0}}
    found = values(names, {**ranked, "only zero": ["m0"]}, {"own": {"m4": 1}, "both": {"m4": 1}}, by_session=by_session)
    of_sessions = {
        query: [found[query, f"session.{name}"] for name in names if (query, f"session.{name}") in found]
        for query in by_session
    }
    assert of_sessions == {
        "other": [0, 0, 0, 0, 0, 0],
        "own": [1, 1, 1, 1, 1, 1],
        "both": [0, 0, 1 / 2, 1 / 2, pytest.approx(1 / math.log2(3)), 1],
        "only zero": [],
    }


def test_grades_reach_ndcg() -> None:
    judged = {"best first": {"m0": 2, "m1": 1}, "best last": {"m0": 2, "m1": 1}}
    found = values(("nDCG@2",), {"best first": ["m0", "m1"], "best last": ["m1", "m0"]}, judged)
    second = 1 / math.log2(3)
    assert found["best first", "nDCG@2"] == pytest.approx(1)
    assert found["best last", "nDCG@2"] == pytest.approx((1 + 2 * second) / (2 + 1 * second))


def test_a_judged_query_without_results_is_zero_by_every_measure() -> None:
    found = values(DEFAULT_NAMES, {"q": ["m0"]}, {"q": {"m0": 1}, "empty": {"m0": 1}})
    of_empty = {measure: value for (query, measure), value in found.items() if query == "empty"}
    by_session = [f"session.{name}" for name in DEFAULT_NAMES if not re.match(r"tokens|.*t$", name)]
    assert of_empty == dict.fromkeys([*DEFAULT_NAMES, *by_session], 0.0)


def test_a_query_judged_by_session_only_has_no_measure_of_messages() -> None:
    found = values(
        ("recall@1", "MRR", "tokens@2"),
        {"by session": ["m0", "m4"], "by message": ["m0"]},
        {"by message": {"m0": 1}},
        by_session={"by session": {"s1": 1}},
    )
    assert found == {
        ("by message", "recall@1"): 1,
        ("by message", "MRR"): 1,
        ("by message", "session.recall@1"): 1,
        ("by message", "session.MRR"): 1,
        ("by message", "tokens@2"): 10,
        ("by session", "session.recall@1"): 0,
        ("by session", "session.MRR"): 1 / 2,
        ("by session", "tokens@2"): 20,
    }


def test_sessions_judged_by_themselves_and_through_messages_are_one_set() -> None:
    found = values(
        ("recall@1", "recall@2", "recall_all@1"),
        {"q": ["m1", "m4"]},
        {"q": {"m0": 1, "m1": 1}},
        by_session={"q": {"s0": 1, "s1": 1}},
    )
    assert (found["q", "recall@1"], found["q", "recall@2"]) == (1 / 2, 1 / 2)
    assert (found["q", "session.recall@1"], found["q", "session.recall@2"]) == (1 / 2, 1)
    assert found["q", "session.recall_all@1"] == 0


def test_a_session_takes_the_higher_of_two_grades() -> None:
    """By itself s0 is graded 1, through its message 2; s1 is graded 1."""
    ranked = {"best first": ["m0", "m4"], "best last": ["m4", "m0"]}
    judged = {query: {"m3": 2} for query in ranked}
    found = values(("nDCG@2",), ranked, judged, by_session={query: {"s0": 1, "s1": 1} for query in ranked})
    second = 1 / math.log2(3)
    assert found["best first", "session.nDCG@2"] == pytest.approx(1)
    assert found["best last", "session.nDCG@2"] == pytest.approx((1 + 2 * second) / (2 + 1 * second))


def test_a_judged_message_or_session_that_nobody_recorded_is_never_found() -> None:
    found = values(
        ("recall@2",),
        {"lost message": ["m0", "m4"], "lost session": ["m0", "m4"], "zero": ["m0"]},
        {"lost message": {"nowhere": 1}},
        by_session={"lost session": {"nowhere": 1, "s0": 1}, "zero": {"s0": 0}},
    )
    assert found == {
        ("lost message", "recall@2"): 0,
        ("lost message", "session.recall@2"): 0,
        ("lost session", "session.recall@2"): 1 / 2,
    }


def test_each_mean_is_over_the_queries_judged_at_its_level() -> None:
    """Three queries are judged by message, and two more by session only; their categories are means of their own."""
    data = dataset({"a": {"m0": 1}, "b": {"m1": 1}, "c": {"m2": 1}}, {"d": {"s1": 1}, "e": {"s0": 1}})
    of = {"a": "facts", "b": "facts", "c": "facts", "d": "sessions", "e": "sessions"}
    data = replace(data, queries=tuple(replace(query, category=of[query.query_id]) for query in data.queries))
    names = ("recall@1", "tokens@1")
    found = measured(names, {"a": ["m0"], "b": ["m5"], "c": ["m2"], "d": ["m4"], "e": ["m4"]}, data)
    averaged = Means(resamples=50, seed=3).of_queries(found, data)
    means = {(row["group"], row["measure"]): row for row in averaged.iter_rows(named=True)}
    expected = {
        ("all", "recall@1"): [1, 0, 1],
        ("all", "session.recall@1"): [1, 0, 1, 1, 0],
        ("all", "tokens@1"): [10] * 5,
        ("facts", "recall@1"): [1, 0, 1],
        ("facts", "session.recall@1"): [1, 0, 1],
        ("facts", "tokens@1"): [10] * 3,
        ("sessions", "session.recall@1"): [1, 0],
        ("sessions", "tokens@1"): [10] * 2,
    }
    assert set(means) == set(expected)
    for key, column in expected.items():
        (low,), (high,) = bootstrap_means(np.array(column, dtype=np.float64)[:, None], 50, 0.95, 3)
        row = means[key]
        assert (row["n"], row["value"]) == (len(column), pytest.approx(sum(column) / len(column)))
        assert (row["low"], row["high"]) == (low, high)


def test_nothing_judged_has_no_mean() -> None:
    data = dataset({"q": {}})
    found = measured(DEFAULT_NAMES, {"q": ["m0"]}, data)
    assert found.is_empty()
    assert Means().of_queries(found, data).is_empty()


def test_each_query_is_answered_from_its_own_workspace_only() -> None:
    asked = tuple(Query(f"asked of {name}", "goats on Thursday", minute(99), name) for name in ("b", "a"))
    data = replace(
        dataset({}),
        transcripts=tuple(transcript(name=name, workspace_id=name) for name in ("a", "b")),
        queries=asked,
        qrels=pl.DataFrame(
            [(query.query_id, f"{query.workspace_id}:7", 1) for query in asked], QRELS_SCHEMA, orient="row"
        ),
    )
    retrieval = Retrieval(names=["recall@1", "recall@8"], levels=["message"])
    outcome = experiments.outcome(data, system(), {"retrieval": retrieval}, {"last_n": Ranking(Recent())})
    rows = outcome.run.join(outcome.documents, on=["document_id", "workspace_id"], how="left")
    said_in = rows.with_columns(said_in=pl.col("source_message_ids").list.first().str.head(1))
    found = said_in.group_by("arm", "query_id", "workspace_id", "said_in").len()
    assert set(found.rows()) == {
        (arm, f"asked of {name}", name, name, 8) for arm in (SYSTEM_ARM, "last_n") for name in ("a", "b")
    }
    assert outcome.counts["workspaces"] == 2
    assert outcome.values.filter(arm=SYSTEM_ARM, measure="recall@1")["value"].to_list() == [1.0, 1.0]
