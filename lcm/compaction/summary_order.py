"""Summaries in an order, among which the newest that fits is found without a walk through all of them."""

from bisect import bisect_left, insort
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Any)
"""What they are ordered by; no two have the same."""


class SummaryOrder(Generic[Key]):
    """The ids of summaries, ordered by a key, each with its tokens: as many steps as tokens differ find one."""

    def __init__(self) -> None:
        self._ids: dict[Key, str] = {}
        self._keys: dict[int, list[Key]] = {}
        """In order, by tokens."""
        self._tokens: list[int] = []
        """Those that there are, rising."""

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, key: Key, tokens: int, summary_id: str) -> None:
        if tokens not in self._keys:
            self._keys[tokens] = []
            insort(self._tokens, tokens)
        insort(self._keys[tokens], key)
        self._ids[key] = summary_id

    def remove(self, key: Key, tokens: int) -> None:
        keys = self._keys[tokens]
        del keys[bisect_left(keys, key)], self._ids[key]
        if not keys:
            del self._keys[tokens], self._tokens[bisect_left(self._tokens, tokens)]

    def newest(self, before: Key, at_most: int) -> tuple[Key, str] | None:
        """The last one before a key that has no more tokens than `at_most`; None where there is none."""
        best: Key | None = None
        for tokens in self._tokens:
            if tokens > at_most:
                break
            keys = self._keys[tokens]
            place = len(keys) if keys[-1] < before else bisect_left(keys, before)
            if place and (best is None or keys[place - 1] > best):
                best = keys[place - 1]
        return None if best is None else (best, self._ids[best])
