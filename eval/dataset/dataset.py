"""What a dataset is: recorded transcripts, queries about them, and judgements."""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

import polars as pl

from eval.dataset.card import Card
from lcm.records.conversation import Message, Part, Role, Transcript
from lcm.records.query import Query
from lcm.retrieval.frames import KeptBeside

_TEXT, _WHOLE = pl.String(), pl.Int64()
QRELS_SCHEMA: dict[str, pl.DataType] = {"query_id": _TEXT, "message_id": _TEXT, "relevance": _WHOLE}
SESSION_QRELS_SCHEMA: dict[str, pl.DataType] = {"query_id": _TEXT, "session_id": _TEXT, "relevance": _WHOLE}
QUOTATIONS_SCHEMA: dict[str, pl.DataType] = {
    "query_id": _TEXT,
    "evidence": _WHOLE,
    "message_id": _TEXT,
    "quotation": _TEXT,
}
REFERENCES_SCHEMA: dict[str, pl.DataType] = {"conversation_id": _TEXT, "query_id": _TEXT, "text": _TEXT}
ANSWERS_SCHEMA: dict[str, pl.DataType] = {"query_id": _TEXT, "text": _TEXT}
OPTIONS_SCHEMA: dict[str, pl.DataType] = {
    "query_id": _TEXT,
    "option": _TEXT,
    "text": _TEXT,
    "is_correct": pl.Boolean(),
}
_FRAMES = ("qrels", "session_qrels", "repaired_qrels", "quotations", "references", "options", "answers")


def _empty(schema: Mapping[str, pl.DataType]) -> Callable[[], pl.DataFrame]:
    return lambda: pl.DataFrame(schema=dict(schema))


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the queries and conversations of a dataset come from that was laid into other haystacks."""

    settings: Mapping[str, str | int]
    """How it was laid out: haystack, distractors, seed."""
    workspace_of_query: Mapping[str, str]
    """Query id -> the workspace in which it was asked before."""
    conversations: Mapping[str, Sequence[str]]
    """Such a workspace -> the ids of its own conversations."""
    messages_a_query: int
    """How many messages stood when a query was asked: the mean over queries."""
    told: Sequence[str]
    """What a reader of the numbers must know of it."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
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
    """Columns query_id, message_id, relevance: the judged unit is the message. Relevance 0 was judged and is not
    relevant; where no row has it, nobody says which of the other messages were looked at."""
    session_qrels: pl.DataFrame = field(default_factory=_empty(SESSION_QRELS_SCHEMA))
    """Columns query_id, session_id, relevance (> 0): evidence of which no more than the session is known; what
    `qrels` says of a session through its messages is not repeated here."""
    repaired_qrels: pl.DataFrame | None = None
    """`qrels` again, by evidence that was corrected: retrieval is measured by both; None: by `qrels` alone."""
    quotations: pl.DataFrame = field(default_factory=_empty(QUOTATIONS_SCHEMA))
    """Columns query_id, evidence, message_id, quotation: the words of a judged message that answer the query. Rows of
    one query and number (`evidence`) are one piece of evidence, which each of these messages holds."""
    references: pl.DataFrame = field(default_factory=_empty(REFERENCES_SCHEMA))
    """Columns conversation_id, query_id, text: reference summaries; query_id is null for one of the whole
    conversation, else it names the query that the summary answers."""
    options: pl.DataFrame = field(default_factory=_empty(OPTIONS_SCHEMA))
    """Columns query_id, option, text, is_correct: the answers that a multiple-choice query offers."""
    answers: pl.DataFrame = field(default_factory=_empty(ANSWERS_SCHEMA))
    """Columns query_id, text: the words that answer a query; each of several is right by itself."""
    unanswerable: frozenset[str] = frozenset()
    """Ids of queries that nothing in the transcripts answers: it is right to say so."""
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Sets of categories that are reported together, besides each category and all."""
    notes: tuple[str, ...] = ()
    """What the loader left out or repaired, counted."""
    generated: str | None = None
    """How its questions were generated, `known_item, successor`; None: people asked them."""
    generated_by_query: Mapping[str, str] = field(default_factory=dict)
    """Query id -> how that question was generated, where each says it of itself; people asked the missing ones."""
    layout: Layout | None = None
    """Where everything comes from, if it was laid into other haystacks than the loader's; None: it was not."""

    def __post_init__(self) -> None:
        known = {query.query_id for query in self.queries}
        for name in _FRAMES:
            frame = getattr(self, name)
            unknown = set() if frame is None else set(frame["query_id"].drop_nulls()) - known
            if unknown:
                raise ValueError(f"{name}: there is no query {sorted(unknown)[0]!r}")
        if not self.unanswerable <= known:
            raise ValueError(f"unanswerable: there is no query {min(self.unanswerable - known)!r}")

    @property
    def workspaces(self) -> list[str]:
        """Their ids, in the order of the transcripts."""
        return list(dict.fromkeys(transcript.workspace_id for transcript in self.transcripts))

    def identity(self) -> dict[str, str]:
        """What a summary tells of it: name, protocol, digest, and how its questions were generated if they were."""
        told = {"name": self.name, "protocol": self.protocol, "digest": self.digest}
        return told if self.generated is None else {**told, "generated": self.generated}

    def evidence(self) -> Mapping[str, list[str]]:
        """Query id -> ids of its relevant messages, in order; a query without any is missing."""
        return _evidence_of(self.qrels)

    def reference_answers(self) -> dict[str, list[str]]:
        """Query id -> the answers that are right, in order; a query without any is missing."""
        return dict(self.answers.group_by("query_id", maintain_order=True).agg("text").iter_rows())

    def origin(self, query: Query) -> str:
        """The workspace that a query comes from, be it pooled with others now: queries of one are drawn together."""
        return query.workspace_id if self.layout is None else self.layout.workspace_of_query[query.query_id]

    def part(self, workspaces: Collection[str]) -> "Dataset":
        """What lies in some workspaces; the digest stays that of the whole."""
        transcripts = tuple(one for one in self.transcripts if one.workspace_id in workspaces)
        told = [transcript.conversation_id for transcript in transcripts]
        asked = self.asking({query.query_id for query in self.queries if query.workspace_id in workspaces})
        references = self.references.filter(pl.col("conversation_id").is_in(told))
        return replace(asked, transcripts=transcripts, references=references)

    def asking(self, query_ids: Collection[str]) -> "Dataset":
        """The same transcripts, of which only some queries are asked; the digest stays that of the whole."""
        queries = tuple(query for query in self.queries if query.query_id in query_ids)
        asked = [query.query_id for query in queries]
        is_asked = pl.col("query_id").is_in(asked)
        frames: dict[str, Any] = {
            name: frame.filter(is_asked) for name in _FRAMES if (frame := getattr(self, name)) is not None
        }
        frames["references"] = self.references.filter(pl.col("query_id").is_null() | is_asked)
        return replace(self, queries=queries, unanswerable=self.unanswerable.intersection(asked), **frames)


