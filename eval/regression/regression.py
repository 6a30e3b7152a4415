"""Has a candidate become worse than a baseline, on the same queries?"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from eval.regression.agreement import require_comparable, unknown_settings
from eval.regression.comparison import ALL, ROW_SCHEMA, Comparison, Verdict, group_of
from eval.regression.limit import limit_of
from eval.regression.side import Side
from eval.regression.worse_query import worse_queries
from eval.significance import bootstrap_means, holm, least_p_value, sign_flip_p_values
from lcm.checks import check_choice, check_range
from lcm.errors import LcmError

_Floats = npt.NDArray[np.float64]


def _limits() -> dict[str, dict[str, float | str]]:
    return {
        "recall@10": {"tolerance": 0.01, "detectable": 0.05},
        "nDCG@10": {"tolerance": 0.01, "detectable": 0.05},
        "session.recall@5": {"tolerance": 0.01, "detectable": 0.05},
        "tokens@10": {"tolerance": "10%", "detectable": "25%"},
    }


@dataclass(frozen=True, slots=True)
class Regression:
    """Judges a candidate against a baseline: which measures count, and by what limits.

    A row is a measure in a group of queries: all of them, or one category. With d the mean of candidate minus baseline,
    turned so that more is better, a row is

    - `regressed` if the permutation test, corrected over all rows by Holm, has p < alpha, and d < -tolerance;
    - else `could not tell` if the interval of d goes below -detectable, if fewer than `least_queries` were judged and
      any of them changed, or if d < -tolerance and the test could not have found that whatever it was;
    - else `fine`.

    The whole is regressed if any row is, else it could not be told if that holds of a row over all queries, else fine.
    A small category alone can therefore fail a candidate, but not leave it undecided.
    """

    measures: Mapping[str, Mapping[str, float | str] | None] = field(default_factory=_limits)
    """Measure -> its `tolerance` and `detectable`, in its units or as a share of the baseline's mean; null leaves it
    out. A measure that neither run has is passed over."""
    alpha: float = 0.05
    resamples: int = 10_000
    confidence: float = 0.95
    seed: int = 0
    cluster: Literal["none", "workspace"] = "none"
    """What is drawn and swapped as one: each query, or all queries of a workspace."""
    by_category: bool = True
    least_queries: int = 10
    worst_queries: int = 10
    depth: int = 10
    """Ranks of them that are shown."""

    def __post_init__(self) -> None:
        if not self._judged():
            raise ValueError("measures must name at least one measure")
        for measure, settings in self._judged().items():
            limit_of(measure, settings)
        check_range(self, "alpha", "confidence", gt=0, lt=1)
        if self.resamples < 1 / self.alpha:
            raise ValueError(f"resamples must be >= 1 / alpha = {1 / self.alpha:g}, got {self.resamples}")
        check_range(self, "seed", "worst_queries", ge=0)
        check_range(self, "least_queries", ge=2)
        check_range(self, "depth", ge=1)
        check_choice(self, cluster=("none", "workspace"))

    def compare(self, baseline: Side, candidate: Side) -> Comparison:
        """Judge every row.

        Raises:
            LcmError: if the two cannot be compared, or the draws are too few for so many tests.
        """
        measures = require_comparable(baseline, candidate, list(self._judged()))
        queries = baseline.queries
        before, after = (_table(side, queries, measures) for side in (baseline, candidate))
        directions = {**baseline.directions, **candidate.directions}
        costs = frozenset(measure for measure in measures if directions[measure] == "lower")
        rows = self._judge(queries, measures, costs, before, after)
        left_out = [measure for measure in self._judged() if measure not in measures]
        return Comparison(
            baseline=baseline,
            candidate=candidate,
            rows=rows,
            verdict=_whole(rows),
            worse=worse_queries(baseline, candidate, measures, costs, self.worst_queries, self.depth),
            left_out=tuple(left_out),
            costs=costs,
            unknown=tuple(unknown_settings(baseline, candidate)),
            alpha=self.alpha,
            confidence=self.confidence,
        )

    def _judged(self) -> dict[str, Mapping[str, float | str]]:
        named = {name.replace("_at_", "@"): settings for name, settings in self.measures.items()}
        return {name: settings for name, settings in named.items() if settings is not None}

    def _judge(
        self,
        queries: pl.DataFrame,
        measures: Sequence[str],
        costs: Collection[str],
        before: _Floats,
        after: _Floats,
    ) -> pl.DataFrame:
        """The rows of ROW_SCHEMA; `before` and `after` have a row for each query and a column for each measure."""
        asked = queries["category"].to_numpy()
        names = queries["category"].unique(maintain_order=True).to_list() if self.by_category else []
        groups = {ALL: np.ones(len(queries), dtype=bool)}
        groups |= {group_of(name): asked == name for name in names if len(names) > 1}
        clusters = queries["workspace_id"].rank("dense").cast(pl.Int64).to_numpy() if self.cluster != "none" else None
        found = []
        for group, members in groups.items():
            of_group = None if clusters is None else clusters[members]
            found += self._group(group, measures, before[members], after[members], of_group)
        rows = pl.DataFrame(found, schema=ROW_SCHEMA, orient="row", strict=False).with_columns(
            lower_is_better=pl.col("measure").is_in(list(costs))
        )
        rows = rows.with_columns(
            p_holm=pl.Series(holm(rows["p"].to_numpy())).fill_nan(None), p=pl.col("p").fill_nan(None)
        )
        tests = rows["p"].count()
        if tests / (1 + self.resamples) >= self.alpha:
            raise LcmError(
                f"regress.resamples={self.resamples} is too few: with {tests} tests, Holm's correction asks for at "
                f"least {math.ceil(tests / self.alpha)}"
            )
        verdicts = [self._verdict(row, tests) for row in rows.iter_rows(named=True)]
        return rows.with_columns(verdict=pl.Series(verdicts, dtype=pl.String))

    def _group(
        self,
        group: str,
        measures: Sequence[str],
        before: _Floats,
        after: _Floats,
        clusters: npt.NDArray[np.int64] | None,
    ) -> list[dict[str, object]]:
        differences = after - before
        judged = ~np.isnan(differences)
        p_values = sign_flip_p_values(np.where(judged, differences, 0.0), self.resamples, self.seed, clusters)
        low, high = self._intervals(differences, judged, clusters)
        rows: list[dict[str, object]] = []
        for i, measure in enumerate(measures):
            of = judged[:, i]
            if not of.any():
                continue
            d = differences[of, i]
            mean = float(before[of, i].mean())
            tolerance, detectable = limit_of(measure, self._judged()[measure]).in_units(mean)
            enough = len(d) >= self.least_queries
            rows.append(
                {
                    "group": group,
                    "measure": measure,
                    "n": len(d),
                    "units": len(d) if clusters is None else len(np.unique(clusters[of])),
                    "changed": int((d != 0).sum()),
                    "baseline": mean,
                    "candidate": float(after[of, i].mean()),
                    "difference": float(d.mean()),
                    "low": None if np.isnan(low[i]) else float(low[i]),
                    "high": None if np.isnan(high[i]) else float(high[i]),
                    "p": float(p_values[i]) if enough else float("nan"),
                    "tolerance": tolerance,
                    "detectable": detectable,
                }
            )
        return rows

    def _intervals(
        self, differences: _Floats, judged: npt.NDArray[np.bool_], clusters: npt.NDArray[np.int64] | None
    ) -> tuple[_Floats, _Floats]:
        """One draw of queries serves all measures that judge the same ones."""
        low, high = np.full(judged.shape[1], np.nan), np.full(judged.shape[1], np.nan)
        for queries in {column.tobytes(): column for column in judged.T if column.any()}.values():
            same = (judged == queries[:, None]).all(axis=0)
            drawn = None if clusters is None else clusters[queries]
            low[same], high[same] = bootstrap_means(
                differences[queries][:, same], self.resamples, self.confidence, self.seed, drawn
            )
        return low, high

    def _verdict(self, row: Mapping[str, Any], tests: int) -> Verdict:
        if row["changed"] == 0:
            return "fine"
        sign = -1 if row["lower_is_better"] else 1
        is_worse = sign * row["difference"] < -row["tolerance"]
        if is_worse and row["p_holm"] is not None and row["p_holm"] < self.alpha:
            return "regressed"
        # Holm's first step asks the most of a test; what cannot reach that might be missed however bad it is.
        is_testable = (
            row["n"] >= self.least_queries and least_p_value(row["units"], self.resamples) * tests < self.alpha
        )
        worst = row["high"] if row["lower_is_better"] else row["low"]
        if worst is None or sign * worst < -row["detectable"] or (is_worse and not is_testable):
            return "could not tell"
        return "fine" if row["n"] >= self.least_queries else "could not tell"


def _table(side: Side, queries: pl.DataFrame, measures: Sequence[str]) -> _Floats:
    """The values of a side, shape (queries, measures), NaN where a measure does not judge a query."""
    wide = side.values.filter(pl.col("measure").is_in(list(measures))).pivot(
        "measure", index="query_id", values="value", maintain_order=True
    )
    aligned = queries.select("query_id").join(wide, on="query_id", how="left", maintain_order="left")
    return aligned.select(pl.col(measure).fill_null(float("nan")) for measure in measures).to_numpy()


def _whole(rows: pl.DataFrame) -> Verdict:
    if (rows["verdict"] == "regressed").any():
        return "regressed"
    if (rows.filter(group=ALL)["verdict"] == "could not tell").any():
        return "could not tell"
    return "fine"
