"""Scores kept in [0, 1]."""

from functools import cache

import polars as pl

from lcm.retrieval.ranking.ordering import best_first


def rescored(frame: pl.DataFrame, value: pl.Expr, fallback_ratio: float) -> pl.DataFrame:
    """Give the rows new scores in [0, 1], best first.

    Args:
        frame: candidates.
        value: the new score over the columns of the frame, before it is clamped.
        fallback_ratio: what is left of the old score where the value is no finite number.
    """
    # In two steps: an expression that is named twice is worked out twice.
    valued = frame.select("score", _value=value)
    return best_first(frame.with_columns(valued.select(score=_clamped(fallback_ratio))["score"]))


@cache
def _clamped(fallback_ratio: float) -> pl.Expr:
    return clamp01(pl.col("_value"), fallback_ratio * pl.col("score"))


def clamp01(value: pl.Expr, fallback: pl.Expr) -> pl.Expr:
    """`value` clamped to [0, 1]; where it is no finite number the fallback as it is, or 0 where that is none either.

    Source: memory-lancedb-pro, clamp01.
    """
    otherwise = pl.when(fallback.is_finite()).then(fallback).otherwise(0.0)
    return pl.when(value.is_finite()).then(value.clip(0.0, 1.0)).otherwise(otherwise)


def clamp01_with_floor(value: pl.Expr, floor: pl.Expr) -> pl.Expr:
    """As `clamp01`, and never below the floor, itself clamped to [0, 1].

    Source: memory-lancedb-pro, clamp01WithFloor.
    """
    least = clamp01(floor, pl.lit(0.0))
    return pl.max_horizontal(least, clamp01(value, least))
