"""Compaction by clusters: neighbouring turns in equal runs, each replaced by one summary that says how sure it is."""

import hashlib
import logging
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby, takewhile
from typing import overload

from lcm.checks import check_choice, check_range
from lcm.clock import EPOCH
from lcm.compaction.clustering.cluster_confidence import ClusterConfidence
from lcm.compaction.clustering.cluster_counting import ClusterCounting
from lcm.compaction.clustering.cluster_ladder import Ladder, Rung
from lcm.compaction.clustering.cluster_summary import Cluster, ClusterSummary
from lcm.compaction.clustering.prior_context import PriorContext, prior_context
from lcm.compaction.clustering.sanitizer import Sanitizer
from lcm.compaction.context_totals import ContextTotals, totals_of
from lcm.compaction.progress import CompactionProgress, report
from lcm.compaction.recent_tail import RecentTail, Turn
from lcm.compaction.summarizer.routed import Routed
from lcm.errors import LcmError
from lcm.protocols.compaction import ContextWindow, Guidance, Summarizer, Work
from lcm.protocols.models import Embedder, TokenEstimator
from lcm.records.conversation import Message
from lcm.records.rules import VersionedRules
from lcm.records.summary import ContextEntry, Summary, SummaryRequest, SummaryResult, TriggerReading
from lcm.transcript.parts import recorded_bundle

_BLOCK = 8
"""Messages that are read at once: most tails are shorter."""
_KNOWN = 1024
"""Turns that are remembered of a conversation, before it begins anew."""


class SaidTurns(Sequence[Turn]):
    """All messages that stand in a context, in order; what no tail looks at is never read."""

    def __init__(self, window: ContextWindow, entries: ContextTotals, counting: ClusterCounting) -> None:
        self._window = window
        self._counting = counting
        self._said = entries.said
        self._turns: list[Turn] = []
        """Newest first."""

    def __len__(self) -> int:
        return len(self._said)

    @overload
    def __getitem__(self, at: int) -> Turn: ...
    @overload
    def __getitem__(self, at: slice) -> list[Turn]: ...
    def __getitem__(self, at: int | slice) -> Turn | list[Turn]:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(len(self)))]
        return self._turns[self._read_to(at)]

    def _read_to(self, at: int) -> int:
        """How far from the end the place is, which is read then."""
        count = len(self._said)
        if not -count <= at < count:
            raise IndexError(at)
        back = (count - 1 - at) % count
        while back >= len(self._turns):
            self._turns += self._read(self._said[max(0, count - len(self._turns) - _BLOCK) : count - len(self._turns)])
        return back

    def _read(self, entries: Sequence[ContextEntry]) -> list[Turn]:
        """The turns of some entries, newest first; what an earlier tail looked at is known."""
        known = self._window.turns
        if unread := [entry for entry in entries if entry.item_id not in known]:
            if len(known) > _KNOWN:
                known.clear()
                unread = list(entries)
            messages = self._window.messages([entry.item_id for entry in unread])
            tokens = self._counting.turn_tokens(unread, messages)
            for entry, message, count in zip(unread, messages, tokens, strict=True):
                known[entry.item_id] = Turn(count, message.role, recorded_bundle(message))
        return [known[entry.item_id] for entry in reversed(entries)]


