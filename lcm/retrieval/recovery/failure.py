"""When an answer has failed: by where it came from, how weak it is, and how vague."""

from collections.abc import Sequence
from dataclasses import dataclass

from lcm.checks import check_range
from lcm.protocols.retrieval import Signals
from lcm.records.query import Recalled


@dataclass(frozen=True, slots=True)
class FailureRule:
    """Three signals about an answer, and one about where it was asked.

    From the widest index tier: some document was found there, so the narrow ones were not sure. Weak: the best score
    is below `floor_score`. Vague: at least `min_top_k` documents came, the first `min_top_k` are all summaries, and
    the mean of their confidence is below `min_mean_confidence`. Elsewhere: there is nothing of the asker's own session,
    neither at hand nor in the answer.

    Of an empty answer none of the first three holds. Source: libravdb memory 1.4.4.
    """

    floor_score: float = 0.15
    min_top_k: int = 4
    min_mean_confidence: float = 0.5

    def __post_init__(self) -> None:
        check_range(self, "floor_score")
        check_range(self, "min_top_k", ge=1)
        check_range(self, "min_mean_confidence", ge=0, le=1)

    def signals(self, answer: Sequence[Recalled], has_session: bool, widest_tier: int) -> Signals:
        """Judge an answer, best first.

        Args:
            answer: without what was recovered.
            has_session: something of the asker's own session is at hand, a turn or what was made of turns.
            widest_tier: the width of the widest index tier.
        """
        first = answer[: self.min_top_k]
        return Signals(
            is_from_widest=any(document.index_tier == widest_tier for document in answer),
            is_weak=bool(answer) and answer[0].score < self.floor_score,
            is_vague=len(first) == self.min_top_k
            and all(document.kind == "summary" for document in first)
            and sum(document.confidence for document in first) / len(first) < self.min_mean_confidence,
            is_elsewhere=not has_session and all(document.scope_class != "session" for document in answer),
        )
