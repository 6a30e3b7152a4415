"""Further passages of one turn count less."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.ranking.stages.crowding import Crowding
from tests.golden.components import documents_batch

BATCH = documents_batch([])


def rows(turns: list[int], scores: list[float], kind: str = "step") -> pl.DataFrame:
    n = len(turns)
    return pl.DataFrame(
        {
            "query_id": ["q"] * n, "document_id": [f"d{i}" for i in range(n)], "conversation_id": ["c"] * n,
            "session_id": ["s"] * n, "seq": turns, "kind": [kind] * n, "score": scores,
        }
    )  # fmt: skip


def crowded(frame: pl.DataFrame, penalty: float = 0.5) -> list[float]:
    return Crowding(penalty)(frame, BATCH)["score"].to_list()


def test_each_better_passage_of_the_turn_costs_a_share_of_the_spread() -> None:
    scores = [4.0, 0.0, 4.0, 2.0]
    spread = pl.Series(scores).std(ddof=0)
    assert isinstance(spread, float)
    assert crowded(rows([1, 1, 1, 2], scores)) == pytest.approx([4, 0 - 2 * 0.5 * spread, 4 - 0.5 * spread, 2])


def test_summaries_that_begin_with_one_message_crowd_nobody() -> None:
    frame = rows([1, 1], [2.0, 1.0], kind="summary")
    assert crowded(frame) == [2, 1]


def test_queries_are_told_apart() -> None:
    one, other = rows([1, 1], [2.0, 1.0]), rows([1, 1], [9.0, 1.0]).with_columns(query_id=pl.lit("r"))
    assert crowded(pl.concat([one, other])) == crowded(one) + crowded(other)


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(-9, 9)), min_size=1, max_size=12))
def test_the_best_passage_of_each_turn_keeps_its_score_and_the_others_their_order(
    found: list[tuple[int, float]],
) -> None:
    frame = rows([turn for turn, _ in found], [score for _, score in found])
    after = frame.with_columns(after=pl.Series(crowded(frame)))
    for _, turn in after.group_by("seq"):
        by_score = turn.sort("score", descending=True, maintain_order=True)
        assert by_score["after"][0] == by_score["score"][0]
        assert by_score["after"].is_sorted(descending=True)


def test_a_penalty_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="penalty must be >= 0"):
        Crowding(-0.1)
