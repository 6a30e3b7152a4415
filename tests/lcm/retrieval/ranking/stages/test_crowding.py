"""What stands beside something better counts less."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.ranking.stages.crowding import Crowding
from tests.golden.components import documents_batch

BATCH = documents_batch([])
HALF = Crowding(0.5)


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


def test_each_better_passage_of_the_turn_costs_a_share_of_the_spread() -> None:
    scores = [4.0, 0.0, 4.0, 2.0]
    cost = 0.5 * spread(scores)
    assert crowded(rows([1, 1, 1, 2], scores)) == pytest.approx([4, 0 - 2 * cost, 4 - cost, 2])


def test_each_better_document_of_the_session_costs_a_share_of_the_spread() -> None:
    scores = [4.0, 3.0, 2.5, 2.0]
    cost = 0.5 * spread(scores)
    frame = rows([1, 2, 3, 1], scores, sessions=["s", "s", "s", "t"])
    assert crowded(frame, Crowding(0.5, within="session")) == pytest.approx([4, 3 - cost, 2.5 - 2 * cost, 2])


def test_sessions_of_two_conversations_that_share_a_name_crowd_not_each_other() -> None:
    frame = rows([1, 1], [2.0, 1.0]).with_columns(conversation_id=pl.Series(["c", "d"]))
    assert crowded(frame, Crowding(0.5, within="session")) == [2, 1]


def test_documents_of_no_session_crowd_nobody() -> None:
    frame = rows([1, 2, 3], [3.0, 2.0, 1.0], sessions=[None, None, None])
    assert crowded(frame, Crowding(0.5, within="session")) == [3, 2, 1]


def test_summaries_that_begin_with_one_message_crowd_nobody() -> None:
    frame = rows([1, 1], [2.0, 1.0], kind="summary")
    assert crowded(frame) == [2, 1]


@pytest.mark.parametrize("within", ["turn", "session"])
def test_queries_are_told_apart(within: str) -> None:
    one, other = rows([1, 1], [2.0, 1.0]), rows([1, 1], [9.0, 1.0]).with_columns(query_id=pl.lit("r"))
    crowding = Crowding(0.5, within)  # type: ignore[arg-type]  # of its choices
    assert crowded(pl.concat([one, other]), crowding) == crowded(one, crowding) + crowded(other, crowding)


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


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="penalty must be >= 0"):
        Crowding(-0.1)
    with pytest.raises(ValueError, match="within must be one of: session, turn, got 'day'"):
        Crowding(within="day")  # type: ignore[arg-type]
