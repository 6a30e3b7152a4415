"""Sentences that every report of the gate uses."""

from collections.abc import Mapping
from typing import Any

from eval.comparison.wording import interval, number, probability, signed
from eval.measures.means import ALL
from eval.regression.gate import GatedComparison

_EXPLAINED = {
    "fine": "nothing gated is worse than tolerated beyond chance; over all queries, a loss to be detected is excluded",
    "regressed": "the candidate is worse than its tolerance, beyond chance",
    "cannot tell": "too few queries, or too varied ones: a loss that must be detected cannot be excluded",
}


CORRECTED = (
    "p: permutation test of what is gated, corrected by Holm over the rows over all queries, and over those of "
    "categories apart from them"
)
"""What p in a table of the gate is."""


def explained(comparison: GatedComparison) -> str:
    """What p, verdict and gate in a table are."""
    return f"{CORRECTED}; better, worse: p < {comparison.alpha:g}; regressed: worse, beyond the tolerance"


def headline(found: GatedComparison) -> str:
    """What got better and what got worse over all queries, what else changed, and what the gate says, in a line."""
    rows = list(found.rows.filter(group=ALL).iter_rows(named=True))
    moved = [
        f"{verdict}: {', '.join(_moved(row) for row in rows if row['verdict'] == verdict)}"
        for verdict in ("better", "worse", "not tested")
        if any(row["verdict"] == verdict for row in rows)
    ]
    return f"{found.gate}: {_EXPLAINED[found.gate]} ({'; '.join(moved) or 'no measure told better or worse'})"


def _moved(row: Mapping[str, Any]) -> str:
    return f"{row['measure']} {signed(row['difference'], row['lower_is_better'])}"


def allowed(row: Mapping[str, Any]) -> str:
    """The loss that is tolerated, with the sign of a loss; `-` of a measure that is told only."""
    if row["tolerance"] is None:
        return "-"
    return f"{'+' if row['lower_is_better'] else '-'}{number(row['tolerance'], row['lower_is_better'])}"


def cells(row: Mapping[str, Any]) -> list[str]:
    """A row: n, changed, baseline, candidate, difference, its interval, p, verdict, tolerance, gate."""
    is_cost = row["lower_is_better"]
    return [
        f"{row['n']:,}",
        f"{row['changed']:,}",
        number(row["baseline"], is_cost),
        number(row["candidate"], is_cost),
        signed(row["difference"], is_cost),
        interval(row),
        probability(row["p_holm"]),
        row["verdict"],
        allowed(row),
        row["gate"] or "-",
    ]


def sentence(row: Mapping[str, Any]) -> str:
    """What a row says, for a log or a test report."""
    measure, is_cost = row["measure"], row["lower_is_better"]
    of = "" if row["group"] == ALL else f" ({row['group']})"
    return (
        f"{measure}{of}: {number(row['baseline'], is_cost)} -> {number(row['candidate'], is_cost)}, difference "
        f"{signed(row['difference'], is_cost)} {interval(row)}, corrected p {probability(row['p_holm'])}, {row['n']} "
        f"queries, {row['changed']} changed: {row['verdict']}; tolerance {allowed(row)}: {row['gate'] or 'not gated'}"
    )


def run_in_words(summary: Mapping[str, Any]) -> str:
    """Which configuration and which code a run is of."""
    commit = summary.get("commit")
    return f"configuration {summary['config_hash']}, commit {commit[:12] if commit else 'unknown'}"
