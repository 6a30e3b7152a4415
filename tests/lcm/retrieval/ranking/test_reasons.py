"""What a stage tells of a row is so: it was dropped, stepped back, or lost score there."""

import polars as pl
import pytest

from lcm.memory.memory import Memory
from lcm.records.query import Query
from pipelines.config import building
from tests.support.composing import composed
from tests.support.workspaces import YEARS_LATER, lived_in

TEXTS = ("the kettle in the garden", "what broke near the river?", "proj:atlas kettle", "the harbour")
_KEY = ["query_id", "document_id"]


@pytest.mark.parametrize("preset", ["lancedb_pro", "unified", "neighbours"])
def test_reasons_are_of_rows_that_lose_something(preset: str) -> None:
    ranking = building.build(composed([f"system={preset}", "embedder=hashing"]), "memory").ranking
    queries = [Query(f"q{i}", text, YEARS_LATER) for i, text in enumerate(TEXTS)]
    with lived_in(120) as memory:
        seen = set()
        for batch in memory.batches(queries, ranking):
            trace, told, plan = ranking.trace(batch), ranking.reasons(batch), ranking.plan(batch)
            assert not told.select("step", *_KEY).is_duplicated().any()
            before = trace.with_columns(step=pl.col("step") + 1)
            rows = (
                told.join(before, on=["step", *_KEY], how="left", suffix="_before")
                .rename({"rank": "rank_before", "score": "score_before"})
                .join(trace, on=["step", *_KEY], how="left", suffix="_after")
                .join(plan, on=["query_id", "step"], suffix="_planned")
            )
            assert rows["rank_before"].null_count() == 0
            is_lost = pl.col("rank").is_null() | (pl.col("rank") >= pl.col("rank_before"))
            loses = is_lost | (pl.col("score") < pl.col("score_before"))
            assert rows.select(loses.all()).item()
            seen |= set(rows["stage_planned"])
            alike = rows.filter(pl.col("like_id").is_not_null())
            assert (alike["like_id"] != alike["document_id"]).all()
        assert seen


def test_what_a_branch_found_is_told_with_its_own_ranks() -> None:
    ranking = building.build(composed(["source=branches", "embedder=hashing"]), "memory").ranking
    with lived_in(60) as memory:
        assert isinstance(memory, Memory)
        (batch,) = memory.batches([Query("q", TEXTS[0], YEARS_LATER)], ranking)
        found = ranking.found_by(batch)
    assert set(found["branch"]) >= {"dense", "lexical", "session"}
    for _, rows in found.group_by("branch"):
        assert rows["rank"].to_list() == list(range(1, len(rows) + 1))
        assert rows["score"].is_sorted(descending=True)
