"""How recent a document is to a fusion that weighs it."""

import polars as pl

from lcm.protocols.retrieval import Decay


def recency_columns(decay: Decay) -> tuple[str, ...]:
    """The columns that `recency` reads."""
    return ("kind", *decay.multiplier().meta.root_names())


def recency(decay: Decay) -> pl.Expr:
    """The multiplier of the decay; 1 for what is authored, which has no age."""
    return pl.when(pl.col("kind") == "authored").then(1.0).otherwise(decay.multiplier())
