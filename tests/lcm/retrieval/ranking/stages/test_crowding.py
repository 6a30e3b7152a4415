"""What stands beside something better counts less."""

from typing import Literal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.protocols.retrieval import DOCUMENT_NUMBER
from lcm.retrieval.ranking.stages.selection import Crowding
from tests.golden.components import documents_batch
from tests.lcm.refusals import assert_refused

BATCH = documents_batch([])
HALF, OF_SESSION = Crowding(0.5), Crowding(0.5, within="session")


def rows(
    turns: list[int], scores: list[float], kind: str = "step", sessions: list[str | None] | None = None
) -> pl.DataFrame:
    n = len(turns)
    return pl.DataFrame(
        {
            "query_id": ["q"] * n, "document_id": [f"d{i}" for i in range(n)], "conversation_id": ["c"] * n,
            "session_id": sessions or ["s"] * n, "seq": turns, "kind": [kind] * n, "score": scores,
        }
    )  # fmt: skip


def crowded(frame: pl.DataFrame, crowding: Crowding = HALF) -> list[float]:
    return crowding(frame, BATCH)["score"].to_list()


def spread(scores: list[float]) -> float:
    found = pl.Series(scores).std(ddof=0)
    assert isinstance(found, float)
    return found


def test_each_better_one_of_the_turn_or_session_costs_a_share_of_the_spread() -> None:
    scores = [4.0, 0.0, 4.0, 2.0]
    cost = 0.5 * spread(scores)
    assert crowded(rows([1, 1, 1, 2], scores)) == pytest.approx([4, 0 - 2 * cost, 4 - cost, 2])
    frame = rows([1, 2, 3, 1], scores, sessions=["s", "s", "s", "t"])
    assert crowded(frame, OF_SESSION) == pytest.approx([4, 0 - 2 * cost, 4 - cost, 2])


def test_neither_summaries_of_one_message_nor_other_conversations_nor_documents_of_no_session_crowd() -> None:
    assert crowded(rows([1, 1], [2.0, 1.0], kind="summary")) == [2, 1]
    frame = rows([1, 1], [2.0, 1.0]).with_columns(conversation_id=pl.Series(["c", "d"]))
    assert crowded(frame, OF_SESSION) == [2, 1]
    assert crowded(rows([1, 2, 3], [3.0, 2.0, 1.0], sessions=[None] * 3), OF_SESSION) == [3, 2, 1]


@pytest.mark.parametrize("within", ["turn", "session"])
@given(found=st.lists(st.tuples(st.integers(0, 3), st.floats(-9, 9)), min_size=1, max_size=12))
def test_the_best_of_those_that_crowd_keeps_its_score_and_the_others_their_order(
    within: str, found: list[tuple[int, float]]
) -> None:
    numbers = [number for number, _ in found]
    frame = rows(numbers, [score for _, score in found], sessions=[str(number) for number in numbers])
    after = frame.with_columns(after=pl.Series(crowded(frame, Crowding(0.5, within))))  # type: ignore[arg-type]
    for _, crowd in after.group_by("seq"):
        by_score = crowd.sort("score", descending=True, maintain_order=True)
        assert by_score["after"][0] == by_score["score"][0]
        assert by_score["after"].is_sorted(descending=True)


@pytest.mark.parametrize("within", ["turn", "session"])
def test_rows_that_are_numbered_by_document_crowd_as_those_that_are_not(within: Literal["turn", "session"]) -> None:
    of_query = rows([1, 1, 2, 3], [4.0, 3.0, 2.0, 1.0], sessions=["s", "s", "t", None])
    numbered = of_query.with_columns(pl.Series(DOCUMENT_NUMBER, [0, 2, 3, 1], pl.UInt32))
    frame = pl.concat([numbered, numbered.head(3).with_columns(query_id=pl.lit("r"), score=pl.Series([1.0, 5.0, 2.0]))])
    crowding = Crowding(0.5, within)
    assert crowded(frame, crowding) == crowded(frame.drop(DOCUMENT_NUMBER), crowding)


def test_what_cannot_be_is_refused() -> None:
    assert_refused(Crowding, "be >= 0", penalty=-0.1)
    assert_refused(Crowding, "be one of: session, turn", within="day")
