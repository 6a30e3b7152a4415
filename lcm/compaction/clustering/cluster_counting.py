"""What a cluster's turns and its summary count, and whether one is less than the other."""

from collections.abc import Sequence
from dataclasses import dataclass

from lcm.protocols.models import TokenEstimator
from lcm.records.conversation import Message
from lcm.records.rules import VersionedRules
from lcm.records.summary import ContextEntry, SummaryResult
from lcm.token_estimator import CodePoints

_FLOOR = CodePoints(empty_tokens=1)


@dataclass(frozen=True, slots=True)
class ClusterCounting:
    """`corrected`: the tokens that the context holds, on both sides, of what the summary covers. Any other: the
    summarizer's own count, words or a model's tokens, held against a quarter of the code points of all turns, those
    too that are kept as guidance.

    Source: libravdb memory 1.4.4.
    """

    rules: VersionedRules
    token_estimator: TokenEstimator

    @property
    def estimator(self) -> TokenEstimator:
        """Counts what is not stored."""
        return self.token_estimator if self.rules == "corrected" else _FLOOR

    def turn_tokens(self, entries: Sequence[ContextEntry], messages: Sequence[Message]) -> list[int]:
        """Of turns, for the recent tail."""
        if self.rules == "corrected":
            return [entry.tokens for entry in entries]
        return _FLOOR.count([message.content for message in messages])

    def is_less(
        self,
        result: SummaryResult,
        summary_tokens: int,
        entries: Sequence[ContextEntry],
        messages: Sequence[Message],
        covered_ids: Sequence[str],
    ) -> bool:
        """Say whether a summary is less than what it stands for; the context never grows by one.

        Args:
            result: what the summarizer gave.
            summary_tokens: of its text, in the context.
            entries: of all turns of the cluster.
            messages: the same turns.
            covered_ids: of the turns that the summary is made of.
        """
        if summary_tokens >= sum(entry.tokens for entry in entries):
            return False
        if self.rules == "corrected":
            return summary_tokens < sum(entry.tokens for entry in entries if entry.item_id in set(covered_ids))
        return self.said_tokens(result) < sum(_FLOOR.count([message.content for message in messages]))

    def said_tokens(self, result: SummaryResult) -> int:
        """What the summarizer counts; where it does not, a quarter of the code points."""
        said = result.tokens
        return said if said > 0 else _FLOOR.count([result.text])[0]
