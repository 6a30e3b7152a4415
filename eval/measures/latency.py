"""How live queries are answered: how long they take, by part, and what an approximate vector index missed."""

import gc
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
import polars as pl

from eval.measures.means import Means
from eval.measures.measure import Measure, MemoryReading, SystemReading
from eval.measures.names import Direction
from eval.stopwatch import Stopwatch
from lcm.checks import check_range
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.protocols.contract import contract_of
from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import Approximate, IndexAnswer, Tiered
from lcm.records.query import Query
from lcm.retrieval.embedder.cache import CachedEmbedder
from lcm.retrieval.indexes import Indexes
from lcm.retrieval.indexing import Ranked

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

    queries: int = 50
    warmup_queries: int = 2
    """Asked first in each workspace and not counted: the first lays out what all others see."""

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
            return _of_external(reading.memory.system.ranking, chosen)
        others = [query for query in reading.queries if query.query_id not in chosen]
        rows = []
        if timed:
            with _watching(reading.memory) as watched, _frozen():
                for query in (others or timed)[: self.warmup_queries]:
                    _timed(reading.memory, watched, query)
                rows = [_timed(reading.memory, watched, query) for query in timed]
        return pl.DataFrame(rows, schema=_SCHEMA)

    def notes(self, rows: pl.DataFrame, reading: SystemReading) -> list[str]:
        embedder = reading.system.embedder
        is_cached = isinstance(embedder, CachedEmbedder) and embedder.timed is embedder
        told = "embedder.mode=replay: the times of live queries are those of looking their vectors up in the cache"
        return [told] if is_cached and not rows.is_empty() else []

    def section(self, rows: pl.DataFrame, means: Means) -> dict[str, dict[str, float]]:
        """Part -> p50, p95, p99 in milliseconds, and the number of queries. Of an external memory the parts are its own
        time (`memory`) and the way there and back (`transport`), where it tells its own; else there is `total` alone.

        Of a vector index that may miss documents also `dense_exact`, the same searches by exact search, each after its
        own; `dense_graph_64`, those that a graph of 64 numbers answered, and `dense_exact_graph_64`, the same
        searches by exact search, and so on. `slower` says how many of these took exact search longer.
        """
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


def _of_external(ranking: TellsTimes, chosen: Collection[str]) -> pl.DataFrame:
    """The times of answers that were given before: of the chosen queries that were answered."""
    asked = ranking.asked.filter(pl.col("query_id").is_in(list(chosen)), pl.col("fault").is_null())
    rows = asked.select(total="round_trip_ms", memory="took_ms", transport=pl.col("round_trip_ms") - pl.col("took_ms"))
    return rows.match_to_schema(pl.Schema(_SCHEMA), missing_columns="insert")


def _percentiles(times: pl.Series) -> dict[str, float]:
    return {**{f"p{q}_ms": float(np.percentile(times, q)) for q in _PERCENTILES}, "n": len(times)}


def _of_exact(rows: pl.DataFrame) -> dict[str, float]:
    slower = rows.filter(pl.col("dense_exact") > pl.col("dense"))
    return {**_percentiles(rows["dense_exact"]), "slower": len(slower)}


