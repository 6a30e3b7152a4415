"""Uses are counted, and nothing else follows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from lcm.protocols.reinforcement import USE_SCHEMA
from lcm.retrieval.reinforcement.recall import used


@dataclass(frozen=True, slots=True)
class AccessCount:
    """The first `recalled` documents of an answer count one access each; decay tiers stay.

    Source: libravdb memory 1.4.4, after assembly: what stands in the context counts.
    """

    recalled: int = 8

    def __post_init__(self) -> None:
        if self.recalled < 1:
            raise ValueError(f"recalled must be >= 1, got {self.recalled}; reinforcement=none counts no use")

    def after_recall(self, used_ids: Sequence[str], documents: pl.DataFrame, now: datetime) -> pl.DataFrame:
        return used(documents, used_ids, self.recalled, now).filter("_is_used").select(list(USE_SCHEMA))
