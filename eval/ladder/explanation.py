"""Why a message was found or not: its place, its best document's ladder, what took its place, what would keep it."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import polars as pl

from eval.ladder.asking import Asked, answers_in, texts_of
from eval.ladder.ladder import best_documents, ladder
from eval.ladder.losses import covered
from eval.ladder.places import FIRST, FOUND, LATE, message_ranks, placed
from eval.ladder.trials import Trial, tried
from eval.ladder.unseen import REASONS, Said, why_unseen
from lcm.protocols.retrieval import Batch
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import SOURCE


@dataclass(frozen=True, slots=True)
class Explanation:
    """What became of a message, or of a document, in one ranking."""

    query: Query
    expected: str
    """The id of the message or document."""
    place: str
    """As `LOSSES_SCHEMA` has it."""
    document_id: str | None
    """Its best document; None where none may be seen."""
    rank: int | None
    """Where that, or what stands for it, was answered."""
    ladder: pl.DataFrame
    """Rows of `LADDER_SCHEMA` with the columns `reason` and `like_id`, of that document."""
    found_by: pl.DataFrame
    """Rows of `FOUND_BY_SCHEMA` of that document."""
    taken_by: pl.DataFrame
    """document_id, rank, rank_before: those of the first answers that stood behind it before the stage that lost it."""
    trials: tuple[Trial, ...]
    """What would have kept it, or moved it up; best first."""
    is_tried: bool
    """Whether changes were tried: of what is found, or may not be seen, or by a ranking without an order, none are."""
    answers: pl.DataFrame
    """Rows of `TRACE_SCHEMA`: what was answered, whole."""
    texts: Mapping[str, str]
    """Document id -> its words, of those that this tells of."""
    pool: int
    """How many documents the source found."""
    headline: str


def explained(
    asked: Asked, expected: str, said: Mapping[str, Said], first: int = FIRST, *, tries: bool = True
) -> Explanation:
    """Explain what became of a message or a document.

    Args:
        asked: one query, and the memory as it stood then.
        expected: the id of a message of the workspace, or of a document.
        said: message id -> what the dataset tells of it.
        first: how many documents are read.
        tries: whether changes of the ranking are tried.
    """
    (query,), (batch,) = asked.queries, asked.batches()
    trace, plan = asked.ranking.trace(batch), asked.ranking.plan(batch)
    judged = pl.DataFrame({"query_id": [query.query_id], "message_id": [expected]})
    covers = _covers(batch, judged, expected)
    ranks = message_ranks(trace, covers, plan)
    answers, pool = answers_in(trace, plan), trace.filter(pl.col("step") == 0).height
    if query.query_id in asked.untold:
        place, step = asked.untold[query.query_id], None
    elif ranks.is_empty() and _covers(batch, judged, expected, only_visible=True).is_empty():
        place, step = _unseen(asked, query, expected, said), None
    else:
        ((place, step),) = placed(judged, ranks, plan, first).select("place", "step").iter_rows()
    at = judged.with_columns(step=pl.lit(step, pl.Int32))
    document_id = next(iter(best_documents(trace, covers, at)["document_id"]), None)
    wanted = pl.DataFrame({"query_id": [query.query_id], "document_id": [document_id]}, schema_overrides=_IDS)
    rows = ladder(trace, plan, wanted.drop_nulls(), asked.ranking.reasons(batch))
    found_by = asked.ranking.found_by(batch).join(wanted, on=["query_id", "document_id"], how="semi")
    last = ranks.join(plan.select(pl.col("step").max()), on="step", how="semi")["rank"]
    rank = None if last.is_empty() else last[0]
    taken = _taken(trace, answers, document_id, step, first)
    documents = covers["document_id"].to_list()
    is_tried = tries and place != FOUND and place not in REASONS
    trials = tried(asked.memory, query, documents, _but_first_scores(trace, plan), first) if is_tried else None
    return Explanation(
        query=query,
        expected=expected,
        place=place,
        document_id=document_id,
        rank=rank,
        ladder=rows,
        found_by=found_by,
        taken_by=taken,
        trials=tuple(trials or ()),
        is_tried=trials is not None,
        answers=answers,
        texts=texts_of(batch, [document_id, *taken["document_id"], *rows["like_id"]]),
        pool=pool,
        headline=_headline(place, step, rank, rows, trace, pool)
        + (_beside(batch, document_id) if place == FOUND else ""),
    )


_IDS = {"query_id": pl.String(), "document_id": pl.String()}


def _covers(batch: Batch, judged: pl.DataFrame, expected: str, *, only_visible: bool = False) -> pl.DataFrame:
    """query_id, document_id, message_id: the documents of the message, or the document itself."""
    covers = covered(batch, judged, only_visible=only_visible)
    known = batch.documents["document_id"]
    if covers.is_empty() and expected in known:
        return judged.select("query_id", pl.col("message_id").alias("document_id"), "message_id")
    return covers


def _unseen(asked: Asked, query: Query, expected: str, said: Mapping[str, Said]) -> str:
    documents = asked.memory.documents.filter(document_id=expected)
    messages = [expected] if documents.is_empty() else documents["source_message_ids"][0].to_list()
    return next(iter(why_unseen(asked.memory, query, messages, said).values()))


def _but_first_scores(trace: pl.DataFrame, plan: pl.DataFrame) -> list[str]:
    """The stages of a plan but the one that first gives scores, or would have given them had it left a row."""
    without = set(trace.filter(pl.col("score").is_null())["step"])
    first = next(step for step in count() if step not in without)
    return plan.filter(pl.col("step") != first)["stage"].to_list()


def _taken(
    trace: pl.DataFrame, answers: pl.DataFrame, document_id: str | None, step: int | None, first: int
) -> pl.DataFrame:
    """Those of the first answers that stood behind a document before a step, or were not there; none where nothing had
    ordered the rows."""
    none = pl.DataFrame(schema={"document_id": pl.String(), "rank": pl.Int64(), "rank_before": pl.Int64()})
    if not step:
        return none
    is_ordered = pl.col("score").is_not_null()
    before = trace.filter(pl.col("step") == step - 1, is_ordered).select("document_id", rank_before="rank")
    own = before.filter(document_id=document_id)["rank_before"]
    if own.is_empty() or own[0] > first:
        return none
    behind = answers.filter(pl.col("rank") <= first).join(before, on="document_id", how="left", maintain_order="left")
    return behind.filter(pl.col("rank_before").is_null() | (pl.col("rank_before") > own[0])).select(list(none.schema))


def _headline(
    place: str, step: int | None, rank: int | None, rows: pl.DataFrame, trace: pl.DataFrame, pool: int
) -> str:
    """What became of it, in a line: the cause first."""
    if place in REASONS:
        return f"{place}: it {REASONS[place]}"
    if place == SOURCE:
        return f"not in the pool: the source found {pool:,} documents, and none that stands for it"
    by = rows["stood_for_by"].drop_nulls().to_list()
    if place == FOUND:
        return f"found at rank {rank}" + (f", where {by[-1]} stands for it as a near duplicate" if by else "")
    if place == LATE:
        best = rows.filter(pl.col("score").is_not_null()).sort("rank").head(1)
        before = [f"; at best rank {at}, behind {stage}" for at, stage in best.select("rank", "stage").iter_rows()]
        return f"late: rank {rank} in the answer{before[0] if before and best['rank'][0] != rank else ''}"
    row = next(rows.filter(pl.col("step") == step).iter_rows(named=True), None)
    if row is None:
        return f"dropped at {place}, with the document that stood for it as a near duplicate"
    done, moved = "put back", [f"rank {row['rank_before']} → {row['rank']}"]
    if row["rank"] is None:
        done, moved = "dropped", [f"rank {row['rank_before']} before"] if row["score_before"] is not None else []
    causes = [cause for cause in (row["reason"], _like(row, trace)) if cause]
    return "; ".join((f"{done} at {place}", *moved, *causes))


def _beside(batch: Batch, document_id: str | None) -> str:
    """That a document stands for several messages, which have ranks of their own to other measures."""
    messages = batch.documents.filter(document_id=document_id)["source_message_ids"].explode().len()
    return f", in a document of {messages} messages" if messages > 1 else ""


def _like(row: Mapping[str, Any], trace: pl.DataFrame) -> str:
    """The better document that a row of a ladder is like, and its rank behind that step."""
    if row["like_id"] is None:
        return ""
    ranks = trace.filter(pl.col("step") == row["step"], pl.col("document_id") == row["like_id"])["rank"]
    return f"like {row['like_id']}" + ("" if ranks.is_empty() else f" at rank {ranks[0]}")
