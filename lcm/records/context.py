"""What a model is shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

ContextTier = Literal["hard", "tail", "soft", "guidance", "recalled", "recovered"]
"""By which right an item stands in a context: authored and never cut, said last, authored as far as it fits, a
protected rule, found by ranking, fetched because ranking failed."""


@dataclass(frozen=True, slots=True)
class ContextItem:
    """One entry of a context: a message, a summary, or retrieved documents."""

    kind: Literal["message", "summary", "document"]
    item_id: str
    text: str
    """As the model is shown it."""
    tokens: int
    in_tail: bool = False
    """Part of the fresh tail, which is never left out."""
    context_tier: ContextTier | None = None
    """Where the assembly tells tiers apart."""
    source_message_ids: tuple[str, ...] = ()
    """Of a document: the messages that it stands for."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a model would be shown."""

    items: tuple[ContextItem, ...]
    """In the order of the conversation."""
    tokens: int
    """Of the items, by the assembly's own estimator."""
    budget_tokens: int
    messages: tuple[Mapping[str, Any], ...] = ()
    """JSON: the items as agent messages, after the repair of tool calls."""
    system_note: str = ""
    """What the system prompt is to add, because summaries stand in the context."""
    evicted: int = 0
    """How many items did not fit."""
    is_degraded: bool = False
    """More is shown than the memory's budget; or what must be shown takes more than it, and nothing else is."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """JSON: what else the assembly decided."""
