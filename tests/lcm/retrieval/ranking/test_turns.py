"""Which rows are of one turn."""

from collections.abc import Sequence
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.frames import turn_of

COLUMNS = {
    "query_id": (pl.String(), st.sampled_from(["q", "r"])),
    "conversation_id": (pl.String(), st.sampled_from([None, "c", "d"])),
    "session_id": (pl.String(), st.sampled_from([None, "s", "t"])),
    "seq": (pl.Int64(), st.sampled_from([None, 1, 2])),
    "kind": (pl.String(), st.sampled_from([None, "message", "step", "exchange"])),
    "score": (pl.Float64(), st.none() | st.floats(0, 1)),
}
ROWS = st.lists(st.tuples(*(values for _, values in COLUMNS.values())), max_size=12)


def frame_of(rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    schema = {name: kind for name, (kind, _) in COLUMNS.items()}
    return pl.DataFrame(rows, schema, orient="row").sort("query_id", maintain_order=True)


@given(ROWS)
def test_a_turn_is_what_one_message_was_cut_into_and_else_a_row(rows: Sequence[tuple[Any, ...]]) -> None:
    frame = frame_of(rows)
    firsts: dict[object, int] = {}
    expected = []
    for number, (*place, kind, _) in enumerate(frame.iter_rows()):
        is_passage = kind in ("message", "step") and place[-1] is not None
        expected.append(firsts.setdefault((*place, kind), number) if is_passage else number)
    assert turn_of(frame, "query_id").to_list() == expected
