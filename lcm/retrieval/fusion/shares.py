"""Numbers that are shares of one: weights, and columns that should be."""

import polars as pl


def shares(*weights: float) -> list[float]:
    """Each weight divided by their sum, which is not 0."""
    whole = sum(weights)
    return [weight / whole for weight in weights]


def share(column: str, least: float = 0.0) -> pl.Expr:
    """A column within [least, 1]; what is missing or no number counts as 0."""
    return pl.col(column).fill_nan(None).fill_null(0.0).clip(least, 1.0)
