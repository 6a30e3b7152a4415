"""Everything behind fusion: all queries at once against a loop in numpy, and against ourselves, a query at a time."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from eval.benchmark import numpy_stages
from eval.benchmark.fused import Fused, fused
from eval.benchmark.timing import Comparison, DisagreementError, Target, compared_rates, take_turns
from lcm.protocols import Batch, Stage
from lcm.ranking.diversity import Diversity
from lcm.ranking.ordering import best_first, with_rank

LOOP_TARGET = Target("at least", 3)
ONE_BY_ONE_TARGET = Target("at least", 20)

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class PostFusion:
    """The stages over one frame of all queries against a loop over the queries, each stage vectorised in numpy.

    Ours finds texts and vectors by id; the loop has them in the order of the rows.
    """

    stages: Mapping[str, Stage | None]
    """In the order to run; null leaves one out."""
    queries: int
    candidates: int
    dim: int

    def __post_init__(self) -> None:
        check_sizes(self)

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        stages, made = _chosen(self.stages), fused(self.queries, self.candidates, self.dim, seed)

        def check(ours: pl.DataFrame, bare: Sequence[numpy_stages.Ranked]) -> None:
            check_ranking(ours, bare, made)

        rounds = take_turns(
            lambda: lambda: passed(made.frame, made.batch, stages),
            lambda: lambda: numpy_stages.rank(made.rows, stages),
            check,
            repeats,
        )
        facts = {
            "queries": self.queries,
            "candidates": self.candidates,
            "dim": self.dim,
            "returned": len(passed(made.frame, made.batch, stages)) / self.queries,
        }
        return [compared_rates("post-fusion, a loop in numpy", "queries/s", self.queries, rounds, LOOP_TARGET, facts)]


@dataclass(frozen=True, slots=True)
class OneByOne:
    """The stages over one frame of all queries against the same stages over a frame a query.

    The facts p50_ms and p95_ms say how long one query takes by itself.
    """

    stages: Mapping[str, Stage | None]
    """In the order to run; null leaves one out."""
    queries: int
    candidates: int
    dim: int

    def __post_init__(self) -> None:
        check_sizes(self)

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        stages, made = _chosen(self.stages), fused(self.queries, self.candidates, self.dim, seed)
        parts = made.one_by_one()
        live_s: list[list[float]] = []

        def one_by_one() -> list[pl.DataFrame]:
            answers, ends_s = [], [time.perf_counter()]
            for frame, batch in parts:
                answers.append(passed(frame, batch, stages))
                ends_s.append(time.perf_counter())
            live_s.append(np.diff(ends_s).tolist())
            return answers

        rounds = take_turns(
            lambda: lambda: passed(made.frame, made.batch, stages), lambda: one_by_one, check_same, repeats
        )
        p50_ms, p95_ms = (1000 * np.percentile(live_s[1:], [50, 95])).tolist()
        facts = {
            "queries": self.queries,
            "candidates": self.candidates,
            "dim": self.dim,
            "p50_ms": p50_ms,
            "p95_ms": p95_ms,
        }
        return [
            compared_rates("post-fusion, one by one", "queries/s", self.queries, rounds, ONE_BY_ONE_TARGET, facts)
        ]


@dataclass(frozen=True, slots=True)
class DiversityWalk:
    """`Diversity` over many candidates against the walk down each query's ranks, its cosines by one product."""

    stage: Diversity
    queries: int
    candidates: int
    dim: int
    batch_sizes: Sequence[int]
    """Queries that ours is given at once."""

    def __post_init__(self) -> None:
        check_sizes(self)
        if not self.batch_sizes or min(self.batch_sizes) < 1:
            raise ValueError(f"batch_sizes must name sizes >= 1, got {list(self.batch_sizes)}")

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        return [self._compare(batch_size, repeats, seed) for batch_size in self.batch_sizes]

    def _compare(self, batch_size: int, repeats: int, seed: int) -> Comparison:
        ...


def passed(frame: pl.DataFrame, batch: Batch, stages: Sequence[Stage]) -> pl.DataFrame:
    """What the stages make of a frame: query_id, document_id, rank, score."""
    for stage in stages:
        frame = stage(frame, batch)
    return with_rank(best_first(frame)).select("query_id", "document_id", "rank", "score")
