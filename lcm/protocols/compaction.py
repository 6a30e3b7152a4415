"""From old messages to summaries."""

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol

import polars as pl

from lcm.records.conversation import Message
from lcm.records.document import Document
from lcm.records.summary import (
    CompactionReport,
    ContextEntry,
    GuidanceShard,
    MessageHeat,
    Summary,
    SummaryRequest,
    SummaryResult,
)


class Summarizer(Protocol):
    """Texts to shorter texts.

    Laws: one result a request, in order; confidence in [0, 1]; a batch of one equals that row of a batch of n; a result
    has words, or a `failure` that says why not. Constructing one opens no model.
    """

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]: ...


Work = Generator[SummaryRequest, SummaryResult, CompactionReport]
"""Compaction of one conversation: gives each request as it comes to it, and is sent the result. Works of many
conversations are driven side by side, so that their requests reach the summarizer in batches."""


class ContextWindow(Protocol):
    """One conversation as compaction sees it: its context, kept in step with the store."""

    @property
    def conversation_id(self) -> str: ...

    @property
    def entries(self) -> Sequence[ContextEntry]:
        """The context items, in order."""
        ...

    @property
    def attempted(self) -> set[str]:
        """Names of what compaction tried here in vain, or told of, and need not again."""
        ...

    @property
    def turns(self) -> dict[str, Any]:
        """What recent tails have seen of messages, by their ids: most of it is asked for again after the next turn."""
        ...

    def messages(self, message_ids: Sequence[str]) -> list[Message]: ...

    def summaries(self, summary_ids: Sequence[str]) -> list[Summary]: ...

    def made_before(self, instant: datetime) -> Iterator[tuple[str, int]]:
        """The ids and tokens of the summaries of the context that were made before an instant, the newest first."""
        ...

    def replace(self, first: int, last: int, summary: Summary, shards: Sequence[GuidanceShard] = ()) -> Summary:
        """Put a summary in the place of the entries with the ordinals first to last, in the store and here.

        Args:
            first: of the entries.
            last: of the entries.
            summary: its sources are those entries, without the shards' messages.
            shards: the messages among them that are kept word for word; in the same transaction.
        Returns:
            The summary as stored: under another id where its own was taken.
        """
        ...

    def protect(self, first: int, last: int, shards: Sequence[GuidanceShard]) -> None:
        """Take the entries first to last out of the context: all of them messages, each kept as a shard."""
        ...

    def keep(self, shards: Sequence[GuidanceShard]) -> None:
        """Keep messages as guidance that stay in the context, too."""
        ...

    def heat(self) -> Mapping[str, MessageHeat]:
        """How often what was said later, wherever it stands now, comes back to each message of the context, by id."""
        ...

    def admission_scores(self, message_ids: Sequence[str]) -> dict[str, float]:
        """What admission scored messages, by id; one without a score is left out."""
        ...

    def note(self, happened_at: datetime, event: str, detail: str) -> None:
        """Keep what happened without a summary."""
        ...

    def together(self) -> AbstractContextManager[None]:
        """Let the changes that are made in the body be one transaction."""
        ...


class Compaction(Protocol):
    """Folds what is old in a conversation into summaries.

    Laws: raw messages never change; every message stays reachable; the fresh tail is untouched; every replacement is
    one transaction; progress or stop: a run ends, and running again at once changes nothing.
    """

    @property
    def summarizer(self) -> Summarizer: ...

    @property
    def reads_admission(self) -> bool:
        """Whether admission must have seen a turn before it is compacted."""
        ...

    def after_turn(
        self, window: ContextWindow, now: datetime, live_tokens: int = 0, *, incidents: Counter[str]
    ) -> Work:
        """Compact a little, if a trigger says so: what runs after each turn of a live session.

        Args:
            window: the conversation, with the turn in it.
            now: when the turn ended: dates the summaries.
            live_tokens: what the host counts, where that is more than is stored.
        """
        ...

    def compact(
        self,
        window: ContextWindow,
        now: datetime,
        *,
        incidents: Counter[str],
        is_forced: bool = False,
        target_tokens: int | None = None,
    ) -> Work:
        """Compact all that can be, if a trigger says so or `is_forced`; until under `target_tokens`, where given."""
        ...


class SummaryDocuments(Protocol):
    """Whether summaries can be found, and whether what they cover still can."""

    def document(self, summary: Summary, messages: Sequence[Message], scope: str) -> Document:
        """A summary as a document; `messages` are all that lie beneath it, in order."""
        ...

    def ended(self, summary: Summary, documents: pl.DataFrame) -> list[str]:
        """The ids of the documents in whose place this one stands, of those that stand for messages beneath it."""
        ...


class Guidance(Protocol):
    """Finds the messages that are rules and must outlive compaction word for word.

    Laws: one answer a message; a model can only add protection; equal messages give equal answers.
    """

    def shards(
        self, messages: Sequence[Message], conversation_id: str, now: datetime, *, incidents: Counter[str]
    ) -> list[GuidanceShard | None]:
        """What is kept of each message; None where nothing must be."""
        ...
