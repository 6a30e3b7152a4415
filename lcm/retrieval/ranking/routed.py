"""Paths: one map of stages, and for each kind of query its own source and order."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal

import polars as pl

from lcm.checks import check_choice, check_range
from lcm.protocols.contract import Contract
from lcm.protocols.retrieval import Batch, Source, Stage
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.stages.selection import Limit
from lcm.retrieval.source.indexes import TagPrefixes


@dataclass(frozen=True, slots=True)
class RankingPath:
    """One path of a routed ranking: its source, and by the name of an order the stages that its rows pass."""

    source: Source
    orders: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class LeastPools:
    """How many documents a pool of a source holds at least, where a stage limits how many are returned.

    Source: memory-lancedb-pro, whose pools are max(candidatePoolSize, 2 limit) and never more than 20.
    """

    per_result: int = 2
    """For each document that may be returned."""
    most: int = 20
    """No pool is widened beyond; one that is larger by itself stays as it is."""

    def __post_init__(self) -> None:
        check_range(self, "per_result", "most", ge=0)

    def widened(self, source: Source, limit: int) -> Source:
        """The source with every pool that is too small for so many results made larger."""
        least = min(self.per_result * limit, self.most)
        pools = {
            each.name: max(size, least)
            for each in fields(source)  # type: ignore[arg-type]  # a component is a dataclass
            if each.name.endswith("pool_size") and isinstance(size := getattr(source, each.name), int)
        }
        return replace(source, **pools)  # type: ignore[type-var]


@dataclass(frozen=True, slots=True)
class RoutedRanking:
    """memory-lancedb-pro's three ways to answer.

    A query that names a tag goes the way of `tag`; any other goes that of `mode`. All share their stages, so that a
    number is tuned once; `order` names the order that each of them has for its own. Their pools follow the limit as
    `least_pools` says; None leaves them as their sources say.
    """

    stages: Mapping[str, Stage]
    hybrid: RankingPath
    vector: RankingPath
    tag: RankingPath
    order: str
    mode: Literal["hybrid", "vector"] = "hybrid"
    tags: TagPrefixes = field(default_factory=TagPrefixes)
    least_pools: LeastPools | None = None
    _rankings: dict[str, Ranking] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Path -> the ranking that takes it."""

    def __post_init__(self) -> None:
        check_choice(self, mode=("hybrid", "vector"))
        for name in ("hybrid", "vector", "tag"):
            try:
                self._rankings[name] = self._made(name)
            except (TypeError, ValueError) as error:
                raise type(error)(f"{name}: {error}") from error

    def ranking(self, name: str) -> Ranking:
        """One path: hybrid, vector or tag."""
        return self._rankings[name]

    def _made(self, name: str) -> Ranking:
        path: RankingPath = getattr(self, name)
        if self.order not in path.orders:
            raise ValueError(f"order must be one of {', '.join(path.orders)}, got {self.order!r}")
        order = path.orders[self.order]
        limits = [stage.n for name in order if isinstance(stage := self.stages.get(name), Limit)]
        source = path.source
        if self.least_pools is not None and limits:
            source = self.least_pools.widened(source, min(limits))
        return Ranking(source, self.stages, order)

    @property
    def contract(self) -> Contract:
        """`Ranking.contract` of the path of queries without a tag."""
        return self.ranking(self.mode).contract

    def filled_slots(self) -> list[str]:
        """`Ranking.filled_slots` of the path of queries without a tag."""
        return self.ranking(self.mode).filled_slots()

    def readers(self, columns: Collection[str]) -> list[str]:
        """`Ranking.readers` of the path of queries without a tag."""
        return self.ranking(self.mode).readers(columns)

    def rank(self, batch: Batch) -> pl.DataFrame:
        """`Ranking.rank`, each query by its own path."""
        return self._joined([ranking.rank(part) for ranking, part in self._parts(batch)], batch)

    def trace(self, batch: Batch) -> pl.DataFrame:
        """`Ranking.trace`, each query by its own path."""
        return self._joined([ranking.trace(part) for ranking, part in self._parts(batch)], batch)

    def plan(self, batch: Batch) -> pl.DataFrame:
        """`Ranking.plan`, each query by its own path."""
        return self._joined([ranking.plan(part) for ranking, part in self._parts(batch)], batch)

    def found_by(self, batch: Batch) -> pl.DataFrame:
        """`Ranking.found_by`, each query by its own path."""
        return self._joined([ranking.found_by(part) for ranking, part in self._parts(batch)], batch)

    def reasons(self, batch: Batch) -> pl.DataFrame:
        """`Ranking.reasons`, each query by its own path."""
        return self._joined([ranking.reasons(part) for ranking, part in self._parts(batch)], batch)

    def path_of(self, text: str) -> str:
        """The name of the path that a query takes."""
        return "tag" if self.tags.tags(text) else self.mode

    def _parts(self, batch: Batch) -> list[tuple[Ranking, Batch]]:
        paths = [self.path_of(text) for text in batch.queries["text"]]
        if len(set(paths)) == 1:
            return [(self.ranking(paths[0]), batch)]
        parts = []
        for name in dict.fromkeys(paths):
            rows = [row for row, path in enumerate(paths) if path == name]
            parts.append((self.ranking(name), replace(batch, queries=batch.queries[rows], vectors=batch.vectors[rows])))
        return parts

    def _joined(self, frames: Sequence[pl.DataFrame], batch: Batch) -> pl.DataFrame:
        """Put the answers of several paths into the order of the queries."""
        if len(frames) == 1:
            return frames[0]
        order = batch.queries.select("query_id").with_row_index("position")
        steps = ["step"] if "step" in frames[0].columns else []
        return (
            pl.concat(frames)
            .join(order, on="query_id", how="left", maintain_order="left")
            .sort(*steps, "position", maintain_order=True)
            .drop("position")
        )
