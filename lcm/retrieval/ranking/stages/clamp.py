"""Scores kept in [0, 1]."""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from lcm.protocols.columns import Columns, Numbers
from lcm.retrieval.frames import beside
from lcm.retrieval.ranking.ordering import best_first


def rescored(
    frame: pl.DataFrame,
    formula: Callable[[Columns], Numbers],
    fallback_ratio: float,
    spared_kinds: Sequence[str] = (),
) -> pl.DataFrame:
    """Give the rows new scores in [0, 1], best first.

    Args:
        frame: candidates.
        formula: gives the new scores, before they are clamped.
        fallback_ratio: what is left of the old score where the new one is no finite number.
        spared_kinds: kinds of documents that keep their score.
    """
    columns = Columns(frame)
    score = columns.numbers("score")
    with np.errstate(all="ignore"):
        clamped = clamp01(formula(columns), fallback_ratio * score)
    if spared_kinds:
        clamped = np.where(columns.are("kind", *spared_kinds), score, clamped)
    return best_first(beside(frame, [pl.Series("score", clamped)]))


def clamp01(value: Numbers, fallback: Numbers) -> Numbers:
    """`value` clamped to [0, 1]; where it is no finite number the fallback as it is, or 0 where that is none either.

    Source: memory-lancedb-pro, clamp01.
    """
    otherwise = np.where(np.isfinite(fallback), fallback, 0.0)
    return np.where(np.isfinite(value), np.clip(value, 0.0, 1.0), otherwise)


def clamp01_with_floor(value: Numbers, floor: Numbers) -> Numbers:
    """As `clamp01`, and never below the floor, itself clamped to [0, 1].

    Source: memory-lancedb-pro, clamp01WithFloor.
    """
    least = clamp01(floor, np.zeros_like(floor))
    return np.maximum(least, clamp01(value, least))
