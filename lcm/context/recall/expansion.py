"""From summaries back to what they were made of.

Source: lossless-claw 0.6.3.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lcm.context.recall.read_bounds import EVERYTHING, ReadBounds
from lcm.javascript import first_units, utf16_length
from lcm.protocols.models import TokenEstimator
from lcm.records.rules import Rules
from lcm.records.summary import Summary
from lcm.store.lineage import depth_first, source_messages, walk
from lcm.store.summaries import summaries_by_id

_SNIPPET = 200


class ChildSummary(NamedTuple):
    """A summary that another was made of."""

    summary_id: str
    kind: str
    content: str
    tokens: int


class ReachedMessage(NamedTuple):
    """A message that a leaf summary stands for."""

    number: int
    """Its integer key, which the tools show."""
    message_id: str
    leaf_id: str
    role: str
    content: str
    tokens: int


@dataclass(frozen=True, slots=True)
class ExpandedSummary:
    """What one summary was made of, depth first; the summary itself is not in it."""

    summary_id: str
    kind: str | None
    """None of an unknown summary."""
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
    summary_ids: Sequence[str],
    depth: int,
    token_cap: float,
    tokens: TokenEstimator,
    *,
    has_messages: bool = False,
    bounds: ReadBounds = EVERYTHING,
) -> ExpansionResult:
    """Expand summaries one after the other within one cap, until something does not fit.

    Args:
        connection: where they are stored.
        summary_ids: an unknown one expands to nothing.
        depth: steps downwards; the messages of a leaf count as a step.
        token_cap: of all that is found; infinity = none.
        tokens: counts a message that was stored without a count.
        has_messages: leaves give their messages.
        bounds: what lies outside is left out, with all that is beneath it.
    """
    known = summaries_by_id(connection, bounds.seen(connection, summary_ids))
    roots: list[ExpandedSummary] = []
    used, is_truncated = 0, False
    for summary_id in summary_ids:
        is_truncated = is_truncated or used >= token_cap
        if is_truncated:
            break
        summary = known.get(summary_id)
        found: list[ChildSummary | ReachedMessage] = []
        for one in () if summary is None else _beneath(connection, summary, depth, tokens, bounds, has_messages):
            if used + one.tokens > token_cap:
                is_truncated = True
                break
            used += one.tokens
            found.append(one)
        children = tuple(one for one in found if isinstance(one, ChildSummary))
        messages = tuple(one for one in found if isinstance(one, ReachedMessage))
        roots.append(ExpandedSummary(summary_id, None if summary is None else summary.kind, children, messages))
    return ExpansionResult(tuple(roots), used, is_truncated)


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
                count = said.tokens or tokens.count([said.content])[0]
                yield ReachedMessage(said.number, said.message_id, summary_id, said.role, said.content, count)


def shortened(content: str) -> str:
    """At most 200 units of a text, and dots where there is more."""
    return content if utf16_length(content) <= _SNIPPET else f"{first_units(content, _SNIPPET, 'replaced')}..."


def distilled_text(expanded: ExpansionResult, rules: Rules) -> str:
    """An expansion as a tool tells it.

    Args:
        expanded: what was found.
        rules: `corrected`: everything that was counted, in its own words; `original`: names and sizes, and one snippet
            for each root, whose kind is guessed by whether it has children.
    """
    lines = [f"## Expansion Results ({len(expanded.roots)} summaries, {expanded.tokens} total tokens)", ""]
    for root in expanded.roots:
        guessed = "condensed" if root.children else "leaf"
        kind = guessed if rules == "original" else root.kind or "unknown"
        lines.append(f"### {root.summary_id} ({kind}, {root.tokens} tokens)")
        lines += _names(root) if rules == "original" else _words(root)
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
    messages = [f"[msg#{said.number}] ({said.role}, {said.tokens} tokens)\n{said.content}" for said in root.messages]
    return [*children, *messages]
