"""Numbers and sentences that every report of a comparison uses."""

from collections.abc import Mapping
from typing import Any

from eval.regression.comparison import ALL, Comparison
from eval.regression.limit import is_lower_better
from eval.regression.worse_query import WorseQuery

_EXPLAINED = {
    "fine": "Nothing is worse than tolerated beyond chance; over all queries, a loss to be detected can be excluded.",
    "regressed": "The candidate is worse than its tolerance, beyond chance.",
    "could not tell": "Too few queries, or too varied ones: a loss that must be detected cannot be excluded.",
}


def headline(comparison: Comparison) -> str:
    """The verdict in a sentence."""
    return _EXPLAINED[comparison.verdict]


def number(value: float | None, measure: str) -> str:
    """Shares to three places, costs to one; `-` where there is none."""
    if value is None:
        return "-"
    return f"{value:,.1f}" if is_lower_better(measure) else f"{value:.3f}"


def signed(value: float, measure: str) -> str:
    return f"+{number(value, measure)}" if value > 0 else number(value, measure)


def interval(row: Mapping[str, Any]) -> str:
    if row["low"] is None:
        return "-"
    return f"[{signed(row['low'], row['measure'])}, {signed(row['high'], row['measure'])}]"


def changes(query: WorseQuery) -> str:
    """`recall@10 1.000 -> 0.500, ...` of what changed for a query."""
    values = query.values.items()
    return ", ".join(f"{name} {number(before, name)} -> {number(after, name)}" for name, (before, after) in values)


def probability(value: float | None) -> str:
    if value is None:
        return "-"
    return "< .001" if value < 0.001 else f"{value:.3f}".removeprefix("0")


def allowed(row: Mapping[str, Any]) -> str:
    """The loss that is tolerated, with the sign of a loss."""
    return f"{'+' if row['lower_is_better'] else '-'}{number(row['tolerance'], row['measure'])}"


def cells(row: Mapping[str, Any]) -> list[str]:
    """The numbers of a row: n, changed, baseline, candidate, difference, its interval, tolerance, p."""
    measure = row["measure"]
    return [
        f"{row['n']:,}",
        f"{row['changed']:,}",
        number(row["baseline"], measure),
        number(row["candidate"], measure),
        signed(row["difference"], measure),
        interval(row),
        allowed(row),
        probability(row["p_holm"]),
    ]


def sentence(row: Mapping[str, Any]) -> str:
    """What a row says, for a log or a test report."""
    measure = row["measure"]
    of = "" if row["group"] == ALL else f" ({row['group']})"
    return (
        f"{measure}{of}: {number(row['baseline'], measure)} -> {number(row['candidate'], measure)}, difference "
        f"{signed(row['difference'], measure)} {interval(row)}, tolerance {allowed(row)}, corrected p "
        f"{probability(row['p_holm'])}, {row['n']} queries, {row['changed']} changed: {row['verdict']}"
    )


def run_in_words(summary: Mapping[str, Any]) -> str:
    """Which configuration and which code a run is of."""
    commit = summary.get("commit")
    return f"configuration {summary['config_hash']}, commit {commit[:12] if commit else 'unknown'}"
