"""Retrieval measures against hand arithmetic and ir-measures: grades, sessions, what covers several messages, means."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import ir_measures
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.dataset.dataset import QRELS_SCHEMA, SESSION_QRELS_SCHEMA, Dataset
from eval.measures.coverage import evidence_text
from eval.measures.means import Means
from eval.measures.measure import RunReading, SystemReading
from eval.measures.names import SYSTEM_ARM
from eval.measures.retrieval import DEFAULT_NAMES, Retrieval
from eval.significance import bootstrap_means
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.source.branches import Recent
from tests.eval.tiny import tiny
from tests.support import experiments
from tests.support.workspaces import minute, system, transcript

MESSAGES = tuple(f"m{i}" for i in range(8))
SINGLE = {name: [name] for name in MESSAGES}
Judged = Mapping[str, Sequence[str] | Mapping[str, int]]
"""Query -> what is relevant to it, with a grade unless that is 1."""
Ranked = Mapping[str, Sequence[str]]


def judgements(judged: Judged) -> list[tuple[str, str, int]]:
    graded = {query: of if isinstance(of, Mapping) else dict.fromkeys(of, 1) for query, of in judged.items()}
    return [(query, name, grade) for query, of in graded.items() for name, grade in of.items()]


def dataset(judged: Judged, by_session: Judged | None = None) -> Dataset:
    """Eight messages in two sessions (s0: m0-m3, s1: m4-m7), judged as told."""
    by_session = by_session or {}
    messages = tuple(Message(name, "user", name, f"s{i // 4}", minute(i)) for i, name in enumerate(MESSAGES))
    sessions = pl.DataFrame(judgements(by_session), schema=SESSION_QRELS_SCHEMA, orient="row")
    queries = (Query(query, query, minute(99)) for query in {**judged, **by_session})
    return tiny([Transcript("c", messages)], queries, judgements(judged), session_qrels=sessions)


def documents_of(covers: Ranked) -> pl.DataFrame:
    return pl.DataFrame(
        {"document_id": list(covers), "source_message_ids": list(covers.values()), "tokens": [10] * len(covers)}
    ).with_columns(workspace_id=pl.lit("default"))


def measured(
    names: Sequence[str], ranked: Ranked, data: Dataset, covers: Ranked = SINGLE, arm: str = SYSTEM_ARM
) -> pl.DataFrame:
    """The values of an arm whose documents cost 10 tokens each."""
    run = pl.DataFrame(
        [("default", query, document, i) for query, ids in ranked.items() for i, document in enumerate(ids, 1)],
        schema=["workspace_id", "query_id", "document_id", "rank"],
        orient="row",
    )
    documents = documents_of(covers)
    worded = documents.with_columns(text=pl.col("source_message_ids").list.join("\n"), kind=pl.lit("message"))
    texts = evidence_text(worded, data.queries, data).with_columns(workspace_id=pl.lit("default"))
    found = Retrieval(names=names).rows(RunReading(arm, run, documents, data, texts))
    return found.select(pl.lit(arm).alias("arm"), pl.all())


def values(
    names: Sequence[str], ranked: Ranked, judged: Judged, covers: Ranked = SINGLE, by_session: Judged | None = None
) -> dict[tuple[str, str], float]:
    found = measured(names, ranked, dataset(judged, by_session), covers)
    return {(query, measure): value for query, measure, value in found.drop("arm").iter_rows()}


GRADES = st.dictionaries(st.sampled_from(MESSAGES), st.integers(0, 2), min_size=1)


@given(st.dictionaries(st.sampled_from("abc"), GRADES, min_size=1), st.data())
def test_measures_equal_ir_measures_where_a_document_is_a_message(qrels: dict[str, dict[str, int]], data) -> None:
    """A query whose judgements are all zero is left out."""
    ranked = {q: data.draw(st.lists(st.sampled_from(MESSAGES), unique=True, min_size=1)) for q in qrels}
    found = values(["recall@3", "recall_any@3", "nDCG@3", "MRR", "MAP"], ranked, qrels)
    theirs = ir_measures.iter_calc(
        [ir_measures.R @ 3, ir_measures.Success @ 3, ir_measures.nDCG @ 3, ir_measures.RR, ir_measures.AP],
        {q: graded for q, graded in qrels.items() if any(graded.values())},
        {q: {d: -float(i) for i, d in enumerate(ids)} for q, ids in ranked.items()},
    )
    names = {"R@3": "recall@3", "Success@3": "recall_any@3", "nDCG@3": "nDCG@3", "RR": "MRR", "AP": "MAP"}
    expected = {(one.query_id, names[str(one.measure)]): one.value for one in theirs}
    assert {key: value for key, value in found.items() if key[1] in names.values()} == pytest.approx(expected)


def test_recall_all_needs_every_one_and_without_a_cutoff_everything_returned_counts() -> None:
    names = ["recall@3", "recall_any@3", "recall_all@3", "recall_all@4", "recall", "tokens@3", "tokens"]
    found = values(names, {"q": ["m0", "m1", "m6", "m5"]}, {"q": ["m0", "m1", "m5"]})
    assert [found["q", name] for name in names] == [pytest.approx(2 / 3), 1, 0, 1, 1, 30, 40]
    found = values(["recall", "tokens"], {"none": ["m4"]}, {"none": ["m0"]})
    assert found == {("none", "recall"): 0, ("none", "session.recall"): 0, ("none", "tokens"): 10}


def test_a_capped_recall_is_full_where_no_more_can_be_found() -> None:
    names = ["recall_capped@1", "recall_capped@2", "recall_capped@9"]
    ranked = {"many": ["m0", "m5", "m1"], "one": ["m5", "m0"]}
    found = values(names, ranked, {"many": ["m0", "m1", "m2"], "one": ["m0"]})
    assert [found["many", name] for name in names] == pytest.approx([1 / 1, 1 / 2, 2 / 3])
    assert [found["one", name] for name in names] == [0, 1 / 1, 1 / 1]
    covers = {"wide": ["m0", "m1", "m2"]}
    assert values(["recall_capped@1"], {"q": ["wide"]}, {"q": covers["wide"]}, covers)["q", "recall_capped@1"] == 1


def test_a_message_covered_twice_counts_once_at_its_first_place() -> None:
    covers = {"first": ["m0", "m1"], "second": ["m2"], "again": ["m1", "m3"]}
    names = ("recall@1", "recall@3", "MRR", "MAP", "tokens@2")
    found = values(names, {"q": ["first", "second", "again"]}, {"q": ["m1", "m3"]}, covers)
    average = pytest.approx((1 / 1 + 2 / 3) / 2)
    assert [found["q", name] for name in names] == [1 / 2, 1, 1, average, 20]


def test_places_are_of_documents_and_what_shares_one_takes_the_next() -> None:
    """What is not relevant takes no place beside what is, and the more relevant of one document stands first."""
    covers = {"none": ["m0", "m1", "m2"], "two": ["m3", "m4", "m5"], "late": ["m6"]}
    names = ("recall@2", "nDCG@2", "nDCG@4", "MRR", "MAP")
    found = values(names, {"q": list(covers)}, {"q": {"m3": 1, "m5": 2, "m6": 1}}, covers)
    second, third, fourth = (1 / math.log2(place + 1) for place in (2, 3, 4))
    assert found["q", "recall@2"] == pytest.approx(2 / 3)
    assert found["q", "nDCG@2"] == pytest.approx(2 * second / (2 + second))
    assert found["q", "nDCG@4"] == pytest.approx((2 * second + third + fourth) / (2 + second + third))
    assert found["q", "MRR"] == 1 / 2
    assert found["q", "MAP"] == pytest.approx((1 / 2 + 2 / 3 + 3 / 4) / 3)


def test_a_sessions_judgement_of_zero_judges_nothing() -> None:
    """Were s0 among the sessions of the ideal, LongMemEval's nDCG would count it as found."""
    names = ("recall@1", "recall_all@1", "MRR", "MAP", "nDCG@2", "nDCG_longmemeval@2")
    ranked = {"other": ["m0"], "own": ["m4"], "both": ["m0", "m4"], "only zero": ["m0"]}
    by_session = {"other": {"s0": 0, "s1": 1}, "own": {"s0": 0}, "both": {"s0": 0}, "only zero": {"s0": 0}}
    found = values(names, ranked, {"own": ["m4"], "both": ["m4"]}, by_session=by_session)
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


