"""From the ids that recall prints, and from summaries, back to what was said, as far as a reader may see.

Source: lossless-claw 0.6.3.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from lcm.javascript import first_units, utf16_length
from lcm.protocols.models import TokenEstimator
from lcm.records.rules import LosslessRules
from lcm.records.summary import Summary
from lcm.store.messages import (
    SourceMessage,
    StoredFile,
    messages_by_key,
    messages_by_number,
    source_messages,
    stored_files,
)
from lcm.store.search import SearchBounds
from lcm.store.summaries import beneath, conversations_of, depth_first, leaves_of, summaries_by_id, walk
from lcm.transcript.passages import passages

_NUMBERED = re.compile(r"msg#(\d{1,18})")
_SHRINK = 0.9
_SNIPPET = 200


@dataclass(frozen=True, slots=True)
class ReadBounds:
    """The conversations and summaries that may be seen."""

    conversations: tuple[int, ...] | None = None
    """Integer keys; None = all."""
    roots: tuple[str, ...] | None = None
    """Only these summaries, what they were made of, and the messages beneath; None = all."""

    def within(self, conversations: Sequence[int]) -> "ReadBounds":
        """What of this lies in some conversations."""
        return replace(self, conversations=tuple(row for row in conversations if self.holds(row)))

    def holds(self, conversation: int) -> bool:
        return self.conversations is None or conversation in self.conversations

    def seen(self, connection: sqlite3.Connection, summary_ids: Sequence[str]) -> list[str]:
        """Those of some summaries that may be seen, in their order."""
        if self.conversations is None and self.roots is None:
            return list(summary_ids)
        of = conversations_of(connection, summary_ids)
        covered = None if self.roots is None else beneath(connection, self.roots)
        return [one for one in summary_ids if one in of and self.holds(of[one]) and (covered is None or one in covered)]

    def sees(self, connection: sqlite3.Connection, item: "NamedItem") -> bool:
        """Say whether an item may be seen: of what conversation it is, and, where roots count, beneath which."""
        if item.kind == "summary":
            return bool(self.seen(connection, [item.item_id]))
        number = item.file.message if item.file else item.number
        if not self.holds(item.conversation) or self.roots is None or number is None:
            return self.holds(item.conversation) and self.roots is None
        leaf = leaves_of(connection, [number]).get(number)
        return leaf is not None and bool(self.seen(connection, [leaf]))

    def files(self, connection: sqlite3.Connection, file_ids: Sequence[str]) -> tuple[str, ...]:
        """Those of some large files that may be seen; of an unknown one only a reader without bounds is told."""
        if self == EVERYTHING:
            return tuple(file_ids)
        known = stored_files(connection, file_ids)
        items = [_file(known[one]) for one in file_ids if one in known]
        return tuple(item.item_id for item in items if self.sees(connection, item))

    def bounds(self, connection: sqlite3.Connection) -> SearchBounds:
        """The same for a search."""
        covered = None if self.roots is None else sorted(beneath(connection, self.roots))
        return SearchBounds(conversations=self.conversations, summaries=covered)


EVERYTHING = ReadBounds()


class NamedItem(NamedTuple):
    """A stored summary, message or large file that an id names."""

    kind: Literal["summary", "message", "file"]
    conversation: int
    """Its integer key."""
    item_id: str
    """Of a summary or file."""
    number: int = 0
    """The integer key of a message."""
    file: StoredFile | None = None


def named_item(connection: sqlite3.Connection, item_id: str) -> NamedItem | None:
    """What an id names: `sum_...`, `file_...`, `msg#N`, or the id that a message was recorded with; None = nothing."""
    item_id = item_id.strip()
    if (row := conversations_of(connection, [item_id]).get(item_id)) is not None:
        return NamedItem("summary", row, item_id)
    if (stored := stored_files(connection, [item_id]).get(item_id)) is not None:
        return _file(stored)
    numbered = _NUMBERED.fullmatch(item_id)
    found = connection.execute(
        "SELECT message_id, conversation_id FROM messages WHERE message_key = ?1 OR message_id = ?2 ORDER BY 1 LIMIT 1",
        (item_id, int(numbered[1]) if numbered else None),
    ).fetchone()
    return NamedItem("message", found[1], item_id, found[0]) if found else None


def _file(stored: StoredFile) -> NamedItem:
    return NamedItem("file", stored.conversation, stored.file.file_id, file=stored)


def clipped(texts: Sequence[str], cap: int, tokens: TokenEstimator) -> str:
    """The texts, one a line or more, within a cap: short ones whole, long ones as far as an equal share goes.

    A mark says how many tokens of a text are left out. Empty where not even the marks fit.
    """
    counts = tokens.count(texts)
    whole = "\n".join(texts)
    if tokens.count([whole])[0] <= cap:
        return whole
    share = _share(counts, cap)
    while share >= 1:
        cut = [one if n <= share else _beginning(one, n, share, tokens) for one, n in zip(texts, counts, strict=True)]
        told = "\n".join(cut)
        if tokens.count([told])[0] <= cap:
            return told
        share = int(share * _SHRINK)
    return clipped([whole], cap, tokens) if len(texts) > 1 else ""


def _share(counts: Sequence[int], cap: int) -> int:
    """The most that each may take, where all together may take `cap` and what one leaves is for the others."""
    left = cap
    for place, count in enumerate(sorted(counts)):
        share = left // (len(counts) - place)
        if count > share:
            return share
        left -= count
    return max(counts, default=0)


def _beginning(text: str, count: int, share: int, tokens: TokenEstimator) -> str:
    """The beginning of a text that takes more than its share, and the mark."""

    def marked(units: int) -> str:
        kept = text[:units]
        return f"{kept} [... {count - tokens.count([kept])[0]:,} of {count:,} tokens left out]".lstrip()

    return marked(most_units(text, share, marked, tokens))


def most_units(text: str, cap: int, shown: Callable[[int], str], tokens: TokenEstimator) -> int:
    """How many characters of a text may be shown for what `shown` makes of them to keep to a cap."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        fits = tokens.count([shown(middle)])[0] <= cap
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


