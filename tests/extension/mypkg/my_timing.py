"""A measure of time of one's own: how long the embedder takes for one text."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from eval.measures.means import Means
from eval.measures.measure import Measure, SystemReading
from eval.measures.names import Direction
from lcm.records.query import Query


@dataclass(frozen=True, slots=True)
class MyTiming(Measure):
    """The median of so many calls, in milliseconds; `queries` = 0 times none."""

    subject = "system"
    is_of_time = True

    queries: int = 5

    def value_names(self) -> list[str]:
        return ["my_timing/embed_one_p50_ms"] if self.queries else []

    def direction(self, value: str) -> Direction:
        return "lower"

    def timed_queries(self) -> int:
        return self.queries

    def chosen(self, queries: Sequence[Query]) -> list[Query]:
        return list(queries[: self.queries])

    def rows(self, reading: SystemReading) -> pl.DataFrame:
        seconds = []
        for query in self.chosen(reading.dataset.queries):
            started = time.perf_counter()
            reading.system.embedder.embed([query.text], "query")
            seconds.append(time.perf_counter() - started)
        return pl.DataFrame({"ms": [1000 * one for one in seconds]}, schema={"ms": pl.Float64})

    def section(self, rows: pl.DataFrame, means: Means) -> dict[str, dict[str, float]]:
        return {"embed_one": {"p50_ms": float(rows["ms"].quantile(0.5) or 0.0), "n": len(rows)}} if len(rows) else {}