def test_grades_reach_ndcg_and_a_session_takes_the_higher_of_two() -> None:
    """By itself s0 is graded 1, through its message 2; s1 is graded 1."""
    ranked = {"best first": ["m0", "m4"], "best last": ["m4", "m0"]}
    judged = {query: {"m0": 2, "m4": 1} for query in ranked}
    found = values(("nDCG@2",), ranked, judged, by_session={query: ["s0", "s1"] for query in ranked})
    second = 1 / math.log2(3)
    for measure in ("nDCG@2", "session.nDCG@2"):
        assert found["best first", measure] == pytest.approx(1)
        assert found["best last", measure] == pytest.approx((1 + 2 * second) / (2 + 1 * second))


def test_a_judged_query_without_results_is_zero_by_every_measure() -> None:
    found = values(DEFAULT_NAMES, {"q": ["m0"]}, {"q": ["m0"], "empty": ["m0"]})
    of_empty = {measure: value for (query, measure), value in found.items() if query == "empty"}
    by_session = [f"session.{name}" for name in DEFAULT_NAMES if not re.match(r"tokens|.*t$", name)]
    assert of_empty == dict.fromkeys([*DEFAULT_NAMES, *by_session], 0.0)


def test_sessions_judged_by_themselves_and_through_messages_are_one_set() -> None:
    names = ("recall@1", "recall@2", "recall_all@1")
    found = values(names, {"q": ["m1", "m4"]}, {"q": ["m0", "m1"]}, by_session={"q": ["s0", "s1"]})
    assert [found["q", name] for name in names[:2]] == [1 / 2, 1 / 2]
    assert [found["q", f"session.{name}"] for name in names] == [1 / 2, 1, 0]


