"""Candidates that are kept: described once for all rankings that begin alike, and as without a cache."""

from pathlib import Path

import polars as pl
import pytest

from eval.cache import pools
from eval.cache.frame_cache import FrameCache
from eval.cache.pools import with_cached_pools
from eval.cache.stage_cache import StageCache
from lcm.retrieval.fusion.weighted_sum import WeightedSum
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.stages.inverse_distance import InverseDistance
from lcm.retrieval.ranking.stages.sigmoid import Sigmoid
from lcm.retrieval.source.hybrid import Hybrid
from tests.support import kinds


def ranking(dense_weight: float) -> Ranking:
    return Ranking(
        Hybrid(),
        {"dense": InverseDistance(), "lexical": Sigmoid(scale=5.0), "fusion": WeightedSum(dense_weight=dense_weight)},
    )


def test_rankings_that_begin_alike_are_described_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described = 0
    plain = pools.describe

    def counted(candidates: pl.DataFrame, batch: pools.Batch) -> pl.DataFrame:
        nonlocal described
        described += 1
        return plain(candidates, batch)

    monkeypatch.setattr(pools, "describe", counted)
    frames = FrameCache(StageCache(str(tmp_path)))
    with kinds.workspace() as memory:
        asked = kinds.questions()
        batches = len(memory.batches(asked, ranking(0.5)))
        for weight in (0.5, 0.9, 0.1):
            kept = with_cached_pools(ranking(weight), frames, "memory")
            assert memory.rank(asked, kept).equals(memory.rank(asked, ranking(weight)))
        assert described == batches
        memory.rank(asked[:1], with_cached_pools(ranking(0.5), frames, "memory"))
        memory.rank(asked, with_cached_pools(ranking(0.5), frames, "another memory"))
        assert described == 2 * batches + 1