def partition(count: int, target_size: int) -> list[range]:
    """Cut `count` turns, in order, into ceil(count / target_size) clusters whose sizes differ by at most one.

    Turn i of n stands in cluster floor(i c / n), where c is the number of clusters; no turns make no cluster.

    Source: libravdb memory 1.3.5, mathematical reference, section 5.
    """
    clusters = -(-count // target_size)
    starts = [-(-number * count // clusters) for number in range(clusters)]
    return [range(start, stop) for start, stop in zip(starts, [*starts[1:], count], strict=True)] if count else []


Passing = Generator[SummaryRequest, SummaryResult, bool]

_log = logging.getLogger(__name__)
_WAITING = "tokens between its last summary and its recent tail that trigger it"
_NEVER = "tokens there, and compaction.session_token_budget=0 triggers nothing after a turn"
_ALWAYS = "tokens, and whatever stands before the recent tail is compacted, be it ever so little"


@dataclass(frozen=True, slots=True)
class Clustering:
    """The messages before the recent tail are cut into ceil(n / target_cluster_size) runs of neighbours; what guidance
    protects of a run is kept word for word, the rest becomes one leaf summary, if that is less than what it stands
    for. A run of one message stays as it is, and so does one without words, which is counted. Summaries are never
    summarised again, and part the messages around them.

    What was given is cut anew and tried again until nothing is made: a second run finds nothing to do. Every summary
    says in a note ("quality") what its maker's confidence is, and what an embedder's, whichever of them counts. A
    summarizer that fails leaves its cluster as it is. Reasons that reports give: "compacted", "below threshold",
    "nothing to compact", "already under target", "could not reach target", "provider auth failure", or the text of
    the failure that ended the run.

    Source: libravdb memory, its documents of 1.3.5 and 1.3.17 (`rules` original) and its code of 1.4.4 (1.4.4):

    | | corrected | original | 1.4.4 |
    |---|---|---|---|
    | boundary of the tail | one unit is completed | likewise | all that alternates comes along, mostly everything |
    | confidence | the maker's | likewise | an embedder's too; what is far from its turns is made again |
    | less than its turns | by tokens of the context | words or a model's tokens against characters | likewise |
    | prior summaries | those before the cluster | those made before it was said: never the one before | likewise |
    | technicality, mean score of | scored turns | likewise | all turns, without a score 0: hardly ever technical |

    By all rules alike: what is compacted is not compacted again, which the original does; and where a model fails,
    words of the turns stand in, if the summarizer has them, instead of ending the run, which refused credentials end.
    """

    summarizer: Summarizer
    guidance: Guidance
    token_estimator: TokenEstimator
    embedder: Embedder
    rules: VersionedRules = "corrected"
    target_cluster_size: int = 20
    min_turns: int = 4
    tail_budget_tokens: int = 128
    preservation_threshold: float = 0.65
    embedding_share: float = 0.8
    backend_share: float = 0.2
    first_target_tokens: int = 64
    first_density: float = 0.4
    tighter_target_tokens: int = 32
    tighter_density: float = 0.25
    last_target_tokens: int = 16
    last_density: float = 0.25
    prior_context_tokens: int = 96
    session_token_budget: int = 2000
    sanitizer: Sanitizer = field(default_factory=Sanitizer)
    tail: RecentTail = field(init=False, repr=False, compare=False)
    summary: ClusterSummary = field(init=False, repr=False, compare=False)
    is_off = False

    def __post_init__(self) -> None:
        check_range(self, "target_cluster_size", ge=1)
        check_range(self, "min_turns", "tail_budget_tokens", "prior_context_tokens", "session_token_budget", ge=0)
        check_range(self, "preservation_threshold", "embedding_share", "backend_share", ge=0, le=1)
        check_choice(self, rules=VersionedRules)
        ladder = Ladder(
            Rung(self.first_target_tokens, self.first_density),
            Rung(self.tighter_target_tokens, self.tighter_density),
            Rung(self.last_target_tokens, self.last_density),
        )
        counting = ClusterCounting(self.rules, self.token_estimator)
        confidence = ClusterConfidence(
            self.rules, self.embedder, self.preservation_threshold, self.embedding_share, self.backend_share,
        )  # fmt: skip
        summary = ClusterSummary(
            self.guidance, self.token_estimator, counting, confidence, ladder, self.sanitizer, self.rules
        )  # fmt: skip
        object.__setattr__(self, "tail", RecentTail(self.min_turns, self.tail_budget_tokens, None))
        object.__setattr__(self, "summary", summary)

    @property
    def reads_admission(self) -> bool:
        return isinstance(self.summarizer, Routed) and self.summarizer.reads_admission

    def after_turn(
        self, window: ContextWindow, now: datetime, live_tokens: int = 0, *, incidents: Counter[str]
    ) -> Work:
        """Compact if the messages between the last summary and the recent tail cost `session_token_budget`, at least
        two of them; 0 = never. What the host counts is not looked at."""
        progress = CompactionProgress(window, now, incidents)
        before = progress.totals.tokens
        waiting = self._waiting(window)
        tokens = sum(entry.tokens for entry in waiting)
        progress.triggers = (TriggerReading(_WAITING, tokens, self.session_token_budget),)
        if not self.session_token_budget:
            progress.triggers = (TriggerReading(_NEVER, tokens, None),)
        is_due = len(waiting) > 1 and tokens >= self.session_token_budget > 0
        if not is_due:
            return report(progress, before, "below threshold")
        is_changed = yield from self._passes(progress, None)
        return report(progress, before, "compacted" if is_changed else "nothing to compact")

    def compact(
        self,
        window: ContextWindow,
        now: datetime,
        *,
        incidents: Counter[str],
        is_forced: bool = False,
        target_tokens: int | None = None,
    ) -> Work:
        """Compact all that can be, forced or not; with a target, cluster by cluster until the context fits."""
        progress = CompactionProgress(window, now, incidents)
        before = progress.totals.tokens
        if not is_forced and target_tokens is None:
            progress.triggers = (TriggerReading(_ALWAYS, before, None),)
        if target_tokens is not None and before <= target_tokens:
            return report(progress, before, "already under target")
        is_changed = yield from self._passes(progress, target_tokens)
        if target_tokens is not None and progress.totals.tokens > target_tokens:
            return report(progress, before, "could not reach target")
        return report(progress, before, "compacted" if is_changed else "nothing to compact")

    def clusters(self, window: ContextWindow) -> list[list[ContextEntry]]:
        """The runs of messages that would be compacted now, oldest first; fewer than two messages are none."""
        runs = self._runs(window)
        if sum(map(len, runs)) < 2:
            return []
        return [[run[i] for i in places] for run in runs for places in partition(len(run), self.target_cluster_size)]

    def one_pass(
        self, progress: CompactionProgress, target_tokens: int | None = None, tried: set[str] | None = None
    ) -> Passing:
        """Try each cluster of the context as it is now once, oldest first, until the context fits.

        Args:
            progress: the run.
            target_tokens: of the context; None = all clusters.
            tried: clusters that were tried already, and need not be; takes in those tried now.
        Returns:
            Whether a cluster left the context.
        """
        tried = set() if tried is None else tried
        is_changed = False
        for entries in self.clusters(progress.window):
            if target_tokens is not None and progress.totals.tokens <= target_tokens:
                break
            if len(entries) < 2:
                continue
            cluster = self._cluster(progress, entries)
            name = _name(progress.window.conversation_id, cluster)
            if name in tried or name in progress.window.attempted:
                continue
            tried.add(name)
            if self.summary.is_silent(cluster):
                _decline(progress, cluster)
                continue
            made, failure = len(progress.summaries), progress.failure
            try:
                is_folded = yield from self.summary.fold(progress, cluster)
            except LcmError as error:
                progress.fail(error, is_told=not _is_new(progress.window, "failure"))
                progress.failure = failure or progress.failure
                if progress.has_failed_auth:
                    break
                continue
            is_changed = is_changed or is_folded
            if not is_folded and len(progress.summaries) == made:
                progress.window.attempted.add(name)  # asking again would give the same
        return is_changed

    def _passes(self, progress: CompactionProgress, target_tokens: int | None) -> Passing:
        tried: set[str] = set()
        is_changed = False
        while not progress.has_failed_auth:
            progress.rounds += 1
            if not (yield from self.one_pass(progress, target_tokens, tried)):
                break
            is_changed = True
        return is_changed

    def _waiting(self, window: ContextWindow) -> list[ContextEntry]:
        """The messages between the last summary and the recent tail, newest first."""
        entries, tail = totals_of(window.entries), self._tail(window)
        place = entries.place(entries.said[tail].ordinal) if tail < len(entries.said) else len(entries)
        if any(not entry.is_message for entry in entries[place:]):
            return []
        before = (entries[at] for at in range(place - 1, -1, -1))
        return list(takewhile(lambda entry: entry.is_message, before))

    def _runs(self, window: ContextWindow) -> list[list[ContextEntry]]:
        """Neighbouring messages before the recent tail."""
        entries = totals_of(window.entries)
        older = enumerate(entries.said[: self._tail(window)])
        runs = groupby(older, lambda numbered: entries.place(numbered[1].ordinal) - numbered[0])
        return [[entry for _, entry in run] for _, run in runs]

    def _tail(self, window: ContextWindow) -> int:
        """How many messages stand before the recent tail."""
        said = SaidTurns(window, totals_of(window.entries), self.summary.counting)
        if not self.min_turns:
            return len(said)
        return self.tail.select(said, self.tail_budget_tokens, rules=self.rules).recent

    def _cluster(self, progress: CompactionProgress, entries: Sequence[ContextEntry]) -> Cluster:
        messages = progress.window.messages([entry.item_id for entry in entries])
        window = progress.window
        shards = self.guidance.shards(messages, window.conversation_id, progress.now, incidents=progress.incidents)
        return Cluster(entries, messages, shards, self._prior(progress, entries, messages))

    def _prior(
        self, progress: CompactionProgress, entries: Sequence[ContextEntry], messages: Sequence[Message]
    ) -> PriorContext:
        limit, estimator = self.prior_context_tokens, self.summary.counting.estimator
        if not limit:
            return PriorContext()
        window = progress.window

        def read(summary_id: str) -> Summary:
            return window.summaries([summary_id])[0]

        if self.rules == "corrected":
            return prior_context(progress.totals.summaries.newest, entries[0].ordinal, limit, read, estimator)
        said_at = messages[0].created_at or EPOCH
        return prior_context(window.newest_made, (said_at, ""), limit, read, estimator)


def _decline(progress: CompactionProgress, cluster: Cluster) -> None:
    """Count a cluster of which there is nothing to summarise; once, though it may grow before the next run."""
    if _is_new(progress.window, f"silent {cluster.folded[0].message_id}"):
        progress.incidents["cluster without words: left as it is"] += 1
        told = progress.window.conversation_id, len(cluster.folded)
        _log.info("conversation %s: a cluster of %d turns has no words", *told)


def _is_new(window: ContextWindow, told: str) -> bool:
    is_new = told not in window.attempted
    window.attempted.add(told)
    return is_new


def _name(conversation_id: str, cluster: Cluster) -> str:
    """What a summarizer's answer depends on, as a digest."""
    said = [part for message in cluster.messages for part in (message.message_id, message.content)]
    parts = [conversation_id, *cluster.prior.summary_ids, cluster.prior.text, *said]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
