"""Asynchronous scheduling: compaction works in the background; a turn waits for it only where the context is full."""

from dataclasses import dataclass, field

from lcm.checks import check_range
from lcm.compaction.scheduling.replayed_time import ReplayedTime


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
    is_off = False

    def __post_init__(self) -> None:
        check_range(self, "budget_tokens", ge=1)
        check_range(self, "hard_threshold", ge=0, le=1)
        check_range(self, "closing_seconds", ge=0)

    @property
    def hard_tokens(self) -> float:
        """A turn waits from here on."""
        return self.hard_threshold * self.budget_tokens
