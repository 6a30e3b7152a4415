"""Where a judged message was lost: each in exactly one place, so that the places sum to what was missed.

The places of a ranking are

- `found`: a document that stands for it is among the first k;
- `late`: such a document is ranked, and was among the first k behind no step;
- the name of a stage: the one that put it behind the first k, or dropped it where it never was among them;
- `source`: such documents may be seen, and the source finds none of them.

A document stands for the messages that it was made of, and for those of near duplicates that are left out in its
favour. Where nothing that may be seen stands for a message, `unseen` tells why not. Ranks count from the first step
that gives scores, before which the order of rows means nothing, and behind the last in any case.
"""

import polars as pl

from eval.measures.coverage import with_near_duplicates
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
PLACES_SCHEMA: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "message_id": pl.String(),
    "place": pl.String(),
    "step": pl.Int32(),
}
"""`step` is that of the stage, or of the source; null where no step lost the message."""
_MESSAGE = ["query_id", "message_id"]


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
        ranks: of `message_ranks`.
        plan: rows of `PLAN_SCHEMA` for every query.
        first: how many documents are read.
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
