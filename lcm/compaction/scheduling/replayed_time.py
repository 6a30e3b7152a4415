"""How long a summarizer takes where time is simulated, and how much of it passes between turns."""

from dataclasses import dataclass
from datetime import datetime

from lcm.checks import check_range
from lcm.protocols.models import TokenEstimator
from lcm.records.summary import SummaryRequest, SummaryResult


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

    def at_turn(self, number: int, said_at: datetime) -> float:
        """Seconds at which the turn of that number ended, since whenever.

        Args:
            said_at: its last message.
        """
        return said_at.timestamp() if self.seconds_a_turn is None else number * self.seconds_a_turn
