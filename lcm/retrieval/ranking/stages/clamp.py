"""Scores kept in [0, 1]."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from lcm.retrieval.formula import beside, worked_out
from lcm.retrieval.ranking.ordering import best_first


def rescored(
    frame: pl.DataFrame, value: pl.Expr, fallback_ratio: float, spared_kinds: Sequence[str] = ()
) -> pl.DataFrame:
    """Give the rows new scores in [0, 1], best first.

    Args:
        frame: candidates.
        value: the new score over the columns of the frame, before it is clamped.
        fallback_ratio: what is left of the old score where the value is no finite number.
        spared_kinds: kinds of documents that keep their score.
    """
    values, fallback = worked_out(frame, value, "score").to_numpy(), fallback_ratio * frame["score"].to_numpy()
    otherwise = np.where(np.isfinite(fallback), fallback, 0.0)
    clamped = np.where(np.isfinite(values), np.clip(values, 0.0, 1.0), otherwise)
    if spared_kinds:
        clamped = np.where(frame["kind"].is_in(spared_kinds).to_numpy(), frame["score"].to_numpy(), clamped)
    return best_first(beside(frame, [pl.Series("score", clamped)]))


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
