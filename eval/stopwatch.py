"""A stopwatch on a part of a memory system."""

import time
from typing import Any


class Stopwatch:
    """Stands for a part of a memory system, and notes how long its work takes; all else is the part's."""

    def __init__(self, part: Any, *work: str) -> None:
        """`work` names the methods that are timed."""
        self.part = part
        self.seconds = 0.0
        self._work = work

    def __getattr__(self, name: str) -> Any:
        if name not in self._work:
            return getattr(self.part, name)

        def timed(*arguments: Any) -> Any:
            started = time.perf_counter()
            try:
                return getattr(self.part, name)(*arguments)
            finally:
                self.seconds += time.perf_counter() - started

        return timed

    def __len__(self) -> int:
        return len(self.part)
