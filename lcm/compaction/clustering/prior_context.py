"""What a summarizer is told of the time before a cluster."""

from collections.abc import Callable
from typing import NamedTuple

from lcm.compaction.summary_order import Key
from lcm.protocols.models import TokenEstimator
from lcm.records.summary import Summary


class PriorContext(NamedTuple):
    """Earlier summaries, oldest first."""

    summary_ids: tuple[str, ...] = ()
    text: str = ""
    """With blank lines between them."""
    tokens: int = 0


def prior_context(
    newest: Callable[[Key, int], tuple[Key, str] | None],
    before: Key,
    limit_tokens: int,
    read: Callable[[str], Summary],
    token_estimator: TokenEstimator,
) -> PriorContext:
    """Take the newest summaries that fit; one that does not is passed over, and older ones may still fit.

    Args:
        newest: gives the last summary before a key that has, by the stored counts, no more than so many tokens; one
            without a count has 0, and is counted here.
        before: nothing from there on is taken.
        limit_tokens: of all that is taken.
        read: gives a summary by its id.
        token_estimator: counts those without a count.

    Source: libravdb memory 1.4.4.
    """
    taken: list[Summary] = []
    used = 0
    while (found := newest(before, limit_tokens - used)) is not None:
        before, summary_id = found
        summary = read(summary_id)
        tokens = summary.token_count if summary.token_count > 0 else token_estimator.count([summary.content])[0]
        if used + tokens <= limit_tokens:
            taken.insert(0, summary)
            used += tokens
    text = "\n\n".join(one.content for one in taken).strip()
    return PriorContext(tuple(one.summary_id for one in taken), text, used)
