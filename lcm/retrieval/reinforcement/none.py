"""Nothing is reinforced."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from lcm.protocols.reinforcement import USE_SCHEMA


@dataclass(frozen=True, slots=True)
class NoReinforcement:
    """Being recalled changes nothing, so that queries can be asked in any order."""

    @property
    def recalled(self) -> int:
        return 0

    def after_recall(self, used_ids: Sequence[str], documents: pl.DataFrame, now: datetime) -> pl.DataFrame:
        return pl.DataFrame(schema=USE_SCHEMA)
