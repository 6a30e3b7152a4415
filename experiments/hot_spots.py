"""What it is worth that messages stay raw which later ones come back to, beside a fresh tail of as many tokens.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/hot_spots.py [FOLDER] [DATASET ...]

Runs survival.py's evaluation once a choice and dataset (agents, locomo, beam), kept in FOLDER (runs/hot_spots). Prints
what is retained, in means over conversations, and the gain with a 95 % percentile bootstrap interval of the paired
differences: over the same tail without hot spots, and over tails of as many tokens, read for each conversation between
the tails whose contexts are next smaller and larger. `outside` counts conversations whose context is larger or smaller
than that of any tail: these are held against the nearest.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from survival import DATASETS, LOSSLESS, dataset_paths, interval, made

from eval.run import read_table

TAIL = 8
TAILS = (TAIL, 12, 16, 24, 32)
HOT = {
    f"{share} of the budget, heat {heat}": [f"compaction.hot_spot_share={share}", f"compaction.hot_spot_heat={heat}"]
    for share, heat in ((0.05, 3), (0.1, 3), (0.2, 3), (0.1, 8))
}
BUDGETS = (2000, 8000)


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0]) if arguments else Path("runs/hot_spots")
    print("| | hot spots | budget | retained | context_tokens | gain over the same tail | at equal tokens | outside |")
    print("|---|---|---|---|---|---|---|---|")
    for dataset in arguments[1:] or ("agents", "locomo", "beam"):
        common = [*DATASETS[dataset], *dataset_paths(dataset), *LOSSLESS, "summarizer=extractive"]
        tails = {
            tail: _rows(folder / dataset / f"last_{tail}", [*common, f"compaction.fresh_tail_count={tail}"])
            for tail in TAILS
        }
        for name, hot in {"none": [], **HOT}.items():
            kept = _rows(folder / dataset / name.replace(", ", "_").replace(" ", "_"), [*common, *hot])
            for budget in BUDGETS:
                print(f"| {dataset} | {name} | {budget:,} | {_told(kept, tails, budget)} |", flush=True)


def _rows(run: Path, overrides: Sequence[str]) -> pl.DataFrame:
    made(run, overrides)
    return read_table(run / "survival.parquet").filter(arm="system")


def _told(kept: pl.DataFrame, tails: Mapping[int, pl.DataFrame], budget: int) -> str:
    of_kept, of_tails = _by_conversation(kept, budget), {n: _by_conversation(rows, budget) for n, rows in tails.items()}
    means = [of_kept["retained"].mean(), of_kept["context_tokens"].mean()]
    shown = [f"{means[0]:.3f}", f"{means[1]:,.0f}", interval(of_kept["retained"] - of_tails[TAIL]["retained"])]
    if budget != max(BUDGETS):  # all contexts are full, so that the same tail has as many tokens
        return " | ".join((*shown, "", ""))
    gains, outside = [], 0
    for place, (value, tokens) in enumerate(zip(of_kept["retained"], of_kept["context_tokens"], strict=True)):
        points = sorted((rows["context_tokens"][place], rows["retained"][place]) for rows in of_tails.values())
        sizes, values = zip(*points, strict=True)
        gains.append(value - float(np.interp(tokens, sizes, values)))
        outside += not sizes[0] <= tokens <= sizes[-1]
    return " | ".join((*shown, interval(pl.Series(gains)), str(outside)))


def _by_conversation(rows: pl.DataFrame, budget: int) -> pl.DataFrame:
    """What each conversation retains at its end, and in how many tokens, in the order of their names."""
    last = pl.col("cycle") == pl.col("cycle").max().over("conversation_id")
    found = rows.filter(last, pl.col("budget") == budget, pl.col("kind") == "all")
    found = found.filter(pl.col("measure").is_in(["retained", "context_tokens"]))
    return found.pivot("measure", index="conversation_id", values="value").sort("conversation_id")


if __name__ == "__main__":
    main(sys.argv[1:])
