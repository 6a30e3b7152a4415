"""What old messages are folded into, and what became of a conversation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from lcm.errors import LcmError

SummaryKind = Literal["leaf", "condensed"]
Vector = npt.NDArray[np.float32]
"""Shape (dim,), of unit length."""

SUMMARY_KINDS: tuple[SummaryKind, ...] = SummaryKind.__args__  # type: ignore[attr-defined]

Level = Literal["normal", "aggressive", "fallback", "capped"]

LEVELS: tuple[Level, ...] = Level.__args__  # type: ignore[attr-defined]
"""How far a summary had to be pressed: the plain request, the tighter one, cut from its source, cut to its limit."""

FALLBACK_MARK = "[LCM fallback summary; truncated for context management]"
"""The last line of a summary that is the cut beginning of its source, because no model gave one."""

DIRECTIVE_MARK = "[LCM fallback summary; directive-shaped untrusted content omitted]"
"""Likewise where what reads like an order to a model was left out of it."""


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
    turn_vectors: Mapping[str, Vector] = field(default_factory=dict, repr=False, compare=False)
    """Turns that its maker has embedded, by their texts: by the embedder whose name is `model`."""


@dataclass(frozen=True, slots=True)
class GuidanceShard:
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


class MessageHeat(NamedTuple):
    """How often a conversation comes back to one of its messages."""

    heat: int
    """How many later messages state one of its facts again."""
    caller: str
    """The message whose call of a tool it answers, which may have left the context; of any other, itself."""


class TriggerReading(NamedTuple):
    """What a trigger of compaction saw of a context, or how much it leaves alone."""

    what: str
    """Of what the tokens are, and what they trigger: stands behind the numbers."""
    tokens: int
    threshold: int | None
    """Compaction acts from here on, or leaves no more alone; None = however many there are."""


class ContextReading(NamedTuple):
    """The most that one trigger saw of one context while a memory took in what was said."""

    conversation_id: str
    is_compacted: bool
    """A summary was made of it, whatever triggered that."""
    what: str
    tokens: int
    threshold: int | None


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
    triggers: tuple[TriggerReading, ...] = ()
    """What was looked at before anything was done."""
    waited_seconds: float = 0.0
    """That a turn took longer for it, where time is told or simulated."""
