"""What survives of facts, by compaction, summarizer and dataset; and what it takes to get back the rest.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python docs/experiments/survival.py [FOLDER] [DATASET ...] [t5=NAME]

Runs `lcm evaluate 'measures=[survival,resume]'` once a row and dataset (agents, locomo, beam, qmsum), kept in FOLDER
(runs/survival); what is there already is not run again. Prints tables in Markdown: means over conversations, of what is
retained with 95 % percentile bootstrap intervals. t5=NAME adds rows of a T5 that `lcm models get NAME` has brought.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from eval.experiment.run_folder import read_summary, read_table
from eval.significance import bootstrap_means
from lcm.compaction.facts.statement import KINDS

COMMON = (
    "measures=[survival,resume]", "arms=none", "tracking=none", "report=false", "embedder=hashing",
    "measures.survival.budgets=[2000,8000]", "measures.resume.budgets=[2000,8000]",
)  # fmt: skip
WINDOW = (
    "compaction.budget_tokens=8000", "compaction.leaf_chunk_tokens=2000", "compaction.leaf_target_tokens=400",
    "compaction.condensed_target_tokens=400", "compaction.fresh_tail_count=8", "compaction.leaf_min_fanout=4",
    "assembly.fresh_tail_count=8", "assembly.fresh_tail_max_tokens=1000",
)  # fmt: skip
"""So that a context of 2,000 tokens has room for summaries, and every conversation is compacted several times over."""
LOSSLESS = ("compaction=lossless", "assembly=lossless", *WINDOW)
ROWS: Mapping[str, Sequence[str]] = {
    "lossless, truncate": [*LOSSLESS, "summarizer=truncate"],
    "lossless, extractive": [*LOSSLESS, "summarizer=extractive"],
    "lossless, centroid": [*LOSSLESS, "summarizer=centroid"],
    "lossless_claw, extractive": ["system=lossless_claw", *WINDOW],
    "libravdb": ["system=libravdb"],
}
AGENTS = ("pi_session", "swe_agent")
DATASETS: Mapping[str, Sequence[str]] = {
    "agents": ["dataset=transcripts"],
    "locomo": ["dataset=locomo"],
    "beam": ["dataset=beam", "dataset.only=[beam-100K-2,beam-100K-3,beam-100K-4,beam-100K-6]"],
    "qmsum": ["dataset=qmsum", f"dataset.only=[{','.join(f'meeting-{n}' for n in range(12))}]"],
}
BUDGET = 8000
"""Of the tables by cycle and by kind."""
SHOWN = (
    *("recoverable", "missing", "mutated", "stale", "steps", "recall_tokens", "context_tokens", "filler_tokens"),
)  # fmt: skip
RESUMED = ("at_hand", "recalled", "lost", "rounds", "recall_tokens", "task_tokens", "context_tokens", "probes")


def main(arguments: Sequence[str]) -> None:
    model = next((one.removeprefix("t5=") for one in arguments if one.startswith("t5=")), None)
    arguments = [one for one in arguments if not one.startswith("t5=")]
    t5 = [*LOSSLESS, "summarizer=t5", f"summarizer.model={model}"]
    rows = ROWS if model is None else {**ROWS, "lossless, t5": t5}
    folder = Path(arguments[0]) if arguments else Path("runs/survival")
    for dataset in arguments[1:] or DATASETS:
        print(f"\n### {dataset}\n\n| | budget | retained | {' | '.join(SHOWN)} |")
        print(f"|---|{'---|' * (len(SHOWN) + 2)}")
        runs = {name: folder / dataset / name.replace(", ", "_") for name in rows}
        for name, run in runs.items():
            made(run, [*DATASETS[dataset], *dataset_paths(dataset), *rows[name]])
            for line in _survived(name, run, with_controls=name == next(iter(rows))):
                print(line, flush=True)
        if model is None:
            print("| lossless, t5 | | not obtainable here |")
        print(f"\nretained after each cycle, under {BUDGET:,} tokens\n")
        print(f"| | 1 | 2 | 3 | 4 | 5 |\n|---|{'---|' * 5}")
        for name, run in runs.items():
            print(_cycles(name, run))
        print(f"\nretained by kind, under {BUDGET:,} tokens\n\n{_kinds(runs)}")
        print(f"\nrounds to resume\n\n| | budget | {' | '.join(RESUMED)} |\n|---|---|{'---|' * len(RESUMED)}")
        for name, run in runs.items():
            for line in _resumed(name, run, with_controls=name == next(iter(rows))):
                print(line)


def made(run: Path, overrides: Sequence[str]) -> None:
    if not (run / "summary.json").exists():
        command = [sys.executable, "-m", "pipelines.cli", "evaluate", *COMMON, *overrides, f"hydra.run.dir={run}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603


def dataset_paths(dataset: str) -> list[str]:
    home = Path(os.environ.get("LCM_DATASETS_DIR", "datasets")) / "agent_transcripts"
    return [f"dataset.paths=[{','.join(str(home / name) for name in AGENTS)}]"] if dataset == "agents" else []


def _survived(name: str, run: Path, *, with_controls: bool) -> Iterator[str]:
    rows = read_table(run / "survival.parquet")
    for of, entries in read_summary(run)["survival"].items():
        arm, _, budget = of.partition("@")
        if arm == "system" or with_controls:
            told = [number(entries.get(one)) for one in SHOWN]
            shown = interval(retained(rows.filter(arm=arm), int(budget) if budget else None))
            yield f"| {name if arm == 'system' else arm} | {budget or '–'} | {shown} | {' | '.join(told)} |"


def retained(rows: pl.DataFrame, budget: int | None, kind: str = "all", cycle: int | None = None) -> pl.Series:
    """Of each conversation the share that is retained, at its end where no cycle is named."""
    at = pl.col("cycle") == (pl.col("cycle").max().over("conversation_id") if cycle is None else cycle)
    of_budget = pl.col("budget").is_null() if budget is None else pl.col("budget") == budget
    return rows.filter(at, of_budget, pl.col("kind") == kind, pl.col("measure") == "retained")["value"]


def _cycles(name: str, run: Path) -> str:
    rows = read_table(run / "survival.parquet").filter(arm="system")
    cycles = sorted(rows["cycle"].unique())
    return f"| {name} | {' | '.join(interval(retained(rows, BUDGET, cycle=cycle)) for cycle in cycles)} |"


def _kinds(runs: Mapping[str, Path]) -> str:
    of_run = {name: read_table(run / "survival.parquet").filter(arm="system") for name, run in runs.items()}
    kinds = [kind for kind in KINDS if not next(iter(of_run.values())).filter(kind=kind).is_empty()]
    lines = [f"| | {' | '.join(kinds)} |", f"|---|{'---|' * len(kinds)}"]
    for name, rows in of_run.items():
        means = [retained(rows, BUDGET, kind).mean() for kind in kinds]
        lines.append(f"| {name} | {' | '.join('' if one is None else f'{one:.2f}' for one in means)} |")
    return "\n".join(lines)


def _resumed(name: str, run: Path, *, with_controls: bool) -> Iterator[str]:
    for of, entries in read_summary(run).get("resume", {}).items():
        arm, _, budget = of.partition("@")
        if arm == "system" or with_controls:
            told = [number(entries.get(one)) for one in RESUMED]
            yield f"| {name if arm == 'system' else arm} | {budget or '–'} | {' | '.join(told)} |"


def number(entry: Mapping[str, Any] | None) -> str:
    value = None if entry is None else entry["value"]
    return "" if value is None else f"{value:,.0f}" if value > 10 else f"{value:.3f}"


def interval(values: pl.Series) -> str:
    low, high = bootstrap_means(values.to_numpy().reshape(-1, 1), 1000, 0.95, 0)
    return f"{values.mean():.3f} [{low[0]:.3f}, {high[0]:.3f}]"


if __name__ == "__main__":
    main(sys.argv[1:])
