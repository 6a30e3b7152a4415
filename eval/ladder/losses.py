"""Where a system loses judged messages: each in exactly one place, so that the places sum to what was missed.

The places of a ranking are

- `found`: a document that stands for it is among the first k;
- `late`: such a document is ranked, and was among the first k behind no step;
- the name of a stage: the one that put it behind the first k, or dropped it where it never was among them;
- `source`: such documents may be seen, and the source finds none of them;
- one of `REASONS`: nothing that the asker may see stands for it.

A document stands for the messages that it was made of, and for those of near duplicates that are left out in its
favour. Ranks count from the first step that gives scores, before which the order of rows means nothing, and behind the
last in any case. A run is asked again for it: each checkpoint of a workspace with its queries.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

import polars as pl

from eval.cache.pools import with_cached_pools
from eval.cache.stage_cache import FrameCache
from eval.dataset.dataset import Dataset
from eval.experiment.outcome import unanswered, unjudged
from eval.experiment.workspace import WorkspaceEvaluator
from eval.external.reading import RecordedAnswers
from eval.measures.coverage import with_near_duplicates
from eval.measures.means import ALL
from lcm.memory.live_documents import readable_scopes
from lcm.memory.memory import Memory
from lcm.protocols.retrieval import Batch, BringsDocuments, Ranker
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import SOURCE

FIRST = 10
"""How many documents are read: the cutoff of recall@10."""
FOUND, LATE = "found", "late"
RANKS_SCHEMA: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "message_id": pl.String(),
    "step": pl.Int32(),
    "rank": pl.Int64(),
}
PLACES_SCHEMA = {**dict.fromkeys(("query_id", "message_id", "place"), pl.String()), "step": pl.Int32()}
"""`step` is that of the stage, or of the source; null where no step lost the message."""
_JUDGED_SCHEMA = dict.fromkeys(("workspace_id", "query_id", "category", "message_id"), pl.String())
LOSSES_SCHEMA = {**_JUDGED_SCHEMA, **PLACES_SCHEMA}
"""As `PLACES_SCHEMA`, of every judged message."""
_MESSAGE = ["query_id", "message_id"]
_QUERIES_AT_ONCE = 32
"""Whose rankings are traced together: of each the rows of all steps are held."""
_CHARACTERS = 600
"""Of a document's words that are told to viewers of traces."""
NOT_SAID, NOT_STORED, LEFT_OUT = "not said yet", "never stored", "left out"
REFUSED, KNOWN = "refused", "taken for known"
SCOPE, SESSION, SHOWN, HIDDEN = "another scope", "another session", "shown already", "not asked for"
FOLDED, REPLACED, NO_DOCUMENT = "folded", "replaced", "no document"
UNANSWERED, UNJUDGED = "unanswered", "unjudged"
REASONS = {
    NOT_SAID: "was said after the question was asked",
    SHOWN: "is shown to the asker already",
    FOLDED: "stands behind a summary",
    REPLACED: "ended when another document came to stand in its place",
    SESSION: "is not durable, and was said in another session",
    HIDDEN: "is of a category or kind that was not asked for",
    SCOPE: "lies in a scope that the asker may not read",
    REFUSED: "was refused by admission",
    KNOWN: "was taken by deduplication for what was known",
    LEFT_OUT: "is of a session that is left out",
    NOT_STORED: "was said before the question was asked, and the memory does not hold it",
    NO_DOCUMENT: "has no document: nothing was extracted from it",
    UNANSWERED: "is no miss: the external memory gave no answer to the question",
    UNJUDGED: "is no miss that is known: nothing of the answer could be aligned to messages",
}
"""Place -> what is so of a message there; where several are so of its documents, the first."""
NO_MISS = (UNANSWERED, UNJUDGED)
"""The places of what is neither found nor missed: the question has no value."""


class Said(NamedTuple):
    """What the dataset tells of a message, whatever became of it."""

    conversation_id: str
    at: datetime
    """Its own time, or the latest before it."""


class _Standing(NamedTuple):
    """A document that stands for a message, as far as it matters here."""

    document_id: str
    source_message_ids: list[str]
    scope: str
    is_durable: bool
    valid_from: datetime
    invalidated_at: datetime | None


