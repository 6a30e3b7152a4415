"""Candidates by chance: what guessing scores."""

import hashlib
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch, Raw
from lcm.retrieval.source.candidates import CANDIDATE_SCHEMA


@dataclass(frozen=True, slots=True)
class Shuffled:
    """`pool_size` visible documents in an order drawn anew for each query: the random control.

    The order depends on the seed and the query's id, so a query's row never depends on its batch.
    """

    pool_size: int = 100
    seed: int = 0
    needs_vectors = False
    gives: ClassVar[Raw] = "score"
    asks = ()

    def __post_init__(self) -> None:
        check_range(self, "pool_size", ge=1)

    def candidates(self, batch: Batch) -> pl.DataFrame:
        document_ids = batch.documents["document_id"]
        size = min(self.pool_size, len(document_ids))
        orders = [self._order(query_id, len(document_ids))[:size] for query_id in batch.queries["query_id"]]
        asked = batch.queries.select("query_id", "asked_at")[np.repeat(np.arange(len(orders)), size)]
        rows = pl.DataFrame(
            {
                "query_id": asked["query_id"],
                "asked_at": asked["asked_at"],
                "document_id": document_ids.gather(np.concatenate([*orders, np.empty(0, np.int64)])),
                "score": np.tile(1.0 / np.arange(1, size + 1), len(orders)),
            }
        )
        return rows.match_to_schema(CANDIDATE_SCHEMA, missing_columns="insert")

    def _order(self, query_id: str, size: int) -> npt.NDArray[np.int64]:
        digest = hashlib.sha256(f"{self.seed}\x00{query_id}".encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:8])).permutation(size)
