"""The vocabulary: frozen data that travels from transcript to context. No behaviour lives here.

A *transcript* is what was recorded; the store keeps it as a *conversation* of *messages*, each made of *parts*.
*Documents* are what retrieval can return; each names the messages that it stands for. A *query* is asked at an
instant, of one *workspace* (one haystack: the conversations that are searched together).

Ids are text, opaque, and unique within their workspace. Instants are aware UTC datetimes in whole milliseconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

from lcm.errors import LcmError

Rules = Literal["corrected", "original"]
"""By which a component works that follows an original: its rules with their mistakes put right, or to the letter."""
VersionedRules = Literal["corrected", "original", "1.4.4"]
"""Likewise, where the documents of an original (`original`) want other rules than its code of that version."""
Role = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")

PartType = Literal[
    "text", "reasoning", "tool", "patch", "file", "subtask",
    "compaction", "step_start", "step_finish", "snapshot", "agent", "retry",
]  # fmt: skip
PART_TYPES: tuple[PartType, ...] = PartType.__args__  # type: ignore[attr-defined]

GLOBAL_SCOPE = "global"

ScopeClass = Literal["session", "durable", "global"]
SCOPE_CLASSES: tuple[ScopeClass, ...] = ScopeClass.__args__  # type: ignore[attr-defined]
"""What a document is to a query: said in the asker's own session, or remembered for its user, or for everybody."""

DEFAULT_RATING = 0.7
"""Of importance and confidence, where nobody said."""

MEMORY_CATEGORIES = ("profile", "preferences", "entities", "events", "cases", "patterns")


@dataclass(frozen=True, slots=True)
class Part:
    """One block of a message."""

    part_type: PartType
    text: str | None = None
    """The block's words, if it has any."""
    tool_call_id: str | None = None
    """Joins a tool call to its result."""
    tool_name: str | None = None
    tool_input: str | None = None
    """The call's arguments as JSON text."""
    tool_output: str | None = None
    """The result as JSON text, where the block names one apart from its text."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """JSON. `raw` is the block as recorded, `slot` the message key that held it: what exact rebuilding needs."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a transcript, with the exact original inside."""

    message_id: str
    role: Role
    content: str
    """The plain words, for search and for people; the whole message is in `parts` and `envelope`."""
    session_id: str
    created_at: datetime | None = None
    """None where the transcript does not say: the store then carries the last known instant forward."""
    author: str | None = None
    """Who speaks, where a role is not enough (two people, a team chat)."""
    parts: tuple[Part, ...] = ()
    envelope: Mapping[str, Any] = field(default_factory=dict)
    """JSON. The recorded message without its blocks: what exact rebuilding needs besides the parts."""
    files: tuple["LargeFile", ...] = ()
    """What is too large for a context; `content` names it, the parts hold it."""


@dataclass(frozen=True, slots=True)
class Event:
    """What a session recorded beside its messages: its header, a model change, a compaction, a type unknown to us."""

    kind: str
    """The type that the record names."""
    native: Any
    """JSON: the record as it stands in the file."""
    after: int = 0
    """How many messages of the conversation stand before it."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """One recorded conversation, in order."""

    conversation_id: str
    messages: tuple[Message, ...]
    workspace_id: str = "default"
    """Which haystack it belongs to: conversations of one workspace are searched together."""
    title: str | None = None
    events: tuple[Event, ...] = ()
    """In order; each says where it stands between the messages."""


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
    scope_class: ScopeClass = "durable"
    confidence: float = 0.0
    index_tier: int | None = None
    """The width that answered, of an index with several."""
    is_recovered: bool = False
    """Fetched because ranking failed: the raw words, in the order of their cosine."""


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
    """The scopes that the asker may read: None = all, () = none."""
    only_category: str | None = None
    """Answer with documents of this category alone."""
    caller: Literal["manual", "cli", "auto"] = "manual"
    """Who asks: a person or tool, the command line, or the memory itself before a turn."""
    shown_message_ids: tuple[str, ...] = ()
    """What the asker sees already: a document all of whose sources are among them is not returned."""


SummaryKind = Literal["leaf", "condensed"]
SUMMARY_KINDS: tuple[SummaryKind, ...] = SummaryKind.__args__  # type: ignore[attr-defined]

Level = Literal["normal", "aggressive", "fallback", "capped"]
LEVELS: tuple[Level, ...] = Level.__args__  # type: ignore[attr-defined]
"""How far a summary had to be pressed: the plain request, the tighter one, cut from its source, cut to its limit."""


FALLBACK_MARK = "[LCM fallback summary; truncated for context management]"
"""The last line of a summary that is the cut beginning of its source, because no model gave one."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A node of the summary DAG: `leaf` (depth 0) from messages, `condensed` from summaries one level below."""

    summary_id: str
    conversation_id: str
    kind: SummaryKind
    depth: int
    content: str
    token_count: int
    created_at: datetime
    earliest_at: datetime | None = None
    latest_at: datetime | None = None
    descendant_count: int = 0
    """How many summaries lie beneath it."""
    descendant_token_count: int = 0
    source_message_token_count: int = 0
    source_ids: tuple[str, ...] = ()
    """Message ids of a leaf, summary ids of a condensed summary; in order."""
    file_ids: tuple[str, ...] = ()
    model: str = "unknown"
    level: Level = "normal"
    method: str = ""
    """The summarizer that made it."""
    confidence: float = 0.0
    """Its maker's, in [0, 1]."""


