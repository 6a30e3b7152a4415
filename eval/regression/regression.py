"""Has a candidate become worse than a baseline, on the same queries?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

from eval.comparison.agreement import require_comparable, unknown_settings
from eval.comparison.changed_query import changed_queries
from eval.comparison.pairing import Pairing
from eval.measures.means import ALL
from eval.regression.gate import GATED_SCHEMA, Gate, GatedComparison
from eval.regression.limit import limit_of
from eval.regression.unpaired import Unpaired, notes_of
from eval.run import Run
from eval.significance import least_p_value
from lcm.checks import check_range


def _limits() -> dict[str, dict[str, float | str]]:
    return {
        "recall@10": {"tolerance": 0.01, "detectable": 0.05},
        "nDCG@10": {"tolerance": 0.01, "detectable": 0.05},
        "session.recall@5": {"tolerance": 0.01, "detectable": 0.05},
    }


@dataclass(frozen=True, slots=True)
class Regression:
    """Judges a candidate against a baseline: which measures count, and by what limits.

    A row is a measure in a group of queries: all of them, or one category; what it says of better and worse is told by
    `Pairing`, of whose tests the gated rows over all queries are one family and those of categories another. The gate
    adds limits to a row. With d the mean of candidate minus baseline, turned so that more is better, a row is

    - `regressed` if the permutation test, corrected over its family by Holm, has p < alpha, and d < -tolerance;
    - else `cannot tell` if the interval of d goes below -detectable, if fewer than `least_queries` were judged and
      any of them changed, or if d < -tolerance and the test could not have found that whatever it was; over all queries
      also if those that the candidate, an external memory, leaves without a value could hide a loss of `detectable`;
    - else `fine`.

    The whole is regressed if any row is, else it cannot be told if that holds of a row over all queries, else fine.
    A small category alone can therefore fail a candidate, but not leave it undecided.
    """

    measures: Mapping[str, Mapping[str, float | str] | None] = field(default_factory=_limits)
    """Measure -> its `tolerance` and `detectable`, in its units or as a share of the baseline's mean; null leaves it
    out. A measure that neither run has is passed over."""
    told: Sequence[str] = ("tokens@10",)
    """Measures that are told beside those, without a test, and fail nothing: what a gain costs. Named with limits, one
    is gated."""
    alpha: float = 0.05
    resamples: int = 10_000
    confidence: float = 0.95
    seed: int = 0
    cluster: Literal["none", "workspace"] = "none"
    """What is drawn and swapped as one: each query, or all queries of a workspace."""
    by_category: bool = True
    least_queries: int = 10
    changed_queries: int = 10
    """Of those that got worse, and of those that got better, that are reported."""
    depth: int = 10
    """Ranks of them that are shown."""

    def __post_init__(self) -> None:
        if not self._gated():
            raise ValueError("measures must name at least one measure")
        for measure, settings in self._gated().items():
            limit_of(measure, settings)
        self._pairing()
        check_range(self, "changed_queries", ge=0)
        check_range(self, "depth", ge=1)

    def compare(self, baseline: Run, candidate: Run) -> GatedComparison:
        """Judge every row.

        Raises:
            LcmError: if the two cannot be compared, or the draws are too few for so many tests.
        """
        gated = require_comparable(baseline, candidate, list(self._gated()))
        known = set(baseline.measures) & set(candidate.measures) & {*baseline.directions, *candidate.directions}
        told = [name for name in self._told() if name in known]
        measures = [*gated, *told]
        rows = self._pairing().rows(baseline, [candidate], measures, by_category=self.by_category, untested=told)
        family = pl.col("group") == ALL
        tests = {is_whole: rows.filter(family if is_whole else ~family)["p"].count() for is_whole in (True, False)}
        unpaired = {measure: Unpaired.of(baseline, candidate, measure) for measure in measures}
        judged = [
            self._judged(row, tests[row["group"] == ALL], unpaired[row["measure"]])
            for row in rows.iter_rows(named=True)
        ]
        rows = pl.DataFrame(judged, schema=GATED_SCHEMA, orient="row")
        costs = frozenset(rows.filter("lower_is_better")["measure"])
        worse, better = changed_queries(baseline, candidate, measures, costs, self.changed_queries, self.depth)
        return GatedComparison(
            baseline=baseline,
            candidate=candidate,
            rows=rows,
            gate=_whole(rows),
            worse=worse,
            better=better,
            left_out=tuple(name for name in (*self._gated(), *self._told()) if name not in measures),
            costs=costs,
            unknown=tuple(unknown_settings(baseline, candidate)),
            alpha=self.alpha,
            confidence=self.confidence,
            notes=tuple(notes_of(unpaired)),
        )

    def _pairing(self) -> Pairing:
        return Pairing(self.alpha, self.resamples, self.confidence, self.seed, self.cluster, self.least_queries)

    def _gated(self) -> dict[str, Mapping[str, float | str]]:
        named = {name.replace("_at_", "@"): settings for name, settings in self.measures.items()}
        return {name: settings for name, settings in named.items() if settings is not None}

    def _told(self) -> list[str]:
        named = {name.replace("_at_", "@") for name in self.measures}
        return [name for name in self.told if name not in named]

    def _judged(self, row: Mapping[str, Any], tests: int, unpaired: Unpaired) -> dict[str, Any]:
        """A paired row, with its limits and what the gate says.

        Args:
            tests: in the row's family.
        """
        settings = self._gated().get(row["measure"])
        if settings is None:
            return {**row, "tolerance": None, "detectable": None, "gate": None}
        tolerance, detectable = limit_of(row["measure"], settings).in_units(row["baseline"])
        limited = {**row, "tolerance": tolerance, "detectable": detectable}
        gate = self._gate(limited, tests)
        if gate == "fine" and row["group"] == ALL and unpaired.may_hide(row["n"]) > detectable:
            gate = "cannot tell"
        return {**limited, "gate": gate}

    def _gate(self, row: Mapping[str, Any], tests: int) -> Gate:
        if row["changed"] == 0:
            return "fine"
        sign = -1 if row["lower_is_better"] else 1
        is_beyond = sign * row["difference"] < -row["tolerance"]
        if is_beyond and row["verdict"] == "worse":
            return "regressed"
        # Holm's first step asks the most of a test; what cannot reach that might be missed however bad it is.
        is_testable = (
            row["n"] >= self.least_queries and least_p_value(row["units"], self.resamples) * tests < self.alpha
        )
        worst = row["high"] if row["lower_is_better"] else row["low"]
        if worst is None or sign * worst < -row["detectable"] or (is_beyond and not is_testable):
            return "cannot tell"
        return "fine" if row["n"] >= self.least_queries else "cannot tell"


def _whole(rows: pl.DataFrame) -> Gate:
    if (rows["gate"] == "regressed").any():
        return "regressed"
    if (rows.filter(group=ALL)["gate"] == "cannot tell").any():
        return "cannot tell"
    return "fine"
