"""Recall by how far one reads: by ranks, and by tokens."""

from collections.abc import Sequence

import polars as pl

from eval.report.column import ShownRanking

_RANKS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40)
_TOKENS = (250, 500, 1000, 2000, 4000, 8000, 16000)

Curves = dict[str, list[tuple[float, float]]]
"""Name -> points: how far one reads, mean recall."""


def rank_curves(columns: Sequence[ShownRanking], queries: pl.DataFrame) -> Curves:
    """Of each ranking the mean share of a question's evidence within so many ranks, over the questions of which it has
    a value; empty where none is at hand.

    Args:
        queries: with their evidence; those without are passed over.
    """
    return _curves(columns, queries, "rank", _RANKS)


def token_curves(columns: Sequence[ShownRanking], queries: pl.DataFrame) -> Curves:
    """The same by the tokens of documents that are read whole, in order."""
    return _curves([column for column in columns if column.ranking["tokens"].count()], queries, "read", _TOKENS)


def _curves(columns: Sequence[ShownRanking], queries: pl.DataFrame, far: str, steps: Sequence[int]) -> Curves:
    found: Curves = {}
    for column in columns:
        asked = column.judged(queries).select("query_id", message_id="evidence")
        evidence = asked.explode("message_id").drop_nulls().unique()
        of_query = evidence.group_by("query_id").agg(n=pl.len())
        if column.ranking.is_empty() or of_query.is_empty():
            continue
        ranking = column.ranking.sort("query_id", "rank").with_columns(read=pl.col("tokens").cum_sum().over("query_id"))
        held = pl.concat_list(pl.col(name).fill_null([]) for name in ("source_message_ids", "twin_message_ids"))
        reached = (
            ranking.select("query_id", far, message_id=held)
            .explode("message_id")
            .join(evidence, on=["query_id", "message_id"])
            .group_by("query_id", "message_id")
            .agg(far=pl.col(far).min())
            .join(of_query, on="query_id")
            .with_columns(share=1 / pl.col("n"))
        )
        last = int(ranking[far].max() or 0)  # type: ignore[arg-type]
        shown = [step for step in steps if step <= last] or [steps[0]]
        totals = [float(reached.filter(pl.col("far") <= step)["share"].sum()) for step in shown]
        found[column.name] = [(step, total / len(of_query)) for step, total in zip(shown, totals, strict=True)]
    return found
