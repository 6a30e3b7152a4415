"""Paths: one map of stages, and for each kind of query its own source and order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import polars as pl

from lcm.checks import check_choice
from lcm.protocols.retrieval import Batch, Source, Stage
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.source.tagged import TagPrefixes


@dataclass(frozen=True, slots=True)
class RankingPath:
    """One path of a routed ranking: its source, and by the name of an order the stages that its rows pass."""

    source: Source
    orders: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class RoutedRanking:
    """memory-lancedb-pro's three ways to answer.

    A query that names a tag goes the way of `tag`; any other goes that of `mode`. All share their stages, so that a
    number is tuned once; `order` names the order that each of them has for its own.
    """

    stages: Mapping[str, Stage]
    hybrid: RankingPath
    vector: RankingPath
    tag: RankingPath
    order: str
    mode: Literal["hybrid", "vector"] = "hybrid"
    tags: TagPrefixes = field(default_factory=TagPrefixes)

    def __post_init__(self) -> None:
        check_choice(self, mode=("hybrid", "vector"))
        for name in ("hybrid", "vector", "tag"):
            try:
                self.ranking(name)
            except (TypeError, ValueError) as error:
                raise type(error)(f"{name}: {error}") from error

    def ranking(self, name: str) -> Ranking:
        """One path: hybrid, vector or tag."""
        path: RankingPath = getattr(self, name)
        if self.order not in path.orders:
            raise ValueError(f"order must be one of {', '.join(path.orders)}, got {self.order!r}")
        return Ranking(path.source, self.stages, path.orders[self.order])

    @property
    def needs_vectors(self) -> bool:
        return self.ranking(self.mode).needs_vectors

    def rank(self, batch: Batch) -> pl.DataFrame:
        """`Ranking.rank`, each query by its own path."""
        return self._joined([ranking.rank(part) for ranking, part in self._parts(batch)], batch)

    def trace(self, batch: Batch) -> pl.DataFrame:
        """`Ranking.trace`, each query by its own path."""
        return self._joined([ranking.trace(part) for ranking, part in self._parts(batch)], batch)

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
