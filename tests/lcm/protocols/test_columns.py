"""Columns of rows as arrays."""

import math
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from lcm.protocols.retrieval import Columns

FRAME = pl.DataFrame(
    {
        "share": pl.Series([0.5, math.nan, None], dtype=pl.Float64),
        "count": pl.Series([3, None, 5], dtype=pl.Int64),
        "at": pl.Series([datetime(1970, 1, 1, 0, 1, tzinfo=UTC), None, None], dtype=pl.Datetime("ms", "UTC")),
        "kind": pl.Series(["summary", None, "message"], dtype=pl.String),
        "place": pl.Series(["here", "there", None], dtype=pl.Enum(["here", "there"])),
    }
)


def test_what_is_missing_is_told_from_what_is_no_number() -> None:
    columns = Columns(FRAME)
    np.testing.assert_array_equal(columns.numbers("share"), [0.5, math.nan, math.nan])
    np.testing.assert_array_equal(columns.numbers("share", missing=7), [0.5, math.nan, 7])
    assert columns.are_missing("share").tolist() == [False, False, True]
    np.testing.assert_array_equal(columns.numbers("count", missing=-math.inf), [3, -math.inf, 5])
    np.testing.assert_array_equal(columns.numbers("at"), [60_000, math.nan, math.nan])


def test_a_missing_word_is_none_of_those_that_are_asked_for() -> None:
    columns = Columns(FRAME)
    assert columns.are("kind", "summary", "message").tolist() == [True, False, True]
    assert columns.are("place", "there").tolist() == [False, True, False]
    assert columns.are("kind").tolist() == [False] * 3


def test_of_some_rows_only_these_are_given_in_their_order() -> None:
    columns = Columns(FRAME, np.array([2, 0]))
    assert len(columns) == 2
    assert columns.numbers("count").tolist() == [5, 3]
    assert columns.are("kind", "message").tolist() == [True, False]
    assert columns.are_missing("at").tolist() == [True, False]


def test_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="age"):
        Columns(FRAME).numbers("age")
