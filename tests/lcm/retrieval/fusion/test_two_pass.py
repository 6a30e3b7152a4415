"""Two passes: their cuts, their score, and its laws; the vectors of the original are in tests/golden."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm.protocols.retrieval import Batch, Columns
from lcm.retrieval.decay import Exponential, NoDecay, Weibull
from lcm.retrieval.frames import query_numbers
from lcm.retrieval.fusion import TwoPass, authority, keyword_coverage, most_accesses
from tests.golden.components import documents_batch
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.decay.frames import days_ago, rows

FRESH = TwoPass(NoDecay(), recency_weight=1.0, frequency_weight=0.0, authority_weight=0.0, kappa=0.0)
"""omega is 1: what is left is the cosine."""


def batch(question: str = "", texts: list[str] | None = None) -> Batch:
    known = documents_batch([f"d{i}" for i in range(len(texts or []))])
    return replace(
        known,
        queries=known.queries.with_columns(text=pl.lit(question)),
        documents=known.documents.with_columns(text=pl.Series(texts or [], dtype=pl.String)),
    )


def scored(stage: TwoPass, around: Batch | None = None, **columns: list[Any]) -> dict[str, float]:
    found = stage(rows(**columns), around or batch())
    return dict(found.select("document_id", "score").iter_rows())


def test_the_floor_stands_behind_the_first_cut() -> None:
    stage = replace(FRESH, k1=2, theta1=0.4)
    assert scored(stage, cosine=[0.5, 0.3, 0.45]) == {"d0": 0.5, "d2": 0.45}
    assert scored(stage, cosine=[0.3, 0.2, 0.1]) == {}
    assert scored(replace(stage, k1=1), cosine=[0.5, 0.45]) == {"d0": 0.5}


def test_a_document_at_the_floor_is_near() -> None:
    assert scored(replace(FRESH, theta1=0.4), cosine=[0.4, math.nextafter(0.4, 0)]) == {"d0": 0.4}


def test_each_cut_tells_by_how_much_a_document_missed_it() -> None:
    stage = replace(FRESH, k1=4, k2=2, theta1=0.2)
    frame = rows(cosine=[0.5, 0.4, 0.3, 0.187, 0.1])
    assert dict(stage.reasons(frame, batch()).select("document_id", "reason").iter_rows()) == {
        "d2": "k2 lets the first 2 through, down to score 0.4; it has 0.3 and is number 3",
        "d3": "cosine 0.187 below theta1 0.2",
        "d4": "k1 lets the first 4 through, down to cosine 0.187; it has 0.1 and is number 5",
    }
    rule = rows(cosine=[0.2, 0.2], kind=["guidance", "message"])
    assert stage.reasons(rule, batch())["reason"].to_list() == ["cosine 0.2 not above theta1 0.2"]


def test_use_is_held_against_what_is_near_or_against_all_documents() -> None:
    stage = replace(FRESH, recency_weight=0.0, frequency_weight=1.0)
    around = batch(texts=["a", "b", "c"])
    used = replace(around, documents=around.documents.with_columns(access_count=pl.Series([1, 3, 7])))
    near = {"cosine": [1.0, 1.0, 0.1], "access_count": [1, 3, 1000]}
    expected = {"d0": math.log(2) / math.log(5), "d1": math.log(4) / math.log(5)}
    assert scored(replace(stage, theta1=0.2), used, **near) == pytest.approx(expected)
    over_all = replace(stage, frequency_over="all")
    found = scored(over_all, used, cosine=[1.0] * 3, access_count=[1, 3, 7])
    assert found == pytest.approx({"d0": 1 / 3, "d1": 2 / 3, "d2": 1.0})
    assert scored(over_all, around, cosine=[1.0], access_count=[0]) == {"d0": 0.0}


def test_what_is_authored_has_no_age_and_a_summary_loses_by_what_it_is_not_sure_of() -> None:
    old = {"created_at": [days_ago(9000)] * 2, "kind": ["authored", "message"], "decay_tier": ["peripheral"] * 2}
    found = scored(replace(FRESH, recency=Weibull()), cosine=[0.5, 0.5], **old)
    assert found["d0"] == 0.5 > found["d1"]
    columns = {"kind": ["summary", "summary", "message"], "decay_rate": [0.4, math.nan, 0.4]}
    found = scored(replace(FRESH, summary_delta=0.5), cosine=[0.6] * 3, **columns)
    assert found == {"d0": pytest.approx(0.6 * (1 - 0.5 * 0.4)), "d1": 0.6, "d2": 0.6}


def test_coverage_is_the_share_of_the_distinct_words_of_the_query() -> None:
    row = rows(document_id=["d0"])
    for question, text, covered in (
        ("where is the KETTLE, the blue kettle", "a kettle is where it is", 2 / 4),  # where the kettle blue
        ("is it red", "red", 1.0),
        ("?!", "anything at all", 0.0),
        ("東京都", "東京へ", 1 / 2),  # 東京, 京都
    ):
        assert keyword_coverage(row, batch(question, [text]), "unicode").tolist() == [covered]
    assert keyword_coverage(row, batch("пирог", ["пирог"]), "ascii").tolist() == [0.0]


def test_guidance_apart_has_cuts_of_its_own_and_must_lie_above_the_floor() -> None:
    columns = {"cosine": [0.9, 0.8, 0.7, 0.4], "kind": ["message", "message", "guidance", "guidance"]}
    stage = replace(FRESH, k1=2, k2=1, theta1=0.4)
    assert scored(stage, **columns) == {"d0": 0.9, "d2": 0.7}
    assert scored(replace(stage, k2=2), **columns) == {"d0": 0.9, "d1": 0.8, "d2": 0.7}
    together = replace(stage, rules="original", k1=4, k2=4)
    assert scored(together, **columns) == {"d0": 0.9, "d1": 0.8, "d2": 0.7, "d3": 0.4}


def test_guidance_of_several_queries_stays_with_its_own() -> None:
    found = FRESH(
        rows(
            query_id=["q", "q", "r", "r"],
            document_id=["a", "b", "a", "b"],
            cosine=[0.5, 0.9, 0.8, 0.3],
            kind=["guidance", "message"] * 2,
        ),
        batch(),
    )
    assert found.select("query_id", "document_id").rows() == [("q", "b"), ("q", "a"), ("r", "a"), ("r", "b")]


TEXTS = ["red kettle", "kettle", "goats", "", "kettle goats red"]
CASES = st.lists(
    st.fixed_dictionaries(
        {
            "cosine": st.none() | st.just(math.nan) | st.floats(-1, 1),
            "access_count": st.one_of(st.none(), st.integers(0, 50)),
            "authority": st.one_of(st.none(), st.floats()),
            "decay_rate": st.one_of(st.none(), st.floats()),
            "kind": st.sampled_from(["message", "summary", "guidance", "authored"]),
            "created_at": st.floats(-9, 900).map(days_ago),
        }
    ),
    min_size=1,
    max_size=5,
)
STAGES = st.builds(
    TwoPass,
    recency=st.sampled_from([NoDecay(), Exponential()]),
    k1=st.integers(1, 6),
    k2=st.integers(1, 6),
    theta1=st.floats(-1, 1),
    kappa=st.floats(0, 100),
    recency_weight=st.floats(0, 1),
    frequency_weight=st.floats(0, 1),
    authority_weight=st.floats(0.01, 1),
    rules=st.sampled_from(["corrected", "original"]),
    summary_delta=st.floats(0, 1),
)
QUESTIONS = st.sampled_from(["red kettle", "", "?", "the goats"])


def of(case: list[dict[str, Any]]) -> pl.DataFrame:
    return rows(**{name: [row[name] for row in case] for name in case[0]})


@settings(max_examples=60)
@given(CASES, STAGES, QUESTIONS)
def test_a_score_never_exceeds_authority_and_is_always_a_number(
    case: list[dict[str, Any]], stage: TwoPass, question: str
) -> None:
    found = stage(of(case), batch(question, TEXTS[: len(case)]))
    weights = (stage.recency_weight, stage.frequency_weight, stage.authority_weight)
    is_apart = pl.lit(stage.rules == "corrected") & (pl.col("kind") == "guidance")
    for part in (found.filter(is_apart), found.filter(~is_apart)):
        # With fewer rows nobody was used more than whoever is left, so that this authority is no less than the stage's.
        columns = Columns(part)
        most = most_accesses(columns, query_numbers(part))
        for score, omega in zip(part["score"], authority(columns, stage.recency, *weights, most), strict=True):
            assert 0 <= score <= omega + 1e-12 <= 1 + 1e-11


def test_impossible_settings_are_refused() -> None:
    build = partial(TwoPass, NoDecay())
    assert_refused(build, "be >= 1", k1=0, k2=0)
    assert_refused(build, "be in [-1, 1]", theta1=math.nan)
    assert_refused(build, "be >= 0", kappa=[-1.0, math.inf])
    assert_refused(build, "be in [0, 1]", recency_weight=1.5, authority_weight=math.nan, summary_delta=-0.1)
    assert_refused(build, "be one of: corrected, original", rules="1.4.4")
    with pytest.raises(ValueError, match="recency_weight, frequency_weight and authority_weight must not all be 0"):
        build(recency_weight=0.0, frequency_weight=0.0, authority_weight=0.0)
