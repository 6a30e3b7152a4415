"""From summaries back to what they were made of.

Source: lossless-claw 0.6.3.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from lcm.context.recall.read_bounds import EVERYTHING, ReadBounds
from lcm.javascript import first_units, utf16_length
from lcm.protocols import TokenEstimator
from lcm.records import Summary
from lcm.store.lineage import source_messages
from lcm.store.summaries import summaries_by_id

Distilled = Literal["words", "ids"]
_SNIPPET = 200


class Child(NamedTuple):
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
class Root:
    """What one summary was made of, depth first; the summary itself is not in it."""

    summary_id: str
    kind: str | None
    """None of an unknown summary."""
    children: tuple[Child, ...]
    messages: tuple[ReachedMessage, ...]

    @property
    def tokens(self) -> int:
        return sum(child.tokens for child in self.children) + sum(said.tokens for said in self.messages)


@dataclass(frozen=True, slots=True)
class Expanded:
    """What several summaries were made of, within one cap."""

    roots: tuple[Root, ...]
    tokens: int
    is_truncated: bool
    """Something did not fit; what would have followed was not looked at."""

    @property
    def cited_ids(self) -> tuple[str, ...]:
        named = (one for root in self.roots for one in (root.summary_id, *(c.summary_id for c in root.children)))
        return tuple(dict.fromkeys(named))


@dataclass(slots=True)
class _Walk:
    """One expansion under way."""

    connection: sqlite3.Connection
    tokens: TokenEstimator
    cap: float
    has_messages: bool
    bounds: ReadBounds
    used: int = 0
    is_truncated: bool = False
    children: list[Child] = field(default_factory=list)
    messages: list[ReachedMessage] = field(default_factory=list)

    def fits(self, tokens: int) -> bool:
        self.is_truncated = self.is_truncated or self.used + tokens > self.cap
        self.used += 0 if self.is_truncated else tokens
        return not self.is_truncated

    def below(self, summary: Summary, depth: int, above: frozenset[str]) -> None:
        """Take in what a summary was made of; `above` keeps a store that is no DAG from turning in circles."""
        if depth <= 0 or self.is_truncated:
            return
        if summary.kind == "leaf":
            self._messages(summary)
            return
        sources = summaries_by_id(self.connection, self.bounds.seen(self.connection, summary.source_ids))
        for source_id in summary.source_ids:
            source = sources.get(source_id)
            if source is None or source_id in above:
                continue
            if not self.fits(source.token_count):
                return
            self.children.append(Child(source_id, source.kind, source.content, source.token_count))
            if depth > 1:
                self.below(source, depth - 1, above | {source_id})

    def _messages(self, leaf: Summary) -> None:
        if not self.has_messages:
            return
        for said in source_messages(self.connection, leaf.summary_id):
            if not self.bounds.holds(said.conversation):
                continue
            tokens = said.tokens or self.tokens.count([said.content])[0]
            if not self.fits(tokens):
                return
            self.messages.append(
                ReachedMessage(said.number, said.message_id, leaf.summary_id, said.role, said.content, tokens)
            )


def expand(
    connection: sqlite3.Connection,
    summary_ids: Sequence[str],
    depth: int,
    token_cap: float,
    tokens: TokenEstimator,
    *,
    has_messages: bool = False,
    bounds: ReadBounds = EVERYTHING,
) -> Expanded:
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
    roots: list[Root] = []
    used, is_truncated = 0, False
    for summary_id in summary_ids:
        if used >= token_cap:
            is_truncated = True
        if is_truncated:
            break
        walk = _Walk(connection, tokens, token_cap - used, has_messages, bounds)
        summary = known.get(summary_id)
        if summary is not None:
            walk.below(summary, depth, frozenset({summary_id}))
        kind = None if summary is None else summary.kind
        roots.append(Root(summary_id, kind, tuple(walk.children), tuple(walk.messages)))
        used += walk.used
        is_truncated = walk.is_truncated
    return Expanded(tuple(roots), used, is_truncated)


def shortened(content: str) -> str:
    """At most 200 units of a text, and dots where there is more."""
    return content if utf16_length(content) <= _SNIPPET else f"{first_units(content, _SNIPPET, 'replaced')}..."


def distilled_text(expanded: Expanded, distilled: Distilled) -> str:
    """An expansion as a tool tells it.

    Args:
        expanded: what was found.
        distilled: `words`: everything that was counted, in its own words; `ids`: names and sizes, and one snippet for
            each root, whose kind is guessed by whether it has children.
    """
    lines = [f"## Expansion Results ({len(expanded.roots)} summaries, {expanded.tokens} total tokens)", ""]
    for root in expanded.roots:
        guessed = "condensed" if root.children else "leaf"
        kind = guessed if distilled == "ids" else root.kind or "unknown"
        lines.append(f"### {root.summary_id} ({kind}, {root.tokens} tokens)")
        lines += _names(root) if distilled == "ids" else _words(root)
        lines.append("")
    if expanded.cited_ids:
        lines.append(f"Cited IDs for follow-up: {', '.join(expanded.cited_ids)}")
    return "\n".join([*lines, f"[Truncated: {'yes' if expanded.is_truncated else 'no'}]"])


def _names(root: Root) -> list[str]:
    lines = []
    if root.children:
        lines.append(f"Children: {', '.join(child.summary_id for child in root.children)}")
    if root.messages:
        named = ", ".join(f"msg#{said.number} ({said.role}, {said.tokens} tokens)" for said in root.messages)
        lines.append(f"Messages: {named}")
    snippet = next((text for child in root.children if (text := shortened(child.content))), "")
    return [*lines, f"[Snippet: {shortened(snippet)}]"] if snippet else lines


def _words(root: Root) -> list[str]:
    children = [f"[{one.summary_id}] ({one.kind}, {one.tokens} tokens)\n{one.content}" for one in root.children]
    messages = [f"[msg#{said.number}] ({said.role}, {said.tokens} tokens)\n{said.content}" for said in root.messages]
    return [*children, *messages]
