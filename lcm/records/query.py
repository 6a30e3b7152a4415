"""What is asked, and what ranking found for it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from lcm.records.document import ScopeClass


@dataclass(frozen=True, slots=True)
class Recalled:
    """A document that ranking found for a query."""

    document_id: str
    text: str
    kind: str
    source_message_ids: tuple[str, ...]
    created_at: datetime
    score: float
    cosine: float = 0.0
    role: str = ""
    """Of who said it; empty where nobody did."""
    scope_class: ScopeClass = "durable"
    confidence: float = 0.0
    index_tier: int | None = None
    """The width that answered, of an index with several."""
    is_recovered: bool = False
    """Fetched because ranking failed: the raw words, in the order of their cosine."""
    tokens: int = 0
    """As they were counted when it was stored; 0 = they were not."""
    related: tuple[str, ...] = ()
    """The beginnings of documents that are shown with it, and with no better one."""

    @property
    def text_with_related(self) -> str:
        """The text as it is shown."""
        return f"{self.text}\nRelated: {' | '.join(self.related)}" if self.related else self.text


@dataclass(frozen=True, slots=True)
class Query:
    """A question asked of a workspace at an instant."""

    query_id: str
    text: str
    asked_at: datetime
    workspace_id: str = "default"
    category: str = "all"
    conversation_id: str | None = None
    session_id: str | None = None
    scopes: tuple[str, ...] | None = None
    """The scopes that the asker may read: () = none; None = those that the conversation reads, and without one all."""
    only_category: str | None = None
    """Answer with documents of this category alone, in the plural or singular."""
    caller: Literal["manual", "cli", "auto"] = "manual"
    """Who asks: a person or tool, the command line, or the memory itself before a turn."""
    shown_message_ids: tuple[str, ...] = ()
    """What the asker sees already: a document all of whose sources are among them is not returned."""
