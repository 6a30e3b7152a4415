"""Every contract, with its laws. A component satisfies one by shape; nothing inherits from here.

Contracts take batches: one is a batch of one. Time (`now`, `asked_at`) and randomness arrive as arguments.
Conformance tests run each law over every YAML choice of the group. Expansion, Decay, Admission, Summarizer, Compaction
and Assembly are contracts without a choice yet.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.records import (
    Candidate,
    Context,
    Decision,
    Event,
    Message,
    SummaryRequest,
    SummaryResult,
)
from lcm.transcript.recorded_file import RecordedFile

Vectors = npt.NDArray[np.float32]
"""Shape (n, dim), float32, rows of unit length."""

TextKind = Literal["query", "document"]


class Recorded(NamedTuple):
    """What a reader gives: one message or event, and the conversation that it belongs to."""

    conversation_id: str
    item: Message | Event
    title: str | None = None
    """The conversation's, where it is known by now."""


class TranscriptReader(Protocol):
    """A session format.

    Laws: every record of the file is a message, an event, or put aside by `file.record` with its line and the reason;
    no file raises anything else. `rebuild_record` of a message, and an event's `native`, are exactly what was recorded;
    order, instants and tool calls are kept. Reading twice gives the same. Of what grows with a file only digests
    of ids are held, and what names its conversations.
    """

    @property
    def name(self) -> str:
        """What `format` calls it."""
        ...

    def detects(self, file: RecordedFile) -> bool:
        """Say whether the file looks like this format, by `file.first`."""
        ...

    def read(self, file: RecordedFile) -> Iterator[Recorded]:
        """Give the messages and events of every conversation, in the order of the file.

        A message carries its recorded id, or the empty text where there is none; an event's place is filled in by
        `read_pieces`.
        """
        ...


class TokenEstimator(Protocol):
    """Laws: never negative; 0 for the empty text; deterministic."""

    def count(self, texts: Sequence[str]) -> list[int]: ...


class Embedder(Protocol):
    """Text to unit vectors.

    Laws: rows have unit length; the same text gives the same row bit for bit, whatever stands beside it, in
    whichever process; `name` changes whenever the rows could. Constructing one opens no model.
    """

    @property
    def name(self) -> str:
        """Identifies weights and settings: the key of the embedding cache."""
        ...

    @property
    def dim(self) -> int: ...

    def windows(self, texts: Sequence[str]) -> list[list[str]]:
        """Cut each text into overlapping pieces that the model reads whole; a short text is its own only piece."""
        ...

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        """Embed texts of at most one window each; what lies beyond the window is not read."""
        ...


class VectorIndex(Protocol):
    """Vectors to neighbours.

    An id may be added with several vectors (the windows of one text): its cosine is that of its best one.
    Laws: raw cosine, descending, ties in the order of adding; ids never repeat in one answer; a removed or
    disallowed id is never returned; k beyond the size gives all. `exact` is the oracle of the others.
    """

    def add(self, ids: Sequence[str], vectors: Vectors) -> None: ...

    def remove(self, ids: Sequence[str]) -> None: ...

    def search(
        self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None
    ) -> list[tuple[list[str], list[float]]]:
        """For each row of `vectors`, at most k ids with their cosines; `allowed` None means every id."""
        ...

    def save(self, path: Path) -> None:
        """Write tmp, fsync, rename: the file is whole or absent."""
        ...

    def load(self, path: Path) -> None:
        """Replace the content by the file's.

        Raises:
            StoreError: if the file is missing, torn, or of other settings; the caller then rebuilds.
        """
        ...

    def __len__(self) -> int: ...


class TextIndex(Protocol):
    """Words to raw BM25, higher is better.

    An id is added once; to change its text remove it first.
    Laws: as for VectorIndex; a document sharing no word with the query is not returned; scores depend only on the
    documents now in the index.
    """

    def add(self, ids: Sequence[str], texts: Sequence[str]) -> None: ...

    def remove(self, ids: Sequence[str]) -> None: ...

    def search(
        self, queries: Sequence[str], k: int, allowed: Sequence[str] | None = None
    ) -> list[tuple[list[str], list[float]]]: ...

    def __len__(self) -> int: ...