class ChildSummary(NamedTuple):
    """A summary that another was made of."""

    summary_id: str
    kind: str
    content: str
    tokens: int


class ReachedMessage(NamedTuple):
    """A message that was read."""

    number: int
    """Its integer key, which the tools show."""
    message_id: str
    leaf_id: str
    """The leaf summary that stands for it; empty where none does."""
    role: str
    text: str
    """Its words, and what its parts say besides: calls of tools, results, reasoning."""
    tokens: int
    """Of the text."""
    is_clipped: bool = False
    """The text was too long: marks stand where it was cut."""


@dataclass(frozen=True, slots=True)
class ExpandedSummary:
    """What one summary was made of, depth first; the summary itself is not in it. Or a message, by an id of its own."""

    summary_id: str
    """Or the id that names the message, or a large file of it."""
    kind: str | None
    """leaf, condensed, message; None of an unknown summary."""
    children: tuple[ChildSummary, ...]
    messages: tuple[ReachedMessage, ...]

    @property
    def tokens(self) -> int:
        return sum(child.tokens for child in self.children) + sum(said.tokens for said in self.messages)


@dataclass(frozen=True, slots=True)
class ExpansionResult:
    """What several summaries were made of, within one cap."""

    roots: tuple[ExpandedSummary, ...]
    tokens: int
    is_truncated: bool
    """Something did not fit; what would have followed was not looked at."""

    @property
    def cited_ids(self) -> tuple[str, ...]:
        named = (one for root in self.roots for one in (root.summary_id, *(c.summary_id for c in root.children)))
        return tuple(dict.fromkeys(named))


def expand(
    connection: sqlite3.Connection,
    item_ids: Sequence[str],
    depth: int,
    token_cap: float,
    tokens: TokenEstimator,
    *,
    has_messages: bool = False,
    clips: bool = False,
    bounds: ReadBounds = EVERYTHING,
) -> ExpansionResult:
    """Expand summaries one after the other within one cap, until something does not fit.

    Args:
        connection: where they are stored.
        item_ids: of summaries; of a message, which is read itself, or of a large file, whose message is read. An
            unknown one expands to nothing.
        depth: steps downwards; the messages of a leaf count as a step.
        token_cap: of all that is found; infinity = none.
        tokens: counts a message that was stored without a count.
        has_messages: leaves give their messages.
        clips: a message that does not fit is clipped to what is left; False: it ends the expansion unread.
        bounds: what lies outside is left out, with all that is beneath it.
    """
    known = summaries_by_id(connection, bounds.seen(connection, item_ids))
    roots: list[ExpandedSummary] = []
    used, is_truncated = 0, False
    for item_id in item_ids:
        is_truncated = is_truncated or used >= token_cap
        if is_truncated:
            break
        summary = known.get(item_id)
        found: list[ChildSummary | ReachedMessage] = []
        read = _named_message(connection, item_id, tokens, bounds)
        for one in read if summary is None else _beneath(connection, summary, depth, tokens, bounds, has_messages):
            is_truncated = used + one.tokens > token_cap
            if is_truncated and clips and isinstance(one, ReachedMessage):
                one = clipped_message(connection, one, int(token_cap) - used, tokens)
            if not is_truncated or (clips and isinstance(one, ReachedMessage) and one.tokens):
                used += one.tokens
                found.append(one)
            if is_truncated:
                break
        children = tuple(one for one in found if isinstance(one, ChildSummary))
        messages = tuple(one for one in found if isinstance(one, ReachedMessage))
        kind = summary.kind if summary else "message" if read else None
        roots.append(ExpandedSummary(item_id, kind, children, messages))
    return ExpansionResult(tuple(roots), used, is_truncated)


