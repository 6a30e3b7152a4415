"""Numbers and sentences that every report of a comparison uses."""

from collections.abc import Mapping
from typing import Any

from eval.regression.comparison import ALL, Comparison

_EXPLAINED = {
    "fine": "Nothing is worse than its tolerance beyond chance, and over all queries no loss to be detected is possible.",
    "regressed": "The candidate is worse than its tolerance, beyond chance.",
    "could not tell": "Too few queries, or too varied ones: a loss that must be detected cannot be excluded.",
}


def headline(comparison: Comparison) -> str:
    """The verdict in a sentence."""
    return _EXPLAINED[comparison.verdict]


def number(value: float | None) -> str:
    """Shares to three places, tokens and the like to one; `-` where there is none."""
    if value is None:
        return "-"
    return f"{value:.3f}" if abs(value) < 5 else f"{value:,.1f}"


def signed(value: float) -> str:
    return f"+{number(value)}" if value > 0 else number(value)


def interval(row: Mapping[str, Any]) -> str:
    if row["low"] is None:
        return "-"
    return f"[{signed(row['low'])}, {signed(row['high'])}]"


def probability(value: float | None) -> str:
    if value is None:
        return "-"
    return "< .001" if value < 0.001 else f"{value:.3f}".removeprefix("0")


def allowed(row: Mapping[str, Any]) -> str:
    """The loss that is tolerated, with the sign of a loss."""
    return f"{'+' if row['lower_is_better'] else '-'}{number(row['tolerance'])}"


def sentence(row: Mapping[str, Any]) -> str:
    """What a row says, for a log or a test report."""
    of = "" if row["group"] == ALL else f" ({row['group']})"
    return (
        f"{row['measure']}{of}: {number(row['baseline'])} -> {number(row['candidate'])}, difference "
        f"{signed(row['difference'])} {interval(row)}, tolerance {allowed(row)}, corrected p "
        f"{probability(row['p_holm'])}, {row['n']} queries, {row['changed']} changed: {row['verdict']}"
    )


def run_in_words(summary: Mapping[str, Any]) -> str:
    """Which configuration and which code a run is of."""
    commit = summary.get("commit")
    return f"configuration {summary['config_hash']}, commit {commit[:12] if commit else 'unknown'}"
