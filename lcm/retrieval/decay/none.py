"""No decay."""

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, slots=True)
class NoDecay:
    """A document is as alive after years as on its first day."""

    is_off = True

    def multiplier(self) -> pl.Expr:
        return pl.lit(1.0)

    def strength(self) -> pl.Expr:
        return pl.lit(1.0)
