"""Compaction by clusters: neighbouring turns in equal runs, each replaced by one summary that says how sure it is.

Source: libravdb memory 1.3.5 and 1.4.4.
"""

import hashlib
import json
import logging
import re
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import groupby, pairwise, takewhile
from typing import NamedTuple

import numpy as np

from lcm.checks import check_choice, check_range
from lcm.clock import EPOCH
from lcm.compaction.context_totals import newest_first, totals_of
from lcm.compaction.quality import SummaryQuality, clamped, rules_found, summary_harm, summary_quality
from lcm.compaction.recent_tail import RecentTail, Turn
from lcm.compaction.summarizer.chain import has_words
from lcm.compaction.summarizer.t5 import Routed
from lcm.compaction.work import CompactionProgress
from lcm.encoding import well_formed
from lcm.errors import AuthError, LcmError, ModelError
from lcm.protocols.compaction import ContextWindow, Guidance, Summarizer, Work
from lcm.protocols.models import Embedder, TokenEstimator
from lcm.records.conversation import Message
from lcm.records.rules import VersionedRules
from lcm.records.summary import (
    ContextEntry,
    GuidanceShard,
    Level,
    Summary,
    SummaryRequest,
    SummaryResult,
    TriggerReading,
)
from lcm.token_estimator import CodePoints
from lcm.transcript.large_files import file_ids_in
from lcm.transcript.parts import recorded_bundle

Passing = Generator[SummaryRequest, SummaryResult, bool]

_log = logging.getLogger(__name__)
_EXTRACTIVE = "extractive"
_FLOOR = CodePoints(empty_tokens=1)
_WAITING = "tokens between its last summary and its recent tail that trigger it"
_NEVER = "tokens there, and compaction.session_token_budget=0 triggers nothing after a turn"
_ALWAYS = "tokens, and whatever stands before the recent tail is compacted, be it ever so little"
_FENCE = "```"
_BLOCK = re.compile(r"^[^\S\n]*```.*(?P<inner>(?:\n(?![^\S\n]*```).*)*)(?:\n.*)?", re.MULTILINE)
_FENCED = "[sanitized fenced payload omitted for continuity]"
_TRANSPORT = "[sanitized transport payload omitted for continuity]"
_OPAQUE = "[sanitized opaque payload omitted for continuity]"
_NOTHING_LEFT = "[sanitized empty payload omitted for continuity]"
_DATA = "data:"


@dataclass(frozen=True, slots=True)
class Sanitizer:
    """A note in the place of each long fenced block, each long data URI, and each line with a long opaque run; lines
    without words next to each other become one, and the text is trimmed.

    Lengths are of UTF-8 bytes. A fence begins at a line that starts with three backticks after blanks, and reaches to
    the next such line, or to the end of the text; the lines of a short block are judged like all others. An opaque run
    is one of base64 characters, also in its form for URLs, or of hexadecimal digits, between ends of words, whose
    letters are ASCII's.

    Source: libravdb memory 1.4.4.
    """

    fence_bytes: int = 240
    fence_lines: int = 8
    """Between its ends; either makes a block long."""
    data_bytes: int = 64
    """Length from which a line that starts with `data:` is long."""
    opaque_bytes: int = 96
    """Length of a line; a shorter one stays, whatever runs it holds."""
    base64_run: int = 80
    hex_run: int = 64

    def __post_init__(self) -> None:
        check_range(self, "fence_bytes", "fence_lines", "data_bytes", "opaque_bytes", "base64_run", "hex_run", ge=1)

    def sanitize(self, text: str) -> str:
        """The text as a summarizer is shown it; blank stays blank."""
        if not text.strip():
            return ""
        kept: list[str] = []
        lines = text.strip().replace("\r\n", "\n")
        for line in (_BLOCK.sub(self._shown, lines) if _FENCE in lines else lines).split("\n"):
            is_blank = not line.strip()
            if not (is_blank and kept and not kept[-1]):
                kept.append("" if is_blank else self._line(line))
        return "\n".join(kept).strip() or _NOTHING_LEFT

    def _shown(self, block: re.Match[str]) -> str:
        is_long = block["inner"].count("\n") >= self.fence_lines or _byte_length(block[0]) >= self.fence_bytes
        return _FENCED if is_long else block[0]

    def _line(self, line: str) -> str:
        length = _byte_length(line.strip())
        if line.strip().startswith(_DATA) and length >= self.data_bytes:
            return _TRANSPORT
        runs = rf"\b(?:[A-Za-z0-9+/=_-]{{{self.base64_run},}}|[0-9a-fA-F]{{{self.hex_run},}})\b"
        return _OPAQUE if length >= self.opaque_bytes and re.search(runs, line.strip(), re.ASCII) else line


