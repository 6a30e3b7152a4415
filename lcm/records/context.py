"""What a model is shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

ContextTier = Literal["hard", "tail", "soft", "guidance", "recalled", "recovered"]
"""By which right an item stands in a context: authored and never cut, said last, authored as far as it fits, a
protected rule, found by ranking, fetched because ranking failed."""

LeftOutReason = Literal["budget", "share", "behind", "tail", "shown", "passed over", "dreams", "degraded", "clamped"]
"""Why something is not in a context:

| | |
|---|---|
| `budget` | with it, the context would take more than the budget |
| `share` | it takes more than is left for its kind, as for rules or for turns fetched because ranking failed |
| `behind` | one that does not fit comes first, and nothing behind that is looked at |
| `tail` | it lies before the fresh tail, and of that only what is recalled is shown |
| `shown` | all that it stands for is shown |
| `passed over` | recovery orders what was fetched without it |
| `dreams` | questions about dreams are answered by dreams, and no others are |
| `degraded` | what must be shown takes more than it may, and nothing else is shown |
| `clamped` | as it is sent, the context would cost more than the budget, and was cut |
"""


class LeftOut(NamedTuple):
    """Why a context leaves something out."""

    reason: LeftOutReason
    tokens: float = 0
    """What it takes, where that is why."""
    room_tokens: float = 0
    """What was left for it, where that is why."""
    behind: str = ""
    """The id of the first that did not fit, of what lies behind that."""


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
    """How many items of the conversation are not shown."""
    left_out: Mapping[str, LeftOut] = field(default_factory=dict)
    """Why, by id: of the items of the conversation that are not shown, and of what was recalled and is not."""
    is_degraded: bool = False
    """More is shown than the memory's budget; or what must be shown takes more than it, and nothing else is."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """JSON: what else the assembly decided."""
