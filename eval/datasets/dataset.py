"""What a dataset is: recorded transcripts, queries about them, and judgements."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import polars as pl

from eval.datasets.card import Card
from lcm.records import Query, Transcript

QRELS_SCHEMA: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "message_id": pl.String(),
    "relevance": pl.Int64(),
}


@dataclass(frozen=True, slots=True)
class Dataset:
    """Transcripts, queries and qrels, with what is needed to tell two datasets apart.

    Ids are opaque: nothing in them tells which message is relevant. Queries of one workspace are asked of all its
    transcripts; query ids are unique in the dataset, message ids in their workspace.
    """

    name: str
    protocol: str
    """Which queries count and what evidence they have, in words: part of what a number means."""
    digest: str
    """sha256 over the files and the protocol."""
    transcripts: tuple[Transcript, ...]
    queries: tuple[Query, ...]
    qrels: pl.DataFrame
    """Columns query_id, message_id, relevance (> 0): the judged unit is the message."""
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Sets of categories that are reported together, besides each category and all."""
    notes: tuple[str, ...] = ()
    """What the loader left out or repaired, counted."""

    def __post_init__(self) -> None:
        unknown = set(self.qrels["query_id"]) - {query.query_id for query in self.queries}
        if unknown:
            raise ValueError(f"qrels judge a query that does not exist: {sorted(unknown)[0]!r}")


class DatasetLoader(Protocol):
    """A `dataset` choice. Laws: loading twice gives equal datasets; a file that is not the pinned one is refused."""

    @property
    def card(self) -> Card: ...

    def load(self) -> Dataset: ...


def opaque_id(*names: str) -> str:
    """An id that says nothing about what it names: 16 hex digits of the names' sha256."""
    return hashlib.sha256("\x00".join(names).encode("utf-8", "surrogatepass")).hexdigest()[:16]
