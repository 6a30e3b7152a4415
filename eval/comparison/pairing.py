"""Runs held against a baseline, query by query: what they must agree in, differences, tests, a word."""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from eval.measures.means import ALL
from eval.measures.measure import is_timing
from eval.measures.names import RANKING_MEASURES, REPAIRED, kind_of
from eval.run import Run
from eval.significance import bootstrap_means, holm, least_p_value, sign_flip_p_values
from lcm.checks import check_choice, check_range
from lcm.errors import LcmError

MEASURES = "measures"
SETTINGS = ("replay", MEASURES)
"""Groups of the configuration that decide what a number means; what of the dataset does is in its digest."""
_FREE = ("measures.retrieval.names", "measures.retention.budgets")
"""Of these groups, what decides which measures there are but changes no value; so do measures of time."""
_ALIKE = "evaluate both alike"
_AGAIN = "run `lcm evaluate` again with this lcm"
_OF_MEASURES = "measure definitions"
_IDENTITY = ("query_id", "text", "evidence")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Something that two runs were not made alike in."""

    what: str
    baseline: object
    candidate: object

    @property
    def is_of_measures(self) -> bool:
        """Whether one and the same question got numbers that do not mean the same."""
        return self.what == _OF_MEASURES or self.what.startswith(f"{MEASURES}.")

    def told(self, baseline: str = "baseline", candidate: str = "candidate") -> str:
        return f"different {self.what}: {baseline} {_short(self.baseline)}, {candidate} {_short(self.candidate)}"


def comparable(folder: Path, name: str) -> Run:
    """A run whose numbers can be held against those of others, its values read.

    Raises:
        LcmError: if it is no run, was written before runs could be compared, or a file is missing or damaged.
    """
    run = Run.open(folder, name)
    if "definitions" not in run.summary:
        raise LcmError(f"{run.name} does not say by which definitions its measures were made: {_AGAIN}")
    assert run.values.width and run.queries.width, "what is missing or damaged is told now"
    return run


def disagreements(baseline: Run, candidate: Run) -> Iterator[Disagreement]:
    """What two runs were not made alike in, as far as both say it."""
    ours, theirs = baseline.summary["dataset"], candidate.summary["dataset"]
    told = [
        ("dataset", ours["name"], theirs["name"]),
        ("protocol", ours["protocol"], theirs["protocol"]),
        ("dataset digest", ours["digest"], theirs["digest"]),
        (_OF_MEASURES, baseline.summary["definitions"], candidate.summary["definitions"]),
        *_told_settings(baseline.config, candidate.config),
    ]
    return _differing(told)


def shared_queries(sides: Sequence[Run]) -> pl.DataFrame:
    """The queries of the first side that all others were asked, too: alike in id, words and evidence."""
    asked = [
        {
            (one, text, tuple(sorted(evidence or ())))
            for one, text, evidence in side.queries.select(_IDENTITY).iter_rows()
        }
        for side in sides
    ]
    shared = {query_id for query_id, *_ in set.intersection(*asked)}
    return sides[0].queries.filter(pl.col("query_id").is_in(list(shared)))


def require_comparable(baseline: Run, candidate: Run, measures: Sequence[str]) -> list[str]:
    """Refuse runs whose numbers do not mean the same.

    Returns:
        Of these, the ones that both sides have; one that neither has is left out.
    Raises:
        LcmError: naming what they differ in, and both values; or which has no number, and why.
    """
    for role, side in (("baseline", baseline), ("candidate", candidate)):
        if not side.measures:  # an external memory that did not run
            why = next((flag for flag in side.summary.get("flags", ()) if "no number" in flag), "its notes say why")
            raise LcmError(f"the {role} has no number to be compared by: {why}")
    _refuse(disagreements(baseline, candidate))
    _refuse(_differing([("levels", ", ".join(_levels(baseline)), ", ".join(_levels(candidate)))]))
    _require_same_queries("", *(set(side.queries["query_id"]) for side in (baseline, candidate)))
    known = [set(side.measures) for side in (baseline, candidate)]
    for measure in measures:
        if (measure in known[0]) != (measure in known[1]):
            only = "baseline" if measure in known[0] else "candidate"
            remedy = f"{_ALIKE}, or leave it out with regress.measures={{{measure}:null}}"
            raise LcmError(f"{measure} was measured of the {only} only: {remedy}")
    judged = [measure for measure in measures if measure in known[0]]
    if not judged:
        there = ", ".join(sorted(known[0] & known[1])) or "none"
        raise LcmError(f"neither run has any of {', '.join(measures)}: choose regress.measures from: {there}")
    told = {*baseline.directions, *candidate.directions}
    if untold := next((measure for measure in judged if measure not in told), None):
        raise LcmError(
            f"neither run says whether more or less of {untold} is better: evaluate one of them again with this lcm"
        )
    for measure in judged:
        ours, theirs = (set(side.values.filter(measure=measure)["query_id"]) for side in (baseline, candidate))
        may_lack = [bool(side.of_external) for side in (baseline, candidate)]
        if not (ours & theirs and (may_lack[0] or theirs <= ours) and (may_lack[1] or ours <= theirs)):
            _require_same_queries(f"{measure} of ", ours, theirs)
    return judged


def require_same_settings(baseline: Mapping[str, Any], candidate: Mapping[str, Any]) -> None:
    """Refuse configurations that measure otherwise, as far as both of them say how.

    Raises:
        LcmError: naming the first key that differs, and both values.
    """
    _refuse(_differing(_told_settings(baseline, candidate)))


def unknown_settings(baseline: Run, candidate: Run) -> list[str]:
    """The settings that may differ unseen, for the `config.yaml` of a side is missing or does not have them."""
    configs = [side.config for side in (baseline, candidate)]
    groups = [group for group in SETTINGS if not all(_nodes(config, group) for config in configs)]
    ours, theirs = map(_settings, configs)
    places = _places(configs[0]).keys() & _places(configs[1]).keys()
    told = [f"{place}." for place in places if place.partition(".")[0] not in groups]
    return [*groups, *sorted(key for key in ours.keys() ^ theirs.keys() if key.startswith(tuple(told)))]


def _told_settings(baseline: Mapping[str, Any], candidate: Mapping[str, Any]) -> list[tuple[str, object, object]]:
    """Key and both values of each setting that both tell."""
    ours, theirs = _settings(baseline), _settings(candidate)
    return [(key, ours[key], theirs[key]) for key in ours if key in theirs]


def _levels(run: Run) -> list[str]:
    """At which levels retrieval was measured: some of message, session."""
    leveled = [name for name in run.measures if kind_of(name) in RANKING_MEASURES and not name.startswith("tokens")]
    return sorted({"session" if name.removeprefix(REPAIRED).startswith("session.") else "message" for name in leveled})


def _settings(config: Mapping[str, Any]) -> dict[str, object]:
    """By key; the class of a component stands under the component's own place."""
    found: dict[str, object] = {}
    for place, node in _places(config).items():
        for name, value in node.items():
            key = place if name == "_target_" else f"{place}.{name}"
            if key not in _FREE:
                found[key] = sorted(value) if name == "levels" else value
    return found


