"""A measure of one's own: how many sessions the first documents come from."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from eval.measures.measure import Measure, RunReading


@dataclass(frozen=True, slots=True)
class MyMeasure(Measure):
    """`sessions@k`: the sessions that the first k documents come from, one value a query that was answered."""

    subject = "rankings"
    of_arms = True

    cutoffs: Sequence[int] = (1, 2)

    def __post_init__(self) -> None:
        if any(cutoff < 1 for cutoff in self.cutoffs):
            raise ValueError(f"cutoffs must be >= 1, got {list(self.cutoffs)}")

    def value_names(self) -> list[str]:
        return [f"sessions@{k}" for k in self.cutoffs]

    def rows(self, reading: RunReading) -> pl.DataFrame:
        sessions = reading.documents.select("workspace_id", "document_id", "session_id")
        answers = reading.run.join(sessions, on=["workspace_id", "document_id"], maintain_order="left")
        return pl.concat(
            answers.filter(pl.col("rank") <= k)
            .group_by("query_id", maintain_order=True)
            .agg(value=pl.col("session_id").n_unique().cast(pl.Float64))
            .select("query_id", pl.lit(f"sessions@{k}").alias("measure"), "value")
            for k in self.cutoffs
        )
