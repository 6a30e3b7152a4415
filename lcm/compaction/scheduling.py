"""When compaction works: within the turn, or in the background; and how long that takes where time is simulated."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from lcm.checks import check_range
from lcm.protocols.compaction import Summarizer
from lcm.protocols.contract import Contract
from lcm.protocols.models import TokenEstimator
from lcm.records.summary import SummaryRequest, SummaryResult


@dataclass(frozen=True, slots=True)
class Synchronous:
    """Every turn waits until what its compaction has to do is done."""

    contract = Contract(is_off=True)


@dataclass(frozen=True, slots=True)
class ReplayedTime:
    """Time as a replay tells it, so that waiting is a number that every replay repeats.

    A call takes `seconds_per_call`, and what is read and written besides: the text and the summary before it at
    `input_tokens_per_second`, the answer at `output_tokens_per_second`.
    """

    seconds_a_turn: float | None = None
    """Between the ends of two turns; None = as the messages are dated."""
    seconds_per_call: float = 1.0
    input_tokens_per_second: float = 2000.0
    output_tokens_per_second: float = 60.0

    def __post_init__(self) -> None:
        check_range(self, "seconds_a_turn", ge=0, or_null=True)
        check_range(self, "seconds_per_call", ge=0)
        check_range(self, "input_tokens_per_second", "output_tokens_per_second", gt=0, or_infinite=True)

    def of_call(self, request: SummaryRequest, result: SummaryResult, tokens: TokenEstimator) -> float:
        """Seconds that a summarizer takes for one request."""
        read, before, written = tokens.count([request.text, request.previous or "", result.text])
        reading = (read + before) / self.input_tokens_per_second
        return self.seconds_per_call + reading + written / self.output_tokens_per_second


@dataclass(frozen=True, slots=True)
class Asynchronous:
    """Two thresholds. The soft one is the compaction's own trigger: work that is due then is planned on the context as
    it stands, and done in the background; a later turn puts its summaries in the place of what they were made of, all
    at once, as it ends. Turns said meanwhile stand behind it. At the hard threshold a turn waits for what is under way.

    Summaries and contexts are those of synchronous compaction at the same turns. A plan that another writer has
    overtaken is dropped whole, counted, and made again if it is still due; so is one whose work failed.

    Source: the soft and hard thresholds of Lossless Context Management; what is done between them is ours.
    """

    budget_tokens: int = 128000
    hard_threshold: float = 0.9
    """Share of the budget; 0 = every turn waits, as in synchronous scheduling."""
    closing_seconds: float = 60.0
    replayed: ReplayedTime = field(default_factory=ReplayedTime)

    def __post_init__(self) -> None:
        check_range(self, "budget_tokens", ge=1)
        check_range(self, "hard_threshold", ge=0, le=1)
        check_range(self, "closing_seconds", ge=0)

    @property
    def hard_tokens(self) -> float:
        """A turn waits from here on."""
        return self.hard_threshold * self.budget_tokens


@dataclass(slots=True)
class ReplayedClock:
    """Seconds of one conversation, which stand still until it is told what took time, and only rise, whatever its
    messages are dated."""

    seconds: float = float("-inf")
    turns: int = 0

    def __call__(self) -> float:
        return self.seconds

    def take_turn(self, time: ReplayedTime, said_at: datetime) -> None:
        """Go on to the end of the next turn, whose last message was said then; a turn that waited longer than that ends
        where it has waited to."""
        self.turns += 1
        self.wait_until(said_at.timestamp() if time.seconds_a_turn is None else self.turns * time.seconds_a_turn)

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
