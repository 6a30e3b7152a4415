"""One cluster: shown to a summarizer, held against its turns, written with what is kept of it word for word."""

import hashlib
import json
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lcm.clock import EPOCH
from lcm.compaction.clustering.cluster_confidence import EXTRACTIVE, ClusterConfidence
from lcm.compaction.clustering.cluster_counting import ClusterCounting
from lcm.compaction.clustering.cluster_ladder import Ladder, Rung
from lcm.compaction.clustering.prior_context import PriorContext
from lcm.compaction.clustering.sanitizer import Sanitizer
from lcm.compaction.harm import rules_found, summary_harm
from lcm.compaction.progress import CompactionProgress
from lcm.compaction.summarizer.chain import has_words
from lcm.compaction.summary_quality import SummaryQuality, clamped
from lcm.encoding import well_formed
from lcm.errors import AuthError, LcmError
from lcm.protocols.compaction import Guidance
from lcm.protocols.models import TokenEstimator
from lcm.records.conversation import Message
from lcm.records.rules import VersionedRules
from lcm.records.summary import ContextEntry, GuidanceShard, Level, Summary, SummaryRequest, SummaryResult
from lcm.transcript.large_files import file_ids_in

SummaryExchange = Generator[SummaryRequest, SummaryResult, "AcceptedSummary | None"]
Folding = Generator[SummaryRequest, SummaryResult, bool]
"""Whether the cluster left the context."""


class Cluster(NamedTuple):
    """Neighbouring messages of a context, and what is to be made of them."""

    entries: Sequence[ContextEntry]
    messages: Sequence[Message]
    shards: Sequence[GuidanceShard | None]
    """What is kept of each message word for word."""
    prior: PriorContext

    @property
    def folded(self) -> list[Message]:
        """The messages that a summary is to stand for."""
        return [message for message, shard in zip(self.messages, self.shards, strict=True) if shard is None]

    @property
    def kept(self) -> list[GuidanceShard]:
        return [shard for shard in self.shards if shard is not None]