class VectorIndexChoice(Protocol):
    """The settings of a vector index; each workspace builds its own from them."""

    def build(self, dim: int) -> VectorIndex: ...


class TextIndexChoice(Protocol):
    """The settings of a text index; each workspace builds its own from them."""

    def build(self) -> TextIndex: ...


@dataclass(frozen=True, slots=True)
class Batch:
    """Queries of one workspace that may see the same documents, and what a source or stage may ask about those.

    A document is visible from its `created_at` on, to queries whose scopes hold its own.
    """

    queries: pl.DataFrame
    """Columns query_id, text, asked_at, conversation_id, session_id."""
    vectors: Vectors
    """Row i embeds query i; of shape (n, 0) where the source needs none."""
    documents: pl.DataFrame
    """The visible documents, oldest first; columns as `lcm.store` names them."""
    allowed: Sequence[str] | None
    """The ids of `documents` as a filter for the indexes; None where the indexes hold nothing else."""
    vector_index: VectorIndex
    text_index: TextIndex
    document_vectors: Callable[[Sequence[str]], Vectors]
    """Ids to one unit vector each: the normalised mean of its windows."""


class Source(Protocol):
    """Where candidate rows are born.

    Returns columns query_id, asked_at, document_id, cosine, bm25 (raw; null where that branch did not return the row),
    dense_rank, lexical_rank (1-based; null likewise), score (null before fusion).
    Laws: only visible documents; one row a (query, document); rows of a query in the order of first appearance.
    """

    @property
    def needs_vectors(self) -> bool: ...

    def candidates(self, batch: Batch) -> pl.DataFrame: ...


class Expansion(Protocol):
    """The only step that may add rows.

    Laws: only visible documents; every row that came in stays; one row a (query, document).
    """

    def expand(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame: ...


@runtime_checkable
class Stage(Protocol):
    """A frame in, a frame out.

    Laws: never adds a row; keeps the type of every column; deterministic; leaves its argument alone; the rows of
    one query come out the same whichever other queries share the frame.
    """

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame: ...


class Decay(Protocol):
    """Age and use to a multiplier.

    Laws: in [0, 1]; never rises with age.
    """

    def multiplier(self) -> pl.Expr:
        """An expression over the document's columns and `asked_at`."""
        ...


class Extraction(Protocol):
    """Messages to candidate documents.

    Laws: every candidate names its source messages; equal messages give equal candidates.
    """

    def extract(self, messages: Sequence[Message]) -> list[Candidate]: ...


class Admission(Protocol):
    """Which candidates become documents.

    Laws: exactly one decision a candidate, in order; nothing vanishes without its audit row.
    """

    def decide(
        self,
        candidates: Sequence[Candidate],
        neighbours: pl.DataFrame,
        messages: Sequence[Message],
        now: datetime,
    ) -> list[Decision]: ...


class Summarizer(Protocol):
    """Laws: confidence in [0, 1]; a batch of one equals that row of a batch of n."""

    def summarize(self, requests: Sequence[SummaryRequest]) -> list[SummaryResult]: ...


class Compaction(Protocol):
    """Plans what to fold; the store applies it.

    Laws: planning changes nothing; raw messages never change; every message stays reachable; progress or stop.
    """

    def plan(self, context: pl.DataFrame, budget_tokens: int, now: datetime) -> list[SummaryRequest]: ...


class Assembly(Protocol):
    """Packs a context.

    Laws: the fresh tail is always in; the rest is never over budget; hard authored text is never cut.
    """

    def assemble(self, conversation: pl.DataFrame, ranked: pl.DataFrame, budget_tokens: int) -> Context: ...
