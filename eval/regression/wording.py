"""Sentences that every report of the gate uses."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from eval.comparison.changed_query import ChangedQuery
from eval.measures.means import ALL
from eval.regression.gate import GatedComparison
from eval.table import Cell, Column, Row, Table, interval, number, paired_cells, probability, signed

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


_LACKS = [
    ["n", "changed", *more]
    for more in ([], ["tolerance"], ["tolerance", "p (Holm)"], ["tolerance", "p (Holm)", "baseline", "candidate"])
]
"""On a narrow terminal the interval outlives p, which has its say in the verdict."""


def table(rows: Sequence[Mapping[str, Any]], confidence: float) -> Table:
    """The rows of a gate, in order."""
    columns = (
        Column("group", "label"),
        Column("measure", "label"),
        Column("n", "number"),
        Column("changed", "number"),
        Column("baseline", "value"),
        Column("candidate", "value"),
        Column("difference", "change"),
        Column(f"{100 * confidence:g} % interval", "interval"),
        Column("p (Holm)", "p"),
        Column("verdict", "verdict"),
        Column("tolerance", "value"),
        Column("gate", "gate"),
    )
    return Table(columns, [_cells(row) for row in rows], lacks=_LACKS)


def _cells(row: Mapping[str, Any]) -> Row:
    values = (Cell(row[side], row["lower_is_better"]) for side in ("baseline", "candidate"))
    told = (row["group"], row["measure"], row["n"], row["changed"], *values, *paired_cells(row))
    return *told, row["verdict"], allowed(row), row["gate"]


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


def changes(query: ChangedQuery, costs: Collection[str]) -> str:
    """`recall@10 1.000 -> 0.500, ...` of what changed for a query."""
    return ", ".join(
        f"{name} {number(before, name in costs)} -> {number(after, name in costs)}"
        for name, (before, after) in query.values.items()
    )
