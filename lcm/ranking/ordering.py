"""The one order of a candidate frame."""

import polars as pl


def best_first(frame: pl.DataFrame) -> pl.DataFrame:
    """Sort each query's rows by score, descending; ties keep the order in which they came, null scores come last.

    The rows of a query stand together, as every source leaves them; queries keep their order.
    """
    if len(frame) and frame["query_id"][0] == frame["query_id"][-1]:  # one query: one key sorts twice as fast
        return frame.sort("score", descending=True, nulls_last=True, maintain_order=True)
    return frame.sort(
        pl.col("query_id").rle_id(), "score", descending=[False, True], nulls_last=True, maintain_order=True
    )
