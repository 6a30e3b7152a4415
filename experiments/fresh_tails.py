"""What a fresh tail is worth whose length follows what its messages say, beside fixed ones.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/fresh_tails.py [FOLDER] [DATASET ...]

Runs `lcm evaluate 'measures=[survival,resume]'` once a tail and dataset (agents, qmsum: three meetings), kept in FOLDER
(runs/fresh_tails) as survival.py keeps its own. Prints means over conversations, with 95 % percentile bootstrap
intervals of what is retained.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from survival import DATASETS, LOSSLESS, dataset_paths, interval, made, number, retained

from eval.run import read_summary, read_table

TAILS = {
    **{f"the last {count}": [f"compaction.fresh_tail_count={count}"] for count in (4, 8, 16, 32)},
    **{
        f"4 to 32, novelty {novelty}": [
            "compaction.fresh_tail_count=4",
            "compaction.fresh_tail_max_count=32",
            f"compaction.fresh_tail_novelty={novelty}",
        ]
        for novelty in (0.8, 0.9)
    },
}
MEETINGS = ["dataset=qmsum", "dataset.only=[meeting-0,meeting-1,meeting-2]"]
BUDGETS = (2000, 8000)
SURVIVED = ("recoverable", "context_tokens")
RESUMED = ("at_hand", "rounds", "task_tokens")


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0]) if arguments else Path("runs/fresh_tails")
    print(f"| | tail | budget | retained | {' | '.join((*SURVIVED, *RESUMED))} |")
    print(f"|---|---|{'---|' * (len(SURVIVED) + len(RESUMED) + 2)}")
    for dataset in arguments[1:] or ("agents", "qmsum"):
        given = MEETINGS if dataset == "qmsum" else [*DATASETS[dataset], *dataset_paths(dataset)]
        for name, tail in TAILS.items():
            run = folder / dataset / name.replace(", ", "_").replace(" ", "_")
            made(run, [*given, *LOSSLESS, "summarizer=extractive", *tail])
            for budget in BUDGETS:
                print(f"| {dataset} | {name} | {budget:,} | {_told(run, budget)} |", flush=True)


def _told(run: Path, budget: int) -> str:
    rows, summary = read_table(run / "survival.parquet").filter(arm="system"), read_summary(run)
    of = f"system@{budget}"
    shown = [number(summary["survival"][of].get(one)) for one in SURVIVED]
    resumed = summary.get("resume", {}).get(of, {})  # a meeting has no assistant whose mentions could be probes
    shown += [number(resumed.get(one)) for one in RESUMED]
    return " | ".join((interval(retained(rows, budget)), *shown))


if __name__ == "__main__":
    main(sys.argv[1:])