@dataclass(frozen=True, slots=True)
class Asked:
    """Queries, the memory as it stood when they were asked, and what answered them."""

    workspace_id: str
    memory: Memory
    queries: list[Query]
    ranking: Ranker

    def traced(self) -> Iterator["Traced"]:
        """Every step of the rankings of the queries, in batches that are small enough for that to be held; what a
        ranking brings itself stands among the documents."""
        brought = [self.ranking.brought] if isinstance(self.ranking, BringsDocuments) else []
        for batch in self.memory.batches(self.queries, self.ranking):
            batch = replace(batch, documents=pl.concat([batch.documents, *brought]))
            for first in range(0, len(batch.queries), _QUERIES_AT_ONCE):
                rows = slice(first, first + _QUERIES_AT_ONCE)
                few = replace(batch, queries=batch.queries[rows], vectors=batch.vectors[rows])
                yield Traced(self, few, self.ranking.trace(few), self.ranking.plan(few))

    def untold(self) -> dict[str, str]:
        """Query -> the place of all its messages, of queries that an external memory left without a value."""
        if not isinstance(self.ranking, RecordedAnswers):
            return {}
        asked = self.ranking.asked
        return dict.fromkeys(unanswered(asked), UNANSWERED) | dict.fromkeys(unjudged(asked), UNJUDGED)


@dataclass(frozen=True, slots=True)
class Traced:
    """A batch of queries, and every step of their rankings."""

    asked: Asked
    batch: Batch
    trace: pl.DataFrame
    """Rows of `TRACE_SCHEMA`."""
    plan: pl.DataFrame
    """Rows of `PLAN_SCHEMA`."""

    @property
    def answers(self) -> pl.DataFrame:
        """The rows of the trace behind the last step of each query."""
        last = self.plan.group_by("query_id", maintain_order=True).agg(pl.col("step").max())
        return self.trace.join(last, on=["query_id", "step"], how="semi", maintain_order="left")

    def covered(self, judged: pl.DataFrame, *, only_visible: bool = False) -> pl.DataFrame:
        """query_id, document_id, message_id: which documents were made of judged messages of these queries.

        Args:
            judged: query_id, message_id and more: of these queries, maybe of others.
            only_visible: documents that the source may find; else also the turns that a later step may fetch.
        """
        known = self.batch.documents.select("document_id", message_id="source_message_ids")
        if self.batch.turns is not None and not only_visible:
            known = pl.concat([known, self.batch.turns.select("document_id", message_id="source_message_ids")])
        covers = self._own(judged).join(known.explode("message_id"), on="message_id", how="inner")
        return covers.select("query_id", "document_id", "message_id")

    def places(self, judged: pl.DataFrame, said: Mapping[str, Said], first: int = FIRST) -> pl.DataFrame:
        """The place of every judged message of these queries: rows of `PLACES_SCHEMA`.

        Args:
            judged: query_id, message_id and more: of these queries, maybe of others.
        """
        here, memory = self._own(judged), self.asked.memory
        ranks = message_ranks(self.trace, self.covered(here), self.plan)
        visible = self.covered(here, only_visible=True)
        is_seen = pl.concat([ranks.select(_MESSAGE), visible.select(_MESSAGE)])
        seen = placed(here.join(is_seen, on=_MESSAGE, how="semi", maintain_order="left"), ranks, self.plan, first)
        unseen = here.join(is_seen, on=_MESSAGE, how="anti", maintain_order="left")
        queries = {query.query_id: query for query in self.asked.queries}
        rows = [
            (query_id, message_id, place, None)
            for query_id, messages in unseen.group_by("query_id", maintain_order=True).agg("message_id").iter_rows()
            for message_id, place in why_unseen(memory, queries[query_id], messages, said).items()
        ]
        reason = pl.col("query_id").replace_strict(self.asked.untold(), default=None, return_dtype=pl.String)
        return pl.concat([seen, pl.DataFrame(rows, PLACES_SCHEMA, orient="row")]).with_columns(
            place=pl.coalesce(reason, "place"), step=pl.when(reason.is_null()).then("step").cast(pl.Int32)
        )

    def texts(self, document_ids: Iterable[str | None]) -> dict[str, str]:
        """Document id -> its words, of those that these queries may be answered with; null names none."""
        known = self.batch.documents.select("document_id", "text")
        if self.batch.turns is not None:
            known = pl.concat([known, self.batch.turns.select("document_id", "text")])
        named = [name for name in document_ids if name is not None]
        return dict(known.filter(pl.col("document_id").is_in(named)).iter_rows())

    def _own(self, judged: pl.DataFrame) -> pl.DataFrame:
        return judged.join(self.batch.queries, on="query_id", how="semi", maintain_order="left").select(_MESSAGE)


