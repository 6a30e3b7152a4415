"""Retrieval measures against hand arithmetic, brute force, and ir-measures itself."""

import math
from dataclasses import replace

import ir_measures
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.dataset.dataset import QRELS_SCHEMA, Dataset
from eval.measures.means import Means
from eval.measures.measure import RunReading
from eval.measures.retrieval import Retrieval
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from tests.support.workspaces import minute

MESSAGES = tuple(f"m{i}" for i in range(8))


def dataset(qrels: dict[str, list[str]], categories: dict[str, str] | None = None) -> Dataset:
    """Eight messages in two sessions (m0-m3, m4-m7), and the queries of `qrels`."""
    messages = tuple(Message(m, "user", m, f"s{i // 4}", minute(i)) for i, m in enumerate(MESSAGES))
    rows = [(query, message, 1) for query, relevant in qrels.items() for message in relevant]
    return Dataset(
        name="tiny",
        protocol="tiny",
        digest="0",
        transcripts=(Transcript("c", messages),),
        queries=tuple(Query(q, q, minute(99), category=(categories or {}).get(q, "all")) for q in qrels),
        qrels=pl.DataFrame(rows, schema=QRELS_SCHEMA, orient="row"),
    )


def run(ranked: dict[str, list[str]]) -> pl.DataFrame:
    rows = [(q, d, i) for q, ids in ranked.items() for i, d in enumerate(ids, 1)]
    return pl.DataFrame(rows, schema=["query_id", "document_id", "rank"], orient="row")


def documents(covers: dict[str, list[str]], tokens: int = 10) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "workspace_id": ["default"] * len(covers),
            "document_id": list(covers),
            "source_message_ids": list(covers.values()),
            "tokens": [tokens] * len(covers),
        }
    )


SINGLE = documents({m: [m] for m in MESSAGES})


def of_arm(
    retrieval: Retrieval,
    ranked: dict[str, list[str]],
    data: Dataset,
    covers: pl.DataFrame = SINGLE,
    arm: str = "system",
) -> pl.DataFrame:
    found = retrieval.of_run(RunReading(arm, run(ranked), covers, data))
    return found.select(pl.lit(arm).alias("arm"), pl.all())


def values(names: list[str], ranked: dict[str, list[str]], qrels: dict[str, list[str]], covers=SINGLE) -> dict:
    measured = of_arm(Retrieval(names=names), ranked, dataset(qrels), covers)
    return {(row["query_id"], row["measure"]): row["value"] for row in measured.iter_rows(named=True)}


def test_three_recalls_are_three_measures() -> None:
    found = values(
        ["recall@2", "recall_any@2", "recall_all@2", "recall_all@5"], {"q": ["m0", "m5", "m1"]}, {"q": ["m0", "m1"]}
    )
    assert found["q", "recall@2"] == 1 / 2
    assert found["q", "recall_any@2"] == 1
    assert found["q", "recall_all@2"] == 0
    assert found["q", "recall_all@5"] == 1


def test_a_capped_recall_is_full_where_no_more_can_be_found() -> None:
    names = ["recall_capped@1", "recall_capped@2", "recall_capped@9"]
    ranked = {"many": ["m0", "m5", "m1"], "one": ["m5", "m0"]}
    found = values(names, ranked, {"many": ["m0", "m1", "m2"], "one": ["m0"]})
    assert [found["many", name] for name in names] == pytest.approx([1 / 1, 1 / 2, 2 / 3])
    assert [found["one", name] for name in names] == [0, 1 / 1, 1 / 1]


def test_a_capped_recall_stays_1_where_one_document_covers_more_than_k() -> None:
    covers = SINGLE.with_columns(source_message_ids=pl.lit(["m0", "m1", "m2"], dtype=pl.List(pl.String)))
    found = values(["recall_capped@1"], {"q": ["m0"]}, {"q": ["m0", "m1", "m2"]}, covers)
    assert found["q", "recall_capped@1"] == 1


def test_ndcg_is_trec_evals() -> None:
    found = values(["nDCG@3", "MRR", "MAP"], {"q": ["m5", "m0", "m6", "m1"]}, {"q": ["m0", "m1"]})
    ideal = 1 / math.log2(2) + 1 / math.log2(3)
    assert found["q", "nDCG@3"] == pytest.approx((1 / math.log2(3)) / ideal)
    assert found["q", "MRR"] == pytest.approx(1 / 2)
    assert found["q", "MAP"] == pytest.approx((1 / 2 + 2 / 4) / 2)


