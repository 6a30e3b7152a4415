"""Stores whose contexts stand as a test wants them, and summarizers that do as they are told."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from lcm.clock import format_instant
from lcm.compaction.lossless.lossless import Lossless
from lcm.compaction.window import StoredWindow
from lcm.compaction.work import run
from lcm.errors import LcmError
from lcm.records.conversation import Message
from lcm.records.summary import CompactionReport, GuidanceShard, Summary, SummaryRequest, SummaryResult
from lcm.store.conversations import conversation_row
from lcm.store.messages import ORDINAL_STEP
from lcm.store.store import Store
from lcm.store.summaries import insert_summary
from lcm.token_estimator import Utf16Units

NOW = datetime(2026, 3, 1, tzinfo=UTC)
BEGIN = datetime(2026, 1, 5, 9, tzinfo=UTC)
CONVERSATION = "c"


@dataclass
class Listed:
    """Token counts as given, in the order of asking."""

    counts: list[int]
    image_tokens: int | None = None

    def count(self, texts: Sequence[str]) -> list[int]:
        given, self.counts = self.counts[: len(texts)], self.counts[len(texts) :]
        return given


@dataclass
class Stub:
    """Answers with a function of the request, and remembers what it was asked."""

    answer: Callable[[SummaryRequest], str]
    failure: LcmError | None = None
    requests: list[SummaryRequest] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        self.requests += requests
        self.batches.append(len(requests))
        if self.failure is not None:
            return [SummaryResult("", 0.0, "stub", failure=self.failure) for _ in requests]
        return [SummaryResult(self.answer(request), 0.5, "stub", "model") for request in requests]


def head(units: int) -> Stub:
    return Stub(lambda request: request.text[:units])


@dataclass(frozen=True)
class Marked:
    """Guidance that protects what begins with a mark."""

    mark: str = "!"

    def shards(self, messages: Sequence[Message], conversation_id: str, now: datetime, *, incidents: Any) -> list[Any]:
        return [
            GuidanceShard(one.message_id, conversation_id, one.content, now, "words", 0.5, "session_turn", 3)
            if one.content.startswith(self.mark)
            else None
            for one in messages
        ]


def message(number: int, content: str, role: str = "user", conversation: str = CONVERSATION) -> Message:
    created_at = BEGIN + timedelta(minutes=7 * number)
    return Message(f"{conversation}-m{number}", role, content, "s", created_at)  # type: ignore[arg-type]


def lossless(summarizer: Stub, **fields: object) -> Lossless:
    return Lossless(summarizer, Utf16Units(), **fields)  # type: ignore[arg-type]


def conversation(words: Sequence[str], store: Store | None = None, name: str = CONVERSATION) -> Store:
    """A store with a conversation of these messages."""
    store = store or Store(opened_at=NOW)
    store.append(name, [message(i, text, conversation=name) for i, text in enumerate(words, 1)], Utf16Units())
    return store


def window(store: Store, name: str = CONVERSATION) -> StoredWindow:
    return StoredWindow(store, name)


def compacted(
    store: Store,
    compaction: Any,
    context: StoredWindow | None = None,
    incidents: Counter[str] | None = None,
    clock: Any = None,
    **how: Any,
) -> CompactionReport:
    incidents = Counter() if incidents is None else incidents
    work = compaction.compact(context or window(store), NOW, **how, incidents=incidents)
    return run(work, compaction.summarizer, clock, incidents=incidents)


def after_turn(compaction: Any, context: StoredWindow, live_tokens: float | None = None) -> CompactionReport:
    work = compaction.after_turn(context, NOW, live_tokens, incidents=Counter())
    return run(work, compaction.summarizer, incidents=Counter())


def shown(store: Store) -> list[str]:
    """The ids of messages in the context, each summary as that word."""
    return [entry.item_id if entry.is_message else "summary" for entry in store.context(CONVERSATION)]


def lay_out(store: Store, items: Sequence[Message | Summary], tokens: Sequence[int]) -> None:
    """Make these the context of the conversation, summaries without sources among them: no run leaves such a one."""
    messages = [(item, count) for item, count in zip(items, tokens, strict=True) if isinstance(item, Message)]
    store.append(
        CONVERSATION, [item for item, _ in messages] or [message(0, "")], Listed([n for _, n in messages] or [0])
    )
    connection: sqlite3.Connection = store._connection
    row = conversation_row(store._connection, CONVERSATION)
    with store.transaction():
        connection.execute("DELETE FROM context_items")
        for place, item in enumerate(items):
            at = (row, place * ORDINAL_STEP, format_instant(NOW))
            if isinstance(item, Message):
                connection.execute(
                    """
                    INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, created_at)
                    SELECT ?1, ?2, 'message', message_id, ?3 FROM messages WHERE message_key = ?4
                    """,
                    (*at, item.message_id),
                )
            else:
                insert_summary(connection, row, item)
                connection.execute(
                    """
                    INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id, created_at)
                    VALUES (?1, ?2, 'summary', ?4, ?3)
                    """,
                    (*at, item.summary_id),
                )
