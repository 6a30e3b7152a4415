"""When a document stands, and when it has run out. Instants are epoch milliseconds.

Source: memory-lancedb-pro, isMemoryActiveAt and isMemoryExpired.
"""


def is_active(valid_from: float, invalidated_at: float | None, at_ms: float) -> bool:
    """It exists by then, and no other stands in its place; 0 = never invalidated."""
    return valid_from <= at_ms and (not invalidated_at or invalidated_at > at_ms)


def is_expired(valid_until: float | None, at_ms: float) -> bool:
    """Its time has run out: at `valid_until` itself already."""
    return valid_until is not None and valid_until <= at_ms
