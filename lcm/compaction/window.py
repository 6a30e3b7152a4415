"""The context of one conversation, kept in memory in step with the store; or as it stood when compaction was planned.

Of its messages it counts, as they come, how often what they state is stated again later.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from lcm.compaction.context_totals import ContextTotals, summary_id
from lcm.compaction.facts.finding import statements_of
from lcm.compaction.facts.reading import Kind, read_message
from lcm.errors import StoreError
from lcm.records.conversation import Message
from lcm.records.summary import ContextEntry, GuidanceShard, MessageHeat, Summary
from lcm.store.documents import add_shards, admission_scores
from lcm.store.store import Store

Fact = tuple[Kind, str]
"""What statements are about, whatever value they give it."""


class _Standing(NamedTuple):
    facts: frozenset[Fact]
    caller: str


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
        for message_id in self._standing.keys() - left:
            del self._heat[message_id]
            for fact in self._standing.pop(message_id).facts:
                self._stating[fact].discard(message_id)
        for message in messages:
            facts, caller = facts_of(message), self._caller_of(message)
            for restated in set[str]().union(*(self._stating.get(fact, ()) for fact in facts)):
                self._heat[restated] += 1
            if message.message_id in left:
                self._standing[message.message_id], self._heat[message.message_id] = _Standing(facts, caller), 0
                for fact in facts:
                    self._stating.setdefault(fact, set()).add(message.message_id)
        self.read += len(messages)

    def _caller_of(self, message: Message) -> str:
        """A result belongs to the nearest message before it that calls its id and has no answer yet."""
        tools = [part for part in message.parts if part.part_type == "tool" and part.tool_call_id is not None]
        calls = [str(part.tool_call_id) for part in tools if part.tool_input is not None]
        self._open_calls |= dict.fromkeys(calls, message.message_id)
        results = [str(part.tool_call_id) for part in tools if part.tool_input is None]
        callers = [self._open_calls.pop(one, message.message_id) for one in results]
        return callers[0] if callers else message.message_id


def facts_of(message: Message) -> frozenset[Fact]:
    """What a message states something about."""
    return frozenset((one.kind, one.key) for one in statements_of(read_message(message)))


Change = Callable[[], object]
"""Writes one change to the store."""


class StoredWindow:
    """A conversation's context: read once, then followed, so that a turn costs what is new in it.

    Each change is written at once, as one transaction; those made while it is `staged` are written together.
    """

    def __init__(self, store: Store, conversation_id: str) -> None:
        self._store = store
        self.conversation_id = conversation_id
        self._read: ContextTotals | None = None
        self._made: list[tuple[datetime, str, int]] | None = None
        """The instant, id and tokens of each summary of the context, in order."""
        self._staged: list[Change] | None = None
        self._staged_summaries: dict[str, Summary] = {}
        self._summaries: dict[str, Summary] = {}
        """As read: a summary never changes, and every cluster asks for those before it."""
        self.attempted: set[str] = set()
        self.turns: dict[str, Any] = {}
        self._heat = Heat()

    @property
    def entries(self) -> ContextTotals:
        if self._read is None:
            self._read = ContextTotals(self._store.context(self.conversation_id))
        return self._read

    @property
    def tokens(self) -> int:
        """Of all entries, as stored."""
        return self.entries.tokens

    def follow(self) -> None:
        """Take in what was appended to the conversation since."""
        if self._read is not None:
            last = self._read[-1].ordinal if self._read else -1
            self._read.extend(self._store.context(self.conversation_id, last))

    def messages(self, message_ids: Sequence[str]) -> list[Message]:
        found = self._store.messages_by_id(message_ids)
        return [found[message_id] for message_id in message_ids]

    def summaries(self, summary_ids: Sequence[str]) -> list[Summary]:
        kept, staged = self._summaries, self._staged_summaries
        if missing := [one for one in summary_ids if one not in kept and one not in staged]:
            kept |= self._store.summaries_by_id(missing)
        return [staged[one] if one in staged else kept[one] for one in summary_ids]

    def made_before(self, instant: datetime) -> Iterator[tuple[str, int]]:
        if self._made is None:
            ids = [entry.item_id for entry in self.entries if not entry.is_message]
            self._made = sorted(map(_made, self.summaries(ids)))
        for place in range(bisect_left(self._made, (instant,)) - 1, -1, -1):
            yield self._made[place][1:]

    def heat(self) -> dict[str, MessageHeat]:
        standing = [entry.item_id for entry in self.entries.said]
        self._heat.follow(self._store.messages(self.conversation_id, self._heat.read + 1), standing)
        if not self._heat.covers(standing):  # what was to be folded when they were last read is not
            self._heat = Heat()
            self._heat.follow(self._store.messages(self.conversation_id), standing)
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
        replaced, before = entries[start:stop], entries.tokens
        after = before - sum(entry.tokens for entry in replaced) + summary.token_count
        left = [entry.ordinal for entry in replaced if entry.item_id in sources] or [first, last]
        with self.together():
            if shards:
                self._change(partial(self._retire, self._ordinals(replaced, shards), shards))
            summary = self._named(summary)
            self._change(
                partial(self._store.replace_range, self.conversation_id, left[0], left[-1], summary, before, after)
            )
        if self._staged is not None:
            self._staged_summaries[summary.summary_id] = summary
        if all(entry.is_message for entry in replaced) and self._made is not None:
            insort(self._made, _made(summary))
        else:
            self._made = None
        entry = ContextEntry(left[0], "summary", summary.summary_id, summary.token_count, summary.depth)
        entries.put(start, stop, entry)
        return summary

    def protect(self, first: int, last: int, shards: Sequence[GuidanceShard]) -> None:
        """Take entries out of the context, each kept as guidance.

        Raises:
            StoreError: as `replace`.
        """
        entries = self.entries
        retired = self._ordinals(entries[entries.place(first) : entries.place(last + 1)], shards)
        with self.together():
            self._change(partial(self._retire, retired, shards))
        for place in map(entries.place, retired):
            entries.put(place, place + 1)

    def keep(self, shards: Sequence[GuidanceShard]) -> None:
        """Keep messages as guidance; they stay where they stand in the context."""
        with self.together():
            self._change(partial(self._add, shards))

    def note(self, happened_at: datetime, event: str, detail: str) -> None:
        with self.together():
            self._change(partial(self._store.note_compaction, self.conversation_id, happened_at, event, detail))

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

    def forget(self) -> None:
        """Let the context be read anew."""
        self._read = self._made = None

    def _change(self, change: Change) -> None:
        """Write a change; while staged, keep it."""
        if self._staged is None:
            change()
        else:
            self._staged.append(change)

    def _ordinals(self, entries: Sequence[ContextEntry], shards: Sequence[GuidanceShard]) -> list[int]:
        """Of the entries whose messages are kept as guidance."""
        kept = {shard.message_id for shard in shards}
        return [entry.ordinal for entry in entries if entry.item_id in kept]

    def _retire(self, ordinals: Sequence[int], shards: Sequence[GuidanceShard]) -> None:
        """Keep messages as guidance, and take them out of the stored context."""
        kept = {shard.message_id for shard in shards}
        if len(ordinals) != len(kept) or not kept <= self._store.standing(self.conversation_id, ordinals):
            raise StoreError(
                f"conversation {self.conversation_id!r}: the context is no longer what was to be protected; plan again"
            )
        self._add(shards)
        self._store.remove_from_context(self.conversation_id, ordinals)

    def _add(self, shards: Sequence[GuidanceShard]) -> None:
        with self._store.writing() as connection:
            add_shards(connection, shards)

    def _named(self, summary: Summary) -> Summary:
        """The summary as it is, or by the first number of its words and instant whose id is free."""
        number = 0
        while self._is_taken(summary.summary_id):
            number += 1
            summary = replace(summary, summary_id=summary_id(summary.content, summary.created_at, number))
        return summary

    def _is_taken(self, summary_id: str) -> bool:
        return summary_id in self._staged_summaries or self._store.has_summary(summary_id)


def _made(summary: Summary) -> tuple[datetime, str, int]:
    return summary.created_at, summary.summary_id, summary.token_count


class PlannedWindow(StoredWindow):
    """A window whose changes stay in memory until `apply` writes them, all or none.

    Nothing is copied until a plan is under way: what the live window has read is its own too. From `hold` on, it has
    all that compaction may ask for and touches no store, so that another thread can work on it; messages that are said
    meanwhile are no part of it.
    """

    def __init__(self, live: StoredWindow) -> None:
        vars(self).update(vars(live))
        self._live, self._read, self._is_shared = live, live.entries, True
        self._staged, self._staged_summaries = [], {}
        self._messages: dict[str, Message] | None = None
        self._scores: dict[str, float] = {}
        self.attempted = set(live.attempted)

    def hold(self) -> None:
        """Read all that compaction may ask for."""
        self._part()
        said = [entry.item_id for entry in self.entries.said]
        super().summaries([entry.item_id for entry in self.entries if not entry.is_message])
        self._scores = super().admission_scores(said)
        self._messages = {message.message_id: message for message in super().messages(said)}

    def messages(self, message_ids: Sequence[str]) -> list[Message]:
        if self._messages is None:
            return super().messages(message_ids)
        return [self._messages[message_id] for message_id in message_ids]

    def admission_scores(self, message_ids: Sequence[str]) -> dict[str, float]:
        if self._messages is None:
            return super().admission_scores(message_ids)
        return {one: self._scores[one] for one in message_ids if one in self._scores}

    def replace(self, first: int, last: int, summary: Summary, shards: Sequence[GuidanceShard] = ()) -> Summary:
        self._part()
        return super().replace(first, last, summary, shards)

    def protect(self, first: int, last: int, shards: Sequence[GuidanceShard]) -> None:
        self._part()
        super().protect(first, last, shards)

    def apply(self) -> None:
        """Write what was planned, as one transaction.

        Raises:
            StoreError: if another writer has replaced what it was planned on: nothing is written.
        """
        if self.is_changed:
            try:
                super().apply()
            finally:
                self._live.forget()
        self._live.attempted |= self.attempted

    def _part(self) -> None:
        """Have entries of its own: the live window follows what is said."""
        if self._is_shared:
            self._is_shared, self._made = False, None
            self._read, self.turns = ContextTotals(self.entries), dict(self.turns)
            self._summaries = dict(self._summaries)

    def _is_taken(self, summary_id: str) -> bool:
        """Of what is stored meanwhile nothing is known: `apply` refuses an id that is taken."""
        return summary_id in self._staged_summaries or (self._messages is None and super()._is_taken(summary_id))
