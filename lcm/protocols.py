"""Every contract, with its laws. A component satisfies one by shape; nothing inherits from here.

Contracts take batches: one is a batch of one. Time (`now`, `asked_at`) and randomness arrive as arguments, and so does
`incidents`: whoever falls back counts there what failed, by name and times, and logs a warning; a ranking's steps find
it in their batch. Components hold no counters, so memories of one system never mix theirs.
Conformance tests run each law over every YAML choice of the group.
"""

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.errors import LcmError
from lcm.records import (
    Action,
    AuthoredNode,
    Candidate,
    CompactionReport,
    Context,
    ContextEntry,
    Document,
    Message,
    Recalled,
    Shard,
    Summary,
    SummaryRequest,
    SummaryResult,
)

Vectors = npt.NDArray[np.float32]
"""Shape (n, dim), float32, rows of unit length."""

TextKind = Literal["query", "document"]


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

    def vectors_of(self, ids: Sequence[str]) -> Vectors:
        """One unit vector an id: its own, or the normalised mean of several; row i belongs to ids[i].

        Raises:
            ValueError: if an id is not in the index.
        """
        ...

    def load(self, path: Path) -> None:
        """Replace the content by the file's.

        Raises:
            StoreError: if the file is missing, torn, or of other settings; the caller then rebuilds.
        """
        ...

    def __len__(self) -> int: ...


@runtime_checkable
class Tiered(Protocol):
    """A vector index of several widths, each answer from one of them."""

    def search_tiers(
        self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None
    ) -> list[tuple[list[str], list[float], int]]:
        """As `search`, and the width that answered each row."""
        ...


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

    def build(self, dim: int, *, incidents: Counter[str]) -> VectorIndex:
        """An empty index; what it survives, then and later, is counted in `incidents`."""
        ...


class TextIndexChoice(Protocol):
    """The settings of a text index; each workspace builds its own from them."""

    def build(self) -> TextIndex: ...


@dataclass(frozen=True, slots=True)
class Batch:
    """Queries of one workspace that may see the same documents, and what a source or stage may ask about those.

    A document is visible from its `valid_from` until its `invalidated_at`, to queries whose scopes hold its own.
    """

    queries: pl.DataFrame
    """Columns query_id, text, asked_at, conversation_id, session_id, caller."""
    vectors: Vectors
    """Row i embeds query i; of shape (n, 0) where the source needs none, or where `embedding_error` says why not."""
    documents: pl.DataFrame
    """The visible documents, oldest first; columns as `lcm.store` names them."""
    allowed: Sequence[str] | None
    """The ids of `documents` as a filter for the indexes; None where the indexes hold nothing else."""
    vector_index: VectorIndex
    text_index: TextIndex
    document_vectors: Callable[[Sequence[str]], Vectors]
    """Ids to one unit vector each: the normalised mean of its windows."""
    embedding_error: LcmError | None = None
    """Why the queries have no vectors."""
    scopes: tuple[str, ...] | None = None
    """Which scopes the queries may read; None = all."""
    is_in_session: bool = False
    """The asker sees turns of its own session, which are left out of `documents`."""
    turns: pl.DataFrame | None = None
    """What else was said and could be seen, but is not durable or stands behind a summary: for the search of lost
    turns, and of what lies beneath a summary; columns as `documents`. None = nothing."""
    incidents: Counter[str] = field(default_factory=Counter)
    """What failed and was survived: that of the workspace."""


class Source(Protocol):
    """Where candidate rows are born.

    Returns columns query_id, asked_at, document_id, cosine, bm25 (raw; null where that branch did not return the row),
    dense_rank, lexical_rank (1-based; null likewise), score (null before fusion).
    Laws: only visible documents; one row a (query, document); rows of a query in the order of first appearance.
    """

    @property
    def needs_vectors(self) -> bool: ...

    def candidates(self, batch: Batch) -> pl.DataFrame: ...


