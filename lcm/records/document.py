"""What can be found: candidates, what became of them, and documents."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

GLOBAL_SCOPE = "global"

ScopeClass = Literal["session", "durable", "global"]

SCOPE_CLASSES: tuple[ScopeClass, ...] = ScopeClass.__args__  # type: ignore[attr-defined]
"""What a document is to a query: said in the asker's own session, or remembered for its user, or for everybody."""

DEFAULT_RATING = 0.7
"""Of importance and confidence, where nobody said."""

MEMORY_CATEGORIES = ("profile", "preferences", "entities", "events", "cases", "patterns")
_PLURALS = dict(zip(("preference", "entity", "event", "case", "pattern"), MEMORY_CATEGORIES[1:], strict=True))


def category_named(name: object) -> str | None:
    """The category of `MEMORY_CATEGORIES` that a name means, plural or singular, blanks and capitals aside."""
    if not isinstance(name, str):
        return None
    written = name.strip().lower()
    named = _PLURALS.get(written, written)
    return named if named in MEMORY_CATEGORIES else None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A document before admission."""

    text: str
    source_message_ids: tuple[str, ...]
    """At least one; in conversation order."""
    kind: str = "message"
    category: str = "other"
    """One of `MEMORY_CATEGORIES`, or "other" where nothing said."""
    scope: str | None = None
    """None: where its writer writes by default."""
    importance: float = DEFAULT_RATING
    confidence: float = DEFAULT_RATING
    temporal_type: Literal["static", "dynamic"] = "static"
    valid_until: datetime | None = None
    overview: str = ""
    """A short structured summary (L1), where extraction wrote one."""
    content: str = ""
    """The full narrative (L2), where extraction wrote one: then `text` is its one-line abstract (L0)."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    batch: str = ""
    """Candidates of one extraction share it: twins among them are dropped; empty: it stands alone."""
    is_durable: bool = True
    """False: what is made of it is found from its own session alone, as `Document.is_durable` says."""
    supersedes: tuple[str, ...] = ()
    """Ids of documents of earlier candidates, oldest first: it takes the place of the latest that stands."""


Action = Literal[
    "create", "merge", "skip", "supersede", "support", "contextualize", "contradict", "duplicate", "reject", "fail",
]  # fmt: skip

ACTIONS: tuple[Action, ...] = Action.__args__  # type: ignore[attr-defined]
"""What may become of a candidate: the seven decisions of deduplication; a twin within its own batch; refused by
admission; not processed because of an error."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one candidate, and why: an audit row. The candidate is kept beside it, whatever was decided."""

    candidate: Candidate
    action: Action
    reason: str
    decided_at: datetime
    document_id: str | None = None
    """The document made of the candidate, if one was."""
    matched_id: str | None = None
    """The document that the candidate was merged into, supersedes, supports, or is like."""
    score: float | None = None
    """The admission score, where admission judged."""
    features: Mapping[str, float] = field(default_factory=dict)
    """The admission features behind the score, each in [0, 1]."""
    audit: Mapping[str, Any] = field(default_factory=dict)
    """JSON. What else the judges said: thresholds, weights, hint, compared ids, the model's own words."""


TURN_KINDS = ("message", "exchange")
"""Kinds of documents that are turns as they were said: of one message, or of two short ones of user and assistant."""

SPOKEN_KINDS = ("message", "guidance")
"""Kinds of documents that are what somebody said."""

EXCHANGE_SPEAKER = re.compile(r"(?m)^\[(?:user|assistant)\] ?")
"""What begins the two turns of an exchange, and none of their other lines."""


@dataclass(frozen=True, slots=True)
class Document:
    """What retrieval can return.

    What a document says never changes. A document that is merged into or superseded stays, ends at `invalidated_at`,
    and is named by the `supersedes` of the one that follows it.
    """

    document_id: str
    text: str
    source_message_ids: tuple[str, ...]
    conversation_id: str
    session_id: str
    """Empty, like `conversation_id`, of what was not said but authored or dreamt."""
    created_at: datetime
    """Its age counts from here: when the last of its source messages was said, or, of a merged document, the one that
    it was merged into."""
    kind: str = "message"
    category: str = "other"
    scope: str = GLOBAL_SCOPE
    importance: float = DEFAULT_RATING
    confidence: float = DEFAULT_RATING
    temporal_type: Literal["static", "dynamic"] = "static"
    valid_from: datetime | None = None
    """Before that instant it does not exist; None = `created_at`."""
    valid_until: datetime | None = None
    """Expired from then on; a ranking stage decides whether that matters."""
    invalidated_at: datetime | None = None
    """From then on another document stands in its place."""
    supersedes: str | None = None
    """The document in whose place this one stands."""
    last_accessed_at: datetime | None = None
    access_count: int = 0
    decay_tier: Literal["core", "working", "peripheral"] = "working"
    tokens: int = 0
    overview: str = ""
    content: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    role: str = ""
    """Of its first source message; empty where it has none."""
    is_durable: bool = True
    """False: only queries from its own session see it, and what looks for lost turns."""
    authority: float = 0.0
    """How far its author vouches for it, in [0, 1]: 1 of authored text."""
    decay_rate: float = 0.0
    """Of a summary, 1 - confidence: what its rank loses by."""
    hop_targets: tuple[str, ...] = ()
    """Ids of authored documents that it points to."""


AuthoredTier = Literal["hard", "soft", "variant"]


@dataclass(frozen=True, slots=True)
class AuthoredNode:
    """One block of an authored document."""

    node_id: str
    """`SOURCE#NNNNNN`: unique, and what hop targets name."""
    source: str
    """The document's name."""
    tier: AuthoredTier
    """Always shown; shown as far as it fits, in authored order; found by ranking."""
    kind: str
    """Of block: ListItem, Blockquote, Paragraph, Heading, CodeBlock, HTMLBlock, YAMLFrontmatter."""
    text: str
    position: int
    """Byte offset of its first text in the document."""
    ordinal: int
    """From 0 within the document."""
    tokens: int
    authority: float = 1.0
    modality_mask: int = 0
    """Of the deontic frame, where that promoted it."""
    hop_targets: tuple[str, ...] = ()