def _named_message(
    connection: sqlite3.Connection, item_id: str, tokens: TokenEstimator, bounds: ReadBounds
) -> list[ReachedMessage]:
    """The message that an id names, by itself or by a large file in it, where it may be seen."""
    item = named_item(connection, item_id)
    if item is None or item.kind == "summary" or not bounds.sees(connection, item):
        return []
    number = item.file.message if item.file else item.number
    return [one for _, one in read_messages(connection, [] if number is None else [number], tokens).values()]


def _beneath(
    connection: sqlite3.Connection,
    root: Summary,
    depth: int,
    tokens: TokenEstimator,
    bounds: ReadBounds,
    has_messages: bool,
) -> Iterator[ChildSummary | ReachedMessage]:
    """What a summary was made of, depth first; read only as far as it is asked for."""
    places = walk(connection, [root.summary_id], kept=lambda ids: bounds.seen(connection, ids), depth=depth)
    sources = {place.summary_id: place.next_ids for place in places}
    for summary_id, steps in depth_first(root.summary_id, sources.__getitem__, depth):
        summary = root if not steps else summaries_by_id(connection, [summary_id])[summary_id]
        if steps:
            yield ChildSummary(summary_id, summary.kind, summary.content, summary.token_count)
        if not has_messages or summary.kind != "leaf" or steps >= depth:
            continue
        for said in source_messages(connection, summary_id):
            if bounds.holds(said.conversation):
                yield reached(said, summary_id, tokens)


def reached(said: SourceMessage, leaf_id: str, tokens: TokenEstimator) -> ReachedMessage:
    """A stored message as it is read: with its tokens, and the leaf summary that stands for it."""
    count = said.tokens or tokens.count([said.text])[0]
    return ReachedMessage(said.number, said.message_id, leaf_id, said.role, said.text, count)


def read_messages(
    connection: sqlite3.Connection, numbers: Sequence[int], tokens: TokenEstimator
) -> dict[int, tuple[SourceMessage, ReachedMessage]]:
    """Messages by their integer keys, as they are stored and as they are read; an unknown one is left out."""
    said, leaves = messages_by_number(connection, numbers), leaves_of(connection, numbers)
    return {one.number: (one, reached(one, leaves.get(one.number, ""), tokens)) for one in said}


def clipped_message(
    connection: sqlite3.Connection, said: ReachedMessage, cap: int, tokens: TokenEstimator
) -> ReachedMessage:
    """A message within a cap: each of its passages as far as an equal share goes; one of 0 tokens where none fits."""
    if said.tokens <= cap:
        return said
    message = messages_by_key(connection, [said.message_id])[said.message_id]
    text = clipped([passage.text for passage in passages(message)], cap, tokens)
    return said._replace(text=text, tokens=tokens.count([text])[0] if text else 0, is_clipped=True)


def shortened(content: str) -> str:
    """At most 200 units of a text, and dots where there is more."""
    return content if utf16_length(content) <= _SNIPPET else f"{first_units(content, _SNIPPET, 'replaced')}..."


def distilled_text(expanded: ExpansionResult, rules: LosslessRules) -> str:
    """An expansion as a tool tells it.

    Args:
        expanded: what was found.
        rules: `corrected`: everything that was counted, in its own words; `original`: names and sizes, and one snippet
            for each root, whose kind is guessed by whether it has children.
    """
    lines = [f"## Expansion Results ({len(expanded.roots)} summaries, {expanded.tokens} total tokens)", ""]
    for root in expanded.roots:
        guessed = "condensed" if root.children else "leaf"
        kind = guessed if rules != "corrected" else root.kind or "unknown"
        lines.append(f"### {root.summary_id} ({kind}, {root.tokens} tokens)")
        lines += _names(root) if rules != "corrected" else _words(root)
        lines.append("")
    if expanded.cited_ids:
        lines.append(f"Cited IDs for follow-up: {', '.join(expanded.cited_ids)}")
    return "\n".join([*lines, f"[Truncated: {'yes' if expanded.is_truncated else 'no'}]"])


def _names(root: ExpandedSummary) -> list[str]:
    lines = []
    if root.children:
        lines.append(f"Children: {', '.join(child.summary_id for child in root.children)}")
    if root.messages:
        named = ", ".join(f"msg#{said.number} ({said.role}, {said.tokens} tokens)" for said in root.messages)
        lines.append(f"Messages: {named}")
    snippet = next((text for child in root.children if (text := shortened(child.content))), "")
    return [*lines, f"[Snippet: {shortened(snippet)}]"] if snippet else lines


def _words(root: ExpandedSummary) -> list[str]:
    children = [f"[{one.summary_id}] ({one.kind}, {one.tokens} tokens)\n{one.content}" for one in root.children]
    messages = [f"[msg#{said.number}] ({said.role}, {said.tokens} tokens)\n{said.text}" for said in root.messages]
    return [*children, *messages]
