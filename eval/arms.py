"""Control arms besides plain rankings: the judgements themselves, and the recorded run of another system.

The others are rankings, each named in `conf/arms`.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

import polars as pl

from eval.dataset.collection import document_ids, read_trec_run
from eval.dataset.dataset import Dataset
from eval.measures.retrieval import session_of_message, workspace_of_query
from lcm.errors import DatasetError
from lcm.memory.memory import Memory
from lcm.protocols.contract import Contract
from lcm.protocols.retrieval import Batch, Ranker
from lcm.records.query import Query
from lcm.retrieval.frames import KeptBeside
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.source.indexes import CANDIDATE_SCHEMA

_log = logging.getLogger(__name__)
_REACHABLE_SCHEMA = {"query_id": pl.String, "document_id": pl.String}
UNSEEN = "documents of a recorded run that the memory does not hold, or not yet when asked"


@runtime_checkable
class KnowsDataset(Protocol):
    """An arm that is made of the dataset itself: of its judgements, or of what is recorded of its queries."""

    def ranking(self, dataset: Dataset) -> Ranking: ...


@runtime_checkable
class IsCeiling(Protocol):
    """An arm that is measured by the best order of what could be ranked: no other arm passes it."""

    def reachable(self, dataset: Dataset, memory: Memory, queries: Sequence[Query]) -> pl.DataFrame:
        """Rows query_id, document_id: all that may be ranked and covers messages of sessions with evidence, in the
        memory of one workspace with all transcripts ingested."""
        ...


def rankings_of(arms: Mapping[str, Ranker | KnowsDataset], dataset: Dataset) -> dict[str, Ranker]:
    return {arm: one.ranking(dataset) if isinstance(one, KnowsDataset) else one for arm, one in arms.items()}


def ceilings_among(
    arms: Mapping[str, Ranker | KnowsDataset], dataset: Dataset
) -> dict[str, Callable[[Memory, Sequence[Query]], pl.DataFrame]]:
    """Arm that is a ceiling -> what tells of a memory what the arm could have ranked."""
    return {arm: partial(one.reachable, dataset) for arm, one in arms.items() if isinstance(one, IsCeiling)}


@dataclass(frozen=True, slots=True)
class Oracle:
    """The evidence and nothing else, and by each measure what the best order of the documents would score.

    It ranks first the documents that cover judged messages, then those that cover messages of sessions which are judged
    as a whole. Each next one covers most of what none before it does, the older one on a tie; one that adds nothing is
    left out. That is what it costs and what is answered from it; by measures of rankings it is a ceiling, whose recall
    is below 1 where evidence has no document, did not exist when asked, may not be read, or needs more documents or
    tokens than there are.
    """

    def ranking(self, dataset: Dataset) -> Ranking:
        return Ranking(EvidenceSource(_evidence_of(dataset)))

    def reachable(self, dataset: Dataset, memory: Memory, queries: Sequence[Query]) -> pl.DataFrame:
        asked = pl.col("query_id").is_in([query.query_id for query in queries])
        messages = _of_evidence_sessions(dataset).filter(asked)
        frames = [
            batch.documents.select("document_id", message_id="source_message_ids")
            .explode("message_id")
            .join(messages, on="message_id", maintain_order="left")
            .join(batch.queries, on="query_id", how="semi", maintain_order="left")
            .select("query_id", "document_id")
            for batch in memory.batches(queries, Ranking(EvidenceSource(messages)))
        ]
        return pl.concat([pl.DataFrame(schema=_REACHABLE_SCHEMA), *frames]).unique(maintain_order=True)


@dataclass(frozen=True, slots=True)
class EvidenceSource:
    """The oracle's source: of the visible documents those that cover evidence."""

    messages: pl.DataFrame
    """Columns query_id, message_id, relevance, session_relevance: 0 where that judgement is not made."""
    contract = Contract(asks=())

    def candidates(self, batch: Batch) -> pl.DataFrame:
        covered: dict[str, dict[str, dict[str, tuple[int, int]]]] = {}
        for query_id, document_id, message_id, *relevance in (
            batch.documents.select("document_id", message_id="source_message_ids")
            .explode("message_id")
            .join(self.messages, on="message_id", maintain_order="left")
            .select("query_id", "document_id", "message_id", "relevance", "session_relevance")
            .iter_rows()
        ):
            covered.setdefault(query_id, {}).setdefault(document_id, {})[message_id] = tuple(relevance)
        rows = [
            (query_id, asked_at, document_id, 1 / rank)
            for query_id, asked_at in batch.queries.select("query_id", "asked_at").iter_rows()
            for rank, document_id in enumerate(_fewest(covered.get(query_id, {})), start=1)
        ]
        schema = {name: CANDIDATE_SCHEMA[name] for name in ("query_id", "asked_at", "document_id", "score")}
        frame = pl.DataFrame(rows, schema=schema, orient="row")
        return frame.match_to_schema(CANDIDATE_SCHEMA, missing_columns="insert")