def _places(config: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    nodes = {place: node for group in SETTINGS for place, node in _nodes(config, group).items()}
    return {place: node for place, node in nodes.items() if not is_timing(node)}


def _nodes(config: Mapping[str, Any], group: str) -> dict[str, Mapping[str, Any]]:
    """The component of a group, or each of several, by its place; empty where the configuration does not tell."""
    node = config.get(group)
    if not isinstance(node, Mapping):
        return {}
    if group == MEASURES:  # one component is how they were kept once, the others beside it
        parts = {} if "_target_" in node else node
        return {f"{group}.{name}": part for name, part in parts.items() if isinstance(part, Mapping)}
    return {group: node}


def _differing(told: Iterable[tuple[str, object, object]]) -> Iterator[Disagreement]:
    return (Disagreement(*one) for one in told if one[1] != one[2])


def _refuse(found: Iterator[Disagreement]) -> None:
    if first := next(found, None):
        raise LcmError(f"{first.told()}; {_ALIKE}")


def _require_same_queries(what: str, ours: set[str], theirs: set[str]) -> None:
    if ours != theirs:
        raise LcmError(
            f"{what}{len(ours):,} queries of the baseline and {len(theirs):,} of the candidate: "
            f"{len(ours - theirs):,} are missing in the candidate and {len(theirs - ours):,} in the baseline, such as "
            f"{min(ours ^ theirs)}; {_ALIKE}"
        )


def _short(value: object) -> str:
    """A digest by its first digits; anything else as it is."""
    text = str(value)
    return text[:12] if len(text) == 64 and " " not in text else repr(value)


Verdict = Literal["better", "worse", "same", "cannot tell", "not tested"]
_TAKEN = re.compile("(category )*all")
_Floats = npt.NDArray[np.float64]

PAIRED_SCHEMA: dict[str, pl.DataType] = {
    "side": pl.Int64(),
    "group": pl.String(),
    "measure": pl.String(),
    "n": pl.Int64(),
    "units": pl.Int64(),
    "changed": pl.Int64(),
    "baseline": pl.Float64(),
    "candidate": pl.Float64(),
    "difference": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "p": pl.Float64(),
    "p_holm": pl.Float64(),
    "lower_is_better": pl.Boolean(),
    "verdict": pl.String(),
}
"""A row for each side, group of queries and measure: n queries judged by both, how many `units` they are for the
statistics (workspaces, where these are drawn as one), `changed` of them with another value, the means of both, their
difference (candidate minus baseline) with its interval, p before and after Holm's correction over its family
(null: not tested, or too few queries for it), the verdict."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """How sides are held against a baseline: the one way of it.

    A row is `better` or `worse` if the permutation test, corrected by Holm over its family, has p < alpha; `same` if no
    query has another value; else `cannot tell`, or `not tested`. The rows over all queries are a family, those of
    categories another. So the chance that any row of a family is called better or worse where nothing differs is below
    alpha, and a side may be chosen for its row without a further correction.
    """

    alpha: float = 0.05
    resamples: int = 10_000
    confidence: float = 0.95
    seed: int = 0
    cluster: Literal["none", "workspace"] = "none"
    """What is drawn and swapped as one: each query, or all queries of a workspace."""
    least_queries: int = 10
    """Fewer are not tested."""

    def __post_init__(self) -> None:
        check_range(self, "alpha", "confidence", gt=0, lt=1)
        if self.resamples < 1 / self.alpha:
            raise ValueError(f"resamples must be >= 1 / alpha = {1 / self.alpha:g}, got {self.resamples}")
        check_range(self, "seed", ge=0)
        check_range(self, "least_queries", ge=2)
        check_choice(self, cluster=("none", "workspace"))

    def rows(
        self,
        baseline: Run,
        candidates: Sequence[Run],
        measures: Sequence[str],
        queries: pl.DataFrame | None = None,
        *,
        by_category: bool = False,
        untested: Collection[str] = (),
    ) -> pl.DataFrame:
        """Rows of `PAIRED_SCHEMA`, `side` being the place among the candidates.

        Args:
            measures: one that the baseline and a candidate do not both have gives no row.
            queries: those of the baseline that are compared; None = all.
            untested: of the measures those that are told without a test, and ask nothing of the others.
        Raises:
            LcmError: if the draws are too few for so many tests.
        """
        asked = baseline.queries if queries is None else queries
        costs = {name for side in (baseline, *candidates) for name, way in side.directions.items() if way == "lower"}
        before = _table(baseline, asked, measures)
        after = [_table(side, asked, measures) for side in candidates]
        clusters = self.clusters(asked)
        found: list[dict[str, object]] = []
        for group, members in _groups(asked, by_category=by_category).items():
            of_group = None if clusters is None else clusters[members]
            found += self._group(group, measures, before[members], [one[members] for one in after], of_group)
        rows = pl.DataFrame(found, schema=PAIRED_SCHEMA, orient="row", strict=False).with_columns(
            lower_is_better=pl.col("measure").is_in(list(costs)),
            p=pl.when(pl.col("measure").is_in(list(untested))).then(float("nan")).otherwise(pl.col("p")),
        )
        rows = rows.with_columns(
            p_holm=pl.Series(self._corrected(rows), dtype=pl.Float64).fill_nan(None), p=pl.col("p").fill_nan(None)
        )
        verdicts = [self._verdict(row, is_tested=row["measure"] not in untested) for row in rows.iter_rows(named=True)]
        return rows.with_columns(verdict=pl.Series(verdicts, dtype=pl.String))

    def means(self, side: Run, queries: pl.DataFrame, measures: Sequence[str]) -> dict[str, dict[str, float | None]]:
        """The means of a side over some queries, by measure: value, n, low, high."""
        table = _table(side, queries, measures)
        low, high = self._intervals(table, ~np.isnan(table), self.clusters(queries))
        told = {}
        for i, measure in enumerate(measures):
            values = table[:, i][~np.isnan(table[:, i])]
            if len(values):
                ends = {"low": low[i], "high": high[i]}
                bounds = {name: None if np.isnan(end) else float(end) for name, end in ends.items()}
                told[measure] = {"value": float(values.mean()), "n": len(values), **bounds}
        return told

    def untold(self, rows: pl.DataFrame) -> str | None:
        """Why no row could be told better or worse, however much its sides differ: too few units for so many tests;
        None where one could.
        """
        tested = rows.filter(pl.col("p").is_not_null())
        if tested.is_empty():
            return None
        units, tests = int(tested["units"].max()), len(tested)  # type: ignore[arg-type]
        least = least_p_value(units, self.resamples)
        if least * tests < self.alpha:
            return None
        of = "questions" if self.cluster == "none" else "workspaces (cluster=workspace)"
        return (
            f"{units} {of} can tell nothing: the least p of so few is {least:.2g}, and corrected for {tests} tests "
            f"{min(1.0, least * tests):.2g}; name fewer measures, or draw single questions"
        )

    def clusters(self, queries: pl.DataFrame) -> npt.NDArray[np.int64] | None:
        """The number of the cluster that each query is drawn with, shape (queries,); None = each is drawn by itself."""
        if self.cluster == "none":
            return None
        return queries["workspace_id"].rank("dense").cast(pl.Int64).to_numpy()

    def _group(
        self,
        group: str,
        measures: Sequence[str],
        before: _Floats,
        after: Sequence[_Floats],
        clusters: npt.NDArray[np.int64] | None,
    ) -> Iterator[dict[str, object]]:
        """The rows of a group but for what is corrected; columns of sides stand side by side, so that all share the
        draws."""
        values, base = np.hstack(after), np.hstack([before] * len(after))
        differences = values - base
        judged = ~np.isnan(differences)
        p_values = sign_flip_p_values(np.where(judged, differences, 0.0), self.resamples, self.seed, clusters)
        low, high = self._intervals(differences, judged, clusters)
        for i in range(differences.shape[1]):
            of = judged[:, i]
            if not of.any():
                continue
            d = differences[of, i]
            yield {
                "side": i // len(measures),
                "group": group,
                "measure": measures[i % len(measures)],
                "n": len(d),
                "units": len(d) if clusters is None else len(np.unique(clusters[of])),
                "changed": int((d != 0).sum()),
                "baseline": float(base[of, i].mean()),
                "candidate": float(values[of, i].mean()),
                "difference": float(d.mean()),
                "low": None if np.isnan(low[i]) else float(low[i]),
                "high": None if np.isnan(high[i]) else float(high[i]),
                "p": float(p_values[i]) if len(d) >= self.least_queries else float("nan"),
            }

    def _intervals(
        self, values: _Floats, judged: npt.NDArray[np.bool_], clusters: npt.NDArray[np.int64] | None
    ) -> tuple[_Floats, _Floats]:
        """One draw of queries serves all columns that judge the same ones."""
        low, high = np.full(judged.shape[1], np.nan), np.full(judged.shape[1], np.nan)
        for queries in {column.tobytes(): column for column in judged.T if column.any()}.values():
            same = (judged == queries[:, None]).all(axis=0)
            drawn = None if clusters is None else clusters[queries]
            low[same], high[same] = bootstrap_means(
                values[queries][:, same], self.resamples, self.confidence, self.seed, drawn
            )
        return low, high

    def _corrected(self, rows: pl.DataFrame) -> _Floats:
        """Holm's correction of p, over the rows of each family.

        Raises:
            LcmError: if the draws are too few for so many tests.
        """
        p_values, is_whole = rows["p"].to_numpy(), rows["group"].to_numpy() == ALL
        corrected = np.full(len(rows), np.nan)
        for family in (is_whole, ~is_whole):
            tests = int((~np.isnan(p_values[family])).sum())
            if tests / (1 + self.resamples) >= self.alpha:
                raise LcmError(
                    f"resamples={self.resamples} is too few: with {tests} tests, Holm's correction asks for at "
                    f"least {math.ceil(tests / self.alpha)}"
                )
            corrected[family] = holm(p_values[family])
        return corrected

    def _verdict(self, row: Mapping[str, Any], *, is_tested: bool) -> Verdict:
        if row["changed"] == 0:
            return "same"
        if not is_tested:
            return "not tested"
        if row["p_holm"] is None or row["p_holm"] >= self.alpha:
            return "cannot tell"
        return "better" if (row["difference"] < 0) == row["lower_is_better"] else "worse"


def group_of(category: str) -> str:
    """The name of a category among the groups: its own, unless it could be taken for all queries (`category all`)."""
    return f"category {category}" if _TAKEN.fullmatch(category) else category


def _groups(queries: pl.DataFrame, *, by_category: bool) -> dict[str, npt.NDArray[np.bool_]]:
    asked = queries["category"].to_numpy()
    names = queries["category"].unique(maintain_order=True).to_list() if by_category else []
    every = {ALL: np.ones(len(queries), dtype=bool)}
    return every | {group_of(name): asked == name for name in names if len(names) > 1}


def _table(side: Run, queries: pl.DataFrame, measures: Sequence[str]) -> _Floats:
    """The values of a side, shape (queries, measures), NaN where a measure does not judge a query."""
    told = side.values.filter(pl.col("measure").is_in(list(measures)))
    wide = told.pivot("measure", on_columns=list(measures), index="query_id", values="value", maintain_order=True)
    aligned = queries.select("query_id").join(wide, on="query_id", how="left", maintain_order="left")
    return aligned.select(pl.col(measure).cast(pl.Float64).fill_null(float("nan")) for measure in measures).to_numpy()
