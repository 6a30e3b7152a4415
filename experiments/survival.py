"""What survives of facts, by compaction, summarizer and dataset; and what it takes to get back the rest.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/survival.py [FOLDER] [DATASET ...] [t5=NAME]
        [curves=FILE.png]

Runs `lcm evaluate 'measures=[survival,resume]'` once a row and dataset (agents, locomo, beam, qmsum), kept in FOLDER
(runs/survival); what is there already is not run again. Prints tables in Markdown: means over conversations, of what is
retained with 95 % percentile bootstrap intervals. t5=NAME adds rows of a T5 that `lcm models get NAME` has brought;
curves=FILE.png draws what is retained over budgets and cycles.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from eval.run import read_summary, read_table
from eval.significance import bootstrap_means
from lcm.compaction.facts.reading import KINDS

BUDGETS = (1000, 2000, 4000, 8000, 16000, 32000)
COMMON = (
    "measures=[survival,resume]", "arms=none", "tracking=none", "report=false", "embedder=hashing",
    f"measures.survival.budgets={list(BUDGETS)}".replace(" ", ""), "measures.resume.budgets=[2000,8000]",
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
SHOWN_BUDGETS = (2000, 8000)
"""Of the tables that tell of more than what is retained."""
BUDGET = 8000
"""Of the tables by cycle and by kind."""
CONTROLS = ("last_n", "truncate", "oracle")
SHOWN = (
    *("recoverable", "missing", "mutated", "stale", "steps", "recall_tokens", "context_tokens", "filler_tokens"),
)  # fmt: skip
RESUMED = ("at_hand", "recalled", "lost", "rounds", "recall_tokens", "task_tokens", "context_tokens", "probes")


def main(arguments: Sequence[str]) -> None:
    named = dict(one.split("=", 1) for one in arguments if "=" in one)
    arguments, model = [one for one in arguments if "=" not in one], named.get("t5")
    t5 = [*LOSSLESS, "summarizer=t5", f"summarizer.model={model}"]
    rows = ROWS if model is None else {**ROWS, "lossless, t5": t5}
    folder, found = Path(arguments[0]) if arguments else Path("runs/survival"), {}
    for dataset in arguments[1:] or DATASETS:
        print(f"\n### {dataset}\n\n| | budget | retained | {' | '.join(SHOWN)} |")
        print(f"|---|{'---|' * (len(SHOWN) + 2)}")
        runs = found[dataset] = {name: folder / dataset / name.replace(", ", "_") for name in rows}
        for name, run in runs.items():
            made(run, [*DATASETS[dataset], *dataset_paths(dataset), *rows[name]])
            for line in _survived(name, run, with_controls=name == next(iter(rows))):
                print(line, flush=True)
        if model is None:
            print("| lossless, t5 | | not obtainable here |")
        print(f"\nretained at the end, by budget\n\n| | {' | '.join(f'{one:,}' for one in BUDGETS)} |")
        print(f"|---|{'---|' * len(BUDGETS)}")
        for name, of_budget in _by_budget(runs).items():
            print(f"| {name} | {' | '.join(map(interval, of_budget))} |")
        print(f"\nretained after each cycle, under {BUDGET:,} tokens\n")
        print(f"| | 1 | 2 | 3 | 4 | 5 |\n|---|{'---|' * 5}")
        for name, of_cycle in _by_cycle(runs).items():
            print(f"| {name} | {' | '.join(map(interval, of_cycle))} |")
        print(f"\nretained by kind, under {BUDGET:,} tokens\n\n{_kinds(runs)}")
        print(f"\nrounds to resume\n\n| | budget | {' | '.join(RESUMED)} |\n|---|---|{'---|' * len(RESUMED)}")
        for name, run in runs.items():
            for line in _resumed(name, run, with_controls=name == next(iter(rows))):
                print(line)
    if "curves" in named:
        drawn(found, Path(named["curves"]))


def made(run: Path, overrides: Sequence[str]) -> None:
    if not (run / "summary.json").exists():
        command = [sys.executable, "-m", "pipelines.cli", "evaluate", *COMMON, *overrides, f"hydra.run.dir={run}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def dataset_paths(dataset: str) -> list[str]:
    home = Path(os.environ.get("LCM_DATASETS_DIR", "datasets")) / "agent_transcripts"
    return [f"dataset.paths=[{','.join(str(home / name) for name in AGENTS)}]"] if dataset == "agents" else []


def _survived(name: str, run: Path, *, with_controls: bool) -> Iterator[str]:
    rows = read_table(run / "survival.parquet")
    for of, entries in read_summary(run)["survival"].items():
        arm, _, budget = of.partition("@")
        if (arm == "system" or with_controls) and int(budget or BUDGET) in SHOWN_BUDGETS:
            told = [number(entries.get(one)) for one in SHOWN]
            shown = interval(retained(rows.filter(arm=arm), int(budget) if budget else None))
            yield f"| {name if arm == 'system' else arm} | {budget or '–'} | {shown} | {' | '.join(told)} |"


def retained(rows: pl.DataFrame, budget: int | None, kind: str = "all", cycle: int | None = None) -> pl.Series:
    """Of each conversation the share that is retained, at its end where no cycle is named."""
    at = pl.col("cycle") == (pl.col("cycle").max().over("conversation_id") if cycle is None else cycle)
    of_budget = pl.col("budget").is_null() if budget is None else pl.col("budget") == budget
    return rows.filter(at, of_budget, pl.col("kind") == kind, pl.col("measure") == "retained")["value"]


def _by_budget(runs: Mapping[str, Path]) -> dict[str, list[pl.Series]]:
    """Row -> what each conversation retains at its end, budget for budget; the control arms below."""
    first = read_table(next(iter(runs.values())) / "survival.parquet")
    of_row = {name: read_table(run / "survival.parquet").filter(arm="system") for name, run in runs.items()}
    of_row |= {arm: first.filter(arm=arm) for arm in CONTROLS}
    return {name: [retained(rows, budget) for budget in BUDGETS] for name, rows in of_row.items()}


def _by_cycle(runs: Mapping[str, Path]) -> dict[str, list[pl.Series]]:
    """Row -> what each conversation retains under `BUDGET`, cycle for cycle."""
    of_row = {name: read_table(run / "survival.parquet").filter(arm="system") for name, run in runs.items()}
    return {
        name: [retained(rows, BUDGET, cycle=n) for n in sorted(rows["cycle"].unique())] for name, rows in of_row.items()
    }


def drawn(found: Mapping[str, Mapping[str, Path]], path: Path) -> None:
    """Draw what is retained, a row of panels a dataset: over budgets at the end, and over cycles."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.4 * len(found)), layout="constrained")
    panels = figure.subplots(len(found), 2, squeeze=False, sharey=True)
    for (over_budgets, over_cycles), (dataset, runs) in zip(panels, found.items(), strict=True):
        _curves(over_budgets, BUDGETS, _by_budget(runs))
        over_budgets.set(xscale="log", xticks=BUDGETS, xlabel="tokens of the budget", ylabel=f"retained, {dataset}")
        over_budgets.set_xticks(BUDGETS, [f"{one // 1000}k" for one in BUDGETS], minor=False)
        of_cycle = _by_cycle(runs)
        _curves(over_cycles, range(1, len(next(iter(of_cycle.values()))) + 1), of_cycle)
        over_cycles.set(
            xlabel=f"compactions, under {BUDGET:,} tokens", xticks=range(1, len(next(iter(of_cycle.values()))) + 1)
        )
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize="small")
    figure.savefig(path, dpi=100)


def _curves(axes: Any, x: Sequence[int], of_row: Mapping[str, Sequence[pl.Series]]) -> None:
    for number, (name, points) in enumerate(of_row.items()):
        low, high = zip(*(bounds(values) for values in points), strict=True)
        line = {"linestyle": "--", "alpha": 0.7} if name in CONTROLS else {"marker": "o", "markersize": 3}
        axes.plot(x, [values.mean() for values in points], color=f"C{number}", label=name, **line)
        if name not in CONTROLS:
            axes.fill_between(x, low, high, color=f"C{number}", alpha=0.1, linewidth=0)
    axes.grid(visible=True, alpha=0.3)


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


def bounds(values: pl.Series) -> tuple[float, float]:
    low, high = bootstrap_means(values.to_numpy().reshape(-1, 1), 1000, 0.95, 0)
    return float(low[0]), float(high[0])


def interval(values: pl.Series) -> str:
    low, high = bounds(values)
    return f"{values.mean():.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    main(sys.argv[1:])