def test_a_query_without_results_counts_as_zero() -> None:
    found = values(["recall@5", "MRR", "tokens@5"], {"q": ["m0"]}, {"q": ["m0"], "empty": ["m1"]})
    assert found["empty", "recall@5"] == found["empty", "MRR"] == found["empty", "tokens@5"] == 0


def test_a_query_without_judgements_is_left_out_of_the_mean() -> None:
    found = values(["recall@5"], {"q": ["m0"], "unjudged": ["m1"]}, {"q": ["m0"], "unjudged": []})
    assert {query for query, _ in found} == {"q"}


def test_a_document_that_covers_several_messages_finds_them_all_and_shows_its_cost() -> None:
    covers = documents({"wide": ["m0", "m1", "m2"], "narrow": ["m3"]}, tokens=30)
    found = values(["recall@1", "tokens@1", "tokens@2"], {"q": ["wide", "narrow"]}, {"q": ["m0", "m2"]}, covers)
    assert found["q", "recall@1"] == 1
    assert (found["q", "tokens@1"], found["q", "tokens@2"]) == (30, 60)


def test_corrected_evidence_is_measured_beside_the_recorded() -> None:
    recorded, corrected = dataset({"q": ["m0"], "lost": []}), dataset({"q": ["m4", "m1"], "lost": ["m2"]})
    both = replace(recorded, repaired_qrels=corrected.qrels)
    retrieval = Retrieval(names=["recall@2", "tokens@2"])
    found = {(q, name): value for _, q, name, value in of_arm(retrieval, {"q": ["m0", "m4"]}, both).iter_rows()}
    assert found == {
        ("q", "recall@2"): 1.0,
        ("q", "session.recall@2"): 1.0,
        ("q", "tokens@2"): 20.0,
        ("q", "repaired.recall@2"): 1 / 2,
        ("q", "repaired.session.recall@2"): 1.0,
        ("lost", "repaired.recall@2"): 0.0,
        ("lost", "repaired.session.recall@2"): 0.0,
    }
    (part,) = {len(frame) for frame in (both.part(["default"]).repaired_qrels, corrected.qrels) if frame is not None}
    assert part == 3


def test_session_level_counts_sessions() -> None:
    found = values(["recall@1", "recall@2", "MRR"], {"q": ["m4", "m5", "m6", "m0"]}, {"q": ["m1"]})
    assert found["q", "recall@2"] == 0
    assert found["q", "session.recall@1"] == 0
    assert found["q", "session.recall@2"] == 1
    assert found["q", "session.MRR"] == 1 / 2


@given(
    st.dictionaries(
        st.sampled_from(["q1", "q2", "q3"]),
        st.lists(st.sampled_from(MESSAGES), min_size=1, unique=True),
        min_size=1,
    ),
    st.data(),
)
def test_measures_equal_ir_measures_where_a_document_is_a_message(qrels: dict[str, list[str]], data) -> None:
    ranked = {q: data.draw(st.lists(st.sampled_from(MESSAGES), unique=True, min_size=1)) for q in qrels}
    found = values(["recall@3", "recall_any@3", "nDCG@3", "MRR", "MAP"], ranked, qrels)
    theirs = ir_measures.iter_calc(
        [ir_measures.R @ 3, ir_measures.Success @ 3, ir_measures.nDCG @ 3, ir_measures.RR, ir_measures.AP],
        {q: dict.fromkeys(relevant, 1) for q, relevant in qrels.items()},
        {q: {d: -float(i) for i, d in enumerate(ids)} for q, ids in ranked.items()},
    )
    names = {"R@3": "recall@3", "Success@3": "recall_any@3", "nDCG@3": "nDCG@3", "RR": "MRR", "AP": "MAP"}
    for metric in theirs:
        assert found[metric.query_id, names[str(metric.measure)]] == pytest.approx(metric.value)


