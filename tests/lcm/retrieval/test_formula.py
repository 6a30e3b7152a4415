"""Formulas of one query: the same bits by numpy as by Polars, whatever stands in the rows."""

import math
from datetime import timedelta

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from lcm.records.document import SCOPE_CLASSES
from lcm.retrieval import formula
from lcm.retrieval.decay.exponential import Exponential
from lcm.retrieval.decay.weibull import Weibull
from lcm.retrieval.formula import filtered, values_of, worked_out
from lcm.retrieval.fusion import hybrid_score, reciprocal_rank, two_pass, weighted_sum
from lcm.retrieval.ranking.stages import (
    decay_boost,
    importance_weight,
    inverse_distance,
    length_normalization,
    min_max,
    recency_boost,
    sigmoid,
    time_decay,
)
from lcm.retrieval.ranking.stages.min_score import MinScore
from lcm.retrieval.ranking.stages.not_expired import NotExpired
from tests.golden.components import documents_batch
from tests.lcm.retrieval.decay.frames import NOW

WEIGHTS = (0.7, 0.3, 0.92, 0.75)
FORMULAS: dict[str, pl.Expr] = {
    "exponential": Exponential().multiplier(),
    "weibull": Weibull().multiplier(),
    "weibull, lifted": Weibull(recency_lifts=True, beta_core=0.8).multiplier(),
    "decay boost": decay_boost._boosted(decay_boost.DecayBoost(Weibull())),
    "hybrid score": hybrid_score._score(hybrid_score.HybridScore(Exponential())),
    "reciprocal rank": reciprocal_rank._score(60.0, (("dense", 1.0), ("lexical", 0.5))),
    "two passes": two_pass._score(two_pass.TwoPass(Exponential()), None),
    "two passes, of all": two_pass._score(two_pass.TwoPass(Weibull()), 7),
    "cosine": two_pass._COSINE,
    "weighted sum": weighted_sum._mean(WEIGHTS, (), True),
    "weighted sum of three": weighted_sum._mean(WEIGHTS, (("session", 0.5),), False),
    "importance weight": importance_weight._weighted(importance_weight.ImportanceWeight()),
    "inverse distance": inverse_distance._mapped("cosine"),
    "length normalization": length_normalization._normalized(length_normalization.LengthNormalization()),
    "min-max": min_max._SCALED,
    "recency boost": recency_boost._boosted(recency_boost.RecencyBoost()),
    "sigmoid": sigmoid._mapped("bm25", 5.0),
    "time decay": time_decay._decayed(time_decay.TimeDecay()),
}
EDGES = st.sampled_from([0.0, -0.0, 1.0, math.nan, math.inf, -math.inf, 1e300])
NUMBERS = st.one_of(st.none(), st.floats(-2, 30), EDGES)
INSTANTS = st.integers(-(10**6), 10**6).map(lambda hours: NOW + timedelta(minutes=hours))
COUNTS = st.integers(0, 1000)
OF_NUMBERS = (
    *("score", "cosine", "bm25", "contained", "dense_score", "lexical_score", "session_score"),
    *("importance", "confidence", "authority", "decay_rate"),
)
COLUMNS: dict[str, tuple[pl.DataType, st.SearchStrategy[object]]] = {
    **dict.fromkeys(OF_NUMBERS, (pl.Float64(), NUMBERS)),
    "_coverage": (pl.Float64(), st.floats(0, 1)),
    "dense_rank": (pl.Int64(), st.none() | st.integers(1, 99)),
    "lexical_rank": (pl.Int64(), st.none() | st.integers(1, 99)),
    "access_count": (pl.Int64(), st.none() | COUNTS),
    "length_utf16": (pl.Int64(), st.none() | COUNTS),
    "created_at": (pl.Datetime("ms", "UTC"), INSTANTS),
    "last_accessed_at": (pl.Datetime("ms", "UTC"), st.none() | INSTANTS),
    "valid_until": (pl.Datetime("ms", "UTC"), st.none() | INSTANTS),
    "kind": (pl.String(), st.sampled_from(["message", "summary", "authored", "guidance"])),
    "decay_tier": (pl.String(), st.sampled_from([None, "core", "working", "peripheral", "?"])),
    "temporal_type": (pl.String(), st.sampled_from([None, "static", "dynamic"])),
    "scope_class": (pl.Enum(SCOPE_CLASSES), st.sampled_from(SCOPE_CLASSES)),
}


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    count = draw(st.integers(1, 6))
    is_uniform = draw(st.sets(st.sampled_from(sorted(COLUMNS))))
    columns = [
        pl.Series(
            name,
            [draw(values)] * count if name in is_uniform else draw(st.lists(values, min_size=count, max_size=count)),
            dtype,
        )
        for name, (dtype, values) in COLUMNS.items()
    ]
    ids = pl.Series("document_id", [f"d{number}" for number in range(count)])
    asked = pl.Series("asked_at", [NOW] * count, pl.Datetime("ms", "UTC"))
    return pl.DataFrame([pl.Series("query_id", ["q"] * count), ids, asked, *columns])


@settings(max_examples=40, deadline=None)
@given(frame=frames(), data=st.data())
def test_formulas_of_one_query_give_the_bits_that_polars_gives(frame: pl.DataFrame, data: st.DataObject) -> None:
    expected = frame.select(expression.cast(pl.Float64).alias(name) for name, expression in FORMULAS.items())
    found = pl.DataFrame([worked_out(frame, expression, name) for name, expression in FORMULAS.items()])
    assert_frame_equal(found, expected, check_exact=True)
    rows = data.draw(st.lists(st.sampled_from(range(len(frame))), min_size=1, unique=True))
    for name in ("two passes", "weibull", "min-max"):  # of some rows what a frame of no others gives
        alone = frame[rows].select(FORMULAS[name].cast(pl.Float64)).to_series().to_numpy()
        np.testing.assert_array_equal(values_of(frame, FORMULAS[name], np.array(rows)), alone, name)


@settings(max_examples=40, deadline=None)
@given(frame=frames())
def test_the_same_rows_are_kept_alone_and_beside_another_query(frame: pl.DataFrame) -> None:
    both = pl.concat([frame, frame.with_columns(query_id=pl.lit("r"))])
    for stage in (MinScore(0.3), NotExpired()):
        kept = stage(both, documents_batch([])).filter(query_id="q")
        assert_frame_equal(kept, stage(frame, documents_batch([])), check_exact=True)


def test_every_formula_of_a_ranking_is_read_and_what_numpy_does_not_know_is_left_to_polars() -> None:
    assert [name for name, expression in FORMULAS.items() if formula._part_of(expression) is None] == []
    frame = pl.DataFrame({"query_id": ["q", "q"], "score": [0.25, 0.5]})
    unread = pl.col("score").rank() + pl.col("score").sinh()
    assert formula._part_of(unread) is None
    assert worked_out(frame, unread, "x").equals(frame.select(x=unread)["x"])
    assert filtered(frame, pl.col("score").rank() > 1)["score"].to_list() == [0.5]
