"""Frames that are kept: worked out once, together with what was survived on the way."""

import io
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from eval.cache.stage_cache import StageCache

_HEAD_BYTES = 8
Made = tuple[pl.DataFrame, Counter[str]]
"""A frame, and what failed and was survived while it was made, by name and times."""


@dataclass(frozen=True, slots=True)
class FrameCache:
    """Frames of one cache; without a cache everything is made."""

    cache: StageCache | None

    def frame(
        self,
        stage: str,
        key: str | None,
        make: Callable[[], Made],
        *,
        in_memory: bool = False,
        is_kept: Callable[[pl.DataFrame], bool] = lambda frame: True,
    ) -> Made:
        """What `make` gives, or gave before under this key; without a key it is always made.

        Args:
            stage: what it is.
            key: the digest of all that it is made from.
            make: makes it.
            in_memory: whether it will be asked for again and again in this process.
            is_kept: whether what was made is to be kept.
        """
        if self.cache is None or key is None:
            return make()
        if in_memory:
            return self.cache.in_memory(stage, key, lambda: _sized(self._read_or_made(stage, key, make, is_kept)))
        return self._read_or_made(stage, key, make, is_kept)

    def at_hand(self, stage: str, key: str | None, make: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        """What is made faster than read, and so is kept in this process alone; without a key it is always made."""
        if self.cache is None or key is None:
            return make()

        def made() -> tuple[pl.DataFrame, int]:
            frame = make()
            return frame, int(frame.estimated_size())

        return self.cache.in_memory(stage, key, made)

    def _read_or_made(
        self, stage: str, key: str, make: Callable[[], Made], is_kept: Callable[[pl.DataFrame], bool]
    ) -> Made:
        assert self.cache is not None
        content = self.cache.read(stage, key)
        if content is not None:
            return _unpacked(content)
        made = make()
        if is_kept(made[0]):
            self.cache.write(stage, key, _packed(made))
        return made


def _sized(made: Made) -> tuple[Made, int]:
    return made, int(made[0].estimated_size())


def _packed(made: Made) -> bytes:
    frame, incidents = made
    head = json.dumps(incidents).encode()
    body = io.BytesIO()
    frame.write_ipc(body, compression="lz4")
    return len(head).to_bytes(_HEAD_BYTES, "big") + head + body.getvalue()


def _unpacked(content: memoryview) -> Made:
    start = _HEAD_BYTES + int.from_bytes(content[:_HEAD_BYTES], "big")
    incidents = Counter[str](json.loads(bytes(content[_HEAD_BYTES:start])))
    return pl.read_ipc(io.BytesIO(content[start:])), incidents
