"""Retrieval measures, at the level of messages and of sessions.

A document covers the messages that it stands for. At message level a ranking of documents is read as a ranking of
messages: those of the first document, in order, then those of the second that are new, and so on.

- `recall@k`: the fraction of the relevant messages that the first k *documents* cover.
- `recall_any@k`: 1 if they cover at least one (a hit rate; some papers call this recall).
- `recall_all@k`: 1 if they cover all.
- `nDCG@k`: trec_eval's, over the first k *messages*.
- `MRR`, `MAP`: over the whole ranking, as deep as the run goes.
- `tokens@k`: the tokens of the first k documents: what that recall costs.

At session level (`session.recall@5`) a session stands where its first document stands, and k counts sessions.
Means are over the queries that have judgements; the others are counted, never averaged.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import ir_measures
import polars as pl
from ir_measures import AP, RR, Measure, R, nDCG

from eval.datasets.dataset import Dataset
from eval.significance import bootstrap_means

Level = Literal["message", "session"]
_NAME = re.compile(r"(recall|recall_any|recall_all|nDCG|tokens)@([1-9]\d*)|MRR|MAP")
_EVERYTHING = 1_000_000  # a cutoff beyond any run

DEFAULT_NAMES = (
    "recall@5", "recall@10", "recall_any@5", "recall_any@10", "recall_all@5", "recall_all@10",
    "nDCG@10", "MRR", "MAP", "tokens@5", "tokens@10",
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
                "nDCG@k, tokens@k (k >= 1), MRR, MAP"
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
        qrels = dataset.qrels.filter(pl.col("relevance") > 0)
        workspace = pl.DataFrame(
            [(query.query_id, query.workspace_id) for query in dataset.queries],
            schema={"query_id": pl.String, "workspace_id": pl.String},
            orient="row",
        )
        sessions = pl.DataFrame(
            [
                (transcript.workspace_id, message.message_id, message.session_id)
                for transcript in dataset.transcripts
                for message in transcript.messages
            ],
            schema={"workspace_id": pl.String, "message_id": pl.String, "session_id": pl.String},
            orient="row",
        )
        of_message = ["workspace_id", "message_id"]
        judged = qrels.select("query_id").unique(maintain_order=True)
        session_qrels = (
            qrels.join(workspace, on="query_id")
            .join(sessions, on=of_message)
            .group_by("query_id", unit="session_id", maintain_order=True)
            .agg(pl.col("relevance").max())
        )
        run = (
            run.select("arm", "query_id", "document_id", "rank")
            .join(judged, on="query_id", how="semi", maintain_order="left")
            .join(workspace, on="query_id", how="left", maintain_order="left")
        )
        covered = run.join(
            documents.select("workspace_id", "document_id", message_id="source_message_ids").explode("message_id"),
            on=["workspace_id", "document_id"],
            how="left",
            maintain_order="left_right",
        ).join(sessions, on=of_message, how="left", maintain_order="left")
        frames = []
        for arm in run["arm"].unique(maintain_order=True) if arms is None else arms:
            rows = covered.filter(arm=arm)
            for level in self.levels:
                if level == "message":
                    judgements, listed = qrels.rename({"message_id": "unit"}), rows.rename({"message_id": "unit"})
                else:
                    judgements, listed = session_qrels, rows.rename({"session_id": "unit"})
                frames += self._level(arm, level, listed, judgements, judged)
            frames += self._tokens(arm, run.filter(arm=arm), documents, judged)
        return pl.concat([pl.DataFrame(schema=VALUES_SCHEMA), *frames])

    def means(self, values: pl.DataFrame, dataset: Dataset) -> pl.DataFrame:
        """Means with intervals: rows arm, group, measure, value, n, low, high.

        A group is `all`, a category, or a set of categories that the dataset names.
        """
        category = {query.query_id: query.category for query in dataset.queries}
        categories = list(dict.fromkeys(category.values()))
        groups = {"all": set(categories)} | {name: set(members) for name, members in dataset.groups.items()}
        groups |= {name: {name} for name in categories if len(categories) > 1}
        # Every arm and measure is a column over the same queries, so that one draw of queries serves them all.
        columns = values.select("arm", "measure").unique(maintain_order=True)
        wide = values.pivot(["arm", "measure"], index="query_id", values="value", maintain_order=True)
        asked = wide["query_id"].replace_strict(category, return_dtype=pl.String)
        frames = [pl.DataFrame(schema=MEANS_SCHEMA)]
        for group, members in groups.items():
            table = wide.filter(asked.is_in(list(members))).drop("query_id").to_numpy()
            if len(table):
                low, high = bootstrap_means(table, self.resamples, self.confidence, self.seed)
                means = columns.with_columns(
                    group=pl.lit(group), value=table.mean(axis=0), n=pl.lit(len(table), pl.Int64), low=low, high=high
                )
                frames.append(means.select(list(MEANS_SCHEMA)))
        position = {arm: i for i, arm in enumerate(columns["arm"].unique(maintain_order=True))}
        return pl.concat(frames).sort(pl.col("arm").replace_strict(position), maintain_order=True)

    def _level(
        self, arm: str, level: Level, listed: pl.DataFrame, qrels: pl.DataFrame, judged: pl.DataFrame
    ) -> list[pl.DataFrame]:
        units = (
            listed.filter(pl.col("unit").is_not_null())
            .unique(["query_id", "unit"], keep="first", maintain_order=True)
            .with_columns(position=pl.int_range(1, pl.len() + 1).over("query_id"))
        )
        cut_on = "rank" if level == "message" else "position"
        prefix = "" if level == "message" else "session."
        by_cutoff: dict[int | None, list[str]] = {}
        for name in self.names:
            if not name.startswith("tokens"):
                kind, _, k = name.partition("@")
                by_cutoff.setdefault(int(k) if kind.startswith("recall") else None, []).append(name)
        frames = []
        for cutoff, names in by_cutoff.items():
            kept = units if cutoff is None else units.filter(pl.col(cut_on) <= cutoff)
            wanted = {name: _ir_measure(name) for name in names}
            scores = _calculate(set(wanted.values()), qrels, kept)
            for name, measure in wanted.items():
                column = judged.join(scores.filter(measure=str(measure)), on="query_id", how="left").select(
                    arm=pl.lit(arm),
                    query_id="query_id",
                    measure=pl.lit(prefix + name),
                    value=pl.col("value").fill_null(0.0),
                )
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
            if name.startswith("tokens@"):
                totals = (
                    sized.filter(pl.col("rank") <= int(name.partition("@")[2]))
                    .group_by("query_id")
                    .agg(pl.col("tokens").sum().cast(pl.Float64).alias("value"))
                )
                frames.append(
                    judged.join(totals, on="query_id", how="left").select(
                        arm=pl.lit(arm),
                        query_id="query_id",
                        measure=pl.lit(name),
                        value=pl.col("value").fill_null(0.0),
                    )
                )
        return frames


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
    judgements: dict[str, dict[str, int]] = {}
    for query_id, unit, relevance in qrels.select("query_id", "unit", "relevance").iter_rows():
        judgements.setdefault(query_id, {})[unit] = relevance
    ranking: dict[str, dict[str, float]] = {}
    for query_id, unit, position in units.select("query_id", "unit", "position").iter_rows():
        ranking.setdefault(query_id, {})[unit] = -float(position)
    rows = [
        (metric.query_id, str(metric.measure), float(metric.value))
        for metric in ir_measures.iter_calc(list(measures), judgements, ranking)
    ]
    return pl.DataFrame(rows, schema={"query_id": pl.String, "measure": pl.String, "value": pl.Float64}, orient="row")
