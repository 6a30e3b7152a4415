"""What a comparison of two runs found."""

import re
from dataclasses import dataclass
from typing import Literal

import polars as pl

from eval.regression.side import Side
from eval.regression.worse_query import WorseQuery

Verdict = Literal["fine", "regressed", "could not tell"]
EXIT_CODES: dict[Verdict, int] = {"fine": 0, "regressed": 1, "could not tell": 2}
ALL = "all"
_TAKEN = re.compile("(category )*all")

ROW_SCHEMA: dict[str, pl.DataType] = {
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
    "tolerance": pl.Float64(),
    "detectable": pl.Float64(),
    "verdict": pl.String(),
}


def group_of(category: str) -> str:
    """The name of a category among the groups: its own, unless it could be taken for all queries (`category all`)."""
    return f"category {category}" if _TAKEN.fullmatch(category) else category


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict on a candidate against a baseline, and the rows that it rests on."""

    baseline: Side
    candidate: Side
    rows: pl.DataFrame
    """One a group and measure: n queries judged, how many `units` they are for the statistics (workspaces, where these
    are drawn as one), `changed` of them with another value, the means of both sides, their difference (candidate minus
    baseline) with its interval, p before and after Holm's correction (null: too few queries to test), the limits in the
    measure's units, the verdict."""
    verdict: Verdict
    worse: tuple[WorseQuery, ...]
    """Worst first."""
    left_out: tuple[str, ...]
    """Measures that neither run has."""
    costs: frozenset[str]
    """The measures of which less is better."""
    unknown: tuple[str, ...]
    """Settings that may differ, for the configuration of a side does not tell them."""
    alpha: float
    confidence: float

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.verdict]
