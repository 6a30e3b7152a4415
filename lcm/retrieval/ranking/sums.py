"""Sums of columns."""

from collections.abc import Iterable
from functools import reduce
from operator import add

import polars as pl


def in_order(terms: Iterable[pl.Expr]) -> pl.Expr:
    """The sum of terms, added one after another; null counts 0, and so do no terms.

    A horizontal sum adds in whatever order its threads come, and last bits would differ from run to run.
    """
    return reduce(add, (term.fill_null(0.0) for term in terms), pl.lit(0.0))