class Retrieval(NamedTuple):
    """A question, and what each step of its ranking put first, for viewers of traces; the last step's is the answer."""

    workspace_id: str
    query_id: str
    text: str
    category: str
    places: dict[str, str]
    """Judged message -> its place, as `LOSSES_SCHEMA` has it."""
    steps: list[tuple[str, list["RetrievedDocument"]]]
    """Stage, documents."""


class RetrievedDocument(NamedTuple):
    """A document among the first of a step."""

    document_id: str
    text: str
    rank: int
    score: float | None
    messages: tuple[str, ...]
    """The judged messages that it stands for, as a near duplicate of their document too; empty: none."""


def asked_again(
    evaluator: WorkspaceEvaluator, workspace: str, query_ids: Collection[str] | None = None
) -> Iterator[Asked]:
    """Replay a workspace, from the stage cache where it holds it, and yield what is asked of it.

    The memory is as it was until the next is taken. Where answers change it, every query of the workspace comes, alone.
    """
    evaluator = evaluator.bound(workspace)
    recalls = bool(evaluator.system.reinforcement.recalled)
    for checkpoint, key in evaluator.checkpoints(workspace):
        wanted = [query for query in checkpoint.queries if query_ids is None or query.query_id in query_ids]
        if not wanted and not (recalls and checkpoint.queries):
            continue
        memory, ranking = checkpoint.open(), evaluator.system.ranking
        if recalls:
            for query in checkpoint.queries:
                if query in wanted:
                    yield Asked(workspace, memory, [query], ranking)
                memory.recall([query])
        else:
            if key is not None:
                ranking = with_cached_pools(ranking, FrameCache(evaluator.cache), key)
            yield Asked(workspace, memory, wanted, ranking)


def judged_messages(dataset: Dataset) -> pl.DataFrame:
    """workspace_id, query_id, category, message_id: every message that is judged relevant, each once a query."""
    asked = {query.query_id: query for query in dataset.queries}
    rows = [
        (asked[query_id].workspace_id, query_id, asked[query_id].category or "", message_id)
        for query_id, messages in dataset.evidence().items()
        for message_id in dict.fromkeys(messages)
    ]
    return pl.DataFrame(rows, schema=_JUDGED_SCHEMA, orient="row")


def losses(
    evaluator: WorkspaceEvaluator,
    progress: Callable[[int], None],
    look: Callable[[Traced], None] = lambda _: None,
    first: int = FIRST,
) -> pl.DataFrame:
    """The place of every judged message of a dataset in the system's rankings: rows of `LOSSES_SCHEMA`."""
    judged = judged_messages(evaluator.dataset)
    parts = [pl.DataFrame(schema=PLACES_SCHEMA)]
    for workspace in judged["workspace_id"].unique(maintain_order=True):
        here, said = judged.filter(workspace_id=workspace), said_messages(evaluator.dataset, workspace)
        for asked in asked_again(evaluator, workspace, set(here["query_id"])):
            for traced in asked.traced():
                parts.append(traced.places(here, said, first))
                progress(len(traced.batch.queries))
                look(traced)
    rows = judged.join(pl.concat(parts), on=_MESSAGE, how="left", maintain_order="left")
    assert len(rows) == len(judged) and not rows["place"].null_count(), "every judged message has one place"
    return rows.select(list(LOSSES_SCHEMA))


def said_messages(dataset: Dataset, workspace: str) -> dict[str, Said]:
    """Message id -> what the dataset tells of it."""
    here = (transcript for transcript in dataset.transcripts if transcript.workspace_id == workspace)
    return {
        message.message_id: Said(one.conversation_id, at)
        for one in here
        for message, at in zip(one.messages, one.instants(), strict=True)
    }


def message_ranks(trace: pl.DataFrame, covers: pl.DataFrame, plan: pl.DataFrame) -> pl.DataFrame:
    """The best rank of a document that stands for each message, behind every step where there is one.

    Args:
        trace: rows of `TRACE_SCHEMA`.
        covers: query_id, document_id, message_id: which documents were made of which messages that matter.
        plan: rows of `PLAN_SCHEMA` for every query.
    Returns:
        Rows of `RANKS_SCHEMA`; rank is null where nothing has ordered the rows yet.
    """
    is_ordered = pl.col("score").is_not_null() | (pl.col("step") == pl.col("end"))
    ranked = trace.join(_ends(plan), on="query_id", maintain_order="left").select(
        *("query_id", "document_id", "step", "stands_for"), pl.when(is_ordered).then("rank").alias("rank")
    )
    others = with_near_duplicates(ranked.filter(pl.col("stands_for").list.len() > 0))
    standing = pl.concat([ranked.drop("stands_for"), others])
    best = standing.join(covers, on=["query_id", "document_id"], how="inner").group_by(*_MESSAGE, "step")
    return best.agg(pl.col("rank").min()).select(list(RANKS_SCHEMA)).sort(*_MESSAGE, "step")


