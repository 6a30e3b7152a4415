"""Summaries stand in contexts alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from lcm.records.conversation import Message
from lcm.records.document import Document
from lcm.records.summary import Summary


@dataclass(frozen=True, slots=True)
class NoSummaryDocuments:
    """No summary is found by ranking."""

    is_off = True

    def document(self, summary: Summary, messages: Sequence[Message], scope: str) -> Document:
        raise ValueError(f"summaries are no documents, so {summary.summary_id!r} is none")

    def ended(self, summary: Summary, documents: pl.DataFrame) -> list[str]:
        return []
