"""Near duplicates step back; the vectors of the original are in tests/golden."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.stages.scores import RecencyBoost
from lcm.retrieval.ranking.stages.selection import Diversity, Limit
from tests.golden.components import documents_batch
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.decay.frames import days_ago, rows

ANGLES = {"a": 0, "a2": 5, "b": 90, "b2": 85, "c": 180}
"""Documents as directions in degrees: cos 5 = 0.996, cos 85 = 0.087."""


def unit(angles: Mapping[str, float | None], asked: list[Sequence[str]] | None = None) -> Batch:
    """A batch whose documents lie in a plane; None: a document without a vector."""

    def vectors(ids: Sequence[str]) -> np.ndarray:
        if asked is not None:
            asked.append(ids)
        found = [(0.0, 0.0) if angles[i] is None else _direction(angles[i]) for i in ids]
        return np.array(found, dtype=np.float32).reshape(-1, 2)

    return replace(documents_batch([]), document_vectors=vectors)


def _direction(degrees: float) -> tuple[float, float]:
    return math.cos(math.radians(degrees)), math.sin(math.radians(degrees))


def ranked(ids: Sequence[str], query_id: str = "q") -> pl.DataFrame:
    scores = [1 - 0.01 * place for place in range(len(ids))]
    return rows(document_id=list(ids), score=scores, query_id=[query_id] * len(ids))


def by_hand(ids: Sequence[str], angles: Mapping[str, float | None], threshold: float) -> list[str]:
    """One query, document by document."""
    taken: list[str] = []
    deferred: list[str] = []
    for name in ids:
        mine = angles[name]
        near = mine is not None and any(
            angles[other] is not None and np.dot(*_float32(mine, angles[other])) > np.float32(threshold)
            for other in taken
        )
        (deferred if near else taken).append(name)
    return taken + deferred


def _float32(*degrees: float) -> list[np.ndarray]:
    return [np.array(_direction(angle), dtype=np.float32) for angle in degrees]


def test_near_is_strictly_above_the_threshold() -> None:
    angles = {"x": 0, "z": 90, "y": 180}
    for ids, expected in (("xy", "xy"), ("xyz", "xyz"), ("xzy", "xyz")):
        assert "".join(Diversity(-1)(ranked(ids), unit(angles))["document_id"]) == expected


def test_who_steps_back_stays_back_whatever_follows() -> None:
    after = Diversity()(ranked(["a", "a2", "b"]), unit(ANGLES))
    assert Limit(2)(after, unit(ANGLES))["document_id"].to_list() == ["a", "b"]
    boosted = RecencyBoost()(after.with_columns(created_at=pl.lit(days_ago(9))), unit(ANGLES))
    assert boosted["document_id"].to_list() == ["a", "b", "a2"]
    many = pl.concat([after, after.with_columns(query_id=pl.lit("r"))])
    assert Limit(2)(many, unit(ANGLES))["document_id"].to_list() == ["a", "b"] * 2


def test_the_rank_is_the_order_that_diversity_leaves() -> None:
    class Given:
        def candidates(self, batch: Batch) -> pl.DataFrame:
            rows = ranked(["a", "a2", "b"]).select("query_id", "asked_at", "document_id", "score")
            return rows.with_columns(cosine="score", index_tier=pl.lit(None, pl.Int64))

    batch = replace(unit(ANGLES), documents=documents_batch(["a", "a2", "b"]).documents)
    ranking = Ranking(Given(), {"diversity": Diversity(), "limit": Limit(3)})
    expected = [("a", 1, 1.0), ("b", 2, 0.98), ("a2", 3, 0.99)]
    assert ranking.rank(batch).select("document_id", "rank", "score").rows() == expected
    last = ranking.trace(batch).filter(pl.col("stage") == "limit")
    assert last.select("document_id", "rank", "score").rows() == expected


def test_vectors_are_asked_for_once_and_not_where_nothing_can_repeat_itself() -> None:
    asked: list[Sequence[str]] = []
    frame = pl.concat([ranked(["a", "b", "c"], "q"), ranked(["c", "a"], "r"), ranked(["b2"], "s")])
    Diversity()(frame, unit(ANGLES, asked))
    assert [sorted(ids) for ids in asked] == [["a", "b", "b2", "c"]]
    for few in (ranked(["a"]), ranked(["a"]).clear()):
        assert Diversity()(few, unit(ANGLES, asked))["document_id"].to_list() == few["document_id"].to_list()
    assert len(asked) == 1


@given(
    angles=st.lists(st.one_of(st.none(), st.integers(0, 359)), min_size=12, max_size=12),
    picks=st.lists(st.permutations(range(12)).flatmap(lambda p: st.integers(0, 12).map(lambda n: p[:n])), max_size=5),
    threshold=st.sampled_from([-0.55, 0.05, 0.855, 0.995]),  # no cosine of whole degrees is as near as rounding
)
def test_many_queries_at_once_are_walked_as_each_by_hand(
    angles: list[int | None], picks: list[list[int]], threshold: float
) -> None:
    named = {f"d{i}": angle for i, angle in enumerate(angles)}
    queries = {f"q{n}": [f"d{i}" for i in pick] for n, pick in enumerate(picks) if pick}
    if not queries:
        return
    frame = pl.concat([ranked(ids, query_id) for query_id, ids in queries.items()])
    after = Diversity(threshold)(frame, unit(named))
    found = {key: part["document_id"].to_list() for (key,), part in after.group_by("query_id", maintain_order=True)}
    assert found == {query_id: by_hand(ids, named, threshold) for query_id, ids in queries.items()}


def test_a_bad_threshold_is_refused() -> None:
    assert_refused(Diversity, "be in [-1, 1]", similarity_threshold=[-1.1, 1.1, math.nan])
