"""Synchronous scheduling: a turn ends when its compaction does."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Synchronous:
    """Every turn waits until what its compaction has to do is done."""

    is_off = True
