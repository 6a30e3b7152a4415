"""Whether ranking finds summaries, or they stand in contexts alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from lcm.checks import check_choice
from lcm.protocols.contract import Contract
from lcm.records.conversation import Message
from lcm.records.document import Document
from lcm.records.summary import Summary

Covered = Literal["searchable", "hidden"]


@dataclass(frozen=True, slots=True)
class SearchableSummaries:
    """Every summary becomes a document that stands for all messages beneath it, from its making on.

    What its maker's confidence lacks is its `decay_rate`: ranking may take that off its score.

    Source: libravdb memory 1.3.17, whose summaries lie in a collection that its assembly does not search.
    """

    covered: Covered = "searchable"
    """What becomes of the documents of the messages beneath: found as before, or hidden behind the summary."""
    is_durable: bool = True
    """False: a summary is found from its own session alone."""

    def __post_init__(self) -> None:
        check_choice(self, covered=Covered)

    def document(self, summary: Summary, messages: Sequence[Message], scope: str) -> Document:
        """A summary as a document; `messages` are all that lie beneath it, in order."""
        confidence = min(max(summary.confidence, 0.0), 1.0)
        return Document(
            document_id=summary.summary_id,
            text=summary.content,
            source_message_ids=tuple(dict.fromkeys(message.message_id for message in messages)),
            conversation_id=summary.conversation_id,
            session_id=messages[-1].session_id,
            created_at=summary.latest_at or summary.created_at,
            valid_from=summary.created_at,
            kind="summary",
            scope=scope,
            confidence=confidence,
            tokens=summary.token_count,
            metadata={"method": summary.method, "depth": summary.depth},
            role=messages[0].role,
            is_durable=self.is_durable,
            decay_rate=1 - confidence,
        )

    def ended(self, summary: Summary, documents: pl.DataFrame) -> list[str]:
        """The ids of the documents that say nothing but what messages beneath the summary said."""
        if self.covered == "searchable" or summary.kind != "leaf":
            return []
        beyond = pl.col("source_message_ids").list.set_difference(list(summary.source_ids)).list.len()
        return documents.filter(
            pl.col("kind").is_in(["summary", "guidance"]).not_(),
            pl.col("invalidated_at").is_null(),
            pl.col("source_message_ids").list.len() > 0,
            beyond == 0,
        )["document_id"].to_list()


@dataclass(frozen=True, slots=True)
class NoSummaryDocuments:
    """No summary is found by ranking."""

    contract = Contract(is_off=True)

    def document(self, summary: Summary, messages: Sequence[Message], scope: str) -> Document:
        raise ValueError(f"summaries are no documents, so {summary.summary_id!r} is none")

    def ended(self, summary: Summary, documents: pl.DataFrame) -> list[str]:
        return []
