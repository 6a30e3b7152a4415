"""A question with what answers it, as a questions file holds it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lcm.clock import format_instant

ENDINGS = (".jsonl", ".csv", ".parquet")
"""Of questions files."""
UNANSWERABLE = "unanswerable"
"""The category of questions that nothing answers."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that answers a question: where it stands is worked out against the transcripts."""

    text: str = ""
    """As a person wrote it: the id of a message, `file:line`, or a quotation. Empty: the fields below say which."""
    quote: str = ""
    """Words of the message."""
    message_ids: tuple[str, ...] = ()
    """Messages that are known to be evidence; with a quotation each of them holds it."""

    def entry(self) -> str | dict[str, Any]:
        """As it stands in a questions file."""
        if self.text:
            return self.text
        quote = {"quote": self.quote} if self.quote else {}
        return quote | ({"message_ids": list(self.message_ids)} if self.message_ids else {})


@dataclass(frozen=True, slots=True)
class Question:
    """A question about recorded sessions."""

    question_id: str
    question: str
    evidence: tuple[Evidence, ...]
    """Empty: nothing answers the question."""
    asked_at: datetime | None = None
    """None = when the last message of its workspace has been said."""
    category: str = "all"
    answer: str = ""
    workspace: str | None = None
    """None = where its evidence lies."""
    generated: str | None = None
    """The way of making that made it; None = a person asked."""
    source: str | None = None
    """The file that holds its evidence, by the end of its path; None = any."""
    conversations: tuple[str, ...] = ()
    """Those that hold its evidence; () = any."""
    line: int = field(default=0, compare=False)
    """Where it stands in its file, from 1; of Parquet the row."""

    @property
    def is_unanswerable(self) -> bool:
        return not self.evidence

    def record(self) -> dict[str, Any]:
        """As it stands in a questions file: the keys that say something."""
        return dict(self._said())

    def _said(self) -> Iterator[tuple[str, Any]]:
        yield "question_id", self.question_id
        yield "question", self.question
        yield "evidence", [one.entry() for one in self.evidence]
        if self.is_unanswerable:
            yield "unanswerable", True
        if self.asked_at is not None:
            yield "asked_at", format_instant(self.asked_at)
        if self.category != "all":
            yield "category", self.category
        others: Mapping[str, Any] = {
            "answer": self.answer,
            "workspace": self.workspace,
            "generated": self.generated,
            "source": self.source,
            "conversation": list(self.conversations),
        }
        yield from ((key, value) for key, value in others.items() if value)
