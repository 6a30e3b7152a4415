"""Ladders: what every step of a ranking did with a document, from the branches that found it to the answer."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from eval.ladder.asking import Asked, answers_in
from eval.ladder.losses import covered
from eval.ladder.places import FIRST

ADDED, ORDERED, ROSE, FELL, STAYED, DROPPED = "added", "ordered", "rose", "fell", "stayed", "dropped"
LADDER_SCHEMA: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "document_id": pl.String(),
    "step": pl.Int32(),
    "stage": pl.String(),
    "rank_before": pl.Int64(),
    "score_before": pl.Float64(),
    "rank": pl.Int64(),
    "score": pl.Float64(),
    "stood_for_by": pl.String(),
    "event": pl.String(),
}
"""A row for each step from the one that brought a document to the one that dropped it, where `rank` and `score` are
null. Until a step gives scores, `score` is null and ranks tell no more than the order in which rows came: that step has
ordered them. So it is with `rank_before` where `score_before` is null. `stood_for_by` is the better document that a
near duplicate is left out in favour of; `event` one of added, ordered, rose, fell, stayed, dropped."""
_DOCUMENT = ["query_id", "document_id"]
_MESSAGE = ["query_id", "message_id"]


@dataclass(frozen=True, slots=True)
class Ladders:
    """The ladders of some documents for some queries."""

    steps: pl.DataFrame
    """Rows of `LADDER_SCHEMA`, and of `REASONS_SCHEMA` reason and like_id; a document that no step brought has none."""
    found_by: pl.DataFrame
    """Rows of `FOUND_BY_SCHEMA`: which branches of the source found these documents, at which of their ranks."""
    answers: pl.DataFrame
    """Rows of `TRACE_SCHEMA`: what was answered, whole."""
    covers: pl.DataFrame
    """query_id, document_id, message_id: which of these documents were made of which judged messages."""


def ladders(asked: Asked, judged: pl.DataFrame, first: int = FIRST) -> Iterator[Ladders]:
    """Batch after batch the ladders of the first answers to queries, and of the documents of their judged messages.

    Args:
        asked: the queries, and the memory as it stood then.
        judged: query_id, message_id and more: of these queries, maybe of others.
        first: how many answers.
    """
    for batch in asked.batches():
        trace, plan = asked.ranking.trace(batch), asked.ranking.plan(batch)
        covers, answers = covered(batch, judged.select("query_id", "message_id")), answers_in(trace, plan)
        covers = covers.join(batch.queries, on="query_id", how="semi")
        read = answers.filter(pl.col("rank") <= first)
        wanted = pl.concat([read.select(_DOCUMENT), covers.select(_DOCUMENT)]).unique(maintain_order=True)
        found = asked.ranking.found_by(batch).join(wanted, on=_DOCUMENT, how="semi", maintain_order="left")
        yield Ladders(ladder(trace, plan, wanted, asked.ranking.reasons(batch)), found, answers, covers)


def best_documents(steps: pl.DataFrame, covers: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """The document of each message that tells what became of it: of its documents the one that came farthest, or to the
    stage that lost the message; of several the one that stood best there.

    Args:
        steps: query_id, document_id, step, rank: of a trace, or of ladders.
        covers: query_id, document_id, message_id: which documents were made of which messages.
        places: rows of `PLACES_SCHEMA`.
    Returns:
        query_id, message_id, document_id.
    """
    lost = places.select(*_MESSAGE, lost_at="step")
    came = steps.filter(pl.col("rank").is_not_null()).select(*_DOCUMENT, "step", "rank")
    rows = covers.join(lost, on=_MESSAGE, maintain_order="left").join(
        came, on=_DOCUMENT, how="left", maintain_order="left"
    )
    counts = (pl.col("lost_at").fill_null(0) == 0) | (pl.col("step") < pl.col("lost_at"))
    reach = (pl.when(counts).then(name) for name in ("step", "rank"))
    ordered = rows.with_columns(reach).sort(
        "step", "rank", descending=[True, False], nulls_last=True, maintain_order=True
    )
    return ordered.unique(_MESSAGE, keep="first", maintain_order=True).select(*_MESSAGE, "document_id")


def ladder(trace: pl.DataFrame, plan: pl.DataFrame, wanted: pl.DataFrame, reasons: pl.DataFrame) -> pl.DataFrame:
    """The ladders of some documents of a trace.

    Args:
        trace: rows of `TRACE_SCHEMA`.
        plan: rows of `PLAN_SCHEMA` for every query of the trace.
        wanted: query_id, document_id.
        reasons: what the steps told of their rows: step, and the columns of `REASONS_SCHEMA`.
    Returns:
        Rows of `LADDER_SCHEMA` with reason and like_id, those of a document together, in the order of `wanted`.
    """
    steps = plan.join(wanted, on="query_id", how="inner")
    better = trace.filter(pl.col("stands_for").list.len() > 0).select(
        "query_id", "step", "rank", "stands_for", stood_for_by="document_id"
    )
    better = better.explode("stands_for").rename({"stands_for": "document_id"}).drop("rank")
    order = wanted.with_row_index("_wanted")
    rows = (
        steps.join(trace.drop("stage", "stands_for"), on=[*_DOCUMENT, "step"], how="left")
        .join(better, on=[*_DOCUMENT, "step"], how="left")
        .join(order, on=_DOCUMENT)
        .sort("_wanted", "step")
        .with_columns(pl.col("rank", "score").shift(1).over("_wanted").name.suffix("_before"))
        .filter(pl.col("rank").is_not_null() | pl.col("rank_before").is_not_null())
    )
    is_ordered = pl.all_horizontal(pl.col("score", "score_before").is_not_null())
    event = (
        pl.when(pl.col("rank_before").is_null())
        .then(pl.lit(ADDED))
        .when(pl.col("rank").is_null())
        .then(pl.lit(DROPPED))
        .when(pl.col("score_before").is_null() & pl.col("score").is_not_null())
        .then(pl.lit(ORDERED))
        .when(is_ordered & (pl.col("rank") < pl.col("rank_before")))
        .then(pl.lit(ROSE))
        .when(is_ordered & (pl.col("rank") > pl.col("rank_before")))
        .then(pl.lit(FELL))
        .otherwise(pl.lit(STAYED))
    )
    told = rows.with_columns(event=event).select(list(LADDER_SCHEMA)).cast(pl.Schema(LADDER_SCHEMA))
    return told.join(reasons, on=[*_DOCUMENT, "step"], how="left", maintain_order="left")
