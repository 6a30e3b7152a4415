"""Retrieval measures, at the level of messages and of sessions.

A document covers the messages that it stands for. At message level a ranking of documents is read as a ranking of
messages: those of the first document, in order, then those of the second that are new, and so on.

- `recall@k`: the fraction of the relevant messages that the first k *documents* cover.
- `recall_any@k`: 1 if they cover at least one (a hit rate; some papers call this recall).
- `recall_all@k`: 1 if they cover all.
- `nDCG@k`: trec_eval's, over the first k *messages*.
- `nDCG_longmemeval@k`: LongMemEval's own: binary relevance, and rank 2 weighs as much as rank 1.
- `MRR`, `MAP`: over the whole ranking, as deep as the run goes.
- `tokens@k`: the tokens of the first k documents: what that recall costs.
- `recall`, `tokens`: without a cutoff, over all that was returned.

At session level (`session.recall@5`) a session stands where its first document stands, and k counts sessions.

A mean is over the queries that are judged at its level: at message level those with judged messages, at session level
also those whose evidence is known by session only, and tokens are of all of them. The other queries are counted, never
averaged.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import ir_measures
import numpy as np
import polars as pl
from ir_measures import AP, RR, Measure, R, nDCG

from eval.dataset.dataset import Dataset
from eval.significance import bootstrap_means

Level = Literal["message", "session"]
_NAME = re.compile(r"(recall|recall_any|recall_all|nDCG|nDCG_longmemeval|tokens)@[1-9]\d*|recall|tokens|MRR|MAP")
_EVERYTHING = 1_000_000  # a cutoff beyond any run

DEFAULT_NAMES = (
    "recall@5", "recall@10", "recall_any@5", "recall_any@10", "recall_all@5", "recall_all@10",
    "nDCG@10", "MRR", "MAP", "tokens@5", "tokens@10", "recall", "tokens",
)  # fmt: skip

VALUES_SCHEMA: dict[str, pl.DataType] = {
    "arm": pl.String(),
    "query_id": pl.String(),
    "measure": pl.String(),
    "value": pl.Float64(),
}

MEANS_SCHEMA: dict[str, pl.DataType] = {
    "arm": pl.String(),
    "group": pl.String(),
    "measure": pl.String(),
    "value": pl.Float64(),
    "n": pl.Int64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
}


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Which measures, and how their intervals are made."""

    names: Sequence[str] = DEFAULT_NAMES
    levels: Sequence[Level] = ("message", "session")
    resamples: int = 1000
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        bad = [name for name in self.names if not _NAME.fullmatch(name)]
        if bad or not self.names:
            raise ValueError(
                f"names: unknown measure {bad[0] if bad else ''!r}; choose from: recall@k, recall_any@k, recall_all@k, "
                "nDCG@k, nDCG_longmemeval@k, tokens@k (k >= 1), recall, tokens, MRR, MAP"
            )
        if not self.levels or set(self.levels) - {"message", "session"}:
            raise ValueError(f"levels must be some of message, session, got {list(self.levels)!r}")
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence must be between 0 and 1, got {self.confidence}")
        if self.resamples < 1:
            raise ValueError(f"resamples must be >= 1, got {self.resamples}")
        if self.seed < 0:
            raise ValueError(f"seed must be >= 0, got {self.seed}")

    def values(
        self, run: pl.DataFrame, documents: pl.DataFrame, dataset: Dataset, arms: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """One value a judged query and measure: rows arm, query_id, measure, value.

        Args:
            run: arm, query_id, document_id, rank (1-based), best first within arm and query.
            documents: workspace_id, document_id, source_message_ids, tokens (by the estimator that all reports share).
            arms: those that were run, also if they returned nothing; None = those in `run`.
        """
        workspace = workspace_of_query(dataset)
        sessions = session_of_message(dataset)
        of_message = ["workspace_id", "message_id"]
        qrels = dataset.qrels.filter(pl.col("relevance") > 0)
        through_messages = qrels.join(workspace, on="query_id").join(sessions, on=of_message)
        session_qrels = pl.concat(
            [
                through_messages.select("query_id", "session_id", "relevance"),
                dataset.session_qrels.filter(pl.col("relevance") > 0),
            ]
        )
        judgements = {
            "message": qrels.select("query_id", "relevance", unit="message_id"),
            "session": session_qrels.group_by("query_id", unit="session_id").agg(pl.col("relevance").max()),
        }
        judged = {
            "message": qrels.select("query_id").unique(maintain_order=True),
            "session": judged_queries(dataset),
        }
        ranked = (
            run.select("arm", "query_id", "document_id", "rank")
            .join(judged["session"], on="query_id", how="semi", maintain_order="left")
            .join(workspace, on="query_id", how="left", maintain_order="left")
        )
        covers = (
            documents.select("workspace_id", "document_id", message_id="source_message_ids")
            .explode("message_id")
            .join(sessions, on=of_message, how="left", maintain_order="left")
        )
        frames = []
        for arm in run["arm"].unique(maintain_order=True) if arms is None else arms:
            of_arm = ranked.filter(arm=arm)
            covered = of_arm.join(
                covers, on=["workspace_id", "document_id"], how="left", maintain_order="left_right"
            ).rename({"message_id": "message", "session_id": "session"})
            for level in self.levels:
                units = _units(covered, level, judged[level])
                frames += self._level(arm, level, units, judgements[level], judged[level])
            frames += self._tokens(arm, of_arm, documents, judged["session"])
        return pl.concat([pl.DataFrame(schema=VALUES_SCHEMA), *frames])

    def means(self, values: pl.DataFrame, dataset: Dataset) -> pl.DataFrame:
        """Means with intervals: rows arm, group, measure, value, n, low, high.

        A group is `all`, a category, or a set of categories that the dataset names. A measure that judges none of a
        group's queries has no row there.
        """
        category = {query.query_id: query.category for query in dataset.queries}
        categories = list(dict.fromkeys(category.values()))
        groups = {"all": set(categories)} | {name: set(members) for name, members in dataset.groups.items()}
        groups |= {name: {name} for name in categories if len(categories) > 1}
        # Every arm and measure is a column over the queries; one draw of queries serves all that judge the same ones.
        columns = values.select("arm", "measure").unique(maintain_order=True)
        wide = values.pivot(["arm", "measure"], index="query_id", values="value", maintain_order=True)
        asked = wide["query_id"].replace_strict(category, return_dtype=pl.String)
        frames = [pl.DataFrame(schema=MEANS_SCHEMA)]
        for group, members in groups.items():
            table = wide.filter(asked.is_in(list(members))).drop("query_id").to_numpy()
            judged = ~np.isnan(table)
            means = np.full((3, len(columns)), np.nan)
            for queries in {column.tobytes(): column for column in judged.T if column.any()}.values():
                same = (judged == queries[:, None]).all(axis=0)
                over = table[queries][:, same]
                low, high = bootstrap_means(over, self.resamples, self.confidence, self.seed)
                means[:, same] = over.mean(axis=0), low, high
            frames.append(
                columns.with_columns(
                    pl.lit(group).alias("group"),
                    *(pl.Series(name, row) for name, row in zip(("value", "low", "high"), means, strict=True)),
                    n=pl.Series(judged.sum(axis=0), dtype=pl.Int64),
                )
                .filter(pl.col("n") > 0)
                .select(list(MEANS_SCHEMA))
            )
        position = {arm: i for i, arm in enumerate(columns["arm"].unique(maintain_order=True))}
        return pl.concat(frames).sort(pl.col("arm").replace_strict(position), maintain_order=True)

    def _level(
        self, arm: str, level: Level, units: pl.DataFrame, qrels: pl.DataFrame, judged: pl.DataFrame
    ) -> list[pl.DataFrame]:
        cut_on = "rank" if level == "message" else "position"
        prefix = "" if level == "message" else "session."
        frames = []
        by_cutoff: dict[int | None, list[str]] = {}
        for name in self.names:
            kind, _, k = name.partition("@")
            if kind == "nDCG_longmemeval":
                frames.append(_column(arm, prefix + name, _ndcg_longmemeval(int(k), qrels, units), judged))
            elif kind != "tokens":
                by_cutoff.setdefault(int(k) if k and kind.startswith("recall") else None, []).append(name)
        for cutoff, names in by_cutoff.items():
            kept = units if cutoff is None else units.filter(pl.col(cut_on) <= cutoff)
            wanted = {name: _ir_measure(name) for name in names}
            scores = _calculate(set(wanted.values()), qrels, kept)
            for name, measure in wanted.items():
                column = _column(arm, prefix + name, scores.filter(measure=str(measure)), judged)
                if name.startswith("recall_all"):
                    column = column.with_columns(value=(pl.col("value") == 1.0).cast(pl.Float64))
                elif name.startswith("recall_any"):
                    column = column.with_columns(value=(pl.col("value") > 0.0).cast(pl.Float64))
                frames.append(column)
        return frames

    def _tokens(self, arm: str, run: pl.DataFrame, documents: pl.DataFrame, judged: pl.DataFrame) -> list[pl.DataFrame]:
        sized = run.join(documents, on=["workspace_id", "document_id"], how="left")
        frames = []
        for name in self.names:
            kind, _, k = name.partition("@")
            if kind == "tokens":
                kept = sized.filter(pl.col("rank") <= int(k)) if k else sized
                totals = kept.group_by("query_id").agg(value=pl.col("tokens").sum().cast(pl.Float64))
                frames.append(_column(arm, name, totals, judged))
        return frames


def judged_queries(dataset: Dataset) -> pl.DataFrame:
    """The column query_id: every query with evidence, be it known by message or by session."""
    return (
        pl.concat([qrels.select("query_id", "relevance") for qrels in (dataset.qrels, dataset.session_qrels)])
        .filter(pl.col("relevance") > 0)
        .select("query_id")
        .unique(maintain_order=True)
    )


def workspace_of_query(dataset: Dataset) -> pl.DataFrame:
    """Columns query_id, workspace_id."""
    rows = [(query.query_id, query.workspace_id) for query in dataset.queries]
    return pl.DataFrame(rows, schema={"query_id": pl.String, "workspace_id": pl.String}, orient="row")


def session_of_message(dataset: Dataset) -> pl.DataFrame:
    """Columns workspace_id, message_id, session_id."""
    return pl.DataFrame(
        [
            (transcript.workspace_id, message.message_id, message.session_id)
            for transcript in dataset.transcripts
            for message in transcript.messages
        ],
        schema={"workspace_id": pl.String, "message_id": pl.String, "session_id": pl.String},
        orient="row",
    )


def _units(covered: pl.DataFrame, level: Level, judged: pl.DataFrame) -> pl.DataFrame:
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


def _column(arm: str, measure: str, found: pl.DataFrame, judged: pl.DataFrame) -> pl.DataFrame:
    """One measure as rows arm, query_id, measure, value; 0 for a judged query of which nothing was found."""
    return judged.join(found, on="query_id", how="left", maintain_order="left").select(
        arm=pl.lit(arm),
        query_id="query_id",
        measure=pl.lit(measure),
        value=pl.col("value").fill_null(0.0),
    )


def _ir_measure(name: str) -> Measure:
    """Ours to theirs; a recall's cutoff counts documents and is applied to the run beforehand."""
    kind, _, k = name.partition("@")
    match kind:
        case "recall" | "recall_any" | "recall_all":  # the latter two: whether it is above 0, and whether it is 1
            return R @ _EVERYTHING
        case "nDCG":
            return nDCG @ int(k)
        case "MRR":
            return RR
        case _:
            return AP


def _calculate(measures: set[Measure], qrels: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    """Rows query_id, measure, value, by ir-measures."""
    judgements = _nested(qrels, pl.col("relevance"))
    ranking = _nested(units, -pl.col("position").cast(pl.Float64))
    asked: list[Measure] = []
    names: list[str] = []
    rows = []
    for metric in ir_measures.iter_calc(list(measures), judgements, ranking):
        place = next((i for i, measure in enumerate(asked) if measure is metric.measure), len(asked))
        if place == len(asked):  # a measure writes its name anew each time, which takes as long as measuring
            asked.append(metric.measure)
            names.append(str(metric.measure))
        rows.append((metric.query_id, names[place], float(metric.value)))
    return pl.DataFrame(rows, schema={"query_id": pl.String, "measure": pl.String, "value": pl.Float64}, orient="row")


def _nested(frame: pl.DataFrame, value: pl.Expr) -> dict[str, dict[str, Any]]:
    """query_id -> unit -> value."""
    grouped = frame.group_by("query_id", maintain_order=True).agg("unit", value.alias("value"))
    return {query_id: dict(zip(units, values, strict=True)) for query_id, units, values in grouped.iter_rows()}


def _ndcg_longmemeval(k: int, qrels: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    """Rows query_id, value: DCG = rel_1 + rel_2 + rel_3 / log2(3) + ... + rel_k / log2(k), over that of the ideal.

    Relevance is 0 or 1. A position weighs 1 / log2(position) where trec_eval takes 1 / log2(position + 1); the first
    weighs 1.
    Source: LongMemEval, src/retrieval/eval_utils.py, commit 6a92d1a.
    """
    weights = pl.DataFrame({"position": range(1, k + 1)}, schema={"position": pl.Int64}).with_columns(
        weight=1 / pl.col("position").log(2).clip(lower_bound=1)
    )
    weights = weights.with_columns(ideal=pl.col("weight").cum_sum())
    gains = (
        units.join(qrels, on=["query_id", "unit"], how="semi")
        .join(weights, on="position")
        .group_by("query_id")
        .agg(pl.col("weight").sort(descending=True).sum())
    )
    judged = qrels.group_by("query_id").agg(position=pl.len().cast(pl.Int64).clip(upper_bound=k))
    return gains.join(judged.join(weights.drop("weight"), on="position"), on="query_id").select(
        "query_id", value=pl.col("weight") / pl.col("ideal")
    )