def _evidence(dataset: Dataset) -> pl.DataFrame:
    in_sessions = (
        dataset.session_qrels.rename({"relevance": "session_relevance"})
        .join(workspace_of_query(dataset), on="query_id")
        .join(session_of_message(dataset), on=["workspace_id", "session_id"])
    )
    return (
        dataset.qrels.join(in_sessions, on=["query_id", "message_id"], how="full", coalesce=True)
        .select("query_id", "message_id", pl.col("relevance", "session_relevance").fill_null(0))
        .filter(pl.max_horizontal("relevance", "session_relevance") > 0)
    )


_evidence_of = KeptBeside[Dataset, pl.DataFrame](_evidence, 4)
"""Once for all points of a sweep."""


def _of_evidence_sessions(dataset: Dataset) -> pl.DataFrame:
    """Rows query_id, message_id: what is judged relevant, corrected or not, and all else of its sessions."""
    judgements = [one for one in (dataset.qrels, dataset.repaired_qrels) if one is not None]
    judged = pl.concat([one.filter(pl.col("relevance") > 0).select("query_id", "message_id") for one in judgements])
    workspace, session = workspace_of_query(dataset), session_of_message(dataset)
    by_message = judged.join(workspace, on="query_id").join(session, on=["workspace_id", "message_id"])
    by_session = dataset.session_qrels.filter(pl.col("relevance") > 0).join(workspace, on="query_id")
    of_session = ["query_id", "workspace_id", "session_id"]
    sessions = pl.concat([by_message.select(of_session), by_session.select(of_session)]).unique()
    messages = sessions.join(session, on=["workspace_id", "session_id"]).select("query_id", "message_id")
    return pl.concat([judged, messages]).unique()


def _fewest(covered: Mapping[str, Mapping[str, tuple[int, int]]]) -> list[str]:
    """Documents that together cover all messages, greedily, most first: of document -> message -> relevance, by itself
    and by its session, documents oldest first."""
    chosen: list[str] = []
    left = {document: dict(messages) for document, messages in covered.items()}
    while left:
        best = max(left, key=lambda document: [sum(column) for column in zip(*left[document].values(), strict=True)])
        found = left.pop(best)
        chosen.append(best)
        rest = {document: {m: left[document][m] for m in left[document].keys() - found.keys()} for document in left}
        left = {document: messages for document, messages in rest.items() if messages}
    return chosen


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The rankings that a file holds, in trec_eval's order.

    Topics are the dataset's query ids, and a docno is the id that `lcm datasets write` gives a message. What stands for
    a message is the document of the memory that covers fewest others beside it; what the memory does not hold, or held
    only after the query was asked, is left out and counted.
    """

    file: str | None = None
    """A TREC run."""

    def ranking(self, dataset: Dataset) -> Ranking:
        """The run as a ranking over the memory of a dataset; DatasetError where it answers nothing that is asked."""
        if self.file is None:
            raise DatasetError("arms.recorded.file names no file: set it to a TREC run of the same queries")
        path = Path(self.file).expanduser()
        run = read_trec_run(path)
        asked = {query.query_id: query for query in dataset.queries}
        message = {(place[0], name): place[1] for place, name in document_ids(dataset).items()}
        rows, unasked, unknown = [], set(), 0
        for query_id, docno, rank, _ in run.iter_rows():
            if (query := asked.get(query_id)) is None:
                unasked.add(query_id)
            elif (found := message.get((query.workspace_id, docno))) is None:
                unknown += 1
            elif found not in query.shown_message_ids:
                rows.append((query_id, found, rank))
        if not rows:
            raise DatasetError(
                f"{path} answers no query of dataset {dataset.name!r} with a message of it: its topics must be query "
                "ids and its docnos message ids, as `lcm datasets write` names them"
            )
        if unasked:
            _log.warning("%s: %d of its topics are no queries of %s", path, len(unasked), dataset.name)
        if unknown:
            _log.warning("%s: %d of its rows name no message that their query may be answered with", path, unknown)
        schema = {"query_id": pl.String, "message_id": pl.String, "rank": pl.Int64}
        return Ranking(RecordedSource(pl.DataFrame(rows, schema=schema, orient="row")))


@dataclass(frozen=True, slots=True)
class RecordedSource:
    """The source of a recorded run: of the visible documents those that stand for what was ranked."""

    run: pl.DataFrame
    """Columns query_id, message_id, rank: best first."""
    contract = Contract(asks=())

    def candidates(self, batch: Batch) -> pl.DataFrame:
        standing = (
            batch.documents.select("document_id", message_id="source_message_ids")
            .with_columns(covered=pl.col("message_id").list.len())
            .explode("message_id")
            .sort("covered", maintain_order=True)
            .unique("message_id", keep="first", maintain_order=True)
        )
        asked = batch.queries.select("query_id", "asked_at")
        ranked = asked.join(self.run, on="query_id", maintain_order="left_right")
        found = ranked.join(standing, on="message_id", maintain_order="left")
        if unseen := len(ranked) - len(found):
            batch.incidents[UNSEEN] += unseen
        frame = found.unique(["query_id", "document_id"], keep="first", maintain_order=True).select(
            "query_id", "asked_at", "document_id", score=1 / pl.col("rank")
        )
        return frame.match_to_schema(CANDIDATE_SCHEMA, missing_columns="insert")
