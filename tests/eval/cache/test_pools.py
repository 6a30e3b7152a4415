"""What rankings begin with is kept: found once for all that begin alike, and as without a cache."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from eval.cache import pools
from eval.cache.pools import with_cached_pools
from eval.cache.stage_cache import FrameCache, StageCache
from lcm.memory.memory import Memory
from lcm.protocols.retrieval import Columns, Numbers
from lcm.records.query import Query
from lcm.retrieval.decay import Exponential, Weibull
from lcm.retrieval.fusion import WeightedSum
from lcm.retrieval.ranking import pipeline
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.stages.scores import DecayBoost, InverseDistance, Sigmoid
from lcm.retrieval.source.indexes import Hybrid
from pipelines.config import building
from tests.support import kinds
from tests.support.composing import composed
from tests.support.workspaces import transcript


def ranking(dense_weight: float) -> Ranking:
    return Ranking(
        Hybrid(),
        {"dense": InverseDistance(), "lexical": Sigmoid(scale=5.0), "fusion": WeightedSum(dense_weight=dense_weight)},
    )


def surviving(frame: pl.DataFrame, batch: pools.Batch) -> pl.DataFrame:
    batch.incidents["survived"] += 1
    return frame


def counted(monkeypatch: pytest.MonkeyPatch, name: str, *modules: ModuleType) -> list[Any]:
    """The first argument of each call of a function, wherever it is called from."""
    calls, plain = [], getattr(modules[0], name)

    def call(*arguments: Any) -> pl.DataFrame:
        calls.append(arguments[0])
        found: pl.DataFrame = plain(*arguments)
        return found

    for module in modules:
        monkeypatch.setattr(module, name, call)
    return calls


def test_rankings_that_begin_alike_are_described_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described = counted(monkeypatch, "describe", pools)
    frames = FrameCache(StageCache(str(tmp_path)))
    with kinds.workspace() as memory:
        asked = kinds.questions()
        batches = len(memory.batches(asked, ranking(0.5)))
        for weight in (0.5, 0.9, 0.1):
            kept = with_cached_pools(ranking(weight), frames, "memory")
            assert memory.rank(asked, kept).equals(memory.rank(asked, ranking(weight)))
        assert len(described) == batches
        memory.rank(asked[:1], with_cached_pools(ranking(0.5), frames, "memory"))
        memory.rank(asked, with_cached_pools(ranking(0.5), frames, "another memory"))
        assert len(described) == 2 * batches + 1


def test_steps_that_rankings_share_are_passed_twice_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they survived is counted each time."""
    steps = counted(monkeypatch, "passed", pipeline, pools)
    frames = FrameCache(StageCache(str(tmp_path)))
    with kinds.workspace() as memory:
        asked, found = kinds.questions(), []
        batches = len(memory.batches(asked, ranking(0.5)))
        for weight in (0.5, 0.9, 0.1, 0.3):
            wanted = Ranking(Hybrid(), {"survives": surviving, **ranking(weight).stages})
            memory.rank(asked, with_cached_pools(wanted, frames, "memory"))
            found.append(memory.incidents["survived"])
    assert Counter(steps) == dict.fromkeys(("survives", "dense", "lexical"), 2 * batches) | {"fusion": 4 * batches}
    assert found[0] > 0
    assert found == [number * found[0] for number in (1, 2, 3, 4)]


def test_slots_act_alike_behind_shared_steps(tmp_path: Path) -> None:
    frames = FrameCache(StageCache(str(tmp_path)))
    with kinds.workspace() as memory:
        asked = kinds.questions()
        for half_life in (3.0, 30.0, 300.0, 3.0):
            decay = DecayBoost(decay=Weibull(recency_lifts=True, recency_half_life_days=half_life))
            wanted = Ranking(Hybrid(), {**ranking(0.5).stages, "decay": decay})
            kept, plain = Counter[str](), Counter[str]()
            answers = memory.rank(asked, with_cached_pools(wanted, frames, "memory"), acted=kept)
            assert answers.equals(memory.rank(asked, wanted, acted=plain))
            assert kept == plain
    assert plain["decay"]


def test_a_decay_of_kept_candidates_is_worked_out_once_a_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all queries are asked at one instant; the answers are those of each row worked out by itself."""
    sizes: list[int] = []
    for decay in (Weibull, Exponential):
        plain = decay.multiplier

        def counted(self: Any, columns: Columns, plain: Any = plain) -> Numbers:
            sizes.append(len(columns))
            return plain(self, columns)

        monkeypatch.setattr(decay, "multiplier", counted)
    frames = FrameCache(StageCache(str(tmp_path)))
    with kinds.workspace() as memory:
        latest = max(query.asked_at for query in kinds.questions())
        asked = [replace(query, asked_at=latest) for query in kinds.questions()]
        for boost in (DecayBoost(decay=Weibull(recency_lifts=True)), DecayBoost(decay=Exponential())):
            wanted = Ranking(Hybrid(), {**ranking(0.5).stages, "decay": boost})
            by_row = memory.rank(asked, wanted)
            each, sizes[:] = sum(sizes), []
            assert memory.rank(asked, with_cached_pools(wanted, frames, "memory")).equals(by_row)
            assert 0 < sum(sizes) < each
            sizes.clear()


@pytest.mark.parametrize(
    ("overrides", "swept"),
    [
        (["system=unified"], "fusion.weights.words_window"),
        (["system=hybrid", "decay=weibull"], "fusion.dense_weight"),
    ],
)
def test_what_is_swept_most_is_cut_at_once_behind_shared_steps(
    overrides: list[str], swept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut, cut_at_once = list[bool](), Ranking._cut_at_once

    def noted(self: Ranking, *given: Any) -> Any:
        found = cut_at_once(self, *given)
        cut.append(found is not None)
        return found

    monkeypatch.setattr(Ranking, "_cut_at_once", noted)
    frames = FrameCache(StageCache(str(tmp_path)))
    for value in (0.25, 0.5, 0.75):
        built = building.build(composed([*overrides, "embedder=hashing", f"{swept}={value}"]), "memory")
        with Memory.open(built) as memory:
            memory.ingest(transcript([f"{text}, pen {i}" for i, text in enumerate(10 * kinds.NEAR)], "talk"))
            asked = [Query("q", "the kettle", kinds.ASKED_AT), Query("r", "pen 3", kinds.ASKED_AT)]
            plain = memory.rank(asked)
            kept = memory.rank(asked, with_cached_pools(built.ranking, frames, "memory"))
            assert_frame_equal(kept, plain, rel_tol=0, abs_tol=1e-9)  # deviations are added in another order
    assert cut[-1]