class ContextEntry(NamedTuple):
    """One context item, without its words."""

    ordinal: int
    """Rises along the conversation, with gaps."""
    item_type: Literal["message", "summary"]
    item_id: str
    tokens: int
    """As stored."""
    depth: int | None
    """Of a summary."""

    @property
    def is_message(self) -> bool:
        return self.item_type == "message"


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """One text to summarise, with what the summarizer may need to know."""

    text: str
    target_tokens: int
    """The length to aim at; an aim, no bound."""
    depth: int = 0
    """Of the summary to be made: 0 from messages, n from summaries of depth n - 1."""
    previous: str | None = None
    """The summary just before it, for continuity."""
    is_aggressive: bool = False
    """The first answer was too long: durable facts and the state of the task alone."""
    turns: tuple[str, ...] = ()
    """The turns that `text` is made of, where it is made of turns."""
    density: float | None = None
    """The share of the turns that a selection is to keep, in (0, 1]; None = as the summarizer is set."""
    technicality: float = 0.0
    """Mean admission score of the turns, in [0, 1]: what a routing summarizer decides by."""
    is_extractive: bool = False
    """Asked of a routing summarizer: take the turns' own words."""


@dataclass(frozen=True, slots=True)
class SummaryResult:
    """A summary, how sure its maker is, and which method of a chain made it; or why there is none."""

    text: str
    confidence: float
    method: str
    model: str = "unknown"
    failure: LcmError | None = None
    """Why there is no summary; `text` is empty then. An `AuthError` says that asking again is of no use."""
    tokens: int = 0
    """As its maker counted them: words, or what a model emitted; 0: nobody did."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A message kept word for word as guidance when compaction takes it out of the context."""

    message_id: str
    conversation_id: str
    text: str
    created_at: datetime
    """When it was protected."""
    protected_by: Literal["words", "embedding"]
    """Its own words say that it is a rule; or it is near to what rules say."""
    stability: float
    """How far its provenance vouches for it, in [0, 1]."""
    provenance: str
    tokens: int


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """What a host said of one of its sessions: advice, which nothing depends on."""

    entry_id: str
    happened_at: datetime
    hook: str
    """before_reset, session_end ..."""
    session_id: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    """JSON: reason, message count, the next session ..."""


ContextTier = Literal["hard", "tail", "soft", "guidance", "recalled", "recovered"]
"""By which right an item stands in a context: authored and never cut, said last, authored as far as it fits, a
protected rule, found by ranking, fetched because ranking failed."""

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


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """What one run of compaction did to one conversation."""

    conversation_id: str
    is_compacted: bool
    """At least one summary was made."""
    reason: str
    """One of the reasons that the compaction names."""
    tokens_before: int
    """Of the whole context, as stored."""
    tokens_after: int
    summary_ids: tuple[str, ...] = ()
    """In the order of making."""
    rounds: int = 0
    has_failed_auth: bool = False
    failure: str = ""
    """Why a part of the run made nothing, where something went wrong."""


@dataclass(frozen=True, slots=True)
class LargeFile:
    """A text within a message that is too large for a context: a reference stands in its place in `Message.content`.

    The words themselves stay where they are, in the message's part.
    """

    file_id: str
    ordinal: int
    """Of the part that holds it."""
    position: int
    """Among the large files of that part, from 0."""
    name: str | None
    mime_type: str | None
    byte_size: int
    exploration_summary: str


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
    guidance: str = ""
    """What the system prompt is to add, because summaries stand in the context."""
    evicted: int = 0
    """How many items did not fit."""
    is_degraded: bool = False
    """More is shown than the memory's budget; or what must be shown takes more than it, and nothing else is."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """JSON: what else the assembly decided."""
