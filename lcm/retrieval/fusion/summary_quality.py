"""What a summary's rank loses by for what it does not say."""

import polars as pl

from lcm.retrieval.fusion.shares import share


def summary_quality(delta: float) -> pl.Expr:
    """Q = 1 - delta decay_rate for a summary, 1 for anything else; in [1 - delta, 1].

    A decay rate is 1 - the confidence of whoever wrote the summary; one that is no number counts as 0.

    Source: libravdb memory 1.3.5, mathematical reference, section 1.
    """
    if delta == 0:
        return pl.lit(1.0)
    return pl.when(pl.col("kind") == "summary").then(1.0 - delta * share("decay_rate")).otherwise(1.0)