def _byte_length(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


class SaidTurns:
    """All messages that stand in a context, in order; what no tail looks at is never read."""

    def __init__(self, window: ContextWindow, rules: VersionedRules) -> None:
        said, self._turns = totals_of(window.entries).said, list[Turn]()

        def seen(entry: ContextEntry, message: Message) -> Turn:
            tokens = entry.tokens if rules == "corrected" else _FLOOR.count([message.content])[0]
            return Turn(tokens, message.role, recorded_bundle(message))

        self._count, self._unread = len(said), newest_first(window, said, seen)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: int) -> Turn:
        back = self._count - 1 - at
        if not 0 <= back < self._count:
            raise IndexError(at)
        while back >= len(self._turns):
            self._turns.append(next(self._unread))
        return self._turns[back]


def partition(count: int, target_size: int) -> list[range]:
    """Cut `count` turns, in order, into ceil(count / target_size) clusters whose sizes differ by at most one.

    Turn i of n stands in cluster floor(i c / n), where c is the number of clusters; no turns make no cluster.

    Source: libravdb memory 1.3.5, mathematical reference, section 5.
    """
    clusters = -(-count // target_size)
    bounds = [-(-number * count // clusters) for number in range(clusters + 1)] if clusters else []
    return [range(*ends) for ends in pairwise(bounds)]


class PriorContext(NamedTuple):
    """Earlier summaries, oldest first: what a summarizer is told of the time before a cluster."""

    summary_ids: tuple[str, ...] = ()
    text: str = ""
    """With blank lines between them."""
    tokens: int = 0


class AcceptedSummary(NamedTuple):
    """A summary that is less than its cluster."""

    result: SummaryResult
    level: Level
    rejected: SummaryResult | None = None
    """The abstractive one that it stands in for."""
    quality: SummaryQuality | None = None
    """None: not looked at yet, or not to be had."""


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

    def __post_init__(self) -> None:
        check_range(self, "target_cluster_size", ge=1)
        check_range(self, "min_turns", "tail_budget_tokens", "prior_context_tokens", "session_token_budget", ge=0)
        check_range(self, "preservation_threshold", "embedding_share", "backend_share", ge=0, le=1)
        check_range(self, "first_target_tokens", "tighter_target_tokens", "last_target_tokens", ge=1)
        check_range(self, "first_density", "tighter_density", "last_density", gt=0, le=1)
        check_choice(self, rules=VersionedRules)
        object.__setattr__(self, "tail", RecentTail(self.min_turns, self.tail_budget_tokens, None))

    @property
    def reads_admission(self) -> bool:
        return isinstance(self.summarizer, Routed) and self.summarizer.reads_admission

    def after_turn(
        self, window: ContextWindow, now: datetime, live_tokens: int = 0, *, incidents: Counter[str]
    ) -> Work:
        """Compact if the messages between the last summary and the recent tail cost `session_token_budget`, at least
        two of them; 0 = never. What the host counts is not looked at."""
        progress = CompactionProgress(window, now, incidents)
        before, waiting, budget = progress.totals.tokens, self._waiting(window), self.session_token_budget
        tokens = sum(entry.tokens for entry in waiting)
        progress.triggers = (TriggerReading(_WAITING if budget else _NEVER, tokens, budget or None),)
        if not (len(waiting) > 1 and tokens >= budget > 0):
            return progress.report(before, "below threshold")
        is_changed = yield from self._passes(progress, None)
        return progress.report(before, "compacted" if is_changed else "nothing to compact")

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
            return progress.report(before, "already under target")
        is_changed = yield from self._passes(progress, target_tokens)
        if target_tokens is not None and progress.totals.tokens > target_tokens:
            return progress.report(before, "could not reach target")
        return progress.report(before, "compacted" if is_changed else "nothing to compact")

    def clusters(self, window: ContextWindow) -> list[list[ContextEntry]]:
        """The runs of messages that would be compacted now, oldest first; fewer than two messages are none."""
        entries = totals_of(window.entries)
        older = enumerate(entries.said[: self._tail(window)])
        numbered = groupby(older, lambda one: entries.place(one[1].ordinal) - one[0])
        runs = [[entry for _, entry in run] for _, run in numbered]
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
        is_changed, window = False, progress.window
        for entries in self.clusters(window):
            if target_tokens is not None and progress.totals.tokens <= target_tokens:
                break
            if len(entries) < 2:
                continue
            cluster = self._cluster(progress, entries)
            name = cluster.name
            if name in tried or name in window.attempted:
                continue
            tried.add(name)
            if cluster.folded and not any(map(has_words, cluster.turns)):
                if _is_new(window, f"silent {cluster.folded[0].message_id}"):  # once, though it may grow
                    progress.incidents["cluster without words: left as it is"] += 1
                    told = window.conversation_id, len(cluster.folded)
                    _log.info("conversation %s: a cluster of %d turns has no words", *told)
                continue
            failure = progress.failure
            try:
                is_folded = yield from cluster.fold()
            except LcmError as error:
                progress.fail(error, is_told=not _is_new(window, "failure"))
                progress.failure = failure or progress.failure
                if progress.has_failed_auth:
                    break
                continue
            is_changed = is_changed or is_folded
            if not is_folded:
                window.attempted.add(name)  # asking again would give the same
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

    def _tail(self, window: ContextWindow) -> int:
        """Count the messages that stand before the recent tail."""
        if not self.min_turns:
            return len(totals_of(window.entries).said)
        return self.tail.select(SaidTurns(window, self.rules), self.tail_budget_tokens, rules=self.rules).recent

    def _cluster(self, progress: CompactionProgress, entries: Sequence[ContextEntry]) -> "Cluster":
        window = progress.window
        messages = window.messages([entry.item_id for entry in entries])
        shards = self.guidance.shards(messages, window.conversation_id, progress.now, incidents=progress.incidents)
        if self.rules == "corrected":
            earlier = progress.totals.summaries_before(entries[0].ordinal)
        else:
            earlier = window.made_before(messages[0].created_at or EPOCH)
        prior = self.prior_context(window, earlier) if self.prior_context_tokens else PriorContext()
        return Cluster(self, progress, entries, messages, shards, prior)

    def prior_context(self, window: ContextWindow, earlier: Iterable[tuple[str, int]]) -> PriorContext:
        """Take the newest summaries that fit; one that does not is passed over, and older ones may still fit.

        Args:
            window: gives summaries by their ids.
            earlier: the ids and tokens of those before, newest first; what has no tokens is counted.
        """
        limit, estimator = self.prior_context_tokens, self.token_estimator if self.rules == "corrected" else _FLOOR
        taken: list[Summary] = []
        used = 0
        for summary_id, tokens in earlier:
            if used + max(0, tokens) > limit:
                continue
            [summary] = window.summaries([summary_id])
            tokens = tokens if tokens > 0 else estimator.count([summary.content])[0]
            if used + tokens <= limit:
                taken.insert(0, summary)
                used += tokens
        text = "\n\n".join(one.content for one in taken).strip()
        return PriorContext(tuple(one.summary_id for one in taken), text, used)

    def quality(self, turns: Sequence[str], result: SummaryResult, incidents: Counter[str]) -> SummaryQuality | None:
        """Hold a summary against its turns; None where they could not be embedded."""
        known = result.turn_vectors if result.model == self.embedder.name else {}
        unknown = [turn for turn in turns if turn not in known]
        try:
            *rows, summary = self.embedder.embed([*unknown, result.text], "document")
        except ModelError as failure:
            _log.warning("a summary could not be held against its turns: %s", failure)
            incidents["summary not held against its turns: its maker's confidence stands"] += 1
            return None
        found = {**known, **dict(zip(unknown, rows, strict=True))}
        return summary_quality(np.array([found[turn] for turn in turns]), summary)

    def is_lost(self, result: SummaryResult, quality: SummaryQuality | None) -> bool:
        """Say whether an abstractive summary is too far from what was said; by other rules than 1.4.4 none is."""
        is_judged = self.rules == "1.4.4" and result.method != _EXTRACTIVE
        return is_judged and quality is not None and quality.align < self.preservation_threshold

    def confidence(self, result: SummaryResult, quality: SummaryQuality | None) -> float:
        """Confidence in a summary, in [0, 1]: its maker's; by rules 1.4.4 an embedder's, or both where abstractive."""
        own = clamped(result.confidence)
        if self.rules != "1.4.4" or quality is None:
            return own
        if result.method == _EXTRACTIVE:
            return quality.confidence
        return clamped(self.embedding_share * quality.confidence + self.backend_share * own)


@dataclass(frozen=True)
class Cluster:
    """Neighbouring messages of a context, and what is to be made of them."""

    settings: Clustering
    progress: CompactionProgress
    entries: Sequence[ContextEntry]
    messages: Sequence[Message]
    shards: Sequence[GuidanceShard | None]
    """The part of each message that is kept word for word; None where nothing is."""
    prior: PriorContext

    @cached_property
    def folded(self) -> list[Message]:
        """The messages that a summary is to stand for."""
        return [message for message, shard in zip(self.messages, self.shards, strict=True) if shard is None]

    @cached_property
    def turns(self) -> list[str]:
        """The texts of these messages, as a summarizer is shown them."""
        return [self.settings.sanitizer.sanitize(message.content) for message in self.folded]

    @property
    def name(self) -> str:
        """Digest of all that a summarizer's answer depends on."""
        said = [part for message in self.messages for part in (message.message_id, message.content)]
        parts = [self.progress.window.conversation_id, *self.prior.summary_ids, self.prior.text, *said]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()

    def fold(self) -> Passing:
        """Replace at least two messages, one of them with words, by a summary; where all is guidance, by its shards.

        Nothing is written unless the summary is less than what it stands for. Why nothing was is noted.

        Returns:
            Whether the cluster left the context.
        Raises:
            LcmError: if the summarizer failed, or the context is no longer what was planned for.
        """
        window, now, first, last = self.progress.window, self.progress.now, self.entries[0], self.entries[-1]
        shards = [shard for shard in self.shards if shard is not None]
        kept = [shard.message_id for shard in shards]
        if not self.folded:
            with window.together():
                window.protect(first.ordinal, last.ordinal, shards)
                window.note(now, "guidance", json.dumps({"kept": kept, "confidence": 1.0}))
            return True
        made = yield from self._asked()
        if made is None:
            return False
        quality = made.quality or self._quality(made.result)
        planned = self._summary(made, self.settings.confidence(made.result, quality))
        rules, tokens = rules_found(self.folded), sum(entry.tokens for entry in self.entries)
        harm = summary_harm(planned.content, "\n".join(self.turns), rules, planned.token_count, tokens, most_rules=1)
        self.progress.incidents.update(harm.incidents)
        detail = {
            "method": planned.method,
            "confidence": planned.confidence,
            "backend_confidence": clamped((made.rejected or made.result).confidence),
            "rejected_method": made.rejected and made.rejected.method,
            "align": quality and quality.align,
            "cover": quality and quality.cover,
            "embedding_confidence": quality and quality.confidence,
            "said_tokens": _said_tokens(made.result),
            "kept": kept,
            "support_summary_ids": list(self.prior.summary_ids),
            "support_tokens": self.prior.tokens,
        }
        with window.together():
            summary = window.replace(first.ordinal, last.ordinal, planned, shards)
            window.note(now, "quality", json.dumps({"summary_id": summary.summary_id, **detail}))
        self.progress.summaries.append(summary)
        return True

    def _asked(self) -> Generator[SummaryRequest, SummaryResult, AcceptedSummary | None]:
        """Ask up to three times for a summary that is less than its turns: plainly; more tightly where the first was
        not; and in the turns' own words, where those before it were not."""
        settings, is_extractive = self.settings, False
        failure: LcmError | None = None
        rungs: list[tuple[int, float, Level]] = [
            (settings.first_target_tokens, settings.first_density, "normal"),
            (settings.tighter_target_tokens, settings.tighter_density, "aggressive"),
            (settings.last_target_tokens, settings.last_density, "fallback"),
        ]
        for target_tokens, density, level in rungs:
            is_last = level == "fallback"
            if is_extractive if is_last else failure is not None:
                continue
            is_tight = level != "normal"
            result = yield self._request(target_tokens, density, is_aggressive=is_tight, is_extractive=is_last)
            self.progress.update_clock(result)
            failure, is_extractive = result.failure, result.method == _EXTRACTIVE
            if isinstance(failure, AuthError):
                raise failure
            if failure is None and has_words(result.text):
                made = yield from self._preserved(AcceptedSummary(result, level))
                if self._is_less(made.result):
                    return made
        if failure is not None:
            raise failure
        self.progress.refuse(0)
        return None

    def _preserved(self, made: AcceptedSummary) -> Generator[SummaryRequest, SummaryResult, AcceptedSummary]:
        """The summary; one in the turns' own words where that is too far from what was said."""
        settings = self.settings
        if settings.rules == "1.4.4" and made.result.method != _EXTRACTIVE:
            made = made._replace(quality=self._quality(made.result))
        if not settings.is_lost(made.result, made.quality):
            return made
        again = yield self._request(settings.first_target_tokens, settings.first_density, is_extractive=True)
        if again.failure is not None or again.method != _EXTRACTIVE:
            return made
        return AcceptedSummary(again, "fallback", made.result, self._quality(again))

    def _quality(self, result: SummaryResult) -> SummaryQuality | None:
        return self.settings.quality(self.turns, result, self.progress.incidents)

    def _request(self, target_tokens: int, density: float, **how: bool) -> SummaryRequest:
        ids = [message.message_id for message in self.messages]
        scores = self.progress.window.admission_scores(ids)
        count = len(ids) if self.settings.rules == "1.4.4" else len(scores)
        return SummaryRequest(
            text="\n".join(said for turn in self.turns if (said := turn.strip())),
            target_tokens=target_tokens,
            previous=self.prior.text or None,
            turns=tuple(self.turns),
            density=density,
            technicality=clamped(sum(scores[one] for one in ids if one in scores) / count) if count else 0.0,
            **how,
        )

    def _is_less(self, result: SummaryResult) -> bool:
        """Say whether a summary is less than what it stands for; the context never grows by one.

        `corrected`: by the tokens that the context holds, on both sides, of what the summary covers. Any other: the
        summarizer's own count, words or a model's tokens, held against a quarter of the code points of all turns, those
        too that are kept as guidance.
        """
        tokens = self.settings.token_estimator.count([well_formed(result.text)])[0]
        if tokens >= sum(entry.tokens for entry in self.entries):
            return False
        if self.settings.rules == "corrected":
            covered = {message.message_id for message in self.folded}
            return tokens < sum(entry.tokens for entry in self.entries if entry.item_id in covered)
        return _said_tokens(result) < sum(_FLOOR.count([message.content for message in self.messages]))

    def _summary(self, made: AcceptedSummary, confidence: float) -> Summary:
        content, conversation_id = well_formed(made.result.text), self.progress.window.conversation_id
        ids = tuple(message.message_id for message in self.folded)
        said_at = [message.created_at or EPOCH for message in self.folded]
        files = (file_id for message in self.folded for file_id in file_ids_in(message.content))
        return Summary(
            summary_id=summary_record_id(conversation_id, ids),
            conversation_id=conversation_id,
            kind="leaf",
            depth=0,
            content=content,
            token_count=self.settings.token_estimator.count([content])[0],
            created_at=self.progress.now,
            earliest_at=min(said_at),
            latest_at=max(said_at),
            source_message_token_count=sum(max(0, one.tokens) for one in self.entries if one.item_id in set(ids)),
            source_ids=ids,
            file_ids=tuple(dict.fromkeys(files)),
            model=made.result.model,
            level=made.level,
            method=made.result.method,
            confidence=confidence,
        )


def summary_record_id(conversation_id: str, message_ids: Sequence[str]) -> str:
    """`summary:` and 16 hex digits of the sha256 of the conversation's id, a colon, and the ids with commas between.

    Source: libravdb memory 1.4.4.
    """
    named = f"{conversation_id}:{','.join(message_ids)}"
    return f"summary:{hashlib.sha256(named.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _said_tokens(result: SummaryResult) -> int:
    """Tokens as the summarizer counts them; where it does not, a quarter of the code points."""
    return result.tokens if result.tokens > 0 else _FLOOR.count([result.text])[0]


def _is_new(window: ContextWindow, told: str) -> bool:
    is_new = told not in window.attempted
    window.attempted.add(told)
    return is_new
