"""Where an answer has failed, the raw turns that may mend it come behind it."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch, Recovery
from lcm.records.document import TURN_KINDS
from lcm.records.query import Recalled
from lcm.retrieval.ranking.ordering import best_first
from lcm.retrieval.source.candidates import branch, describe, merge
from lcm.retrieval.source.dense import dense_branch

_MARKS = ("deferred", "is_recovered")
_KEYS = ["query_id", "document_id"]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Fetch:
    """Judges each answer as `recovery` does, and adds turns by cosine, which is their score: behind every other row,
    marked `is_recovered`.

    A failed answer gets turns of the asker's own session, also those that are not durable; one asked where nothing was
    said yet the turns of users, wherever they said them. Of each, so many as asked for that the answer does not hold,
    and as many more as it holds: who packs them may have chosen some already.

    Source: libravdb memory 1.4.4: max(topK, 4) turns of the session, max(4 topK, 8) of users; topK is 8.
    """

    recovery: Recovery
    session_k: int = 8
    user_k: int = 32

    def __post_init__(self) -> None:
        check_range(self, "session_k", "user_k", ge=1)

    @property
    def needs_vectors(self) -> bool:
        return not self.recovery.is_off

    def expand(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Add what was recovered; nothing, with a warning that is counted, where the queries could not be embedded."""
        if self.recovery.is_off:
            return frame
        marked = frame.with_columns(pl.lit(False).alias(name) for name in _MARKS if name not in frame.columns)
        if batch.embedding_error is not None:
            _log.warning("nothing is recovered, for the queries have no vectors: %s", batch.embedding_error)
            batch.incidents["recovery without vectors"] += len(batch.queries)
            return marked
        turns = _turns(batch)
        users = turns.filter((pl.col("role") == "user") | (pl.col("kind") == "exchange"))
        answers, added = _answers(marked), []
        for asker in _askers(batch):
            has_session = batch.is_in_session or not asker.own(batch.documents).is_empty()
            ids = batch.queries["query_id"]
            said = {at: self.recovery.signals(answers.get(ids[at], ()), has_session) for at in asker.positions}
            failed = [at for at, signals in said.items() if signals.has_failed]
            elsewhere = [at for at, signals in said.items() if signals.is_elsewhere]
            added += _nearest(batch, failed, asker.own(turns), self.session_k, marked)
            added += _nearest(batch, elsewhere, users, self.user_k, marked)
        return _beside(marked, added, batch) if added else marked


@dataclass(frozen=True, slots=True)
class _QueryGroup:
    """Queries from the same session, or conversation where they name no session."""

    session_id: str | None
    conversation_id: str | None
    positions: list[int]
    """Of the queries in their batch."""

    def own(self, documents: pl.DataFrame) -> pl.DataFrame:
        """What was said where they ask."""
        if self.session_id is not None:
            return documents.filter(pl.col("session_id") == self.session_id)
        if self.conversation_id is not None:
            return documents.filter(pl.col("conversation_id") == self.conversation_id)
        return documents.clear()


def _askers(batch: Batch) -> list[_QueryGroup]:
    asked = batch.queries.select("session_id", "conversation_id").with_row_index("at")
    groups = asked.group_by("session_id", "conversation_id", maintain_order=True).agg("at")
    return [_QueryGroup(*row) for row in groups.select("session_id", "conversation_id", "at").iter_rows()]


def _turns(batch: Batch) -> pl.DataFrame:
    columns = ("document_id", "kind", "role", "session_id", "conversation_id")
    known = batch.documents.select(columns)
    if batch.turns is not None:
        known = pl.concat([known, batch.turns.select(columns)])
    return known.filter(pl.col("kind").is_in(TURN_KINDS))


def _answers(frame: pl.DataFrame) -> dict[str, list[Recalled]]:
    """The answers that the rows are so far, by query id, best first; without texts."""
    columns = (
        "query_id", "document_id", "kind", "created_at", "score", "cosine", "scope_class", "confidence", "index_tier",
    )  # fmt: skip
    answers: dict[str, list[Recalled]] = {}
    for query_id, document_id, kind, created_at, score, cosine, scope_class, confidence, tier in (
        best_first(frame).select(columns).iter_rows()
    ):
        answers.setdefault(query_id, []).append(
            Recalled(
                document_id,
                "",
                kind,
                (),
                created_at,
                score or 0.0,
                cosine or 0.0,
                scope_class=scope_class,
                confidence=confidence or 0.0,
                index_tier=tier,
            )
        )
    return answers


def _nearest(
    batch: Batch, positions: Sequence[int], turns: pl.DataFrame, k: int, frame: pl.DataFrame
) -> list[pl.DataFrame]:
    """Candidate rows of the turns nearest to some queries of the batch, of those that the frame does not hold for them;
    no frame where there can be none."""
    if not positions or turns.is_empty():
        return []
    places = list(positions)
    queries = batch.queries[places]
    held = frame.select(_KEYS).join(queries, on="query_id", how="semi", maintain_order="left")
    sizes = held.group_by("query_id").agg(_most=pl.len() + k)
    most = min(len(turns), 2 * max([k, *sizes["_most"]]))
    part = replace(batch, queries=queries, vectors=batch.vectors[places], allowed=turns["document_id"].to_list())
    rows = merge(dense_branch(part, most), branch([], "bm25", "lexical_rank"), part)
    place = pl.int_range(pl.len()).over("query_id")
    return [
        rows.join(held, on=_KEYS, how="anti", maintain_order="left")
        .join(sizes, on="query_id", how="left", maintain_order="left")
        .filter(place < pl.col("_most").fill_null(k))
        .drop("_most")
    ]


def _beside(frame: pl.DataFrame, added: Sequence[pl.DataFrame], batch: Batch) -> pl.DataFrame:
    """The frame with the rows that were added, those of each query together and the added ones last."""
    found = pl.concat(added).unique(_KEYS, keep="first", maintain_order=True)
    described = describe(found.with_columns(score="cosine"), batch)
    marked = described.with_columns(pl.lit(True).alias(name) for name in _MARKS)
    aligned = marked.match_to_schema(frame.schema, missing_columns="insert", extra_columns="ignore")
    order = batch.queries.select("query_id").with_row_index("_at")
    return (
        pl.concat([frame, aligned])
        .join(order, on="query_id", how="left", maintain_order="left")
        .sort("_at", maintain_order=True)
        .drop("_at")
    )
