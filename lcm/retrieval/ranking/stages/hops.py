"""Authored documents that a good answer points to."""

from dataclasses import dataclass

import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch
from lcm.retrieval.lookup import KeptBeside
from lcm.retrieval.ranking.ordering import best_first
from lcm.retrieval.source.candidates import describe

_KEYS = ["query_id", "document_id"]


@dataclass(frozen=True, slots=True)
class Hops:
    """Add the authored documents that the rows of a query point to, each with eta times the score of the best of those
    rows, where that reaches `theta_hop`; best first.

    A target that is a row already stays as it is. What is added points nowhere: one hop, whatever the graph is like.
    A score counts within [0, 1], so that what a hop finds scores less than 1, and less than the row that points to it.

    Source: libravdb memory 1.3.5, mathematical reference, section 7.7, which calls eta lambda; 1.4.4.
    """

    eta: float = 0.5
    theta_hop: float = 0.15
    follows = ("authored",)

    def __post_init__(self) -> None:
        check_range(self, "eta", gt=0, lt=1)
        check_range(self, "theta_hop", ge=0, le=1)

    def expand(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        pointing = _pointing(batch.documents)
        if pointing.is_empty():
            return best_first(frame)
        authored = batch.documents.select("document_id").filter(batch.documents["kind"] == "authored")
        score = self.eta * pl.col("score").fill_nan(None).fill_null(0.0).clip(0.0, 1.0)
        found = (
            frame.select("query_id", "asked_at", "document_id", score=score)
            .join(pointing, on="document_id", how="inner", maintain_order="left")
            .drop("document_id")
            .explode("hop_targets")
            .rename({"hop_targets": "document_id"})
            .join(authored, on="document_id", how="semi", maintain_order="left")
            .join(frame, on=_KEYS, how="anti", maintain_order="left")
            .group_by(_KEYS, maintain_order=True)
            .agg(pl.col("asked_at").first(), pl.col("score").max())
            .filter(pl.col("score") >= self.theta_hop)
        )
        if found.is_empty():
            return best_first(frame)
        return _merged(frame, describe(found, batch))


_pointing: KeptBeside[pl.DataFrame, pl.DataFrame] = KeptBeside(
    lambda documents: documents.select("document_id", "hop_targets").filter(pl.col("hop_targets").list.len() > 0), 16
)
"""Found once for the same documents: most are of no document that points anywhere."""


def _merged(frame: pl.DataFrame, added: pl.DataFrame) -> pl.DataFrame:
    """The rows of both, those of a query together, in the order of the first frame's queries."""
    order = frame.select("query_id").unique(maintain_order=True).with_row_index("_query")
    rows = pl.concat([frame, added], how="diagonal")
    rows = rows.join(order, on="query_id", how="left", maintain_order="left").sort("_query", maintain_order=True)
    if "deferred" in rows.columns:
        rows = rows.with_columns(pl.col("deferred").fill_null(False))
    return best_first(rows.drop("_query"))
