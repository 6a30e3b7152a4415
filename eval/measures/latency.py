"""Latency of live queries: one at a time, nothing cached, end to end and by part."""

import gc
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, cast, runtime_checkable

import numpy as np
import polars as pl

from eval.measures.means import Means
from eval.measures.measure import Direction, Measure, MemoryReading
from eval.measures.noted_index import noted, way
from eval.stopwatch import Stopwatch
from lcm.checks import check_range
from lcm.memory.memory import Memory
from lcm.protocols.contract import contract_of
from lcm.protocols.retrieval import Approximate, Tiered
from lcm.records.query import Query
from lcm.retrieval.embedder.cache import CachedEmbedder
from lcm.retrieval.indexes import Indexes

_PERCENTILES = (50, 95, 99)
PARTS = ("total", "embed", "dense", "lexical", "ranking")
OF_OTHERS = ("total", "memory", "transport")
"""The parts of an external memory: its own time, where it tells it, and that of the way there and back."""
_SCHEMA = {**dict.fromkeys((*PARTS, *OF_OTHERS[1:], "dense_exact"), pl.Float64), "way": pl.String}


@runtime_checkable
class TellsTimes(Protocol):
    """A ranker whose answers were timed when they were given."""

    @property
    def asked(self) -> pl.DataFrame:
        """query_id, round_trip_ms, took_ms (null: nobody told), fault (null: there was none)."""
        ...


@dataclass(frozen=True, slots=True)
class Latency(Measure):
    """Times live queries one at a time; `queries` = 0 times none."""

    subject = "memory"
    is_of_time = True

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

    def chosen(self, queries: Sequence[Query]) -> list[Query]:
        """Evenly spread over the dataset, so that every workspace has its share."""
        if len(queries) <= self.queries:
            return list(queries)
        return [queries[i] for i in np.linspace(0, len(queries) - 1, self.queries).round().astype(int)]

    def rows(self, reading: MemoryReading) -> pl.DataFrame:
        """Milliseconds by part for each chosen query: embedding, the two indexes, and the ranking around them.

        The other queries are asked first to warm up; where there are none, the chosen ones. Of an external memory it is
        what was seen when it was asked.
        """
        chosen = {query.query_id for query in self.chosen(reading.dataset.queries)}
        timed = [query for query in reading.queries if query.query_id in chosen]
        if isinstance(reading.memory.system.ranking, TellsTimes):
            return _told(reading.memory.system.ranking, chosen)
        others = [query for query in reading.queries if query.query_id not in chosen]
        rows = []
        if timed:
            with _TimedMemory(reading.memory) as memory:
                for query in (others or timed)[: self.warmup_queries]:
                    memory.ask(query)
                rows = [memory.ask(query) for query in timed]
        return pl.DataFrame(rows, schema=_SCHEMA)

    def section(self, rows: pl.DataFrame, means: Means) -> dict[str, dict[str, float]]:
        """Part -> p50, p95, p99 in milliseconds, and the number of queries. Of an external memory the parts are its own
        time (`memory`) and the way there and back (`transport`), where it tells its own; else there is `total` alone.

        Of a vector index that may miss documents also `dense_exact`, the same searches by exact search, each after its
        own; `dense_graph_64`, those that a graph of 64 numbers answered, and `dense_exact_graph_64`, the same
        searches by exact search, and so on. `slower` says how many of these took exact search longer.
        """
        if rows.is_empty():
            return {}
        parts = [part for part in dict.fromkeys((*PARTS, *OF_OTHERS)) if rows[part].count()]
        told = {part: _percentiles(rows[part].drop_nulls()) for part in parts}
        if rows["way"].null_count() < len(rows):
            paired = rows.filter(pl.col("way").is_not_null())
            told["dense_exact"] = _of_exact(paired)
            for name in paired["way"].unique().sort():
                own = paired.filter(way=name)
                told[f"dense_{name}"] = _percentiles(own["dense"])
                told[f"dense_exact_{name}"] = _of_exact(own)
        return told


def _told(ranking: TellsTimes, chosen: Collection[str]) -> pl.DataFrame:
    """The times of answers that were given before: of the chosen queries that were answered."""
    asked = ranking.asked.filter(pl.col("query_id").is_in(list(chosen)), pl.col("fault").is_null())
    rows = asked.select(total="round_trip_ms", memory="took_ms", transport=pl.col("round_trip_ms") - pl.col("took_ms"))
    return rows.match_to_schema(pl.Schema(_SCHEMA), missing_columns="insert")


def _percentiles(times: pl.Series) -> dict[str, float]:
    return {**{f"p{q}_ms": float(np.percentile(times, q)) for q in _PERCENTILES}, "n": len(times)}


def _of_exact(rows: pl.DataFrame) -> dict[str, float]:
    slower = rows.filter(pl.col("dense_exact") > pl.col("dense"))
    return {**_percentiles(rows["dense_exact"]), "slower": len(slower)}


class _TimedMemory:
    """A memory whose indexes note how long they take, and whose queries are embedded anew each time."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._indexes = memory.live.indexes
        embedder = memory.system.embedder
        self._embedder = embedder.embedder if isinstance(embedder, CachedEmbedder) else embedder

    def __enter__(self) -> Self:
        index = self._indexes.vector_index
        self._noted = noted(index) if isinstance(index, Approximate) else None
        work = ("search", "search_tiers") if isinstance(index, Tiered) else ("search",)
        self._dense = Stopwatch(index if self._noted is None else self._noted, *work)
        self._lexical = Stopwatch(None, "search")
        self._memory.live.indexes = cast(Indexes, _TimedIndexes(self._indexes, self._dense, self._lexical))
        # The recorded dataset is the harness's, not the memory's: the garbage collector need not walk it each time.
        gc.collect()
        gc.freeze()
        return self

    def __exit__(self, *_: object) -> None:
        gc.unfreeze()
        self._memory.live.indexes = self._indexes

    def ask(self, query: Query) -> dict[str, float | str | None]:
        self._dense.seconds = self._lexical.seconds = 0.0
        start = time.perf_counter()
        vectors = None
        if contract_of(self._memory.system.ranking).needs_vectors:
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
            **self._beside_exact(),
        }

    def _beside_exact(self) -> dict[str, float | str | None]:
        """How the last query was answered by an index that may miss documents, and how long exact search takes."""
        if self._noted is None or not self._noted.searches:
            return {"dense_exact": None, "way": None}
        searches, self._noted.searches = self._noted.searches, []
        start = time.perf_counter()
        for one in searches:
            self._noted.index.exact.search(one.vectors, one.k, one.allowed)
        ways = {way(answer) for one in searches for answer in one.answers}
        return {
            "dense_exact": 1000 * (time.perf_counter() - start),
            "way": ways.pop() if len(ways) == 1 else "several",
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
