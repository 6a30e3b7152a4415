"""Everything behind fusion: all queries at once against a loop in numpy, and against ourselves, a query at a time."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from eval.benchmark.timing import Comparison, DisagreementError, RoundTimes, Target, compared_rates, take_turns
from lcm.protocols.retrieval import Batch, Stage
from lcm.retrieval.ranking.ordering import best_first, with_rank
from lcm.retrieval.ranking.stages.diversity import Diversity
from tests.support.numpy_twins import stages as numpy_stages
from tests.support.numpy_twins.fused import FusedBatch, FusedSizes

LOOP_TARGET = Target("at least", 3)
ONE_BY_ONE_TARGET = Target("at least", 20)

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class PostFusion(FusedSizes):
    """The stages over one frame of all queries against a loop over the queries, each stage vectorised in numpy.

    Both are given document ids, and find texts and vectors by them.
    """

    stages: Mapping[str, Stage | None]
    """In the order to run; null leaves one out."""

    def __post_init__(self) -> None:
        FusedSizes.__post_init__(self)
        numpy_stages.check(_chosen(self.stages))

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        stages = _chosen(self.stages)
        made = self.fused_batch(seed)
        rounds = _against_loop([(made.frame, made.batch)], made, stages, repeats)
        facts = self.facts | {"returned": len(_passed(made.frame, made.batch, stages)) / self.queries}
        return [compared_rates("post-fusion", "queries/s", self.queries, rounds, LOOP_TARGET, facts)]


@dataclass(frozen=True, slots=True)
class OneByOne(FusedSizes):
    """The stages over one frame of all queries against the same stages over a frame a query.

    The facts p50_ms and p95_ms say how long a query takes that is asked alone.
    """

    stages: Mapping[str, Stage | None]
    """In the order to run; null leaves one out."""

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        stages = _chosen(self.stages)
        made = self.fused_batch(seed)
        parts = made.parts(1)
        rounds_s: list[list[float]] = []

        def one_by_one() -> pl.DataFrame:
            answers, instants_s = [], [time.perf_counter()]
            for frame, batch in parts:
                answers.append(_passed(frame, batch, stages))
                instants_s.append(time.perf_counter())
            rounds_s.append(np.diff(instants_s).tolist())
            return pl.concat(answers)

        rounds = take_turns(
            lambda: lambda: _passed(made.frame, made.batch, stages), lambda: one_by_one, _check_same, repeats
        )
        p50_ms, p95_ms = (1000 * np.percentile(rounds_s[1:], [50, 95])).tolist()
        facts = self.facts | {"p50_ms": p50_ms, "p95_ms": p95_ms}
        return [compared_rates("post-fusion, one by one", "queries/s", self.queries, rounds, ONE_BY_ONE_TARGET, facts)]


@dataclass(frozen=True, slots=True)
class DiversityWalk(FusedSizes):
    """`Diversity` against a walk down the ranks of each query, its cosines by one product in numpy."""

    stage: Diversity
    batch_sizes: Sequence[int]
    """Queries that ours gets at once."""

    def __post_init__(self) -> None:
        FusedSizes.__post_init__(self)
        if not self.batch_sizes or min(self.batch_sizes) < 1:
            raise ValueError(f"batch_sizes must name sizes >= 1, got {list(self.batch_sizes)}")

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        made = self.fused_batch(seed)
        return [
            compared_rates(
                f"diversity, {size} a batch",
                "queries/s",
                self.queries,
                _against_loop(made.parts(size), made, [self.stage], repeats),
                None,
                self.facts,
            )
            for size in self.batch_sizes
        ]


def _against_loop(
    parts: Sequence[tuple[pl.DataFrame, Batch]], made: FusedBatch, stages: Sequence[Stage], repeats: int
) -> RoundTimes:
    """Time the stages over frames of some queries each, and the loop over all of them."""
    check = _agreement(made.frame)
    return take_turns(
        lambda: lambda: pl.concat([_passed(frame, batch, stages) for frame, batch in parts]),
        lambda: lambda: numpy_stages.rank(made.rows, stages),
        check,
        repeats,
    )


def _passed(frame: pl.DataFrame, batch: Batch, stages: Sequence[Stage]) -> pl.DataFrame:
    """What the stages make of a frame: query_id, document_id, rank, score."""
    for stage in stages:
        frame = stage(frame, batch)
    return with_rank(best_first(frame)).select("query_id", "document_id", "rank", "score")


def _agreement(frame: pl.DataFrame) -> Callable[[pl.DataFrame, Sequence[numpy_stages.Ranked]], None]:
    """The check that the loop left the same rows of the frame in the same order, with the same scores."""

    def check(ours: pl.DataFrame, bare: Sequence[numpy_stages.Ranked]) -> None:
        places, scores = (np.concatenate(part) for part in zip(*bare, strict=True))
        theirs = frame.select("query_id", "document_id")[places]
        if not ours.select("query_id", "document_id").equals(theirs):
            raise DisagreementError("the stages and the loop in numpy gave different orders")
        if not np.allclose(ours["score"].to_numpy(), scores, rtol=0, atol=_TOLERANCE):
            raise DisagreementError("the stages and the loop in numpy gave different scores")

    return check


def _check_same(ours: pl.DataFrame, bare: pl.DataFrame) -> None:
    if not ours.equals(bare):
        raise DisagreementError("all queries at once and one by one gave different answers")


def _chosen(stages: Mapping[str, Stage | None]) -> list[Stage]:
    return [stage for stage in stages.values() if stage is not None]
