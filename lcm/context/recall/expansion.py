"""From summaries back to what they were made of.

Source: lossless-claw 0.6.3.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lcm.context.recall.clipping import clipped
from lcm.context.recall.items import named_item
from lcm.context.recall.read_bounds import EVERYTHING, ReadBounds
from lcm.javascript import first_units, utf16_length
from lcm.protocols.models import TokenEstimator
from lcm.records.rules import LosslessRules
from lcm.records.summary import Summary
from lcm.store.lineage import SourceMessage, depth_first, leaves_of, messages_by_number, source_messages, walk
from lcm.store.messages import messages_by_key
from lcm.store.summaries import summaries_by_id
from lcm.transcript.passages import passages

_SNIPPET = 200


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
            if used + one.tokens > token_cap:
                is_truncated = True
                if not clips or isinstance(one, ChildSummary):
                    break
                one = clipped_message(connection, one, int(token_cap) - used, tokens)
                if not one.tokens:
                    break
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
    if item is None or item.kind == "summary":
        return []
    number = item.file.message if item.file else item.number
    said = messages_by_number(connection, [number]) if number is not None else []
    leaves = leaves_of(connection, [one.number for one in said])
    return [
        reached(one, leaves.get(one.number, ""), tokens)
        for one in said
        if bounds.sees_message(connection, one.number, one.conversation)
    ]


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
