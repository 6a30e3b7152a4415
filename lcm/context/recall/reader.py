"""Everything that can be read back from a store, for its owner or within a grant, and how the tools tell it.

Source: lossless-claw 0.6.3.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from lcm.context.recall.expansion import (
    EVERYTHING,
    ExpansionResult,
    NamedItem,
    ReachedMessage,
    ReadBounds,
    clipped_message,
    expand,
    named_item,
    read_messages,
)
from lcm.context.recall.grants import Grant
from lcm.context.recall.grep import Grep, Mode, ReadingSettings, Scope, Search, grep, minute
from lcm.errors import GrantError, StoreError
from lcm.protocols.models import TokenEstimator
from lcm.records.summary import Summary
from lcm.store.conversations import conversation_names, conversation_rows, number_of
from lcm.store.messages import StoredFile, files_of, messages_by_number, source_messages
from lcm.store.search import excerpt, message_hits, summary_hits
from lcm.store.store import Store
from lcm.store.summaries import Direction, LineagePlace, derived_ids, summaries_by_id, walk
from lcm.transcript.large_files import file_text


@dataclass(frozen=True, slots=True)
class Node:
    """A summary of a subtree."""

    place: LineagePlace
    summary: Summary

    @property
    def summaries_tokens(self) -> int:
        """What it costs with all summaries beneath it."""
        return max(0, self.summary.token_count + self.summary.descendant_token_count)

    @property
    def messages_tokens(self) -> int:
        """What it costs with all messages beneath it too."""
        return max(0, self.summaries_tokens + self.summary.source_message_token_count)


@dataclass(frozen=True, slots=True)
class DescribedSummary:
    """A summary, what it was made of, what was made of it, and what expanding it would cost."""

    summary: Summary
    conversation: int
    derived_ids: tuple[str, ...]
    """The summaries that it is a source of."""
    messages: tuple[int, ...]
    """The integer keys of the messages of a leaf."""
    subtree: tuple[Node, ...]
    """Itself first."""
    budget_tokens: int

    @property
    def source_summary_ids(self) -> tuple[str, ...]:
        return () if self.summary.kind == "leaf" else self.summary.source_ids


@dataclass(frozen=True, slots=True)
class DescribedFile:
    """A large file; its words where they were asked for."""

    stored: StoredFile
    text: str | None


@dataclass(frozen=True, slots=True)
class DescribedMessage:
    """A message, and where it stands."""

    said: ReachedMessage
    """Clipped to what was asked for; in no summary where `leaf_id` is empty."""
    conversation: int
    created_at: datetime
    tokens: int
    """Of its whole text."""
    file_ids: tuple[str, ...]
    """The large files that it holds."""


def described_text(described: DescribedSummary | DescribedMessage | DescribedFile, *, is_bare: bool = False) -> str:
    """What is known of something as the tools tell it; `is_bare`: of a message, or of a file that was read, its words
    alone."""
    if isinstance(described, DescribedSummary):
        return "\n".join(_summary_lines(described))
    words = described.said.text if isinstance(described, DescribedMessage) else described.text
    if is_bare and words is not None:
        return words
    lines = _message_lines(described) if isinstance(described, DescribedMessage) else _file_lines(described.stored)
    return "\n".join([*lines, *([] if words is None else ["content", words])])


def _summary_lines(described: DescribedSummary) -> list[str]:
    summary, most = described.summary, described.budget_tokens
    meta = f"meta conv={described.conversation} kind={summary.kind} depth={summary.depth} {_counts(summary)}"
    lines = [f"LCM_SUMMARY {summary.summary_id}", f"{meta} range={_range(summary)} budgetCap={most}"]
    lines += [f"parents {' '.join(described.source_summary_ids)}"] if described.source_summary_ids else []
    lines += [f"children {' '.join(described.derived_ids)}"] if described.derived_ids else []
    lines.append("manifest")
    for node in described.subtree:
        of, place = node.summary, node.place
        costs = node.summaries_tokens, node.messages_tokens
        fits = ["in" if cost <= most else "over" for cost in costs]
        lines.append(
            f"d{place.steps} {of.summary_id} k={of.kind} {_counts(of)} child={len(place.next_ids)} range={_range(of)} "
            f"cost[s={costs[0]},m={costs[1]}] budget[s={fits[0]},m={fits[1]}]"
        )
    return [*lines, "content", summary.content]


def _message_lines(described: DescribedMessage) -> list[str]:
    said = described.said
    lines = [
        f"LCM_MESSAGE msg#{said.number}",
        f"id {said.message_id}",
        f"meta conv={described.conversation} role={said.role} tok={described.tokens} at={minute(described.created_at)}",
    ]
    lines += [f"summary {said.leaf_id}"] if said.leaf_id else []
    return lines + ([f"files {' '.join(described.file_ids)}"] if described.file_ids else [])


def _file_lines(stored: StoredFile) -> list[str]:
    return [
        f"LCM_FILE {stored.file.file_id}",
        f"conversation {stored.conversation}",
        f"name {stored.file.name or 'unknown'}",
        f"type {stored.file.mime_type or 'unknown'}",
        f"size {stored.file.byte_size:,} bytes",
        f"created {minute(stored.created_at)}",
        "exploration summary",
        stored.file.exploration_summary or "(none)",
    ]


def _counts(summary: Summary) -> str:
    return (
        f"tok={summary.token_count} descTok={summary.descendant_token_count} "
        f"srcTok={summary.source_message_token_count} desc={summary.descendant_count}"
    )


def _range(summary: Summary) -> str:
    return "..".join(minute(at) if at else "?" for at in (summary.earliest_at, summary.latest_at))


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads a store: all of it, or what its asker may read; with a grant, of that what it covers, and as much as it
    allows.

    Laws: nothing from outside is shown, named or counted; an item outside is refused in the words in which an unknown
    one is; a grant that has ended refuses everything.
    """

    store: Store
    reading: ReadingSettings
    grant: Grant | None = None
    may_read: Callable[[str], bool] | None = None
    """Says of a conversation's id whether the asker may read it; None = all may be read."""
    incidents: Counter[str] = field(default_factory=Counter)
    """What was survived: `full_text_error`, `regex_stopped`."""

    @property
    def token_estimator(self) -> TokenEstimator:
        return self.reading.token_estimator

    @property
    def remaining_tokens(self) -> int:
        """Of the grant; 0 once it has ended. Without one, what one expansion may take."""
        return self.reading.max_expand_tokens if self.grant is None else self.grant.left

    def grep(
        self,
        pattern: str,
        *,
        mode: Mode = "regex",
        scope: Scope = "both",
        conversation: str | int | None = None,
        since: datetime | None = None,
        before: datetime | None = None,
        limit: int | None = None,
        now: datetime | None = None,
    ) -> Grep:
        """Search what was said and what was summarised.

        Args:
            pattern: words, or a regular expression in the syntax of the package `regex`. Words that are the id of a
                message, summary or file find that first.
            mode: which of them.
            scope: in what to search.
            conversation: its id, for the active one and archived ones of that id; or its integer key; None = all.
            since: not before that instant.
            before: before that instant.
            limit: of messages, and again of summaries.
            now: from when a hybrid order counts age; None = from the newest message.

        Raises:
            StoreError: if there is no conversation of that id.
            GrantError: if the grant has ended or does not cover the conversation.
        """
        if since is not None and before is not None and since >= before:
            raise ValueError(f"since must be earlier than before, got {since} and {before}")
        bounds = self.bounds(conversation)
        limit = self.reading.limit if limit is None else limit
        if limit < 1:
            raise ValueError(f"limit must be >= 1, got {limit}")
        with self.store.reading() as connection:
            within = replace(bounds.bounds(connection), since=since, before=before, limit=limit, now=now)
            asked = Search(pattern, mode, scope, conversation, since, before)
            found = grep(connection, asked, within, self.reading, self.incidents)
            if mode == "full_text" and self.reading.rules == "corrected":
                found = self._with_named(connection, found, pattern, scope, bounds)
        return found if self.grant is None else self.grant.afforded(found, self.token_estimator)

    def describe(
        self,
        item_id: str,
        *,
        conversation: str | int | None = None,
        token_cap: int | None = None,
        content: bool = False,
    ) -> DescribedSummary | DescribedMessage | DescribedFile:
        """Tell what is known of a summary, a message or a large file.

        Args:
            item_id: sum_..., msg#..., file_..., or the id that a message was recorded with.
            conversation: where it must be; None = anywhere.
            token_cap: of a message, which is clipped to it; of a summary it marks in the subtree what could be expanded
                within it.
            content: the words of a file or a message, whole.

        Raises:
            StoreError: if there is none.
            GrantError: if the grant has ended, does not cover it, or is used up.
        """
        bounds = self.bounds(conversation)
        cap = self.reading.max_expand_tokens if token_cap is None else token_cap
        with self.store.reading() as connection:
            item = self._item(connection, item_id, bounds, conversation)
            if item.kind == "summary":
                if self.grant is not None:
                    cap = min(self.grant.left, token_cap or self.grant.left)
                    self._charge(summaries_by_id(connection, [item.item_id])[item.item_id].content)
                return self._described_summary(connection, item, bounds, cap)
            if item.file is None:
                if self.grant is not None:
                    cap = min(self.grant.left, cap)
                return self._described_message(connection, item.number, None if content and not self.grant else cap)
        stored = item.file
        text = self._words(stored) if content else None
        self._charge(stored.file.exploration_summary + (text or ""))
        return DescribedFile(stored, text)

    def expand(
        self,
        item_ids: Sequence[str],
        *,
        depth: int | None = None,
        token_cap: int | None = None,
        has_messages: bool = False,
        conversation: str | int | None = None,
    ) -> ExpansionResult:
        """Read what summaries were made of.

        Args:
            item_ids: of summaries, one after the other, within one cap; a message is read itself, of a large file its
                message.
            depth: steps downwards; a grant may allow fewer.
            token_cap: of all that is read; a grant may allow less.
            has_messages: read the messages of leaves too.
            conversation: where they must be; None = anywhere.

        Raises:
            StoreError: if one is not known.
            GrantError: if the grant has ended, does not cover one, or is used up.
        """
        bounds = self.bounds(conversation)
        depth = self.reading.default_depth if depth is None else depth
        cap = self.reading.max_expand_tokens if token_cap is None else token_cap
        if depth < 1 or cap < 1:
            raise ValueError(f"depth and token_cap must be >= 1, got {depth} and {cap}")
        with self.store.reading() as connection:
            named = [self._item(connection, one, bounds, conversation) for one in item_ids]
            if self.grant is not None:
                places = [item.conversation for item in named]
                depth, cap = self.grant.allowed(places, depth=depth, token_cap=cap)
            found = expand(
                connection,
                item_ids,
                depth,
                cap,
                self.token_estimator,
                has_messages=has_messages,
                clips=self.reading.rules == "corrected",
                bounds=bounds,
            )
        if self.grant is not None:
            self.grant.take(found.tokens)
        return found

    def messages(self, numbers: Sequence[int]) -> list[ReachedMessage]:
        """Read messages by their integer keys, as many as the grant has tokens for.

        Raises:
            StoreError: if one is not known.
            GrantError: if the grant has ended or does not cover one.
        """
        bounds = self.bounds(None)
        left = None if self.grant is None else self.grant.left
        found: list[ReachedMessage] = []
        with self.store.reading() as connection:
            known = read_messages(connection, numbers, self.token_estimator)
            for number in numbers:
                said, one = known.get(number, (None, None))
                item = said and NamedItem("message", said.conversation, said.message_id, number)
                if one is None or item is None or not bounds.sees(connection, item):
                    raise self._unknown(f"msg#{number}", None)
                if left is not None:
                    one = clipped_message(connection, one, left, self.token_estimator)
                    left = 0 if one.is_clipped else left - one.tokens
                if one.tokens or not one.is_clipped:
                    found.append(one)
        if self.grant is not None:
            self.grant.take(sum(one.tokens for one in found))
        return found

    def _with_named(
        self, connection: sqlite3.Connection, found: Grep, pattern: str, scope: Scope, bounds: ReadBounds
    ) -> Grep:
        """What was found, behind the message or summary that the pattern is the id of."""
        item = named_item(connection, pattern)
        if item is None or not bounds.sees(connection, item):
            return found
        if item.kind == "summary":
            begins = summaries_by_id(connection, [item.item_id])[item.item_id].content
            named = summary_hits(connection, [(item.item_id, excerpt(begins, []))]) if scope != "messages" else []
            others = (hit for hit in found.summaries if hit.summary_id != item.item_id)
            return replace(found, summaries=(*named, *others))
        number = item.file.message if item.file else item.number
        said = messages_by_number(connection, [number]) if number is not None and scope != "summaries" else []
        hits = message_hits(connection, [(one.number, excerpt(one.text, [])) for one in said])
        return replace(found, messages=(*hits, *(hit for hit in found.messages if hit.number != number)))

    def _described_summary(
        self, connection: sqlite3.Connection, item: NamedItem, bounds: ReadBounds, budget_tokens: int
    ) -> DescribedSummary:
        """Describe a summary that may be seen; what lies outside is not named."""
        summary_id = item.item_id
        direction: Direction = "sources" if self.reading.rules == "corrected" else "derived"
        places = walk(connection, [summary_id], direction, lambda ids: bounds.seen(connection, ids))
        known = summaries_by_id(connection, [place.summary_id for place in places])
        summary = known[summary_id]
        messages = [said for said in source_messages(connection, summary_id) if bounds.holds(said.conversation)]
        sources = [said.message_id for said in messages] or bounds.seen(connection, summary.source_ids)
        return DescribedSummary(
            replace(summary, source_ids=tuple(sources), file_ids=bounds.files(connection, summary.file_ids)),
            item.conversation,
            tuple(bounds.seen(connection, derived_ids(connection, summary_id))),
            tuple(said.number for said in messages),
            tuple(Node(place, known[place.summary_id]) for place in places),
            budget_tokens,
        )

    def _described_message(self, connection: sqlite3.Connection, number: int, cap: int | None) -> DescribedMessage:
        [(said, whole)] = read_messages(connection, [number], self.token_estimator).values()
        shown = whole if cap is None else clipped_message(connection, whole, cap, self.token_estimator)
        if shown.is_clipped and not shown.text:
            if self.grant is not None:
                raise GrantError(f"the grant has {self.grant.left} tokens left, and this takes {whole.tokens}")
            shown = shown._replace(text=f"[... {whole.tokens:,} tokens left out]")
        if self.grant is not None:
            self.grant.take(shown.tokens)
        files = files_of(connection, number)
        return DescribedMessage(shown, said.conversation, said.created_at, whole.tokens, files)

    def items(self, item_ids: Sequence[str], *, conversation: str | int | None = None) -> list[NamedItem]:
        """What ids name, in their order.

        Raises:
            StoreError: if one is not known in the conversation, None = anywhere.
            GrantError: if the grant has ended or does not cover one.
        """
        bounds = self.bounds(conversation)
        with self.store.reading() as connection:
            return [self._item(connection, one, bounds, conversation) for one in item_ids]

    def _item(
        self, connection: sqlite3.Connection, item_id: str, bounds: ReadBounds, conversation: str | int | None
    ) -> NamedItem:
        item = named_item(connection, item_id)
        if item is None or not bounds.sees(connection, item):
            raise self._unknown(item_id, conversation)
        return item

    def conversation(self, named: str | None) -> str | int | None:
        """The conversation that is named by its id, or by the number that the tools print; None = all."""
        if named is None or not named.isdecimal():
            return named
        with self.store.reading() as connection:
            return number_of(connection, named)

    def bounds(self, conversation: str | int | None = None) -> ReadBounds:
        """What may be seen, within the conversation that was asked for."""
        bounds = EVERYTHING if self.grant is None else self.grant.bounds()
        if self.may_read is not None:
            with self.store.reading() as connection:
                names = conversation_names(connection)
            bounds = bounds.within([row for row, name in names.items() if self.may_read(name)])
        if conversation is None:
            return bounds
        if isinstance(conversation, int):
            rows = [conversation]
        else:
            try:
                with self.store.reading() as connection:
                    rows = conversation_rows(connection, conversation)
            except StoreError:
                if self.grant is None:
                    raise
                rows = []
        bounds = bounds.within(rows)
        if self.grant is not None and not bounds.conversations:
            raise GrantError(f"the grant does not cover conversation {conversation!r}")
        if isinstance(conversation, str) and not bounds.conversations:
            raise StoreError(f"there is no conversation {conversation!r} in the store")
        return bounds

    def _charge(self, text: str) -> None:
        """Take the tokens of a text off the grant, if there is one."""
        if self.grant is not None:
            self.grant.charge(self.token_estimator.count([text])[0])

    def _words(self, stored: StoredFile) -> str:
        message = self.store.messages_by_id([stored.message_id]).get(stored.message_id) if stored.message_id else None
        if message is None:
            raise StoreError(f"the store does not hold the words of the file {stored.file.file_id!r}")
        return file_text(message, stored.file)

    def _unknown(self, item_id: str, conversation: str | int | None) -> StoreError | GrantError:
        if self.grant is not None:
            return GrantError(f"the grant does not cover {item_id!r}")
        where = "the store" if conversation is None else f"conversation {conversation}"
        return StoreError(f"there is no {item_id!r} in {where}; grep finds the ids of summaries and messages")
