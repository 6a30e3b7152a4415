"""Everything that can be read back from a store, for its owner or within a grant."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from lcm.context.recall.describe import DescribedFile, DescribedMessage, DescribedSummary, described_summary
from lcm.context.recall.expansion import ExpansionResult, ReachedMessage, clipped_message, expand, reached
from lcm.context.recall.grep import Grep, GrepSettings, Mode, Scope, grep
from lcm.context.recall.items import NamedItem, named_item
from lcm.context.recall.lease import Lease
from lcm.context.recall.read_bounds import EVERYTHING, ReadBounds
from lcm.errors import GrantError, StoreError
from lcm.protocols.models import TokenEstimator
from lcm.store.conversations import conversation_names, conversation_rows
from lcm.store.lineage import (
    Direction,
    StoredFile,
    files_of,
    leaves_of,
    messages_by_number,
)
from lcm.store.query_text import excerpt
from lcm.store.search import Order, message_hits, summary_hits
from lcm.store.store import Store
from lcm.store.summaries import summaries_by_id
from lcm.transcript.large_files import file_text


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """The settings of a reader, as the configuration has them."""

    searching: GrepSettings
    token_estimator: TokenEstimator
    limit: int
    default_depth: int
    max_expand_tokens: int


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads a store: all of it, or what its asker may read; with a lease, of that what its grant covers, and as much
    as the grant allows.

    Laws: nothing from outside is shown, named or counted; an item outside is refused in the words in which an unknown
    one is; a grant that has ended refuses everything.
    """

    store: Store
    reading: ReaderSettings
    lease: Lease | None = None
    may_read: Callable[[str], bool] | None = None
    """Says of a conversation's id whether the asker may read it; None = all may be read."""
    incidents: Counter[str] = field(default_factory=Counter)
    """What was survived: `full_text_error`, `regex_stopped`."""

    @property
    def token_estimator(self) -> TokenEstimator:
        return self.reading.token_estimator

    @property
    def remaining_tokens(self) -> int:
        """Of the grant; 0 once it has ended. Without a lease, what one expansion may take."""
        if self.lease is None:
            return self.reading.max_expand_tokens
        return self.lease.left

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
        order: Order | None = None,
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
            order: of what is found by words; None = the configured one. A regular expression finds the newest first.
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
            how = self.reading.searching if order is None else replace(self.reading.searching, order=order)
            found = grep(connection, pattern, mode, scope, within, how, self.incidents)
            if mode == "full_text" and self.reading.searching.rules == "corrected":
                found = self._with_named(connection, found, pattern, scope, bounds)
        return found if self.lease is None else self.lease.afforded(found)

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
            item = named_item(connection, item_id)
            if item is None:
                raise self._unknown(item_id, conversation)
            if item.kind == "summary" and bounds.seen(connection, [item.item_id]):
                if self.lease is not None:
                    cap = min(self.lease.left, token_cap or self.lease.left)
                    self.lease.charge(summaries_by_id(connection, [item.item_id])[item.item_id].content)
                direction: Direction = "sources" if self.reading.searching.rules == "corrected" else "derived"
                return described_summary(connection, item.item_id, item.conversation, direction, bounds, cap)
            if item.kind == "message" and bounds.sees_message(connection, item.number, item.conversation):
                if self.lease is not None:
                    cap = min(self.lease.left, cap)
                return self._described_message(connection, item.number, None if content and not self.lease else cap)
            if item.file is None or not bounds.sees_file(connection, item.file):
                raise self._unknown(item_id, conversation)
            stored = item.file
        text = self._words(stored) if content else None
        if self.lease is not None:
            self.lease.charge(stored.file.exploration_summary + (text or ""))
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
            of: dict[str, int] = {}
            for one in item_ids:
                of[one] = self._item(connection, one, bounds, conversation).conversation
            if self.lease is not None:
                depth, cap = self.lease.allowed(of, depth, cap)
            found = expand(
                connection,
                item_ids,
                depth,
                cap,
                self.token_estimator,
                has_messages=has_messages,
                clips=self.reading.searching.rules == "corrected",
                bounds=bounds,
            )
        if self.lease is not None:
            self.lease.take(found.tokens)
        return found

    def messages(self, numbers: Sequence[int]) -> list[ReachedMessage]:
        """Read messages by their integer keys, as many as the grant has tokens for.

        Raises:
            StoreError: if one is not known.
            GrantError: if the grant has ended or does not cover one.
        """
        bounds = self.bounds(None)
        left = None if self.lease is None else self.lease.left
        found: list[ReachedMessage] = []
        with self.store.reading() as connection:
            known = {said.number: said for said in messages_by_number(connection, numbers)}
            leaves = leaves_of(connection, numbers)
            for number in numbers:
                said = known.get(number)
                if said is None or not bounds.sees_message(connection, number, said.conversation):
                    raise self._unknown(f"msg#{number}", None)
                one = reached(said, leaves.get(number, ""), self.token_estimator)
                if left is not None:
                    one = clipped_message(connection, one, left, self.token_estimator)
                    left = 0 if one.is_clipped else left - one.tokens
                if one.tokens or not one.is_clipped:
                    found.append(one)
        if self.lease is not None:
            self.lease.take(sum(one.tokens for one in found))
        return found

    def _with_named(
        self, connection: sqlite3.Connection, found: Grep, pattern: str, scope: Scope, bounds: ReadBounds
    ) -> Grep:
        """What was found, behind the message or summary that the pattern is the id of."""
        item = named_item(connection, pattern)
        if item is None or not self._sees(connection, item, bounds):
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

    def _described_message(self, connection: sqlite3.Connection, number: int, cap: int | None) -> DescribedMessage:
        (said,) = messages_by_number(connection, [number])
        whole = reached(said, leaves_of(connection, [number]).get(number, ""), self.token_estimator)
        shown = whole if cap is None else clipped_message(connection, whole, cap, self.token_estimator)
        if shown.is_clipped and not shown.text:
            if self.lease is not None:
                raise GrantError(f"the grant has {self.lease.left} tokens left, and this takes {whole.tokens}")
            shown = shown._replace(text=f"[... {whole.tokens:,} tokens left out]")
        if self.lease is not None:
            self.lease.take(shown.tokens)
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
        if item is None or not self._sees(connection, item, bounds):
            raise self._unknown(item_id, conversation)
        return item

    def _sees(self, connection: sqlite3.Connection, item: NamedItem, bounds: ReadBounds) -> bool:
        if item.kind == "summary":
            return bool(bounds.seen(connection, [item.item_id]))
        if item.file is not None:
            return bounds.sees_file(connection, item.file)
        return bounds.sees_message(connection, item.number, item.conversation)

    def bounds(self, conversation: str | int | None = None) -> ReadBounds:
        """What may be seen, within the conversation that was asked for."""
        bounds = EVERYTHING if self.lease is None else self.lease.bounds()
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
                if self.lease is None:
                    raise
                rows = []
        bounds = bounds.within(rows)
        if self.lease is not None and not bounds.conversations:
            raise GrantError(f"the grant does not cover conversation {conversation!r}")
        if isinstance(conversation, str) and not bounds.conversations:
            raise StoreError(f"there is no conversation {conversation!r} in the store")
        return bounds

    def _words(self, stored: StoredFile) -> str:
        message = self.store.messages_by_id([stored.message_id]).get(stored.message_id) if stored.message_id else None
        if message is None:
            raise StoreError(f"the store does not hold the words of the file {stored.file.file_id!r}")
        return file_text(message, stored.file)

    def _unknown(self, item_id: str, conversation: str | int | None) -> StoreError | GrantError:
        if self.lease is not None:
            return GrantError(f"the grant does not cover {item_id!r}")
        where = "the store" if conversation is None else f"conversation {conversation}"
        return StoreError(f"there is no {item_id!r} in {where}; grep finds the ids of summaries and messages")
