"""Candidates by chance: what guessing scores."""

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.protocols import Batch
from lcm.source.candidates import CANDIDATE_SCHEMA


@dataclass(frozen=True, slots=True)
class Shuffled:
    """`pool_size` visible documents in an order drawn anew for each query: the random control.

    The order depends on the seed and the query's id, so a query's row never depends on its batch.
    """

    pool_size: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        if self.pool_size < 1:
            raise ValueError(f"pool_size must be >= 1, got {self.pool_size}")

    @property
    def needs_vectors(self) -> bool:
        return False

    def candidates(self, batch: Batch) -> pl.DataFrame:
        document_ids = batch.documents["document_id"]
        size = min(self.pool_size, len(document_ids))
        scores = pl.Series(1.0 / np.arange(1, size + 1), dtype=pl.Float64)
        frames = [
            pl.DataFrame(
                {
                    "query_id": pl.repeat(query_id, size, eager=True, dtype=pl.String),
                    "asked_at": pl.repeat(asked_at, size, eager=True, dtype=CANDIDATE_SCHEMA["asked_at"]),
                    "document_id": document_ids.gather(self._order(query_id, len(document_ids))[:size]),
                    "score": scores,
                }
            )
            for query_id, asked_at in batch.queries.select("query_id", "asked_at").iter_rows()
        ]
        rows = pl.concat([pl.DataFrame(schema=CANDIDATE_SCHEMA), *frames], how="diagonal")
        return rows.select(list(CANDIDATE_SCHEMA))

    def _order(self, query_id: str, size: int) -> npt.NDArray[np.int64]:
        digest = hashlib.sha256(f"{self.seed}\x00{query_id}".encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:8])).permutation(size)
