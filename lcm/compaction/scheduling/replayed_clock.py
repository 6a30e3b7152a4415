"""A clock that stands still until it is told what took time: that of a replay."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lcm.compaction.scheduling.replayed_time import ReplayedTime
from lcm.protocols.compaction import Summarizer
from lcm.protocols.models import TokenEstimator
from lcm.records.summary import SummaryRequest, SummaryResult


@dataclass(slots=True)
class ReplayedClock:
    """Seconds of one conversation; they only rise, whatever its messages are dated."""

    seconds: float = float("-inf")
    turns: int = 0

    def __call__(self) -> float:
        return self.seconds

    def take_turn(self, time: ReplayedTime, said_at: datetime) -> None:
        """Go on to the end of the next turn; a turn that waited longer than that ends where it has waited to."""
        self.turns += 1
        self.wait_until(time.at_turn(self.turns, said_at))

    def wait_until(self, seconds: float) -> None:
        self.seconds = max(self.seconds, seconds)


@dataclass(frozen=True, slots=True)
class ReplayedSummarizer:
    """A summarizer that takes as long as `time` says, by a clock."""

    summarizer: Summarizer
    time: ReplayedTime
    tokens: TokenEstimator
    clock: ReplayedClock

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        results = self.summarizer.summarize(requests, incidents=incidents)
        for request, result in zip(requests, results, strict=True):
            self.clock.wait_until(self.clock.seconds + self.time.of_call(request, result, self.tokens))
        return results
