"""Recall under a budget of tokens: what is found by reading a ranking until so many tokens are spent."""

from collections.abc import Mapping

import polars as pl

from eval.dataset.dataset import Dataset
from eval.measures.measure import QUERY_VALUES_SCHEMA


def recall_within(
    budgets: Mapping[str, int],
    ranked: pl.DataFrame,
    covered: pl.DataFrame,
    evidence_text: pl.DataFrame,
    dataset: Dataset,
) -> pl.DataFrame:
    """Rows query_id, measure, value: of each query with judged messages, the share of its evidence that is found.

    Documents are read in order, whole, until the budget is spent; the first that no longer fits is cut off there, and
    none follows. So a part of the evidence is read where the tokens of the documents before, with those of the document
    up to the part's end, are within the budget; evidence is found when all its parts are read.

    Args:
        budgets: measure -> tokens.
        ranked: query_id, document_id, rank, tokens.
        covered: query_id, workspace_id, rank, document_id, message: what the document of a rank stands for by itself,
            or instead of a near duplicate, whose id then stands here: that says so when it is read whole.
        evidence_text: as in `RunReading`.
    """
    before = pl.col("tokens").cum_sum().over("query_id", order_by="rank") - pl.col("tokens")
    ends = readings(ranked.with_columns(before=before), covered, evidence_text, dataset)
    found = (
        ends.group_by("query_id", "evidence", "part")
        .agg(pl.col("parts").first(), pl.col("end").min())
        .group_by("query_id", "evidence")
        .agg(pl.when(pl.len() == pl.col("parts").first()).then(pl.col("end").max()).alias("end"))
        .group_by("query_id")
        .agg("end")
    )
    values = evidence_counts(dataset).join(found, on="query_id", how="left", maintain_order="left")
    frames = [
        values.select(
            "query_id",
            measure=pl.lit(measure),
            value=pl.col("end").list.eval(pl.element() <= budget).list.sum().fill_null(0) / pl.col("evidence"),
        )
        for measure, budget in budgets.items()
    ]
    return pl.concat([pl.DataFrame(schema=QUERY_VALUES_SCHEMA), *frames])


def readings(
    ranked: pl.DataFrame, covered: pl.DataFrame, evidence_text: pl.DataFrame, dataset: Dataset
) -> pl.DataFrame:
    """Rows query_id, document_id, tokens, evidence, part, parts, end: after how many tokens a reader has the part.

    Args:
        ranked: query_id, document_id, rank, tokens, and `before`: what is read before the document.
        covered, evidence_text: as of `recall_within`.
    """
    read = ranked.select("query_id", "rank", "tokens", "before", shown="document_id")
    standing = (
        covered.select("query_id", "workspace_id", "rank", "document_id", message_id="message")
        .join(read.rename({"tokens": "whole"}), on=["query_id", "rank"])
        .join(_evidence(dataset), on=["query_id", "message_id"])
    )
    to_end = pl.col("before") + pl.col("tokens")
    is_itself = pl.col("document_id") == pl.col("shown")
    quoted = standing.filter(pl.col("quotation") != "").join(
        evidence_text.select("workspace_id", "quotation", "part", "parts", "tokens", shown="document_id"),
        on=["workspace_id", "quotation", "shown"],
    )
    unquoted = standing.filter(quotation="").join(
        evidence_text.drop("quotation"), on=["workspace_id", "message_id", "document_id"]
    )
    to_whole = pl.col("before") + pl.col("whole")
    columns = {"document_id": "shown", "tokens": "whole", **{name: name for name in ("evidence", "part", "parts")}}
    return pl.concat(
        [
            quoted.select("query_id", **columns, end=to_end),
            unquoted.select("query_id", **columns, end=pl.when(is_itself).then(to_end).otherwise(to_whole)),
        ]
    )


def evidence_counts(dataset: Dataset) -> pl.DataFrame:
    """Rows query_id, evidence: how much there is to find for each query with judged messages."""
    return _evidence(dataset).group_by("query_id", maintain_order=True).agg(pl.col("evidence").n_unique())


def _evidence(dataset: Dataset) -> pl.DataFrame:
    """Rows query_id, evidence, message_id, quotation: the quotations of judged messages, and each other judged message
    for itself, with a number below 0 and no quotation."""
    judged = dataset.qrels.filter(pl.col("relevance") > 0).select("query_id", "message_id")
    both = ["query_id", "message_id"]
    quoted = dataset.quotations.join(judged, on=both, how="semi", maintain_order="left")
    alone = judged.join(quoted, on=both, how="anti", maintain_order="left").select(
        "query_id",
        "message_id",
        evidence=-pl.int_range(1, pl.len() + 1).over("query_id"),
        quotation=pl.lit(""),
    )
    return pl.concat([quoted, alone.select(quoted.columns)])