def placed(judged: pl.DataFrame, ranks: pl.DataFrame, plan: pl.DataFrame, first: int = FIRST) -> pl.DataFrame:
    """Give every judged message its place.

    Args:
        judged: query_id, message_id: those that something stands for which may be seen.
        plan: rows of `PLAN_SCHEMA` for every query.
    Returns:
        Rows of `PLACES_SCHEMA` in the order of `judged`.
    """
    passed = ranks.join(_ends(plan), on="query_id").group_by(_MESSAGE).agg(
        pl.col("end").first(),
        ended=pl.col("rank").filter(pl.col("step") == pl.col("end")).first(),
        last=pl.col("step").max(),
        last_among_first=pl.col("step").filter(pl.col("rank") <= first).max(),
    )  # fmt: skip
    lost_at = pl.coalesce("last_among_first", pl.when(pl.col("last") < pl.col("end")).then("last")) + 1
    stages = plan.select("query_id", lost_at=pl.col("step"), stage="stage")
    found = (
        judged.join(passed, on=_MESSAGE, how="left", maintain_order="left")
        .with_columns(lost_at=lost_at)
        .join(stages, on=["query_id", "lost_at"], how="left", maintain_order="left")
    )
    place = (
        pl.when(pl.col("last").is_null())
        .then(pl.lit(SOURCE))
        .when(pl.col("ended") <= first)
        .then(pl.lit(FOUND))
        .otherwise(pl.coalesce("stage", pl.lit(LATE)))
    )
    step = pl.when(pl.col("last").is_null()).then(0).when(place != FOUND).then("lost_at").cast(pl.Int32)
    rows = found.select(*_MESSAGE, place=place, step=step)
    assert len(rows) == len(judged), "every judged message has one place"
    return rows


def _ends(plan: pl.DataFrame) -> pl.DataFrame:
    """query_id, end: the last step of each query."""
    return plan.group_by("query_id").agg(end=pl.col("step").max())


def why_unseen(memory: Memory, query: Query, message_ids: Sequence[str], said: Mapping[str, Said]) -> dict[str, str]:
    """Message id -> one of `REASONS`, of messages that no document stands for which the query may see.

    Args:
        memory: as it stood when the query was asked.
    """
    documents, superseded = memory.documents, set(memory.documents["supersedes"].drop_nulls())
    wanted = pl.lit(pl.Series([list(message_ids)])).first()
    rows = documents.filter(pl.col("source_message_ids").list.set_intersection(wanted).list.len() > 0)
    reasons: dict[str, set[str]] = {}
    for one in map(_Standing._make, rows.select(_Standing._fields).iter_rows()):
        for message_id in one.source_message_ids:
            reasons.setdefault(message_id, set()).add(_of_document(memory, query, one, superseded))
    without = [message_id for message_id in message_ids if message_id not in reasons]
    told = _of_undocumented(memory, query, without, said)
    return {
        message_id: told.get(message_id) or next(one for one in REASONS if one in reasons[message_id])
        for message_id in message_ids
    }


def _of_document(memory: Memory, query: Query, one: _Standing, superseded: set[str]) -> str:
    readable = readable_scopes(query, memory.system.scopes)
    if readable is not None and one.scope not in readable:
        return SCOPE
    if one.valid_from > query.asked_at:
        return NOT_SAID
    if one.invalidated_at is not None and one.invalidated_at <= query.asked_at:
        return REPLACED if one.document_id in superseded else FOLDED
    if set(one.source_message_ids) <= set(query.shown_message_ids):
        return SHOWN
    return HIDDEN if one.is_durable else SESSION


