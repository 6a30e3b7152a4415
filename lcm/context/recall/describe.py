"""What is known of one summary, one message or one large file.

Source: lossless-claw 0.6.3.
"""

import sqlite3
from dataclasses import dataclass, replace
from datetime import datetime

from lcm.context.recall.expansion import ReachedMessage
from lcm.context.recall.grep import minute
from lcm.context.recall.read_bounds import ReadBounds
from lcm.records.summary import Summary
from lcm.store.lineage import Direction, LineagePlace, StoredFile, derived_ids, source_messages, walk
from lcm.store.summaries import summaries_by_id


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


def described_summary(
    connection: sqlite3.Connection,
    summary_id: str,
    conversation: int,
    direction: Direction,
    bounds: ReadBounds,
    budget_tokens: int,
) -> DescribedSummary:
    """Describe a summary that is stored and may be seen; what lies outside is not named."""
    places = walk(connection, [summary_id], direction, lambda ids: bounds.seen(connection, ids))
    known = summaries_by_id(connection, [place.summary_id for place in places])
    summary = known[summary_id]
    messages = [said for said in source_messages(connection, summary_id) if bounds.holds(said.conversation)]
    sources = [said.message_id for said in messages] or bounds.seen(connection, summary.source_ids)
    return DescribedSummary(
        replace(summary, source_ids=tuple(sources), file_ids=bounds.files(connection, summary.file_ids)),
        conversation,
        tuple(bounds.seen(connection, derived_ids(connection, summary_id))),
        tuple(said.number for said in messages),
        tuple(Node(place, known[place.summary_id]) for place in places),
        budget_tokens,
    )


def summary_text(described: DescribedSummary) -> str:
    """A summary as the tool tells it."""
    summary = described.summary
    meta = (
        f"meta conv={described.conversation} kind={summary.kind} depth={summary.depth} tok={summary.token_count} "
        f"descTok={summary.descendant_token_count} srcTok={summary.source_message_token_count} "
        f"desc={summary.descendant_count} range={_range(summary)} budgetCap={described.budget_tokens}"
    )
    lines = [f"LCM_SUMMARY {summary.summary_id}", meta]
    lines += [f"parents {' '.join(described.source_summary_ids)}"] if described.source_summary_ids else []
    lines += [f"children {' '.join(described.derived_ids)}"] if described.derived_ids else []
    lines += ["manifest", *(_node_line(node, described.budget_tokens) for node in described.subtree)]
    return "\n".join([*lines, "content", summary.content])


def message_text(described: DescribedMessage) -> str:
    """A message as the tool tells it."""
    said = described.said
    lines = [
        f"LCM_MESSAGE msg#{said.number}",
        f"id {said.message_id}",
        f"meta conv={described.conversation} role={said.role} tok={described.tokens} at={minute(described.created_at)}",
    ]
    lines += [f"summary {said.leaf_id}"] if said.leaf_id else []
    lines += [f"files {' '.join(described.file_ids)}"] if described.file_ids else []
    return "\n".join([*lines, "content", said.text])


def file_description(described: DescribedFile) -> str:
    """A large file as the tool tells it."""
    stored = described.stored
    lines = [
        f"LCM_FILE {stored.file.file_id}",
        f"conversation {stored.conversation}",
        f"name {stored.file.name or 'unknown'}",
        f"type {stored.file.mime_type or 'unknown'}",
        f"size {stored.file.byte_size:,} bytes",
        f"created {minute(stored.created_at)}",
        "exploration summary",
        stored.file.exploration_summary or "(none)",
    ]
    lines += [] if described.text is None else ["content", described.text]
    return "\n".join(lines)


def _node_line(node: Node, budget_tokens: int) -> str:
    summary, place = node.summary, node.place
    fits = ["in" if cost <= budget_tokens else "over" for cost in (node.summaries_tokens, node.messages_tokens)]
    return (
        f"d{place.steps} {summary.summary_id} k={summary.kind} tok={summary.token_count} "
        f"descTok={summary.descendant_token_count} srcTok={summary.source_message_token_count} "
        f"desc={summary.descendant_count} child={len(place.next_ids)} range={_range(summary)} "
        f"cost[s={node.summaries_tokens},m={node.messages_tokens}] budget[s={fits[0]},m={fits[1]}]"
    )


def _range(summary: Summary) -> str:
    return f"{_at(summary.earliest_at)}..{_at(summary.latest_at)}"


def _at(instant: datetime | None) -> str:
    return "?" if instant is None else minute(instant)
