"""What lies behind the rankings of one run: where evidence was lost, what contexts held, how talk was folded."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import polars as pl

from eval.ladder.losses import FOUND, LATE, NO_MISS
from lcm.records.context import Context
from lcm.records.summary import Summary

ABSENT = "absent"
"""Of a message that a context does not hold in any way."""


class StoredDocument(NamedTuple):
    """A document as a memory holds it, which need not be what was said, or when."""

    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Rung:
    """One step of a ladder: what a stage did with the best document of a message."""

    stage: str
    rank: int | None
    score: float | None
    told: str
    reason: str = ""
    """Why, as far as the stage tells."""


@dataclass(frozen=True, slots=True)
class MessageLadder:
    """How a ranking treated one judged message."""

    message_id: str
    place: str
    """As in `eval.ladder.losses`."""
    rungs: tuple[Rung, ...]
    document_id: str | None = None
    """The one whose steps these are; None where the memory has none."""

    @property
    def lost_at(self) -> str | None:
        return None if self.place in (FOUND, *NO_MISS) else self.place


@dataclass(frozen=True, slots=True)
class ShownContext:
    """A context of a query, and how it holds the query's evidence."""

    conversation_id: str
    context: Context
    states: tuple[str, ...]
    """`verbatim`, `summarised`, `reachable`, or `ABSENT`: as `eval.measures.retention` has them."""


@dataclass(frozen=True, slots=True)
class FoldedConversation:
    """A conversation as its memory holds it: its summaries, and what stands in its context now."""

    conversation_id: str
    workspace_id: str
    summaries: tuple[Summary, ...]
    entries: tuple[tuple[str, str, int], ...]
    """`message` or `summary`, id, tokens: in order."""


@dataclass(slots=True)
class Insight:
    """All of it, of one run."""

    places: pl.DataFrame
    """query_id, category, message_id, place: every judged message once."""
    ladders: dict[str, list[MessageLadder]] = field(default_factory=dict)
    """Query id -> its judged messages."""
    contexts: dict[str, list[ShownContext]] = field(default_factory=dict)
    """Query id -> one a budget."""
    folded: dict[tuple[str, str], FoldedConversation] = field(default_factory=dict)
    """By workspace and conversation, as it was when it was last asked about."""

    documents: dict[tuple[str, str], StoredDocument] = field(default_factory=dict)
    """By workspace and document, as they were when the last question was asked."""

    def lost(self, query_id: str) -> str | None:
        """The stage that lost most of a query's evidence; None where nothing was lost, or nobody judged it."""
        found = Counter(one.lost_at for one in self.ladders.get(query_id, ()) if one.lost_at is not None)
        return max(sorted(found), key=lambda place: found[place]) if found else None

    def losses(self) -> dict[str, int]:
        """Place -> how many judged messages; `found` and `late` first, then what lost most."""
        counts = Counter(self.places["place"].to_list())
        first = {name: counts.pop(name) for name in (FOUND, LATE) if name in counts}
        return first | dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