def test_means_are_per_category_and_over_all() -> None:
    qrels = {"q1": ["m0"], "q2": ["m1"], "q3": ["m2"]}
    data = dataset(qrels, {"q1": "a", "q2": "a", "q3": "b"})
    retrieval = Retrieval(names=["recall@1"], levels=["message"])
    measured = of_arm(retrieval, {"q1": ["m0"], "q2": ["m5"], "q3": ["m2"]}, data)
    means = {row["group"]: row for row in Means(resamples=200).of_queries(measured, data).iter_rows(named=True)}
    assert (means["all"]["value"], means["all"]["n"]) == (pytest.approx(2 / 3), 3)
    assert (means["a"]["value"], means["a"]["n"]) == (1 / 2, 2)
    assert means["a"]["low"] == 0
    assert means["a"]["high"] == 1
    assert math.isnan(means["b"]["low"])


def test_without_a_cutoff_everything_returned_counts() -> None:
    ranked = {"q": ["m5", "m6", "m7", "m0"], "none": ["m4"]}
    found = values(["recall@3", "recall", "tokens@3", "tokens"], ranked, {"q": ["m0", "m1"], "none": ["m0"]})
    assert (found["q", "recall@3"], found["q", "recall"]) == (0, 1 / 2)
    assert (found["q", "tokens@3"], found["q", "tokens"]) == (30, 40)
    assert (found["none", "recall"], found["none", "tokens"]) == (0, 10)
    assert (found["q", "session.recall"], found["none", "session.recall"]) == (1, 0)


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


def test_longmemevals_ndcg_counts_sessions_at_session_level() -> None:
    found = values(["nDCG_longmemeval@3", "nDCG@3"], {"q": ["m4", "m5", "m6", "m0"]}, {"q": ["m0"]})
    assert found["q", "session.nDCG_longmemeval@3"] == 1
    assert found["q", "session.nDCG@3"] == pytest.approx(1 / math.log2(3))


def test_a_measure_that_is_not_asked_for_is_not_there() -> None:
    found = values(["nDCG_longmemeval@3"], {"q": ["m0"]}, {"q": ["m0"]})
    assert {measure for _, measure in found} == {"nDCG_longmemeval@3", "session.nDCG_longmemeval@3"}


@pytest.mark.parametrize(
    "name",
    ["precision@5", "recall@0", "recall@-1", "recall_any", "tokens@0", "nDCG", "nDCG_longmemeval", "MRR@5", "tokens "],
)
def test_an_unknown_measure_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"unknown measure '{name}'"):
        Retrieval(names=[name])


def test_each_arm_keeps_its_own_means() -> None:
    data = dataset({"q1": ["m0"], "q2": ["m1"]})
    retrieval = Retrieval(names=["recall@1", "MRR"], levels=["message"])
    values = [
        of_arm(retrieval, {"q1": ["m0"], "q2": ["m1"]}, data),
        of_arm(retrieval, {"q1": ["m5"], "q2": ["m1"]}, data, arm="a control"),
    ]
    means = Means(resamples=50).of_queries(pl.concat(values), data).filter(group="all")
    assert dict(means.select(pl.concat_str("arm", pl.lit(" "), "measure"), "value").iter_rows()) == {
        "system recall@1": 1.0,
        "system MRR": 1.0,
        "a control recall@1": 0.5,
        "a control MRR": 0.5,
    }


def test_where_judgements_say_what_was_looked_at_the_rest_is_told() -> None:
    """q1: m0 is relevant, m1 is not, m2 and m3 nobody judged; q2 found nothing."""
    data = dataset({"q1": ["m0"], "q2": ["m5"]})
    retrieval = Retrieval(names=["recall@2", "nDCG@4", "MRR"])
    found = {"q1": ["m1", "m2", "m0", "m3"]}
    assert "judged@2" not in of_arm(retrieval, found, data)["measure"]
    looked_at = pl.DataFrame([("q1", "m1", 0)], schema=QRELS_SCHEMA, orient="row")
    pooled = replace(data, qrels=pl.concat([data.qrels, looked_at]))
    values = of_arm(retrieval, found, pooled)
    judged = values.filter(pl.col("measure").str.starts_with("judged"))
    assert judged.select("query_id", "measure", "value").rows() == [
        ("q1", "judged@2", 1 / 2),
        ("q1", "judged@4", 2 / 4),
    ]
    others = values.filter(~pl.col("measure").str.starts_with("judged"))
    assert others.equals(of_arm(retrieval, found, data))
    told = retrieval.flags(
        judged.with_columns(arm=pl.lit("system")), SINGLE.with_columns(session_id=pl.lit("s")), pooled
    )
    assert told[0] == "nobody judged 50.0% of the first 4 messages that the system found: they count as not relevant"
