"""Steps that give scores alone and are then cut are passed at once: what comes out is what one by one gives."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from lcm.memory.memory import Memory
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from lcm.retrieval.frames import beside, best, best_by, best_first, order_moves, query_numbers
from lcm.retrieval.fusion import Learnt
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.stages.selection import Crowding, Limit, NearDuplicates
from lcm.retrieval.source.indexes import Hybrid
from tests.support.workspaces import minute, system

SCORES = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])


@dataclass(frozen=True)
class Rows:
    """Rows of some queries, and two scores of each."""

    frame: pl.DataFrame
    first: np.ndarray
    second: np.ndarray


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    ids = [f"q{number}" for number, size in enumerate(sizes) for _ in range(size)]
    frame = pl.DataFrame({"query_id": ids, "document_id": [f"d{row}" for row in range(len(ids))]})
    first = np.array([draw(SCORES) for _ in ids])
    factors = draw(st.sampled_from([(1.0,), (0.7,), (1.0, 0.5)]))
    return Rows(frame, first, first * np.array([draw(st.sampled_from(factors)) for _ in ids]))


def sorted_by(frame: pl.DataFrame, score: np.ndarray) -> pl.DataFrame:
    of = dict(zip((f"d{row}" for row in range(len(score))), score, strict=True))
    return best_first(beside(frame, [pl.Series("score", [of[one] for one in frame["document_id"]])]))


@given(rows(), st.integers(1, 12))
def test_the_first_rows_are_those_of_sorting_by_one_score_after_another(of: Rows, n: int) -> None:
    one_by_one = best(sorted_by(sorted_by(of.frame, of.first), of.second), n)
    first = best_by([of.first, of.second], query_numbers(of.frame), n)
    assert of.frame[first]["document_id"].equals(one_by_one["document_id"])


@given(rows())
def test_an_order_moves_where_sorting_by_the_next_score_changes_it(of: Rows) -> None:
    before = sorted_by(of.frame, of.first)
    is_moved = not before["document_id"].equals(sorted_by(before, of.second)["document_id"])
    queries = query_numbers(of.frame)
    assert order_moves([of.first], of.second, queries) == is_moved
    assert order_moves([of.first, of.first], of.second, queries) == is_moved


WORDS = st.lists(st.sampled_from(["red", "blue", "green", "grey"]), min_size=1, max_size=3)
SAID = st.lists(st.tuples(WORDS, st.sampled_from("abc")), min_size=1, max_size=14)
WEIGHTS = st.fixed_dictionaries({name: st.floats(-3, 3) for name in ("seq", "cosine", "bm25")})


@settings(deadline=None, max_examples=60)
@given(SAID, WEIGHTS, st.integers(1, 3))
def test_what_is_fused_crowded_and_walked_down_is_what_one_step_after_another_gives(
    said: list[tuple[list[str], str]], weights: dict[str, float], n: int
) -> None:
    stages = {
        "fusion": Learnt(weights), "crowding": Crowding(0.5, "session"),
        "near_duplicates": NearDuplicates(0.5, n), "limit": Limit(n),
    }  # fmt: skip
    messages = [Message(f"m{i}", "user", " ".join(words), of, minute(i)) for i, (words, of) in enumerate(said)]
    with Memory.open(system(ranking=Ranking(Hybrid(1000, 1000), stages))) as memory:
        memory.ingest(Transcript("talk", tuple(messages)))
        queries = [Query("q", "red", minute(99)), Query("r", "green grey", minute(99))]
        found, trace = memory.rank(queries), memory.trace(queries).filter(stage="limit")
        columns = ["query_id", "document_id", "rank", "score", "stands_for"]
        assert_frame_equal(found.select(columns), trace.select(columns))