def _of_undocumented(
    memory: Memory, query: Query, message_ids: Sequence[str], said: Mapping[str, Said]
) -> dict[str, str]:
    """Of messages that no document at all was made of."""
    if not message_ids:
        return {}
    told = dict.fromkeys(memory.store.messages_by_id(list(message_ids)), NO_DOCUMENT)
    for action, candidate in memory.store.decisions().select("action", "candidate").iter_rows():
        judged = told.keys() & json.loads(candidate)["source_message_ids"]
        told |= dict.fromkeys(judged, REFUSED if action == "reject" else KNOWN)
    for message_id in message_ids:
        if message_id not in told:
            conversation_id, at = said[message_id]
            is_told = memory.system.session.writes(conversation_id, conversation_id)
            told[message_id] = (NOT_SAID if at > query.asked_at else NOT_STORED) if is_told else LEFT_OUT
    return told


def places_in_order(rows: pl.DataFrame) -> list[str]:
    """The places that rows of `LOSSES_SCHEMA` have: found, late, lost at a stage (the last stage first), not found by
    the source, and not to be seen."""
    steps = dict(rows.filter(pl.col("step").is_not_null()).group_by("place").agg(pl.col("step").min()).iter_rows())
    stages = sorted(steps, key=lambda place: (-steps[place], place))
    return [place for place in (FOUND, LATE, *stages, *REASONS) if place in set(rows["place"])]


def missed(places: Mapping[str, int]) -> dict[str, int]:
    """Those of some places whose messages are missed: neither found, nor of a question without a value."""
    return {place: n for place, n in places.items() if place not in (FOUND, *NO_MISS)}


def counted(rows: pl.DataFrame) -> dict[str, dict[str, int]]:
    """Category -> place -> how many judged messages; under `ALL` those of all categories."""
    groups = {ALL: rows, **{str(name): part for (name,), part in rows.group_by("category", maintain_order=True)}}
    counts = {name: dict(part["place"].value_counts(sort=True).iter_rows()) for name, part in groups.items()}
    assert all(sum(counts[name].values()) == len(part) for name, part in groups.items()), "nothing is lost twice"
    return counts


def most_missed(losses: pl.DataFrame, n: int) -> list[str]:
    """Ids of the questions that miss most of their judged messages, by number; none that misses nothing.

    Args:
        losses: rows of `LOSSES_SCHEMA`.
    """
    missed = losses.filter(~pl.col("place").is_in([FOUND, *NO_MISS])).group_by("query_id", maintain_order=True).len()
    ids: list[str] = missed.sort("len", descending=True, maintain_order=True).head(n)["query_id"].to_list()
    return ids


def retrievals(evaluator: WorkspaceEvaluator, losses: pl.DataFrame, query_ids: Sequence[str]) -> Iterator[Retrieval]:
    """The retrievals of some questions of a dataset, workspace by workspace.

    Args:
        losses: rows of `LOSSES_SCHEMA`, of these questions at least.
    """
    wanted = losses.filter(pl.col("query_id").is_in(list(query_ids)))
    judged = judged_messages(evaluator.dataset).join(wanted, on="query_id", how="semi", maintain_order="left")
    for workspace in wanted["workspace_id"].unique(maintain_order=True):
        for asked in asked_again(evaluator, workspace, set(query_ids)):
            queries = {query.query_id: query for query in asked.queries}
            for traced in asked.traced():
                for query_id in traced.batch.queries["query_id"]:
                    own = judged.filter(query_id=query_id)
                    places = dict(wanted.filter(query_id=query_id).select("message_id", "place").iter_rows())
                    query, steps = queries[query_id], list(_steps(traced, query_id, own))
                    yield Retrieval(workspace, query_id, query.text, query.category, places, steps)


def _steps(traced: Traced, query_id: str, judged: pl.DataFrame) -> Iterator[tuple[str, list[RetrievedDocument]]]:
    gold = traced.covered(judged).group_by("document_id", maintain_order=True).agg("message_id")
    messages = dict(gold.iter_rows())
    rows = traced.trace.filter(pl.col("rank") <= FIRST, query_id=query_id)
    texts = traced.texts(rows["document_id"].unique())
    for step, stage in traced.plan.filter(query_id=query_id).select("step", "stage").iter_rows():
        documents = []
        of_step = rows.filter(step=step).select("document_id", "rank", "score", "stands_for")
        for name, rank, score, stands_for in of_step.iter_rows():
            held = dict.fromkeys(one for other in (name, *stands_for) for one in messages.get(other, ()))
            documents.append(RetrievedDocument(name, texts[name][:_CHARACTERS], rank, score, tuple(held)))
        yield stage, documents
