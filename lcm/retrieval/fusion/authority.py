"""How far a document is to be trusted before a word of it is compared."""

import polars as pl

from lcm.protocols import Decay
from lcm.retrieval.fusion.recency import recency
from lcm.retrieval.fusion.shares import share, shares
from lcm.retrieval.ranking.sums import in_order


def authority(decay: Decay, recency_weight: float, frequency_weight: float, authority_weight: float) -> pl.Expr:
    """omega = a_r r + a_f f + a_a a, in [0, 1], over the rows of each query; the weights are divided by their sum.

    r is the multiplier of the decay, f = ln(1 + n) / ln(2 + N) for n accesses of the document and N of the one that
    was used most (0 where n is 0), a the authority that its author has.

    Source: libravdb memory 1.3.17, which adds 1 inside the logarithm below, and takes N of the rows that passed the
    first cut: f depends on the query.
    """
    weights = shares(recency_weight, frequency_weight, authority_weight)
    terms = (recency(decay), _frequency(), share("authority"))
    return in_order(weight * term for weight, term in zip(weights, terms, strict=True)).clip(0.0, 1.0)


def _frequency() -> pl.Expr:
    accesses = pl.col("access_count").fill_null(0).clip(lower_bound=0).cast(pl.Float64)
    return (accesses + 1.0).log() / (accesses.max().over("query_id") + 2.0).log()
