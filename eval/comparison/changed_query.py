"""The queries that got worse, and those that got better, with what each side ranked for them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from eval.measures.coverage import with_near_duplicates
from eval.measures.names import SYSTEM_ARM
from eval.run import Run


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """A document at its rank in one side's answer."""

    document_id: str
    covers_evidence: bool
    workspace_id: str
    message_ids: tuple[str, ...]
    """The ids of the messages that the document was made of."""
    text: str | None = None
    """The words of these messages; None where the dataset is not at hand."""


@dataclass(frozen=True, slots=True)
class ChangedQuery:
    """A query that lost, or won, in some measure."""

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


def changed_queries(
    baseline: Run, candidate: Run, measures: Sequence[str], costs: Collection[str], at_most: int, depth: int
) -> tuple[tuple[ChangedQuery, ...], tuple[ChangedQuery, ...]]:
    """The queries that lost in a measure of quality, and those that won and lost in none; what changed most is first.

    Sorted by the change in the first measure, then in the second and so on, then by query id. Costs such as tokens make
    no query worse or better unless nothing else is measured.
    """
    quality = [measure for measure in measures if measure not in costs] or list(measures)
    sign = -1 if quality[0] in costs else 1
    both = baseline.values.join(candidate.values, on=["query_id", "measure"], suffix="_after").filter(
        pl.col("measure").is_in(list(measures)) & (pl.col("value") != pl.col("value_after"))
    )
    gains = (
        both.filter(pl.col("measure").is_in(quality))
        .with_columns(gain=sign * (pl.col("value_after") - pl.col("value")))
        .pivot("measure", on_columns=quality, index="query_id", values="gain", maintain_order=True)
        .with_columns(pl.col(measure).fill_null(0.0) for measure in quality)
    )
    lost = pl.min_horizontal(quality) < 0
    worse = gains.filter(lost).sort(*quality, "query_id").head(at_most)
    descending = [*[True] * len(quality), False]
    better = gains.filter(~lost).sort(*quality, "query_id", descending=descending).head(at_most)
    rankings = [_ranking(side) if len(worse) or len(better) else None for side in (baseline, candidate)]
    asked = {row["query_id"]: row for row in baseline.queries.iter_rows(named=True)}
    values: dict[str, dict[str, tuple[float, float]]] = {}
    for query_id, measure, before, after in both.select("query_id", "measure", "value", "value_after").iter_rows():
        values.setdefault(query_id, {})[measure] = (before, after)

    def told(query_id: str) -> ChangedQuery:
        query = asked[query_id]
        evidence = query["evidence"] or ()
        return ChangedQuery(
            query_id=query_id,
            category=query["category"],
            text=query["text"],
            evidence=len(evidence),
            values={measure: values[query_id][measure] for measure in measures if measure in values[query_id]},
            baseline=_ranked(rankings[0], query_id, evidence, depth),
            candidate=_ranked(rankings[1], query_id, evidence, depth),
        )

    of_worse, of_better = (tuple(told(query_id) for query_id in one["query_id"]) for one in (worse, better))
    return of_worse, of_better


def _ranking(run: Run) -> pl.DataFrame | None:
    """query_id, workspace_id, document_id, rank, source_message_ids: what the system ranked; None where only the
    summary and the values are at hand."""
    if not all((run.folder / name).exists() for name in ("run.parquet", "documents.parquet")):
        return None
    columns = ("arm", "workspace_id", "query_id", "document_id", "rank")
    ranked = with_near_duplicates(run.frame("run", columns, ("stands_for",))).filter(arm=SYSTEM_ARM)
    documents = run.frame("documents", ("workspace_id", "document_id", "source_message_ids"))
    return ranked.join(documents, on=["workspace_id", "document_id"], how="left", maintain_order="left").select(
        "query_id", "workspace_id", "document_id", "rank", "source_message_ids"
    )


def _ranked(
    ranking: pl.DataFrame | None, query_id: str, evidence: Sequence[str], depth: int
) -> tuple[RankedDocument, ...] | None:
    if ranking is None:
        return None
    best = ranking.filter((pl.col("query_id") == query_id) & (pl.col("rank") <= depth)).sort("rank")
    relevant = set(evidence)
    return tuple(
        RankedDocument(document, not relevant.isdisjoint(sources or ()), workspace, tuple(sources or ()))
        for workspace, document, sources in best.select("workspace_id", "document_id", "source_message_ids").iter_rows()
    )
