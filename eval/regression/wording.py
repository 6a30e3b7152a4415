"""Numbers and sentences that every report of a comparison uses."""

from collections.abc import Collection, Mapping
from typing import Any

from eval.regression.comparison import ALL, Comparison
from eval.regression.worse_query import WorseQuery

_EXPLAINED = {
    "fine": "Nothing is worse than tolerated beyond chance; over all queries, a loss to be detected can be excluded.",
    "regressed": "The candidate is worse than its tolerance, beyond chance.",
    "could not tell": "Too few queries, or too varied ones: a loss that must be detected cannot be excluded.",
}


def headline(comparison: Comparison) -> str:
    """The verdict in a sentence."""
    return _EXPLAINED[comparison.verdict]


def number(value: float | None, is_cost: bool) -> str:
    """Of a cost to one place, else to three; `-` where there is none."""
    if value is None:
        return "-"
    return f"{value:,.1f}" if is_cost else f"{value:.3f}"


def signed(value: float, is_cost: bool) -> str:
    return f"+{number(value, is_cost)}" if value > 0 else number(value, is_cost)


def interval(row: Mapping[str, Any]) -> str:
    if row["low"] is None:
        return "-"
    return f"[{signed(row['low'], row['lower_is_better'])}, {signed(row['high'], row['lower_is_better'])}]"


def changes(query: WorseQuery, costs: Collection[str]) -> str:
    """`recall@10 1.000 -> 0.500, ...` of what changed for a query."""
    return ", ".join(
        f"{name} {number(before, name in costs)} -> {number(after, name in costs)}"
        for name, (before, after) in query.values.items()
    )


def probability(value: float | None) -> str:
    if value is None:
        return "-"
    return "< .001" if value < 0.001 else f"{value:.3f}".removeprefix("0")


def allowed(row: Mapping[str, Any]) -> str:
    """The loss that is tolerated, with the sign of a loss."""
    return f"{'+' if row['lower_is_better'] else '-'}{number(row['tolerance'], row['lower_is_better'])}"


def cells(row: Mapping[str, Any]) -> list[str]:
    """The numbers of a row: n, changed, baseline, candidate, difference, its interval, tolerance, p."""
    is_cost = row["lower_is_better"]
    return [
        f"{row['n']:,}",
        f"{row['changed']:,}",
        number(row["baseline"], is_cost),
        number(row["candidate"], is_cost),
        signed(row["difference"], is_cost),
        interval(row),
        allowed(row),
        probability(row["p_holm"]),
    ]


def sentence(row: Mapping[str, Any]) -> str:
    """What a row says, for a log or a test report."""
    measure, is_cost = row["measure"], row["lower_is_better"]
    of = "" if row["group"] == ALL else f" ({row['group']})"
    return (
        f"{measure}{of}: {number(row['baseline'], is_cost)} -> {number(row['candidate'], is_cost)}, difference "
        f"{signed(row['difference'], is_cost)} {interval(row)}, tolerance {allowed(row)}, corrected p "
        f"{probability(row['p_holm'])}, {row['n']} queries, {row['changed']} changed: {row['verdict']}"
    )


def run_in_words(summary: Mapping[str, Any]) -> str:
    """Which configuration and which code a run is of."""
    commit = summary.get("commit")
    return f"configuration {summary['config_hash']}, commit {commit[:12] if commit else 'unknown'}"