def test_a_judged_message_or_session_that_nobody_recorded_is_never_found() -> None:
    found = values(
        ("recall@2",),
        {"lost message": ["m0", "m4"], "lost session": ["m0", "m4"], "zero": ["m0"]},
        {"lost message": ["nowhere"]},
        by_session={"lost session": ["nowhere", "s0"], "zero": {"s0": 0}},
    )
    assert found == {
        ("lost message", "recall@2"): 0,
        ("lost message", "session.recall@2"): 0,
        ("lost session", "session.recall@2"): 1 / 2,
    }


def test_corrected_evidence_is_measured_beside_the_recorded() -> None:
    recorded, corrected = dataset({"q": ["m0"], "lost": []}), dataset({"q": ["m4", "m1"], "lost": ["m2"]})
    both = replace(recorded, repaired_qrels=corrected.qrels)
    rows = measured(["recall@2", "tokens@2"], {"q": ["m0", "m4"]}, both).drop("arm").iter_rows()
    assert {(query, name): value for query, name, value in rows} == {
        ("q", "recall@2"): 1.0,
        ("q", "session.recall@2"): 1.0,
        ("q", "tokens@2"): 20.0,
        ("q", "repaired.recall@2"): 1 / 2,
        ("q", "repaired.session.recall@2"): 1.0,
        ("lost", "repaired.recall@2"): 0.0,
        ("lost", "repaired.session.recall@2"): 0.0,
    }
    part = both.part(["default"]).repaired_qrels
    assert part is not None
    assert part.equals(corrected.qrels)


def log2_gains(*positions: int) -> float:
    return sum(1.0 if position == 1 else 1 / math.log2(position) for position in positions)


@pytest.mark.parametrize(
    ("ranked", "relevant", "k", "expected"),
    [
        (["m0"], ["m0"], 5, 1),
        (["m5", "m0"], ["m0"], 5, 1),  # rank 2 costs nothing
        (["m5", "m6", "m0"], ["m0"], 5, 1 / math.log2(3)),
        (["m5", "m0", "m6", "m1"], ["m0", "m1", "m2"], 5, log2_gains(2, 4) / log2_gains(1, 2, 3)),
        (["m5", "m0", "m6", "m1"], ["m0", "m1", "m2"], 2, 1 / 2),
        (["m5", "m0"], ["m0"], 1, 0),
        (["m5"], ["m0"], 5, 0),
    ],
)
def test_longmemevals_ndcg_leaves_rank_two_undiscounted(
    ranked: list[str], relevant: list[str], k: int, expected: float
) -> None:
    found = values([f"nDCG_longmemeval@{k}"], {"q": ranked}, {"q": relevant})
    assert found["q", f"nDCG_longmemeval@{k}"] == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    "name",
    ["precision@5", "recall@0", "recall@-1", "recall_any", "tokens@0", "nDCG", "nDCG_longmemeval", "MRR@5", "tokens "],
)
def test_an_unknown_measure_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"unknown measure '{name}'"):
        Retrieval(names=[name])