class AcceptedSummary(NamedTuple):
    """A summary that is less than its cluster."""

    result: SummaryResult
    level: Level
    rejected: SummaryResult | None = None
    """The abstractive one that it stands in for."""
    quality: SummaryQuality | None = None
    """None: not looked at yet, or not to be had."""


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """Summarises one cluster: asks, checks the answer against the cluster's turns, and replaces them."""

    guidance: Guidance
    token_estimator: TokenEstimator
    counting: ClusterCounting
    confidence: ClusterConfidence
    ladder: Ladder
    sanitizer: Sanitizer
    rules: VersionedRules

    def fold(self, progress: CompactionProgress, cluster: Cluster) -> Folding:
        """Replace a cluster of at least two messages, one of them with words, by a summary; where all of it is
        guidance, by its shards alone.

        Nothing is written unless the summary is less than what it stands for. Why nothing was is noted.

        Raises:
            LcmError: if the summarizer failed, or the context is no longer what was planned for.
        """
        first, last = cluster.entries[0].ordinal, cluster.entries[-1].ordinal
        if not cluster.folded:
            kept = [shard.message_id for shard in cluster.kept]
            with progress.window.together():
                progress.window.protect(first, last, cluster.kept)
                progress.window.note(progress.now, "guidance", json.dumps({"kept": kept, "confidence": 1.0}))
            return True
        turns = [self.sanitizer.sanitize(message.content) for message in cluster.folded]
        made = yield from self._asked(progress, cluster, turns)
        if made is None:
            return False
        if made.quality is None:
            made = made._replace(quality=self.confidence.quality(turns, made.result, progress.incidents))
        planned = self._summary(progress, cluster, made)
        rules, tokens = rules_found(cluster.folded), sum(entry.tokens for entry in cluster.entries)
        harm = summary_harm(planned.content, "\n".join(turns), rules, planned.token_count, tokens, most_rules=1)
        progress.incidents.update(harm.incidents)
        with progress.window.together():
            summary = progress.window.replace(first, last, planned, cluster.kept)
            progress.window.note(progress.now, "quality", self._detail(summary, cluster, made))
        progress.summaries.append(summary)
        return True

    def is_silent(self, cluster: Cluster) -> bool:
        """Say whether nothing that a summary would stand for has words."""
        said = (self.sanitizer.sanitize(message.content) for message in cluster.folded)
        return bool(cluster.folded) and not any(map(has_words, said))

    def _asked(self, progress: CompactionProgress, cluster: Cluster, turns: Sequence[str]) -> SummaryExchange:
        """Climb the ladder up to the first summary that is less than its turns."""
        ladder = self.ladder
        rungs: list[tuple[Rung, Level]] = [
            (ladder.first, "normal"), (ladder.tighter, "aggressive"), (ladder.last, "fallback"),
        ]  # fmt: skip
        is_extractive = False
        failure: LcmError | None = None
        for rung, level in rungs:
            is_last = level == "fallback"
            if is_extractive if is_last else failure is not None:
                continue
            is_tight = level != "normal"
            result = yield self._request(progress, cluster, turns, rung, is_aggressive=is_tight, is_extractive=is_last)
            progress.update_clock(result)
            failure, is_extractive = result.failure, result.method == EXTRACTIVE
            if isinstance(failure, AuthError):
                raise failure
            if failure is None and has_words(result.text):
                made = yield from self._preserved(progress, cluster, turns, AcceptedSummary(result, level))
                if self._is_less(made.result, cluster):
                    return made
        if failure is not None:
            raise failure
        progress.refuse(0)
        return None

    def _preserved(
        self, progress: CompactionProgress, cluster: Cluster, turns: Sequence[str], made: AcceptedSummary
    ) -> Generator[SummaryRequest, SummaryResult, AcceptedSummary]:
        """The summary; one in the turns' own words where that is too far from what was said."""
        if not self.confidence.is_judging(made.result):
            return made
        made = made._replace(quality=self.confidence.quality(turns, made.result, progress.incidents))
        if not self.confidence.is_lost(made.result, made.quality):
            return made
        again = yield self._request(progress, cluster, turns, self.ladder.first, is_extractive=True)
        if again.failure is not None or again.method != EXTRACTIVE:
            return made
        return AcceptedSummary(
            again, "fallback", made.result, self.confidence.quality(turns, again, progress.incidents)
        )

    def _request(
        self,
        progress: CompactionProgress,
        cluster: Cluster,
        turns: Sequence[str],
        rung: Rung,
        *,
        is_aggressive: bool = False,
        is_extractive: bool = False,
    ) -> SummaryRequest:
        return SummaryRequest(
            text="\n".join(said for turn in turns if (said := turn.strip())),
            target_tokens=rung.target_tokens,
            previous=cluster.prior.text or None,
            is_aggressive=is_aggressive,
            turns=tuple(turns),
            density=rung.density,
            technicality=self._technicality(progress, cluster),
            is_extractive=is_extractive,
        )

    def _technicality(self, progress: CompactionProgress, cluster: Cluster) -> float:
        """The mean admission score of the turns that have one; by the rules of `1.4.4` of all, without one 0."""
        ids = [message.message_id for message in cluster.messages]
        found = progress.window.admission_scores(ids)
        scores = [found[message_id] for message_id in ids if message_id in found]
        count = len(ids) if self.rules == "1.4.4" else len(scores)
        return clamped(sum(scores) / count) if count else 0.0

    def _is_less(self, result: SummaryResult, cluster: Cluster) -> bool:
        tokens = self.token_estimator.count([well_formed(result.text)])[0]
        covered = [message.message_id for message in cluster.folded]
        return self.counting.is_less(result, tokens, cluster.entries, cluster.messages, covered)

    def _summary(self, progress: CompactionProgress, cluster: Cluster, made: AcceptedSummary) -> Summary:
        content = well_formed(made.result.text)
        folded = cluster.folded
        ids = tuple(message.message_id for message in folded)
        tokens = {entry.item_id: max(0, entry.tokens) for entry in cluster.entries}
        said_at = [message.created_at or EPOCH for message in folded]
        files = (file_id for message in folded for file_id in file_ids_in(message.content))
        return Summary(
            summary_id=summary_record_id(progress.window.conversation_id, ids),
            conversation_id=progress.window.conversation_id,
            kind="leaf",
            depth=0,
            content=content,
            token_count=self.token_estimator.count([content])[0],
            created_at=progress.now,
            earliest_at=min(said_at),
            latest_at=max(said_at),
            source_message_token_count=sum(tokens[message_id] for message_id in ids),
            source_ids=ids,
            file_ids=tuple(dict.fromkeys(files)),
            model=made.result.model,
            level=made.level,
            method=made.result.method,
            confidence=self.confidence.of(made.result, made.quality),
        )

    def _detail(self, summary: Summary, cluster: Cluster, made: AcceptedSummary) -> str:
        """Both confidences and the lineage of a summary, as JSON."""
        quality = made.quality
        said = {
            "summary_id": summary.summary_id,
            "method": summary.method,
            "confidence": summary.confidence,
            "backend_confidence": clamped((made.rejected or made.result).confidence),
            "rejected_method": None if made.rejected is None else made.rejected.method,
            "align": None if quality is None else quality.align,
            "cover": None if quality is None else quality.cover,
            "embedding_confidence": None if quality is None else quality.confidence,
            "said_tokens": self.counting.said_tokens(made.result),
            "kept": [shard.message_id for shard in cluster.kept],
            "support_summary_ids": list(cluster.prior.summary_ids),
            "support_tokens": cluster.prior.tokens,
        }
        return json.dumps(said)


def summary_record_id(conversation_id: str, message_ids: Sequence[str]) -> str:
    """`summary:` and 16 hex digits of the sha256 of the conversation's id, a colon, and the ids with commas between.

    Source: libravdb memory 1.4.4.
    """
    named = f"{conversation_id}:{','.join(message_ids)}"
    return f"summary:{hashlib.sha256(named.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
