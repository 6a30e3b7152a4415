"""The one order of a candidate frame."""

import polars as pl


def best_first(frame: pl.DataFrame) -> pl.DataFrame:
    """Sort each query's rows by score, descending; ties keep the order in which they came, null scores come last.

    Where there is a column `deferred`, the rows that it names come behind all others of their query.
    The rows of a query stand together, as every source leaves them; queries keep their order.
    """
    deferred = ["deferred"] if "deferred" in frame.columns and frame["deferred"].any() else []
    if is_one_query(frame):  # a live query: one key sorts twice as fast as two, and looking is faster still
        if not deferred and frame["score"].is_sorted(descending=True, nulls_last=True):
            return frame
        descending = [False] * len(deferred) + [True]
        return frame.sort(*deferred, "score", descending=descending, nulls_last=True, maintain_order=True)
    return frame.sort(
        pl.col("query_id").rle_id(),
        *deferred,
        "score",
        descending=[False] * (1 + len(deferred)) + [True],
        nulls_last=True,
        maintain_order=True,
    )


def with_rank(frame: pl.DataFrame) -> pl.DataFrame:
    """Number the rows of each query from 1, as they stand, in the column `rank`."""
    rank = pl.int_range(1, pl.len() + 1)
    return frame.with_columns(rank=rank if is_one_query(frame) else rank.over("query_id"))


def is_one_query(frame: pl.DataFrame) -> bool:
    return len(frame) > 0 and frame["query_id"][0] == frame["query_id"][-1]
