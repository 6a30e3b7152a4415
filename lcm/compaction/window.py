"""The context of one conversation, kept in memory in step with the store.

Of its messages it counts, as they come, how often what they state is stated again later.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from lcm.compaction.context_totals import ContextTotals
from lcm.compaction.facts.finding import statements_of
from lcm.compaction.facts.reading import Kind, read_message
from lcm.compaction.summary_id import summary_id
from lcm.compaction.summary_order import SummaryOrder
from lcm.errors import StoreError
from lcm.records.conversation import Message, Part
from lcm.records.summary import ContextEntry, GuidanceShard, MessageHeat, Summary
from lcm.store.documents import add_shards, admission_scores
from lcm.store.store import Store

Fact = tuple[Kind, str]
"""What statements are about, whatever value they give it."""


class Heat:
    """Of each message that stands in a context: how many later messages state one of its facts again.

    Each message of the conversation is read once, in order. What has left the context heats what stands there, and is
    remembered no longer.
    """

    def __init__(self) -> None:
        self.read = 0
        """Messages of the conversation that were read."""
        self._standing: dict[str, _Standing] = {}
        self._stating: dict[Fact, set[str]] = {}
        """The standing messages that state a fact."""
        self._open_calls: dict[str, str] = {}
        """A call of a tool without a result -> the message that makes it."""
        self._heat: dict[str, int] = {}

    def of_all(self) -> dict[str, MessageHeat]:
        """By the ids of the messages that stand."""
        return {one: MessageHeat(self._heat[one], known.caller) for one, known in self._standing.items()}

    def covers(self, standing: Collection[str]) -> bool:
        """Whether all of them were read as standing."""
        return self._standing.keys() >= set(standing)

    def follow(self, messages: Sequence[Message], standing: Collection[str]) -> None:
        """Take in what was said since.

        Args:
            messages: all of the conversation behind those that were read.
            standing: the ids of all messages in the context.
        """
        left = set(standing)
        for message_id in [one for one in self._standing if one not in left]:
            self._drop(message_id)
        for message in messages:
            facts = facts_of(message)
            for restated in set[str]().union(*(self._stating.get(fact, ()) for fact in facts)):
                self._heat[restated] += 1
            caller = self._caller_of(message)
            if message.message_id in left:
                self._keep(message.message_id, _Standing(facts, caller))
        self.read += len(messages)

    def _keep(self, message_id: str, standing: "_Standing") -> None:
        self._standing[message_id], self._heat[message_id] = standing, 0
        for fact in standing.facts:
            self._stating.setdefault(fact, set()).add(message_id)

    def _drop(self, message_id: str) -> None:
        del self._heat[message_id]
        for fact in self._standing.pop(message_id).facts:
            self._stating[fact].discard(message_id)
            if not self._stating[fact]:
                del self._stating[fact]

    def _caller_of(self, message: Message) -> str:
        """A result belongs to the nearest message before it that calls its id and has no answer yet."""
        for part in _of_tools(message):
            if part.tool_input is not None:
                self._open_calls[str(part.tool_call_id)] = message.message_id
        results = (part for part in _of_tools(message) if part.tool_input is None)
        callers = [self._open_calls.pop(str(part.tool_call_id), message.message_id) for part in results]
        return callers[0] if callers else message.message_id


class _Standing(NamedTuple):
    facts: frozenset[Fact]
    caller: str


def facts_of(message: Message) -> frozenset[Fact]:
    """What a message states something about."""
    return frozenset((one.kind, one.key) for one in statements_of(read_message(message)))


def _of_tools(message: Message) -> Iterator[Part]:
    return (part for part in message.parts if part.part_type == "tool" and part.tool_call_id is not None)


Change = Callable[[], object]
"""Writes one change to the store."""


class StoredWindow:
    """A conversation's context: read once, then followed, so that a turn costs what is new in it.

    Each change is written at once, as one transaction; those made while it is `staged` are written together.
    """

    def __init__(self, store: Store, conversation_id: str) -> None:
        self._store = store
        self._conversation_id = conversation_id
        self._read: ContextTotals | None = None
        self._made: SummaryOrder[tuple[datetime, str]] | None = None
        self._staged: list[Change] | None = None
        self._staged_summaries: dict[str, Summary] = {}
        self._summaries: dict[str, Summary] = {}
        """As read: a summary never changes, and every cluster asks for those before it."""
        self.attempted: set[str] = set()
        self.turns: dict[str, Any] = {}
        self._heat = Heat()

    @property
    def conversation_id(self) -> str:
        return self._conversation_id

    @property
    def entries(self) -> ContextTotals:
        if self._read is None:
            self._read = ContextTotals(self._store.context(self._conversation_id))
        return self._read

    @property
    def tokens(self) -> int:
        """Of all entries, as stored."""
        return self.entries.tokens

    def follow(self) -> None:
        """Take in what was appended to the conversation since."""
        if self._read is not None:
            last = self._read[-1].ordinal if self._read else -1
            self._read.extend(self._store.context(self._conversation_id, last))

    def messages(self, message_ids: Sequence[str]) -> list[Message]:
        found = self._store.messages_by_id(message_ids)
        return [found[message_id] for message_id in message_ids]

    def summaries(self, summary_ids: Sequence[str]) -> list[Summary]:
        kept, staged = self._summaries, self._staged_summaries
        if missing := [one for one in summary_ids if one not in kept and one not in staged]:
            kept |= self._store.summaries_by_id(missing)
        return [staged[one] if one in staged else kept[one] for one in summary_ids]

    def newest_made(self, before: tuple[datetime, str], at_most: int) -> tuple[tuple[datetime, str], str] | None:
        if self._made is None:
            self._made = SummaryOrder()
            ids = [entry.item_id for entry in self.entries if not entry.is_message]
            for summary in self.summaries(ids):
                self._made.add(*_made(summary))
        return self._made.newest(before, at_most)

    def heat(self) -> dict[str, MessageHeat]:
        standing = [entry.item_id for entry in self.entries.said]
        self._heat.follow(self._store.messages(self._conversation_id, self._heat.read + 1), standing)
        if not self._heat.covers(standing):  # what was to be folded when they were last read is not
            self._heat = Heat()
            self._heat.follow(self._store.messages(self._conversation_id), standing)
        return self._heat.of_all()

    def admission_scores(self, message_ids: Sequence[str]) -> dict[str, float]:
        with self._store.reading() as connection:
            return admission_scores(connection, message_ids)

    def replace(self, first: int, last: int, summary: Summary, shards: Sequence[GuidanceShard] = ()) -> Summary:
        """Put a summary in the place of entries; one whose id is taken gets the next number.

        Raises:
            StoreError: if another writer has replaced them meanwhile: nothing is written, and the context is read anew.
        """
        entries, sources = self.entries, set(summary.source_ids)
        start, stop = entries.place(first), entries.place(last + 1)
        before = entries.tokens
        after = before - sum(entry.tokens for entry in entries[start:stop]) + summary.token_count
        left = [entry.ordinal for entry in entries[start:stop] if entry.item_id in sources]
        ends = (left[0], left[-1]) if left else (first, last)
        retired = self._ordinals(start, stop, shards)
        with self._changing() as write:
            if shards:
                write(partial(self._retire, retired, shards))
            summary = self._named(summary)
            write(partial(self._store.replace_range, self._conversation_id, *ends, summary, before, after))
        if self._staged is not None:
            self._staged_summaries[summary.summary_id] = summary
        if self._made is not None:
            if any(not entry.is_message for entry in entries[start:stop]):
                self._made = None
            else:
                self._made.add(*_made(summary))
        entries.replace(
            start, stop, ContextEntry(ends[0], "summary", summary.summary_id, summary.token_count, summary.depth)
        )
        return summary

    def protect(self, first: int, last: int, shards: Sequence[GuidanceShard]) -> None:
        """Take entries out of the context, each kept as guidance.

        Raises:
            StoreError: as `replace`.
        """
        entries = self.entries
        retired = self._ordinals(entries.place(first), entries.place(last + 1), shards)
        with self._changing() as write:
            write(partial(self._retire, retired, shards))
        for ordinal in retired:
            entries.remove(entries.place(ordinal))

    def keep(self, shards: Sequence[GuidanceShard]) -> None:
        """Keep messages as guidance; they stay where they stand in the context."""

        def write_shards() -> None:
            with self._store.writing() as connection:
                add_shards(connection, shards)

        with self._changing() as write:
            write(write_shards)

    def note(self, happened_at: datetime, event: str, detail: str) -> None:
        with self._changing() as write:
            write(partial(self._store.note_compaction, self._conversation_id, happened_at, event, detail))

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write the changes of the body as one transaction; while staged, they are kept as all others."""
        if self._staged is not None:
            yield
            return
        try:
            with self._store.transaction():
                yield
        except BaseException:
            self.forget()
            raise

    @contextmanager
    def staged(self) -> Iterator[None]:
        """Keep changes in memory until `apply` writes them; what it has not written by the end is forgotten.

        A turn or a sweep that a crash cuts short has then changed nothing, and doing it again gives what it would have
        given: a rule that looks at what was compacted before sees the same.
        """
        self._staged = []
        try:
            yield
        finally:
            if self._staged:
                self.forget()
            self._staged = None
            self._staged_summaries = {}

    @property
    def is_changed(self) -> bool:
        """Whether something waits for `apply`."""
        return bool(self._staged)

    def apply(self) -> None:
        """Write what was staged, as one transaction.

        Raises:
            StoreError: as `replace`.
        """
        with self._store.transaction():
            for change in self._staged or ():
                change()
        self._staged, self._staged_summaries = [], {}

    @contextmanager
    def _changing(self) -> Iterator[Callable[[Change], object]]:
        """Write what is handed over, as one transaction; while staged, keep it."""
        if self._staged is not None:
            yield self._staged.append
            return
        try:
            with self._store.transaction():
                yield lambda change: change()
        except StoreError:
            self.forget()
            raise

    def forget(self) -> None:
        """Let the context be read anew."""
        self._read = self._made = None

    def _ordinals(self, start: int, stop: int, shards: Sequence[GuidanceShard]) -> set[int]:
        """Of the entries whose messages are kept as guidance."""
        kept = {shard.message_id for shard in shards}
        return {entry.ordinal for entry in self.entries[start:stop] if entry.item_id in kept} if kept else set()

    def _retire(self, ordinals: set[int], shards: Sequence[GuidanceShard]) -> None:
        """Keep messages as guidance, and take them out of the stored context."""
        kept = {shard.message_id for shard in shards}
        if len(ordinals) != len(kept) or not kept <= self._store.standing(self._conversation_id, sorted(ordinals)):
            raise StoreError(
                f"conversation {self._conversation_id!r}: the context is no longer what was to be protected; plan again"
            )
        with self._store.writing() as connection:
            add_shards(connection, shards)
        self._store.remove_from_context(self._conversation_id, sorted(ordinals))

    def _named(self, summary: Summary) -> Summary:
        """The summary as it is, or by the first number of its words and instant whose id is free."""
        number = 0
        while self._is_taken(summary.summary_id):
            number += 1
            summary = replace(summary, summary_id=summary_id(summary.content, summary.created_at, number))
        return summary

    def _is_taken(self, summary_id: str) -> bool:
        return summary_id in self._staged_summaries or self._store.has_summary(summary_id)


def _made(summary: Summary) -> tuple[tuple[datetime, str], int, str]:
    """A summary as it stands among those by when they were made."""
    return (summary.created_at, summary.summary_id), max(0, summary.token_count), summary.summary_id
