"""Latency of live queries: one at a time, nothing cached, end to end and by part."""

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
import polars as pl

from eval.measures.measure import Direction, MemoryReading
from eval.stopwatch import Stopwatch
from lcm.checks import check_range
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.records.query import Query
from lcm.retrieval.embedder.cache import CachedEmbedder
from lcm.retrieval.indexes import Indexes

_PERCENTILES = (50, 95, 99)
PARTS = ("total", "embed", "dense", "lexical", "ranking")


@dataclass(frozen=True, slots=True)
class Latency:
    """Times live queries one at a time; `queries` = 0 times none."""

    queries: int = 100
    warmup_queries: int = 5
    """Asked first in each workspace and not counted."""

    def __post_init__(self) -> None:
        check_range(self, "queries", "warmup_queries", ge=0)

    def timed_queries(self) -> int:
        return self.queries

    def value_names(self) -> list[str]:
        return [f"latency/{part}_p{q}_ms" for part in PARTS for q in _PERCENTILES] if self.queries else []

    def direction(self, value: str) -> Direction:
        return "lower"

    def depends_on(self, system: System) -> None:
        """No two measurements are equal."""

    def chosen(self, queries: Sequence[Query]) -> list[Query]:
        """Evenly spread over the dataset, so that every workspace has its share."""
        if len(queries) <= self.queries:
            return list(queries)
        return [queries[i] for i in np.linspace(0, len(queries) - 1, self.queries).round().astype(int)]

    def of_memory(self, reading: MemoryReading) -> pl.DataFrame:
        """Milliseconds by part for each chosen query: embedding, the two indexes, and the ranking around them.

        The other queries are asked first to warm up; where there are none, the chosen ones.
        """
        chosen = {query.query_id for query in self.chosen(reading.dataset.queries)}
        timed = [query for query in reading.queries if query.query_id in chosen]
        others = [query for query in reading.queries if query.query_id not in chosen]
        rows = []
        if timed:
            with _TimedMemory(reading.memory) as memory:
                for query in (others or timed)[: self.warmup_queries]:
                    memory.ask(query)
                rows = [memory.ask(query) for query in timed]
        return pl.DataFrame(rows, schema=dict.fromkeys(PARTS, pl.Float64))

    def section(self, rows: pl.DataFrame) -> dict[str, dict[str, float]]:
        """Part -> p50, p95, p99 in milliseconds, and the number of queries."""
        if rows.is_empty():
            return {}
        return {
            part: {**{f"p{q}_ms": float(np.percentile(rows[part], q)) for q in _PERCENTILES}, "n": len(rows)}
            for part in PARTS
        }


class _TimedMemory:
    """A memory whose indexes note how long they take, and whose queries are embedded anew each time."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._indexes = memory.live.indexes
        embedder = memory.system.embedder
        self._embedder = embedder.embedder if isinstance(embedder, CachedEmbedder) else embedder

    def __enter__(self) -> Self:
        self._dense = Stopwatch(self._indexes.vector_index, "search")
        self._lexical = Stopwatch(None, "search")
        self._memory.live.indexes = cast(Indexes, _TimedIndexes(self._indexes, self._dense, self._lexical))
        # The recorded dataset is the harness's, not the memory's: the garbage collector need not walk it each time.
        gc.collect()
        gc.freeze()
        return self

    def __exit__(self, *_: object) -> None:
        gc.unfreeze()
        self._memory.live.indexes = self._indexes

    def ask(self, query: Query) -> dict[str, float]:
        self._dense.seconds = self._lexical.seconds = 0.0
        start = time.perf_counter()
        vectors = None
        if self._memory.system.ranking.needs_vectors:
            vectors = self._embedder.embed([query.text], "query")
        embedded = time.perf_counter()
        self._memory.rank([query], vectors=vectors)
        total, embed = (time.perf_counter() - start) * 1000, (embedded - start) * 1000
        dense, lexical = 1000 * self._dense.seconds, 1000 * self._lexical.seconds
        return {
            "total": total,
            "embed": embed,
            "dense": dense,
            "lexical": lexical,
            "ranking": total - embed - dense - lexical,
        }


@dataclass
class _TimedIndexes:
    """The indexes of a memory behind stopwatches."""

    indexes: Indexes
    vector_index: Stopwatch
    lexical: Stopwatch

    def text_index(self, scopes: Sequence[str] | None, documents: pl.DataFrame) -> Stopwatch:
        self.lexical.part = self.indexes.text_index(scopes, documents)
        return self.lexical

    def __getattr__(self, name: str) -> Any:
        return getattr(self.indexes, name)
