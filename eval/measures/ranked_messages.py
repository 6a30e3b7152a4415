"""A ranking of documents read as one of messages, as retrieval measures and other tools read it."""

import polars as pl


def with_near_duplicates(run: pl.DataFrame) -> pl.DataFrame:
    """The rows of a run, behind each a row of the same rank for each document that its document stands for, where the
    run says so."""
    if "stands_for" not in run.columns:
        return run
    if not (run["stands_for"].list.len() > 0).any():  # nothing stands for another, as under most rankings
        return run.drop("stands_for")
    shown = pl.concat_list("document_id", pl.col("stands_for").fill_null([]))
    return run.with_columns(document_id=shown).drop("stands_for").explode("document_id")


def ranked_messages(run: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Rows arm, workspace_id, query_id, message_id, rank (1-based), score: each message where it is first covered.

    Args:
        run: as in `Outcome`; best first within an arm and a query once sorted by rank.
        documents: workspace_id, document_id, source_message_ids.
    """
    covers = documents.select("workspace_id", "document_id", message_id="source_message_ids").explode("message_id")
    return (
        with_near_duplicates(run.sort("rank", maintain_order=True))
        .join(covers, on=["workspace_id", "document_id"], maintain_order="left_right")
        .filter(pl.col("message_id").is_not_null())
        .unique(["arm", "query_id", "message_id"], keep="first", maintain_order=True)
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over("arm", "query_id"))
        .select("arm", "workspace_id", "query_id", "message_id", "rank", "score")
    )


def covered_by(shown: pl.DataFrame, documents: pl.DataFrame, sessions: pl.DataFrame) -> pl.DataFrame:
    """The rows of documents that are shown, one for each message that they stand for, with that and its session."""
    covers = (
        documents.select("workspace_id", "document_id", message_id="source_message_ids")
        .join(shown, on=["workspace_id", "document_id"], how="semi", maintain_order="left")
        .explode("message_id")
        .join(sessions, on=["workspace_id", "message_id"], how="left", maintain_order="left")
    )
    return shown.join(covers, on=["workspace_id", "document_id"], how="left", maintain_order="left_right").rename(
        {"message_id": "message", "session_id": "session"}
    )


def units_of(covered: pl.DataFrame, level: str, judged: pl.DataFrame) -> pl.DataFrame:
    """A ranking of documents as one of messages or sessions: rows query_id, unit, rank, position (1-based).

    A unit stands where the first document that covers it stands, at that document's rank.
    """
    return (
        covered.select("query_id", "rank", unit=level)
        .filter(pl.col("unit").is_not_null())
        .join(judged, on="query_id", how="semi", maintain_order="left")
        .unique(["query_id", "unit"], keep="first", maintain_order=True)
        .with_columns(position=pl.int_range(1, pl.len() + 1).over("query_id"))
    )


def placed_by_document(units: pl.DataFrame, judgements: pl.DataFrame) -> pl.DataFrame:
    """Place relevant units by documents: rows of `units_of`, whose `position` is the rank of the first document that
    covers the unit, or the next place where that is taken.

    Args:
        judgements: query_id, unit, relevance above 0.
    """
    nth = pl.int_range(1, pl.len() + 1)
    return (
        units.join(judgements, on=["query_id", "unit"], maintain_order="left")
        .sort("rank", pl.col("relevance"), descending=[False, True], maintain_order=True)
        .with_columns(position=(nth + (pl.col("rank") - nth).cum_max()).over("query_id"))
        .drop("relevance")
    )