def test_each_mean_is_over_an_arms_queries_judged_at_its_level() -> None:
    """Three queries are judged by message, and two more by session only; their categories are means of their own."""
    data = dataset({"a": ["m0"], "b": ["m1"], "c": ["m2"]}, {"d": ["s1"], "e": ["s0"]})
    of = {"a": "facts", "b": "facts", "c": "facts", "d": "sessions", "e": "sessions"}
    data = replace(data, queries=tuple(replace(query, category=of[query.query_id]) for query in data.queries))
    names = ("recall@1", "tokens@1")
    ranked = {"a": ["m0"], "b": ["m5"], "c": ["m2"], "d": ["m4"], "e": ["m4"]}
    found = pl.concat([measured(names, ranked, data), measured(names, ranked | {"b": ["m1"]}, data, arm="a control")])
    averaged = Means(resamples=50, seed=3).of_queries(found, data)
    means = {(row["group"], row["measure"]): row for row in averaged.filter(arm=SYSTEM_ARM).iter_rows(named=True)}
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
    assert averaged.filter(arm="a control", group="all", measure="recall@1")["value"].to_list() == [1.0]


def test_nothing_judged_has_no_mean() -> None:
    data = dataset({"q": {}})
    found = measured(DEFAULT_NAMES, {"q": ["m0"]}, data)
    assert found.is_empty()
    assert Means().of_queries(found, data).is_empty()


def test_a_measure_of_one_value_gives_it_as_the_one_of_all_does() -> None:
    data, whole = dataset({"q1": ["m0", "m5"], "q2": ["m3"]}), Retrieval()
    run = [("default", "q1", "m1", 1), ("default", "q1", "m0", 2), ("default", "q2", "m4", 1)]
    ranked = pl.DataFrame(run, schema=["workspace_id", "query_id", "document_id", "rank"], orient="row")
    worded = documents_of(SINGLE).with_columns(text=pl.col("source_message_ids").list.join(""), kind=pl.lit("message"))
    texts = evidence_text(worded, data.queries, data).with_columns(workspace_id=pl.lit("default"))
    reading = RunReading(SYSTEM_ARM, ranked, documents_of(SINGLE), data, texts)
    rows = whole.rows(reading)
    for name in rows["measure"].unique():
        assert whole.giving(name).rows(reading).filter(measure=name).equals(rows.filter(measure=name)), name


def test_where_judgements_say_what_was_looked_at_the_unjudged_share_is_reported() -> None:
    """q1: m0 is relevant, m1 is not, m2 and m3 nobody judged; q2 found nothing."""
    data, names, found = dataset({"q1": ["m0"], "q2": ["m5"]}), ["recall@2", "nDCG@4", "MRR"], ["m1", "m2", "m0", "m3"]
    assert "judged@2" not in measured(names, {"q1": found}, data)["measure"]
    looked_at = pl.DataFrame([("q1", "m1", 0)], schema=QRELS_SCHEMA, orient="row")
    pooled = replace(data, qrels=pl.concat([data.qrels, looked_at]))
    values = measured(names, {"q1": found}, pooled)
    judged = values.filter(pl.col("measure").str.starts_with("judged"))
    assert judged.select("query_id", "measure", "value").rows() == [
        ("q1", "judged@2", 1 / 2),
        ("q1", "judged@4", 2 / 4),
    ]
    assert values.join(judged, on="measure", how="anti").equals(measured(names, {"q1": found}, data))
    whole = SystemReading(system(), pooled, documents=documents_of(SINGLE).with_columns(session_id=pl.lit("s")))
    told = Retrieval(names=names).notes(judged.with_columns(arm=pl.lit("system")), whole)
    assert told[0] == "nobody judged 50.0% of what the system's first 4 documents cover: it counts as not relevant"


def test_each_query_is_answered_from_its_own_workspace_only() -> None:
    asked = tuple(Query(f"asked of {name}", "goats on Thursday", minute(99), name) for name in ("b", "a"))
    judged = [(query.query_id, f"{query.workspace_id}:7", 1) for query in asked]
    data = replace(
        dataset({}),
        transcripts=tuple(transcript(name=name, workspace_id=name) for name in ("a", "b")),
        queries=asked,
        qrels=pl.DataFrame(judged, QRELS_SCHEMA, orient="row"),
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
