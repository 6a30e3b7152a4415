"""A ranking that a page shows beside others, of a run's system or of one of its control arms, and recall by how far
one reads in it: by ranks, and by tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from eval.experiment.external_outcome import ALIGNED
from eval.measures.names import ANSWER_HEADLINE, RANKING_MEASURES, SYSTEM_ARM, kind_of
from eval.report.insight import Insight
from eval.run import Run

_USUAL = ("recall@10", "nDCG@10", "MRR", "recall_all@10", "recall@2000t", "tokens@10")
_MOST = 8
_OF_CONTEXTS = "retained"
_NO_GUIDE = ("oracle", "random", "last_n", "whole_history")
"""Arms that bound what is possible, and from whose rankings nothing is learnt."""


class RankedDocument(NamedTuple):
    """A document that a query was answered with; fields as the columns of `ShownRanking.ranking`."""

    workspace_id: str
    document_id: str
    rank: int
    score: float | None
    source_message_ids: Sequence[str] | None
    twin_message_ids: Sequence[str] | None
    tokens: int | None


@dataclass(frozen=True, slots=True)
class ShownRanking:
    """What one system answered to every question, and what that is worth."""

    name: str
    values: pl.DataFrame
    """query_id, measure, value."""
    ranking: pl.DataFrame
    """query_id, workspace_id, document_id, rank, score, source_message_ids, twin_message_ids, tokens; empty where the
    rankings are not at hand. Twins are the near duplicates that a document stands for."""
    directions: Mapping[str, str] = field(default_factory=dict)
    """Measure -> `higher` or `lower`."""
    insight: Insight | None = None
    """What lies behind the ranking, where its memories were asked again."""

    def judged(self, queries: pl.DataFrame) -> pl.DataFrame:
        """Those of some queries that have a value of a ranking: what an external memory left unanswered, or answered
        with what nobody can judge, has none. All of them, where no ranking was measured."""
        names = self.values["measure"].unique().to_list()
        of_rankings = [name for name in names if kind_of(name) in RANKING_MEASURES]
        if not of_rankings and ALIGNED not in names:
            return queries
        valued = self.values.filter(pl.col("measure").is_in(of_rankings))
        return queries.join(valued, on="query_id", how="semi", maintain_order="left")

    def by_query(self) -> dict[str, list[RankedDocument]]:
        """Query id -> its documents, best first."""
        found: dict[str, list[RankedDocument]] = {}
        for query_id, *row in self.ranking.sort("rank").select("query_id", *RankedDocument._fields).rows():
            found.setdefault(query_id, []).append(RankedDocument(*row))
        return found


def columns_of_run(run: Run, insight: Insight | None = None, *, with_arms: bool = True) -> list[ShownRanking]:
    """The system of a run, under the run's name, and the control arms that another ranking can be learnt from."""
    read = run.arms if with_arms else run.frame
    values = _shown(read("per_query", ["arm", "query_id", "measure", "value"])).filter(pl.col("value").is_finite())
    ranked = _ranked(run, with_arms)
    arms = [arm for arm in values["arm"].unique(maintain_order=True) if arm != SYSTEM_ARM]
    return [
        ShownRanking(
            run.name if arm == SYSTEM_ARM else arm,
            values.filter(arm=arm).select("query_id", "measure", "value"),
            ranked.filter(arm=arm).drop("arm"),
            run.directions,
            insight if arm == SYSTEM_ARM else None,
        )
        for arm in (SYSTEM_ARM, *(arms if with_arms else ()))
    ]


def _shown(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of the arms that a page shows."""
    return rows.filter(~pl.col("arm").is_in(_NO_GUIDE))


def shown_measures(columns: Sequence[ShownRanking]) -> list[str]:
    """The measures that questions are sorted by: those of every table, as far as they were measured, what answers are
    worth, and what contexts retain; those of sessions, where only sessions are judged."""
    known = list(dict.fromkeys(name for column in columns for name in column.values["measure"].unique()))
    usual = [next((name for name in (one, f"session.{one}") if name in known), None) for one in _USUAL]
    contexts = sorted((name for name in known if kind_of(name) == _OF_CONTEXTS), key=_budget)
    answers = [name for name in ANSWER_HEADLINE if name in known]
    return [name for name in (*usual, *answers, *contexts) if name is not None][:_MOST] or sorted(known)[:_MOST]


def queries_of(run: Run) -> pl.DataFrame:
    """The questions of a run: query_id, workspace_id, conversation_id, category, text, asked_at, evidence."""
    wanted = ["query_id", "workspace_id", "category", "text", "evidence"]
    table = run.frame("queries", wanted, ["conversation_id", "asked_at"])
    for name in ("conversation_id", "asked_at"):
        if name not in table.columns:
            table = table.with_columns(pl.lit(None, dtype=pl.String()).alias(name))
    return table


_RANKING_SCHEMA: dict[str, pl.DataType] = {
    "arm": pl.String(),
    "workspace_id": pl.String(),
    "query_id": pl.String(),
    "document_id": pl.String(),
    "rank": pl.Int64(),
    "score": pl.Float64(),
    "source_message_ids": pl.List(pl.String()),
    "twin_message_ids": pl.List(pl.String()),
    "tokens": pl.Int64(),
}


def _ranked(run: Run, with_arms: bool) -> pl.DataFrame:
    """Rows of `_RANKING_SCHEMA`; none where the folder does not hold the rankings."""
    if not all((run.folder / name).is_file() for name in ("run.parquet", "documents.parquet")):
        return pl.DataFrame(schema=_RANKING_SCHEMA)
    columns = ["arm", "workspace_id", "query_id", "document_id", "rank", "score"]
    ranked = _shown((run.arms if with_arms else run.frame)("run", columns, ["stands_for"]))
    documents = run.frame("documents", ["workspace_id", "document_id", "source_message_ids"], ["tokens"])
    if "tokens" not in documents.columns:
        documents = documents.with_columns(tokens=pl.lit(None, dtype=pl.Int64()))
    joined = ranked.join(documents, on=["workspace_id", "document_id"], how="left", maintain_order="left")
    twins = _twins(ranked, documents) if "stands_for" in ranked.columns else None
    if twins is None:
        joined = joined.with_columns(twin_message_ids=pl.lit(None, dtype=pl.List(pl.String())))
    else:
        joined = joined.join(twins, on=["arm", "query_id", "document_id"], how="left", maintain_order="left")
    return joined.select(list(_RANKING_SCHEMA))


def _twins(run: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """The messages of the near duplicates that a document stands for."""
    return (
        run.filter(pl.col("stands_for").list.len() > 0)
        .explode("stands_for")
        .join(documents, left_on=["workspace_id", "stands_for"], right_on=["workspace_id", "document_id"])
        .group_by("arm", "query_id", "document_id")
        .agg(twin_message_ids=pl.col("source_message_ids").explode())
    )


def _budget(measure: str) -> float:
    budget = measure.partition("@")[2]
    return float(budget) if budget.isdigit() else float("inf")


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
