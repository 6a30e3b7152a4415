"""No recovery: an answer is what ranking found."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lcm.protocols.retrieval import Signals
from lcm.records.query import Recalled


@dataclass(frozen=True, slots=True)
class NoRecovery:
    """No answer has ever failed."""

    is_off = True

    def signals(self, answer: Sequence[Recalled], has_session: bool) -> Signals:
        return Signals(False, False, False, False)

    def reserve_tokens(self, prompt: str, signals: Signals, budget_tokens: int) -> int:
        return 0

    def order(
        self, prompt: str, recovered: Sequence[Recalled], tokens: Sequence[int], reserve_tokens: int, now: datetime
    ) -> list[int]:
        return []