@runtime_checkable
class Expansion(Protocol):
    """The only step that may add rows; it stands among the stages of a ranking.

    Laws: only visible documents, or turns of the batch; every row that came in stays; one row a (query, document);
    rows that it adds are described like the others.
    """

    def expand(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame: ...


@runtime_checkable
class Stage(Protocol):
    """A frame in, a frame out.

    Laws: never adds a row; keeps the type of every column; deterministic; leaves its argument alone; the rows of
    one query come out the same whichever other queries share the frame.
    """

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame: ...


class Ranker(Protocol):
    """What answers queries: one `Ranking`, or several and a rule that chooses.

    Laws: documents of a query differ; rank counts from 1 without gaps; queries keep their order.
    """

    @property
    def needs_vectors(self) -> bool: ...

    def rank(self, batch: Batch) -> pl.DataFrame:
        """Rows of `RANKED_SCHEMA`; best first within each query."""
        ...

    def trace(self, batch: Batch) -> pl.DataFrame:
        """Every step's outcome: rows step, stage, query_id, document_id, rank, score."""
        ...


class Decay(Protocol):
    """Age and use to a multiplier.

    Laws: in [0, 1]; never rises with age; a value that is no number is taken as its column's default.
    """

    def multiplier(self) -> pl.Expr:
        """An expression over the document's columns and `asked_at`."""
        ...

    def strength(self) -> pl.Expr:
        """How alive a document is, over the same columns: what decay tiers are judged by."""
        ...


class Reinforcement(Protocol):
    """What use does to the documents that a recall returned.

    Laws: pure; only given documents change; an access count never falls; a decay tier moves one step at most.
    """

    @property
    def recalled(self) -> int:
        """How many of the first documents of an answer count as used; 0: nothing ever changes."""
        ...

    def after_recall(self, used_ids: Sequence[str], documents: pl.DataFrame, now: datetime) -> pl.DataFrame:
        """The new use of the documents that change.

        Args:
            used_ids: what the recall returned.
            documents: the visible documents, oldest first; columns as `lcm.store` names them.
            now: when it was asked.
        Returns:
            Columns document_id, access_count, last_accessed_at, decay_tier.
        """
        ...


class Annotation(Protocol):
    """Category, importance, temporal type and expiry of candidates that come without.

    Laws: one candidate out for each in, in order; text and sources stay as they are; equal candidates give equal ones.
    """

    def annotate(self, candidates: Sequence[Candidate], said_at: Sequence[datetime]) -> list[Candidate]:
        """Rate candidates; `said_at` is when the last source message of each was said."""
        ...


class Extraction(Protocol):
    """Messages to candidate documents.

    Laws: every candidate names its source messages, in order; equal messages give equal candidates.
    """

    def extract(self, messages: Sequence[Message], known: int = 0, *, incidents: Counter[str]) -> list[Candidate]:
        """Make the candidates of what is new in a conversation.

        Args:
            messages: the conversation from its start, every `created_at` filled in and none before an earlier one.
            known: how many of the first messages were extracted before; each candidate names a newer one.
        """
        ...


@runtime_checkable
class CallsServer(Protocol):
    """A component that asks a server: what it gives may differ tomorrow, so nothing made with it is kept."""

    is_online: ClassVar[bool]


Usable = Callable[[str], bool]


class LanguageModel(Protocol):
    """Laws: with recorded replies the same prompt gives the same reply, offline."""

    def reply(
        self,
        system: str,
        prompt: str,
        is_usable: Usable | None = None,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> str:
        """Ask once.

        Args:
            system: what the model is to be.
            prompt: what is asked.
            is_usable: says whether a reply is what was asked for. A recorded one that is not is asked for again.
            temperature: of this reply; None = as the model is set.
            max_tokens: of this reply; None = as the model is set.
        Raises:
            ModelError: if no reply could be had, with the reason; an AuthError if the server refuses the credentials.
        """
        ...


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stored document and how near it is."""

    document: Document
    cosine: float


class Neighbours(Protocol):
    """The documents that a writer may compare a candidate with, as they stand now: of the scopes that it can reach,
    and known at that instant."""

    def nearest(
        self, vector: Vectors, k: int, *, active_only: bool, only: Callable[[Document], bool] | None = None
    ) -> list[Neighbour]:
        """The k nearest by cosine, best first; ties oldest first.

        Args:
            vector: shape (1, dim).
            k: how many at most.
            active_only: leave out documents in whose place another stands.
            only: leave out documents of which it does not hold.
        """
        ...


@dataclass(frozen=True, slots=True)
class Assessment:
    """What admission says of one candidate."""

    is_admitted: bool
    reason: str
    score: float | None = None
    features: Mapping[str, float] = field(default_factory=dict)
    """Each in [0, 1]."""
    audit: Mapping[str, Any] = field(default_factory=dict)
    """JSON: thresholds, weights, hint, compared ids."""
    is_durable: bool = True
    """False: admitted, but found from its own session alone."""


class Admission(Protocol):
    """Whether a candidate is worth keeping.

    Laws: says something of every candidate; equal arguments give an equal assessment.
    """

    @property
    def is_off(self) -> bool:
        """Everything is admitted, and nothing is written down."""
        ...

    def assess(
        self,
        candidate: Candidate,
        vector: Vectors | None,
        neighbours: Neighbours,
        messages: Sequence[Message],
        now: datetime,
        *,
        incidents: Counter[str],
    ) -> Assessment:
        """Judge one candidate.

        Args:
            candidate: what is judged.
            vector: shape (1, dim); None where the candidate could not be embedded.
            neighbours: what is known already.
            messages: the conversation up to the candidate's last source message.
            now: when that message was said.
        """
        ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """What deduplication says of one candidate."""

    action: Action
    """One of the seven decisions."""
    reason: str
    matched: Document | None = None
    context_label: str | None = None
    audit: Mapping[str, Any] = field(default_factory=dict)


class Merged(NamedTuple):
    """One record made of two."""

    text: str
    overview: str
    content: str


class Deduplication(Protocol):
    """What a candidate is to the documents that say nearly the same.

    Laws: one judgement a candidate; a decision that needs a document names one that it was shown; twins keep the first.
    """

    @property
    def is_off(self) -> bool:
        """Every candidate becomes a document, and nothing is written down."""
        ...

    def twins(self, vectors: Vectors) -> list[int | None]:
        """For each candidate of one extraction, the earlier one whose twin it is; None = its own.

        Args:
            vectors: shape (n, dim): the candidates' texts, embedded.
        """
        ...

    def judge(
        self, candidate: Candidate, vector: Vectors | None, neighbours: Neighbours, *, incidents: Counter[str]
    ) -> Judgement: ...

    def merge(self, document: Document, candidate: Candidate) -> Merged | None:
        """Make one record of both; None where that cannot be done, and nothing must be lost."""
        ...


class Summarizer(Protocol):
    """Texts to shorter texts.

    Laws: one result a request, in order; confidence in [0, 1]; a batch of one equals that row of a batch of n; a result
    has words, or a `failure` that says why not. Constructing one opens no model.
    """

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]: ...


Work = Generator[SummaryRequest, SummaryResult, CompactionReport]
"""Compaction of one conversation: gives each request as it comes to it, and is sent the result. Works of many
conversations are driven side by side, so that their requests reach the summarizer in batches."""


class ContextWindow(Protocol):
    """One conversation as compaction sees it: its context, kept in step with the store."""

    @property
    def conversation_id(self) -> str: ...

    @property
    def entries(self) -> Sequence[ContextEntry]:
        """The context items, in order."""
        ...

    @property
    def settled(self) -> set[str]:
        """Names of what compaction tried here in vain, or told of, and need not again."""
        ...

    def messages(self, message_ids: Sequence[str]) -> list[Message]: ...

    def summaries(self, summary_ids: Sequence[str]) -> list[Summary]: ...

    def replace(self, first: int, last: int, summary: Summary, shards: Sequence[Shard] = ()) -> Summary:
        """Put a summary in the place of the entries with the ordinals first to last, in the store and here.

        Args:
            first: of the entries.
            last: of the entries.
            summary: its sources are those entries, without the shards' messages.
            shards: the messages among them that are kept word for word; in the same transaction.
        Returns:
            The summary as stored: under another id where its own was taken.
        """
        ...

    def protect(self, first: int, last: int, shards: Sequence[Shard]) -> None:
        """Take the entries first to last out of the context: all of them messages, each kept as a shard."""
        ...

    def admission_scores(self, message_ids: Sequence[str]) -> dict[str, float]:
        """What admission scored messages, by id; one without a score is left out."""
        ...

    def note(self, happened_at: datetime, event: str, detail: str) -> None:
        """Keep what happened without a summary."""
        ...


class Compaction(Protocol):
    """Folds what is old in a conversation into summaries.

    Laws: raw messages never change; every message stays reachable; the fresh tail is untouched; every replacement is
    one transaction; progress or stop: a run ends, and running again at once changes nothing.
    """

    @property
    def is_off(self) -> bool:
        """No context is ever changed."""
        ...

    @property
    def summarizer(self) -> Summarizer: ...

    @property
    def reads_admission(self) -> bool:
        """Whether admission must have seen a turn before it is compacted."""
        ...

    def after_turn(
        self, window: ContextWindow, now: datetime, live_tokens: int = 0, *, incidents: Counter[str]
    ) -> Work:
        """Compact a little, if a trigger says so: what runs after each turn of a live session.

        Args:
            window: the conversation, with the turn in it.
            now: when the turn ended: dates the summaries.
            live_tokens: what the host counts, where that is more than is stored.
        """
        ...

    def compact(
        self,
        window: ContextWindow,
        now: datetime,
        *,
        incidents: Counter[str],
        is_forced: bool = False,
        target_tokens: int | None = None,
    ) -> Work:
        """Compact all that can be, if a trigger says so or `is_forced`; until under `target_tokens`, where given."""
        ...


class Ask(NamedTuple):
    """For what a context is assembled."""

    budget_tokens: int
    prompt: str = ""
    """What the context should help with; empty: nothing is known of it."""
    recalled: Sequence[Recalled] = ()
    """What ranking found for the prompt, best first."""
    asked_at: datetime | None = None
    """When; None = as of the last item of the conversation."""


class Signals(NamedTuple):
    """How an answer looks failed: it came from the widest index tier, its best is weak, it is nothing but vague
    summaries; or the session is new and says nothing of it."""

    is_from_widest: bool
    is_weak: bool
    is_vague: bool
    is_elsewhere: bool

    @property
    def has_failed(self) -> bool:
        """The raw words of the session are looked through again."""
        return (self.is_from_widest and self.is_weak) or self.is_vague


class Recovery(Protocol):
    """What is fetched beside a failed answer, and how it is ranked.

    Laws: nothing is fetched for an answer that has not failed, unless it was asked from elsewhere; what a ranking has
    fetched for a question that names no session is shown, and a reserve kept for it, in a context of any conversation;
    the order is a permutation of some of what was given.
    """

    @property
    def is_off(self) -> bool:
        """Nothing is ever fetched."""
        ...

    def signals(self, answer: Sequence[Recalled], has_session: bool) -> Signals:
        """Judge an answer without what was recovered; `has_session`: turns of the asker's own session are at hand."""
        ...

    def reserve_tokens(self, prompt: str, signals: Signals, budget_tokens: int) -> int:
        """How many tokens of the budget are kept for what was recovered."""
        ...

    def order(
        self, prompt: str, recovered: Sequence[Recalled], tokens: Sequence[int], reserve_tokens: int, now: datetime
    ) -> list[int]:
        """The places of what to show, first first; each is shown that still fits into the reserve.

        Args:
            prompt: what was asked.
            recovered: raw words, by cosine.
            tokens: what each costs.
            reserve_tokens: what there is for them.
            now: when it was asked.
        """
        ...


class Assembly(Protocol):
    """Packs contexts.

    Laws: the fresh tail is always in; the rest is never over budget; hard authored text is never cut; a tool's result
    stands behind a message that calls it; one context an ask, each as if asked alone.
    """

    @property
    def shows_documents(self) -> bool:
        """Whether contexts hold what was recalled and authored, beside the conversation."""
        ...

    @property
    def reads_prompts(self) -> bool:
        """Whether a context depends on the prompt of its ask."""
        ...

    def rendered(self, message: Message) -> str:
        """The text whose tokens a message costs in a context."""
        ...

    def assemble(
        self, items: Sequence[Message | Summary], asks: Sequence[Ask], authored: Sequence[AuthoredNode] = ()
    ) -> list[Context]:
        """Choose what fits from the context items of one conversation, in order, what each ask recalled, and what was
        authored, in authored order.

        Raises:
            LcmError: if what is authored and must be shown takes more than may be asked for.
        """
        ...


@runtime_checkable
class ShowsTail(Protocol):
    """An assembly that can tell what it shows whatever is recalled, so that no search need find it."""

    def tail_message_ids(
        self,
        items: Sequence[Message | Summary],
        budget_tokens: int,
        authored: Sequence[AuthoredNode] = (),
        prompt: str = "",
    ) -> list[str]:
        """The messages that a context shows word for word."""
        ...


class Authored(Protocol):
    """Documents that somebody wrote for the agent: what holds always, as far as it fits, or where it is found.

    Laws: node ids are unique; nodes come in authored order; equal files give equal nodes.
    """

    def nodes(self, *, incidents: Counter[str]) -> list[AuthoredNode]:
        """Read them.

        Raises:
            LcmError: if a file cannot be read.
        """
        ...


class SummaryDocuments(Protocol):
    """Whether summaries can be found, and whether what they cover still can."""

    @property
    def is_off(self) -> bool:
        """Summaries are no documents."""
        ...

    def document(self, summary: Summary, messages: Sequence[Message], scope: str) -> Document:
        """A summary as a document; `messages` are all that lie beneath it, in order."""
        ...

    def ended(self, summary: Summary, documents: pl.DataFrame) -> list[str]:
        """The ids of the documents in whose place this one stands, of those that stand for messages beneath it."""
        ...


class Guidance(Protocol):
    """Which messages are rules that must outlive compaction word for word.

    Laws: one answer a message; a model can only add protection; equal messages give equal answers.
    """

    def shards(
        self, messages: Sequence[Message], conversation_id: str, now: datetime, *, incidents: Counter[str]
    ) -> list[Shard | None]:
        """What is kept of each message; None where nothing must be."""
        ...
