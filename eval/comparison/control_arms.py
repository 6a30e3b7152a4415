"""What a run's system is better and worse than, of the control arms beside it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from eval.comparison.agreement import comparable
from eval.comparison.pairing import Pairing
from eval.measures.names import ANSWER_HEADLINE, SYSTEM_ARM
from eval.table import interval

BY = (("recall@10", "session.recall@10", "recall@5", "session.recall@5"), ANSWER_HEADLINE)
"""Of rankings and of answers: the first of each that a run has is what its arms are held by."""


def against_controls(folder: Path, summary: Mapping[str, Any]) -> list[str]:
    """A line for rankings and one for answers: by recall@10 better than which arms, by how much, worse than which, and
    which it cannot be told from.

    The system is held against each arm query by query, as `lcm compare` holds systems. None is told where there is no
    arm, or nothing that both are measured by.
    """
    measures = [next((name for name in names if name in summary["measures"]), None) for names in BY]
    told = (_against(folder, summary, measure) for measure in measures if measure is not None)
    return [line for line in told if line is not None]


def _against(folder: Path, summary: Mapping[str, Any], measure: str) -> str | None:
    arms = [arm for arm, measures in summary["arms"].items() if measure in measures]
    if not arms:
        return None
    system = comparable(folder, SYSTEM_ARM)
    values = system.per_query.filter(measure=measure).select("arm", "query_id", "measure", "value")
    of_arms = [system.having(arm, values=values.filter(arm=arm).drop("arm")) for arm in arms]
    pairing = Pairing()
    rows = pairing.rows(system, of_arms, [measure])
    if rows.is_empty():
        return None
    named = _named(arms, rows)
    words = {"worse": "better than", "better": "worse than", "cannot tell": "not told from", "same": "the same as"}
    parts = [f"{word} {', '.join(named[verdict])}" for verdict, word in words.items() if verdict in named]
    corrected = f" (paired by query, p < {pairing.alpha:g}, Holm over {len(rows)} arms)" if len(rows) > 1 else ""
    return f"by {measure} the system is {'; '.join(parts)}{corrected}"


def _named(arms: Sequence[str], rows: pl.DataFrame) -> dict[str, list[str]]:
    """The arm's verdict beside the system -> arms with how far the system is above each, the nearest first."""
    found: dict[str, list[tuple[float, str]]] = {}
    for row in rows.iter_rows(named=True):
        arm, above = arms[row["side"]], -row["difference"]
        ends = {"low": None, "high": None} if row["low"] is None else {"low": -row["high"], "high": -row["low"]}
        text = arm if row["verdict"] == "same" else f"{arm} {above:+.3f} {interval({**row, **ends})}"
        found.setdefault(row["verdict"], []).append((abs(above), text))
    return {verdict: [text for _, text in sorted(of)] for verdict, of in found.items()}
