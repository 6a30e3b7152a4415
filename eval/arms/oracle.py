"""The control arm that knows the judgements; the others are plain rankings, each named in `conf/arms`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from eval.dataset.dataset import Dataset
from eval.measures.retrieval import session_of_message, workspace_of_query
from lcm.memory.memory import Memory
from lcm.protocols.contract import Contract
from lcm.protocols.retrieval import Batch
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.source.indexes import CANDIDATE_SCHEMA

_REACHABLE_SCHEMA = {"query_id": pl.String, "document_id": pl.String}


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
        return Ranking(EvidenceSource(_evidence(dataset)))

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
    workspace = workspace_of_query(dataset)
    in_sessions = (
        dataset.session_qrels.rename({"relevance": "session_relevance"})
        .join(workspace, on="query_id")
        .join(session_of_message(dataset), on=["workspace_id", "session_id"])
    )
    return (
        dataset.qrels.join(in_sessions, on=["query_id", "message_id"], how="full", coalesce=True)
        .select("query_id", "message_id", pl.col("relevance", "session_relevance").fill_null(0))
        .filter(pl.max_horizontal("relevance", "session_relevance") > 0)
    )


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
    """Documents that together cover all messages, greedily: most first.

    Args:
        covered: document -> message -> relevance, by itself and by its session; documents oldest first.
    """
    chosen: list[str] = []
    left = {document: dict(messages) for document, messages in covered.items()}
    while left:
        best = max(left, key=lambda document: [sum(column) for column in zip(*left[document].values(), strict=True)])
        found = left.pop(best)
        chosen.append(best)
        rest = {document: {m: left[document][m] for m in left[document].keys() - found.keys()} for document in left}
        left = {document: messages for document, messages in rest.items() if messages}
    return chosen
