"""What every part of memory-lancedb-pro is worth: the preset, and one swap at a time.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python docs/experiments/lancedb_pro_parts.py [FOLDER] [DATASET ...]

Runs `lcm evaluate` once a swap and dataset (locomo, beam), kept in FOLDER (runs/lancedb_pro_parts); what is there
already is not run again. Prints tables in Markdown: the mean recall of the preset, and for every swap the difference to
it, query by query, with its 95 % percentile bootstrap interval.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from eval.run_folder import read_summary
from eval.significance import bootstrap_means

PRESET = "the preset"
RECIPROCAL_RANK = (
    "fusion=reciprocal_rank", "ranking.stages.min_score=null", "ranking.stages.hard_min_score=null",
)  # fmt: skip
"""Sums of reciprocal ranks stay far below the preset's minima."""
SWAPS: dict[str, dict[str, Sequence[str]]] = {
    "paths and orders": {
        "order of the code (hard minimum before decay)": ["ranking=lancedb_pro_code"],
        "no decay engine: recency, importance, time decay": ["ranking=lancedb_pro_no_engine"],
        "no decay engine, order of the code": ["ranking=lancedb_pro_code_no_engine"],
        "vector path": ["ranking.mode=vector"],
    },
    "decay": {
        **{f"decay={choice}": [f"decay={choice}"] for choice in ("none", "weibull_slow", "weibull_fast")},
        "recency lifts the floor": ["decay.recency_lifts=true"],
        "no floor for working documents": ["decay.floor_working=0"],
        "weibull_fast, no floor for working documents": ["decay=weibull_fast", "decay.floor_working=0"],
    },
    "use": {
        "reinforcement=recall": ["reinforcement=recall"],
        "reinforcement=recall, no floor for working documents": ["reinforcement=recall", "decay.floor_working=0"],
    },
    "in place of decay": {
        f"no decay engine, without {stage}": ["ranking=lancedb_pro_no_engine", f"ranking.stages.{stage}=null"]
        for stage in ("recency_boost", "importance_weight", "time_decay")
    },
    "fusion": {
        "fusion=reciprocal_rank, no minima": [*RECIPROCAL_RANK],
        "fusion=reciprocal_rank, no minima, reranker=none": [*RECIPROCAL_RANK, "reranker=none"],
        "no lexical floor": ["fusion.floor_ratio=0"],
        "weights .5/.5": ["fusion.dense_weight=0.5", "fusion.lexical_weight=0.5"],
    },
    "reranker": {"reranker=none": ["reranker=none"]},
    "candidates": {
        "pools of 1,000 (source=hybrid)": ["source=hybrid"],
        "no query expansion": ["source.expansion=null"],
        "no substrings": ["source.containment=false"],
        "text_index=bm25s": ["text_index=bm25s"],
    },
    "documents": {
        "annotation=none": ["annotation=none"],
        "annotation without expiry": ["annotation.expiry=false"],
        "extraction=window": ["extraction=window"],
    },
    "one stage left out": {
        f"without {stage}": [f"ranking.stages.{stage}=null"]
        for stage in (
            "min_score", "not_expired", "length_normalization", "hard_min_score", "noise_filter", "diversity",
        )
    },
    "admission": {
        f"admission={choice}": [f"admission={choice}"] for choice in ("balanced", "conservative", "high_recall")
    },
    "deduplication": {
        "deduplication=rule": ["deduplication=rule"],
        "admission=balanced deduplication=rule": ["admission=balanced", "deduplication=rule"],
        "extraction=window deduplication=create": ["extraction=window", "deduplication=create"],
        "extraction=window deduplication=rule": ["extraction=window", "deduplication=rule"],
    },
}  # fmt: skip
MEASURES = ("recall@5", "recall@10", "nDCG@10", "tokens@10")
COMMON = ("system=lancedb_pro", "arms=none", "tracking=none", "latency.queries=0")


def main(folder: Path, datasets: Sequence[str]) -> None:
    for dataset in datasets:
        preset = run(folder / dataset, dataset, PRESET, ())
        bounds = zip(*summarised(preset), strict=True)
        cells = (f"{m:.3f} [{a:.3f}, {b:.3f}]" if m < 5 else f"{m:.0f}" for m, a, b in bounds)
        print(f"\n## {dataset}, {len(preset)} queries\n")
        print(f"{PRESET}: " + ", ".join(f"{name} {cell}" for name, cell in zip(MEASURES, cells, strict=True)) + "\n")
        print(f"| part | swap | {' | '.join(MEASURES)} | decisions |\n|---|---|{'---|' * (len(MEASURES) + 1)}")
        for part, swaps in SWAPS.items():
            for name, overrides in swaps.items():
                found = run(folder / dataset, dataset, name, overrides)
                difference = found.join(preset, on="query_id", suffix="_preset", maintain_order="left").select(
                    pl.col(measure) - pl.col(f"{measure}_preset") for measure in MEASURES
                )
                assert len(difference) == len(preset), "the same queries are judged"
                means, low, high = summarised(difference)
                cells = (
                    f"{m:+.0f}" if name == "tokens@10" else f"{m:+.3f} [{a:+.3f}, {b:+.3f}]"
                    for name, m, a, b in zip(MEASURES, means, low, high, strict=True)
                )
                decided = read_summary(place(folder / dataset, name))["decisions"]
                told = ", ".join(f"{action} {n}" for action, n in decided.items()) or "–"
                print(f"| {part} | {name} | {' | '.join(cells)} | {told} |", flush=True)


def run(folder: Path, dataset: str, name: str, overrides: Sequence[str]) -> pl.DataFrame:
    """Evaluate once; rows query_id and one column a measure."""
    target = place(folder, name)
    if not (target / "summary.json").is_file():
        lcm = Path(sys.executable).with_name("lcm")
        command = [str(lcm), "evaluate", f"dataset={dataset}", *COMMON, *overrides, f"hydra.run.dir='{target}'"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    values = pl.read_parquet(target / "per_query.parquet").filter(arm="system")
    return values.pivot("measure", index="query_id", values="value").select("query_id", *MEASURES).sort("query_id")


def place(folder: Path, name: str) -> Path:
    return folder / "".join(character if character.isalnum() else "_" for character in name)


def summarised(frame: pl.DataFrame) -> tuple[Sequence[float], Sequence[float], Sequence[float]]:
    """Means, and the bounds of their 95 % intervals over queries, in the order of MEASURES."""
    values = frame.select(MEASURES).to_numpy().astype(np.float64)
    low, high = bootstrap_means(values, resamples=2000, confidence=0.95, seed=0)
    return values.mean(axis=0).tolist(), low.tolist(), high.tolist()


if __name__ == "__main__":
    kept = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/lancedb_pro_parts")
    main(kept.resolve(), sys.argv[2:] or ["locomo", "beam"])