@contextmanager
def _frozen() -> Iterator[None]:
    """Have the garbage collector leave alone what there is: the dataset is the harness's, not the memory's."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _timed(memory: Memory, watched: "_Watched", query: Query) -> dict[str, float | str | None]:
    """The row of a query, which is embedded anew."""
    watched.dense.seconds = watched.lexical.seconds = 0.0
    embedder = memory.system.embedder
    embedder = embedder.timed if isinstance(embedder, CachedEmbedder) else embedder
    start = time.perf_counter()
    vectors = None
    if contract_of(memory.system.ranking).needs_vectors:
        vectors = embedder.embed([query.text], "query")
    embedded = time.perf_counter()
    memory.rank([query], vectors=vectors)
    total, embed = (time.perf_counter() - start) * 1000, (embedded - start) * 1000
    dense, lexical = 1000 * watched.dense.seconds, 1000 * watched.lexical.seconds
    own = {"total": total, "embed": embed, "dense": dense, "lexical": lexical}
    return {**own, "ranking": total - embed - dense - lexical, **_beside_exact(watched)}


def _beside_exact(watched: "_Watched") -> dict[str, float | str | None]:
    """How the last query was answered by an index that may miss documents, and how long exact search takes."""
    searches = watched.taken()
    if not searches:
        return {"dense_exact": None, "way": None}
    start = time.perf_counter()
    for one in searches:
        watched.exact(one)
    ways = {_way(answer) for one in searches for answer in one.answers}
    took = 1000 * (time.perf_counter() - start)
    return {"dense_exact": took, "way": ways.pop() if len(ways) == 1 else "several"}


SEARCH_SCHEMA: dict[str, pl.DataType] = {
    "way": pl.String(),
    "results": pl.Int64(),
    "recall": pl.Float64(),
    "recall@10": pl.Float64(),
}
"""A row a search: `results` is how many were asked for; recalls are null where exact search finds nothing."""
_CUTOFF = 10


@dataclass(frozen=True, slots=True)
class IndexSearch(Measure):
    """How each search of a vector index that may miss documents was answered, held against exact search.

    The searches of the system's ranking are asked again, when the queries are, and of exact search too. A ranking that
    asks more than once for a query counts as often.

    - `graph_64`: searches that a graph over the first 64 numbers answered; `scan_384`: those for which every visible
      vector was looked at, by 384 numbers.
    - `recall`: the share of what exact search finds that was found, of all results that were asked for; `recall@10`: of
      the first ten of both.
    """

    subject = "answers"

    def depends_on(self, system: System) -> Sequence[object]:
        index = system.vector_index.build(1, incidents=Counter())
        return [system.ranking] if isinstance(index, Approximate) else []

    def rows(self, reading: MemoryReading) -> pl.DataFrame:
        memory = reading.memory
        rows: list[tuple[str, int, float | None, float | None]] = []
        if isinstance(memory.live.indexes.vector_index, Approximate):
            with _watching(memory) as watched:
                memory.rank(reading.queries)
            rows = [
                (_way(answer), one.k, _recall(answer.ids, truth), _recall(answer.ids[:_CUTOFF], truth, _CUTOFF))
                for one in watched.taken()
                for answer, truth in zip(one.answers, watched.exact(one), strict=True)
            ]
        return pl.DataFrame(rows, SEARCH_SCHEMA, orient="row")

    def section(self, rows: pl.DataFrame, means: Means) -> dict[str, object] | None:
        """How many searches there were, what they found, and both for each way."""
        if rows.is_empty():
            return None
        by_graph = rows["way"].str.starts_with("graph").sum()
        ways = rows.partition_by("way", as_dict=True)
        return {
            **_counted(rows, len(rows)),
            "graph": by_graph,
            "scan": len(rows) - by_graph,
            **{str(name): _counted(ways[name,], len(rows)) for (name,) in sorted(ways, key=_narrowest_first)},
        }

    def notes(self, rows: pl.DataFrame, reading: SystemReading) -> list[str]:
        told = self.section(rows, Means())
        if told is None:
            return []
        ways = []
        for name, one in told.items():
            if isinstance(one, dict):
                of_exact = "" if one["recall"] is None else f" (recall {one['recall']:.3f} of exact)"
                ways.append(f"{one['searches']:,} by the {name.replace('_', ' of ')} numbers{of_exact}")
        notes = [f"the vector index answered {len(rows):,} searches: {', '.join(ways)}"]
        if not told["graph"]:
            notes.append(
                "no graph was asked: vector_index.exact_below, largest_share (and flat_below, tiers_from, "
                "candidates_share of tiers) say from which haystack on, and how few results must be wanted of it"
            )
        return notes


def _recall(found: Sequence[str], truth: Ranked, cutoff: int | None = None) -> float | None:
    best = truth[0][:cutoff]
    return len(set(found).intersection(best)) / len(best) if best else None


def _counted(rows: pl.DataFrame, total: int) -> dict[str, object]:
    return {
        "searches": len(rows),
        "share": len(rows) / total,
        "recall": rows["recall"].mean(),
        "recall@10": rows["recall@10"].mean(),
    }


def _narrowest_first(key: tuple[object, ...]) -> tuple[int, str]:
    kind, _, width = str(key[0]).partition("_")
    return int(width), kind


class _Search(NamedTuple):
    """What an index was asked, and what it gave."""

    vectors: Vectors
    k: int
    allowed: Sequence[str] | None
    answers: list[IndexAnswer]


def _way(answer: IndexAnswer) -> str:
    """How an answer was found, as reports name it: `graph_64`, `scan_384`."""
    return f"{'graph' if answer.is_by_graph else 'scan'}_{answer.width}"


class _Noted:
    """Stands for a vector index that may miss documents, and notes its searches; all else is the index's own."""

    def __init__(self, index: Approximate) -> None:
        self.index = index
        self.searches: list[_Search] = []

    def __getattr__(self, name: str) -> Any:
        own = getattr(self.index, name)  # an index of one width has no search by tiers, and is told by that
        return self._search_tiers if name == "search_tiers" else own

    def __len__(self) -> int:
        return len(cast(Any, self.index))

    def search(self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None) -> list[Ranked]:
        return [(one.ids, one.cosines) for one in self._answers(vectors, k, allowed)]

    def _search_tiers(
        self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None
    ) -> list[tuple[list[str], list[float], int]]:
        return [(one.ids, one.cosines, one.width) for one in self._answers(vectors, k, allowed)]

    def _answers(self, vectors: Vectors, k: int, allowed: Sequence[str] | None) -> list[IndexAnswer]:
        answers = self.index.answers(vectors, k, allowed)
        self.searches.append(_Search(vectors, k, allowed, answers))
        return answers


class _Watched:
    """The indexes of a memory behind stopwatches; of a vector index that may miss documents each search is noted."""

    def __init__(self, indexes: Indexes) -> None:
        self.indexes, index = indexes, indexes.vector_index
        self._noted = _Noted(index) if isinstance(index, Approximate) else None
        work = ("search", "search_tiers") if isinstance(index, Tiered) else ("search",)
        self.vector_index = self.dense = Stopwatch(self._noted or index, *work)
        self.lexical = Stopwatch(None, "search")

    def text_index(self, scopes: Sequence[str] | None, documents: pl.DataFrame) -> Stopwatch:
        self.lexical.part = self.indexes.text_index(scopes, documents)
        return self.lexical

    def taken(self) -> list[_Search]:
        """The searches since it was asked last."""
        if self._noted is None:
            return []
        searches, self._noted.searches = self._noted.searches, []
        return searches

    def exact(self, search: _Search) -> list[Ranked]:
        """What exact search finds for the same."""
        assert self._noted is not None
        return self._noted.index.exact.search(search.vectors, search.k, search.allowed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.indexes, name)


@contextmanager
def _watching(memory: Memory) -> Iterator[_Watched]:
    watched = _Watched(memory.live.indexes)
    memory.live.indexes = cast(Indexes, watched)
    try:
        yield watched
    finally:
        memory.live.indexes = watched.indexes
