"""What is read row by row of few rows is what a window finds of many."""

from collections.abc import Sequence
from typing import Any, Literal
from unittest import mock

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval import frames as turns
from lcm.retrieval.frames import turn_of
from lcm.retrieval.ranking.stages import repetition as crowding
from lcm.retrieval.ranking.stages.repetition import Crowding
from tests.golden.components import documents_batch

COLUMNS = {
    "query_id": (pl.String(), st.sampled_from(["q", "r"])),
    "conversation_id": (pl.String(), st.sampled_from([None, "c", "d"])),
    "session_id": (pl.String(), st.sampled_from([None, "s", "t"])),
    "seq": (pl.Int64(), st.sampled_from([None, 1, 2])),
    "kind": (pl.String(), st.sampled_from([None, "message", "step", "exchange"])),
    "score": (pl.Float64(), st.none() | st.floats(0, 1)),
}
ROWS = st.lists(st.tuples(*(values for _, values in COLUMNS.values())), max_size=12)
BATCH = documents_batch([])


def frame_of(rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    schema = {name: kind for name, (kind, _) in COLUMNS.items()}
    return pl.DataFrame(rows, schema, orient="row").sort("query_id", maintain_order=True)


@given(ROWS)
def test_few_rows_have_the_turns_of_many(rows: Sequence[tuple[Any, ...]]) -> None:
    frame = frame_of(rows)
    with mock.patch.object(turns, "FEW", -1):
        many = turn_of(frame, "query_id")
    assert turn_of(frame, "query_id").to_list() == many.to_list()


@pytest.mark.parametrize("within", ["turn", "session"])
@given(ROWS)
def test_few_rows_crowd_each_other_as_many_do(
    within: Literal["turn", "session"], rows: Sequence[tuple[Any, ...]]
) -> None:
    frame, crowds = frame_of(rows), Crowding(0.5, within)
    with mock.patch.object(turns, "FEW", -1), mock.patch.object(crowding, "FEW", -1):
        many = crowds(frame, BATCH)
    assert crowds(frame, BATCH).equals(many)
