"""How new a candidate is beside what is known: by meaning, and by time.

Source: memory-lancedb-pro, admission-control.
"""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from lcm.clock import EPOCH
from lcm.javascript import clamp01
from lcm.protocols import Neighbour

_DAY = timedelta(days=1)


def relevant(neighbours: Sequence[Neighbour], category: str) -> list[Neighbour]:
    """Those of the candidate's own category, if there is one among them, else all."""
    return [near for near in neighbours if near.document.category == category] or list(neighbours)


def max_similarity(neighbours: Sequence[Neighbour]) -> float:
    """The highest cosine; 0 where none is above it. novelty = 1 - max_similarity."""
    return clamp01(max((near.cosine for near in neighbours), default=0.0), 0.0)


def recency_gap(neighbours: Sequence[Neighbour], now: datetime, half_life_days: float) -> float:
    """1 - 2^(-days / half_life_days) since the newest; 1 where there is none, or none that says when."""
    newest = max((near.document.created_at for near in neighbours), default=EPOCH)
    if newest <= EPOCH:
        return 1.0
    days = max(0.0, (now - newest) / _DAY)
    return clamp01(1 - math.exp(-math.log(2) / half_life_days * days), 1.0)
