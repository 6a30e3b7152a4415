"""What a run's system is better and worse than, of the control arms beside it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from eval.comparison.pairing import Pairing
from eval.comparison.side import read_side
from eval.comparison.wording import interval
from eval.measures.names import SYSTEM_ARM

BY = ("recall@10", "session.recall@10", "recall@5", "session.recall@5")
"""The first of these that a run has is what its arms are held by."""


def against_controls(folder: Path, summary: Mapping[str, Any]) -> str | None:
    """One line: by recall@10 better than which arms, by how much, worse than which, and which it cannot be told from.

    The system is held against each arm query by query, as `lcm compare` holds systems.

    Returns:
        None where there is no arm, or nothing that both are measured by.
    """
    measure = next((name for name in BY if name in summary["measures"]), None)
    arms = [arm for arm, measures in summary["arms"].items() if measure in measures]
    if measure is None or not arms:
        return None
    system = read_side(folder, SYSTEM_ARM)
    pairing = Pairing()
    rows = [pairing.rows(read_side(folder, arm, arm), [system], [measure]) for arm in arms]
    tested = [(arm, one) for arm, one in zip(arms, rows, strict=True) if not one.is_empty()]
    if not tested:
        return None
    told = pairing.corrected(pl.concat([one for _, one in tested]))
    by_verdict = _named([arm for arm, _ in tested], told)
    words = {"better": "better than", "worse": "worse than", "cannot tell": "not told from", "same": "the same as"}
    parts = [f"{word} {', '.join(by_verdict[verdict])}" for verdict, word in words.items() if verdict in by_verdict]
    corrected = f" (paired by query, p < {pairing.alpha:g} over {len(tested)} arms)" if len(tested) > 1 else ""
    return f"by {measure} the system is {'; '.join(parts)}{corrected}"


def _named(arms: Sequence[str], rows: pl.DataFrame) -> dict[str, list[str]]:
    """Verdict -> arms with the difference to each, the nearest first."""
    found: dict[str, list[tuple[float, str]]] = {}
    for arm, row in zip(arms, rows.iter_rows(named=True), strict=True):
        text = arm if row["verdict"] == "same" else f"{arm} {row['difference']:+.3f} {interval(row)}"
        found.setdefault(row["verdict"], []).append((abs(row["difference"]), text))
    return {verdict: [text for _, text in sorted(of)] for verdict, of in found.items()}
