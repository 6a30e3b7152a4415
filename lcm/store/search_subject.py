"""What can be searched in a store, and in which part of it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from lcm.encoding import optional_instant


@dataclass(frozen=True, slots=True)
class SearchBounds:
    """The part of the store that a search looks in."""

    conversations: Sequence[int] | None = None
    """None = all, archived ones too."""
    summaries: Sequence[str] | None = None
    """Only these, and the messages that they were made of; None = all."""
    since: datetime | None = None
    """Not before that instant."""
    before: datetime | None = None
    """Before that instant."""
    limit: int = 50
    now: datetime | None = None
    """From when a hybrid order counts age; None = from the newest message."""

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "conversations": None if self.conversations is None else json.dumps(list(self.conversations)),
            "summaries": None if self.summaries is None else json.dumps(list(self.summaries)),
            "since": optional_instant(self.since),
            "before": optional_instant(self.before),
            "limit": self.limit,
            "now": optional_instant(self.now),
        }


@dataclass(frozen=True, slots=True)
class SearchSubject:
    """What is searched: messages or summaries."""

    fts: str
    rows: str
    key: str
    joined: str
    content: str
    column: int
    inside: str
    starts: str
    ends: str
    tie: str
    trigrams: str | None = None
    match_in: str = ""
    """The column of the full-text table that counts; empty = all of them."""

    def scope(self, bounds: SearchBounds) -> str:
        """The condition of rows within the bounds: what bounds nothing is not asked of each row."""
        row = self.rows.rpartition(" ")[2]
        conditions: dict[str, object] = {
            f"{row}.conversation_id {_CONVERSATIONS}": bounds.conversations,
            self.inside: bounds.summaries,
            f"{self.ends} >= :since": bounds.since,
            f"{self.starts} < :before": bounds.before,
        }
        return " AND ".join(["TRUE", *(sql for sql, bound in conditions.items() if bound is not None)])

    @property
    def newest_first(self) -> str:
        return f"{self.ends} DESC, {self.tie} DESC"


_CONVERSATIONS = "IN (SELECT value FROM json_each(:conversations))"
_SUMMARIES = "IN (SELECT value FROM json_each(:summaries))"

MESSAGES = SearchSubject(
    fts="messages_fts",
    rows="messages m",
    key="m.message_id",
    joined="m.message_id = messages_fts.rowid",
    content="m.full_text",
    column=-1,
    inside=f"m.message_id IN (SELECT message_id FROM summary_messages WHERE summary_id {_SUMMARIES})",  # noqa: S608
    starts="m.created_at",
    ends="m.created_at",
    tie="m.message_id",
)
WORDS = replace(MESSAGES, content="m.content", column=0, match_in="content")
"""Messages by their words alone, without what their parts say."""

SUMMARIES = SearchSubject(
    fts="summaries_fts",
    rows="summaries s",
    key="s.summary_id",
    joined="s.summary_id = summaries_fts.summary_id",
    content="s.content",
    column=1,
    inside=f"s.summary_id {_SUMMARIES}",
    starts="s.created_at",
    ends="s.created_at",
    tie="s.rowid",
    trigrams="summaries_fts_cjk",
)
COVERED = replace(SUMMARIES, starts="coalesce(s.earliest_at, s.created_at)", ends="coalesce(s.latest_at, s.created_at)")
"""Summaries by when what they cover was said, rather than by when they were made."""
LATEST = replace(COVERED, starts=COVERED.ends)
"""Summaries by when the last of what they cover was said."""
