"""A formula of documents is worked out once a document where all rows were asked at one instant, and gives the same."""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.protocols.retrieval import DOCUMENT_NUMBER, Columns, Decay, Numbers
from lcm.records.document import SCOPE_CLASSES
from lcm.retrieval.decay import Exponential, Weibull

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def rows(numbers: list[int], days_later: list[int]) -> pl.DataFrame:
    """A row for each number: a document, and what it is to its query."""
    documents = [one // len(SCOPE_CLASSES) for one in numbers]
    described = {
        "created_at": [NOW - timedelta(days=17 * one) for one in documents],
        "last_accessed_at": [NOW - timedelta(days=one) if one % 2 else None for one in documents],
        "access_count": [one % 3 for one in documents],
        "importance": [0.1 * one for one in documents],
        "confidence": [1.0 if one % 2 else None for one in documents],
        "decay_tier": [("core", "working", "peripheral")[one % 3] for one in documents],
        "temporal_type": [("static", "dynamic")[one % 2] for one in documents],
        "asked_at": [NOW + timedelta(days=later) for later in days_later],
        "scope_class": [SCOPE_CLASSES[one % len(SCOPE_CLASSES)] for one in numbers],
        DOCUMENT_NUMBER: numbers,
    }
    times = {name: pl.Datetime("ms", "UTC") for name in ("created_at", "last_accessed_at", "asked_at")}
    return pl.DataFrame(described, schema_overrides={**times, DOCUMENT_NUMBER: pl.UInt32()})


@given(
    st.sampled_from([Weibull(recency_lifts=True), Exponential()]),
    st.lists(st.integers(0, 12), min_size=1, max_size=30),
    st.lists(st.integers(0, 1), min_size=30, max_size=30),
)
def test_rows_have_the_value_that_each_has_by_itself(decay: Decay, numbers: list[int], later: list[int]) -> None:
    for days_later in ([0] * len(numbers), later[: len(numbers)]):
        frame = rows(numbers, days_later)
        by_itself = decay.multiplier(Columns(frame.drop(DOCUMENT_NUMBER)))
        assert np.array_equal(Columns(frame).by_document(decay.multiplier), by_itself)


@pytest.mark.parametrize(
    ("days_later", "numbers", "worked_out"),
    [
        ([0] * 6, [0, 1, 0, 1, 0, 1], 2),
        ([0, 0, 0, 0, 0, 1], [0, 1, 0, 1, 0, 1], 6),
        ([0] * 6, [0, 1, 0, 1, 0, None], 6),
    ],
)
def test_it_is_worked_out_once_a_document_where_that_is_the_same(
    days_later: list[int], numbers: list[int | None], worked_out: int
) -> None:
    seen: list[int] = []

    def formula(columns: Columns) -> Numbers:
        seen.append(len(columns))
        return columns.numbers("importance")

    frame = rows([0, 1, 0, 1, 0, 1], days_later).with_columns(pl.Series(DOCUMENT_NUMBER, numbers, pl.UInt32))
    assert Columns(frame).by_document(formula).tolist() == frame["importance"].to_list()
    assert seen == [worked_out]
