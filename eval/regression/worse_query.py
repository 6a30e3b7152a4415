"""The queries that got worse, with what each side ranked for them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from eval.regression.side import Side


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """A document at its rank in one side's answer."""

    document_id: str
    covers_evidence: bool


@dataclass(frozen=True, slots=True)
class WorseQuery:
    """A query that lost in some measure."""

    query_id: str
    category: str
    text: str
    evidence: int
    """Messages that are its evidence."""
    values: Mapping[str, tuple[float, float]]
    """Measure -> baseline's and candidate's value, of those that differ."""
    baseline: tuple[RankedDocument, ...] | None
    """From rank 1 on; None where the ranking is not at hand."""
    candidate: tuple[RankedDocument, ...] | None


def worse_queries(
    baseline: Side, candidate: Side, measures: Sequence[str], costs: Collection[str], at_most: int, depth: int
) -> tuple[WorseQuery, ...]:
    """The queries that lost in a measure of quality, worst first.

    Sorted by the loss in the first measure, then in the second and so on, then by query id. Costs such as tokens make
    no query worse unless nothing else is measured.
    """
    quality = [measure for measure in measures if measure not in costs] or list(measures)
    sign = -1 if quality[0] in costs else 1
    both = baseline.values.join(candidate.values, on=["query_id", "measure"], suffix="_after")
    gains = (
        both.filter(pl.col("measure").is_in(quality))
        .with_columns(gain=sign * (pl.col("value_after") - pl.col("value")))
        .pivot("measure", index="query_id", values="gain", maintain_order=True)
        .with_columns(pl.col(measure).fill_null(0.0) for measure in quality)
        .filter(pl.min_horizontal(quality) < 0)
        .sort(*quality, "query_id")
        .head(at_most)
    )
    asked = {row["query_id"]: row for row in baseline.queries.iter_rows(named=True)}
    wanted = gains["query_id"].to_list()
    values = both.filter(pl.col("query_id").is_in(wanted) & (pl.col("value") != pl.col("value_after")))
    changed: dict[str, dict[str, tuple[float, float]]] = {query_id: {} for query_id in wanted}
    for query_id, measure, before, after in values.iter_rows():
        if measure in measures:
            changed[query_id][measure] = (before, after)
    return tuple(
        WorseQuery(
            query_id=query_id,
            category=asked[query_id]["category"],
            text=asked[query_id]["text"],
            evidence=len(asked[query_id]["evidence"] or ()),
            values={measure: changed[query_id][measure] for measure in measures if measure in changed[query_id]},
            baseline=_ranked(baseline, query_id, asked[query_id]["evidence"] or (), depth),
            candidate=_ranked(candidate, query_id, asked[query_id]["evidence"] or (), depth),
        )
        for query_id in wanted
    )


def _ranked(side: Side, query_id: str, evidence: Sequence[str], depth: int) -> tuple[RankedDocument, ...] | None:
    if side.ranking is None:
        return None
    best = side.ranking.filter((pl.col("query_id") == query_id) & (pl.col("rank") <= depth)).sort("rank")
    relevant = set(evidence)
    return tuple(
        RankedDocument(document, not relevant.isdisjoint(sources or ()))
        for document, sources in best.select("document_id", "source_message_ids").iter_rows()
    )