@dataclass(slots=True)
class Draft:
    """A dataset in the making, to which a loader adds what it reads; the rows are those of the frames of `Dataset`."""

    transcripts: list[Transcript] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    qrels: list[tuple[str, str, int]] = field(default_factory=list)
    session_qrels: list[tuple[str, str, int]] = field(default_factory=list)
    quotations: list[tuple[str, int, str, str]] = field(default_factory=list)
    references: list[tuple[str, str | None, str]] = field(default_factory=list)
    answers: list[tuple[str, str]] = field(default_factory=list)
    options: list[tuple[str, str, str, bool]] = field(default_factory=list)
    unanswerable: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    """The words of a note -> what they count; a note of none is not told."""

    def judge(self, query_id: str, message_ids: Iterable[str]) -> None:
        """Add messages that are relevant to a query."""
        self.qrels += [(query_id, message_id, 1) for message_id in message_ids]

    def dataset(self, name: str, protocol: str, digest: str, notes: Sequence[str] = (), **told: Any) -> Dataset:
        """The dataset of what was added: its notes are these and then those of the counts; `told` are other fields."""
        return Dataset(
            name=name,
            protocol=protocol,
            digest=digest,
            transcripts=tuple(self.transcripts),
            queries=tuple(self.queries),
            qrels=frame_of(self.qrels, QRELS_SCHEMA),
            session_qrels=frame_of(self.session_qrels, SESSION_QRELS_SCHEMA),
            quotations=frame_of(self.quotations, QUOTATIONS_SCHEMA),
            references=frame_of(self.references, REFERENCES_SCHEMA),
            answers=frame_of(self.answers, ANSWERS_SCHEMA),
            options=frame_of(self.options, OPTIONS_SCHEMA),
            unanswerable=frozenset(self.unanswerable),
            notes=(*notes, *(f"{count} {words}" for words, count in self.counts.items() if count)),
            **told,
        )


class DatasetLoader(Protocol):
    """A `dataset` choice. Laws: loading twice gives equal datasets; a file that is of no known release is refused, or
    told in the notes."""

    @property
    def card(self) -> Card: ...

    def load(self) -> Dataset: ...


def generated_label(identity: Mapping[str, str]) -> str:
    """What stands beside every number of a dataset whose questions nobody asked; empty where people did."""
    return f"generated questions: {identity['generated']}" if "generated" in identity else ""


def opaque_id(*names: str) -> str:
    """An id that says nothing about what it names: 16 hex digits of the names' sha256."""
    return hashlib.sha256("\x00".join(names).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def frame_of(rows: Sequence[Sequence[object]], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Rows as a frame, of which none may be there."""
    return pl.DataFrame(rows, schema=dict(schema), orient="row")


def text_message(
    message_id: str,
    session_id: str,
    content: str,
    native: Mapping[str, Any],
    *,
    role: Role = "user",
    text: str | None = None,
    created_at: datetime | None = None,
    author: str | None = None,
) -> Message:
    """A message that has words and nothing else, its record, and its words as recorded where `content` is others."""
    return Message(
        message_id=message_id,
        role=role,
        content=content,
        session_id=session_id,
        created_at=created_at,
        author=author,
        parts=(Part("text", text=content if text is None else text),),
        envelope={"native": native, "slots": {}},
    )


def one_session(dataset: str, name: str, said: Iterable[tuple[str | None, str, str, Mapping[str, Any]]]) -> Transcript:
    """A workspace of one session, of which nobody says when it was.

    Args:
        said: of each message the author, the words, the words as recorded and the record.
    """
    session_id = opaque_id(dataset, name, "session")
    messages = tuple(
        text_message(opaque_id(dataset, name, str(place)), session_id, words, native, text=recorded, author=author)
        for place, (author, words, recorded, native) in enumerate(said)
    )
    return Transcript(opaque_id(dataset, name), messages, workspace_id=name)


def _by_query(qrels: pl.DataFrame) -> dict[str, list[str]]:
    relevant = qrels.filter(pl.col("relevance") > 0)
    return dict(relevant.group_by("query_id", maintain_order=True).agg("message_id").iter_rows())


_evidence_of = KeptBeside[pl.DataFrame, dict[str, list[str]]](_by_query, 16)
"""Once for all points of a sweep."""
