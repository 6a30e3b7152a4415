"""The answers of an external memory in one workspace, as a ranking that gives them again."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from eval.external.contract import Told
from lcm.protocols.contract import Contract
from lcm.protocols.retrieval import REASONS_SCHEMA, Batch
from lcm.retrieval.ranking.pipeline import LISTS, PLAN_SCHEMA, RANKED_SCHEMA, SOURCE, TRACE_SCHEMA
from lcm.retrieval.source.indexes import FOUND_BY_SCHEMA

BRANCH = "external"


@dataclass(frozen=True, slots=True)
class RecordedAnswers:
    """A `Ranker` of one step: what was answered."""

    answers: pl.DataFrame
    """query_id, document_id, rank, score: best first."""
    brought: pl.DataFrame
    """The texts that were returned, as documents: rows of `DOCUMENT_SCHEMA`."""
    asked: pl.DataFrame
    """Rows of `ASKED_SCHEMA`."""
    incidents: Mapping[str, int] = field(default_factory=dict)
    told: Told = field(default_factory=Told)
    """What the memory says of itself."""

    contract = Contract(asks=())

    def rank(self, batch: Batch) -> pl.DataFrame:
        return (
            self._answers(batch)
            .match_to_schema(pl.Schema(RANKED_SCHEMA), missing_columns="insert")
            .with_columns(is_recovered=pl.lit(False), **{name: pl.lit([], RANKED_SCHEMA[name]) for name in LISTS})
        )

    def trace(self, batch: Batch) -> pl.DataFrame:
        rows = self._answers(batch).with_columns(step=pl.lit(0, pl.Int32), stage=pl.lit(SOURCE))
        return rows.match_to_schema(pl.Schema(TRACE_SCHEMA), missing_columns="insert")

    def plan(self, batch: Batch) -> pl.DataFrame:
        steps = batch.queries.select("query_id", step=pl.lit(0, pl.Int32), stage=pl.lit(SOURCE))
        return steps.select(list(PLAN_SCHEMA))

    def found_by(self, batch: Batch) -> pl.DataFrame:
        return self._answers(batch).with_columns(branch=pl.lit(BRANCH)).select(list(FOUND_BY_SCHEMA))

    def reasons(self, batch: Batch) -> pl.DataFrame:
        """It tells none."""
        return pl.DataFrame(schema={"step": pl.Int32(), **REASONS_SCHEMA})

    def _answers(self, batch: Batch) -> pl.DataFrame:
        asked = batch.queries.select("query_id")
        return asked.join(self.answers, on="query_id", maintain_order="left_right")
