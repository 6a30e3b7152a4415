"""What a summarizer is told of the time before a cluster."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from lcm.protocols.models import TokenEstimator
from lcm.records.summary import Summary


class PriorContext(NamedTuple):
    """Earlier summaries, oldest first."""

    summary_ids: tuple[str, ...] = ()
    text: str = ""
    """With blank lines between them."""
    tokens: int = 0


def prior_context(earlier: Sequence[Summary], limit_tokens: int, token_estimator: TokenEstimator) -> PriorContext:
    """Take the newest summaries that fit; one that does not is passed over, and older ones may still fit.

    Args:
        earlier: oldest first.
        limit_tokens: of all that is taken, by the stored counts; a summary without one is counted.
        token_estimator: counts those.

    Source: libravdb memory 1.4.4.
    """
    taken: list[Summary] = []
    used = 0
    for summary in reversed(earlier):
        tokens = summary.token_count if summary.token_count > 0 else token_estimator.count([summary.content])[0]
        if used + tokens <= limit_tokens:
            taken.insert(0, summary)
            used += tokens
    text = "\n\n".join(one.content for one in taken).strip()
    return PriorContext(tuple(one.summary_id for one in taken), text, used)


def summaries_before(summaries: Sequence[Summary], instant: datetime) -> list[Summary]:
    """Those that were made before an instant, oldest first, ties by id: the original's choice of what is earlier."""
    made = [summary for summary in summaries if summary.created_at < instant]
    return sorted(made, key=lambda summary: (summary.created_at, summary.summary_id))
