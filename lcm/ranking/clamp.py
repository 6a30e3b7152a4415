"""Scores kept in [0, 1]."""

import polars as pl


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
