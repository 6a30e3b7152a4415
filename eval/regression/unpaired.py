"""Queries that only one side has a value of: an external memory left them unanswered, or unjudged."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import polars as pl

from eval.comparison.agreement import without_pair
from eval.run import Run


class Unpaired(NamedTuple):
    """What of a measure could not be paired."""

    of_baseline: int
    """Queries of which the candidate has no value."""
    of_candidate: int
    value: float
    """The sum of the baseline's values of those that the candidate lacks."""

    @classmethod
    def of(cls, baseline: Run, candidate: Run, measure: str) -> "Unpaired":
        ours, theirs = without_pair(baseline, candidate, measure)
        lacking = baseline.values.filter(pl.col("query_id").is_in(list(ours)), measure=measure)["value"]
        return cls(len(ours), len(theirs), float(lacking.sum()))

    def may_hide(self, paired: int) -> float:
        """The loss over all queries, if the candidate lost all that the baseline found for those that it lacks: no
        number of the candidate's, but what cannot be excluded."""
        return self.value / (paired + self.of_baseline)


def notes_of(unpaired: Mapping[str, Unpaired]) -> Iterator[str]:
    """What was left out, a line for the measures that lack the same."""
    by_numbers: dict[tuple[int, int], list[str]] = {}
    for measure, one in unpaired.items():
        if one.of_baseline or one.of_candidate:
            by_numbers.setdefault(one[:2], []).append(measure)
    for (of_baseline, of_candidate), measures in by_numbers.items():
        yield (
            f"{', '.join(measures)}: left out are {of_baseline:,} queries of which the candidate has no value, and "
            f"{of_candidate:,} of which the baseline has none; they count for neither, and not as 0"
        )
