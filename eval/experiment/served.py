"""How concentrated answers are: how many documents were served at all, and how often those that were served most."""

import polars as pl

_MOST = 10
SERVED_SCHEMA: dict[str, pl.DataType] = {
    "arm": pl.String(),
    "k": pl.Int64(),
    "places": pl.Int64(),
    "documents": pl.Int64(),
    "top_10_share": pl.Float64(),
}
"""`k`: the most documents of one answer; `places`: of all answers together; `documents`: how many different ones took
them; `top_10_share`: of the places, in (0, 1], those of the ten documents that took most."""


def served(run: pl.DataFrame) -> pl.DataFrame:
    """Rows of `SERVED_SCHEMA`, one an arm that served anything, in the order of the run.

    Whatever a ranking returns counts as served, down to its own last rank. Documents of two workspaces are two.

    Args:
        run: columns arm, workspace_id, document_id, rank (1-based, without gaps).
    """
    each = run.group_by("arm", "workspace_id", "document_id", maintain_order=True).agg(
        k=pl.col("rank").max(), places=pl.len()
    )
    return (
        each.group_by("arm", maintain_order=True)
        .agg(
            pl.col("k").max(),
            pl.col("places").sum(),
            documents=pl.len(),
            top_10_share=pl.col("places").top_k(_MOST).sum() / pl.col("places").sum(),
        )
        .cast(pl.Schema(SERVED_SCHEMA))
    )
