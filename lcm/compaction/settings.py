"""Numbers as lossless-claw reads them: its own configuration may hold fractions, zeros and negatives."""

import math
from collections.abc import Mapping

_DEFAULTS = {
    "leaf_chunk_tokens": 20000,
    "leaf_min_fanout": 8,
    "condensed_min_fanout": 4,
    "condensed_min_fanout_hard": 2,
}
"""What a number that is not above 0 stands for."""


def resolved(settings: Mapping[str, float]) -> dict[str, int]:
    """Give the fields of `Lossless` that settings of the original mean; others are left out.

    Fractions are rounded down. Chunk and fanouts not above 0 are the default; a fresh tail not above 0 is none;
    a negative depth is unlimited.

    Source: lossless-claw 0.6.3.
    """
    found = {
        name: math.floor(settings[name]) if 0 < settings[name] < math.inf else default
        for name, default in _DEFAULTS.items()
        if name in settings
    }
    if (tail := settings.get("fresh_tail_count")) is not None:
        found["fresh_tail_count"] = math.floor(tail) if 0 < tail < math.inf else 0
    if (depth := settings.get("incremental_max_depth")) is not None:
        found["incremental_max_depth"] = -1 if depth < 0 else math.floor(depth) if 0 < depth < math.inf else 0
    return found
