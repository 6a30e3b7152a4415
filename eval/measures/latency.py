"""Latency of live queries: one at a time, nothing cached, end to end and by part."""

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self, cast

import numpy as np
import polars as pl

from lcm.memory.memory import Memory
from lcm.protocols import Embedder
from lcm.records import Query
from lcm.retrieval.indexes import Indexes

PARTS = ("total", "embed", "dense", "lexical", "ranking")


@dataclass(frozen=True, slots=True)
class Latency:
    """How many queries are timed; 0 switches the measurement off."""

    queries: int = 100
    warmup_queries: int = 5
    """Asked first in each workspace and not counted."""

    def __post_init__(self) -> None:
        for name in ("queries", "warmup_queries"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be >= 0, got {getattr(self, name)}")

    def chosen(self, queries: Sequence[Query]) -> list[Query]:
        """Evenly spread over the dataset, so that every workspace has its share."""
        if len(queries) <= self.queries:
            return list(queries)
        return [queries[i] for i in np.linspace(0, len(queries) - 1, self.queries).round().astype(int)]

    def measure(
        self, memory: Memory, embedder: Embedder, queries: Sequence[Query], others: Sequence[Query] = ()
    ) -> list[dict[str, float]]:
        """Milliseconds per part for each query: embedding, the two indexes, and the ranking around them.

        `others` are asked first to warm up; where there are none, the queries themselves.
        """
        with _Timed(memory) as timed:
            for query in (others or queries)[: self.warmup_queries]:
                timed.ask(query, embedder)
            return [timed.ask(query, embedder) for query in queries]


def percentiles(samples: Sequence[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Part -> p50, p95, p99 in milliseconds, and the number of queries."""
    if not samples:
        return {}
    return {
        part: {
            **{f"p{q}_ms": float(np.percentile([sample[part] for sample in samples], q)) for q in (50, 95, 99)},
            "n": len(samples),
        }
        for part in PARTS
    }


class _Timed:
    """A memory whose indexes note how long they take."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._indexes = memory.live.indexes

    def __enter__(self) -> Self:
        self._dense = _Stopwatch(self._indexes.vector_index)
        self._lexical = _Stopwatch(None)
        self._memory.live.indexes = cast(Indexes, _TimedIndexes(self._indexes, self._dense, self._lexical))
        # The recorded dataset is the harness's, not the memory's: the garbage collector need not walk it each time.
        gc.collect()
        gc.freeze()
        return self

    def __exit__(self, *_: object) -> None:
        gc.unfreeze()
        self._memory.live.indexes = self._indexes

    def ask(self, query: Query, embedder: Embedder) -> dict[str, float]:
        self._dense.milliseconds = self._lexical.milliseconds = 0.0
        start = time.perf_counter()
        vectors = None
        if self._memory.system.ranking.needs_vectors:
            vectors = embedder.embed([query.text], "query")
        embedded = time.perf_counter()
        self._memory.rank([query], vectors=vectors)
        total, embed = (time.perf_counter() - start) * 1000, (embedded - start) * 1000
        dense, lexical = self._dense.milliseconds, self._lexical.milliseconds
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
    vector_index: "_Stopwatch"
    lexical: "_Stopwatch"

    def text_index(self, scopes: Sequence[str] | None, documents: pl.DataFrame) -> "_Stopwatch":
        self.lexical.index = self.indexes.text_index(scopes, documents)
        return self.lexical

    def __getattr__(self, name: str) -> Any:
        return getattr(self.indexes, name)


@dataclass
class _Stopwatch:
    """An index, with its searches timed."""

    index: Any
    milliseconds: float = field(default=0.0)

    def search(self, *arguments: Any) -> Any:
        start = time.perf_counter()
        try:
            return self.index.search(*arguments)
        finally:
            self.milliseconds += (time.perf_counter() - start) * 1000

    def __getattr__(self, name: str) -> Any:
        return getattr(self.index, name)

    def __len__(self) -> int:
        return len(self.index)
