"""What admission and deduplication decide on LoCoMo, and which feature decides it.

    .venv/bin/python experiments/lancedb_pro_admission.py [FOLDER]

Reads the runs that lancedb_pro_parts.py kept in FOLDER (runs/lancedb_pro_parts), and prints tables in Markdown: the
decisions by category, and for what was rejected the feature that fell furthest behind those that were admitted, by its
weighted share of the score.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import polars as pl

FEATURES = ("utility", "confidence", "novelty", "recency", "type_prior")
RUNS = {
    "balanced": "admission_balanced",
    "conservative": "admission_conservative",
    "high_recall": "admission_high_recall",
    "rule": "deduplication_rule",
    "balanced, rule": "admission_balanced_deduplication_rule",
    "window, rule": "extraction_window_deduplication_rule",
}


def main(folder: Path) -> None:
    decisions = {
        name: pl.read_parquet(folder / "lancedb_pro" / "locomo" / run / "decisions.parquet")
        for name, run in RUNS.items()
    }
    print("| choices | category | candidates | decisions |\n|---|---|---|---|")
    for name, frame in decisions.items():
        for (category,), rows in frame.group_by("category", maintain_order=True):
            counts = Counter(rows["action"])
            print(f"| {name} | {category} | {len(rows)} | {', '.join(f'{a} {n}' for a, n in counts.most_common())} |")
    print(f"\n| preset | rejected | {' | '.join(f'by {feature}' for feature in FEATURES)} |\n|{'---|' * 7}")
    for name, frame in decisions.items():
        judged = frame.filter(pl.col("score").is_not_null())
        rejected = judged.filter(action="reject")
        if rejected.is_empty() or "," in name:
            continue
        kept = [shares(row) for row in judged.filter(pl.col("action") != "reject").iter_rows(named=True)]
        usual = {feature: sum(share[feature] for share in kept) / len(kept) for feature in FEATURES}
        behind = Counter(
            max(FEATURES, key=lambda feature: usual[feature] - share[feature])
            for share in map(shares, rejected.iter_rows(named=True))
        )
        print(f"| {name} | {len(rejected)} | {' | '.join(str(behind[feature]) for feature in FEATURES)} |")


def shares(row: dict[str, str]) -> dict[str, float]:
    """What each feature adds to a score."""
    weights, features = json.loads(row["audit"])["admission"]["weights"], json.loads(row["features"])
    return {feature: weights[feature] * features[feature] for feature in FEATURES}


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/lancedb_pro_parts"))
