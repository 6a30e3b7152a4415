"""Which documents have faded: those whose strength, by the decay, is below its `stale_threshold`.

Source: memory-lancedb-pro, decay-engine, which lists its stale memories, weakest first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import polars as pl

from eval.measures.means import Means
from eval.measures.measure import Measure, MemoryReading, SystemReading
from lcm.memory.system import System
from lcm.protocols.retrieval import Columns, Decay, Numbers, Truths

STALENESS_SCHEMA: dict[str, pl.DataType] = {
    "document_id": pl.String(),
    "strength": pl.Float64(),
    "is_stale": pl.Boolean(),
}


@runtime_checkable
class KnowsStale(Protocol):
    """A decay that tells which documents have faded."""

    def strength(self, columns: Columns) -> Numbers: ...

    def is_stale(self, columns: Columns) -> Truths: ...


@dataclass(frozen=True, slots=True)
class Staleness(Measure):
    """Lists the documents that stand when a workspace is asked last, weakest first, and counts the stale ones.

    Used documents keep their strength: with `reinforcement=recall` those count that answers have shown by then.
    """

    subject = "memory"

    decay: Decay
    """One that knows nothing stale lists nothing, and a note says so."""

    def depends_on(self, system: System) -> list[object]:
        return []

    def rows(self, reading: MemoryReading) -> pl.DataFrame:
        if not reading.queries or not isinstance(self.decay, KnowsStale):
            return pl.DataFrame(schema=STALENESS_SCHEMA)
        asked_at = max(query.asked_at for query in reading.queries)
        standing = reading.memory.live.timeline.visible(asked_at, None)
        columns = Columns(standing.with_columns(asked_at=pl.lit(asked_at, dtype=pl.Datetime("ms", "UTC"))))
        strength, is_stale = pl.Series(self.decay.strength(columns)), pl.Series(self.decay.is_stale(columns))
        judged = standing.select("document_id", strength=strength, is_stale=is_stale)
        return judged.sort("strength", maintain_order=True).cast(pl.Schema(STALENESS_SCHEMA))

    def section(self, rows: pl.DataFrame, means: Means) -> dict[str, float]:
        stale = int(rows["is_stale"].sum())
        return {"documents": len(rows), "stale": stale, "share": stale / max(1, len(rows))}

    def notes(self, rows: pl.DataFrame, reading: SystemReading) -> Sequence[str]:
        if not isinstance(self.decay, KnowsStale):
            return ["the decay calls no document stale: choose decay=weibull, or leave measures.staleness out"]
        found = self.section(rows, Means())
        return [f"{found['stale']:,} of {found['documents']:,} documents are stale: weaker than decay.stale_threshold"]
